"""`best`: a share of each replayed batch comes from the best distinct objects so far."""

import torch
from torch import Tensor

from sgfn.envs.trajectories import Trajectories
from sgfn.learning.backend import Past
from sgfn.learning.exploration.base import Surroundings, Way
from sgfn.learning.general import GeneralBackend
from sgfn.learning.replay import Replay, uniform_draws

DECAY = 1 / 3
"""Ranks, as a share of the archive, over which the chance of being replayed falls by a factor e."""


class Best(Way):
    """Replay by reward: objects by their rank in the archive, each object once however often it was found.

    Off-policy data: the balance is the same for every trajectory, so replaying the best changes what is fitted first,
    not what is fitted.
    Reference: Shen et al. (2023), Towards understanding and improving GFlowNet training, ICML (prioritised replay).
    """

    def __init__(self, surroundings: Surroundings) -> None:
        super().__init__(surroundings)
        self.share = self.config.archive.share

    def observe(self, batch: Trajectories, backend: GeneralBackend, beta: Tensor) -> None:
        """Replay less of the archive where nothing new was found for long, and none where nothing is hidden."""
        self.share = self.config.archive.share * self.archive.promise * self.need

    def pick(
        self, count: int, buffer: Replay, backend: GeneralBackend, beta: Tensor, generator: torch.Generator
    ) -> Past | None:
        """Trajectories of the archive, by rank."""
        if not self.archive.size:
            return None
        return self.archive.past(self.archive.rows(uniform_draws(count, generator), DECAY))
