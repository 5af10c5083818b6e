r"""Weights of several laws in one: least quantile loss on windows that came later, shrunk towards a prior.

.. math:: \min_w \; \frac{L(w)}{L(w_0)} + \frac{12 \lambda}{n}\,\mathrm{KL}(w \,\|\, w_0), \qquad
    L(w) = \overline{\sum_\tau \rho_\tau\big(y - \textstyle\sum_m w_m q_{m\tau}\big) / s}

over n values whose errors are divided by the scale s of their window, with $w_0 \propto v_m (L_m / L(v))^{-4}$: the
prior v, equal weights at first, times a power of each law's own loss. Weights of least loss alone follow the noise of a
handful of windows, those of the power ignore how laws complete each other; one is shrunk towards the other. A law that
does not fit a window is left out of it, and the other weights are divided by their sum.

Reference: Yao, Vehtari, Simpson and Gelman (2018), Using stacking to average Bayesian predictive distributions,
Bayesian Analysis 13:917 (there by the log score; here by the quantile loss, which the forecast is judged by); Bates
and Granger (1969), The combination of forecasts, OR 20:451 (weights by the inverse of errors).
"""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float64
from scipy.special import softmax

from sgfn.series.laid_laws import laid_into
from sgfn.series.quantile_laws import GRID
from sgfn.series.supports import Support

DECILES = np.flatnonzero(np.isclose(GRID * 10 % 1, 0) | np.isclose(GRID * 10 % 1, 1))
"""Places of the levels .1, ..., .9 in the grid: the loss is over them."""
STRENGTH = 4.0
"""Weight of what weights are shrunk towards, in dozens of values."""
POWER, LEAST_RATIO = 4.0, 0.01
"""Power of a law's inverse loss in what weights are shrunk towards; least loss, relative to the pool's, that counts."""
DOZEN = 12
MOST_LOSS = 4.0
"""Loss of a window, in those of the median window, above which it counts for no more."""
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
    supports: tuple[Support, ...] = ()
    """Support of each window; none given is any number."""

    @property
    def fits(self) -> Bool[np.ndarray, "M N"]:
        """Whether each law fits each window."""
        return fitting(self.quantiles)

    def __getitem__(self, rows: np.ndarray) -> "Evidence":
        """The evidence of some windows."""
        supports = tuple(self.supports[row] for row in np.arange(len(self.truth))[rows]) if self.supports else ()
        return Evidence(
            quantiles=self.quantiles[:, rows], truth=self.truth[rows], scale=self.scale[rows], supports=supports
        )

    def laid(self) -> "Evidence":
        """The evidence with quantiles laid into the supports, as forecasts are."""
        found = laid_into(self.supports, np.moveaxis(self.quantiles, 1, 0)) if self.supports else self.quantiles
        return replace(self, quantiles=np.moveaxis(found, 0, 1) if self.supports else found)

    def joined(self, other: "Evidence") -> "Evidence":
        """This evidence and another of the same laws, one after the other."""
        return Evidence(
            quantiles=np.concatenate([self.quantiles, other.quantiles], 1),
            truth=np.concatenate([self.truth, other.truth]),
            scale=np.concatenate([self.scale, other.scale]),
            supports=self.supports + other.supports,
        )


def fitting(quantiles: Float64[np.ndarray, "M N H Q"]) -> Bool[np.ndarray, "M N"]:
    """Whether each law fits each window: it has no quantile that is nan."""
    return np.isfinite(quantiles).all(axis=(2, 3))  # pyright: ignore[reportReturnType]


def shares(weights: Float64[np.ndarray, "M N"], fits: Bool[np.ndarray, "M N"]) -> Float64[np.ndarray, "M N"]:
    """Weights of the laws that fit each window, with sum one; equal ones where all of them have weight zero.

    >>> shares(np.array([[0.5], [0.25], [0.25]]), np.array([[True], [True], [False]]))[:, 0].round(3).tolist()
    [0.667, 0.333, 0.0]
    """
    held = weights * fits
    total = held.sum(0)
    return np.where(total > 0, held / np.where(total > 0, total, 1.0), fits / np.maximum(fits.sum(0), 1))


