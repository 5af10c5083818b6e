"""Rollouts of append-only sequences of one length: all is legal, every step counts, noise knows the position alone.

The same law as `rollout` gives, in fewer operations, and with all that the networks said on the way.
"""

from dataclasses import dataclass
from types import ModuleType

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.envs.sequence import SequenceEnv
from sgfn.envs.tabulated import TabulatedEnv
from sgfn.learning.kernels.channel import Channel, waiting_times
from sgfn.learning.kernels.fixed_length_net import CodedRows, ForwardPass, RowNet, Rows, SpreadRows, joined
from sgfn.nets.encoders import sequence_of

LARGEST_KEPT = 1024
"""Up to here a batch is judged by what its walk in a kernel kept, and the walk leaves most of a GPU to others; beyond,
judging shared states once is less work."""


@dataclass(frozen=True, kw_only=True)
class SequenceBatch:
    """A batch of sequences, steps first, and the rows of the states on their way."""

    rows: Rows | CodedRows
    intended: Int[Tensor, "T B"]
    realised: Int[Tensor, "T B"]
    last: Int[Tensor, " B"] | None
    """The last shared state of each; None where nothing is shared."""
    index: Int[Tensor, " TB"] | None
    """The row of each visited state, steps first; None where rows are just that."""


@dataclass(frozen=True, kw_only=True)
class SequenceDraws:
    """All that is random in a batch of rollouts, as it was drawn."""

    clock: Float[Tensor, "T A B"]
    """Waiting times: the race for the intention."""
    uniform: Float[Tensor, "T 1 B"] | None
    """The policy is followed unless these are below the share of exploration; None where it always is."""
    noise: tuple[Tensor, ...]
    """For the channel."""
    explore: float
    temperature: float | Float[Tensor, ""]

    def follow(self) -> tuple[Tensor, ...] | None:
        """By step: 1/temperature where the policy is followed; 0, which makes all tokens alike, where not."""
        if self.uniform is None:
            return None
        plain = not isinstance(self.temperature, Tensor) and self.temperature == 1.0
        follow = (self.uniform >= self.explore).float()
        return (follow if plain else follow / self.temperature).unbind()


@dataclass(frozen=True, kw_only=True)
class KernelRollouts:
    """A batch of rollouts that a kernel has made."""

    intended: Int[Tensor, "B T"]
    realised: Int[Tensor, "B T"]
    states: Int[Tensor, "B T+1"]
    """By number."""
    sums: Float[Tensor, "layers T B H"] | None
    """What went into each activation; None where that is computed again, shared states once."""


class SequenceRollouts:
    """Acts by a network whose first outputs are the logits of the policy."""

    def __init__(self, env: SequenceEnv, net: RowNet, channel: Channel, device: torch.device) -> None:
        self.env, self.net, self.channel, self.device = env, net, channel, device
        self._rows: dict[int, Rows] = {}

    def rows(self, batch: int) -> Rows:
        """How a batch of that size is judged."""
        if batch not in self._rows:
            self._rows[batch] = Rows(self.env, batch, self.device)
        return self._rows[batch]

    def draw(
        self, batch: int, generator: torch.Generator, explore: float = 0.0, temperature: float | Tensor = 1.0
    ) -> SequenceDraws | KernelRollouts:
        """Random numbers for `roll`."""
        clock = waiting_times((self.env.length, self.env.vocab, batch), generator)
        uniform, plain = None, not isinstance(temperature, Tensor) and temperature == 1.0
        if explore > 0.0 or not plain:
            uniform = torch.rand(self.env.length, 1, batch, generator=generator, device=self.device)
        noise = self.channel.draw(batch, generator)
        return SequenceDraws(clock=clock, uniform=uniform, noise=noise, explore=explore, temperature=temperature)

    @torch.no_grad()
    def roll(self, draws: SequenceDraws | KernelRollouts) -> tuple[SequenceBatch, ForwardPass]:
        """Act in the noisy environment: intend by the policy, let the channel realise."""
        assert isinstance(draws, SequenceDraws)
        rows, net, vocab = self.rows(draws.clock.shape[2]), self.net, self.env.vocab
        clock, follow, noise = draws.clock.log().unbind(), draws.follow(), self.channel.ready(draws.noise)
        intended: list[Tensor] = []
        realised: list[Tensor] = []

        def act(logits: Tensor) -> None:
            t = len(intended)
            race = clock[t] - logits if follow is None else torch.addcmul(clock[t], logits, follow[t], value=-1)
            intended.append(race.argmin(0))
            realised.append(self.channel.realise(t, intended[t], noise))

        passes, early = [net.shared(rows)], [rows.root()]
        policy, state = passes[0].outputs[:vocab], early[0]
        act(policy[:, :1])
        for _ in range(1, rows.levels):
            state = rows.child(state, realised[-1])
            early.append(state)
            act(policy.index_select(1, state))
        first = passes[0].before[0].index_select(0, state)
        for step in net.steps(rows).unbind():
            first = first + step.index_select(0, realised[-1])
            passes.append(net.through(first))
            act(passes[-1].outputs[:vocab])
        outcomes = torch.stack(realised)
        meant = torch.stack(intended) if draws.noise else outcomes
        return SequenceBatch(rows=rows, intended=meant, realised=outcomes, last=state, index=rows.index(early)), joined(
            passes
        )

    def walk(self, intended: Int[Tensor, "B T"], realised: Int[Tensor, "B T"]) -> SequenceBatch:
        """A batch of known sequences, with the rows of their states."""
        rows, outcomes = self.rows(realised.shape[0]), realised.t()
        early = rows.early(outcomes)
        return SequenceBatch(
            rows=rows, intended=intended.t(), realised=outcomes, last=early[-1], index=rows.index(early)
        )


class KernelSequenceRollouts(SequenceRollouts):
    """Rolls with the random numbers of `rollout`, all steps in one kernel."""

    def __init__(self, kernel: ModuleType, env: TabulatedEnv, net: RowNet, channel: Channel, batch: int) -> None:
        sequence = sequence_of(env)
        assert sequence is not None
        super().__init__(sequence, net, channel, env.following.device)
        self.kernel, self.tabulated, self.keep = kernel, env, batch <= LARGEST_KEPT
        self.spread = SpreadRows(sequence, 0 if self.keep else self.rows(batch).levels, batch, self.device)

    def draw(
        self, batch: int, generator: torch.Generator, explore: float = 0.0, temperature: float | Tensor = 1.0
    ) -> SequenceDraws | KernelRollouts:
        """Rollouts."""
        clock = waiting_times((self.env.length, 2, batch, self.env.vocab), generator)
        net = (self.net.layers, self.net.heads[0], self.net.activation)
        options = {"keep": self.keep, "steps_first": True}
        found = self.kernel.walk(*net, self.tabulated, clock, temperature, explore, **options)
        return KernelRollouts(intended=found[0], realised=found[1], states=found[2], sums=found[3])

    @torch.no_grad()
    def roll(self, draws: SequenceDraws | KernelRollouts) -> tuple[SequenceBatch, ForwardPass]:
        """What the kernel did, row by row."""
        assert isinstance(draws, KernelRollouts)
        rows, index = self.spread.rows(self.tabulated.feature_table, draws.states)
        intended, realised = draws.intended.t(), draws.realised.t()
        walk = SequenceBatch(rows=rows, intended=intended, realised=realised, last=None, index=index)
        if draws.sums is None:
            return walk, self.net.forced(rows, None, realised)
        return walk, self.net.finished(list(draws.sums.flatten(1, 2).unbind()))
