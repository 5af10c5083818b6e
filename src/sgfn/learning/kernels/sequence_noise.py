"""Noise over whole rollouts of append-only sequences: random numbers drawn in one block, then one look-up per step."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.envs.sequence import SequenceEnv
from sgfn.learning.rollout import clocks
from sgfn.noise import Slip, slip_kernel
from sgfn.noise.operators import Identity, Kernel


def by_position(env: SequenceEnv) -> Kernel:
    """The kernel at each position: in a sequence of one length it depends on nothing else."""
    position = torch.arange(env.length)
    return env.operator(torch.where(position < position[:, None], 0, env.blank))  # row t has t tokens


def slip_rates(env: SequenceEnv, table: Float[Tensor, "T A K"]) -> Float[Tensor, "T 1"] | None:
    """Rate of a uniform slip at each position; None where the kernels are of another kind."""
    if not isinstance(env.noise, Slip):
        return None
    strength = torch.as_tensor(env.noise.strength(torch.arange(env.length), torch.float32)).expand(env.length)
    slips = slip_kernel(torch.ones(env.length, env.vocab, dtype=torch.bool), strength, torch.float32)
    return strength[:, None].to(table.device) if torch.allclose(slips, table.cpu()) else None


Realise = Callable[[int, Int[Tensor, " B"]], Int[Tensor, " B"]]
"""Step and intentions to outcomes."""


class SequenceNoise:
    """Noise of an environment as tables by position; draws the outcomes of whole rollouts from them."""

    def __init__(self, env: SequenceEnv, device: torch.device) -> None:
        self.env, self.noise = env, env.noise
        kernel, self.rates = by_position(env), None
        self.noise_free = isinstance(kernel, Identity)  # without noise no table is made
        if not self.noise_free:
            self.table = kernel.matrix().to(device)
            self.log_table = self.table.log()
            self.noise_free = bool((self.table == torch.eye(env.vocab, device=device)).all())
            self.rates = slip_rates(env, self.table)

    def draw(self, batch: int, generator: torch.Generator) -> tuple[Tensor, ...]:
        """Random numbers for one batch of rollouts: none, uniform ones and the rates of slips, or waiting times."""
        hidden = self.noise.draw_rates(batch, generator)
        if hidden is None and self.noise_free:
            return ()
        rates = self.rates if hidden is None else hidden
        if rates is not None:
            return torch.rand(self.env.length, batch, generator=generator, device=generator.device), rates
        return (clocks((self.env.length, batch, self.env.vocab), generator),)

    def precompute(self, drawn: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Arguments of `realise` from what was drawn: slips and the tokens that they write, or log waiting times.

        A uniform number u below the rate r is a slip, and u / r, which is uniform again, chooses the token.
        """
        if len(drawn) == 2:
            uniform, rates = drawn
            others = (uniform * (self.env.vocab / rates)).long()  # read only where the number is below the rate
            return uniform < rates, others
        return tuple(clock.log() for clock in drawn)

    def realise(self, t: int, intended: Int[Tensor, " B"], noise: tuple[Tensor, ...]) -> Int[Tensor, " B"]:
        """Outcomes of the intentions of step t; the argmin of log t_k - log p_k is k with probability p_k."""
        if len(noise) == 2:
            slips, others = noise
            return torch.where(slips[t], others[t], intended)
        if len(noise) == 1:
            return (noise[0][t] - self.log_table[t].index_select(0, intended)).argmin(-1)
        return intended

    def races(self, clock: Float[Tensor, "T B K"], hidden: Float[Tensor, " B"] | None) -> Realise:
        """Outcomes by the waiting times of `learning.rollout`: the outcome that rings first is the one of its kernel.

        In a slip all letters ring at one rate, so that the intention, which rings at its own, meets one rival.
        """
        if hidden is None and self.noise_free:
            return lambda t, intended: intended
        rates = self.rates if hidden is None else hidden
        if rates is None:
            inverse = clock.reciprocal()
            return lambda t, intended: (self.table[t].index_select(0, intended) * inverse[t]).argmax(-1)
        least, rival = clock.min(-1)
        slip = (rates / self.env.vocab).expand_as(least)
        longest = (1.0 - rates + slip) * least

        def realise(t: int, intended: Tensor) -> Tensor:
            own = clock[t].gather(-1, intended[:, None])[:, 0]
            return torch.where(own * slip[t] <= longest[t], intended, rival[t])

        return realise
