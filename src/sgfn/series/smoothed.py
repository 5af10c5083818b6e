"""Levels and lines at the end of histories by discounted least squares, and how well each foresaw the next value.

A value of age j has weight d^j. A level is the weighted mean; a line is a - b j, its slope b shrunk towards zero as if
`SHRUNK` were added to the weighted sum of squared ages. All are computed at every place of a history at once, by
products with one matrix for each discount, so that the error of forecasting each value from those before it is there.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

LEVELS = (0.97, 0.9, 0.75, 0.55, 0.35, 0.15)
"""Discounts of levels."""
LINES = (0.97, 0.9, 0.75, 0.5)
"""Discounts of lines."""
SHRUNK = 0.1
"""What is added to the weighted sum of squared ages, which shrinks slopes of few values."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Smoothed:
    """What holds at the end of each history, for each discount, and the mean sizes of errors of one step."""

    levels: Float[Tensor, "B R"]
    level_errors: Float[Tensor, "B R"]
    ends: Float[Tensor, "B L"]
    """Where lines end."""
    slopes: Float[Tensor, "B L"]
    line_errors: Float[Tensor, "B L"]


def smoothed(values: Float[Tensor, "B C"], known: Bool[Tensor, "B C"]) -> Smoothed:
    """Levels and lines through the known values, which are the last ones of each row."""
    there = known.to(values.dtype)
    values = values * there
    levels = discounted_sums(values, LEVELS, 0) / discounted_sums(there, LEVELS, 0).clamp(min=1e-30)
    ends, slopes = lines(values, there)
    return Smoothed(
        levels=levels[:, -1],
        level_errors=mean_errors(levels, values, there),
        ends=ends[:, -1],
        slopes=slopes[:, -1],
        line_errors=mean_errors(ends + slopes, values, there),
    )


def lines(values: Float[Tensor, "B C"], there: Float[Tensor, "B C"]) -> tuple[Tensor, Tensor]:
    """Ends and slopes of the lines at every place."""
    mass, first, second = (discounted_sums(there, LINES, power) for power in range(3))
    total, aged = (discounted_sums(values, LINES, power) for power in range(2))
    second = second + SHRUNK
    scale = (mass * second - first.square()).clamp(min=1e-30)
    return (second * total - first * aged) / scale, (first * total - mass * aged) / scale


def discounted_sums(values: Float[Tensor, "B C"], discounts: tuple[float, ...], power: int) -> Float[Tensor, "B C R"]:
    """For each place, the sum over all before and at it, times a power of their age, discounted by it."""
    place = torch.arange(values.shape[1], device=values.device)
    age = (place - place[:, None]).to(values.dtype)  # of the row's place, at the column's
    weights = torch.stack([rate ** age.clamp(min=0) * age.clamp(min=0) ** power for rate in discounts], -1)
    weights = torch.where((age >= 0)[..., None], weights, 0.0)
    return (values @ weights.flatten(1)).unflatten(1, (values.shape[1], len(discounts)))


def mean_errors(
    forecast: Float[Tensor, "B C R"], values: Float[Tensor, "B C"], there: Float[Tensor, "B C"]
) -> Float[Tensor, "B R"]:
    """Mean size of the difference between each value and what the place before it forecast, from the third value on."""
    judged = there * F.pad(there, (2, -2))
    errors = (values[:, 1:, None] - forecast[:, :-1]).abs() * judged[:, 1:, None]
    return errors.sum(1) / judged.sum(1, keepdim=True).clamp(min=1)
