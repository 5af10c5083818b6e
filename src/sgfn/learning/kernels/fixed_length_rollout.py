"""Rollouts of append-only sequences of one length: all tokens are legal, noise depends on the position alone.

The law of the trajectories is that of `learning.rollout`, in fewer operations; the forward pass is returned with them.
"""

from dataclasses import dataclass
from types import ModuleType

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.envs.sequence import SequenceEnv
from sgfn.envs.tabulated import TabulatedEnv
from sgfn.learning.kernels.fixed_length_net import CodedRows, ForwardPass, RowNet, SpreadRows, StateRows, joined
from sgfn.learning.kernels.sequence_noise import SequenceNoise
from sgfn.learning.rollout import clocks
from sgfn.nets.encoders import sequence_of

MAX_BATCH_KEEPING_SUMS = 1024
"""Largest batch for which the rollout kernel keeps its forward pass for the update, and runs beside it on a GPU; in
larger batches it is less work to evaluate shared states once."""


@dataclass(frozen=True, kw_only=True)
class SequenceBatch:
    """A batch of sequences, steps first, and the rows of the states that they pass through."""

    rows: StateRows | CodedRows
    intended: Int[Tensor, "T B"]
    realised: Int[Tensor, "T B"]
    last: Int[Tensor, " B"] | None
    """The last shared state of each trajectory; None where none is shared."""
    index: Int[Tensor, " TB"] | None
    """The row of each visited state, steps first; None where the rows are the visited states in this order."""


@dataclass(frozen=True, kw_only=True)
class SequenceDraws:
    """Random numbers of a batch of rollouts, exploration and temperature."""

    clock: Float[Tensor, "T A B"]
    """Waiting times from which intentions are drawn."""
    uniform: Float[Tensor, "T 1 B"] | None
    """The policy is followed where these are at least `explore`; None where nothing is explored and T is 1."""
    noise: tuple[Tensor, ...]
    """Random numbers of `SequenceNoise.draw`."""
    explore: float
    temperature: float | Float[Tensor, ""]

    def logit_factors(self) -> tuple[Tensor, ...] | None:
        """Factor of the logits by step: 1/temperature where the policy is followed, 0 (uniform) where it explores."""
        if self.uniform is None:
            return None
        plain = not isinstance(self.temperature, Tensor) and self.temperature == 1.0
        follow = (self.uniform >= self.explore).float()
        return (follow if plain else follow / self.temperature).unbind()


@dataclass(frozen=True, kw_only=True)
class KernelRollouts:
    """A batch of rollouts that a GPU kernel has made."""

    intended: Int[Tensor, "B T"]
    realised: Int[Tensor, "B T"]
    states: Int[Tensor, "B T+1"]
    """Numbers of states, as `TabulatedEnv` numbers them."""
    sums: Float[Tensor, "layers T B H"] | None
    """Inputs of each activation; None where the update computes them again, for shared states once."""


