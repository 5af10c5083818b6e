"""The picture of a comparison: one panel per noise level, a median over seeds with a band for each method."""

import math
from pathlib import Path

import numpy as np
from jaxtyping import Float
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from sgfn.compare.cells import CellState
from sgfn.compare.contestants import CONTESTANTS, label_of, style_of
from sgfn.config.files import replacing
from sgfn.evaluation.seeds import low_middle_high, rule
from sgfn.reports.figures import FLOOR, INK, MUTED, NICE

STYLES = {name: (style_of(name).colour, style_of(name).line) for name in CONTESTANTS}
"""Colour by family, line by member: a method looks the same in every figure."""
LABELS = {"tv": "total variation to the target", "log_reward": "mean log-reward of a batch"}
ACROSS = 3  # panels side by side


def draw_comparison(path: Path, states: list[CellState]) -> Path:
    """Draw what the cells' metrics say."""
    figure = comparison_figure(states)
    with replacing(path) as aside:
        figure.savefig(aside, dpi="figure", format="png")
    return path


def comparison_figure(states: list[CellState]) -> Figure:
    """Exact distance to the target against environment calls, and the reward where a method's law is not known."""
    panels: dict[float, list[CellState]] = {}
    for state in sorted(states, key=lambda state: state.cell.alpha):
        panels.setdefault(state.cell.alpha, []).append(state)
    keys = shown(states)
    down, across = math.ceil(len(panels) / ACROSS), min(len(panels), ACROSS)
    size = (max(4.5 * across, 6.5), 3.7 * down * len(keys) + 0.8)
    figure = Figure(figsize=size, dpi=130, layout=ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08), facecolor="white")
    FigureCanvasAgg(figure)
    grid = figure.add_gridspec(down * len(keys), across)
    for block, key in enumerate(keys):
        first = None
        for place, members in enumerate(panels.values()):
            cell = grid[block * down + place // across, place % across]
            axis = figure.add_subplot(cell, sharey=first)
            first = first or axis
            _draw_panel(axis, members, key)
    ends = rule(len(drawn(group)) for group in by_method(states))
    title = f"{states[0].cell.task}: medians over seeds{f', bands: {ends}' if ends else ''}"
    figure.suptitle(title, x=0.01, ha="left", fontsize=12, color=INK, parse_math=False)
    _legend(figure)
    return figure


def shown(states: list[CellState]) -> list[str]:
    """What is drawn: distances where they are known, rewards where some are not."""
    begun = {state.cell.method for state in states if state.row}
    known = {state.cell.method for state in states if "tv" in state.row}
    return (["tv"] if known else []) + ([] if known and known == begun else ["log_reward"])


def _draw_panel(axis: Axes, states: list[CellState], key: str) -> None:
    axis.spines[["top", "right"]].set_visible(False)
    axis.tick_params(colors=INK, labelsize=9)
    axis.grid(axis="y", color="#e4e7eb", linewidth=0.8)
    axis.set_title(states[0].cell.noise, loc="left", fontsize=11, color=INK)
    axis.set_xlabel("environment calls", color=INK, fontsize=10)
    axis.set_ylabel(LABELS[key], color=INK, fontsize=10)
    axis.xaxis.set_major_locator(ticker.MaxNLocator(5, steps=NICE))
    axis.xaxis.set_major_formatter(ticker.EngFormatter(sep=""))
    for group in by_method(states):
        _draw_method(axis, group[0].cell.method, group, key)
    if not axis.lines:
        axis.text(0.5, 0.5, "no metrics yet", ha="center", transform=axis.transAxes, color=MUTED, fontsize=10)
    if key == "tv":
        _draw_floor(axis, states)
        axis.set_ylim(bottom=0)
    axis.set_xlim(left=0)


def _draw_method(axis: Axes, method: str, states: list[CellState], key: str) -> None:
    calls, (low, median, high) = curve(states, key)
    if not calls:
        return
    style = style_of(method)
    colour, line = style.colour, style.line
    marker = "o" if len(calls) == 1 else ""
    axis.fill_between(calls, low, high, color=colour, alpha=0.15, linewidth=0)
    label = label_of(method)
    axis.plot(calls, median, color=colour, linestyle=line, linewidth=1.8, marker=marker, gid=method, label=label)


def _draw_floor(axis: Axes, states: list[CellState]) -> None:
    known = [state.results["tv_floor"] for state in states if state.results.get("tv_floor") is not None]
    if known:
        axis.axhline(known[0], color=FLOOR, linestyle="--", linewidth=1.4, zorder=1.5, label="best reachable")


def curve(states: list[CellState], key: str) -> tuple[list[int], Float[np.ndarray, "3 N"]]:
    """Low end, median and high end of a figure over seeds, where all of them have it."""
    series = [{r["trajectories"]: r[key] for r in state.cell.run.rows() if key in r} for state in drawn(states)]
    calls = sorted(set.intersection(*map(set, series))) if series else []
    values = np.array([[one[x] for x in calls] for one in series], dtype=float).reshape(len(series), len(calls))
    return calls, low_middle_high(values) if calls else np.empty((3, 0))


def drawn(states: list[CellState]) -> list[CellState]:
    """Seeds that a line is made of: those that are done, or all that have begun if none is."""
    return [state for state in states if state.status == "done"] or [state for state in states if state.row]


def by_method(states: list[CellState]) -> list[list[CellState]]:
    """Seeds of one method at one noise level together."""
    groups: dict[tuple[str, float], list[CellState]] = {}
    for state in states:
        groups.setdefault((state.cell.method, state.cell.alpha), []).append(state)
    return list(groups.values())


def _legend(figure: Figure) -> None:
    """Every line once, below all panels, the floor last."""
    entries = {}
    for axis in figure.axes:
        handles, labels = axis.get_legend_handles_labels()
        entries |= {label: handle for handle, label in zip(handles, labels, strict=True) if label not in entries}
    names = sorted(entries, key=_place)
    if names:
        columns = min(len(names), int(figure.get_figwidth() / 1.6))
        where = {"loc": "outside lower left", "ncols": columns, "frameon": False, "fontsize": 9}
        figure.legend([entries[name] for name in names], names, **where)


def _place(name: str) -> int:
    order = [*map(label_of, STYLES)]
    return order.index(name) if name in order else len(order) + (name == "best reachable")