def learned_weights(
    evidence: Evidence, prior: Float64[np.ndarray, " M"], strength: float = STRENGTH
) -> Float64[np.ndarray, " M"]:
    """Weights of least mean quantile loss, shrunk towards those by inverse loss; by Adam over their logarithms."""
    there = prior > 0
    if not len(evidence.truth) or evidence.fits[there].any(1).sum() < 2:
        return prior
    data = _rows(tempered(evidence, prior), there)
    reference = np.log(by_loss(data, prior[there] / prior.sum()))
    before = _loss(data, np.exp(reference))[0]
    values = int((~np.isnan(evidence.truth)).sum())
    if not before > 0:
        return prior
    logits, first, second = reference.copy(), np.zeros_like(reference), np.zeros_like(reference)
    for step in range(1, STEPS + 1):
        weights = softmax(logits)
        apart = np.log(np.maximum(weights, 1e-300)) - reference
        slope = _loss(data, weights)[1] / before
        slope += strength * DOZEN / values * weights * (apart - weights @ apart)
        first, second = 0.9 * first + 0.1 * slope, 0.99 * second + 0.01 * np.square(slope)
        logits -= RATE * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.99**step)) + 1e-10)
    found = np.zeros_like(prior)
    found[there] = softmax(logits)
    return found


def tempered(evidence: Evidence, prior: Float64[np.ndarray, " M"]) -> Evidence:
    """Evidence in which no window counts for more than `MOST_LOSS` times the median one, under the prior's weights.

    A window with a break in it, which no law could have foreseen, would decide alone otherwise.
    """
    held = shares(np.repeat(prior[:, None], len(evidence.truth), 1), evidence.fits)
    pooled = np.einsum("mn,mnhq->nhq", held, np.nan_to_num(evidence.quantiles[..., DECILES]))
    error, levels = evidence.truth[..., None] - pooled, GRID[DECILES]
    loss = np.maximum(levels * error, (levels - 1) * error).mean(-1) / evidence.scale[:, None]  # N H
    seen = ~np.isnan(loss)
    each = np.where(seen, loss, 0.0).sum(1) / np.maximum(seen.sum(1), 1)
    usual = float(np.median(each[seen.any(1)])) if seen.any() else 0.0
    if not usual > 0:
        return evidence
    return replace(evidence, scale=evidence.scale * np.maximum(each / (MOST_LOSS * usual), 1.0))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Rows:
    """R values with the deciles of the laws, for the loss."""

    quantiles: Float64[np.ndarray, "M R Q"]
    truth: Float64[np.ndarray, " R"]
    scale: Float64[np.ndarray, " R"]
    fits: Bool[np.ndarray, "M R"]


def _rows(evidence: Evidence, there: Bool[np.ndarray, " M"]) -> _Rows:
    anyone = evidence.fits[there].any(axis=0, keepdims=True).T  # N 1
    window, step = np.nonzero(~np.isnan(evidence.truth) & anyone)
    if len(window) > MOST_ROWS:
        some = np.linspace(0, len(window) - 1, MOST_ROWS).round().astype(int)
        window, step = window[some], step[some]
    return _Rows(
        quantiles=np.nan_to_num(evidence.quantiles[there][:, window, step][..., DECILES]),
        truth=evidence.truth[window, step],
        scale=evidence.scale[window],
        fits=evidence.fits[there][:, window],
    )


def by_loss(data: _Rows, prior: Float64[np.ndarray, " M"]) -> Float64[np.ndarray, " M"]:
    """The prior times a power of each law's inverse loss, relative to that of the pool on the values it forecasts."""
    held = shares(np.repeat(prior[:, None], len(data.truth), 1), data.fits)
    pool = _pinball(data, np.einsum("mr,mrq->rq", held, data.quantiles))
    own = np.stack([_pinball(data, one) @ fits for one, fits in zip(data.quantiles, data.fits, strict=True)])
    same = data.fits @ pool
    ratio = np.divide(own, same, out=np.ones_like(own), where=same > 0)
    found = prior * np.clip(ratio, LEAST_RATIO, 1 / LEAST_RATIO) ** -POWER
    return found / found.sum()


def _pinball(data: _Rows, quantiles: Float64[np.ndarray, "R Q"]) -> Float64[np.ndarray, " R"]:
    """Mean quantile loss of each value."""
    error, levels = data.truth[:, None] - quantiles, GRID[DECILES]
    return np.maximum(levels * error, (levels - 1) * error).mean(1) / data.scale


def _loss(data: _Rows, weights: Float64[np.ndarray, " M"]) -> tuple[float, Float64[np.ndarray, " M"]]:
    """Mean quantile loss of the pooled law, and its gradient with respect to the logarithms of the weights."""
    held = shares(np.repeat(weights[:, None], len(data.truth), 1), data.fits)  # M R
    pooled = np.einsum("mr,mrq->rq", held, data.quantiles)
    error, levels = data.truth[:, None] - pooled, GRID[DECILES]
    loss = np.maximum(levels * error, (levels - 1) * error) / data.scale[:, None]
    by_quantile = -(levels - (error < 0)) / data.scale[:, None] / loss.size
    by_share = np.einsum("rq,mrq->mr", by_quantile, data.quantiles)
    return float(loss.mean()), (held * (by_share - (held * by_share).sum(0))).sum(1)
