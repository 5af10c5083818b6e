r"""Laws of counts by their quantiles, and the law of counts with a season.

A count law with the distribution function F is kept as a continuous quantile function q with $F(k) = P(q \le k + 1/2)$
for each whole number k, straight over the normal scores in between. Laid onto whole numbers it is the count law again
at all levels of the grid, and nearly so between them: steps of whole quantiles would be known to the next level only.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float64
from scipy.signal import lfilter
from scipy.special import ndtri
from scipy.stats import nbinom, poisson

from sgfn.series.quantile_laws import GRID, NODES, QuantileLaw

Values = Float64[np.ndarray, " T"]
Grid = Float64[np.ndarray, "H Q"]

POISSON = 1.001
"""Ratio of variance and mean up to which counts are Poisson."""
FORGOTTEN = (0.0, 0.01, 0.03, 0.1)
"""Shares of what is known of a level that it loses with each step, one of which is chosen."""
SAID = 0.5
"""Events by which a mean is known beforehand."""
LOW, MEDIAN, HIGH = (int(np.argmin(np.abs(GRID - level))) for level in (0.05, 0.5, 0.95))
FEWEST = 1e-3
"""Least mean of a law of counts."""
TINY, RISE = 1e-12, 1e-9
"""Least probability of a cdf, and least difference of the scores of two counts."""
BELOW = 9.5
"""How far below its least count the quantile function of a count law goes at most."""
LEAST = 1e-9
"""Least level, of a share of one."""
MOST = 2000.0
"""Counts above the least at which probabilities are pooled."""
FINEST = 400
"""Whole numbers at which a distribution function is asked at most; of more the quantiles themselves are near enough."""


def count_quantiles(mean: float, ratio: float) -> Float64[np.ndarray, " Q"]:
    """Quantiles of counts with a mean and a ratio of variance and mean: negative binomial, or Poisson up to one.

    >>> np.rint(count_quantiles(0.3, 1.0)).clip(0).tolist() == poisson.ppf(GRID, 0.3).tolist()
    True
    """
    law, how = (poisson, (mean,)) if ratio <= POISSON else (nbinom, (mean / (ratio - 1), 1 / ratio))
    return between_counts(np.asarray(law.ppf(GRID, *how), dtype=np.float64), lambda counts: law.cdf(counts, *how))


def between_counts(
    quantiles: Float64[np.ndarray, " Q"], cdf: Callable[[Float64[np.ndarray, " K"]], Float64[np.ndarray, " K"]]
) -> Float64[np.ndarray, " Q"]:
    """The continuous quantile function of a count law, at the levels of the grid, from its quantiles and its cdf."""
    least, most = quantiles[0], quantiles[-1]
    if most - least > FINEST:
        return quantiles
    counts = np.arange(least, max(most, least + 1) + 1)
    return continuous(np.asarray(cdf(counts))[None], least)[0]


def continuous(cdf: Float64[np.ndarray, "N K"], least: float) -> Float64[np.ndarray, "N Q"]:
    """Continuous quantile functions of count laws, from their cdf at a least count and those that follow it.

    Below the least count the line goes on as steeply as above it, so that its probability is kept between levels too.
    """
    scores, counts = ndtri(np.clip(cdf, TINY, 1 - TINY)), least + 0.5 + np.arange(cdf.shape[1])
    scores = np.maximum.accumulate(scores + RISE * np.arange(cdf.shape[1]), axis=1)
    place = np.clip((scores[:, :, None] < NODES).sum(1), 1, len(counts) - 1)
    left, right = (np.take_along_axis(scores, place + shift, 1) for shift in (-1, 0))
    return np.maximum(counts[place] + (NODES - right) / (right - left), least - BELOW)


def as_counts(quantiles: Grid, past: Values) -> Grid:
    """Count laws with the means and deviations of normal laws, where these reach below zero; other laws as they are.

    The variance is that of each step, shared out in proportion to the means: where few are expected, few vary. Its
    ratio to the mean is at most that of the past.
    """
    if quantiles[:, LOW].min() >= 0:
        return quantiles
    means = np.maximum(quantiles[:, MEDIAN], FEWEST)
    deviations = (quantiles[:, HIGH] - quantiles[:, LOW]) / (NODES[HIGH] - NODES[LOW])
    most = dispersion(past - past.mean(), np.full_like(past, past.mean()))
    ratios = np.minimum(np.square(deviations) / means.mean(), most)
    return np.stack([count_quantiles(*one) for one in zip(means.tolist(), ratios.tolist(), strict=True)])


def counted(values: Values) -> Float64[np.ndarray, " Q"]:
    """Quantiles of the law of counts that are there."""
    ordered = np.sort(values)
    return between_counts(
        np.quantile(values, GRID, method="inverted_cdf"),
        lambda counts: np.searchsorted(ordered, counts, side="right") / len(values),
    )


def dispersion(errors: Values, means: Values) -> float:
    """Ratio of variance and mean that counts had about their means; one where nothing was expected."""
    return float(np.square(errors).sum() / means.sum()) if means.sum() > 0 else 1.0


def seasonal_counts(values: Values, steps: int, horizon: int) -> Grid:
    """Counts with a season of so many steps: the mean of each phase, times a level that may drift.

    The level forgets at the rate under which each value was likeliest before it came; the dispersion is that about
    these forecasts of one step.
    """
    mean = max(float(values.mean()), SAID / len(values))
    phase = np.arange(len(values) + horizon) % steps
    total, count = (np.bincount(phase[: len(values)], some, steps) for some in (values, np.ones_like(values)))
    season = (total + SAID) / (count * mean + SAID)
    share = season[phase]
    every = [_levels(values, share[: len(values)], mean, rate) for rate in FORGOTTEN]
    late = slice(min(steps, len(values) - 1), None)
    fits = [np.sum((level[:-1] * share[: len(values)] - values * np.log(level[:-1]))[late]) for level in every]
    level = every[int(np.argmin(fits))]
    expected = (level[:-1] * share[: len(values)])[late]
    ratio = dispersion(values[late] - expected, expected)
    return np.stack([count_quantiles(one, ratio) for one in level[-1] * share[len(values) :]])


def _levels(values: Values, share: Values, mean: float, forgotten: float) -> Float64[np.ndarray, " T+1"]:
    """Level before each value and after the last: events over expected shares, both forgotten at a rate."""
    kept = [1.0, forgotten - 1.0]
    seen, wanted = (np.asarray(lfilter([1.0], kept, some)) for some in (np.r_[SAID, values], np.r_[SAID / mean, share]))
    return np.maximum(seen / wanted, LEAST)


def pooled_counts(
    laws: Float64[np.ndarray, "M N Q"], weights: Float64[np.ndarray, "M N"], least: float
) -> Float64[np.ndarray, "N Q"]:
    """Count laws whose probabilities are the weighted means of those of M members, and whose means are so too.

    Members end `MOST` above the least count: one that hardly counts may reach to millions.
    """
    laws = np.minimum(laws, least + MOST)
    most = max(np.ceil(laws[..., -1].max()), least + 1)
    counts = np.arange(least, most + 1) + 0.5
    found = np.zeros((laws.shape[1], len(counts)))
    for law, weight in zip(laws, weights, strict=True):
        every = QuantileLaw(values=np.repeat(law[:, None], len(counts), 1))
        found += weight[:, None] * every.cdf(np.broadcast_to(counts, found.shape))
    return continuous(found, least)
