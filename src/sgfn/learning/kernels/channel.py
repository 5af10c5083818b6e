"""Noise over whole rollouts of append-only sequences: random numbers drawn in one block, then a look per step."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.envs.sequence import SequenceEnv
from sgfn.noise import Slip, slip_kernel


def kernels(env: SequenceEnv, device: torch.device) -> Float[Tensor, "T A K"]:
    """The kernel at each position: in a sequence of one length it depends on nothing else."""
    position = torch.arange(env.length)
    states = torch.where(position < position[:, None], 0, env.blank)  # row t has t tokens
    return env.kernel(states).to(device)


def waiting_times(shape: tuple[int, ...], generator: torch.Generator) -> Float[Tensor, "..."]:
    """Standard exponential random numbers of a shape, for races."""
    return torch.empty(shape, device=generator.device).exponential_(generator=generator)


def slip_rates(env: SequenceEnv, table: Float[Tensor, "T A K"]) -> Float[Tensor, "T 1"] | None:
    """The strength of a uniform slip at each position, where the kernels are just that; None where they are not."""
    if not isinstance(env.noise, Slip):
        return None
    strength = torch.as_tensor(env.noise.strength(torch.arange(env.length), torch.float32)).expand(env.length)
    slips = slip_kernel(torch.ones(env.length, env.vocab, dtype=torch.bool), strength, torch.float32)
    return strength[:, None].to(table.device) if torch.allclose(slips, table.cpu()) else None


class Channel:
    """The noise of an environment by position, as tables, and how outcomes are drawn from it."""

    def __init__(self, env: SequenceEnv, device: torch.device) -> None:
        self.env, self.noise = env, env.noise
        self.table = kernels(env, device)
        self.log_table = self.table.log()
        identity = torch.eye(env.vocab, device=device)
        self.silent = bool((self.table == identity).all())
        self.rates = slip_rates(env, self.table)

    def draw(self, batch: int, generator: torch.Generator) -> tuple[Tensor, ...]:
        """Random numbers for one batch of rollouts: none, uniform ones and the rates of slips, or waiting times."""
        hidden = self.noise.draw_rates(batch, generator)
        if hidden is None and self.silent:
            return ()
        rates = self.rates if hidden is None else hidden
        if rates is not None:
            return torch.rand(self.env.length, batch, generator=generator, device=generator.device), rates
        return (waiting_times((self.env.length, batch, self.env.vocab), generator),)

    def ready(self, drawn: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """The same for `realise`: slips and what they lead to, or logarithms.

        A uniform number below the rate is a slip, and what it is worth there chooses the token.
        """
        if len(drawn) == 2:
            uniform, rates = drawn
            others = (uniform * (self.env.vocab / rates)).long()  # read only where the number is below the rate
            return uniform < rates, others
        return tuple(clock.log() for clock in drawn)

    def realise(self, t: int, intended: Int[Tensor, " B"], noise: tuple[Tensor, ...]) -> Int[Tensor, " B"]:
        """What becomes of the intentions of step t; the race of log t_a - log p_a is won by a with probability p_a."""
        if len(noise) == 2:
            slips, others = noise
            return torch.where(slips[t], others[t], intended)
        if len(noise) == 1:
            return (noise[0][t] - self.log_table[t].index_select(0, intended)).argmin(-1)
        return intended
