"""Forecasts of windows: sample paths, the law of each step, and quantiles, means and densities computed from them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float64, Shaped
from torch import Tensor

from sgfn.evaluation.metrics.forecast import LEVELS
from sgfn.series.bins import Bins
from sgfn.series.calendar import numbers_of

DEFAULT_LEVELS: tuple[float, ...] = tuple(LEVELS.tolist())


def check_levels(levels: Sequence[float]) -> None:
    """Raise unless all levels lie between 0 and 1."""
    if not all(0.0 < level < 1.0 for level in levels):
        raise ValueError(f"levels of quantiles must lie between 0 and 1, got {list(levels)}")


@dataclass(frozen=True, kw_only=True, eq=False)
class Forecast:
    """Forecasts of W windows, H steps each, in units of the data."""

    names: tuple[str, ...]
    """Name of each window's series."""
    cuts: tuple[int, ...]
    """How many values of its series came before each window."""
    stamps: Shaped[np.ndarray, "W H"]
    """Times of the steps."""
    paths: Float64[np.ndarray, "W N H"]
    """Sample paths: each is one joint outcome of all steps."""
    law: Float64[Tensor, "W H K"]
    """Probability of each bin at each step."""
    bins: Bins
    reference: Float64[Tensor, "W H"]
    unit: Float64[Tensor, " W"]
    levels: tuple[float, ...] = DEFAULT_LEVELS
    """Quantiles that are given where no others are asked for."""

    def __len__(self) -> int:
        return len(self.names)

    def quantiles(self, levels: Sequence[float] | None = None) -> Float64[np.ndarray, "W H Q"]:
        """Quantiles of each step's law, exact."""
        levels = self.levels if levels is None else levels
        check_levels(levels)
        scaled = self.bins.quantile(self.law, torch.tensor(levels, dtype=torch.float64))
        return (scaled * self.unit[:, None, None] + self.reference[..., None]).numpy()

    @property
    def median(self) -> Float64[np.ndarray, "W H"]:
        """Median of each step: the point forecast of least absolute error."""
        return self.quantiles([0.5])[..., 0]

    @property
    def mean(self) -> Float64[np.ndarray, "W H"]:
        """Mean of each step: the point forecast of least squared error."""
        return (self.bins.mean(self.law) * self.unit[:, None] + self.reference).numpy()

    def cdf(self, values: Float64[np.ndarray, "W H"]) -> Float64[np.ndarray, "W H"]:
        """Probability of at most the given value at each step; of observed values uniform if calibrated."""
        return self.bins.cdf(self.law, self._scaled(values).nan_to_num(0.0)).numpy() + 0.0 * values

    def log_density(self, values: Float64[np.ndarray, "W H"]) -> Float64[np.ndarray, "W H"]:
        """Log-density of each step's value; nan where it is missing."""
        scaled = self._scaled(values)
        found = self.bins.log_density(self.law.clamp(min=1e-300).log(), scaled.nan_to_num(0.0))
        return (found - self.unit.log()[:, None]).numpy() + 0.0 * values

    def to_frame(self, levels: Sequence[float] | None = None) -> pd.DataFrame:
        """Table with one row per window and step: unique_id, ds, cut, mean, and a column for each quantile (`q0.1`)."""
        steps, levels = self.stamps.shape[1], self.levels if levels is None else levels
        stamps = numbers_of(self.stamps)
        quantiles = self.quantiles(levels).reshape(-1, len(levels))
        columns = {
            "unique_id": np.repeat(np.array(self.names, dtype=object), steps),
            "ds": (self.stamps if stamps is None else stamps).reshape(-1),
            "cut": np.repeat(np.array(self.cuts), steps),
            "mean": self.mean.reshape(-1),
        }
        return pd.DataFrame(columns | {f"q{level:g}": quantiles[:, i] for i, level in enumerate(levels)})

    def _scaled(self, values: Float64[np.ndarray, "W H"]) -> Float64[Tensor, "W H"]:
        return (torch.from_numpy(values) - self.reference) / self.unit[:, None]
