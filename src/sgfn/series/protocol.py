"""Rolling origins: the windows on which forecasts are evaluated, each from the values before its window alone."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from sgfn.config.checks import in_range
from sgfn.evaluation.metrics.forecast import seasonal_error
from sgfn.series.panel import Panel, Series

__all__ = ["Origin", "last_windows", "rolling_origins", "scales", "truths"]


@dataclass(frozen=True, kw_only=True)
class Origin:
    """A window whose values from `cut` to `cut + horizon` are to be forecast from those before."""

    series: Series
    cut: int
    horizon: int

    @property
    def history(self) -> Series:
        """The series as it was known at the origin."""
        return self.series.until(self.cut)

    @property
    def truth(self) -> Float64[np.ndarray, " H"]:
        """Observed values of the window."""
        return self.series.values[self.cut : self.cut + self.horizon]

    @property
    def stamps(self) -> np.ndarray:
        """Time stamps of the window."""
        return self.series.stamps[self.cut : self.cut + self.horizon]


def rolling_origins(
    panel: Panel,
    horizon: int,
    windows: int,
    stride: int | None = None,
    span: np.timedelta64 | None = None,
    shortest: int = 2,
) -> tuple[Origin, ...]:
    """The last windows of each series, `stride` apart (by default the horizon: windows side by side), oldest first.

    The last window ends with the series. Windows are left out that have fewer than `shortest` values before them, no
    value in them, or, when `span` is given for irregular stamps, an end later than `span` after the last value before.
    """
    in_range("horizon", horizon, 1)
    in_range("windows", windows, 1)
    in_range("stride", stride if stride is not None else horizon, 1)
    found = [
        one
        for series in panel.series
        for one in last_windows(series, horizon, windows, stride or horizon, span, shortest)
    ]
    if not found:
        longest = max(len(series) for series in panel.series)
        raise ValueError(
            f"no window of horizon {horizon} fits: the longest series has {longest} rows, and {shortest} values must "
            "come before a window; take a shorter horizon"
        )
    return tuple(found)


def last_windows(
    series: Series, horizon: int, windows: int, stride: int, span: np.timedelta64 | None, shortest: int, first: int = 1
) -> list[Origin]:
    """Windows of one series, from its end backwards until there are enough, or fewer than `first` steps before."""
    found: list[Origin] = []
    for cut in range(len(series) - horizon, first - 1, -stride):
        one = Origin(series=series, cut=cut, horizon=horizon)
        if np.count_nonzero(~np.isnan(series.values[:cut])) < shortest or len(found) == windows:
            break
        late = span is not None and one.stamps[-1] - series.stamps[cut - 1] > span
        if not late and not np.isnan(one.truth).all():
            found.append(one)
    return found[::-1]


def truths(origins: Sequence[Origin]) -> Float64[np.ndarray, "N H"]:
    """Observed values of each window."""
    return np.stack([one.truth for one in origins])


def scales(origins: Sequence[Origin], lag: int = 1) -> Float64[np.ndarray, " N"]:
    """MASE scale of each window, from the values before it."""
    return np.array([seasonal_error(one.series.values[: one.cut], lag) for one in origins])
