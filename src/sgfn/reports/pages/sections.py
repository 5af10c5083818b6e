"""Sections of a page about runs: what each of them shows, for the templates to write."""

from dataclasses import dataclass

from sgfn.config.files import resolved
from sgfn.config.names import BLIND
from sgfn.evaluation.seeds import rule
from sgfn.reports.looks import Look
from sgfn.reports.numbers import DASH, plain
from sgfn.reports.pages.designs import logo_section, mode_section, order_section
from sgfn.reports.pages.drawings import (
    columns_drawn,
    learning_drawing,
    loss_drawing,
    panel_drawing,
    score_drawings,
)
from sgfn.reports.pages.entries import Entry, Group, Line
from sgfn.reports.pages.parts import CaptionedDrawing, DrawingGroup, Section, heading
from sgfn.reports.pages.table import repeated, summary_table
from sgfn.reports.run_panels import run_panels
from sgfn.reports.sources import number

TRAINED_RUNS = 12
"""Runs whose loss is drawn at most."""


def sections(groups: list[Group], entries: list[Entry]) -> list[Section]:
    """All sections that have something to show."""
    found = [_summary(groups), _failures(entries), _learning(groups), _training(groups), _scores(groups)]
    found += [logo_section(groups), mode_section(groups), order_section(groups), _runs(groups)]
    return [section for section in found if section is not None]


def _summary(groups: list[Group]) -> Section:
    ends = rule(len(line.evaluated) for group in groups for line in group.lines)
    about = f"Medians over seeds; in small type beneath them: {ends}. " if ends else ""
    about += "Columns are explained below the table. "
    if any(len(group.lines) > 1 for group in groups):
        about += "The best value of each group is marked; press a column\N{RIGHT SINGLE QUOTATION MARK}s name to sort."
    return Section(key="summary", title="Summary", about=about, template="summary", content=summary_table(groups))


def _failures(entries: list[Entry]) -> Section | None:
    failed = [entry for entry in entries if entry.error]
    if not failed:
        return None
    about = "Left out of all medians."
    return Section(key="failed", title="Failed runs", about=about, template="failures", content=failed)


# Learning curves


@dataclass(frozen=True, kw_only=True)
class Toggle:
    """A button that hides or shows one label in all learning curves."""

    series: int
    label: str
    look: Look


@dataclass(frozen=True, kw_only=True)
class LearningCurves:
    """A figure per group and column, and the buttons above them."""

    toggles: list[Toggle]
    figures: list[CaptionedDrawing]


def _learning(groups: list[Group]) -> Section | None:
    figures = []
    for at, group in enumerate(groups):
        for column in columns_drawn(group):
            found = learning_drawing(group, column, f"curves-{at}-{column}")
            figures += [CaptionedDrawing(caption=group.name, drawing=found)] if found is not None else []
    if not figures:
        return None
    lines = {line.series: line for group in groups for line in group.lines if line.sources}
    toggles = [Toggle(series=at, label=line.label, look=line.look) for at, line in sorted(lines.items())]
    content = LearningCurves(toggles=toggles, figures=figures)
    title = "Learning curves"
    return Section(key="curves", title=title, about=_about_learning(groups), template="curves", content=content)


def _about_learning(groups: list[Group]) -> str:
    distance = (
        "Total variation between the exact law of what comes out and the target, over trajectories drawn from the "
        "environment: lower is better. Best reachable is the law nearest to the target that the noise allows a policy. "
        f"Ignoring the noise is {BLIND}."
    )
    sources = [source for group in groups for line in group.lines for source in line.evaluated]
    if not all(source.results.get("bound_by_floor", True) for source in sources):
        distance += " Chains look at what came out before they accept, and are not bound by it."
    reward = "Where the exact distance is not known: mean log-reward of the batches while training."
    kinds = {column for group in groups for column in columns_drawn(group)}
    about = " ".join(text for kind, text in (("tv", distance), ("log_reward", reward)) if kind in kinds)
    ends = rule(len(line.sources) for group in groups for line in group.lines)
    return about + (f" Lines are medians over seeds; bands: {ends}." if ends else "")


