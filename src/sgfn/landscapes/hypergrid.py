"""The hypergrid reward: a low plateau with a ring and a peak in every corner."""

from jaxtyping import Float, Int
from torch import Tensor

from sgfn.landscapes.base import Landscape


class Hypergrid(Landscape):
    r"""Rewards of the published grid, $R_0 = 10^{-3}, R_1 = 1/2, R_2 = 2$.

    .. math:: R(x) = R_0 + R_1 \prod_i 1[.25 < |x_i/(H-1) - .5|] + R_2 \prod_i 1[.3 < |x_i/(H-1) - .5| < .4]

    Reference: Bengio et al. (2021), Flow network based generative models, NeurIPS.
    """

    def __init__(self, *, side: int, r0: float = 1e-3, r1: float = 0.5, r2: float = 2.0) -> None:
        self.side, self.r0, self.r1, self.r2 = side, r0, r1, r2
        axis = [abs(i / (side - 1) - 0.5) for i in range(side)]
        peak, ring = any(0.3 < a < 0.4 for a in axis), any(a > 0.25 for a in axis)
        self.maximum = r0 + r1 * ring + r2 * peak
        self.mode_level = self.maximum

    def scores(self, objects: Int[Tensor, "*batch O"]) -> Float[Tensor, "*batch"]:
        """Plateau, ring and peak."""
        away = (objects.double() / (self.side - 1) - 0.5).abs()
        ring = (away > 0.25).all(-1)
        peak = ((away > 0.3) & (away < 0.4)).all(-1)
        return (self.r0 + self.r1 * ring + self.r2 * peak).float()
