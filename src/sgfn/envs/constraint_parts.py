"""Finite automata of single constraints, and their product: the automaton of all of them together.

A part has states 0 .. n-1, begins in state 0, and says for each length of the prefix which state follows each letter
(-1: broken for good) and in which states a sequence of that length may end.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from jaxtyping import Bool, Int

from sgfn.envs.automaton import Automaton

MOST_STATES = 1_000_000
"""Nodes of an automaton, and states of a part, at most."""
MOST_ENTRIES = 40_000_000
"""Entries of an automaton's table at most: nodes times letters."""


@dataclass(frozen=True)
class Part:
    """A finite automaton; tables have a first dimension of one where they are the same at every length."""

    following: Int[np.ndarray, "T n V"]
    final: Bool[np.ndarray, "U n"]

    @property
    def states(self) -> int:
        """n: number of states."""
        return self.following.shape[1]

    def step(self, length: int) -> Int[np.ndarray, "n V"]:
        """The state after each letter, for prefixes of a length."""
        return self.following[0 if self.following.shape[0] == 1 else min(length, self.following.shape[0] - 1)]

    def ends(self, length: int) -> Bool[np.ndarray, " n"]:
        """Whether a sequence of a length may end in each state."""
        return self.final[0 if self.final.shape[0] == 1 else min(length, self.final.shape[0] - 1)]


def forbidden(motifs: Sequence[Sequence[frozenset[int]]], vocab: int) -> Part:
    """Sequences that hold none of the motifs, each a list of sets of letters.

    A state is the set of beginnings of motifs that a prefix ends with, found letter by letter: without ambiguous
    letters these are the states of Aho and Corasick (1975, Communications of the ACM 18).
    """

    def step(state: frozenset[tuple[int, int]], letter: int) -> frozenset[tuple[int, int]] | None:
        begun = [*state, *((number, 0) for number in range(len(motifs)))]
        moved = frozenset((number, at + 1) for number, at in begun if letter in motifs[number][at])
        return None if any(at == len(motifs[number]) for number, at in moved) else moved

    return _determined(frozenset(), step, lambda state: True, vocab, "forbid")


def longest_run(most: int, vocab: int) -> Part:
    """Sequences in which no letter stands more than `most` times in a row."""
    # state 0 is the beginning; 1 + v most + (r - 1) is a run of r letters v
    following = np.full((1, 1 + vocab * most, vocab), -1, dtype=np.int64)
    first = 1 + np.arange(vocab) * most
    following[0] = first
    for letter in range(vocab):
        for run in range(1, most + 1):
            following[0, first[letter] + run - 1, letter] = first[letter] + run if run < most else -1
    return Part(following, np.ones((1, following.shape[1]), dtype=bool))


def share(counted: Bool[np.ndarray, " V"], low: float, high: float, longest: int) -> Part:
    """Sequences in which a share between low and high of the letters are counted ones."""
    count = np.arange(longest + 1)
    after = count[:, None] + counted[None, :]
    lengths = count[:, None]
    final = (count >= low * lengths - 1e-9) & (count <= high * lengths + 1e-9) & (count <= lengths)
    return Part(np.where(after <= longest, after, -1)[None], final)


def net_charge(charges: Int[np.ndarray, " V"], low: int, high: int, longest: int) -> Part:
    """Sequences whose letters' charges sum to a number from low to high; a sum c is state c modulo 2 `longest` + 1."""
    sums, size = np.arange(-longest, longest + 1), 2 * longest + 1
    after = sums[:, None] + charges[None, :]
    following, final = np.zeros((1, size, len(charges)), dtype=np.int64), np.zeros((1, size), dtype=bool)
    following[0, sums % size] = np.where(abs(after) <= longest, after % size, -1)
    final[0, sums % size] = (sums >= low) & (sums <= high)
    return Part(following, final)


