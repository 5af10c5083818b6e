"""Noise over whole rollouts of append-only sequences: random numbers drawn in one block, then a look per step."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.envs.sequence import SequenceEnv
from sgfn.noise import Slip


def kernels(env: SequenceEnv, device: torch.device) -> Float[Tensor, "T A K"]:
    """The kernel at each position: in a sequence of one length it depends on nothing else."""
    position = torch.arange(env.length)
    states = torch.where(position < position[:, None], 0, env.blank)  # row t has t tokens
    return env.kernel(states).to(device)


def waiting_times(shape: tuple[int, ...], generator: torch.Generator) -> Float[Tensor, "..."]:
    """Standard exponential numbers."""
    return torch.empty(shape, device=generator.device).exponential_(generator=generator)


class Channel:
    """The noise of an environment, ready for batches of one size."""

    def __init__(self, env: SequenceEnv, device: torch.device) -> None:
        self.env, self.noise = env, env.noise
        self.table = kernels(env, device)
        self.log_table = self.table.log()
        identity = torch.eye(env.vocab, device=device)
        self.silent = bool((self.table == identity).all())
        position = torch.arange(env.length)
        strength = env.noise.strength(position, torch.float32) if isinstance(env.noise, Slip) else 0.0
        self.rates = torch.as_tensor(strength).expand(env.length)[:, None].to(device)  # of a slip, by position

    def draw(self, batch: int, generator: torch.Generator) -> tuple[Tensor, ...]:
        """Random numbers for one batch of rollouts: none, uniform ones and the rates of slips, or waiting times."""
        hidden = self.noise.draw_rates(batch, generator)
        if hidden is None and self.silent:
            return ()
        if isinstance(self.noise, Slip):
            uniform = torch.rand(self.env.length, batch, generator=generator, device=generator.device)
            return uniform, self.rates if hidden is None else hidden
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
