"""Rollouts of append-only sequences of one length: all is legal, every step counts, noise knows the position alone.

The same law as `rollout` gives, in fewer operations, and with all that the networks said on the way.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Int
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

    @torch.no_grad()
    def roll(
        self, batch: int, generator: torch.Generator, explore: float = 0.0, temperature: float | Tensor = 1.0
    ) -> tuple[Walk, Pass]:
        """Act in the noisy environment: intend by the policy, let the channel realise."""
        rows, net, vocab = self.rows(batch), self.net, self.env.vocab
        clock = log_clocks((self.env.length, vocab, batch), generator).unbind()
        follow = self._follow(batch, generator, explore, temperature)
        realise = self.channel.draw(batch, generator)
        intended: list[Tensor] = []
        realised: list[Tensor] = []

        def act(logits: Tensor) -> None:
            t = len(intended)
            race = clock[t] - logits if follow is None else torch.addcmul(clock[t], logits, follow[t], value=-1)
            intended.append(race.argmin(0))
            realised.append(realise(t, intended[t]))

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
        meant = outcomes if self.channel.silent else torch.stack(intended)
        return Walk(rows=rows, intended=meant, realised=outcomes, early=early, index=rows.index(early)), joined(passes)

    def _follow(
        self, batch: int, generator: torch.Generator, explore: float, temperature: float | Tensor
    ) -> tuple[Tensor, ...] | None:
        """1/T where the policy is followed and 0, which makes all tokens alike, where it explores; None is 1."""
        plain = not isinstance(temperature, Tensor) and temperature == 1.0
        if explore == 0.0 and plain:
            return None
        uniform = torch.rand(self.env.length, 1, batch, generator=generator, device=self.device)
        follows = (uniform >= explore).float()
        return (follows if plain else follows / temperature).unbind()

    def walk(self, intended: Int[Tensor, "B T"], realised: Int[Tensor, "B T"]) -> Walk:
        """Known sequences."""
        rows, outcomes = self.rows(realised.shape[0]), realised.t()
        early = rows.early(outcomes)
        return Walk(rows=rows, intended=intended.t(), realised=outcomes, early=early, index=rows.index(early))