class SequenceRollouts:
    """Makes rollouts by a network whose first outputs are the logits of the policy."""

    def __init__(self, env: SequenceEnv, net: RowNet, noise: SequenceNoise, device: torch.device) -> None:
        self.env, self.net, self.noise, self.device = env, net, noise, device
        self._rows: dict[int, StateRows] = {}

    def rows(self, batch: int) -> StateRows:
        """Rows of states that are evaluated for a batch of that size, made once."""
        if batch not in self._rows:
            self._rows[batch] = StateRows(self.env, batch, self.device)
        return self._rows[batch]

    def draw(
        self, batch: int, generator: torch.Generator, explore: float = 0.0, temperature: float | Tensor = 1.0
    ) -> SequenceDraws | KernelRollouts:
        """Random numbers of a batch, for `roll`."""
        clock = clocks((self.env.length, self.env.vocab, batch), generator)
        uniform, plain = None, not isinstance(temperature, Tensor) and temperature == 1.0
        if explore > 0.0 or not plain:
            uniform = torch.rand(self.env.length, 1, batch, generator=generator, device=self.device)
        noise = self.noise.draw(batch, generator)
        return SequenceDraws(clock=clock, uniform=uniform, noise=noise, explore=explore, temperature=temperature)

    @torch.no_grad()
    def roll(self, draws: SequenceDraws | KernelRollouts) -> tuple[SequenceBatch, ForwardPass]:
        """A batch of rollouts: intentions drawn from the policy, outcomes from the noise; with the forward pass."""
        assert isinstance(draws, SequenceDraws)
        rows, net, vocab = self.rows(draws.clock.shape[2]), self.net, self.env.vocab
        clock, factors, noise = draws.clock.log().unbind(), draws.logit_factors(), self.noise.precompute(draws.noise)
        intended: list[Tensor] = []
        realised: list[Tensor] = []

        def act(logits: Tensor) -> None:
            t = len(intended)
            race = clock[t] - logits if factors is None else torch.addcmul(clock[t], logits, factors[t], value=-1)
            intended.append(race.argmin(0))
            realised.append(self.noise.realise(t, intended[t], noise))

        passes, early = [net.forward_shared(rows)], [rows.root()]
        policy, state = passes[0].outputs[:vocab], early[0]
        act(policy[:, :1])
        for _ in range(1, rows.levels):
            state = rows.child(state, realised[-1])
            early.append(state)
            act(policy.index_select(1, state))
        first = passes[0].before[0].index_select(0, state)
        for step in net.token_increments(rows).unbind():
            first = first + step.index_select(0, realised[-1])
            passes.append(net.forward_from_first(first))
            act(passes[-1].outputs[:vocab])
        outcomes = torch.stack(realised)
        intentions = torch.stack(intended) if draws.noise else outcomes
        return SequenceBatch(
            rows=rows, intended=intentions, realised=outcomes, last=state, index=rows.index(early)
        ), joined(passes)

    def from_sequences(self, intended: Int[Tensor, "B T"], realised: Int[Tensor, "B T"]) -> SequenceBatch:
        """A batch of known sequences, with the rows of their states."""
        rows, outcomes = self.rows(realised.shape[0]), realised.t()
        early = rows.early(outcomes)
        return SequenceBatch(
            rows=rows, intended=intended.t(), realised=outcomes, last=early[-1], index=rows.index(early)
        )


class KernelSequenceRollouts(SequenceRollouts):
    """Makes rollouts by one GPU kernel for all steps, with the random numbers that `learning.rollout` would draw."""

    def __init__(self, kernel: ModuleType, env: TabulatedEnv, net: RowNet, noise: SequenceNoise, batch: int) -> None:
        sequence = sequence_of(env)
        assert sequence is not None
        super().__init__(sequence, net, noise, env.following.device)
        self.kernel, self.tabulated, self.keep = kernel, env, batch <= MAX_BATCH_KEEPING_SUMS
        self.spread = SpreadRows(sequence, 0 if self.keep else self.rows(batch).levels, batch, self.device)

    def draw(
        self, batch: int, generator: torch.Generator, explore: float = 0.0, temperature: float | Tensor = 1.0
    ) -> SequenceDraws | KernelRollouts:
        """A batch of rollouts, made by the GPU kernel."""
        clock = clocks((self.env.length, 2, batch, self.env.vocab), generator)
        net = (self.net.layers, self.net.heads[0], self.net.activation)
        options = {"keep": self.keep, "steps_first": True}
        found = self.kernel.whole_rollout(*net, self.tabulated, clock, temperature, explore, **options)
        return KernelRollouts(intended=found[0], realised=found[1], states=found[2], sums=found[3])

    @torch.no_grad()
    def roll(self, draws: SequenceDraws | KernelRollouts) -> tuple[SequenceBatch, ForwardPass]:
        """The kernel's rollouts as a batch with rows, and the forward pass over them."""
        assert isinstance(draws, KernelRollouts)
        rows, index = self.spread.rows(self.tabulated.feature_table, draws.states)
        intended, realised = draws.intended.t(), draws.realised.t()
        done = SequenceBatch(rows=rows, intended=intended, realised=realised, last=None, index=index)
        if draws.sums is None:
            return done, self.net.forward_known(rows, None, realised)
        return done, self.net.forward_from_sums(list(draws.sums.flatten(1, 2).unbind()))
