"""Rollouts on a CPU that keep what the gradient of their batch reads: networks by kernels in C++, the rest compiled.

A kernel represents the prefix that a letter was added to; heads, exploration, noise and the next state are one compiled
function, as in `learning.letters`. An update on the same batch then needs no second pass through the network.
"""

from abc import abstractmethod

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.envs.sequence import SequenceEnv
from sgfn.envs.trajectories import Trajectories
from sgfn.learning.kernels.cpu_mlp import KeptMLP, mlp_fits
from sgfn.learning.kernels.cpu_transformer import KeptTransformer, rounds_fast, transformer_fits
from sgfn.learning.letters import CompiledLetters, Memory, letters_fit
from sgfn.learning.rollout import RolloutSteps
from sgfn.nets.encoders import MLP, SequenceReader
from sgfn.nets.heads import FlowNets

MOST_ALONE = 8192
"""Entries of the laws of a letter up to which one thread makes them: a guess, as two threads meet in microseconds."""


class KeptLetters(CompiledLetters):
    """Rollouts whose representations are kept until they are asked for."""

    def __init__(self, env: SequenceEnv, nets: FlowNets, device: torch.device) -> None:
        super().__init__(env, nets, device)
        self.rows = env.horizon + nets.reads_final
        self.kept: KeptTransformer | KeptMLP | None = None
        self.made: Tensor | None = None  # outcomes of the last rollout

    @abstractmethod
    def make(self) -> KeptTransformer | KeptMLP:
        """The kernel with room for a batch."""

    @abstractmethod
    def first(self) -> Tensor:
        """What the kernel reads before the first letter."""

    @abstractmethod
    def item(self, letter: Int[Tensor, " B"]) -> Tensor:
        """What the kernel reads of a letter."""

    @abstractmethod
    def items(self, letters: Int[Tensor, "B L"]) -> Tensor:
        """What `representations` of the kernel reads of all letters."""

    def whole_rollout(
        self, clock: Float[Tensor, "T 2 B W"], explore: float, temperature: float | Tensor
    ) -> RolloutSteps | None:
        """All steps of a batch, kept for `representations`."""
        found = super().whole_rollout(clock, explore, temperature)
        self.made = None if found is None else found.realised
        return found

    def representations(self, batch: Trajectories) -> Float[Tensor, "B N H"] | None:
        """Representations of all states that are scored, with gradients, where these are the last rollout; else None.

        Weights must be those of the rollout, so that they are given once.
        """
        made, self.made = self.made, None
        if made is None or batch.realised is not made or self.kept is None:
            return None
        return self.kept.representations(self.items(batch.states[:, -1, : self.rows - 1]))

    def _start(self) -> Memory:
        """The representation of the empty prefix."""
        if self.kept is None:
            self.kept = self.make()
        self.kept.start()
        return (self.kept.letter(self.first(), 0),)

    def _next(self, position: int, memory: Memory, more: list[Tensor]) -> Memory:
        """The representation of the prefix with the last letter."""
        assert self.kept is not None
        return (self.kept.letter(more[0], position),) if position < self.rows else ()

    def _options(self) -> dict[str, int]:
        """One thread for few laws, which another would wait for longer than it helps."""
        return {"cpp.threads": 1} if self.batch * self.env.actions <= MOST_ALONE else {}

    def _more(self, position: Int[Tensor, " 1"], after: Int[Tensor, "B S"]) -> Memory:
        """What the kernel reads of the letter that was written."""
        return (self.item(after.index_select(1, position)[:, 0]),)

    def _read(self, position: Int[Tensor, " 1"], state: Int[Tensor, "B S"], memory: Memory) -> Tensor:
        """The representation that the kernel computed."""
        return memory[0]


class TransformerLetters(KeptLetters):
    """Rollouts by a transformer; `rounded` as in `KeptTransformer`."""

    rounded = False

    def make(self) -> KeptTransformer:
        """The kernel for transformers."""
        return KeptTransformer(self.tokens.core, self.batch, self.rows, rounded=self.rounded)

    def first(self) -> Tensor:
        """The learned start."""
        return self.tokens.begin.expand(self.batch, -1)

    def item(self, letter: Int[Tensor, " B"]) -> Tensor:
        """Its embedding."""
        return self.tokens.token(letter)

    def items(self, letters: Int[Tensor, "B L"]) -> Tensor:
        """Start and embeddings."""
        return torch.cat([self.tokens.begin.expand(self.batch, 1, -1), self.tokens.token(letters)], 1)


class MLPLetters(KeptLetters):
    """Rollouts by an MLP on sums over letters."""

    def make(self) -> KeptMLP:
        """The kernel for MLPs."""
        assert isinstance(self.nets.encoder, MLP)
        return KeptMLP(self.nets.encoder, self.env, self.batch, self.rows)

    def first(self) -> Tensor:
        """Letters that are not read."""
        return torch.zeros(self.batch, dtype=torch.long)

    def item(self, letter: Int[Tensor, " B"]) -> Tensor:
        """The letter."""
        return letter

    def items(self, letters: Int[Tensor, "B L"]) -> Tensor:
        """The letters."""
        return letters


def make_letters(env: object, nets: FlowNets, device: torch.device, *, rounded: bool = False) -> CompiledLetters | None:
    """Rollouts letter by letter, by a kernel for CPUs where one fits; None where they are not made so.

    `rounded` lets that for transformers round factors of its gradient's products, where the processor is faster so.
    """
    cpu = device.type == "cpu"
    if not isinstance(env, SequenceEnv):
        return None
    if letters_fit(env, nets):
        assert isinstance(nets.encoder, SequenceReader)
        if not cpu or not transformer_fits(nets.encoder.tokens.core):
            return CompiledLetters(env, nets, device)
        found = TransformerLetters(env, nets, device)
        found.rounded = rounded and rounds_fast()
        return found
    plain = cpu and nets.join is None and env.intends_outcomes and mlp_fits(env, nets.encoder)
    return MLPLetters(env, nets, device) if plain else None
