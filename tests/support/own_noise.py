"""Noises as a user might write them, with nothing but a kernel."""

import torch
from torch import Tensor

from sgfn.noise import Noise, UniformSlip


class AllOrNothing(Noise):
    """Half of all episodes write every letter as intended, in the others nine in ten slip; nobody sees which."""

    @property
    def summary(self) -> str:
        return "all or nothing"

    def check(self, slipping: int, positions: int) -> None:
        return

    def kernel(self, slippable: Tensor, dtype: torch.dtype, position: Tensor | None = None) -> Tensor:
        return UniformSlip(alpha=0.45).kernel(slippable, dtype, position)

    def rates(self, steps: int) -> list[tuple[float | None, float]]:
        return [(0.0, 0.5), (0.9, 0.5)]

    def draw_rates(self, batch: int, generator: torch.Generator) -> Tensor:
        return 0.9 * (torch.rand(batch, generator=generator, device=generator.device) < 0.5).float()


class Rotation(Noise):
    """The next action happens instead, more often at later positions."""

    @property
    def summary(self) -> str:
        return "rotation"

    def check(self, slipping: int, positions: int) -> None:
        return

    def kernel(self, slippable: Tensor, dtype: torch.dtype, position: Tensor | None = None) -> Tensor:
        assert position is not None
        eye = torch.eye(slippable.shape[-1], dtype=dtype, device=slippable.device)
        rate = (0.1 * (1 + position)).to(dtype)[..., None, None]
        return torch.where(slippable.any(-1)[..., None, None], (1 - rate) * eye + rate * eye.roll(1, -1), eye)
