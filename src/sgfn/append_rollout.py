"""Rollouts of append-only sequences of one length: all is legal, every step counts, noise knows the position alone.

The same law as `rollout` gives, in fewer operations, and with all that the networks said on the way.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.channel import Channel, log_clocks
from sgfn.envs.sequence import SequenceEnv
from sgfn.nets.rows import Pass, RowNet, Rows, joined


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
    """All that is random in a batch of rollouts."""

    clock: Float[Tensor, "T A B"]
    """Logarithms of waiting times: the race for the intention."""
    follow: Float[Tensor, "T 1 B"] | None
    """1/temperature where the policy is followed and 0, which makes all tokens alike, where it explores; None is 1."""
    noise: tuple[Tensor, ...]
    """For the channel."""


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
    ) -> Draws:
        """Random numbers for `roll`."""
        clock = log_clocks((self.env.length, self.env.vocab, batch), generator)
        follow, plain = None, not isinstance(temperature, Tensor) and temperature == 1.0
        if explore > 0.0 or not plain:
            uniform = torch.rand(self.env.length, 1, batch, generator=generator, device=self.device)
            follow = (uniform >= explore).float()
            follow = follow if plain else follow / temperature
        return Draws(clock=clock, follow=follow, noise=self.channel.draw(batch, generator))

    @torch.no_grad()
    def roll(self, draws: Draws) -> tuple[Walk, Pass]:
        """Act in the noisy environment: intend by the policy, let the channel realise."""
        rows, net, vocab = self.rows(draws.clock.shape[2]), self.net, self.env.vocab
        clock, follow = draws.clock.unbind(), None if draws.follow is None else draws.follow.unbind()
        intended: list[Tensor] = []
        realised: list[Tensor] = []

        def act(logits: Tensor) -> None:
            t = len(intended)
            race = clock[t] - logits if follow is None else torch.addcmul(clock[t], logits, follow[t], value=-1)
            intended.append(race.argmin(0))
            realised.append(self.channel.realise(t, intended[t], draws.noise))

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

    def walk(self, intended: Int[Tensor, "B T"], realised: Int[Tensor, "B T"]) -> Walk:
        """Known sequences."""
        rows, outcomes = self.rows(realised.shape[0]), realised.t()
        early = rows.early(outcomes)
        return Walk(rows=rows, intended=intended.t(), realised=outcomes, early=early, index=rows.index(early))
