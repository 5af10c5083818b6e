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


def log_clocks(shape: tuple[int, ...], generator: torch.Generator) -> Float[Tensor, "..."]:
    """Logarithms of standard exponential waiting times: log t_a - log p_a is least for a with probability p_a."""
    return torch.empty(shape, device=generator.device).exponential_(generator=generator).log_()


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
        """Random numbers for one batch of rollouts: nothing, slips and what they lead to, or clocks of all outcomes."""
        hidden = self.noise.draw_rates(batch, generator)
        if hidden is None and self.silent:
            return ()
        if isinstance(self.noise, Slip):
            return self._slips(self.rates if hidden is None else hidden, batch, generator)
        return (log_clocks((self.env.length, batch, self.env.vocab), generator),)

    def _slips(self, rates: Tensor, batch: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """A uniform number below the rate is a slip, and what it is worth there chooses the token."""
        uniform = torch.rand(self.env.length, batch, generator=generator, device=generator.device)
        others = (uniform * (self.env.vocab / rates)).long()  # read only where the number is below the rate
        return uniform < rates, others

    def realise(self, t: int, intended: Int[Tensor, " B"], drawn: tuple[Tensor, ...]) -> Int[Tensor, " B"]:
        """What becomes of the intentions of step t."""
        if len(drawn) == 2:
            slips, others = drawn
            return torch.where(slips[t], others[t], intended)
        if len(drawn) == 1:
            return (drawn[0][t] - self.log_table[t].index_select(0, intended)).argmin(-1)
        return intended
