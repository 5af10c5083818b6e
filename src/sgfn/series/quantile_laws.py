r"""Laws of single values given by their quantiles at fixed levels, joined by straight lines over the normal scores.

With levels $\tau_1 < \dots < \tau_Q$, normal scores $z_k = \Phi^{-1}(\tau_k)$ and quantiles $q_1 \le \dots \le q_Q$ the
quantile function is $q(\tau) = \ell(\Phi^{-1}(\tau))$ with $\ell$ the line through the points $(z_k, q_k)$, continued
straight beyond both ends. A normal law is represented exactly, with its tails; equal quantiles are an atom.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64
from scipy.special import ndtr, ndtri

GRID = np.array([0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.975, 0.99])
"""Levels at which laws are kept."""
NODES = ndtri(GRID)
"""Their normal scores."""
FINE = ndtri((np.arange(400) + 0.5) / 400)
"""Normal scores of equal shares of the mass, by which means are computed."""
NORMAL = np.log(2 * np.pi) / 2
FAR = 1e3
"""Distance, in widths between nodes, at which no mass is left."""

Quantiles = Float64[np.ndarray, "*batch Q"]


@dataclass(frozen=True, kw_only=True, eq=False)
class QuantileLaw:
    """Laws of any number of values, by their quantiles at the levels of `GRID`.

    >>> law = QuantileLaw.normal(np.array([10.0]), np.array([2.0]))
    >>> law.quantile(np.array([0.001, 0.5]))[0].round(6).tolist()
    [3.819535, 10.0]
    >>> law.cdf(np.array([10.0])).tolist()
    [0.5]
    """

    values: Quantiles

    def __post_init__(self) -> None:
        if not np.isfinite(self.values).all() or (np.diff(self.values, axis=-1) < 0).any():
            raise ValueError("quantiles of a law must be finite and must not fall from level to level")

    @staticmethod
    def normal(mean: Float64[np.ndarray, "*batch"], deviation: Float64[np.ndarray, "*batch"]) -> "QuantileLaw":
        """Normal laws."""
        return QuantileLaw(values=mean[..., None] + deviation[..., None] * NODES)

    @staticmethod
    def of_samples(samples: Float64[np.ndarray, " N *batch"]) -> "QuantileLaw":
        """Laws of samples: quantiles that are samples themselves."""
        return QuantileLaw(values=np.moveaxis(np.quantile(samples, GRID, axis=0, method="inverted_cdf"), 0, -1))

    def at_scores(self, scores: Float64[np.ndarray, "*batch N"]) -> Float64[np.ndarray, "*batch N"]:
        """Values at normal scores, given for each law."""
        place = np.clip(np.searchsorted(NODES, scores) - 1, 0, len(NODES) - 2)
        low, high = (np.take_along_axis(self.values, place + shift, -1) for shift in (0, 1))
        share = (scores - NODES[place]) / (NODES[place + 1] - NODES[place])
        return low + share * (high - low)

    def quantile(self, levels: Float64[np.ndarray, " L"]) -> Float64[np.ndarray, "*batch L"]:
        """Quantiles at any levels between 0 and 1."""
        shape = (*self.values.shape[:-1], len(levels))
        return self.at_scores(np.broadcast_to(ndtri(levels), shape))

    @property
    def mean(self) -> Float64[np.ndarray, "*batch"]:
        """Mean of each law, over 400 equal shares of its mass."""
        return self.at_scores(np.broadcast_to(FINE, (*self.values.shape[:-1], len(FINE)))).mean(-1)

    def scores(
        self, values: Float64[np.ndarray, "*batch"]
    ) -> tuple[Float64[np.ndarray, "*batch"], Float64[np.ndarray, "*batch"]]:
        """Least and greatest normal score of each value; they differ where a law has an atom."""
        return self._score(values, "left"), self._score(values, "right")

    def _score(self, values: Float64[np.ndarray, "*batch"], side: str) -> Float64[np.ndarray, "*batch"]:
        below = self.values < values[..., None] if side == "left" else self.values <= values[..., None]
        place = np.clip(below.sum(-1)[..., None] - 1, 0, len(NODES) - 2)
        low, high = (np.take_along_axis(self.values, place + shift, -1)[..., 0] for shift in (0, 1))
        place, wide = place[..., 0], high - low
        beyond = np.where(values < low, -FAR, np.where(values > high, FAR, 0.5))
        with np.errstate(over="ignore"):  # of a width that is next to nothing; what is infinite is clipped below
            share = np.divide(values - low, wide, out=beyond, where=wide > 0)
        atom = (wide <= 0) & (values == low)  # one at either end has all the mass beyond
        end = np.where(place == 0, -FAR, 0.0) if side == "left" else np.where(place == len(NODES) - 2, FAR, 1.0)
        share = np.where(atom, end, share)
        return NODES[place] + np.clip(share, -FAR, FAR) * (NODES[place + 1] - NODES[place])

    def cdf(self, values: Float64[np.ndarray, "*batch"]) -> Float64[np.ndarray, "*batch"]:
        """P(X <= value) under each law."""
        return ndtr(self._score(values, "right"))

    def log_density(self, values: Float64[np.ndarray, "*batch"]) -> Float64[np.ndarray, "*batch"]:
        """Log-density of each value; infinite at an atom."""
        score = self._score(values, "right")
        place = np.clip(np.searchsorted(NODES, score, side="right") - 1, 0, len(NODES) - 2)[..., None]
        low, high = (np.take_along_axis(self.values, place + shift, -1)[..., 0] for shift in (0, 1))
        step = NODES[place[..., 0] + 1] - NODES[place[..., 0]]
        with np.errstate(divide="ignore"):
            return -np.square(score) / 2 - NORMAL - np.log((high - low) / step)

    def spread(
        self, factors: Float64[np.ndarray, "*batch"], shifts: Float64[np.ndarray, "*batch"] | float = 0.0
    ) -> "QuantileLaw":
        r"""Laws with their normal scores stretched and shifted, $q'(\tau) = q(\Phi(s\,\Phi^{-1}(\tau) + c))$."""
        return QuantileLaw(values=ordered(self.at_scores(factors[..., None] * NODES + np.asarray(shifts)[..., None])))


def pooled(values: Float64[np.ndarray, " M *batch Q"], weights: Float64[np.ndarray, " M *batch"]) -> QuantileLaw:
    r"""Laws whose quantile functions are the weighted means of those of M members, $q = \sum_m w_m q_m$.

    Reference: Lichtendahl, Grushka-Cockayne and Winkler (2013), Is it better to average probabilities or quantiles?,
    Management Science 59:1594.
    """
    return QuantileLaw(values=ordered((weights[..., None] * values).sum(0)))


def ordered(values: Quantiles) -> Quantiles:
    """Quantiles that do not fall, where rounding made them cross."""
    return np.maximum.accumulate(values, axis=-1)
