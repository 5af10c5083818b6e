"""The figure of run folders: a row of panels for each run, from its files only."""

import math
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
from sgfn.reports.run_panels import Panel, run_panels
from sgfn.reports.sources import Source, number, read_source
from sgfn.reports.training_figures import draw_loss
from sgfn.runs.trust import Trust

WIDTH = 3
"""Panels beside each other."""


def report(runs: list[Path], out: Path | None = None, *, trust: Trust = False) -> Path:
    """Write the figure of these runs, by default report.png in the first folder, and return its path.

    Each run has a row: loss, scores of samples against the target, distance to the target with the floor. Below it are
    the panels of `run_panels`: what its loss is made of, its noise model, its entropy, as far as its files have them.
    """
    figure = lay_out(draw(runs, trust))
    return save(figure, Path(runs[0]) / "report.png" if out is None else out)


def draw(runs: list[Path], trust: Trust = False) -> Figure:
    """The figure of these runs, not yet laid out."""
    if not runs:
        raise ValueError("name at least one run folder")
    sources = [read_source(Path(path), trust) for path in runs]
    below = [run_panels(source) for source in sources]
    lines = sum(1 + math.ceil(len(panels) / WIDTH) for panels in below)
    figure = new_figure(13.5, 3.9 * lines + 0.3)
    grid = figure.add_gridspec(lines, WIDTH)
    cells = iter([[grid[line, column] for column in range(WIDTH)] for line in range(lines)])
    for source, panels in zip(sources, below, strict=True):
        prefix = f"{source.name}: " if len(runs) > 1 else ""
        _draw_run(figure, next(cells), source, prefix)
        for start in range(0, len(panels), WIDTH):
            _draw_panels(figure, next(cells), panels[start : start + WIDTH], prefix)
    return figure


def _draw_panels(figure: Figure, cells: list[SubplotSpec], panels: list[Panel], prefix: str) -> None:
    """One row of panels; the first is told the run's name where there are several runs."""
    for at, (cell, panel) in enumerate(zip(cells, panels, strict=False)):
        axes, title = add_panel(figure, cell), panel.title
        write_title(axes, f"{prefix}{title[0].lower()}{title[1:]}" if prefix and at == 0 else title)
        panel.draw(axes)


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
