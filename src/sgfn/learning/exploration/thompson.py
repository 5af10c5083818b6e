"""`thompson`: rollouts by heads that differ where little is known."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sgfn.envs.trajectories import Trajectories
from sgfn.learning.exploration.base import Surroundings
from sgfn.learning.exploration.side_sampler import SideWay
from sgfn.learning.general import GeneralBackend


class Thompson(SideWay):
    """Thompson sampling: each rollout follows one of several policies that were fitted to halves of the data.

    Heads have the same reward and differ by a random prior and by the trajectories that they learn from, so that they
    agree where trajectories were seen. Rollouts are dealt to heads in turn; the policy learns from all of them.
    Reference: Rector-Brooks et al. (2023), Thompson sampling for improved exploration in GFlowNets, ICML workshop.
    """

    def __init__(self, surroundings: Surroundings) -> None:
        chosen = surroundings.config.thompson
        super().__init__(surroundings, heads=chosen.heads, hidden=chosen.hidden, lr=chosen.lr, prior=chosen.prior)
        generator = torch.Generator().manual_seed(self.config.seed)
        shape = (self.env.horizon, self.env.outcomes, chosen.heads)
        self.bits = torch.randint(2, shape, generator=generator, dtype=torch.int8).to(self.device)

    def targets(self, batch: Trajectories, backend: GeneralBackend, beta: Tensor) -> Float[Tensor, "B H"]:
        """The reward at its exponent, the same for all heads."""
        return (beta * batch.log_reward)[:, None].expand(-1, self.sampler.heads)

    def learns(self, batch: Trajectories) -> Bool[Tensor, "B H"]:
        """A random half of all trajectories for each head: by the parity of random bits of their steps.

        The half is the same whenever a trajectory comes again, as in a bootstrap sample that is kept.
        """
        step = torch.arange(self.env.horizon, device=self.device)
        bits = self.bits[step, batch.realised] * batch.valid[..., None]  # B T H
        return bits.sum(1) % 2 == 1

    def head_of(self, rows: Int[Tensor, " B"]) -> Int[Tensor, " B"]:
        """Heads in turn."""
        return rows % self.sampler.heads
