"""Figures of forecasts, from their tables alone: the forecast and the scenarios of a series, and calibration."""

import unicodedata
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from jaxtyping import Float64, Shaped
from matplotlib import dates as mdates
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sgfn.evaluation.metrics.forecast import calibration
from sgfn.reports.axes import add_panel, name_axes, new_figure, plain_values, write_title
from sgfn.reports.looks import (
    AXIS,
    DASH_DOTTED,
    DASHED,
    DOTTED,
    FLOOR,
    INK,
    MUTED,
    OURS,
    PALETTE,
    RULE,
    SOLID,
    TARGET,
    WHITE,
    Look,
)
from sgfn.series.backtest import level_name, levels_in
from sgfn.series.calendar import numbers_of
from sgfn.series.files import Outcome, Scenarios

OUR_METHOD, FAN = "sgfn", "fan-"
LOOKS = {
    OUR_METHOD: Look(OURS, SOLID),
    "seasonal naive": Look(TARGET, DASHED),
    "AutoETS": Look(FLOOR, DASH_DOTTED),
    "AutoTheta": Look(PALETTE[3], DASHED),
    "AutoARIMA": Look(PALETTE[4], DASHED),
    "MSTL": Look(PALETTE[5], DASH_DOTTED),
    "CrostonSBA": Look(PALETTE[6], DASHED),
    "ADIDA": Look(PALETTE[7], DASHED),
}
OTHER = Look(MUTED, DOTTED)
WIDE = (11.0, 4.2)
"""Width and height of a chart over time, in inches."""
SHOWN_WINDOWS = 3
"""Backtest windows in a fan chart, the newest."""
SHOWN_PATHS = 5
LONGEST_NAME = 80
"""Bytes of a series' name in that of its pictures."""
GAP, USUAL_SHARE = 1.5, 0.9
"""Observed values are joined if they lie no further apart than GAP times the USUAL_SHARE quantile of all distances."""


# Charts over time


def fan_chart(name: str, outcome: Outcome, *, titled: bool = True) -> Figure:
    """Figure of one series: observed values, forecasts of the last backtest windows, and the forecast."""
    numbered = numbers_of(_stamps(outcome.forecast["ds"])) is not None
    return _time_chart(name if titled else "", lambda axes: draw_forecast(axes, name, outcome), numbered=numbered)


def scenario_chart(name: str, outcome: Outcome, scenarios: Scenarios, *, titled: bool = True) -> Figure:
    """Figure of one series: its forecast, and beside it the scenarios by their weight."""
    title = f"{name}: paths in proportion to p exp(cost / {scenarios.temperature:g}), cost {scenarios.cost}"
    numbered = numbers_of(_stamps(outcome.forecast["ds"])) is not None
    title = title if titled else ""
    return _time_chart(title, lambda axes: draw_scenarios(axes, name, outcome, scenarios), numbered=numbered)


def _time_chart(title: str, draw: Callable[[Axes], None], *, numbered: bool) -> Figure:
    figure = new_figure(*WIDE)
    axes = time_panel(figure, numbered=numbered)
    draw(axes)
    axes.set_title(title, loc="left", fontsize=11, color=INK, parse_math=False)
    axes.margins(x=0.01)
    figure.legend(frameon=False, fontsize=9, labelcolor=INK, loc="outside lower left", ncols=4)
    return figure


def _stamps(times: "pd.Series | pd.Timestamp") -> Shaped[np.ndarray, "*batch"]:
    if isinstance(times, pd.Timestamp):  # numpy would read it to microseconds alone
        return np.asarray(times.as_unit("ns").to_datetime64())
    return times.to_numpy(dtype="datetime64[ns]")


def places(times: "pd.Series | pd.Timestamp") -> Float64[np.ndarray, "*batch"]:
    """Where times lie along an axis: as dates, or as numbers of steps where they stand for these."""
    numbers = numbers_of(_stamps(times))
    return np.asarray(mdates.date2num(_stamps(times)) if numbers is None else numbers, dtype=np.float64)


