"""Candidates to order: all of them where they can be listed, else what local search finds."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sgfn.config.checks import whole_number
from sgfn.envs import Automaton, Constraints

Value = Callable[[list[str]], Float[np.ndarray, " N"] | Sequence[float] | Tensor]
"""Sequences to what each is worth, higher is better."""


def unconstrained(alphabet: str, min_length: int, max_length: int) -> Automaton:
    """The automaton that accepts every sequence of the lengths."""
    return Constraints().compile(alphabet, min_length, max_length)


def feasible_orders(automaton: Automaton, limit: int) -> list[str] | None:
    """Every sequence that the constraints accept; None where there are more than `limit`."""
    return None if automaton.size > limit else automaton.texts(automaton.all_rows(limit))


def local_search(
    starts: Sequence[str],
    value: Value,
    automaton: Automaton,
    *,
    keep: int = 256,
    children: int = 8,
    rounds: int = 20,
    seed: int = 0,
) -> tuple[list[str], Float[np.ndarray, " N"]]:
    """Sequences with high values that the constraints accept, best first, with their values: everything that was looked
    at on the way.

    In each round every one of the best `keep` gets `children` random mutants (a letter replaced, or where lengths vary
    one put in or left out; two thirds of them one, the others two at once), those that break a constraint or were seen
    before are left out, and the best of all stay. It ends before `rounds` where a round leaves the best as they are.
    """
    for name, number in (("keep", keep), ("children", children)):
        whole_number(name, number, 1)
    generator = torch.Generator().manual_seed(seed)
    rows = (
        automaton.rows(list(dict.fromkeys(starts)))[:, : automaton.max_length]
        if starts
        else automaton.sample(0, generator)
    )
    rows = rows[automaton.feasible(rows)]
    if not rows.shape[0]:
        rows = automaton.sample(keep, generator).unique(dim=0)
    worth = {text: float(v) for text, v in _valued(automaton.texts(rows), value)}
    for _ in range(rounds):
        best = sorted(worth, key=worth.__getitem__, reverse=True)[:keep]
        mutants = _mutants(automaton.rows(best)[:, : automaton.max_length], automaton, children, generator)
        new = [text for text in dict.fromkeys(automaton.texts(mutants)) if text not in worth]
        worth.update(_valued(new, value))
        if best == sorted(worth, key=worth.__getitem__, reverse=True)[:keep] and len(best) == keep:
            break
    ranked = sorted(worth, key=worth.__getitem__, reverse=True)
    return ranked, np.array([worth[text] for text in ranked])


def _valued(texts: list[str], value: Value) -> list[tuple[str, float]]:
    """Texts with their values."""
    if not texts:
        return []
    found = np.asarray(value(texts), dtype=np.float64).reshape(-1)
    if found.shape[0] != len(texts) or not np.isfinite(found).all():
        raise ValueError(f"a value must be one finite number for each of {len(texts)} sequences")
    return list(zip(texts, found.tolist(), strict=True))


def _mutants(
    rows: Int[Tensor, "N L"], automaton: Automaton, children: int, generator: torch.Generator
) -> Int[Tensor, "M L"]:
    """Random mutants of each row that the constraints accept."""
    found = _mutated(rows.repeat_interleave(children, 0), automaton, generator)
    twice = torch.rand(found.shape[0], generator=generator) < 1 / 3
    found = torch.where(twice[:, None], _mutated(found, automaton, generator), found)
    return found[automaton.feasible(found)]


def _mutated(rows: Int[Tensor, "N L"], automaton: Automaton, generator: torch.Generator) -> Int[Tensor, "N L"]:
    """Each row after one random edit: a substitution, or, where lengths vary, as often an insertion or a deletion."""
    count, width, vocab = *rows.shape, automaton.vocab
    length = (rows < vocab).sum(-1)
    place = (torch.rand(count, generator=generator) * length).long()
    letter = torch.randint(vocab, (count,), generator=generator)
    positions = torch.arange(width)
    replaced = torch.where(positions == place[:, None], letter[:, None], rows)
    if automaton.min_length == automaton.max_length:
        return replaced
    kind = torch.randint(3, (count,), generator=generator)
    blank = torch.full((count, 1), vocab)
    shifted = torch.cat([blank, rows[:, :-1]], 1)
    longer = torch.where(
        positions < place[:, None], rows, torch.where(positions == place[:, None], letter[:, None], shifted)
    )
    shorter = torch.where(positions < place[:, None], rows, torch.cat([rows[:, 1:], blank], 1))
    fits: Bool[Tensor, " N"] = length < width
    grown = torch.where(((kind == 1) & fits)[:, None], longer, replaced)
    return torch.where(((kind == 2) & (length > 1))[:, None], shorter, grown)
