r"""Calibration: the spread of a forecast is adjusted by how far the same forecaster was off shortly before.

An observed value y has the normal score $z = \Phi^{-1}(F(y))$ under the law F that was forecast, which is standard
normal if F is right. The scores known at an origin, recent ones with more weight, give the spread s at which central
intervals would have had their nominal coverage, and the forecast becomes

.. math:: F'(y) = \Phi\big(\Phi^{-1}(F(y)) / s\big)

so that a law that was too narrow is widened, one that was too wide is narrowed, and the median stays. A value is scored
by members that had not learned from it.

References: Gibbs and Candès (2021), Adaptive conformal inference under distribution shift, NeurIPS; Barber et al.
(2021), Predictive inference with the jackknife+, Annals of Statistics 49:486.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float64, Int64
from scipy.special import ndtr, ndtri
from torch import Tensor

CENTRAL = np.array([0.5, 0.65, 0.8, 0.9])
"""Central intervals whose coverage decides the spread."""
PRIOR = 2.0
"""Weight, in horizons of observed scores, of standard normal scores that are added to the observed ones."""
GRID = ndtri(0.5 + (np.arange(200) + 0.5) / 400)
"""Absolute values of standard normal scores at evenly spaced probabilities."""
LIMITS = (0.5, 2.0)
"""Least and greatest spread."""


@dataclass(frozen=True, kw_only=True, eq=False)
class NormalScores:
    """Normal scores of observed values: absolute value, time of observation, and weight in horizons."""

    size: Float64[np.ndarray, " N"]
    time: Int64[np.ndarray, " N"]
    weight: Float64[np.ndarray, " N"]

    def spreads(self, origins: Int64[np.ndarray, " W"], memory: float) -> Float64[np.ndarray, " W"]:
        r"""Spread at each origin, with scores of age a weighted by $e^{-a/m}$; m in units of time."""
        order = np.argsort(self.size, kind="stable")
        ordered = NormalScores(size=self.size[order], time=self.time[order], weight=self.weight[order])
        found = {origin: ordered._spread(origin, memory) for origin in np.unique(origins).tolist()}
        return np.array([found[origin] for origin in origins.tolist()])

    def _spread(self, origin: int, memory: float) -> float:
        known = self.time <= origin
        if not known.any():
            return 1.0
        size, age = self.size[known], origin - self.time[known]
        place = np.searchsorted(size, GRID)
        size = np.insert(size, place, GRID)
        weight = np.insert(self.weight[known] * np.exp(-age / memory), place, PRIOR / len(GRID))
        level = (weight.cumsum() - weight / 2) / weight.sum()
        inside = np.interp(CENTRAL, level, size)
        return float(np.exp(np.log(inside / ndtri((1 + CENTRAL) / 2)).mean()).clip(*LIMITS))


@dataclass(frozen=True, kw_only=True)
class SpreadRule:
    """How much windows that were observed count against what is usual, for the spread of each step."""

    half_life: float = 1.0
    """Horizons after which a window counts for half: spreads of most series change with time."""
    usual: float = 1.05
    """Spread of a pool before anything is known: its laws take their estimated parameters for the true ones."""
    prior: float = 1.0
    """Weight of that, in windows, in the spread of all steps together."""
    least: float = 24.0
    """The same in values, where that is more: a window of few steps says little."""
    local: float = 12.0
    """Weight of the spread of all steps together, in windows, in that of each."""


RULE = SpreadRule()
"""Chosen on the development half of the forecasting panel, by `benchmarks.forecast_breadth.spreads`; `usual` and
`least` also on short series that are in no part of it."""
STEP_LIMITS = (0.4, 3.0)
"""Least and greatest spread by step."""
NEAR = 0.15
"""Width of the kernel over steps, in horizons: what is special to a step is learned with nearby ones."""
ATOM = 5
"""Points by which the score of a value that is an atom of its law is spread over the atom."""
GOLDEN = (5**0.5 - 1) / 2
"""Step of a sequence whose parts after the point lie evenly between zero and one."""


def spread_scores(
    low: Float64[np.ndarray, "*batch"], high: Float64[np.ndarray, "*batch"]
) -> Float64[np.ndarray, "*batch P"]:
    """Normal scores at even shares of the mass between the least and greatest score of each value.

    Points lie elsewhere within their shares from value to value, so that those of many values are even together: were
    they in the middle of their shares, large atoms would seem to have no tails.
    """
    place = ((np.arange(low.size) * GOLDEN + 0.5) % 1).reshape(low.shape)
    share = (np.arange(ATOM) + place[..., None]) / ATOM
    below, above = ndtr(low)[..., None], ndtr(high)[..., None]
    return ndtri(np.clip(below + share * (above - below), 1e-9, 1 - 1e-9))


def recency(ended: Float64[np.ndarray, " N"], half_life: float) -> Float64[np.ndarray, " N"]:
    """Weight of windows by when they ended, in horizons: one of the newest, half a half-life before.

    >>> recency(np.array([3.0, 4.0, 5.0]), 1.0).tolist()
    [0.25, 0.5, 1.0]
    """
    return 0.5 ** ((ended.max(initial=-np.inf) - ended) / half_life)


def step_spreads(
    scores: Float64[np.ndarray, "N H P"], ended: Float64[np.ndarray, " N"] | None = None, rule: SpreadRule = RULE
) -> Float64[np.ndarray, " H"]:
    """Spread of each step of the horizon, from normal scores (nan where missing) of windows that were forecast before.

    Recent windows count more, by when they `ended` in horizons. All steps together have one spread, from their scores
    and normal ones of the usual spread with the weight of some windows. The spread of each step is shrunk towards that
    one (split conformal calibration, adaptive, pooled and shrunk).
    """
    windows, horizon, points = scores.shape
    if not windows:
        return np.ones(horizon)
    knots = np.unique(np.linspace(0, horizon - 1, min(horizon, 12)).round().astype(int))
    step = np.repeat(np.arange(horizon), points)
    size = np.abs(scores.reshape(windows, -1))
    seen, counts = ~np.isnan(size), recency(np.zeros(windows) if ended is None else ended, rule.half_life)[:, None]
    even = np.broadcast_to(counts / len(step), size.shape)[seen]
    prior = max(rule.prior, rule.least / horizon)
    together, found = _central_spread(size[seen], even, prior, rule.usual), []
    for knot in knots:
        kernel = np.exp(-np.square((step - knot) / max(NEAR * horizon, 0.5)) / 2)
        found.append(_central_spread(size[seen], (counts * kernel / kernel.sum())[seen], rule.local, together))
    return np.exp(np.interp(np.arange(horizon), knots, np.log(found)))


def _central_spread(
    size: Float64[np.ndarray, " N"], weight: Float64[np.ndarray, " N"], prior: float, usual: float
) -> float:
    """Factor at which central intervals hold their share of weighted absolute scores, some of a usual spread added."""
    size = np.concatenate([size, usual * GRID])
    weight = np.concatenate([weight, np.full(len(GRID), prior / len(GRID))])
    order = np.argsort(size, kind="stable")
    size, weight = size[order], weight[order]
    level = (weight.cumsum() - weight / 2) / weight.sum()
    inside = np.maximum(np.interp(CENTRAL, level, size), 1e-6)
    return float(np.exp(np.log(inside / ndtri((1 + CENTRAL) / 2)).mean()).clip(*STEP_LIMITS))


def widened(law: Float64[Tensor, "W H K"], spread: Float64[Tensor, " W"]) -> Float64[Tensor, "W H K"]:
    """Laws over bins with their normal scores divided by a spread; the density within a bin keeps its form.

    >>> law = torch.tensor([[[0.1, 0.4, 0.4, 0.1]]], dtype=torch.float64)
    >>> widened(law, torch.tensor([2.0], dtype=torch.float64)).round(decimals=3).tolist()
    [[[0.261, 0.239, 0.239, 0.261]]]
    """
    mass = law / law.sum(-1, keepdim=True)
    below = mass.cumsum(-1)[..., :-1].clamp(1e-12, 1 - 1e-12)
    moved = torch.special.ndtr(torch.special.ndtri(below) / spread[:, None, None])
    moved = torch.where(spread[:, None, None] == 1.0, below, moved)
    ends = torch.zeros_like(mass[..., :1])
    return torch.diff(moved, prepend=ends, append=ends + 1.0)