def positions(allowed: Bool[np.ndarray, "L V"]) -> Part:
    """Sequences of one length with given letters at each position."""
    following = np.where(allowed, 0, -1)[:, None, :]
    return _of_length(Part(np.concatenate([following, np.full_like(following[:1], -1)]), np.ones((1, 1), dtype=bool)))


def substitutions(parent: Sequence[int], most: int, vocab: int) -> Part:
    """Sequences as long as a parent that differ from it in at most so many positions."""
    count = np.arange(most + 1)
    after = count[None, :, None] + (np.arange(vocab) != np.array(parent)[:, None])[:, None, :]
    following = np.where(after <= most, after, -1)
    end = np.full_like(following[:1], -1)
    return _of_length(Part(np.concatenate([following, end]), np.ones((1, most + 1), dtype=bool)))


def _of_length(part: Part) -> Part:
    """The part with sequences of all other lengths refused; its steps are as many as its letters, and one more."""
    length = part.following.shape[0] - 1
    final = np.zeros((length + 2, part.states), dtype=bool)
    final[length] = part.final[0]
    return Part(part.following, final)


def edits(parent: Sequence[int], most: int, vocab: int) -> Part:
    """Sequences that at most so many substitutions, insertions and deletions turn into a parent.

    A state is the row of the edit-distance table that a prefix has filled, with all values above `most` made one: the
    automaton of Schulz and Mihov (2002, International Journal on Document Analysis and Recognition 5).
    """
    above = most + 1

    def step(row: tuple[int, ...], letter: int) -> tuple[int, ...] | None:
        live = [place for place, value in enumerate(row) if value <= most]
        first, last = live[0], min(live[-1] + 1 + most, len(parent))  # beyond these all values stay above `most`
        after = [above] * (len(parent) + 1)
        after[first] = min(row[first] + 1, above)
        for place in range(first, last):
            wrong = letter != parent[place]
            after[place + 1] = min(row[place] + wrong, row[place + 1] + 1, after[place] + 1, above)
        return None if min(after) > most else tuple(after)

    start = tuple(min(place, above) for place in range(len(parent) + 1))
    return _determined(start, step, lambda row: row[-1] <= most, vocab, "max-mutations")


S = TypeVar("S", bound=Hashable)


def _determined(
    start: S, step: Callable[[S, int], S | None], accepts: Callable[[S], bool], vocab: int, name: str
) -> Part:
    """The part whose states are all that can be reached from a start; `step` gives None where a prefix is broken."""
    number, states, table = {start: 0}, [start], []
    for state in states:
        row = []
        for letter in range(vocab):
            after = step(state, letter)
            if after is not None and after not in number:
                number[after] = len(states)
                states.append(after)
            row.append(-1 if after is None else number[after])
        table.append(row)
        if len(states) * vocab > MOST_ENTRIES // 10:
            raise TooLargeError(
                f"--{name} needs more than {len(states):,} states by itself: give fewer or shorter ones"
            )
    final = np.array([accepts(state) for state in states])
    return Part(np.array(table, dtype=np.int64)[None], final[None])


class TooLargeError(ValueError):
    """Constraints need more states than an automaton may have."""


def product(parts: Sequence[Part], alphabet: str, lengths: tuple[int, int], accepted: tuple[int, int]) -> Automaton:
    """The automaton of sequences that every part accepts and that have an accepted length; one that accepts nothing
    has no nodes but the broken one.

    `lengths` are those of the task, `accepted` a range within them.
    """
    levels, children = _forward(parts, len(alphabet), accepted)
    finals = [_final(parts, states, length, accepted[0]) for length, states in enumerate(levels)]
    useful = _backward(children, finals)
    offsets = np.cumsum([1, *(int(mask.sum()) for mask in useful)]).tolist()
    following = np.zeros((max(offsets[-1], 1), len(alphabet)), dtype=np.int32)
    final = np.zeros(following.shape[0], dtype=bool)
    for length, mask in enumerate(useful):
        here = slice(offsets[length], offsets[length + 1])
        final[here] = finals[length][mask]
        if length < len(children):
            number = np.append(
                np.where(useful[length + 1], np.cumsum(useful[length + 1]) + offsets[length + 1] - 1, 0), 0
            )
            following[here] = number[children[length][mask]]  # -1, a broken prefix, is the last entry: 0
    offsets += [offsets[-1]] * (lengths[1] + 2 - len(offsets))
    return Automaton(
        alphabet=alphabet,
        min_length=lengths[0],
        max_length=lengths[1],
        following=torch.from_numpy(following),
        final=torch.from_numpy(final),
        offsets=offsets,
    )


