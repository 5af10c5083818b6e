"""The stack: weights and spreads of the laws that a forecast consists of, learned on windows inside the training data.

For each series the last windows of its training part are forecast from what came before them, by every classical law
and by a network that has not learned from them. Weights are learned for all windows together, then for each group of
series, then for each series that has several windows, each time shrunk towards those before.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Bool, Float64

from sgfn.series.bank import Bank
from sgfn.series.calibration import ATOM, spread_scores, step_spreads
from sgfn.series.joint import Dependence
from sgfn.series.laid_laws import laid_scores, laid_spread, with_pooled_counts
from sgfn.series.quantile_laws import QuantileLaw, pooled
from sgfn.series.supports import Support
from sgfn.series.weights import STRENGTH, Evidence, fitting, learned_weights, shares

GROUP_STRENGTH, SERIES_STRENGTH = 2.0, 4.0
"""Weight, in dozens of values, of the weights of all windows in those of a group, and of a group's in a series'."""
GROUP_WINDOWS, SERIES_WINDOWS = 6, 3
"""Least number of windows from which a group, and a series, has weights of its own."""
PRIORS = {
    **{"seasonal naive": 0.3, "AutoETS": 2.0, "pretrained": 2.0, "log pretrained": 2.0},
    **dict.fromkeys(("log AutoTheta", "log AutoARIMA", "log MSTL"), 0.5),
}
"""Weight of laws before anything is known, where it is not one: seasonal naive is there to fall back on, a model of
logarithms is another one of a model that is there, and the others were better by themselves on the series of
development. The network has one: it is judged before it learns from the windows, and is better afterwards."""
EVEN, LEAST_WEIGHT = 1.0, 1e-9
"""Square of the windows side by side of which as much is learned as is known before; least weight then.

