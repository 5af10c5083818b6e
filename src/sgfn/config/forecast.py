"""Settings of `sgfn forecast` that decide no weights: which windows are judged, and what is written."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sgfn.config.checks import in_range, one_of, require
from sgfn.config.series import LAWS

CLASSICAL = tuple(name for name in LAWS if name != "network")


@dataclass(frozen=True, kw_only=True)
class ForecastSettings:
    """Settings of how a forecast is evaluated and written."""

    windows: int | None = None
    """Backtest windows of each series, side by side at its end; by default up to 20 in the last fifth; 0 is none."""
    levels: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
    """Quantiles that are written; 0.1, 0.5 and 0.9 must be among them."""
    samples: int = 256
    """Sample paths drawn of the future of each series."""
    paths: Path | None = None
    """Write the sample paths of the future to this CSV or Parquet file."""
    baselines: str = "auto"
    """Methods that the backtest compares with: `auto` is every classical law that fits the data, `none`, or names with
    commas between them (seasonal-naive,AutoETS); all but seasonal naive need the extra sgfn[forecast]."""
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
    tilt_objective: Literal["tb", "kl"] = "tb"
    """What the tilted policy is trained by: trajectory balance, or the KL divergence."""
    tilt_steps: int = 300
    """Training steps of the tilted policy, for each series."""

    def __post_init__(self) -> None:
        if self.windows is not None:
            in_range("windows", self.windows, 0, 10_000)
        inside = all(0 < level < 1 for level in self.levels)
        require(inside and list(self.levels) == sorted(set(self.levels)), "levels", "rise within (0, 1)", self.levels)
        needed = all(any(abs(level - one) < 1e-9 for level in self.levels) for one in (0.1, 0.5, 0.9))
        require(needed, "levels", "hold 0.1, 0.5 and 0.9", self.levels)
        for name in self.baseline_names:
            one_of("baselines", name, CLASSICAL)
        in_range("samples", self.samples, 2, 1_000_000)
        in_range("lag", self.lag, 1, 100_000)
        in_range("figures", self.figures, 0, 10_000)
        in_range("temperature", self.temperature, 1e-9)
        one_of("tilt_objective", self.tilt_objective, ("tb", "kl"))
        in_range("tilt_steps", self.tilt_steps, 1, 1_000_000)

    @property
    def baseline_names(self) -> tuple[str, ...]:
        """Names of the methods that are compared with."""
        if self.baselines in ("auto", "none"):
            return CLASSICAL if self.baselines == "auto" else ()
        return tuple(name.strip().replace("-", " ") for name in self.baselines.split(",") if name.strip())