def _forward(
    parts: Sequence[Part], vocab: int, accepted: tuple[int, int]
) -> tuple[list[Int[np.ndarray, "_ _"]], list[Int[np.ndarray, "_ _"]]]:
    """States of all parts that prefixes of each length lead to, and the number in the next level after each letter."""
    alive = [_alive(part, accepted) for part in parts]
    sizes = [part.states for part in parts]
    if np.prod([float(size) for size in sizes]) > 2.0**62:
        raise TooLargeError(_told_too_large(int(2.0**62)))
    levels, children, total = [np.zeros((1, len(parts)), dtype=np.int64)], [], 1
    for length in range(accepted[1]):
        states = levels[-1]
        code, there = np.zeros((len(states), vocab), dtype=np.int64), np.ones((len(states), vocab), dtype=bool)
        for number, part in enumerate(parts):
            after = part.step(length)[states[:, number]]  # n V
            there &= (after >= 0) & alive[number][length + 1][after]
            code = code * sizes[number] + after
        found, place = np.unique(code[there], return_inverse=True)
        child = np.full(code.shape, -1)
        child[there] = place
        children.append(child)
        levels.append(_decoded(found, sizes))
        total += len(found)
        if total > MOST_STATES or total * vocab > MOST_ENTRIES:
            raise TooLargeError(_told_too_large(total))
    return levels, children


def _told_too_large(total: int) -> str:
    return (
        f"the constraints together need more than {total:,} states, the limit is {MOST_STATES:,} (or {MOST_ENTRIES:,} "
        "states times letters): leave one out, or take shorter sequences"
    )


def _decoded(codes: Int[np.ndarray, " n"], sizes: list[int]) -> Int[np.ndarray, "n P"]:
    """The states of the parts, from numbers in mixed radix."""
    columns = []
    for size in reversed(sizes):
        columns.append(codes % size)
        codes = codes // size
    return np.stack(columns[::-1], 1) if columns else np.zeros((len(codes), 0), dtype=np.int64)


def _alive(part: Part, accepted: tuple[int, int]) -> list[Bool[np.ndarray, " _"]]:
    """Which states of a part, by length, may still lead to a sequence that it accepts."""
    alive: list[Any] = [part.ends(accepted[1])]
    for length in range(accepted[1] - 1, -1, -1):
        after = part.step(length)
        reach = ((after >= 0) & alive[-1][after]).any(1)
        alive.append(reach | part.ends(length) if length >= accepted[0] else reach)
    return alive[::-1]


def _final(parts: Sequence[Part], states: Int[np.ndarray, "n P"], length: int, least: int) -> Bool[np.ndarray, " n"]:
    """Which nodes of a level may end a sequence."""
    ends = np.full(len(states), length >= least)
    for number, part in enumerate(parts):
        ends &= part.ends(length)[states[:, number]]
    return ends


def _backward(
    children: list[Int[np.ndarray, "_ _"]], finals: list[Bool[np.ndarray, " _"]]
) -> list[Bool[np.ndarray, " _"]]:
    """Which nodes of each level may still lead to an accepted sequence: one pass from the end."""
    useful = [finals[-1]]
    for child, final in zip(children[::-1], finals[-2::-1], strict=True):
        after = np.append(useful[-1], False)  # a broken prefix is the last entry
        useful.append(np.asarray(final | after[child].any(1)))
    return useful[::-1]
