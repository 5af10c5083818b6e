"""`surprise`: a share of each replayed batch is picked in proportion to the loss that it has now."""

import torch
from torch import Tensor

from sgfn.learning.backend import Past
from sgfn.learning.exploration.base import Surroundings, Way
from sgfn.learning.general import GeneralBackend
from sgfn.learning.replay import Replay, uniform_draws


class Surprise(Way):
    """Replay by loss: of several uniform candidates for each place, one is drawn in proportion to its present loss.

    The losses are computed when they are needed, so that none is out of date; it costs `candidates` forward passes.
    Reference: Schaul et al. (2016), Prioritized experience replay, ICLR (there with losses of the last visit).
    """

    def __init__(self, surroundings: Surroundings) -> None:
        super().__init__(surroundings)
        self.share, self.candidates = self.config.surprise.share, self.config.surprise.candidates

    def pick(
        self, count: int, buffer: Replay, backend: GeneralBackend, beta: Tensor, generator: torch.Generator
    ) -> Past | None:
        """Past trajectories, each drawn by loss among candidates of its own."""
        past = buffer.pick(uniform_draws(count * self.candidates, generator))
        loss = backend.losses(past, beta).view(count, self.candidates).clamp(min=1e-12)
        place = torch.multinomial(loss / loss.amax(-1, keepdim=True), 1, generator=generator)[:, 0]
        rows = torch.arange(count, device=place.device) * self.candidates + place
        return past[0][rows], past[1][rows], past[2][rows]
