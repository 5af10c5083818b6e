"""A channel fitted to pairs of intended and realised sequences: the pair model by EM, intervals, simpler channels."""

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
from jaxtyping import Float64, Int
from torch import Tensor

from sgfn.config.checks import in_range, one_of
from sgfn.noise.indel import Indel, wrong_letters
from sgfn.noise.pairs import EventCounts, event_counts

ChannelModel = Literal["none", "substitutions", "confusion", "uniform", "letter", "position"]
MODELS: dict[ChannelModel, str] = {
    "none": "no errors",
    "substitutions": "one rate of substitutions",
    "confusion": "a confusion matrix",
    "uniform": "one rate each of substitutions, deletions, insertions",
    "letter": "a confusion matrix, deletions and insertions by letter",
    "position": "three rates for each position",
}
INDELS: tuple[ChannelModel, ...] = ("uniform", "letter", "position")
"""Channels that delete and insert."""
STARTS = {"substitution": 0.02, "deletion": 0.02, "insertion": 0.01}
"""Rates that EM begins with."""
ROUNDS, CLOSE = 100, 1e-4
"""Rounds of EM at most, and gain in log-likelihood below which it ends."""
SUREST = 1.0 - 1e-6
"""Rates of deletions and insertions together at most: a channel must write something."""
NOTHING = 1e-9
"""Rates below this are zero: EM comes near zero and never to it."""


@dataclass(frozen=True, kw_only=True)
class PairRows:
    """Distinct pairs as rows of letters, V behind them, with how often each was seen."""

    orders: Int[Tensor, "N L"]
    found: Int[Tensor, "N M"]
    counts: Float64[Tensor, " N"]
    vocab: int

    @property
    def letters(self) -> float:
        """Letters that were intended, all pairs together."""
        return float((self.counts * (self.orders < self.vocab).sum(-1)).sum())

    @property
    def one_length(self) -> bool:
        """Whether all orders have the same length."""
        return bool((self.orders < self.vocab).all())


@dataclass(frozen=True, kw_only=True)
class RateInterval:
    """A rate with its interval: of all letters (`of` is empty), of a letter, a pair of letters or a position."""

    kind: str
    """substitution, deletion or insertion."""
    of: str
    rate: float
    low: float
    high: float
    events: float
    """Expected number of such errors among the pairs."""


@dataclass(frozen=True, kw_only=True)
class ModelFit:
    """A channel fitted by maximum likelihood."""

    model: ChannelModel
    noise: Indel
    counts: EventCounts
    parameters: int
    log_likelihood: float
    """Minus infinity where some pair cannot happen."""
    bic: float
    """Parameters times log(letters) less twice the log-likelihood: the lowest is the best."""
    rounds: int


def fit_model(pairs: PairRows, model: ChannelModel) -> ModelFit:
    """The channel of one kind with the highest likelihood, by EM.

    Expected events are counted under the present rates (`event_counts`), and rates are set to their shares, until the
    likelihood rises no more. Reference: Dempster, Laird and Rubin (1977), J. Royal Statistical Society B 39:1.
    """
    one_of("model", model, get_args(ChannelModel))
    noise, before = _start(pairs, model), -math.inf
    counts, rounds = event_counts(noise, pairs.orders, pairs.found, pairs.counts), 0
    while rounds < ROUNDS and counts.log_likelihood - before > CLOSE:
        before, rounds = counts.log_likelihood, rounds + 1
        noise = _maximised(counts, model)
        counts = event_counts(noise, pairs.orders, pairs.found, pairs.counts)
    size = _parameters(pairs, model)
    bic = size * math.log(max(pairs.letters, 2.0)) - 2.0 * counts.log_likelihood
    found = {"log_likelihood": counts.log_likelihood, "bic": bic, "rounds": rounds}
    return ModelFit(model=model, noise=noise, counts=counts, parameters=size, **found)


def fit_models(pairs: PairRows) -> list[ModelFit]:
    """All channels that pairs can tell of; by position only where all orders have one length."""
    return [fit_model(pairs, model) for model in MODELS if model != "position" or pairs.one_length]


def intervals(fit: ModelFit, alphabet: str, level: float = 0.9) -> list[RateInterval]:
    """Rates of a fitted channel with intervals: over all letters, then those that the model tells apart.

    An interval holds the central mass of Beta posteriors of the expected counts, from the lower end under the prior
    Beta(0, 1) to the upper end under Beta(1, 0), so that it is never too narrow for want of events. Where pairs do not
    show which letter was lost, or behind which one another was inserted, counts tell less: those of a letter are
    reduced by the share of their variance that this leaves (Louis 1982, J. Royal Statistical Society B 44:226).
    """
    in_range("level", level, 0.5, 0.999)
    counts = fit.counts
    written, deleted, doubled = counts.written.sum(0), counts.deleted.sum(0), counts.doubled.sum(0)
    made = written.sum(-1) + deleted
    wrong = written.sum(-1) - written.diagonal()
    found: list[tuple[Any, ...]] = [("substitution", "", wrong.sum(), written.sum())]
    found += [("deletion", "", deleted.sum(), made.sum()), ("insertion", "", doubled.sum(), made.sum())]
    if fit.model in ("confusion", "letter"):
        for a, letter in enumerate(alphabet):
            others = [k for k in range(len(alphabet)) if k != a]
            found += [("substitution", f"{letter}>{alphabet[k]}", written[a, k], written[a].sum()) for k in others]
            found.append(("deletion", letter, deleted[a], made[a], _known(deleted[a], counts.unsure_deleted[a])))
            found.append(("insertion", letter, doubled[a], made[a], _known(doubled[a], counts.unsure_doubled[a])))
    if fit.model == "position":
        for t, (own, lost, two) in enumerate(zip(counts.written, counts.deleted, counts.doubled, strict=True), start=1):
            total = own.sum() + lost.sum()
            found.append(("substitution", str(t), own.sum() - own.diagonal().sum(), own.sum()))
            found += [("deletion", str(t), lost.sum(), total), ("insertion", str(t), two.sum(), total)]
    return [_interval(kind, of, float(x), float(n), level, *share) for kind, of, x, n, *share in found]


