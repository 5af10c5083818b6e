"""What came in windows of a panel, and when they began and ended."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64, Int64

from sgfn.series.bank import Cut
from sgfn.series.panel import Panel, Series


def observed(
    panel: Panel, cuts: Sequence[Cut], horizon: int, ends: Sequence[int]
) -> Float64[np.ndarray, "W {horizon}"]:
    """Values of windows up to given ends of the series, nan where there is none."""
    found = np.full((len(cuts), horizon), np.nan)
    for row, (number, cut) in enumerate(cuts):
        came = panel.series[number].values[cut : min(cut + horizon, ends[number])]
        found[row, : len(came)] = came
    return found


def window_times(
    panel: Panel, cuts: Sequence[Cut], horizon: int, ends: Sequence[int]
) -> tuple[Int64[np.ndarray, " W"], Int64[np.ndarray, " W"]]:
    """Times before the first and of the last value of windows, up to given ends of the series, in nanoseconds."""
    starts = [start_of(panel.series[number], cut) for number, cut in cuts]
    over = [start_of(panel.series[number], min(cut + horizon, ends[number])) for number, cut in cuts]
    return np.array(starts, dtype=np.int64), np.array(over, dtype=np.int64)


def start_of(series: Series, cut: int) -> int:
    """Last time before a window, in nanoseconds: windows with the same one begin together."""
    return int(series.stamps[cut - 1].astype("datetime64[ns]").astype(np.int64))
