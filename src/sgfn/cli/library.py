"""`sgfn design library` on the command line: parsing and printing only."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal

from tyro.conf import Positional, arg

from sgfn.cli.streams import Output
from sgfn.cli.tables import out, print_aligned, print_json
from sgfn.config.files import nulls

TABLE = ("sequence_column", "score_column", "sd_column", "transform", "minimise", "proxy", "alphabet")
"""Flags that are settings of the table, and of its proxy."""
HERE = ("source", "template", "positions", "out", "page", "json", *TABLE)
"""Flags that are not passed on as they are."""


@dataclass(frozen=True, kw_only=True)
class DesignLibrary:
    """Choose degenerate codons for the sites of a protein, from a table of measurements or a task; writes a sheet."""

    source: Annotated[Positional[str], arg(metavar="TABLE|TASK")]
    """Table of proteins and scores, or a task of proteins such as gb1."""
    template: str | None = None
    """Coding DNA in frame: a file (plain text or FASTA), or the letters themselves."""
    positions: str | None = None
    """Residues of the template to vary, from 1, like 39,40,41,54; without a template all sites of the table."""
    left_flank: str = ""
    """DNA before the template that stays as it is."""
    right_flank: str = ""
    """DNA behind the template that stays as it is."""
    goal: Literal["mean", "best"] = "mean"
    """mean: highest expected score of a clone; best: highest expected best score of --clones."""
    clones: int = 96
    """Clones that will be measured."""
    size: float | None = None
    """Least effective size, exp(entropy) of what comes out; by default as many as clones."""
    no_stop: float = 0.0
    """Least probability that a clone has no stop."""
    libraries: int = 1
    """From 2 on: so many libraries as the pool nearest to the target, proportional to R^beta."""
    beta: float = 3.0
    """Exponent of that target."""
    percent: int | None = None
    """Mix nucleotides in multiples of this percentage; by default letters of IUPAC in equal shares."""
    bias: Path | None = None
    """Table of what the supplier makes of letters: columns letter, A, C, G, T."""
    codons: tuple[str, ...] = ()
    """Codons to choose from; by default all 3,375 of IUPAC."""
    compare: tuple[str, ...] = ("NNK", "NNS", "NNB", "NDT", "22c")
    """Libraries told beside it: names, one codon for all sites, or codons with commas between them."""
    starts: int = 32
    """Starts of a search."""
    flow: int = 0
    """Train a flow network over codons too, for so many steps; 500 take half a minute."""
    stop_score: float | None = None
    """Score of a clone with a stop; by default the worst of the table, 0 for a task."""
    unseen: Literal["proxy", "lowest"] = "proxy"
    """What an unmeasured protein scores: by a proxy fitted to the table, or the worst score."""
    sequence_column: str | None = None
    """Column of the proteins; by default `sequence`."""
    score_column: str | None = None
    """Column of the scores; by default `score`."""
    sd_column: str | None = None
    """Column of the scores' standard deviations, where there is one."""
    transform: Literal["none", "log", "rank"] | None = None
    """Fit the proxy to logarithms or ranks of the scores."""
    minimise: bool = False
    """Low scores are good."""
    alphabet: Literal["protein"] | None = None
    """Say that letters are residues, of a table that has none but A, C, G and T."""
    proxy: str | None = None
    """Kind of the proxy; `auto`, the default, chooses by cross-validation."""
    out: Path = Path("library.csv")
    """Order sheet."""
    page: Path | None = None
    """Page with pictures, where a file is named."""
    overwrite: bool = False
    """Replace files that are there."""
    json: bool = False
    """Print JSON."""
    seed: int = 0
    """Seed of everything random."""


def run_library(args: DesignLibrary) -> None:
    """`sgfn design library`."""
    from sgfn.config.files import check_target, check_writable, resolved  # what follows is slow to import
    from sgfn.config.sequence_files import read_sequence
    from sgfn.design.libraries import design_library
    from sgfn.design.libraries.template import parse_positions

    if args.page is not None:
        check_target(args.page, overwrite=args.overwrite, flag="--page")
        check_writable(args.page)
        if resolved(args.page) == resolved(args.out):
            raise ValueError(f"--out and --page both name {args.page}: give one of them another name")
    table = {name: value for name in TABLE if (value := getattr(args, name)) not in (None, False)}
    passed = {part.name: getattr(args, part.name) for part in fields(args) if part.name not in HERE}
    found = design_library(
        args.source,
        template=None if args.template is None else read_sequence(args.template, "--template"),
        positions=None if args.positions is None else parse_positions(args.positions),
        out=args.out,
        table=table,
        **passed,
    )
    err = Output(stderr=True)
    for notice in found.notices:
        err.print(notice, soft_wrap=True)
    if args.page is not None:
        from sgfn.reports.pages.library import write_library_page

        write_library_page(args.page, found)
    if args.json:
        page = None if args.page is None else str(args.page)
        return print_json(nulls(found.to_json() | {"file": str(args.out), "page": page}))
    print_design(found)
    return out.print(f"order sheet in {args.out}" + (f", page in {args.page}" if args.page else ""), soft_wrap=True)


def print_design(found: Any) -> None:
    """Print the libraries, those to compare with, and where the searches ended."""
    clones = found.config.clones
    heads = ("library", "share", "expect", "no stop", "size", f"best of {clones}", "clones for 95 %", "codons")
    shares = [f"{share:.0%}" for share in found.shares]
    named = [f"library {number}" for number in range(1, len(found.values) + 1)]
    rows = [_row(*row) for row in zip(named, shares, found.values, strict=True)]
    rows += [_row(value.name, "-", value) for value in found.compared]
    print_aligned(heads, rows)
    if found.pool is not None:
        pool = found.pool
        figures = f"expect {pool.expected:.4g}, no stop {pool.no_stop:.1%}, size {pool.size:.4g}"
        out.print(f"pooled: {figures}, best of {clones} {pool.best:.4g}", soft_wrap=True)
        away = f"KL {found.divergence:.4g} nats from the target, total variation {found.distance:.3g}"
        out.print(f"{away}; least KL found for {len(found.values)} libraries {found.floor:.4g}", soft_wrap=True)
    if found.stepwise is not None:
        seen = "a flow network that sees each residue before the next codon"
        out.print(f"{seen}: KL {found.stepwise:.4g}, which no order can do", soft_wrap=True)
    goal = "KL" if found.pool is not None else "value"
    for one in found.searches:
        ended = f"{goal} {one.value:.4g}, {one.hits} of {one.starts} starts, {one.seconds:.1f} s"
        out.print(f"{one.how}: {ended}", soft_wrap=True)
    how = "exact" if found.values[0].exact else "best of clones from draws, with standard errors in the sheet"
    out.print(f"figures are {how}", soft_wrap=True)
    if found.proxy is not None:
        from sgfn.design.designer import WEAK  # torch is slow to import

        facts = found.proxy
        out.print(f"by a proxy ({facts['kind']}), rank correlation {facts['spearman']:.2f} (cross-validation)")
        if facts["spearman"] < WEAK:
            doubt = "the proxy knows little: what it promises may not come, measure more before you order"
            Output(stderr=True).print(doubt, soft_wrap=True)


def _row(name: str, share: str, value: Any) -> tuple[str, ...]:
    figures = (f"{value.expected:.4g}", f"{value.no_stop:.1%}", f"{value.size:.4g}", f"{value.best:.4g}")
    codons = value.codons[:1] if len({*value.codons}) == 1 else value.codons
    return (name, share, *figures, f"{value.screened:,.0f}", " ".join(codons))
