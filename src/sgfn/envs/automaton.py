"""Automata over prefixes: which letters may follow each prefix, and where a sequence may end.

A node is a class of prefixes of one length that may be continued alike. Nodes from which no accepted sequence can be
reached are left out, so that whoever follows the masks never comes to a dead end. Node 0 stands for every prefix that
was left out: it is absorbing, and everything is legal there, because nothing can be mended.
"""

from collections.abc import Iterator

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sgfn.config.checks import shorten

BROKEN, START = 0, 1
MOST_LISTED = 5_000_000
"""Sequences that are listed at most."""
CHUNK = 65536


class Automaton:
    """The accepted sequences over an alphabet, as tables over nodes; `sgfn.envs.constraints` says how they are made.

    `following[n, v]` is the node after letter v, `final[n]` whether a sequence may end at node n, and nodes of prefixes
    of length t are those from `offsets[t]` on.
    """

    def __init__(
        self,
        *,
        alphabet: str,
        min_length: int,
        max_length: int,
        following: Int[Tensor, "N V"],
        final: Bool[Tensor, " N"],
        offsets: list[int],
        told: str = "",
    ) -> None:
        self.alphabet, self.min_length, self.max_length = alphabet, min_length, max_length
        """Lengths are those of the task; which of them are accepted is told by `final`."""
        self.following, self.final, self.offsets = following, final, offsets
        self.told = told
        """The constraints in a few words."""
        self.letters = following > 0
        self.letters[BROKEN] = True
        self.stops = final.clone()
        self.stops[BROKEN] = True
        self._kept: dict[torch.device, tuple[Tensor, ...]] = {}

    @property
    def vocab(self) -> int:
        """V: number of letters."""
        return self.following.shape[1]

    @property
    def states(self) -> int:
        """Number of nodes, that of broken prefixes included."""
        return self.following.shape[0]

    def _tables(self, device: torch.device) -> tuple[Tensor, ...]:
        """Following nodes, letters, ends and accepted nodes on a device; copied once."""
        if device not in self._kept:
            self._kept[device] = tuple(
                table.to(device) for table in (self.following, self.letters, self.stops, self.final)
            )
        return self._kept[device]

    def nodes(self, rows: Int[Tensor, "*batch L"]) -> Int[Tensor, "*batch"]:
        """Node of each row of letters, read up to its first entry that is no letter."""
        following = self._tables(rows.device)[0]
        node = torch.full(rows.shape[:-1], START, dtype=torch.int64, device=rows.device)
        for place, letter in enumerate(rows.unbind(-1)):
            there = letter < self.vocab
            if place >= self.max_length:
                node = torch.where(there, BROKEN, node)
                continue
            after = following[node, letter.clamp(0, self.vocab - 1)].long()
            node = torch.where(there, after, node)
        return node

    def legal(self, rows: Int[Tensor, "*batch L"]) -> Bool[Tensor, "*batch K"]:
        """Which letters may follow each prefix, and in the last column whether it may end there."""
        _, letters, stops, _ = self._tables(rows.device)
        node = self.nodes(rows)
        return torch.cat([letters[node], stops[node][..., None]], -1)

    def feasible(self, rows: Int[Tensor, "*batch L"]) -> Bool[Tensor, "*batch"]:
        """Whether each row of letters, with anything else behind them, is accepted."""
        return self._tables(rows.device)[3][self.nodes(rows)]

    def accepts(self, text: str) -> bool:
        """Whether a sequence is accepted."""
        return bool(self.feasible(self.rows([text]))[0])

    def rows(self, texts: list[str]) -> Int[Tensor, "N L"]:
        """Sequences as rows of letters, filled up with V; a letter outside the alphabet is refused."""
        code = {letter: number for number, letter in enumerate(self.alphabet)}
        width = max([self.max_length, *map(len, texts)])
        found = np.full((len(texts), width), self.vocab, dtype=np.int64)
        for number, text in enumerate(texts):
            try:
                found[number, : len(text)] = [code[letter] for letter in text]
            except KeyError as error:
                what = f"letter {error.args[0]!r} is not in the alphabet {self.alphabet}"
                raise ValueError(f"entry {number + 1} ({shorten(text)!r}): {what}") from None
        return torch.from_numpy(found)

    def texts(self, rows: Int[Tensor, "N L"]) -> list[str]:
        """Rows of letters as sequences."""
        letters = [*self.alphabet, ""]
        return ["".join(letters[i] for i in row) for row in rows.clamp(max=self.vocab).tolist()]

    # all accepted sequences

    def level(self, length: int) -> slice:
        """The nodes of prefixes of one length."""
        return slice(self.offsets[length], self.offsets[length + 1])

    def completions(self) -> Float[Tensor, " N"]:
        """How many accepted sequences begin with a prefix of each node; in double precision, from the end backwards."""
        count = self.final.double()
        for length in range(self.max_length - 1, -1, -1):
            here = self.level(length)
            after = torch.where(self.following[here] > 0, count[self.following[here].long()], 0.0)
            count[here] += after.sum(-1)
        return count

    @property
    def size(self) -> float:
        """Number of accepted sequences: exact up to 2^53, then in double precision."""
        return float(self.completions()[START])

    def all_rows(self, limit: int = MOST_LISTED) -> Int[Tensor, "N L"]:
        """Every accepted sequence, by length and then in the order of the alphabet; refused where there are more."""
        if self.size > limit:
            raise ValueError(f"{self.size:,.0f} sequences satisfy the constraints, the limit is {limit:,}")
        return torch.cat(list(self._by_length()))

    def _by_length(self) -> Iterator[Int[Tensor, "N L"]]:
        prefixes = torch.zeros(1, 0, dtype=torch.int64)
        nodes = torch.full((1,), START)
        for length in range(self.max_length + 1):
            ends = prefixes[self.final[nodes]]
            blank = torch.full((ends.shape[0], self.max_length - length), self.vocab)
            yield torch.cat([ends, blank], 1)
            if length < self.max_length:
                row, letter = (self.following[nodes] > 0).nonzero().unbind(1)
                prefixes = torch.cat([prefixes[row], letter[:, None]], 1)
                nodes = self.following[nodes[row], letter].long()

    def sample(self, count: int, generator: torch.Generator) -> Int[Tensor, "N L"]:
        """Rows drawn uniformly from all accepted sequences, as `completions` counts them."""
        weight = self.completions()
        blocks = [self._draw(min(CHUNK, count - begun), weight, generator) for begun in range(0, count, CHUNK)]
        return torch.cat(blocks) if blocks else torch.zeros(0, self.max_length, dtype=torch.int64)

    def _draw(self, count: int, weight: Float[Tensor, " N"], generator: torch.Generator) -> Int[Tensor, "B L"]:
        node = torch.full((count,), START)
        rows = torch.full((count, self.max_length), self.vocab)
        ended = torch.zeros(count, dtype=torch.bool)
        for length in range(self.max_length):
            following = self.following[node].long()
            after = torch.where(following > 0, weight[following], 0.0)
            chances = torch.cat([after, self.final[node].double()[:, None]], 1)
            largest = chances.amax(-1, keepdim=True).clamp(min=1e-300)
            choice = torch.multinomial(chances / largest, 1, generator=generator)[:, 0]
            ended |= choice == self.vocab
            rows[:, length] = torch.where(ended, self.vocab, choice)
            node = torch.where(ended, node, following.gather(1, choice.clamp(max=self.vocab - 1)[:, None])[:, 0])
        return rows
