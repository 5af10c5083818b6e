"""Insertions and deletions by enumeration of what every cycle writes, from the text of the rules alone."""

import itertools

import torch
from torch import Tensor

from sgfn.noise.indel import Indel


def random_noise(vocab: int, cycles: int | None, seed: int, most: float = 0.4, **more: object) -> Indel:
    """Rates of all kinds at random, by letter, and by cycle where a number of cycles is given."""
    generator = torch.Generator().manual_seed(seed)
    lead = () if cycles is None else (cycles,)

    def rates(*shape: int) -> Tensor:
        return torch.rand(*lead, *shape, generator=generator, dtype=torch.float64)

    law = rates(vocab, vocab)
    inserted = torch.rand(vocab, generator=generator, dtype=torch.float64)
    return Indel(
        substitution=law / law.sum(-1, keepdim=True),
        deletion=most * rates(vocab),
        insertion=most * rates(vocab),
        inserted=inserted / inserted.sum(),
        **more,  # pyright: ignore[reportArgumentType]
    )


def cycle_by_hand(noise: Indel, cycle: int, letter: int) -> dict[tuple[int, ...], float]:
    """What a cycle writes of a letter, with its probability."""
    at = (cycle,) if noise.deletion.dim() == 2 else ()
    lost, added = float(noise.deletion[(*at, letter)]), float(noise.insertion[(*at, letter)])
    law = noise.substitution[(*at, letter)].tolist()
    found = {(): lost}
    found |= {(k,): (1.0 - lost - added) * p for k, p in enumerate(law)}
    return found | {(k, j): added * p * q for k, p in enumerate(law) for j, q in enumerate(noise.inserted.tolist())}


def law_by_hand(noise: Indel, order: tuple[int, ...]) -> dict[tuple[int, ...], float]:
    """Probability of all that may come out of an order."""
    found: dict[tuple[int, ...], float] = {}
    cycles = [cycle_by_hand(noise, t, letter).items() for t, letter in enumerate(order)]
    for written in itertools.product(*cycles):
        text = tuple(itertools.chain.from_iterable(part for part, _ in written))
        chance = 1.0
        for _, p in written:
            chance *= p
        found[text] = found.get(text, 0.0) + chance
    return found


def rows_of_texts(texts: list[tuple[int, ...]], vocab: int, width: int) -> Tensor:
    """Texts as rows of letters, V behind them."""
    return torch.tensor([[*text, *[vocab] * (width - len(text))] for text in texts], dtype=torch.int64)


def read_by_hand(text: tuple[int, ...], length: int, flank: tuple[int, ...]) -> tuple[int, ...]:
    """The first letters of what came out, with the flank behind it where it is short."""
    return text[:length] if len(text) >= length else (*text, *flank)[:length]