def _known(events: Float64[Tensor, ""], unsure: Float64[Tensor, ""]) -> float:
    """Share of the information in counts that is there although some events are not sure."""
    return max(0.1, 1.0 - float(unsure) / max(float(events), 1e-300))


def _interval(kind: str, of: str, events: float, trials: float, level: float, share: float = 1.0) -> RateInterval:
    from scipy.stats import beta  # slow to import

    events = 0.0 if events < NOTHING * trials else min(events, trials)
    outside = (1.0 - level) / 2.0
    some, others = share * events, share * (trials - events)
    low = float(beta.ppf(outside, some, others + 1.0)) if events >= 1.0 else 0.0  # less proves nothing
    high = float(beta.ppf(1.0 - outside, some + 1.0, others)) if events < trials else 1.0
    rate = events / trials if trials > 0.0 else 0.0
    return RateInterval(kind=kind, of=of, rate=rate, low=min(low, rate), high=max(high, rate), events=events)


def _start(pairs: PairRows, model: ChannelModel) -> Indel:
    vocab = pairs.vocab
    wrong = 0.0 if model == "none" else STARTS["substitution"]
    lost, two = (STARTS[name] if model in INDELS else 0.0 for name in ("deletion", "insertion"))
    return Indel.uniform(vocab, substitution=wrong, deletion=lost, insertion=two)


def _maximised(counts: EventCounts, model: ChannelModel) -> Indel:
    """Rates that are the shares of expected events."""
    vocab = counts.inserted.shape[0]
    written, deleted, doubled = counts.written, counts.deleted, counts.doubled
    if model == "position":
        total = written.sum((1, 2)) + deleted.sum(1)
        lost, two = (rate[:, None].repeat(1, vocab) for rate in _indels(deleted.sum(1), doubled.sum(1), total))
        own = written.diagonal(dim1=1, dim2=2).sum(1)
        law = wrong_letters(1.0 - _share(own, written.sum((1, 2)), 1.0), vocab)
        return Indel(substitution=law, deletion=lost, insertion=two, inserted=_even(vocab))
    written, deleted, doubled = written.sum(0), deleted.sum(0), doubled.sum(0)
    total = written.sum(1) + deleted
    if model in ("letter", "confusion"):
        sums = written.sum(1, keepdim=True)
        law = torch.where(sums > 0, _share(written, sums), torch.eye(vocab, dtype=torch.float64))
        some = float(counts.inserted.sum())
        inserted = counts.inserted / some if some > NOTHING * float(total.sum()) else _even(vocab)
        lost, two = _indels(deleted, doubled, total)
        return Indel(substitution=law, deletion=lost, insertion=two, inserted=inserted)
    wrong = 1.0 - float(_share(written.diagonal().sum(), written.sum(), 1.0))
    lost, two = map(float, _indels(deleted.sum(), doubled.sum(), total.sum()))
    return Indel.uniform(vocab, substitution=max(0.0, wrong), deletion=lost, insertion=two)


def _share(part: Float64[Tensor, "*N"], total: Float64[Tensor, "*N"], empty: float = 0.0) -> Float64[Tensor, "*N"]:
    """Shares, and `empty` where there is nothing to share; what is as good as nothing is nothing."""
    found = torch.where(total > 0, part / total.clamp(min=1e-300), empty)
    return torch.where(found < NOTHING, 0.0, found).clamp(0.0, 1.0)


def _indels(
    deleted: Float64[Tensor, "*N"], doubled: Float64[Tensor, "*N"], total: Float64[Tensor, "*N"]
) -> tuple[Float64[Tensor, "*N"], Float64[Tensor, "*N"]]:
    """Rates of deletions and insertions, together below 1 also where the few pairs there are show nothing else."""
    lost, two = _share(deleted, total), _share(doubled, total)
    scale = (SUREST / (lost + two).clamp(min=SUREST)).clamp(max=1.0)
    return lost * scale, two * scale


def _even(vocab: int) -> Float64[Tensor, " V"]:
    return torch.full((vocab,), 1.0 / vocab, dtype=torch.float64)


def _parameters(pairs: PairRows, model: ChannelModel) -> int:
    vocab, length = pairs.vocab, pairs.orders.shape[1]
    matrix = vocab * (vocab - 1)
    sizes = {"none": 0, "substitutions": 1, "confusion": matrix, "uniform": 3, "position": 3 * length}
    return sizes.get(model, matrix + 2 * vocab + vocab - 1)
