r"""Weights of several laws in one: least quantile loss on windows that came later, shrunk towards a prior.

.. math:: \min_w \; \frac{L(w)}{L(w_0)} + \frac{\lambda}{n}\,\mathrm{KL}(w \,\|\, w_0), \qquad
    L(w) = \overline{\sum_\tau \rho_\tau\big(y - \textstyle\sum_m w_m q_{m\tau}\big) / s}

over n windows whose errors are divided by a scale s; $w_0$ is the prior, equal weights at first. A law that does not
fit a window is left out of it, and the other weights are divided by their sum.

Reference: Yao, Vehtari, Simpson and Gelman (2018), Using stacking to average Bayesian predictive distributions, Bayesian
Analysis 13:917 (there by the log score; here by the quantile loss, which the forecast is judged by).
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float64
from torch import Tensor

from sgfn.series.quantile_laws import GRID

DECILES = np.flatnonzero(np.isclose(GRID * 10 % 1, 0) | np.isclose(GRID * 10 % 1, 1))
"""Places of the levels .1, ..., .9 in the grid: the loss is over them."""
STRENGTH = 0.5
"""Weight of the prior, in windows."""
STEPS, RATE = 120, 0.15
MOST_ROWS = 12_000
"""Most values on which weights are learned; of more, evenly spread ones."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Evidence:
    """Quantiles of M laws for N windows, what came, and the scale of each window's errors."""

    quantiles: Float64[np.ndarray, "M N H Q"]
    """At the levels of the grid; nan where a law does not fit a window."""
    truth: Float64[np.ndarray, "N H"]
    """Observed values, nan where missing."""
    scale: Float64[np.ndarray, " N"]

    @property
    def fits(self) -> Bool[np.ndarray, "M N"]:
        """Whether each law fits each window."""
        return ~np.isnan(self.quantiles).any((2, 3))

    def __getitem__(self, rows: np.ndarray) -> "Evidence":
        """The evidence of some windows."""
        return Evidence(quantiles=self.quantiles[:, rows], truth=self.truth[rows], scale=self.scale[rows])

    def joined(self, other: "Evidence") -> "Evidence":
        """This evidence and another of the same laws, one after the other."""
        return Evidence(
            quantiles=np.concatenate([self.quantiles, other.quantiles], 1),
            truth=np.concatenate([self.truth, other.truth]),
            scale=np.concatenate([self.scale, other.scale]),
        )


def shares(weights: Float64[np.ndarray, " M"], fits: Bool[np.ndarray, "M N"]) -> Float64[np.ndarray, "M N"]:
    """Weights of the laws that fit each window, with sum one; equal ones where all of them have weight zero.

    >>> shares(np.array([0.5, 0.25, 0.25]), np.array([[True], [True], [False]]))[:, 0].round(3).tolist()
    [0.667, 0.333, 0.0]
    """
    held = weights[:, None] * fits
    total = held.sum(0)
    return np.where(total > 0, held / np.where(total > 0, total, 1.0), fits / np.maximum(fits.sum(0), 1))


def learned_weights(
    evidence: Evidence, prior: Float64[np.ndarray, " M"], strength: float = STRENGTH
) -> Float64[np.ndarray, " M"]:
    """Weights of least mean quantile loss, shrunk towards the prior."""
    there = prior > 0
    usable = evidence.fits[there].any(1)
    if not len(evidence.truth) or usable.sum() < 2:
        return prior
    data = _rows(evidence, there)
    reference = torch.from_numpy(np.log(prior[there]))
    logits = reference.clone().requires_grad_(True)
    before = float(_loss(data, reference))
    if not before > 0:
        return prior
    optimiser = torch.optim.Adam([logits], lr=RATE)
    for _ in range(STEPS):
        optimiser.zero_grad()
        apart = (logits.softmax(0) * (logits.log_softmax(0) - reference.log_softmax(0))).sum()
        (_loss(data, logits) / before + strength / len(evidence.truth) * apart).backward()
        optimiser.step()
    found = np.zeros_like(prior)
    found[there] = logits.detach().softmax(0).numpy()
    return found


@dataclass(frozen=True, kw_only=True, eq=False)
class _Rows:
    """Values with their laws' deciles, for the loss."""

    quantiles: Tensor  # M R Q
    truth: Tensor  # R
    scale: Tensor  # R
    fits: Tensor  # M R
    levels: Tensor  # Q


def _rows(evidence: Evidence, there: Bool[np.ndarray, " M"]) -> _Rows:
    window, step = np.nonzero(~np.isnan(evidence.truth) & evidence.fits[there].any(0)[:, None])
    if len(window) > MOST_ROWS:
        some = np.linspace(0, len(window) - 1, MOST_ROWS).round().astype(int)
        window, step = window[some], step[some]
    quantiles = evidence.quantiles[there][:, window, step][..., DECILES]
    return _Rows(
        quantiles=torch.from_numpy(np.nan_to_num(quantiles)),
        truth=torch.from_numpy(evidence.truth[window, step]),
        scale=torch.from_numpy(evidence.scale[window]),
        fits=torch.from_numpy(evidence.fits[there][:, window].astype(np.float64)),
        levels=torch.from_numpy(GRID[DECILES]),
    )


def _loss(data: _Rows, logits: Tensor) -> Tensor:
    held = logits.softmax(0)[:, None] * data.fits
    pooled = ((held / held.sum(0))[..., None] * data.quantiles).sum(0)  # R Q
    error = data.truth[:, None] - pooled
    return (torch.maximum(data.levels * error, (data.levels - 1) * error) / data.scale[:, None]).mean()
