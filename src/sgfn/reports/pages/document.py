"""The page as a whole: head, contents, sections, and the policy that keeps it to itself."""

import base64
import hashlib
from importlib.resources import files
from pathlib import Path
from xml.etree.ElementTree import Element

from sgfn.config import VERSION
from sgfn.config.files import write_text
from sgfn.reports.pages.entries import Entry, Group, grouped
from sgfn.reports.pages.markup import serialise, tag
from sgfn.reports.pages.sections import Section, sections
from sgfn.reports.sources import Source, read_source


def write_page(out: Path, title: str, entries: list[Entry], note: str = "") -> Path:
    """One HTML file with everything inside; entries are grouped by noise, seeds of a label are taken together."""
    if not entries:
        raise ValueError("a page needs at least one run: name a run folder")
    write_text(out, "<!DOCTYPE html>\n" + serialise(document(title, entries, note)) + "\n")
    return out


def report_html(runs: list[Path], out: Path | None = None) -> Path:
    """A page about runs, by default report.html in the first folder; several are told apart by their folders' names."""
    if not runs:
        raise ValueError("name at least one run folder")
    sources = [read_source(path) for path in {Path(run).resolve(): Path(run) for run in runs}.values()]
    labels = [sources[0].objective] if len(sources) == 1 else folder_labels([source.path for source in sources])
    entries = [
        Entry(label=label, source=source, noise=source.noise, seed=source.config.seed)
        for label, source in zip(labels, sources, strict=True)
    ]
    title = sources[0].title if len(sources) == 1 else f"{_tasks(sources)}: {len(sources)} runs"
    return write_page(Path(runs[0]) / "report.html" if out is None else out, title, entries)


def folder_labels(paths: list[Path]) -> list[str]:
    """Names of different folders, with as many parents as it takes to tell them apart."""
    parts = [path.resolve().parts for path in paths]
    labels: list[str] = []
    for depth in range(1, max(map(len, parts)) + 1):
        labels = ["/".join(part[-depth:]) for part in parts]
        if len(set(labels)) == len(labels):
            break
    return labels


def document(title: str, entries: list[Entry], note: str = "") -> Element:
    """The tree of the page."""
    groups = grouped(entries)
    return shell(title, [outline_of(groups, entries), note], sections(groups, entries))


def shell(title: str, lead: list[str], parts: list[Section]) -> Element:
    """A page around its sections, with a line or two below the title."""
    links = [tag("a", part.title, href=f"#{part.key}") for part in parts]
    top = tag("div", tag("h1", title), tag("button", "Dark", type="button", id="theme"), class_="top")
    kinds = ["lead"] + ["note"] * (len(lead) - 1)
    lines = [tag("p", text, class_=kind) for text, kind in zip(lead, kinds, strict=True) if text or kind == "lead"]
    header = tag("header", top, lines, tag("nav", links, aria_label="Contents"))
    footer = tag("footer", tag("p", f"Written by sgfn {VERSION} from the files of the run folders."))
    script = _read("page.js")
    body = tag("body", header, tag("main", [part.draw() for part in parts]), footer, tag("script", script))
    return tag("html", _head(title, _read("page.css"), script), body, lang="en")


def outline_of(groups: list[Group], entries: list[Entry]) -> str:
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
    known = {source.config.beta for source in sources}
    if not known or known == {None}:
        return "the task\N{RIGHT SINGLE QUOTATION MARK}s own reward exponent" if known else ""
    return "reward exponent " + ", ".join("own" if beta is None else f"{beta:g}" for beta in sorted(known, key=str))


def _head(title: str, css: str, script: str) -> Element:
    """Nothing is fetched, and no other style or script than these two is heeded."""
    policy = f"default-src 'none'; style-src '{_digest(css)}'; script-src '{_digest(script)}'; img-src data:"
    policy += "; base-uri 'none'; form-action 'none'"
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        tag("link", rel="icon", href="data:,"),
        tag("style", css),
    )


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _read(name: str) -> str:
    return files("sgfn.reports.pages").joinpath(name).read_text(encoding="utf-8")