def time_text(time: pd.Timestamp) -> str:
    """A time, or the number of a step, in words."""
    numbers = numbers_of(_stamps(time))
    return str(time) if numbers is None else f"step {int(numbers):,}"


def draw_forecast(axes: Axes, name: str, outcome: Outcome) -> None:
    """Draw observed values, what was forecast of the last windows without knowing them, and what is forecast."""
    seen, ahead = rows_of(outcome.history, name), rows_of(outcome.forecast, name)
    windows = last_windows(outcome.backtest, name)
    for at, window in enumerate(windows):
        draw_fan(axes, window, AXIS, "backtest: as it was forecast then" if at == 0 else None)
    draw_fan(axes, ahead, OURS, f"forecast: median, intervals to {widest(ahead):.0%}")
    if outcome.paths is not None:
        draw_paths(axes, rows_of(outcome.paths, name))
    draw_observed(axes, seen[seen["ds"] >= first_shown(seen, ahead, windows)])
    axes.axvline(float(places(seen["ds"].max())), color=MUTED, linewidth=0.8, linestyle=(0, (2, 3)))


def draw_scenarios(axes: Axes, name: str, outcome: Outcome, scenarios: Scenarios) -> None:
    """Draw observed values, the forecast, and quantiles of the scenarios by weight."""
    seen, ahead = rows_of(outcome.history, name), rows_of(outcome.forecast, name)
    draw_observed(axes, seen[seen["ds"] >= first_shown(seen, ahead, [])])
    draw_fan(axes, ahead, OURS, "forecast")
    size = scenarios.figures[name]["ess"]
    draw_fan(axes, rows_of(scenarios.quantiles, name), TARGET, f"scenarios, effective sample size {size:.0%}")


def rows_of(table: pd.DataFrame, name: str) -> pd.DataFrame:
    """Rows of one series."""
    return table[table["unique_id"] == name]


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
    """Levels q below one half whose mirror image 1 - q is a column too, widest interval first."""
    levels = levels_in(rows)
    return [float(low) for low in levels[levels < 0.5 - 1e-9] if np.isclose(levels, 1 - low).any()]


def widest(rows: pd.DataFrame) -> float:
    """Probability of the widest interval, 0 where there is none."""
    return 1 - 2 * min(mirrored(rows), default=0.5)


def draw_fan(axes: Axes, rows: pd.DataFrame, colour: str, label: str | None) -> None:
    """Draw bands between mirrored quantiles, palest outside, and the median."""
    times = places(rows["ds"])
    for low in mirrored(rows):
        bottom, top = rows[level_name(low)], rows[level_name(round(1 - low, 6))]
        axes.fill_between(times, bottom, top, color=colour, alpha=0.14, linewidth=0)
    axes.plot(times, rows["q0.5"], color=colour, linewidth=1.6, label=label)


def draw_paths(axes: Axes, paths: pd.DataFrame) -> None:
    """Draw the first few sample paths as thin lines."""
    for at, sample in enumerate(sorted(paths["sample"].unique())[:SHOWN_PATHS]):
        one = paths[paths["sample"] == sample]
        label = "sample paths" if at == 0 else None
        axes.plot(places(one["ds"]), one["y"], color=TARGET, linewidth=0.7, alpha=0.8, label=label, zorder=1.8)


def draw_observed(axes: Axes, seen: pd.DataFrame) -> None:
    """Draw observed values as a line that breaks at gaps."""
    pieces = unbroken(seen)
    gap = [np.array([np.nan])]
    times = np.concatenate([part for piece in pieces for part in (piece[0], *gap)][:-1])
    values = np.concatenate([part for piece in pieces for part in (piece[1], *gap)][:-1])
    mark = "o" if seen["y"].count() < 60 else ""
    axes.plot(times, values, color=INK, linewidth=1.2, marker=mark, markersize=2.5, label="observed")


def unbroken(seen: pd.DataFrame) -> list[tuple[np.ndarray, np.ndarray]]:
    """Times and values of what was observed, in pieces without a gap; weekends between working days are no gaps."""
    rows = seen.dropna(subset=["y"])
    times, values = places(rows["ds"]), rows["y"].to_numpy(dtype=np.float64)
    usual = np.quantile(np.diff(places(seen["ds"])), USUAL_SHARE) if len(seen) > 1 else 0.0
    breaks = np.flatnonzero(np.diff(times) > GAP * usual) + 1
    return list(zip(np.split(times, breaks), np.split(values, breaks), strict=True))


