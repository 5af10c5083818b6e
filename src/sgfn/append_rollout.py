"""Rollouts of append-only sequences of one length: all is legal, every step counts, noise knows the position alone.

The same law as `rollout` gives, in fewer operations, and with all that the networks said on the way.
"""

from dataclasses import dataclass
from types import ModuleType

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.channel import Channel, waiting_times
from sgfn.envs.sequence import SequenceEnv
from sgfn.envs.tabulated import TabulatedEnv
from sgfn.nets.encoders import sequence_of
from sgfn.nets.rows import Pass, RowNet, Rows, joined
from sgfn.rollout import clocks

LARGEST_KEPT = 1024
"""Up to here a batch is judged by what its walk in a kernel kept; beyond, judging shared states once is less work."""


@dataclass(frozen=True, kw_only=True)
class Walk:
    """A batch of sequences, steps first, and the rows of the states on their way."""

    rows: Rows
    intended: Int[Tensor, "T B"]
    realised: Int[Tensor, "T B"]
    early: list[Int[Tensor, " B"]]
    """Shared states, by step."""
    index: Int[Tensor, " TB"]
    """The row of each visited state, steps first."""

    @property
    def last(self) -> Int[Tensor, " B"]:
        """The last shared state of each."""
        return self.early[-1]


@dataclass(frozen=True, kw_only=True)
class Draws:
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
class Walked:
    """A batch of rollouts that a kernel has made."""

    intended: Int[Tensor, "B T"]
    realised: Int[Tensor, "B T"]
    sums: Float[Tensor, "layers T B H"] | None
    """What went into each activation; None where that is computed again, shared states once."""


class Roller:
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
    ) -> "Draws | Walked":
        """Random numbers for `roll`."""
        clock = waiting_times((self.env.length, self.env.vocab, batch), generator)
        uniform, plain = None, not isinstance(temperature, Tensor) and temperature == 1.0
        if explore > 0.0 or not plain:
            uniform = torch.rand(self.env.length, 1, batch, generator=generator, device=self.device)
        noise = self.channel.draw(batch, generator)
        return Draws(clock=clock, uniform=uniform, noise=noise, explore=explore, temperature=temperature)

    @torch.no_grad()
    def roll(self, draws: Draws | Walked) -> tuple[Walk, Pass]:
        """Act in the noisy environment: intend by the policy, let the channel realise."""
        assert isinstance(draws, Draws)
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
        return Walk(rows=rows, intended=meant, realised=outcomes, early=early, index=rows.index(early)), joined(passes)

    def walk(self, intended: Int[Tensor, "B T"], realised: Int[Tensor, "B T"], rows: Rows | None = None) -> Walk:
        """Known sequences."""
        rows, outcomes = rows or self.rows(realised.shape[0]), realised.t()
        early = rows.early(outcomes)
        return Walk(rows=rows, intended=intended.t(), realised=outcomes, early=early, index=rows.index(early))


class KernelRoller(Roller):
    """Rolls with the random numbers of `rollout`, all steps in one kernel."""

    def __init__(self, kernel: ModuleType, env: TabulatedEnv, net: RowNet, channel: Channel, batch: int) -> None:
        sequence = sequence_of(env)
        assert sequence is not None
        super().__init__(sequence, net, channel, env.following.device)
        self.kernel, self.tabulated, self.keep = kernel, env, batch <= LARGEST_KEPT
        self.visited = Rows(sequence, batch, self.device, most=1)  # all that was judged on the way

    def draw(
        self, batch: int, generator: torch.Generator, explore: float = 0.0, temperature: float | Tensor = 1.0
    ) -> Draws | Walked:
        """Rollouts."""
        clock = clocks((self.env.length, 2, batch, self.env.vocab), generator)
        net = (self.net.layers, self.net.heads[0], self.net.activation)
        options = {"keep": self.keep, "steps_first": True}
        found = self.kernel.walk(*net, self.tabulated, clock, temperature, explore, **options)
        return Walked(intended=found[0], realised=found[1], sums=found[3])

    @torch.no_grad()
    def roll(self, draws: Draws | Walked) -> tuple[Walk, Pass]:
        """What the kernel did, row by row."""
        assert isinstance(draws, Walked)
        if draws.sums is None:
            walk = self.walk(draws.intended, draws.realised)
            return walk, self.net.forced(walk.rows, walk.last, walk.realised)
        walk = self.walk(draws.intended, draws.realised, self.visited)
        first = draws.realised.shape[0] - 1  # of the states before the first step, which are all the same, one is left
        return walk, self.net.finished([sums[first:] for sums in draws.sums.flatten(1, 2).unbind()])
