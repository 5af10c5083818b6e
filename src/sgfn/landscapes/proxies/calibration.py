"""Standard deviations of predictions that fit the errors made out of fold."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float64, Int64
from torch import Tensor

Z80 = 1.2815515655446004
"""Half-width of the central 80 % interval of a Gaussian."""
SCALES = torch.tensor([0.0, 0.25, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0], dtype=torch.float64)
FLOORS = torch.linspace(-4.0, 0.7, 24, dtype=torch.float64).exp()


@dataclass(frozen=True, kw_only=True)
class Calibration:
    r"""Variance $a^2 v + b^2$ in place of a model's variance v."""

    scale: float
    """a"""
    floor: float
    """b, in standard units"""

    def sd(self, sd: Tensor) -> Tensor:
        """Calibrated standard deviation."""
        return (self.scale**2 * sd.square() + self.floor**2).sqrt()


def calibrate(error: Float64[Tensor, " N"], sd: Float64[Tensor, " N"], noise: Float64[Tensor, " N"]) -> Calibration:
    r"""The scale and floor of highest likelihood, $e_i \sim N(0, a^2 v_i + b^2 + \sigma_i^2)$, on a grid.

    The noise $\sigma_i$ of the measurement is part of the error, not of the prediction's uncertainty.
    """
    size = error.square().mean().sqrt().clamp(min=1e-6)
    scale, floor = SCALES[:, None, None], (FLOORS * size)[None, :, None]
    variance = scale.square() * sd.square() + floor.square() + noise.square()  # scales floors N
    loss = (error.square() / variance + variance.log()).sum(-1)
    best = divmod(int(loss.argmin()), FLOORS.shape[0])
    return Calibration(scale=float(SCALES[best[0]]), floor=float(FLOORS[best[1]] * size))


def coverage(
    error: Float64[Tensor, " N"], sd: Float64[Tensor, " N"], noise: Float64[Tensor, " N"], fold: Int64[Tensor, " N"]
) -> float:
    """Share of errors inside the 80 % interval, where each fold is calibrated on the others."""
    inside = torch.zeros_like(fold, dtype=torch.bool)
    for number in range(int(fold.max()) + 1):
        out = fold == number
        fitted = calibrate(error[~out], sd[~out], noise[~out])
        spread = (fitted.sd(sd[out]).square() + noise[out].square()).sqrt()
        inside[out] = error[out].abs() <= Z80 * spread
    return float(inside.double().mean())


def rank_correlation(one: Float64[np.ndarray, " N"], other: Float64[np.ndarray, " N"]) -> float:
    """Spearman's correlation, ties at their mean rank; 0 where either is constant."""
    from scipy.stats import rankdata

    first, second = (rankdata(values) - (len(values) + 1) / 2 for values in (one, other))
    size = float(np.sqrt((first @ first) * (second @ second)))
    return float(first @ second) / size if size > 0 else 0.0
