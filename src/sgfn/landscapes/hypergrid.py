"""The hypergrid reward: a low plateau everywhere, and in every corner a higher region with a peak in it."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sgfn.landscapes.base import Landscape


class Hypergrid(Landscape):
    r"""Reward of the published grid, with $R_0 = 10^{-3}, R_1 = 1/2, R_2 = 2$ by default.

    .. math:: R(x) = R_0 + R_1 \prod_i 1[.25 < |x_i/(H-1) - .5|] + R_2 \prod_i 1[.3 < |x_i/(H-1) - .5| < .4]

    Reference: Bengio et al. (2021), Flow network based generative models, NeurIPS.
    """

    def __init__(self, *, side: int, r0: float = 1e-3, r1: float = 0.5, r2: float = 2.0) -> None:
        self.side, self.r0, self.r1, self.r2 = side, r0, r1, r2
        ring, peak = self._parts(torch.arange(side)[:, None])
        self.maximum = r0 + r1 * bool(ring.any()) + r2 * bool(peak.any())
        self.mode_level = self.maximum

    def scores(self, objects: Int[Tensor, "*batch O"]) -> Float[Tensor, "*batch"]:
        """Reward of each cell: the sum of the three terms."""
        ring, peak = self._parts(objects)
        return (self.r0 + self.r1 * ring.double() + self.r2 * peak.double()).float()

    def _parts(self, objects: Int[Tensor, "*batch O"]) -> tuple[Bool[Tensor, "*batch"], Bool[Tensor, "*batch"]]:
        """Whether each cell lies in a corner region, and whether in its peak, computed in integers.

        Rounded quotients would put x/(H-1) = .8 on the other side of the .3 border than .2.
        """
        away, width = (2 * objects - (self.side - 1)).abs(), 2 * (self.side - 1)  # |x/(H-1) - .5| = away / width
        ring, peak = 4 * away > width, (10 * away > 3 * width) & (10 * away < 4 * width)
        return ring.all(-1), peak.all(-1)
