"""`sgfn report` on the command line: parsing and printing only."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

import sgfn
from sgfn.cli.evaluate import stage_bar
from sgfn.cli.streams import Output
from sgfn.cli.tables import out, print_json
from sgfn.cli.trust import Named, Trusting, trust_of
from sgfn.config.checks import refuse_twice
from sgfn.config.files import check_target, check_writable

PAGES = (".html", ".htm")


@dataclass(frozen=True, kw_only=True)
class Report:
    """Draw runs: learning curve, scores of samples against the target, TV over time with the floor."""

    runs: Annotated[Positional[list[Path]], arg(metavar="RUN...")]
    """Run folders."""
    out: Path | None = None
    """PNG, PDF or SVG file, or HTML file for a page alone; by default report.png in the first run folder."""
    html: bool = False
    """Write a page next to the picture: table, curves, logos, modes and orders in one HTML file."""
    overwrite: bool = False
    """Replace files given by --out that are there."""
    json: bool = False
    """Print JSON."""
    named: Trusting = field(default_factory=Named)


def run_report(args: Report) -> None:
    """`sgfn report`."""
    (picture, page), err = report_files(args), Output(stderr=True)
    for file in filter(None, (picture, page)):
        if args.out is not None:
            check_target(file, overwrite=args.overwrite)
    trust = trust_of(args.named)
    for path in args.runs:
        run = sgfn.Run(path=path, trust=trust)
        run.read_config()
        for file in filter(None, (picture, page)):
            run.refuse_own(file)
    refuse_twice("report", args.runs)
    for file in filter(None, (picture, page)):
        check_writable(file)
    for path in args.runs:
        if not evaluated(path, trust):
            with stage_bar(err, shown=err.is_terminal and not args.json) as progress:
                sgfn.evaluate(path, trust=trust, progress=progress)
    if picture is not None:
        from sgfn.reports.figures import report  # matplotlib is slow to import

        report(args.runs, picture, trust=trust)
    if page is not None:
        from sgfn.reports.pages import report_html

        report_html(args.runs, page, trust=trust)
    if args.json:
        from sgfn.runs.results import read_results

        files = {"file": str(picture or page)} | ({} if page is None else {"page": str(page)})
        return print_json(files | {"runs": [read_results(path) for path in args.runs]})
    for name, file in (("figure", picture), ("page", page)):
        if file is not None:
            out.print(f"{name} in {file}", soft_wrap=True)
    return None


def report_files(args: Report) -> tuple[Path | None, Path | None]:
    """The picture and the page that are asked for; raises where nothing is written in the format of a name."""
    from sgfn.reports.looks import PICTURES
    from sgfn.runs.table_files import kind_of

    if not args.runs:
        raise ValueError("name at least one run folder")
    first = args.out or args.runs[0] / "report.png"
    if args.out is not None:
        check_target(args.out, overwrite=args.overwrite)  # what it is goes before what it is called
    if kind_of(first, (*PICTURES, *PAGES), "reports") in PAGES:
        return None, first
    return first, first.with_suffix(".html") if args.html else None


def evaluated(path: Path, trust: bool | dict[str, str]) -> bool:
    """Whether exact.json is there, no older than the metrics (a resumed run has moved on since), and in the units of
    the table: earlier versions told scores as they are maximised."""
    from sgfn.runs.results import read_results

    run, found = sgfn.Run(path=path, trust=trust), read_results(path)
    last = run.last_row() or {"step": 0}
    scaled = "minimise" not in found and run.read_config()[1].table.transformed
    return found.get("step", -1) >= last["step"] and not scaled