# Training of single runs


def _training(groups: list[Group]) -> Section | None:
    """Loss and entropy of each run; left out where rows stand for several runs, as there would be too many."""
    lines = [line for group in groups for line in group.lines if any("loss" in s.rows[-1] for s in line.sources)]
    if repeated(groups) or not lines:
        return None
    figures = [figure for line in lines[:TRAINED_RUNS] for figure in _training_figures(line)]
    about = "What the optimiser saw, over steps."
    told = [f"{line.label}: {words}" for line in lines[:TRAINED_RUNS] if (words := line.sources[0].loss_words)]
    about += f" {'. '.join(told)}." if told else ""
    if any("Entropy" in figure.caption for figure in figures):
        about += " Entropies are those of the policy at visited states, over the largest possible."
    if len(lines) > TRAINED_RUNS:
        about += f" The first {TRAINED_RUNS} of {len(lines)} runs."
    content = [DrawingGroup(heading="", layout="pair", size="medium", figures=figures)]
    return Section(key="training", title="Training", about=about, template="figures", content=content)


def _training_figures(line: Line) -> list[CaptionedDrawing]:
    (source, *_), label = line.sources, line.label
    drawn = [CaptionedDrawing(caption=f"{label}: loss", drawing=loss_drawing(label, source, f"loss-{line.series}"))]
    for at, panel in enumerate(run_panels(source)):
        found = panel_drawing(label, panel, f"panel-{line.series}-{at}")
        drawn.append(CaptionedDrawing(caption=f"{label}: {panel.title}", drawing=found))
    return drawn


# Scores


@dataclass(frozen=True, kw_only=True)
class ScoreFigures:
    """A figure per label, in groups, and whether the exact law and the target are among what is drawn."""

    exact: bool
    groups: list[DrawingGroup]


def _scores(groups: list[Group]) -> Section | None:
    found = []
    for at, group in enumerate(groups):
        drawn = score_drawings(group, f"scores-{at}")
        figures = [CaptionedDrawing(caption=line.label, drawing=one) for line, one in drawn]
        layout = "many few" if len(figures) < 3 else "many"
        if figures:
            found.append(DrawingGroup(heading=heading(group, groups), layout=layout, size="small", figures=figures))
    if not found:
        return None
    about = f"How the scores of what comes out are distributed{', means over seeds' * repeated(groups)}. "
    exact = any(one.law is not None for group in groups for line in group.lines for one in line.scores)
    if exact:
        about += "The nearer the line keeps to the edge of the grey, the better."
    else:
        about += "These are samples; the target\N{RIGHT SINGLE QUOTATION MARK}s own distribution is not known here."
    content = ScoreFigures(exact=exact, groups=found)
    return Section(key="scores", title="Scores of what comes out", about=about, template="scores", content=content)


# Run folders


@dataclass(frozen=True, kw_only=True)
class RunRow:
    """One run folder in the last table."""

    label: str
    look: Look
    group: str
    seed: int
    step: str
    distance: str
    folder: str
    """Name of the folder; empty where there is none."""
    state: str = ""
    """Why there is no folder."""


def _runs(groups: list[Group]) -> Section:
    rows = [_run(entry, line, group) for group in groups for line in group.lines for entry in line.entries]
    about = "The run folders that this page was made of."
    return Section(key="runs", title="Runs", about=about, template="runs", content=rows)


def _run(entry: Entry, line: Line, group: Group) -> RunRow:
    source = entry.source
    about = {"label": entry.label, "look": line.look, "group": group.name, "seed": entry.seed}
    if source is None:
        state = "failed" if entry.error else "not begun"
        return RunRow(**about, step=DASH, distance=DASH, folder="", state=state)
    tv = number(source.results.get("tv"))
    step = f"{source.rows[-1]['step']:,} of {source.config.steps:,}"
    return RunRow(**about, step=step, distance=DASH if tv is None else plain(tv, 4), folder=resolved(source.path).name)
