r"""The pair model: probability that an order comes out as a sequence, by the forward algorithm of a pair hidden Markov
model, and the expected number of errors of each kind, which EM needs.

An order o is made in as many cycles as it has letters, each of which writes nothing, a letter, or two:

.. math:: f_t(m) = d\,f_{t-1}(m) + (1-d-i)\,S_{o_t x_m} f_{t-1}(m-1) + i\,S_{o_t x_{m-1}} q_{x_m} f_{t-1}(m-2),

with the rates of letter o_t and cycle t; P(x|o) is the value behind the last letter of both.
Reference: Durbin et al. (1998), Biological sequence analysis, chapter 4.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float64, Int
from torch import Tensor

from sgfn.noise.indel import Indel

LARGEST_BLOCK = 4_000_000
"""Numbers in one block of the forward table, pairs times cycles times letters, which bounds memory."""


@dataclass(frozen=True, kw_only=True)
class CycleLogs:
    """Logarithms of what a cycle writes of one letter per pair, at every place of what came out."""

    nothing: Float64[Tensor, "T N"]
    single: Float64[Tensor, "T N M"]
    """Of the letter at each place."""
    double: Float64[Tensor, "T N M"]
    """Of the letter before each place and the inserted one at it."""
    made: Float64[Tensor, "T N"]
    """Zero in the cycles of an order, minus infinity behind its end."""


def log_probability(noise: Indel, orders: Int[Tensor, "N L"], found: Int[Tensor, "N M"]) -> Float64[Tensor, " N"]:
    """log P(x|o) of pairs of rows of letters, V or more behind them; minus infinity where x cannot come out."""
    parts = [_forward(noise, *pair)[-1] for pair in _blocks(noise, orders, found)]
    lengths = (found < noise.vocab).sum(-1)
    ends = torch.cat(parts) if parts else torch.zeros(0, 1, dtype=torch.float64)
    return ends.gather(1, lengths[:, None])[:, 0]


@dataclass(frozen=True, kw_only=True)
class EventCounts:
    """Expected numbers of events in each cycle, given what came out, and the log-likelihood of all pairs."""

    written: Float64[Tensor, "T V V"]
    """Letters written, by the letter intended; those with an inserted one too."""
    deleted: Float64[Tensor, "T V"]
    doubled: Float64[Tensor, "T V"]
    """Cycles with an inserted letter, by the letter intended."""
    inserted: Float64[Tensor, " V"]
    """Inserted letters."""
    unsure_deleted: Float64[Tensor, " V"]
    """Variance of the number of deletions of each letter that is left, given what came out: which letter was lost, or
    behind which one another was inserted, may not show."""
    unsure_doubled: Float64[Tensor, " V"]
    log_likelihood: float


def event_counts(
    noise: Indel, orders: Int[Tensor, "N L"], found: Int[Tensor, "N M"], weights: Float64[Tensor, " N"]
) -> EventCounts:
    """Expected events of weighted pairs, by the forward and backward algorithms."""
    blocks = list(_blocks(noise, orders, found))
    parts = [
        _counted(noise, o, x, w) for (o, x), w in zip(blocks, weights.split([len(o) for o, _ in blocks]), strict=True)
    ]
    names = ("written", "deleted", "doubled", "inserted", "unsure_deleted", "unsure_doubled")
    sums = {name: torch.stack([getattr(part, name) for part in parts]).sum(0) for name in names}
    return EventCounts(**sums, log_likelihood=sum(part.log_likelihood for part in parts))


def _blocks(
    noise: Indel, orders: Int[Tensor, "N L"], found: Int[Tensor, "N M"]
) -> list[tuple[Int[Tensor, "B L"], Int[Tensor, "B M"]]]:
    size = max(1, LARGEST_BLOCK // max(1, orders.shape[1] * (found.shape[1] + 1)))
    return list(zip(orders.split(size), found.split(size), strict=True))


def _logs(noise: Indel, orders: Int[Tensor, "N L"], found: Int[Tensor, "N M"]) -> CycleLogs:
    vocab = noise.vocab
    cycles = torch.arange(orders.shape[1])
    law, lost, added = noise.tables()
    letter = orders.clamp(max=vocab - 1).T  # T N
    place, came = cycles.clamp(max=len(lost) - 1)[:, None], found.clamp(max=vocab - 1)
    written = law.log()[place[..., None], letter[..., None], came[None]]  # T N M
    there = torch.where(found < vocab, 0.0, -torch.inf).double()
    first = torch.cat([torch.full_like(written[..., :1], -torch.inf), written[..., :-1]], -1)
    kept = (1.0 - lost - added).clamp(min=0.0).log()[place, letter][..., None]
    more = added.log()[place, letter][..., None]
    return CycleLogs(
        nothing=lost.log()[place, letter],
        single=kept + written + there,
        double=more + first + noise.inserted.log()[came] + there,
        made=torch.where((orders < vocab).T, 0.0, -torch.inf).double(),
    )


def _forward(noise: Indel, orders: Int[Tensor, "N L"], found: Int[Tensor, "N M"]) -> Float64[Tensor, "steps N places"]:
    logs = _logs(noise, orders, found)
    table = torch.full((found.shape[0], found.shape[1] + 1), -torch.inf, dtype=torch.float64)
    table[:, 0] = 0.0
    tables = [table]
    for t in range(orders.shape[1]):
        terms = torch.full((3, *table.shape), -torch.inf, dtype=torch.float64)
        terms[0] = table + logs.nothing[t][:, None]
        terms[1, :, 1:] = table[:, :-1] + logs.single[t]
        terms[2, :, 2:] = table[:, :-2] + logs.double[t, :, 1:]
        table = torch.where(logs.made[t][:, None] == 0.0, _sum_of_logs(terms), table)
        tables.append(table)
    return torch.stack(tables)


def _backward(
    logs: CycleLogs, tables: Float64[Tensor, "steps N places"], lengths: Int[Tensor, " N"]
) -> Float64[Tensor, "steps N places"]:
    table = torch.full_like(tables[0], -torch.inf).scatter(1, lengths[:, None], 0.0)
    found = [table]
    for t in range(tables.shape[0] - 2, -1, -1):
        terms = torch.full((3, *table.shape), -torch.inf, dtype=torch.float64)
        terms[0] = table + logs.nothing[t][:, None]
        terms[1, :, :-1] = table[:, 1:] + logs.single[t]
        terms[2, :, :-2] = table[:, 2:] + logs.double[t, :, 1:]
        table = torch.where(logs.made[t][:, None] == 0.0, _sum_of_logs(terms), table)
        found.append(table)
    return torch.stack(found[::-1])


def _counted(
    noise: Indel, orders: Int[Tensor, "N L"], found: Int[Tensor, "N M"], weights: Float64[Tensor, " N"]
) -> EventCounts:
    vocab, logs = noise.vocab, _logs(noise, orders, found)
    before = _forward(noise, orders, found)
    lengths = (found < vocab).sum(-1)
    after = _backward(logs, before, lengths)
    likelihood = before[-1].gather(1, lengths[:, None])[:, 0]
    scale = torch.where(likelihood > -torch.inf, -likelihood, -torch.inf)[:, None]  # what cannot be counts as nothing
    made = weights * (logs.made == 0.0)  # T N
    nothing = (before[:-1] + logs.nothing[..., None] + after[1:] + scale).exp().sum(-1) * made
    single = (before[:-1, :, :-1] + logs.single + after[1:, :, 1:] + scale).exp() * made[..., None]
    double = torch.zeros_like(single)
    if found.shape[1] > 1:
        terms = before[:-1, :, :-2] + logs.double[..., 1:] + after[1:, :, 2:] + scale
        double[..., 1:] = terms.exp() * made[..., None]  # at the place of the inserted letter
    letter, came = orders.clamp(max=vocab - 1).T, found.clamp(max=vocab - 1)
    own = _one_hot(letter, vocab)  # T N V
    symbols = _one_hot(came, vocab)  # N M V
    lost, two = nothing / weights, double.sum(-1) / weights  # T N: of one pair
    first = torch.cat([double[..., 1:], torch.zeros_like(double[..., :1])], -1)  # at the place of the letter
    return EventCounts(
        written=torch.einsum("tna,tnm,nmk->tak", own, single + first, symbols),
        deleted=torch.einsum("tna,tn->ta", own, nothing),
        doubled=torch.einsum("tna,tnm->ta", own, double),
        inserted=torch.einsum("tnm,nmk->k", double, symbols),
        unsure_deleted=weights @ _unsure(torch.einsum("tna,tn->na", own, lost)),
        unsure_doubled=weights @ _unsure(torch.einsum("tna,tn->na", own, two)),
        log_likelihood=float((weights * likelihood).sum()),
    )


def _unsure(counts: Float64[Tensor, "N V"]) -> Float64[Tensor, "N V"]:
    """Variance of whole numbers with these means that lie between two neighbours: p (1 - p) for what is behind one."""
    part = counts - counts.floor()
    return part * (1.0 - part)


def _sum_of_logs(terms: Float64[Tensor, "3 N M"]) -> Float64[Tensor, "N M"]:
    return torch.logaddexp(torch.logaddexp(terms[0], terms[1]), terms[2])


def _one_hot(values: Int[Tensor, "*batch"], classes: int) -> Float64[Tensor, "*batch V"]:
    return (values[..., None] == torch.arange(classes)).double()
