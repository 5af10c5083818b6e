"""The hypergrid reward: a low plateau everywhere, and in every corner a higher region with a peak in it."""

import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor

from sgfn.landscapes.base import Landscape


class Hypergrid(Landscape):
    r"""Reward of the published grid, with $R_0 = 10^{-3}, R_1 = 1/2, R_2 = 2$ by default.

    .. math:: R(x) = R_0 + R_1 \prod_i 1[.25 < |x_i/(H-1) - .5|] + R_2 \prod_i 1[.3 < |x_i/(H-1) - .5| < .4]

    Reference: Bengio et al. (2021), Flow network based generative models, NeurIPS.
    """

    def __init__(self, *, side: int, r0: float = 1e-3, r1: float = 0.5, r2: float = 2.0) -> None:
        self.side, self.r0, self.r1, self.r2 = side, r0, r1, r2
        self.maximum = float(self._rewards(torch.arange(side)[:, None]).max())
        self.mode_level = self.maximum

    def scores(self, objects: Int[Tensor, "*batch O"]) -> Float[Tensor, "*batch"]:
        """Reward of each cell: the sum of the three terms."""
        return self._rewards(objects).float()

    def _rewards(self, objects: Int[Tensor, "*batch O"]) -> Float64[Tensor, "*batch"]:
        ring, peak = self._parts(objects)
        return self.r0 + self.r1 * ring.double() + self.r2 * peak.double()

    def _parts(self, objects: Int[Tensor, "*batch O"]) -> tuple[Bool[Tensor, "*batch"], Bool[Tensor, "*batch"]]:
        """Whether each cell lies in a corner region, and whether in its peak, computed in integers.

        Rounded quotients would put x/(H-1) = .8 on the other side of the .3 border than .2.
        """
        away, width = (2 * objects - (self.side - 1)).abs(), 2 * (self.side - 1)  # |x/(H-1) - .5| = away / width
        ring, peak = 4 * away > width, (10 * away > 3 * width) & (10 * away < 4 * width)
        return ring.all(-1), peak.all(-1)


class DeceptiveHypergrid(Hypergrid):
    r"""The hypergrid with a lure around its middle lines, with $R_0 = 10^{-5}, R_1 = 0.1, R_2 = 2$ where it was used.

    .. math:: R(x) = R_0 + R_1 \big(1 - \prod_i 1[.1 < |x_i/(H-1) - .5|]\big)
              + R_2 \prod_i 1[.3 < |x_i/(H-1) - .5| < .4]

    Any coordinate near the middle is worth R_1, and the way to the peaks in the far corners leads away from it.
    Reference: Kim et al. (2025), Adaptive teachers for amortized samplers, ICLR.
    """

    def _parts(self, objects: Int[Tensor, "*batch O"]) -> tuple[Bool[Tensor, "*batch"], Bool[Tensor, "*batch"]]:
        """Whether each cell lies on the lure, and whether in a peak, computed in integers."""
        away, width = (2 * objects - (self.side - 1)).abs(), 2 * (self.side - 1)
        return (10 * away <= width).any(-1), super()._parts(objects)[1]
