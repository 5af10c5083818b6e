"""Windows of the backtest of `sgfn forecast`, from its settings and a panel."""

from collections import Counter
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from sgfn.config.forecast import ForecastSettings
from sgfn.landscapes.function import load_function
from sgfn.series.panel import Panel, Series
from sgfn.series.protocol import Origin, last_windows

MOST_WINDOWS = 20
MOST_IN_ALL = 200
"""Backtest windows of all series together by default, as long as that is one a series; of more series some are read."""
TESTED = 5
"""At most one part in this many of each series is kept for the backtest by default."""
LEAST_HORIZONS = 3
"""Horizons that a series must have for a backtest window that takes more than that part of it."""
MAX_SPAN_FACTOR = 1.5
"""Longest span of a window of irregular stamps, as a multiple of the usual one; longer windows contain a gap."""


@dataclass(frozen=True, kw_only=True)
class Settings(ForecastSettings):
    """How a forecast is evaluated and written."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tilt:
            load_function(self.tilt)

    @property
    def array(self) -> Float64[np.ndarray, " Q"]:
        """The quantile levels as an array."""
        return np.array(self.levels)

    def origins(self, panel: Panel, horizon: int) -> tuple[Origin, ...]:
        """Windows of the backtest: as many as were asked for, by default as many as each series has room for."""
        if self.windows is not None:
            check_room(panel, horizon, self.windows)
        span, shortest, found = longest_span(panel, horizon), self.lag + 1, list[Origin]()
        for series in panel.series if self.windows is not None else tested_series(panel):
            first = len(series) - tested_steps(len(series), horizon) if self.windows is None else horizon + 2
            most = max(1, min(MOST_WINDOWS, MOST_IN_ALL // len(panel)))
            count = min(most, (len(series) - first) // horizon) if self.windows is None else self.windows
            found += last_windows(series, horizon, count, horizon, span, shortest, first) if count else []
        if self.windows and not found:
            raise ValueError(f"no window holds a value and has {shortest} before it; take a shorter --lag or --horizon")
        return tuple(found)


def tested_steps(length: int, horizon: int) -> int:
    """Steps at the end of a series that the backtest may read by default.

    A fifth, or one horizon where that is more and three are there, and two steps besides to learn from.

    >>> [tested_steps(length, 12) for length in (30, 40, 100)], tested_steps(3, 1)
    ([6, 12, 20], 0)
    """
    enough = length >= max(LEAST_HORIZONS * horizon, 2 * horizon + 2)
    return max(length // TESTED, horizon if enough else 0)


def tested_series(panel: Panel) -> tuple[Series, ...]:
    """Series that the backtest reads by default: all, or evenly spread ones where there are very many."""
    places = np.linspace(0, len(panel) - 1, min(len(panel), MOST_IN_ALL)).round().astype(int)
    return tuple(panel.series[at] for at in sorted(set(places.tolist())))


def check_room(panel: Panel, horizon: int, windows: int) -> None:
    """Raise unless the longest series has steps left to learn from beside its backtest windows."""
    longest = max(panel.series, key=len)
    fit = max((len(longest) - horizon - 2) // horizon, 0)
    if windows > fit:
        what = (
            f"series {longest.name!r} has {len(longest):,} steps: --windows {windows} of horizon {horizon} leave none"
        )
        raise ValueError(f"{what} to learn from; take --windows {fit} or fewer, or a shorter --horizon")


def fewer_windows(panel: Panel, origins: tuple[Origin, ...], windows: int | None) -> str:
    """Warning where series have fewer backtest windows than were asked for, or none; empty if all have them."""
    asked = tested_series(panel) if windows is None else panel.series
    counts = {series.name: 0 for series in asked} | Counter(one.series.name for one in origins)
    lacking = [name for name, count in counts.items() if count < (1 if windows is None else windows)]
    if not lacking or not origins:
        return ""
    has = "no window" if windows is None else f"fewer than {windows} windows"
    who = f"series {lacking[0]!r}" + (f" and {len(lacking) - 1} more" if len(lacking) > 1 else "")
    return f"the backtest has {has} of {who}: too short, too many values missing, or gaps between stamps"


def longest_span(panel: Panel, horizon: int) -> np.timedelta64 | None:
    """Longest time that a window of irregular stamps may take; None where stamps are regular."""
    if panel.step is not None:
        return None
    gaps = np.concatenate([np.diff(series.stamps) for series in panel.series])
    return np.timedelta64(round(MAX_SPAN_FACTOR * horizon * float(np.median(gaps.astype(np.int64)))), "ns")


def spares(origins: tuple[Origin, ...], panel: Panel) -> tuple[int, ...]:
    """Number of steps at the end of each series that are kept from training."""
    found = {series.name: 0 for series in panel.series}
    for one in origins:
        found[one.series.name] = max(found[one.series.name], len(one.series) - one.cut)
    return tuple(found.values())
