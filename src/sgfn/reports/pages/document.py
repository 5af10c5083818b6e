"""Pages about runs: one HTML file of a report or a comparison."""

from pathlib import Path

from sgfn.config.files import resolved, write_text
from sgfn.reports.pages.entries import Entry, Group, grouped
from sgfn.reports.pages.rendering import render
from sgfn.reports.pages.sections import sections
from sgfn.reports.sources import Source, read_source
from sgfn.runs.trust import Trust


def write_page(out: Path, title: str, entries: list[Entry], note: str = "") -> Path:
    """Write one HTML file with everything inside; entries are grouped by noise, seeds of a label taken together."""
    if not entries:
        raise ValueError("a page needs at least one run: name a run folder")
    groups = grouped(entries)
    values = {"title": title, "lead": summary_line(groups, entries), "note": note}
    write_text(out, render("page.html.j2", **values, sections=sections(groups, entries)))
    return out


def report_html(runs: list[Path], out: Path | None = None, *, trust: Trust = False) -> Path:
    """Write a page about runs, by default report.html in the first folder; labels are the folders' names."""
    if not runs:
        raise ValueError("name at least one run folder")
    sources = [read_source(path, trust) for path in {resolved(Path(run)): Path(run) for run in runs}.values()]
    labels = [sources[0].objective] if len(sources) == 1 else folder_labels([source.path for source in sources])
    entries = [
        Entry(label=label, source=source, noise=source.noise, seed=source.config.seed)
        for label, source in zip(labels, sources, strict=True)
    ]
    title = sources[0].title if len(sources) == 1 else f"{_tasks(sources)}: {len(sources)} runs"
    return write_page(Path(runs[0]) / "report.html" if out is None else out, title, entries)


def folder_labels(paths: list[Path]) -> list[str]:
    """Names of different folders, with as many parents as it takes to tell them apart."""
    parts = [resolved(path).parts for path in paths]
    labels: list[str] = []
    for depth in range(1, max(map(len, parts)) + 1):
        labels = ["/".join(part[-depth:]) for part in parts]
        if len(set(labels)) == len(labels):
            break
    return labels


def summary_line(groups: list[Group], entries: list[Entry]) -> str:
    """Task, noise, seeds, budget and exponent in one line."""
    sources = [entry.source for entry in entries if entry.source is not None]
    noises = dict.fromkeys(line.entries[0].noise for group in groups for line in group.lines)
    seeds = sorted({entry.seed for entry in entries})
    some = f"{len(seeds)} seeds" if len(seeds) > 6 else f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}"
    parts = [_tasks(sources), ", ".join(noises), some]
    calls = max((source.rows[-1].get("trajectories", 0) for source in sources), default=0)
    parts += [f"{calls:,} environment calls" if calls else "", _betas(sources)]
    return " \N{MIDDLE DOT} ".join(filter(None, parts))


def _tasks(sources: list[Source]) -> str:
    *most, last = dict.fromkeys(source.task for source in sources) or [""]
    return f"{', '.join(most)} and {last}" if most else last


def _betas(sources: list[Source]) -> str:
    aims = {source.config.aim for source in sources if source.config.aim is not None}
    if aims:
        wanted = ", ".join("automatic" if aim == "auto" else f"{aim:g}" for aim in sorted(aims, key=str))
        return f"reward exponent found while training, aim {wanted}"
    known = {source.config.beta for source in sources}
    if not known or known == {None}:
        return "the task\N{RIGHT SINGLE QUOTATION MARK}s own reward exponent" if known else ""
    return "reward exponent " + ", ".join("own" if beta is None else f"{beta:g}" for beta in sorted(known, key=str))
