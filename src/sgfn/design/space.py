"""The space of orders: letters, lengths, constraints, and the noise between an order and what comes out."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from sgfn.config.checks import is_ours
from sgfn.design.edits import lengths_of, random_rows
from sgfn.envs import IndelEnv, SequenceEnv
from sgfn.envs.automaton import Automaton
from sgfn.envs.checks import check_env
from sgfn.envs.constraints import Constraints
from sgfn.noise import Noise, UniformSlip
from sgfn.noise.indel import Indel

NO_NOISE = UniformSlip(alpha=0.0)


@dataclass(frozen=True, kw_only=True)
class OrderSpace:
    """All sequences that may be ordered; tokens are rows [N, L] with blanks behind the end."""

    alphabet: str
    min_length: int
    max_length: int
    noise: Noise = NO_NOISE
    constraints: Constraints | None = None
    failed: float = 0.0
    """What a sequence counts for that comes out with too few letters."""
    avoided: Bool[Tensor, "W W"] | None = field(default=None, compare=False, repr=False)
    """Letters that searches do not put behind each other, as only sequences that failed have them."""

    @classmethod
    def of(cls, env: SequenceEnv) -> "OrderSpace":
        """The sequences that an environment makes, with its noise and constraints."""
        return cls(
            alphabet=env.alphabet,
            min_length=env.min_length if env.stop else env.length,
            max_length=env.length,
            noise=env.noise,
            constraints=getattr(env, "constraints", None),
        )

    @property
    def vocab(self) -> int:
        """Number of letters."""
        return len(self.alphabet)

    @property
    def varies(self) -> bool:
        """Whether orders differ in length."""
        return self.min_length < self.max_length

    @cached_property
    def automaton(self) -> Automaton | None:
        """The constraints compiled; None where there are none."""
        if not self.constraints:
            return None
        return self.constraints.compile(self.alphabet, self.min_length, self.max_length)

    @cached_property
    def env(self) -> SequenceEnv:
        """The environment of all sequences and their noise, without constraints: they bind orders, not outcomes.

        Of a noise that changes lengths it is without noise, and `channel` is where orders are made.
        """
        made = self._env(noise=NO_NOISE if self.noise.changes_length else self.noise)
        if not is_ours(made.noise):
            check_env(made)  # one that is no law would give plates of nonsense
        return made

    @cached_property
    def channel(self) -> SequenceEnv:
        """The environment in which orders come out as the noise makes them."""
        if not isinstance(self.noise, Indel):
            return self.env
        letters = {"length": self.max_length, "alphabet": self.alphabet}
        return IndelEnv(**letters, noise=self.noise, shortest=self.min_length)

    def order_env(self) -> SequenceEnv:
        """The environment in which orders are built letter by letter: under the constraints, without noise."""
        return self._env(
            noise=UniformSlip(alpha=0.0), **({"constraints": self.constraints} if self.constraints else {})
        )

    def _env(self, **parts: Any) -> SequenceEnv:
        shortest = self.min_length if self.varies else 1
        letters = {"length": self.max_length, "alphabet": self.alphabet}
        return SequenceEnv(**letters, stop=self.varies, min_length=shortest, **parts)

    @property
    def silent(self) -> bool:
        """Whether every order comes out as it is."""
        return isinstance(self.noise, UniformSlip) and self.noise.alpha == 0.0

    @property
    def size(self) -> float:
        """Number of orders that are allowed."""
        return float(self.env.num_objects) if self.automaton is None else self.automaton.size

    def parse(self, texts: list[str]) -> Int[Tensor, "N L"]:
        """Tokens of sequences; raises for one that is not in the space."""
        return self.env.parse(texts)

    def decode(self, tokens: Int[Tensor, "N L"]) -> list[str]:
        """Sequences as text; as `SequenceEnv.decode`, without a loop over letters."""
        letters = np.array([*self.alphabet, ""])[tokens.numpy()]  # blanks stand at the end alone
        return letters.view(f"<U{tokens.shape[1]}")[:, 0].tolist()

    def allowed(self, tokens: Int[Tensor, "N L"]) -> Bool[Tensor, " N"]:
        """Whether each row has an admitted length and satisfies the constraints."""
        size = lengths_of(tokens, self.vocab)
        fits = (size >= self.min_length) & (size <= self.max_length)
        if self.automaton is None or not bool(fits.any()):
            return fits
        fits[fits.clone()] = self.automaton.feasible(tokens[fits])
        return fits

    def promising(self, tokens: Int[Tensor, "N L"]) -> Bool[Tensor, " N"]:
        """Whether each row is allowed and has no neighbours that are avoided."""
        fits = self.allowed(tokens)
        return fits if self.avoided is None else fits & ~self.avoided[tokens[:, :-1], tokens[:, 1:]].any(1)

    def everything(self) -> Int[Tensor, "N L"]:
        """Every order that is allowed."""
        return self.env.all_objects() if self.automaton is None else self.automaton.all_rows()

    def random(self, count: int, generator: torch.Generator) -> Int[Tensor, "N L"]:
        """Random orders that are allowed."""
        if self.automaton is not None:
            return self.automaton.sample(count, generator)
        return random_rows(count, self.vocab, (self.min_length, self.max_length), generator)


def row_keys(tokens: Int[Tensor, "N L"]) -> list[bytes]:
    """A key for each row, equal for equal rows."""
    array = tokens.to(torch.int16).contiguous().numpy()
    return [row.tobytes() for row in array]