def date_texts(locator: mdates.AutoDateLocator) -> mdates.ConciseDateFormatter:
    """Short dates; days are written with their month, as an axis may hold the end of one and most of another."""
    formatter = mdates.ConciseDateFormatter(locator)
    formatter.formats[2] = formatter.zero_formats[3] = "%d %b"
    formatter.zero_formats[2] = "%d %b"
    formatter.offset_formats[2] = "%Y"
    formatter.offset_formats[3] = formatter.offset_formats[4] = "%d %b %Y"
    return formatter


def time_panel(figure: Figure, *, numbered: bool = False) -> Axes:
    """Axes with dates along the foot, or the numbers of steps."""
    axes = add_panel(figure)
    if numbered:
        plain_values(axes)
        return axes
    locator = mdates.AutoDateLocator(minticks=4, maxticks=9)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(date_texts(locator))
    axes.xaxis.get_offset_text().set_color(INK)
    plain_values(axes)
    return axes


# Calibration


def calibration_chart(backtest: pd.DataFrame, *, titled: bool = True) -> Figure:
    """Figure of the calibration of every method of a backtest."""
    figure = new_figure(4.9, 5.2)
    axes = add_panel(figure)
    if titled:
        write_title(axes, "Calibration over the backtest")
    draw_calibration(axes, backtest)
    figure.legend(frameon=False, fontsize=9, labelcolor=INK, loc="outside lower left", ncols=3)
    return figure


def draw_calibration(axes: Axes, backtest: pd.DataFrame) -> None:
    """Draw the share of values at or below each quantile: on the diagonal, as many as the forecast said."""
    axes.grid(color=RULE, linewidth=0.8)
    axes.plot([0, 1], [0, 1], color=MUTED, linewidth=1.2, zorder=1)
    for method in dict.fromkeys(backtest["method"]):
        look = LOOKS.get(method, OTHER)
        levels, shares = calibration_of(backtest[backtest["method"] == method])
        style = {"color": look.colour, "linestyle": look.line, "linewidth": 2.0 if method == OUR_METHOD else 1.4}
        axes.plot(levels, shares, marker=look.marker, markersize=6, markeredgecolor=WHITE, label=method, **style)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_aspect("equal")
    name_axes(axes, "level of the quantile", "share of values at or below it")


def calibration_of(rows: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Levels of the quantiles, and the share of values at or below each."""
    levels = levels_in(rows)
    quantiles = rows[[level_name(round(level, 6)) for level in levels]].to_numpy(dtype=np.float64)
    truth = rows["y"].to_numpy(dtype=np.float64)
    return levels, calibration(quantiles[None], truth[None], levels)


def file_names(names: Sequence[str], prefix: str = FAN) -> dict[str, str]:
    """A PNG file's name for each series: safe, short, and no other one's, however the file system compares names.

    >>> file_names(["a/b", "a b", "A_b"])
    {'a/b': 'fan-a_b.png', 'a b': 'fan-a_b-2.png', 'A_b': 'fan-A_b-3.png'}
    """
    found, taken, counts = dict[str, str](), set[str](), dict[str, int]()
    for name in names:
        plain = safe_name(name)
        folded = unicodedata.normalize("NFKC", plain).casefold()
        number = counts.get(folded, 1)
        while (made := folded if number == 1 else f"{folded}-{number}") in taken:
            number += 1
        taken.add(made)
        counts[folded] = number
        found[name] = f"{prefix}{plain}{'' if number == 1 else f'-{number}'}.png"
    return found


def safe_name(text: str) -> str:
    """A text as part of a file's name: letters, digits and -_. of any script, and no more bytes than fit any disk."""
    plain = "".join(sign if sign.isalnum() or sign in "-_." else "_" for sign in unicodedata.normalize("NFC", text))
    return plain.encode()[:LONGEST_NAME].decode(errors="ignore")
