"""Sequences written in cycles that may write nothing, one letter or two: a graph, as several paths lead to a state."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor

from sgfn.envs.base import one_hot
from sgfn.envs.constraints import Constraints
from sgfn.envs.sequence import SequenceEnv
from sgfn.noise.indel import Indel
from sgfn.noise.open_loop import string_laws, value_table

CONSTANTS: dict[tuple[tuple[Any, ...], torch.device], Tensor] = {}
"""What `constant` has made, by values and device."""


class IndelEnv(SequenceEnv):
    """A synthesis that is watched: in each cycle a letter is intended, and it is seen what was written.

    A state is the letters written and the number of cycles used. Outcomes are the letters, then nothing (V), then,
    where the noise inserts, pairs of letters (V + 1 + V u + v). There are `length` and `noise.spare` cycles. A sequence
    that is full waits for the last of them (intention V, outcome nothing), so that each object has one final state; of
    a pair that does not fit, the first letter is written. So a state has up to three parents: those before nothing,
    before its last letter, and before its last two.

    Objects are all sequences of up to `length` letters. What has too few is read with `noise.flank` behind it; without
    a flank it is not admissible.
    """

    tree = False
    appends = False

    def __init__(
        self,
        *,
        length: int,
        alphabet: str,
        noise: Indel,
        constraints: Constraints | None = None,
        shortest: int | None = None,
    ) -> None:
        super().__init__(length=length, alphabet=alphabet, noise=noise)
        self.noise: Indel = noise
        self.constraints = constraints
        self.shortest = length if shortest is None else shortest
        """Letters at least of what is read, to be whole."""
        if noise.flank and self.shortest < length:
            raise ValueError("noise.flank is for sequences of one length: leave it out, what is short is read as it is")
        self.automaton = constraints.compile(alphabet, length, length) if constraints else None
        self.unmasked = False
        self.nothing = self.vocab
        self.outcomes = self.vocab + 1 + (self.vocab**2 if noise.inserts else 0)
        self.actions = self.vocab + 1
        self.horizon, self.width = length + noise.spare, length + 1
        self.features = length * self.vocab + length + 1 + self.horizon + 1
        self.spans = [self._span(cycle) for cycle in range(self.horizon + 1)]
        sizes = [sum(self.vocab**n for n in range(low, high + 1)) for low, high in self.spans]
        self.level_offsets = [sum(sizes[:cycle]) for cycle in range(self.horizon + 1)]
        self.num_states, self.num_objects = self.level_offsets[-1], sizes[-1]

    def _span(self, cycle: int) -> tuple[int, int]:
        """Least and most letters after so many cycles."""
        most = min(self.length, cycle * (2 if self.noise.inserts else 1))
        return (0 if self.noise.deletes else min(self.length, cycle)), most

    @property
    def intends_outcomes(self) -> bool:
        """Nobody intends that nothing be written."""
        return False

    @property
    def by_letter(self) -> bool:
        """Letters are intended, and sequences can be ordered."""
        return True

    @property
    def action_names(self) -> list[str]:
        """The letters, and to wait."""
        return [*self.alphabet, "wait"]

    @property
    def outcome_names(self) -> list[str]:
        """The letters, nothing, pairs of letters."""
        pairs = [a + b for a, b in product(self.alphabet, repeat=2)] if self.noise.inserts else []
        return [*self.alphabet, "nothing", *pairs]

    # states

    def initial(self, batch: int, device: torch.device | str = "cpu") -> Int[Tensor, "B S"]:
        """No letter, no cycle."""
        letters = torch.full((batch, self.length), self.blank, dtype=torch.int64, device=device)
        return torch.cat([letters, torch.zeros_like(letters[:, :1])], 1)

    def written(self, state: Int[Tensor, "*batch _"]) -> Int[Tensor, "*batch"]:
        """How many letters a state, or an object, holds."""
        return (state[..., : self.length] < self.vocab).sum(-1)

    def done(self, state: Int[Tensor, "*batch S"]) -> Bool[Tensor, "*batch"]:
        """Whether all cycles are used."""
        return state[..., -1] >= self.horizon

    def is_state(self, state: Int[Tensor, "*batch S"]) -> Bool[Tensor, "*batch"]:
        """Whether letters stand in front of blanks, and as many cycles are used as there can be."""
        return self.in_order(state[..., :-1]) & (state[..., -1] >= 0) & (state[..., -1] <= self.horizon)

    def position(self, state: Int[Tensor, "*batch S"]) -> Int[Tensor, "*batch"]:
        """Cycles used, by which rates may vary."""
        return state[..., -1]

    def legal(self, state: Int[Tensor, "*batch S"]) -> Bool[Tensor, "*batch A"]:
        """Letters (under constraints those that the automaton allows) while there is room, then to wait."""
        room = (self.written(state) < self.length)[..., None]
        letters = room.expand(*state.shape[:-1], self.vocab)
        if self.automaton is not None:
            letters = letters & self.automaton.legal(state[..., : self.length])[..., : self.vocab]
        return torch.cat([letters, ~room], -1) | self.done(state)[..., None]

    def slippable(self, state: Int[Tensor, "*batch S"]) -> Bool[Tensor, "*batch K"]:
        """Outcomes for which there is room: pairs where two letters are missing, letters where one is."""
        room = torch.where(self.done(state), 0, self.length - self.written(state))[..., None]
        pair = torch.arange(self.outcomes, device=state.device) > self.nothing
        return room >= pair.long() + 1

    def possible(self, state: Int[Tensor, "*batch S"]) -> Bool[Tensor, "*batch K"]:
        """What there is room for, and nothing where the noise deletes or the sequence is full."""
        found = self.slippable(state) | self.done(state)[..., None]
        full = self.written(state) == self.length
        quiet = torch.ones_like(full) if self.noise.deletes else full | self.done(state)
        return torch.where(torch.arange(self.outcomes, device=state.device) == self.nothing, quiet[..., None], found)

    def apply(self, state: Int[Tensor, "*batch S"], outcome: Int[Tensor, "*batch"]) -> Int[Tensor, "*batch S"]:
        """Write what the cycle wrote behind the last letter, and count the cycle."""
        place, count = torch.arange(self.length, device=state.device), self.written(state)[..., None]
        pair = outcome - self.vocab - 1
        first = torch.where(pair >= 0, pair // self.vocab, outcome)
        moved = torch.where((place == count) & (first < self.vocab)[..., None], first[..., None], state[..., :-1])
        second = (place == count + 1) & (pair >= 0)[..., None]
        moved = torch.where(second, (pair % self.vocab)[..., None], moved)
        after = torch.cat([moved, state[..., -1:] + 1], -1)
        return torch.where(self.done(state)[..., None], state, after)

    def parents(self, state: Int[Tensor, "*batch S"]) -> Bool[Tensor, "*batch K"]:
        """Nothing, the last letter and the last two, each where the state before it is one that can be reached."""
        count, cycle, last, before = self._ends(state)
        spans = constant(((1, 0), *self.spans[:-1]), state.device)[cycle]  # of the cycle before
        reached = [(count - n >= spans[..., 0]) & (count - n <= spans[..., 1]) for n in (0, 1, 2)]
        quiet = torch.ones_like(reached[0]) if self.noise.deletes else count == self.length
        found = [(one_hot(last, self.vocab) > 0) & reached[1][..., None], (quiet & reached[0])[..., None]]
        if self.noise.inserts:
            both = torch.where((count >= 2) & reached[2], self.vocab * before + last, self.vocab**2)
            found.append(one_hot(both, self.vocab**2) > 0)
        return torch.cat(found, -1) | (cycle == 0)[..., None]

    def _ends(self, state: Int[Tensor, "*batch S"]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Letters, cycles, the last letter and the one before it; V where there is none."""
        count = self.written(state)
        padded = torch.cat([torch.full_like(state[..., :2], self.vocab), state[..., : self.length]], -1)
        last, before = (padded.gather(-1, (count + n)[..., None])[..., 0] for n in (1, 0))
        return count, state[..., -1], last, before

    def parent(self, state: Int[Tensor, "*batch S"], outcome: Int[Tensor, "*batch"]) -> Int[Tensor, "*batch S"]:
        """Take off what the outcome wrote, and its cycle."""
        wrote = torch.where(outcome > self.nothing, 2, torch.where(outcome == self.nothing, 0, 1))
        kept = torch.arange(self.length, device=state.device) < (self.written(state) - wrote)[..., None]
        letters = torch.where(kept, state[..., :-1], self.blank)
        return torch.cat([letters, (state[..., -1:] - 1).clamp(min=0)], -1)

    def support(self, state: Int[Tensor, "*batch S"]) -> Bool[Tensor, "*batch K A"]:
        """As in Env: each outcome has its own parent."""
        return super(SequenceEnv, self).support(state)

    def encode(self, state: Int[Tensor, "*batch S"]) -> Float[Tensor, "*batch F"]:
        """One-hot letters by place, one-hot length, one-hot cycles."""
        letters = one_hot(state[..., : self.length], self.vocab).flatten(-2)
        length = one_hot(self.written(state), self.length + 1)
        return torch.cat([letters, length, one_hot(state[..., -1], self.horizon + 1)], -1)

    def toward(self, state: Int[Tensor, "*batch S"], goal: Int[Tensor, "*batch O"]) -> Float[Tensor, "*batch K"]:
        """The next letter of the goal or nothing, uniform over the cycles in which its letters may be written."""
        count = self.written(state)
        following = goal.gather(-1, count.clamp(max=self.length - 1)[..., None])[..., 0]
        missing = (self.written(goal) - count).clamp(min=0)
        left = (self.horizon - state[..., -1]).clamp(min=1)
        waits = (1.0 - missing / left).clamp(0.0, 1.0)
        if not self.noise.deletes:
            waits = (missing == 0).float()
        letters = one_hot(following, self.outcomes) * (1.0 - waits)[..., None]
        return letters + one_hot(torch.full_like(count, self.nothing), self.outcomes) * waits[..., None]

    # whole orders, made in as many cycles as they have letters

    def all_strings(self) -> Int[Tensor, "M L"]:
        """All that may be read of an order: sequences by length, none first, then in alphabetical order."""
        return self._all_strings(0, self.length)

    def laws(self, orders: Int[Tensor, "N L"]) -> list[Float64[Tensor, "N M"]]:
        """P(x|o) of all that may be read, by its number of letters; together in the order of `all_strings`."""
        return string_laws(self.noise, orders, self.length)

    def value_table(self, scores: Float[Tensor, " M"], failed: float) -> Float64[Tensor, " M"]:
        """E[f(x)|o] of all orders of `length` letters, from the scores of all sequences of it: see `open_loop`."""
        return value_table(self.noise, self.length, scores, failed)

    def number(self, rows: Int[Tensor, "N L"]) -> Int[Tensor, " N"]:
        """Numbers of whole sequences in alphabetical order."""
        return self._number(rows)

    # objects

    def objects(self, state: Int[Tensor, "*batch S"]) -> Int[Tensor, "*batch O"]:
        """The letters written, with blanks behind."""
        return state[..., : self.length]

    def read(self, objects: Int[Tensor, "*batch O"]) -> Int[Tensor, "*batch O"]:
        """Objects with the flank behind their last letter, as far as it goes."""
        return filled(objects, self.vocab, self.noise.flank)

    def admissible(self, objects: Int[Tensor, "*batch O"]) -> Bool[Tensor, "*batch"]:
        """Which objects, as they are read, have all letters and satisfy the constraints."""
        rows = self.read(objects)
        whole = self.written(rows) >= self.shortest
        return whole if self.automaton is None else whole & self.automaton.feasible(rows)

    def levels(self) -> Iterator[Int[Tensor, "N S"]]:
        """All states by the number of cycles."""
        for cycle in range(self.horizon):
            letters = self._all_strings(*self.spans[cycle])
            yield torch.cat([letters, torch.full_like(letters[:, :1], cycle)], 1)

    def index(self, state: Int[Tensor, "*batch S"]) -> Int[Tensor, "*batch"]:
        """By cycle, length and then in alphabetical order."""
        offsets = constant(tuple(self.level_offsets), state.device)
        return offsets[state[..., -1]] + self._place(state, state[..., -1])

    def object_index(self, objects: Int[Tensor, "*batch O"]) -> Int[Tensor, "*batch"]:
        """By length, then in alphabetical order."""
        return self._place(objects, torch.full(objects.shape[:-1], self.horizon, device=objects.device))

    def _place(self, rows: Int[Tensor, "*batch _"], cycle: Int[Tensor, "*batch"]) -> Int[Tensor, "*batch"]:
        """Number of a sequence among those that so many cycles may write."""
        least = constant(tuple(low for low, _ in self.spans), rows.device)[cycle]
        shorter = (self.vocab ** self.written(rows) - self.vocab**least) // (self.vocab - 1)
        return self._number(rows[..., : self.length]) + shorter

    def all_objects(self) -> Int[Tensor, "N O"]:
        """All sequences of up to `length` letters."""
        return self._all_strings(*self.spans[-1])

    def _all_strings(self, least: int, most: int) -> Int[Tensor, "N L"]:
        return torch.cat([self._strings(n) for n in range(least, most + 1)])

    def parse(self, texts: list[str]) -> Int[Tensor, "N O"]:
        """Letters to token ids; what came out may have fewer letters than were ordered."""
        return self.parse_between(texts, 0)


def constant(values: tuple[Any, ...], device: torch.device) -> Int[Tensor, "..."]:
    """Whole numbers on a device, copied there once: a copy inside a step would break its capture in a CUDA graph."""
    key = (values, device)
    if key not in CONSTANTS:
        CONSTANTS[key] = torch.tensor(values, device=device)
    return CONSTANTS[key]


def filled(rows: Int[Tensor, "*batch L"], vocab: int, flank: tuple[int, ...]) -> Int[Tensor, "*batch L"]:
    """Rows of letters with a flank written over the blanks behind them, as far as it goes."""
    if not flank:
        return rows
    length, count = rows.shape[-1], (rows < vocab).sum(-1, keepdim=True)
    behind = constant((*flank[:length], *[vocab] * max(0, length - len(flank))), rows.device)
    place = (torch.arange(length, device=rows.device) - count).clamp(min=0)
    return torch.where(rows < vocab, rows, behind[place])
