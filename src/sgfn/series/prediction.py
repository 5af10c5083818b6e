"""Forecasts of windows: sample paths, the law of each step, and quantiles, means and densities computed from them."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float64, Shaped
from torch import Tensor

from sgfn.evaluation.metrics.forecast import LEVELS
from sgfn.series.bins import Bins
from sgfn.series.calendar import numbers_of
from sgfn.series.laid_laws import ends, laid_into, laid_means
from sgfn.series.quantile_laws import QuantileLaw
from sgfn.series.supports import Support

DEFAULT_LEVELS: tuple[float, ...] = tuple(LEVELS.tolist())


def check_levels(levels: Sequence[float]) -> None:
    """Raise unless there are levels, and all are numbers between 0 and 1."""
    given = list(levels) if np.ndim(levels) == 1 else levels
    if not isinstance(given, list) or any(isinstance(one, str) for one in given):
        raise ValueError(f"levels of quantiles must be a list of numbers such as [0.1, 0.5, 0.9], got {given!r}")
    if not given or not all(0.0 < level < 1.0 for level in given):
        raise ValueError(f"levels of quantiles must lie between 0 and 1, got {given}")


@dataclass(frozen=True, kw_only=True, eq=False)
class Forecast(ABC):
    """Forecasts of W windows, H steps each, in units of the data; nothing of them lies outside the supports."""

    names: tuple[str, ...]
    """Name of each window's series."""
    cuts: tuple[int, ...]
    """How many values of its series came before each window."""
    stamps: Shaped[np.ndarray, "W H"]
    """Times of the steps."""
    paths: Float64[np.ndarray, "W N H"]
    """Sample paths: each is one joint outcome of all steps."""
    supports: tuple[Support, ...] = field(default=())
    """Support of each window's series; none given is any number."""
    levels: tuple[float, ...] = DEFAULT_LEVELS
    """Quantiles that are given where no others are asked for."""

    def __len__(self) -> int:
        return len(self.names)

    @abstractmethod
    def plain_quantiles(self, levels: Float64[np.ndarray, " Q"]) -> Float64[np.ndarray, "W H Q"]:
        """Quantiles of each step's law before they are laid into the support."""

    @property
    @abstractmethod
    def mean(self) -> Float64[np.ndarray, "W H"]:
        """Mean of each step: the point forecast of least squared error."""

    @abstractmethod
    def cdf(self, values: Float64[np.ndarray, "W H"]) -> Float64[np.ndarray, "W H"]:
        """Probability of at most the given value at each step; of observed values uniform if calibrated."""

    @abstractmethod
    def log_density(self, values: Float64[np.ndarray, "W H"]) -> Float64[np.ndarray, "W H"]:
        """Log-density of each step's value, or the log-probability of a count; nan where it is missing."""

    def quantiles(self, levels: Sequence[float] | None = None) -> Float64[np.ndarray, "W H Q"]:
        """Quantiles of each step's law, exact."""
        levels = self.levels if levels is None else levels
        check_levels(levels)
        return self.inside(self.plain_quantiles(np.array(levels, dtype=np.float64)))

    def inside(self, values: Float64[np.ndarray, " W *rest"]) -> Float64[np.ndarray, " W *rest"]:
        """Values laid into the support of each window's series."""
        return laid_into(self.supports, values)

    @property
    def median(self) -> Float64[np.ndarray, "W H"]:
        """Median of each step: the point forecast of least absolute error."""
        return self.quantiles([0.5])[..., 0]

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


@dataclass(frozen=True, kw_only=True, eq=False)
class NetworkForecast(Forecast):
    """Forecasts of the network alone, whose law is one of bins."""

    law: Float64[Tensor, "W H K"]
    """Probability of each bin at each step."""
    bins: Bins
    reference: Float64[Tensor, "W H"]
    unit: Float64[Tensor, " W"]

    def plain_quantiles(self, levels: Float64[np.ndarray, " Q"]) -> Float64[np.ndarray, "W H Q"]:
        """Quantiles of the law over bins."""
        scaled = self.bins.quantile(self.law, torch.from_numpy(levels))
        return (scaled * self.unit[:, None, None] + self.reference[..., None]).numpy()

    @property
    def mean(self) -> Float64[np.ndarray, "W H"]:
        """Mean of each step: the point forecast of least squared error."""
        return (self.bins.mean(self.law) * self.unit[:, None] + self.reference).numpy()

    def cdf(self, values: Float64[np.ndarray, "W H"]) -> Float64[np.ndarray, "W H"]:
        """Probability of at most the given value at each step."""
        return self.bins.cdf(self.law, self._scaled(values).nan_to_num(0.0)).numpy() + 0.0 * values

    def log_density(self, values: Float64[np.ndarray, "W H"]) -> Float64[np.ndarray, "W H"]:
        """Log-density of each step's value; nan where it is missing."""
        scaled = self._scaled(values)
        found = self.bins.log_density(self.law.clamp(min=1e-300).log(), scaled.nan_to_num(0.0))
        return (found - self.unit.log()[:, None]).numpy() + 0.0 * values

    def _scaled(self, values: Float64[np.ndarray, "W H"]) -> Float64[Tensor, "W H"]:
        return (torch.from_numpy(values) - self.reference) / self.unit[:, None]


@dataclass(frozen=True, kw_only=True, eq=False)
class StackedForecast(Forecast):
    """Forecasts of several laws in one, given by quantiles; values are those of the pooled law laid into the support.

    A bound of the support is an atom with all mass beyond it, a whole number has the mass within a half of it.
    """

    law: QuantileLaw
    weights: Float64[np.ndarray, "M W"]
    """Weight of each law in each window."""
    members: tuple[str, ...]
    """Names of the laws."""

    def plain_quantiles(self, levels: Float64[np.ndarray, " Q"]) -> Float64[np.ndarray, "W H Q"]:
        """Quantiles of the pooled law."""
        return self.law.quantile(levels)

    @property
    def mean(self) -> Float64[np.ndarray, "W H"]:
        """Mean of each step."""
        return laid_means(self.supports, self.law)

    def cdf(self, values: Float64[np.ndarray, "W H"]) -> Float64[np.ndarray, "W H"]:
        """Probability of at most the given value at each step."""
        low, high, whole = ends(self.supports, len(self))
        at = np.where(whole, np.floor(values) + 0.5, values)
        found = np.where(values >= high, 1.0, self.law.cdf(np.nan_to_num(at)))
        return np.where(values < low, 0.0, found) + 0.0 * values

    def log_density(self, values: Float64[np.ndarray, "W H"]) -> Float64[np.ndarray, "W H"]:
        """Log-density of each step's value, the log-probability of a count or of a bound; nan where it is missing."""
        low, high, whole = ends(self.supports, len(self))
        filled = np.nan_to_num(values)
        below = np.where(whole, self.law.cdf(np.ceil(filled) - 0.5), self.law.cdf(filled))
        mass = self.cdf(filled) - np.where(filled <= low, 0.0, below)
        atom = whole | (filled <= low) | (filled >= high)
        with np.errstate(divide="ignore"):
            return np.where(atom, np.log(np.maximum(mass, 0.0)), self.law.log_density(filled)) + 0.0 * values
