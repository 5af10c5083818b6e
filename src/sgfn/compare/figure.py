"""The figure of a comparison: one panel per noise level, a median over seeds with a band for each method."""

import math
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec

from sgfn.compare.cells import CellState
from sgfn.compare.contestants import CONTESTANTS, style_of
from sgfn.evaluation.seeds import rule
from sgfn.reports.axes import add_panel, new_figure, save, write_note, write_title
from sgfn.reports.curves import LEVELS, Curve, learning
from sgfn.reports.learning_figures import LabelledCurve, Level, draw_learning
from sgfn.reports.looks import INK, Look
from sgfn.reports.sources import number

STYLES = {name: Look(style_of(name).colour, style_of(name).line) for name in CONTESTANTS}
"""Colour by family, line by member: a method looks the same in every figure and on the page."""
ACROSS = 3
"""Panels side by side."""
FLOOR = LEVELS["tv_floor"]


def look_of_method(name: str) -> Look:
    """Colour and line of a method, in figures and on the page."""
    style = style_of(name)
    return Look(style.colour, style.line)


def draw_comparison(path: Path, states: list[CellState]) -> Path:
    """Write the figure of these cells as PNG, from their metrics."""
    return save(comparison_figure(states), path)


def comparison_figure(states: list[CellState]) -> Figure:
    """Exact distance to the target against environment calls, and the reward where a method's law is not known."""
    panels: dict[float, list[CellState]] = {}
    for state in sorted(states, key=lambda state: state.cell.alpha):
        panels.setdefault(state.cell.alpha, []).append(state)
    columns = shown(states)
    down, across = math.ceil(len(panels) / ACROSS), min(len(panels), ACROSS)
    figure = new_figure(max(4.5 * across, 6.5), 3.7 * down * len(columns) + 0.8)
    grid = figure.add_gridspec(down * len(columns), across)
    for block, column in enumerate(columns):
        _draw_block(figure, grid, block * down, list(panels.values()), column)
    ends = rule(len(drawn(group)) for group in by_method(states))
    title = f"{states[0].cell.task}: medians over seeds{f', bands: {ends}' if ends else ''}"
    figure.suptitle(title, x=0.01, ha="left", fontsize=12, color=INK, parse_math=False)
    _add_legend(figure)
    return figure


def _draw_block(figure: Figure, grid: GridSpec, top: int, panels: list[list[CellState]], column: str) -> None:
    """Draw one column of the metrics at every noise level, all panels with the same vertical axis."""
    first = None
    for place, members in enumerate(panels):
        axes = add_panel(figure, grid[top + place // ACROSS, place % ACROSS], level_with=first)
        first = first or axes
        _draw_noise_level(axes, members, column)


def shown(states: list[CellState]) -> list[str]:
    """Columns of the metrics that are drawn: distances where they are known, rewards where some are not."""
    begun = {state.cell.method for state in states if state.row}
    known = {state.cell.method for state in states if "tv" in state.row}
    return (["tv"] if known else []) + ([] if known and known == begun else ["log_reward"])


def _draw_noise_level(axes: Axes, states: list[CellState], column: str) -> None:
    write_title(axes, states[0].cell.noise)
    found = [(group[0].cell.method, curve) for group in by_method(states) if (curve := curve_of(group, column))]
    curves = [LabelledCurve(curve=curve, look=look_of_method(name), label=name, gid=name) for name, curve in found]
    if not curves:
        write_note(axes, "no metrics yet")
    draw_learning(axes, curves, _floor(states) if column == "tv" else [], column)


def _floor(states: list[CellState]) -> list[Level]:
    """The distance that no policy can go below at this noise level, where some cell knows it."""
    known = [value for state in states if (value := number(state.results.get("tv_floor"))) is not None]
    return [Level(key="tv_floor", value=known[0], label=FLOOR)] if known else []


def curve_of(states: list[CellState], column: str) -> Curve | None:
    """Median and band of a column over the seeds of one method at one noise level; None where no seed has it."""
    return learning([state.cell.run.thinned_rows() for state in drawn(states)], column)


def drawn(states: list[CellState]) -> list[CellState]:
    """Seeds that a line is made of: those that are done, or all that have begun if none is."""
    return [state for state in states if state.status == "done"] or [state for state in states if state.row]


def by_method(states: list[CellState]) -> list[list[CellState]]:
    """Cells in lists, the seeds of one method at one noise level together."""
    groups: dict[tuple[str, float], list[CellState]] = {}
    for state in states:
        groups.setdefault((state.cell.method, state.cell.alpha), []).append(state)
    return list(groups.values())


def _add_legend(figure: Figure) -> None:
    """Add one legend below all panels: every method once, ours in the order of STYLES, the floor last."""
    entries = {}
    for axes in figure.axes:
        handles, labels = axes.get_legend_handles_labels()
        entries |= {label: handle for handle, label in zip(handles, labels, strict=True) if label not in entries}
    order = [*STYLES, *(name for name in entries if name not in STYLES and name != FLOOR), FLOOR]
    names = sorted(entries, key=order.index)
    if names:
        columns = min(len(names), int(figure.get_figwidth() / 1.6))
        where = {"loc": "outside lower left", "ncols": columns, "frameon": False, "fontsize": 9, "labelcolor": INK}
        figure.legend([entries[name] for name in names], names, **where)
