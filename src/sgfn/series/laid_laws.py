"""Laws of values that are laid into a support: their values, means and normal scores, and spreads that keep means.

A bound of the support is an atom with all mass beyond it, a whole number has the mass within a half of it.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64

from sgfn.series.count_laws import pooled_counts
from sgfn.series.quantile_laws import FAR, QuantileLaw
from sgfn.series.supports import REAL, Support

AT_ONCE = 256
"""Windows whose means are computed at once, and steps whose probabilities are pooled at once."""
SMALL = 200.0
"""Greatest value of a law of small counts."""
OFTEN = 0.1
"""Probability of the least count from which on a law has a mean to keep."""
FARTHEST, HALVINGS = 1.5, 12
"""Greatest shift of normal scores, and steps by which one is found."""
SHARES = (np.arange(200) + 0.5) / 200
"""Levels of equal shares of the mass."""

Columns = np.ndarray
"""Numbers of windows as columns, [W, 1]."""


def laid_into(supports: Sequence[Support], values: Float64[np.ndarray, " W *rest"]) -> Float64[np.ndarray, " W *rest"]:
    """Values of windows laid into the support of each; no support given is any number."""
    if all(one == REAL for one in supports):
        return values
    return np.stack([support.project(part) for support, part in zip(supports, values, strict=True)])


def laid_means(supports: Sequence[Support], law: QuantileLaw) -> Float64[np.ndarray, "W H"]:
    """Means of laws laid into supports, over 400 equal shares of the mass; of some windows at once to bound memory."""
    shares, found = (np.arange(400) + 0.5) / 400, np.empty(law.values.shape[:-1])
    for start in range(0, len(found), AT_ONCE):
        some = slice(start, start + AT_ONCE)
        part = QuantileLaw(values=law.values[some]).quantile(shares)
        found[some] = laid_into(supports[some], part).mean(-1)
    return found


def ends(supports: Sequence[Support], count: int) -> tuple[Columns, Columns, Columns]:
    """Bounds of each window's support, and whether it has whole numbers alone, as columns."""
    every = [(one.low, one.high, one.whole) for one in supports or (REAL,) * count]
    low, high, whole = (np.array(part)[:, None] for part in zip(*every, strict=True))
    return low, high, whole


def laid_scores(
    supports: Sequence[Support], law: QuantileLaw, values: Float64[np.ndarray, "W H"]
) -> tuple[Float64[np.ndarray, "W H"], Float64[np.ndarray, "W H"]]:
    """Least and greatest normal score of each value under laws laid into supports.

    >>> law, count = QuantileLaw.normal(np.zeros((1, 1)), np.ones((1, 1))), Support(low=0.0, whole=True)
    >>> [one.round(2).tolist() for one in laid_scores([count], law, np.zeros((1, 1)))]
    [[[-1000.0]], [[0.5]]]
    """
    low, high, whole = ends(supports, len(values))
    half = np.where(whole, 0.5, 0.0)
    below, above = law.scores(values - half)[0], law.scores(values + half)[1]
    return np.where(values <= low, -FAR, below), np.where(values >= high, FAR, above)


def with_pooled_counts(
    law: QuantileLaw,
    members: Float64[np.ndarray, "M W H Q"],
    weights: Float64[np.ndarray, "M W"],
    supports: Sequence[Support],
) -> QuantileLaw:
    """A pooled law in which steps of small counts that are often zero have the members' pooled probabilities instead.

    Quantiles of such laws are whole numbers, whose means say little: of two laws that are 0 and 1, or always one half.
    Other steps of the same window (days, where nights have none) keep their pooled quantiles: pooled probabilities are
    as wide as the members lie apart.
    """
    low, _, whole = ends(supports, len(law.values))
    small = whole & np.isfinite(low) & (law.values[..., -1] <= SMALL)
    rows = np.flatnonzero(small.any(1))
    if not len(rows):
        return law
    zero = np.repeat(low[rows], small.shape[1], 1) + 0.5
    least = np.stack([QuantileLaw(values=one).cdf(zero) for one in members[:, rows]])
    often = np.einsum("mw,mwh->wh", weights[:, rows], least) >= OFTEN
    row, step = np.nonzero(small[rows] & often)
    window, values = rows[row], law.values.copy()
    for bound in np.unique(low[window, 0]):
        here = np.flatnonzero(low[window, 0] == bound)
        for some in np.split(here, range(AT_ONCE, len(here), AT_ONCE)):
            at, when = window[some], step[some]
            values[at, when] = pooled_counts(members[:, at, when], weights[:, at], float(bound))
    return QuantileLaw(values=values)


def laid_spread(supports: Sequence[Support], law: QuantileLaw, factors: Float64[np.ndarray, "W H"]) -> QuantileLaw:
    r"""Laws with their normal scores stretched; the means of counts that are often zero stay, other laws' medians.

    Such a law becomes $q(\Phi(s\,\Phi^{-1}(\tau) + c))$ with the shift c that keeps its mean. Without it, a law of
    mostly zeros would expect more wherever it becomes wider.
    """
    wider, (low, _, whole) = law.spread(factors), ends(supports, len(law.values))
    often = whole & np.isfinite(low) & (law.cdf(low + 0.5 + 0.0 * factors) >= OFTEN) & (factors != 1.0)
    window, step = np.nonzero(often)
    if not len(window):
        return wider
    values = wider.values.copy()
    some = QuantileLaw(values=law.values[window, step])
    values[window, step] = _kept_means(low[window, 0], some, factors[window, step]).values
    return QuantileLaw(values=values)


def _kept_means(low: Float64[np.ndarray, " K"], law: QuantileLaw, factors: Float64[np.ndarray, " K"]) -> QuantileLaw:
    """Stretched laws of counts with the shifts that keep their means, by bisection."""
    wanted = _count_means(low, law)
    least, most = np.full(len(factors), -FARTHEST), np.full(len(factors), FARTHEST)
    for _ in range(HALVINGS):
        middle = (least + most) / 2
        above = _count_means(low, law.spread(factors, middle)) > wanted
        least, most = np.where(above, least, middle), np.where(above, middle, most)
    return law.spread(factors, (least + most) / 2)


def _count_means(low: Float64[np.ndarray, " K"], law: QuantileLaw) -> Float64[np.ndarray, " K"]:
    """Means of laws laid onto whole numbers from a least one on."""
    return np.rint(np.maximum(law.quantile(SHARES), low[:, None])).mean(-1)
