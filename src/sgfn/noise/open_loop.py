"""Whole orders through a noise that deletes and inserts: draws of what comes out, its law, and expected values.

What comes out is read in a window from its first letter on: letters beyond it are cut off, places behind the last
letter stay blank (V) until `read` writes the flank there.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor

from sgfn.noise.indel import Indel

MOST_ENTRIES = 100_000_000
"""Numbers at most in the largest table of expected values."""


@dataclass(frozen=True)
class CycleDraws:
    """Uniform random numbers of several draws, which all orders share: what happens in a cycle, what is written, and
    what is inserted."""

    event: Float[Tensor, "D *N T"]
    letter: Float[Tensor, "D *N T"]
    inserted: Float[Tensor, "D *N T"]

    def split(self, size: int) -> "list[CycleDraws]":
        """The same draws, so many at a time."""
        return [CycleDraws(*parts) for parts in zip(*(part.split(size) for part in vars(self).values()), strict=True)]

    def __len__(self) -> int:
        return self.event.shape[0]


def cycle_draws(count: int, cycles: int, generator: torch.Generator) -> CycleDraws:
    """Random numbers for so many draws, at each cycle one in each of so many equal parts of the unit interval."""
    parts = []
    for _ in range(3):
        strata = torch.stack([torch.randperm(count, generator=generator) for _ in range(max(1, cycles))], 1)[:, :cycles]
        parts.append((strata + torch.rand(strata.shape, generator=generator)) / count)
    return CycleDraws(*parts)


def plain_draws(count: int, cycles: int, generator: torch.Generator) -> CycleDraws:
    """Random numbers for so many draws that know nothing of each other."""
    return CycleDraws(*(torch.rand(count, cycles, generator=generator) for _ in range(3)))


def realise(noise: Indel, orders: Int[Tensor, "N L"], draws: CycleDraws, width: int) -> Int[Tensor, "D N W"]:
    """What comes out of each order in each draw, the first letters of it."""
    letter = orders.clamp(max=noise.vocab - 1)[None].expand(len(draws), -1, -1)
    numbers = CycleDraws(*(part[:, None] for part in vars(draws).values()))
    return _written(noise, orders[None], letter, numbers, width)


def realise_once(noise: Indel, orders: Int[Tensor, "D L"], draws: CycleDraws, width: int) -> Int[Tensor, "D W"]:
    """What comes out of order d in draw d."""
    return _written(noise, orders, orders.clamp(max=noise.vocab - 1), draws, width)


def _written(
    noise: Indel,
    orders: Int[Tensor, "*#draws L"],
    letter: Int[Tensor, "*draws L"],
    numbers: CycleDraws,
    width: int,
) -> Int[Tensor, "*draws W"]:
    vocab, (law, lost, added) = noise.vocab, noise.tables()
    cycle = torch.arange(letter.shape[-1]).clamp(max=len(lost) - 1)
    ranked = own_first(vocab)
    limits = law.gather(-1, ranked.expand(law.shape)).cumsum(-1)[..., :-1][cycle, letter]  # *draws L V-1
    first = ranked[letter, (numbers.letter[..., None] > limits).sum(-1)]
    second = (numbers.inserted[..., None] > noise.inserted.cumsum(0)[:-1]).sum(-1).expand_as(first)
    made = (orders < vocab) & (numbers.event >= lost[cycle, letter])
    double = made & (numbers.event > 1.0 - added[cycle, letter])
    made = made.expand_as(first)
    size = made.long() + double.long()
    start = size.cumsum(-1) - size
    end = 2 * letter.shape[-1]
    found = torch.full((*first.shape[:-1], end + 1), vocab)
    found.scatter_(-1, torch.where(made, start, end), first)
    found.scatter_(-1, torch.where(double, start + 1, end), second)
    found[..., end] = vocab
    rows = found[..., : min(width, end)]
    blanks = torch.full((*rows.shape[:-1], max(0, width - end)), vocab)
    return torch.cat([rows, blanks], -1)


def own_first(vocab: int) -> Int[Tensor, "A K"]:
    """For each letter all letters, itself first: then one number makes an error of every order, or of none."""
    return torch.stack([torch.tensor([own, *(k for k in range(vocab) if k != own)]) for own in range(vocab)])


def string_laws(noise: Indel, orders: Int[Tensor, "N L"], width: int) -> list[Float64[Tensor, "N M"]]:
    """Probability of all that may be read in a window, for each number of letters in it, in alphabetical order."""
    (law, lost, added), vocab, count = noise.tables(), noise.vocab, orders.shape[0]
    found = [torch.zeros(count, vocab**m, dtype=torch.float64) for m in range(width + 1)]
    found[0][:] = 1.0
    for t, letter in enumerate(orders.T):
        cycle, intended = min(t, len(lost) - 1), letter.clamp(max=vocab - 1)
        out, more = lost[cycle, intended][:, None], added[cycle, intended][:, None]
        single = [(part[:, :, None] * law[cycle, intended][:, None]).flatten(1) for part in found[:-1]]  # of one more
        double = [(part[:, :, None] * noise.inserted).flatten(1) for part in single[:-1]]
        after = [out * part for part in found]
        for m, part in enumerate(single, start=1):
            after[m] += (1.0 - out - (more if m < width else 0.0)) * part
        for m, part in enumerate(double, start=2):
            after[m] += more * part
        after[width] += (1.0 - out) * found[width]
        made = (letter < vocab)[:, None]
        found = [torch.where(made, new, old) for new, old in zip(after, found, strict=True)]
    return found


def table_entries(noise: Indel, length: int) -> int:
    """Numbers in the largest table that `value_table` makes."""
    step = 2 if noise.inserts else 1
    sizes = [
        sum(noise.vocab ** (m + length - t) for m in range(min(step * t, length - 1) + 1)) for t in range(length + 1)
    ]
    return max(sizes)


def value_table(noise: Indel, length: int, scores: Float[Tensor, " N"], failed: float) -> Float64[Tensor, " N"]:
    r"""E[f(x)|o] of all orders of one length, from the scores of all sequences of it, both in alphabetical order.

    From the last cycle backwards, for every prefix w that may have been written and every rest of an order that may
    follow, $g_t(w, o) = d\,g_{t+1}(w) + (1-d-i)\sum_k S_{ok}\,g_{t+1}(wk) + i\sum_{kj} S_{ok} q_j\,g_{t+1}(wkj)$.
    """
    (law, lost, added), vocab = noise.tables(), noise.vocab
    ends = read_scores(noise, length, scores.double(), failed)
    tables = {m: end[:, None] for m, end in enumerate(ends)}  # by letters written: prefixes, rests of the order
    for t in range(length - 1, -1, -1):
        cycle = min(t, len(lost) - 1)
        out, more, matrix = lost[cycle][:, None], added[cycle][:, None], law[cycle]
        after, tables = tables, {length: ends[length][:, None]}  # what is full stays, whatever is still to come
        for m in range(min((2 if noise.inserts else 1) * t, length - 1) + 1):
            single = _contract(matrix, after[m + 1], vocab)  # prefix, letter intended, rest
            found = out * after[m][:, None] + (1.0 - out - more) * single
            if noise.inserts:
                doubled = single
                if m + 2 <= length:
                    doubled = _contract(matrix, _contract(noise.inserted[None], after[m + 2], vocab)[:, 0], vocab)
                found = found + more * doubled
            tables[m] = found.flatten(1)
    return tables[0][0]


def _contract(law: Float64[Tensor, "A V"], values: Float64[Tensor, "M R"], vocab: int) -> Float64[Tensor, "W A R"]:
    """Means over the last letter of prefixes, for each law of it."""
    return torch.einsum("ak,wkr->war", law, values.unflatten(0, (-1, vocab)))


def read_scores(
    noise: Indel, length: int, scores: Float64[Tensor, " N *C"], failed: float
) -> list[Float64[Tensor, " M *C"]]:
    """Scores of all that may be written, by its number of letters: with the flank behind it, or those of a failure."""
    vocab, found = noise.vocab, []
    for m in range(length + 1):
        rest, number = noise.flank[: length - m], 0
        for letter in rest:
            number = vocab * number + letter
        whole = scores.unflatten(0, (vocab**m, -1))[:, number]
        found.append(whole if len(rest) == length - m else torch.full_like(whole, failed))
    return found
