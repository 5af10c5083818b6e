"""Picture of a fitted channel: rates with their intervals, and what is written for each letter."""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sgfn.design.channel import ChannelFit
from sgfn.reports.axes import add_legend, add_panel, lay_out, name_axes, new_figure, save, write_note, write_title
from sgfn.reports.looks import FLOOR, INK, OURS, TARGET

COLOURS = {"substitution": OURS, "deletion": TARGET, "insertion": FLOOR}
MOST_LETTERS = 30
"""Letters up to which a matrix has a label for each."""


def write_channel_figure(path: Path, fit: ChannelFit) -> Path:
    """Write the picture of a fitted channel."""
    return save(lay_out(channel_figure(fit)), path)


def channel_figure(fit: ChannelFit) -> Figure:
    """The rates of each kind on the left, the errors between letters on the right."""
    figure = new_figure(10.0, 3.8)
    grid = figure.add_gridspec(1, 2, width_ratios=[1.6, 1.0])
    _draw_rates(add_panel(figure, grid[0]), fit)
    _draw_letters(add_panel(figure, grid[1]), fit)
    return figure


def _draw_rates(axes: Axes, fit: ChannelFit) -> None:
    write_title(axes, f"Rates with {fit.level:.0%} intervals, {fit.pairs:,} pairs")
    shown = [rate for rate in fit.rates if ">" not in rate.of]
    places = list(dict.fromkeys(rate.of for rate in shown))
    for number, (kind, colour) in enumerate(COLOURS.items()):
        own = [rate for rate in shown if rate.kind == kind]
        x = np.array([places.index(rate.of) for rate in own]) + 0.22 * (number - 1)
        y = np.array([rate.rate for rate in own])
        bars = np.array([[rate.rate - rate.low for rate in own], [rate.high - rate.rate for rate in own]])
        axes.errorbar(x, y, yerr=bars, fmt="o", markersize=4, linewidth=1.4, color=colour, label=f"{kind}s", gid=kind)
    labels = [place or "all" for place in places]
    step = -(-len(labels) // MOST_LETTERS)
    axes.set_xticks(range(0, len(labels), step), labels[::step])
    axes.set_ylim(bottom=0.0)
    name_axes(axes, {"letter": "letter", "position": "position"}.get(fit.model, ""), "rate per base")
    add_legend(axes, columns=3)


def _draw_letters(axes: Axes, fit: ChannelFit) -> None:
    """Draw how often each other letter is written, of each letter intended."""
    write_title(axes, "Wrong letters that are written")
    law = fit.noise.tables()[0].mean(0).numpy().copy()
    np.fill_diagonal(law, np.nan)
    axes.grid(visible=False)
    if not np.nansum(law):
        write_note(axes, "no letter was replaced")
    drawn = axes.imshow(law, cmap="Blues", vmin=0.0)
    if len(fit.alphabet) <= 5:
        for (row, column), value in np.ndenumerate(law):
            shade = "white" if value > 0.6 * np.nanmax(law) else INK
            if np.isfinite(value):
                axes.text(column, row, f"{value:.2g}", ha="center", va="center", fontsize=8, color=shade)
    elif axes.figure is not None:
        axes.get_figure().colorbar(drawn, ax=axes, shrink=0.8)  # pyright: ignore[reportOptionalMemberAccess]
    ticks = range(len(fit.alphabet))
    axes.set_xticks(ticks, list(fit.alphabet))
    axes.set_yticks(ticks, list(fit.alphabet))
    name_axes(axes, "realised", "intended")
