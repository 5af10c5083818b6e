"""Settings of `sgfn forecast` that decide no weights: which windows are judged, and what is written."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float64

from sgfn.checks import in_range, require
from sgfn.landscapes.function import load_function
from sgfn.series.panel import Panel
from sgfn.series.protocol import Origin, rolling_origins

MOST_WINDOWS = 20
TESTED = 5
"""By default one part in so many of the shortest series is kept for the backtest, at most."""
PATIENCE = 1.5
"""A window of irregular stamps may take so many times the horizon's usual time; longer ones hold a gap."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a forecast is judged and written."""

    windows: int | None = None
    """Backtest windows of each series, side by side at its end; by default up to 20 in the last fifth; 0 is none."""
    levels: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
    """Quantiles that are written; 0.1, 0.5 and 0.9 must be among them."""
    samples: int = 256
    """Sample paths drawn of each window."""
    paths: Path | None = None
    """Write the sample paths of the future to this CSV or Parquet file."""
    ets: bool = True
    """Compare with AutoETS, where statsforecast is installed (extra sgfn[forecast])."""
    refit: bool = False
    """Train once more on all data, the backtest's windows included, before forecasting: twice the time."""
    lag: int = 1
    """MASE divides by the mean change over so many steps."""
    figures: int = 12
    """Fan charts that are drawn, one a series; 0 is no pictures at all (the page has its own)."""

    tilt: str = ""
    """Scenarios too: `module:function` gives each of N paths [N, H] a cost; paths come with p(path) exp(cost / T)."""
    temperature: float = 1.0
    """T of the tilt, in units of the cost."""
    tilt_steps: int = 300
    """Training steps of the tilted policy, for each series."""

    def __post_init__(self) -> None:
        if self.windows is not None:
            in_range("windows", self.windows, 0, 10_000)
        inside = all(0 < level < 1 for level in self.levels)
        require(inside and list(self.levels) == sorted(set(self.levels)), "levels", "rise within (0, 1)", self.levels)
        needed = all(any(abs(level - one) < 1e-9 for level in self.levels) for one in (0.1, 0.5, 0.9))
        require(needed, "levels", "hold 0.1, 0.5 and 0.9", self.levels)
        in_range("samples", self.samples, 2, 1_000_000)
        in_range("lag", self.lag, 1, 100_000)
        in_range("figures", self.figures, 0, 10_000)
        in_range("temperature", self.temperature, 1e-9)
        in_range("tilt_steps", self.tilt_steps, 1, 1_000_000)
        if self.tilt:
            load_function(self.tilt)

    @property
    def array(self) -> Float64[np.ndarray, " Q"]:
        """The levels as an array."""
        return np.array(self.levels)

    def origins(self, panel: Panel, horizon: int) -> tuple[Origin, ...]:
        """The windows of the backtest; none for windows 0, or where the shortest series has no room for any."""
        shortest = min(len(series) for series in panel.series)
        count = min(MOST_WINDOWS, shortest // TESTED // horizon) if self.windows is None else self.windows
        if count == 0:
            return ()
        check_room(panel, horizon, count)
        return rolling_origins(panel, horizon, count, span=longest_span(panel, horizon), shortest=self.lag + 1)


def check_room(panel: Panel, horizon: int, windows: int) -> None:
    """Raise unless every series can spare the windows and still leave one to learn from."""
    for series in panel.series:
        fit = (len(series) - horizon - 2) // horizon
        if windows > fit:
            what = (
                f"series {series.name!r} has {len(series):,} steps: --windows {windows} of horizon {horizon} leave none"
            )
            raise ValueError(f"{what} to learn from; take --windows {max(fit, 0)} or fewer, or a shorter --horizon")


def longest_span(panel: Panel, horizon: int) -> np.timedelta64 | None:
    """How long a window of irregular stamps may take: one that holds a gap is passed over."""
    if panel.step is not None:
        return None
    gaps = np.concatenate([np.diff(series.stamps) for series in panel.series])
    return np.timedelta64(round(PATIENCE * horizon * float(np.median(gaps.astype(np.int64)))), "ns")


def spare(origins: tuple[Origin, ...]) -> int:
    """Steps at the end of each series that training may not see."""
    return max((len(one.series) - one.cut for one in origins), default=0)
