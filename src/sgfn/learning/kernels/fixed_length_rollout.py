"""Rollouts of append-only sequences of one length: all tokens are legal, noise depends on the position alone.

The law of the trajectories is that of `learning.rollout`, in fewer operations; the forward pass is returned with them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.envs.sequence import SequenceEnv
from sgfn.envs.tabulated import TabulatedEnv
from sgfn.learning.kernels.fixed_length_net import CodedRows, ForwardPass, RowNet, SpreadRows, StateRows, joined
from sgfn.learning.kernels.sequence_noise import SequenceNoise
from sgfn.learning.rollout import RolloutDraws, clocks, rollout_draws
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


Choose = Callable[[int, Float[Tensor, "A B"]], tuple[Int[Tensor, " B"], Int[Tensor, " B"]]]
"""Step and logits to intentions and outcomes."""
Intend = Callable[[int, Float[Tensor, "A B"]], Int[Tensor, " B"]]
"""Step and logits to intentions."""
Drawn = SequenceDraws | RolloutDraws | KernelRollouts
"""What rollouts are made of: random numbers, or the rollouts of a GPU kernel."""


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
    ) -> Drawn:
        """Random numbers of a batch, for `roll`."""
        clock = clocks((self.env.length, self.env.vocab, batch), generator)
        uniform, plain = None, not isinstance(temperature, Tensor) and temperature == 1.0
        if explore > 0.0 or not plain:
            uniform = torch.rand(self.env.length, 1, batch, generator=generator, device=self.device)
        noise = self.noise.draw(batch, generator)
        return SequenceDraws(clock=clock, uniform=uniform, noise=noise, explore=explore, temperature=temperature)

    @torch.no_grad()
    def roll(self, draws: Drawn) -> tuple[SequenceBatch, ForwardPass]:
        """A batch of rollouts: intentions drawn from the policy, outcomes from the noise; with the forward pass."""
        assert isinstance(draws, SequenceDraws)
        clock, factors, noise = draws.clock.log().unbind(), draws.logit_factors(), self.noise.precompute(draws.noise)

        def choose(t: int, logits: Tensor) -> tuple[Tensor, Tensor]:
            race = clock[t] - logits if factors is None else torch.addcmul(clock[t], logits, factors[t], value=-1)
            intended = race.argmin(0)
            return intended, self.noise.realise(t, intended, noise)

        return self._walk(draws.clock.shape[2], choose)

    def _walk(self, batch: int, choose: Choose) -> tuple[SequenceBatch, ForwardPass]:
        """Rollouts whose intentions and outcomes are chosen step by step."""
        rows, net, vocab = self.rows(batch), self.net, self.env.vocab
        intended: list[Tensor] = []
        realised: list[Tensor] = []

        def act(logits: Tensor) -> None:
            intention, outcome = choose(len(intended), logits)
            intended.append(intention)
            realised.append(outcome)

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
        intentions = torch.stack(intended)
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


class SameDrawRollouts(SequenceRollouts):
    """Makes rollouts with the random numbers of `learning.rollout`, by the same rules.

    Compiled steps draw these where scores are in no table: a run is then the same, compiled or not.
    """

    def draw(
        self, batch: int, generator: torch.Generator, explore: float = 0.0, temperature: float | Tensor = 1.0
    ) -> Drawn:
        """Random numbers of a batch, as the general backend draws them."""
        return rollout_draws(self.env, batch, generator, explore, temperature)

    @torch.no_grad()
    def roll(self, draws: Drawn) -> tuple[SequenceBatch, ForwardPass]:
        """A batch of rollouts, as `learning.rollout.act` makes them."""
        assert isinstance(draws, RolloutDraws)
        intend = self._intend(draws.clock[:, 0].transpose(1, 2), draws.explore, draws.temperature)
        realise = self.noise.races(draws.clock[:, 1], draws.rate)

        def choose(t: int, logits: Tensor) -> tuple[Tensor, Tensor]:
            intended = intend(t, logits)
            return intended, realise(t, intended)

        return self._walk(draws.clock.shape[2], choose)

    def _intend(self, clock: Float[Tensor, "T A B"], explore: float, temperature: float | Tensor) -> Intend:
        """Intentions from logits: those that `rollout.draw` finds first in the law of `rollout.behaviour`."""
        plain = not isinstance(temperature, Tensor) and temperature == 1.0
        if explore == 0.0 and plain:
            waits = clock.log()
            return lambda t, logits: (waits[t] - logits).argmin(0)
        inverse = clock.reciprocal().contiguous()
        followed, explored = inverse * (1.0 - explore), inverse * (explore / self.env.vocab)

        def intend(t: int, logits: Tensor) -> Tensor:
            policy = torch.softmax(logits if plain else logits / temperature, 0)
            return torch.addcmul(explored[t], policy, followed[t]).argmax(0)

        return intend


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
    ) -> Drawn:
        """A batch of rollouts, made by the GPU kernel."""
        clock = clocks((self.env.length, 2, batch, self.env.vocab), generator)
        net = (self.net.layers, self.net.heads[0], self.net.activation)
        options = {"keep": self.keep, "steps_first": True}
        found = self.kernel.whole_rollout(*net, self.tabulated, clock, temperature, explore, **options)
        return KernelRollouts(intended=found[0], realised=found[1], states=found[2], sums=found[3])

    @torch.no_grad()
    def roll(self, draws: Drawn) -> tuple[SequenceBatch, ForwardPass]:
        """The kernel's rollouts as a batch with rows, and the forward pass over them."""
        assert isinstance(draws, KernelRollouts)
        rows, index = self.spread.rows(self.tabulated.feature_table, draws.states)
        intended, realised = draws.intended.t(), draws.realised.t()
        done = SequenceBatch(rows=rows, intended=intended, realised=realised, last=None, index=index)
        if draws.sums is None:
            return done, self.net.forward_known(rows, None, realised)
        return done, self.net.forward_from_sums(list(draws.sums.flatten(1, 2).unbind()))
