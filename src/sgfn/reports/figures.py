"""The figure of run folders: a row of panels for each run, from its files only."""

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import SubplotSpec

from sgfn.reports.axes import (
    add_legend,
    add_panel,
    ending,
    lay_out,
    name_axes,
    new_figure,
    save,
    write_note,
    write_title,
)
from sgfn.reports.curves import LEVELS, learning, scores_of
from sgfn.reports.learning_figures import LabelledCurve, Level, draw_learning, draw_scores
from sgfn.reports.looks import OURS, look_of
from sgfn.reports.sources import Source, number, read_source
from sgfn.reports.training_figures import (
    draw_entropies,
    draw_entropy_terms,
    draw_loss,
    draw_ratio,
    draw_visits,
    entropies_title,
    entropy_terms_title,
    ratio_title,
)
from sgfn.runs.trust import Trust


def report(runs: list[Path], out: Path | None = None, *, trust: Trust = False) -> Path:
    """Write the figure of these runs, by default report.png in the first folder, and return its path.

    Each run has a row: loss, scores of samples against the target, distance to the target with the floor. A run that
    measured its entropy gets a second row: entropies, entropy ratio, policy KL with dynamics balance.
    """
    figure = lay_out(draw(runs, trust))
    return save(figure, Path(runs[0]) / "report.png" if out is None else out)


def draw(runs: list[Path], trust: Trust = False) -> Figure:
    """The figure of these runs, not yet laid out."""
    if not runs:
        raise ValueError("name at least one run folder")
    sources = [read_source(Path(path), trust) for path in runs]
    lines = sum(2 if source.watched else 1 for source in sources)
    figure = new_figure(13.5, 3.9 * lines + 0.3)
    grid = figure.add_gridspec(lines, 3)
    cells = iter([[grid[line, column] for column in range(3)] for line in range(lines)])
    for source in sources:
        prefix = f"{source.name}: " if len(runs) > 1 else ""
        _draw_run(figure, next(cells), source, prefix)
        if source.watched:
            _draw_entropy_row(figure, next(cells), source, prefix)
    return figure


def _draw_run(figure: Figure, cells: list[SubplotSpec], source: Source, prefix: str) -> None:
    loss, scores, distance = (add_panel(figure, cell) for cell in cells)
    write_title(loss, prefix + source.title)
    draw_loss(loss, source)
    _draw_scores_of_run(scores, source)
    _draw_distance(distance, source)


def _draw_scores_of_run(axes: Axes, source: Source) -> None:
    write_title(axes, "Scores of what comes out")
    found = scores_of(source.results)
    if found is None:
        name_axes(axes, "score", "share of objects")
        write_note(axes, "run `sgfn evaluate` for this panel")
        return
    draw_scores(axes, found, OURS, {"samples": f"{source.results['samples']:,} samples", "law": "policy, exact law"})
    add_legend(axes, columns=2)


def _draw_distance(axes: Axes, source: Source) -> None:
    """Draw the exact distance over steps, or the reward where nothing could be enumerated or nobody asked for it."""
    column = "tv" if any("tv" in row for row in source.rows) else "log_reward"
    title = "Distance to the target, exact" if column == "tv" else "Reward while training (no exact evaluations)"
    write_title(axes, title)
    curve = learning([source.rows], column, x="step")
    if curve is None:
        write_note(axes, "no finite values")
        return
    label = f"policy {ending(float(curve.middle[-1]))}"
    levels = levels_of(source.results) if column == "tv" else []
    draw_learning(axes, [LabelledCurve(curve=curve, look=look_of(0), label=label, gid=column)], levels, column, "step")
    if column == "tv":
        add_legend(axes, columns=2)


def levels_of(results: dict[str, object]) -> list[Level]:
    """The levels that exact.json holds, each with its value in its label."""
    known = [(key, label, number(results.get(key))) for key, label in LEVELS.items()]
    return [Level(key=key, value=v, label=f"{label} {v:.3f}") for key, label, v in known if v is not None]


def _draw_entropy_row(figure: Figure, cells: list[SubplotSpec], source: Source, prefix: str) -> None:
    entropies, terms = add_panel(figure, cells[0]), add_panel(figure, cells[2])
    title = entropies_title(source.config.entropy)
    write_title(entropies, f"{prefix}{title[0].lower()}{title[1:]}" if prefix else title)
    draw_entropies(entropies, source.watched, source.config.entropy)
    halves = cells[1].subgridspec(2, 1, height_ratios=(5, 1))
    ratio = draw_ratio_and_visits(figure, halves[0], halves[1], source)
    write_title(ratio, ratio_title(source.config))
    write_title(terms, entropy_terms_title(source.config))
    draw_entropy_terms(terms, source.watched)


def draw_ratio_and_visits(figure: Figure, upper: SubplotSpec, lower: SubplotSpec, source: Source) -> Axes:
    """Draw the entropy ratio, and in a strip below it the weight of each visited state; returns the upper axes."""
    ratio = add_panel(figure, upper)
    draw_ratio(ratio, source.watched, source.config)
    draw_visits(add_panel(figure, lower, above=ratio), source.watched)
    return ratio
