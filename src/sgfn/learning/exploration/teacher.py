"""`teacher`: a second sampler that seeks what the policy gets wrong."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.envs.trajectories import Trajectories
from sgfn.learning.exploration.base import Surroundings
from sgfn.learning.exploration.side_sampler import SideWay
from sgfn.learning.general import GeneralBackend
from sgfn.learning.rollout import Actor

LEAST = 1e-3
"""What is added to squared residuals, so that the teacher's reward has a logarithm where the policy is right."""


class Teacher(SideWay):
    r"""An adaptive teacher: a share of the rollouts is made by a sampler whose reward is the policy's present error.

    .. math:: \log R_T = \log\big(\epsilon + (1 + c\,1[\delta > 0])\,\delta^2\big) + m\,\beta\log R

    where delta is log R less log Z and the steps of the policy, positive where the policy gives a trajectory too
    little. The policy learns from both kinds of rollouts alike.
    Reference: Kim et al. (2025), Adaptive teachers for amortized samplers, ICLR.
    """

    def __init__(self, surroundings: Surroundings) -> None:
        chosen = surroundings.config.teacher
        super().__init__(surroundings, heads=1, hidden=chosen.hidden, lr=chosen.lr)

    @torch.no_grad()
    def targets(self, batch: Trajectories, backend: GeneralBackend, beta: Tensor) -> Float[Tensor, "B H"]:
        """The policy's error, more where it gives too little, and a part of the reward."""
        chosen, lack = self.config.teacher, backend.shortfall(batch, beta)
        error = (1.0 + chosen.boost * (lack > 0)) * lack.square()
        return ((LEAST + error).log() + chosen.mix * beta * batch.log_reward)[:, None]

    def actor(self, actor: Actor) -> Actor:
        """The teacher in a share of the rollouts, in none where nothing is hidden."""
        return super().actor(actor) if self.need else actor

    def observe(self, batch: Trajectories, backend: GeneralBackend, beta: Tensor) -> None:
        """Update the teacher, as long as it is needed."""
        if self.need:
            super().observe(batch, backend, beta)

    def head_of(self, rows: Int[Tensor, " B"]) -> Int[Tensor, " B"]:
        """The teacher in the first rollouts of a batch, the policy in the others."""
        return torch.where(rows < round(len(rows) * self.config.teacher.share * self.need), 0, -1)
