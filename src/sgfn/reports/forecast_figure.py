"""Pictures of forecasts, from their tables alone: a fan chart per series, and how well quantiles keep their word."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import dates as mdates
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from sgfn.config.files import replacing
from sgfn.evaluation.metrics.forecast import calibration
from sgfn.reports.figures import FLOOR, INK, MUTED, OURS, TARGET
from sgfn.series.backtest import level_name, levels_in

OUR_METHOD = "sgfn"
STYLES = {OUR_METHOD: (OURS, "-", "o"), "seasonal naive": (TARGET, "--", "s"), "AutoETS": (FLOOR, "-.", "^")}
OTHER = (MUTED, ":", "D")
SHOWN_WINDOWS = 3
"""Backtest windows in a fan chart, the newest."""
SHOWN_PATHS = 5
CLOSE, USUAL = 1.5, 0.9
"""A line joins values no further apart than so many times a gap that this share of gaps do not exceed."""


def save(figure: Figure, path: Path) -> Path:
    """A PNG, whole or absent."""
    with replacing(path) as aside:
        figure.savefig(aside, dpi="figure", format="png")
    return path


def new_figure(width: float, height: float) -> Figure:
    """An empty picture."""
    layout = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08)
    figure = Figure(figsize=(width, height), dpi=130, layout=layout, facecolor="white")
    FigureCanvasAgg(figure)
    return figure


# Fan charts


def fan_chart(
    name: str, history: pd.DataFrame, forecast: pd.DataFrame, backtest: pd.DataFrame, paths: pd.DataFrame | None = None
) -> Figure:
    """One series: what was seen, what would have been said of the last windows, and what is said of the future."""
    figure = new_figure(11.0, 4.2)
    axis = time_panel(figure)
    seen, ahead = history[history["unique_id"] == name], forecast[forecast["unique_id"] == name]
    windows = last_windows(backtest, name)
    for at, window in enumerate(windows):
        draw_fan(axis, window, MUTED, "backtest: as it was forecast then" if at == 0 else None)
    draw_fan(axis, ahead, OURS, f"forecast: median, intervals to {widest(ahead):.0%}")
    _paths(axis, None if paths is None else paths[paths["unique_id"] == name])
    shown = seen[seen["ds"] >= first_shown(seen, ahead, windows)]
    draw_observed(axis, shown)
    axis.axvline(float(mdates.date2num(seen["ds"].max())), color=MUTED, linewidth=0.8, linestyle=(0, (2, 3)))
    axis.set_title(name, loc="left", fontsize=11, color=INK, parse_math=False)
    axis.margins(x=0.01)
    figure.legend(frameon=False, fontsize=9, loc="outside lower left", ncols=4)
    return figure


def last_windows(backtest: pd.DataFrame, name: str) -> list[pd.DataFrame]:
    """Our newest backtest windows of a series, oldest first."""
    ours = backtest[(backtest["method"] == OUR_METHOD) & (backtest["unique_id"] == name)]
    cutoffs = sorted(ours["cutoff"].unique())[-SHOWN_WINDOWS:]
    return [ours[ours["cutoff"] == cutoff] for cutoff in cutoffs]


def first_shown(seen: pd.DataFrame, ahead: pd.DataFrame, windows: list[pd.DataFrame]) -> pd.Timestamp:
    """Where a chart begins: one horizon before its first window, or three before the future."""
    start = seen["ds"].max() if not windows else windows[0]["cutoff"].iloc[0]
    before = seen[seen["ds"] <= start]["ds"].tail(len(ahead) * (1 if windows else 3))
    return before.iloc[0] if len(before) else seen["ds"].iloc[0]


def mirrored(rows: pd.DataFrame) -> list[float]:
    """Levels below the middle whose mirror image is there too, widest interval first."""
    levels = levels_in(rows)
    return [float(low) for low in levels[levels < 0.5 - 1e-9] if np.isclose(levels, 1 - low).any()]


def widest(rows: pd.DataFrame) -> float:
    """The share that the widest interval holds."""
    return 1 - 2 * min(mirrored(rows), default=0.5)


def draw_fan(axis: Axes, rows: pd.DataFrame, colour: str, label: str | None) -> None:
    """Bands between mirrored quantiles, palest outside, and the median."""
    times = mdates.date2num(rows["ds"])
    for low in mirrored(rows):
        bottom, top = rows[level_name(low)], rows[level_name(round(1 - low, 6))]
        axis.fill_between(times, bottom, top, color=colour, alpha=0.14, linewidth=0)
    axis.plot(times, rows["q0.5"], color=colour, linewidth=1.6, label=label)


def _paths(axis: Axes, paths: pd.DataFrame | None) -> None:
    """A few sample paths, thin."""
    if paths is None:
        return
    for at, sample in enumerate(sorted(paths["sample"].unique())[:SHOWN_PATHS]):
        one = paths[paths["sample"] == sample]
        label = "sample paths" if at == 0 else None
        axis.plot(mdates.date2num(one["ds"]), one["y"], color=TARGET, linewidth=0.7, alpha=0.8, label=label)


def draw_observed(axis: Axes, seen: pd.DataFrame) -> None:
    """Observed values; the line breaks at gaps."""
    pieces = unbroken(seen)
    gap = [np.array([np.nan])]
    times = np.concatenate([part for piece in pieces for part in (piece[0], *gap)][:-1])
    values = np.concatenate([part for piece in pieces for part in (piece[1], *gap)][:-1])
    mark = "o" if seen["y"].count() < 60 else ""
    axis.plot(times, values, color=INK, linewidth=1.2, marker=mark, markersize=2.5, label="observed")


def unbroken(seen: pd.DataFrame) -> list[tuple[np.ndarray, np.ndarray]]:
    """Times and values of what was seen, in pieces without a gap; weekends of working days are none."""
    rows = seen.dropna(subset=["y"])
    times, values = mdates.date2num(rows["ds"]), rows["y"].to_numpy(dtype=np.float64)
    usual = np.quantile(np.diff(mdates.date2num(seen["ds"])), USUAL) if len(seen) > 1 else 0.0
    breaks = np.flatnonzero(np.diff(times) > CLOSE * usual) + 1
    return list(zip(np.split(times, breaks), np.split(values, breaks), strict=True))


def date_texts(locator: mdates.AutoDateLocator) -> mdates.ConciseDateFormatter:
    """Short dates; days are written with their month, as an axis may hold the end of one and most of another."""
    formatter = mdates.ConciseDateFormatter(locator)
    formatter.formats[2] = formatter.zero_formats[3] = "%d %b"
    formatter.zero_formats[2] = "%d %b"
    formatter.offset_formats[2] = "%Y"
    formatter.offset_formats[3] = formatter.offset_formats[4] = "%d %b %Y"
    return formatter


def time_panel(figure: Figure) -> Axes:
    """Axes with time along the foot."""
    axis = figure.add_subplot()
    axis.spines[["top", "right"]].set_visible(False)
    axis.tick_params(colors=INK, labelsize=9)
    axis.grid(axis="y", color="#e4e7eb", linewidth=0.8)
    axis.set_axisbelow(True)
    locator = mdates.AutoDateLocator(minticks=4, maxticks=9)
    axis.xaxis.set_major_locator(locator)
    axis.xaxis.set_major_formatter(date_texts(locator))
    return axis


# Calibration


def calibration_chart(backtest: pd.DataFrame) -> Figure:
    """Share of what came at or below each quantile: on the diagonal a forecast keeps its word."""
    figure = new_figure(5.6, 5.4)
    axis = figure.add_subplot()
    axis.spines[["top", "right"]].set_visible(False)
    axis.tick_params(colors=INK, labelsize=9)
    axis.grid(color="#e4e7eb", linewidth=0.8)
    axis.plot([0, 1], [0, 1], color=MUTED, linewidth=1.2, zorder=1)
    for method in dict.fromkeys(backtest["method"]):
        colour, line, mark = STYLES.get(method, OTHER)
        levels, shares = calibration_of(backtest[backtest["method"] == method])
        width = 2.0 if method == OUR_METHOD else 1.4
        axis.plot(
            levels, shares, color=colour, linestyle=line, linewidth=width, marker=mark, markersize=5, label=method
        )
    axis.set_xlim(0, 1)
    axis.set_ylim(0, 1)
    axis.set_aspect("equal")
    axis.set_xlabel("level of the quantile", color=INK, fontsize=10)
    axis.set_ylabel("share of values at or below it", color=INK, fontsize=10)
    axis.set_title("Calibration over the backtest", loc="left", fontsize=11, color=INK)
    axis.legend(frameon=False, fontsize=9, loc="upper left")
    return figure


def calibration_of(rows: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Levels, and the share of values at or below their quantiles."""
    levels = levels_in(rows)
    quantiles = rows[[level_name(round(level, 6)) for level in levels]].to_numpy(dtype=np.float64)
    truth = rows["y"].to_numpy(dtype=np.float64)
    return levels, calibration(quantiles[None], truth[None], levels)


def file_names(names: Sequence[str], prefix: str = "fan-") -> dict[str, str]:
    """A file for each series: its name with what no file should hold replaced, numbered where two would be one."""
    found: dict[str, str] = {}
    for name in names:
        plain = "".join(sign if sign.isalnum() or sign in "-_." else "_" for sign in name)[:80]
        taken = sum(other.removesuffix(".png").startswith(f"{prefix}{plain}") for other in found.values())
        found[name] = f"{prefix}{plain}{f'-{taken + 1}' if taken else ''}.png"
    return found
