"""What to expect of orders: expected score and its uncertainty, chance to come out intact or to break a constraint.

An order is fixed before anything is made, and what comes out is x ~ P(x|o): see `sgfn.evaluation.orders`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor

from sgfn.design.distances import coded, metric_of, nearest
from sgfn.envs import Automaton, IndelEnv, SequenceEnv
from sgfn.evaluation.orders import Expectation, Score, expectation, intact, separate, violations
from sgfn.noise import Noise
from sgfn.noise.indel import Indel

Predict = Callable[[list[str]], Any]
"""Sequences to predicted means and standard deviations, as two arrays or as an object with `mean` and `sd`; or to
scores alone, which are then certain."""
PREDICTED = 65536
"""Sequences that are predicted at once."""
MOST_TABULATED = 262_144
"""Sequences up to which all of one length are predicted, so that expectations are exact."""
Shown = Callable[
    [Float64[np.ndarray, " N"], Float64[np.ndarray, " N"]], tuple[Float64[np.ndarray, " N"], Float64[np.ndarray, " N"]]
]
"""Means and standard deviations in the units in which they are told."""


@dataclass(frozen=True, kw_only=True)
class OrderValue:
    """A sequence to order and what to expect of it."""

    order: str
    expected: float
    """E[f(x)|o]: mean score of what comes out."""
    error: float
    """Standard error of that mean, which draws leave; zero where it is exact."""
    sd: float
    """Uncertainty of the prediction behind it: E[sd(x)|o], which is reached if all predictions err together."""
    intact: float
    """P(x = o): comes out as ordered."""
    violates: float
    """P(what comes out breaks a constraint); zero without constraints."""
    score: float
    """Predicted score if it comes out intact."""
    score_sd: float
    """Standard deviation of that prediction."""
    nearest: str | None = None
    """The measured sequence that is nearest to it."""
    distance: int | None = None
    """Its distance: letters that differ where all sequences are equally long, else edits."""

    @property
    def measured(self) -> bool:
        """Whether it was measured before."""
        return self.distance == 0


def value_orders(
    orders: Sequence[str],
    predict: Predict,
    *,
    noise: Noise,
    alphabet: str,
    automaton: Automaton | None = None,
    measured: Sequence[str] = (),
    samples: int = 256,
    seed: int = 0,
    exact_up_to: int = MOST_TABULATED,
    failed: float = 0.0,
) -> list[OrderValue]:
    """Everything that is to be expected of each order, in their order.

    Expectations are exact where all sequences of the order's length can be predicted (`exact_up_to` of them) and where
    the prediction is a `PairwiseScore`; else they are means over `samples` draws that all orders share. What comes out
    with too few letters, where the noise deletes some, scores `failed`.

    >>> from sgfn.noise import UniformSlip
    >>> (value,) = value_orders(["AAC"], lambda texts: [t.count("A") for t in texts], noise=UniformSlip(alpha=0.2),
    ...                         alphabet="ACGT")
    >>> round(value.expected, 3), round(value.intact, 3), value.error  # 2 (1 - 0.15) + 0.05
    (1.75, 0.614, 0.0)
    """
    orders = list(orders)
    if not orders:
        return []
    channel = channel_of(orders, noise, alphabet, automaton)
    options: dict[str, Any] = {"samples": samples, "seed": seed, "exact_up_to": exact_up_to, "failed": failed}
    return values_in(channel, orders, predict, automaton=automaton, measured=measured, **options)


def values_in(
    channel: SequenceEnv,
    orders: Sequence[str],
    predict: Predict,
    *,
    automaton: Automaton | None = None,
    measured: Sequence[str] = (),
    samples: int = 256,
    seed: int = 0,
    exact_up_to: int = MOST_TABULATED,
    failed: float = 0.0,
    shown: Shown | None = None,
) -> list[OrderValue]:
    """`value_orders` in an environment at hand, whose noise may read the state; its own constraints are the default.

    `shown` leads expectations to the units in which they are told: of logarithms, that of the expected logarithm.
    """
    orders = list(orders)
    rows = channel.parse(orders)
    options: dict[str, Any] = {"samples": samples, "seed": seed, "exact_up_to": exact_up_to, "failed": failed}
    found = expected_orders(orders, predict, channel=channel, **options)
    alone, broken = predicted(predict, orders), violations(channel, rows, automaton)
    near, apart = nearest_measured(orders, measured)
    mean, error, sd = found.mean[:, 0], found.error[:, 0], found.mean[:, 1]
    if shown is not None:
        (middle, sd), (_, error) = shown(mean.numpy(), sd.numpy()), shown(mean.numpy(), error.numpy())
        mean, alone = middle, torch.from_numpy(np.stack(shown(*alone.T.numpy()), 1))
    columns = (mean, error, sd, intact(channel, rows), broken, *alone.T)
    names = ("expected", "error", "sd", "intact", "violates", "score", "score_sd")
    figures = (dict(zip(names, map(float, own), strict=True)) for own in zip(*columns, strict=True))
    each = zip(orders, figures, near, apart, strict=True)
    return [OrderValue(order=o, **own, nearest=n, distance=d) for o, own, n, d in each]


def expected_orders(
    orders: Sequence[str],
    predict: Predict,
    *,
    channel: SequenceEnv,
    samples: int = 256,
    seed: int = 0,
    exact_up_to: int = MOST_TABULATED,
    failed: float = 0.0,
) -> Expectation:
    """Means over what comes out of each order of predicted score and predicted standard deviation, two columns."""
    rows = channel.parse(list(orders))
    if isinstance(predict, PairwiseScore) and separate(channel) and not channel.stop:
        mean = predict.expected(channel, rows)
        values = torch.stack([mean, torch.zeros_like(mean)], 1)
        return Expectation(mean=values, error=torch.zeros_like(values), exact=True)
    return expectation(channel, rows, scoring(predict, channel, failed), draws=samples, seed=seed, limit=exact_up_to)


def channel_of(orders: Sequence[str], noise: Noise, alphabet: str, automaton: Automaton | None = None) -> SequenceEnv:
    """The environment in which orders are realised: lengths are those of the automaton, else of the orders."""
    lengths = {len(order) for order in orders}
    if automaton is not None:
        lengths |= {automaton.min_length, automaton.max_length}
    shortest, longest = min(lengths), max(lengths)
    if isinstance(noise, Indel):
        return IndelEnv(length=longest, alphabet=alphabet, noise=noise, shortest=shortest)
    varies: dict[str, Any] = {"stop": True, "min_length": shortest} if shortest < longest else {}
    made = SequenceEnv(length=longest, alphabet=alphabet, noise=noise, **varies)
    if made.actions != made.outcomes:
        raise ValueError("orders are letter by letter: mixtures have none")
    return made


def scoring(predict: Predict, env: SequenceEnv, failed: float = 0.0) -> Score:
    """The prediction as a function of rows, in blocks: mean and standard deviation of each; surely `failed` of what has
    too few letters."""

    def score(rows: Int[Tensor, "N O"]) -> Float64[Tensor, "N 2"]:
        if not isinstance(env, IndelEnv):
            return torch.cat([predicted(predict, env.decode(part)) for part in rows.split(PREDICTED)])
        whole = env.written(env.read(rows)) >= env.shortest
        found = torch.tensor([failed, 0.0], dtype=torch.float64).repeat(len(rows), 1)
        for part in whole.nonzero()[:, 0].split(PREDICTED):
            found[part] = predicted(predict, env.decode(env.read(rows[part])))
        return found

    return score


def predicted(predict: Predict, texts: list[str]) -> Float64[Tensor, "N 2"]:
    """Predicted mean and standard deviation of each text; what is no finite number is refused."""
    found = predict(texts)
    if hasattr(found, "mean") and hasattr(found, "sd"):
        found = (found.mean, found.sd)
    mean, sd = found if isinstance(found, tuple) and len(found) == 2 else (found, np.zeros(len(texts)))
    columns = [torch.as_tensor(np.asarray(part, dtype=np.float64)).reshape(-1) for part in (mean, sd)]
    if any(column.shape[0] != len(texts) for column in columns):
        got = " and ".join(str(column.shape[0]) for column in columns)
        raise ValueError(f"predict must give a mean and a standard deviation for each of {len(texts)} texts, got {got}")
    values = torch.stack(columns, 1)
    wrong = (~values.isfinite() | (torch.tensor([0.0, -1.0]) * values > 0)).any(1)
    if bool(wrong.any()):
        at = int(wrong.nonzero()[0])
        raise ValueError(
            f"predict must give finite means and deviations of 0 or above, got {values[at].tolist()} for {texts[at]!r}"
        )
    return values


def nearest_measured(orders: Sequence[str], measured: Sequence[str]) -> tuple[list[str | None], list[int | None]]:
    """The nearest measured sequence of each order, and its distance; None where nothing was measured."""
    if not measured:
        return [None] * len(orders), [None] * len(orders)
    both = [*orders, *measured]
    rows, blank = coded(both)
    number, apart = nearest(rows[: len(orders)], rows[len(orders) :], blank, metric_of(both))
    found: list[str | None] = [both[len(orders) + i] for i in number.tolist()]
    return found, list(apart.tolist())


def to_frame(values: Sequence[OrderValue]) -> pd.DataFrame:
    """The values as a table, column `order` first."""
    return pd.DataFrame([vars(value) for value in values], columns=[part.name for part in fields(OrderValue)])


@dataclass(frozen=True, eq=False)
class PairwiseScore:
    r"""A score of sequences of one length that adds up over positions and pairs of them; its expectation under noise is
    exact at any length, and called on texts it predicts.

    .. math:: f(x) = c + \sum_i a_i(x_i) + \sum_{i<j} b_{ij}(x_i, x_j), \\
              E[f(x)|o] = c + \sum_i \bar a_i(o_i) + \sum_{i<j} \bar b_{ij}(o_i, o_j), \qquad
              \bar b_{ij}(u, v) = \sum_{k,l} P_i(k|u) P_j(l|v)\, b_{ij}(k, l)
    """

    alphabet: str
    single: Float[Tensor, "L V"]
    pair: Float[Tensor, "L L V V"] | None = None
    """Only entries with i < j are read."""
    constant: float = 0.0

    def __call__(self, texts: list[str]) -> tuple[Float64[np.ndarray, " N"], Float64[np.ndarray, " N"]]:
        """Scores of texts, and zeros: they are certain."""
        rows = torch.tensor([[self.alphabet.index(letter) for letter in text] for text in texts])
        found = self._at(rows, self.single.double(), None if self.pair is None else self.pair.double())
        return found.numpy(), np.zeros(len(texts))

    def expected(self, channel: SequenceEnv, orders: Int[Tensor, "N L"]) -> Float64[Tensor, " N"]:
        """E[f(x)|o] of each order; under a hidden rate the mean over rates of the same."""
        found = torch.zeros(orders.shape[0], dtype=torch.float64)
        for rate, weight in channel.noise.rates(channel.horizon):
            kernels = torch.stack([channel.kernel(states[:1], torch.float64, rate)[0] for states in _roots(channel)])
            single = torch.einsum("iuk,ik->iu", kernels, self.single.double())
            pair = None
            if self.pair is not None:
                pair = torch.einsum("iuk,jvl,ijkl->ijuv", kernels, kernels, self.pair.double())
            found += weight * self._at(orders, single, pair)
        return found

    def _at(self, rows: Int[Tensor, "N L"], single: Tensor, pair: Tensor | None) -> Float64[Tensor, " N"]:
        place = torch.arange(rows.shape[1])
        found = self.constant + single[place, rows].sum(-1)
        if pair is not None:
            first, second = torch.triu_indices(rows.shape[1], rows.shape[1], 1).unbind()
            found = found + pair[first, second, rows[:, first], rows[:, second]].sum(-1)
        return found


def _roots(channel: SequenceEnv) -> list[Int[Tensor, "1 S"]]:
    """One prefix of each length: noise may depend on the position, not on the letters."""
    state, found = channel.initial(1), []
    for _ in range(channel.length):
        found.append(state)
        state = channel.apply(state, torch.zeros(1, dtype=torch.int64))
    return found