The weights that are learned are shrunk by their values already; what is added here, since values of one window are
alike, is gone with a dozen windows.
"""
FEW = 2.0
"""Power of the share of windows by which a law can be judged, in its weight before anything is known."""
TIE = 0.5
"""Correlation of the normal scores of neighbouring steps where nothing is known of it."""
TIE_PRIOR = 2.0
"""Weight of that, in windows."""


Weights = Float64[np.ndarray, " M"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Stack:
    """Weights of laws for each series, and how much wider or narrower the pooled law of each step should be."""

    names: tuple[str, ...]
    weights: Float64[np.ndarray, " M"]
    """Of all windows together."""
    by_group: dict[str, Float64[np.ndarray, " M"]] = field(default_factory=dict)
    by_series: dict[str, Float64[np.ndarray, " M"]] = field(default_factory=dict)
    spreads: Float64[np.ndarray, " H"]
    tie: float
    """Correlation of the normal scores of neighbouring steps."""
    windows: int
    """Number of windows by which it was learned."""
    scores: Float64[np.ndarray, "N H P"] | None = None
    """Normal scores of the values of these windows under the pooled law without its spreads; nan where missing."""
    ended: Float64[np.ndarray, " N"] | None = None
    """When each of these windows ended, in horizons."""
    dependence: Dependence | None = None
    """How series depend on each other at the same time; None where nothing is known of it."""

    def weights_of(self, series: str, group: str) -> Float64[np.ndarray, " M"]:
        """Weights of a series: its own, those of its group, or those of all."""
        return self.by_series.get(series, self.by_group.get(group, self.weights))

    def spread(self, law: QuantileLaw, supports: Sequence[Support] = ()) -> QuantileLaw:
        """A pooled law with the spread of each step; the means of counts that are often zero stay."""
        return laid_spread(supports, law, np.broadcast_to(self.spreads, law.values.shape[:-1]))

    def plain_law(
        self,
        quantiles: Float64[np.ndarray, "M W H Q"],
        weights: Float64[np.ndarray, "M W"],
        supports: Sequence[Support] = (),
    ) -> QuantileLaw:
        """Pooled law of windows as the laws have it: of quantiles, or of probabilities where counts are often zero."""
        held, members = shares(weights, fitting(quantiles)), np.nan_to_num(quantiles)
        law = pooled(members, np.repeat(held[..., None], quantiles.shape[2], -1))
        return with_pooled_counts(law, members, held, supports)

    def spreads_after(
        self, scores: Float64[np.ndarray, "N H P"], ended: Float64[np.ndarray, " N"]
    ) -> Float64[np.ndarray, " H"]:
        """Spread of each step where the scores of later windows are known, too, and when they ended, in horizons."""
        if self.scores is None or self.ended is None:
            return step_spreads(scores, ended)
        return step_spreads(np.concatenate([self.scores, scores]), np.concatenate([self.ended, ended]))


def group_of(bank: Bank, number: int, cut: int) -> str:
    """Group of a series: intermittent or not, and its length in powers of four."""
    values = bank.panel.series[number].values[:cut]
    kind = "intermittent" if bank.history((number, cut)).intermittent else "regular"
    length = int(np.log2(max((~np.isnan(values)).sum(), 1)) // 2)
    return f"{kind}, {4**length:,} to {4 ** (length + 1) - 1:,} values"


def learn_stack(
    names: tuple[str, ...],
    evidence: Evidence,
    series: Sequence[str],
    groups: Sequence[str],
    ended: Float64[np.ndarray, " N"] | None = None,
    *,
    equal: bool = False,
) -> Stack:
    """Weights and spreads from windows that were forecast by all laws; `series` and `groups` are those of windows.

    `ended` tells when each window ended, in horizons; without it all count alike for the spreads. With `equal` the
    weights are those before anything is known, and only the spreads are learned.
    """
    horizon = evidence.truth.shape[1]
    prior = usual_weights(names, evidence, series, ended)
    plain = Stack(names=names, weights=prior, spreads=np.ones(horizon), tie=TIE, windows=len(evidence.truth))
    if not len(evidence.truth):
        return plain
    plain = replace(plain, ended=np.zeros(len(evidence.truth)) if ended is None else ended)
    if equal:
        return calibrated(plain, evidence, series, groups)
    inside = evidence.laid()
    overall = learned_weights(inside, prior, STRENGTH)
    by_group = _finer(inside, groups, lambda _: overall, GROUP_WINDOWS, GROUP_STRENGTH)
    group_by_series = dict(zip(series, groups, strict=True))

    def above(name: str) -> Weights:
        return by_group.get(group_by_series[name], overall)

    by_series = _finer(inside, series, above, SERIES_WINDOWS, SERIES_STRENGTH)
    learned = replace(plain, weights=overall, by_group=by_group, by_series=by_series)
    return nearer_to_usual(calibrated(learned, evidence, series, groups), prior, independent_windows(series, ended))


def usual_weights(
    names: tuple[str, ...], evidence: Evidence, series: Sequence[str], ended: Float64[np.ndarray, " N"] | None = None
) -> Weights:
    """Weights before losses are known: equal ones, but for `PRIORS`, each times how much there is to judge the law by.

    A law without any loss has none, whatever it may say of later windows; where no law has one, all count alike.
    """
    counts = np.array([PRIORS.get(name, 1.0) for name in names])
    judged = counts * judged_shares(evidence, series, ended) ** FEW
    return judged / judged.sum() if judged.any() else counts / counts.sum()


def judged_shares(evidence: Evidence, series: Sequence[str], ended: Float64[np.ndarray, " N"] | None = None) -> Weights:
    """Share of windows, side by side, by which each law can be judged, in the series in which it can be at all.

    A law that begins to fit as a series grows longer is new there; one that fits some series alone is not.
    """
    judged = evidence.fits & ~np.isnan(evidence.truth).all(1)  # M N
    own, all_laws = (side_by_side(some, series, ended) for some in (judged, np.atleast_2d(judged.any(0))))
    among = (all_laws * (own > 0)).sum(1)
    return np.divide(own.sum(1), among, out=np.zeros(len(own)), where=among > 0)


def nearer_to_usual(stack: Stack, prior: Weights, windows: float) -> Stack:
    r"""The stack with weights as far from what is usual as n windows side by side can tell; spreads stay.

    The usual ones have the share $1 / (1 + n^2)$ in logarithms.
    """
    share = EVEN / (EVEN + windows**2)
    finer = (
        {label: evened(one, prior, share) for label, one in some.items()} for some in (stack.by_group, stack.by_series)
    )
    return replace(stack, weights=evened(stack.weights, prior, share), by_group=next(finer), by_series=next(finer))


def evened(weights: Weights, prior: Weights, share: float) -> Weights:
    r"""Weights nearer to what is usual, $w^{1-s} v^s$ with sum one: a law that was far worse than others stays small.

    >>> evened(np.array([0.8, 0.2, 0.0]), np.array([0.5, 0.5, 0.0]), 0.5).round(3).tolist()
    [0.667, 0.333, 0.0]
    """
    found = np.where(prior > 0, np.maximum(weights, LEAST_WEIGHT) ** (1 - share) * prior**share, 0.0)
    return found / found.sum()


def independent_windows(series: Sequence[str], ended: Float64[np.ndarray, " N"] | None) -> float:
    """How many windows side by side would cover what windows of several series cover, which may overlap.

    >>> independent_windows(["a", "a", "a", "b"], np.array([1.0, 1.5, 2.0, 7.0])), independent_windows(["a", "a"], None)
    (3.0, 2.0)
    """
    return float(side_by_side(np.ones((1, len(series)), dtype=bool), series, ended).sum())


def side_by_side(
    judged: Bool[np.ndarray, "M N"], series: Sequence[str], ended: Float64[np.ndarray, " N"] | None
) -> Float64[np.ndarray, "M S"]:
    """How many windows side by side would cover those of each series that are marked, in each of several rows."""
    names, numbers = np.unique(np.array(series, dtype=str), return_inverse=True)
    count, first = np.zeros((len(names), len(judged))), np.full((len(names), len(judged)), np.inf)
    last = -first
    np.add.at(count, numbers, judged.T)
    if ended is None:
        return count.T
    np.minimum.at(first, numbers, np.where(judged, ended, np.inf).T)
    np.maximum.at(last, numbers, np.where(judged, ended, -np.inf).T)
    return np.where(count > 0, np.minimum(count, last - first + 1), 0.0).T


def _finer(
    evidence: Evidence, labels: Sequence[str], prior: Callable[[str], Weights], least: int, strength: float
) -> dict[str, Weights]:
    """Weights by label, where a label is not the only one and has enough windows."""
    where = np.array(labels, dtype=object)
    found = {}
    for label in dict.fromkeys(labels):
        rows = np.flatnonzero(where == label)
        if least <= len(rows) < len(where):
            found[label] = learned_weights(evidence[rows], prior(label), strength)
    return found


def calibrated(stack: Stack, evidence: Evidence, series: Sequence[str], groups: Sequence[str]) -> Stack:
    """The stack with spreads and the correlation of steps, from how values lay in the laws that it pools."""
    weights = np.stack([stack.weights_of(*one) for one in zip(series, groups, strict=True)], 1)
    law = stack.plain_law(evidence.quantiles, weights, evidence.supports)
    scores = scores_of(law, evidence.truth, evidence.supports)
    return replace(stack, spreads=step_spreads(scores, stack.ended), tie=tie_of(scores[..., ATOM // 2]), scores=scores)


def scores_of(
    law: QuantileLaw, truth: Float64[np.ndarray, "N H"], supports: Sequence[Support] = ()
) -> Float64[np.ndarray, "N H P"]:
    """Normal scores of values under laws laid into supports, spread over atoms; nan where a value is missing."""
    low, high = laid_scores(supports, law, np.nan_to_num(truth))
    return np.where(np.isnan(truth)[..., None], np.nan, spread_scores(low, high))


def tie_of(scores: Float64[np.ndarray, "N H"]) -> float:
    """Correlation of neighbouring steps' normal scores about zero, shrunk towards `TIE`."""
    first, second = scores[:, :-1], scores[:, 1:]
    both = ~np.isnan(first) & ~np.isnan(second)
    if not both.any():
        return TIE
    first, second = np.clip(first[both], -4, 4), np.clip(second[both], -4, 4)
    found = float((first * second).mean() / max(np.sqrt(np.square(first).mean() * np.square(second).mean()), 1e-9))
    share = len(scores) / (len(scores) + TIE_PRIOR)
    return float(np.clip(share * found + (1 - share) * TIE, 0.0, 0.99))
