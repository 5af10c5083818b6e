"""What a library is worth: expected score, chance of no stop, effective size, best of n clones, clones for coverage."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import lgamma

import numpy as np
from jaxtyping import Float, Float64

from sgfn.design.libraries.codons import STOP, entropy
from sgfn.design.libraries.library import Laws, Library
from sgfn.design.libraries.scores import LibraryScore, Outcomes, TableScore, joint

COVERAGE = 0.95
"""Share of a library's variants that is to be found."""
BLOCKS = 10
"""Blocks of draws whose spread tells a standard error."""
MOST_LEVELS = 200_000
"""Different probabilities of variants that are kept apart; beyond, they are rounded."""


@dataclass(frozen=True, kw_only=True)
class LibraryValue:
    """A library and what to expect of it, in the units of the scores."""

    name: str
    codons: tuple[str, ...]
    expected: float
    """E[score] of a clone; one with a stop has the score of stops."""
    expected_error: float
    """Standard error of that, zero where it is exact."""
    no_stop: float
    """P(no stop)."""
    size: float
    """Effective size: exp of the entropy of what comes out, stops included."""
    clones: int
    best: float
    """E[best score of that many clones]; with a proxy, the mean over draws of its posterior."""
    best_error: float
    """Standard error of that, zero where it is exact."""
    variants: float
    """Different proteins without a stop."""
    screened: float
    """Clones at which 95 % of the variants are expected to have been seen."""
    exact: bool
    """Whether all figures are exact."""

    @property
    def oversampling(self) -> float:
        """Clones for 95 % of the variants, for each variant."""
        return self.screened / self.variants if self.variants else float("nan")


def value_library(library: Library, score: LibraryScore, clones: int = 96, seed: int = 0) -> LibraryValue:
    """Everything that is to be expected of a library."""
    found = score.outcomes(library.laws, seed)
    best, best_error = best_of(found, clones)
    expected, error = float(score.expected(library.laws[None])[0]), 0.0
    if not score.exact:
        expected, error = float(found.values[0].mean()), float(found.values[0].std() / len(found.probability) ** 0.5)
    variants, screened = screening(library.laws)
    return LibraryValue(
        name=library.name,
        codons=library.codons,
        expected=expected,
        expected_error=error,
        no_stop=library.no_stop,
        size=library.size,
        clones=clones,
        best=best,
        best_error=best_error,
        variants=variants,
        screened=screened,
        exact=score.exact and not found.drawn,
    )


def best_of(found: Outcomes, clones: int) -> tuple[float, float]:
    r"""E[max of n clones] and its standard error, a mean over members.

    .. math:: E[\max] = \sum_v v\,(F(v)^n - F(v-)^n)
    """
    if not found.drawn:
        return float(np.mean([expected_maximum(values, found.probability, clones) for values in found.values])), 0.0
    members = found.values[1:] if len(found.values) > 1 else found.values
    blocks = np.array_split(members, BLOCKS, axis=1)
    each = np.array([np.mean([drawn_maximum(values, clones) for values in block]) for block in blocks])
    return float(each.mean()), float(each.std(ddof=1) / BLOCKS**0.5)


def expected_maximum(values: Float[np.ndarray, " N"], probability: Float64[np.ndarray, " N"], clones: int) -> float:
    """Expected highest value of so many independent draws.

    >>> expected_maximum(np.array([0.0, 1.0]), np.array([0.5, 0.5]), 2)
    0.75
    """
    order = np.argsort(values)
    below = np.minimum(np.cumsum(probability[order]), 1.0) ** clones
    below[-1] = 1.0
    return float(values[order] @ np.diff(below, prepend=0.0))


def drawn_maximum(values: Float[np.ndarray, " N"], clones: int) -> float:
    r"""Unbiased E[max of n] from N draws: $\sum_i v_{(i)} \binom{i-1}{n-1} / \binom{N}{n}$."""
    count = len(values)
    if clones > count:
        raise ValueError(f"clones must be at most {count:,} where outcomes are drawn, got {clones:,}")
    log_factorial = np.array([lgamma(i + 1) for i in range(count + 1)])
    rank = np.arange(clones, count + 1)
    log_ways = log_factorial[rank - 1] - log_factorial[rank - clones] - log_factorial[clones - 1]
    log_all = log_factorial[count] - log_factorial[clones] - log_factorial[count - clones]
    return float(np.sort(values)[clones - 1 :] @ np.exp(log_ways - log_all))


def screening(laws: Laws, share: float = COVERAGE) -> tuple[float, float]:
    r"""Variants without a stop of a library, and clones at which $E[\sum_x 1 - (1-p_x)^n]$ is that share of them.

    >>> variants, clones = screening(np.pad(np.full((1, 10), 0.1), ((0, 0), (0, 11))))
    >>> variants, round(clones, 1)  # ln 0.05 / ln 0.9
    (10.0, 28.4)
    """
    log_p, count = probability_levels(laws)
    variants = float(count.sum())
    if not variants:
        return 0.0, float("nan")
    missed = np.log1p(-np.minimum(np.exp(log_p), 1.0 - 1e-15))
    low, high = 0.0, 1.0
    while count @ np.exp(high * missed) > (1.0 - share) * variants:
        low, high = high, 2.0 * high
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (middle, high) if count @ np.exp(middle * missed) > (1.0 - share) * variants else (low, middle)
    return variants, high


def probability_levels(laws: Laws) -> tuple[Float64[np.ndarray, " N"], Float64[np.ndarray, " N"]]:
    """Different log-probabilities of variants without a stop, and how many variants have each."""
    levels, counts = np.zeros(1), np.ones(1)
    for law in laws:
        own, times = np.unique(np.log(law[:STOP][law[:STOP] > 0]).round(9), return_counts=True)
        levels, counts = (levels[:, None] + own).ravel(), (counts[:, None] * times).ravel()
        digits = 9 if len(levels) <= MOST_LEVELS else 3
        levels, place = np.unique(levels.round(digits), return_inverse=True)
        counts = np.bincount(place, counts, minlength=len(levels)).astype(np.float64)
    return levels, counts


@dataclass(frozen=True, kw_only=True)
class PoolValue:
    """What to expect of libraries that are pooled, each with its share; exact."""

    expected: float
    no_stop: float
    size: float
    clones: int
    best: float


def value_pool(
    libraries: Sequence[Library], weights: Float64[np.ndarray, " N"], score: TableScore, clones: int
) -> PoolValue:
    """Figures of the mixture."""
    law = pool_law(libraries, weights)
    values = score.members.reshape(len(score.members), -1)
    best = np.mean([expected_maximum(one, law.ravel(), clones) for one in values])
    return PoolValue(
        expected=float((law * score.table).sum()),
        no_stop=float(law[tuple([slice(STOP)] * law.ndim)].sum()),
        size=float(np.exp(entropy(law.ravel()))),
        clones=clones,
        best=float(best),
    )


def pool_law(libraries: Sequence[Library], weights: Float64[np.ndarray, " N"]) -> Float64[np.ndarray, "..."]:
    """Law of what comes out of pooled libraries."""
    parts = (weight * joint(list(one.laws)) for weight, one in zip(weights, libraries, strict=True))
    return np.sum(list(parts), axis=0)
