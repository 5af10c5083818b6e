r"""Scaling of windows by what came before them: a value y at a step becomes $z = (y - r)/s$.

r is the reference (the season's medians, these along a trend, the level or the last value of the history, or 0) and s
the unit (the mean absolute deviation from the reference, the mean size of the values, or 1). Missing values are nan and
are passed over.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float64, Int
from torch import Tensor

LEAST = 1e-3
"""Least deviation, as a share of the mean size of the values: a constant history says little about later changes."""
LEAST_CHANGE = 0.25
"""Least unit, as a share of the mean change over a season in all that came before the window."""
DAMPED = 0.5
"""Share of the past trend that is taken to go on."""


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Reference and unit of each of B windows at each of its M steps; nan where its history holds no value."""

    reference: Float64[Tensor, "B M"]
    level: Float64[Tensor, " B"]
    """Median of the history."""
    unit: Float64[Tensor, " B"]

    def apply(self, values: Float64[Tensor, "B M"]) -> Float64[Tensor, "B M"]:
        """Scaled values, (values - reference) / unit."""
        return (values - self.reference) / self.unit[:, None]

    @property
    def shape(self) -> Float64[Tensor, "B M"]:
        """The scaled reference: how far the season lies above the level."""
        return (self.reference - self.level[:, None]) / self.unit[:, None]


def joined(parts: list[Scale]) -> Scale:
    """Scales of the windows of several blocks, one after the other."""
    return Scale(**{name: torch.cat([getattr(part, name) for part in parts]) for name in Scale.__annotations__})


def scale_of(
    history: Float64[Tensor, "B R"],
    offsets: Int[Tensor, " M"],
    *,
    reference: str,
    scaling: str,
    season: int,
    least: Float64[Tensor, " B"] | None = None,
) -> Scale:
    """Scale of windows with given histories, at steps given by their offset from the first one that is forecast.

    `least` is the least unit of each window, so that a flat history does not make what follows look immense.

    >>> week = torch.arange(7.0, dtype=torch.float64).repeat(1, 4)
    >>> scale_of(week, torch.tensor([0, 1, 9]), reference="season", scaling="size", season=7).reference
    tensor([[0., 1., 2.]], dtype=torch.float64)
    """
    level = history.nanmedian(-1).values
    here = _reference(history, offsets, reference, season, level)
    back = torch.arange(-history.shape[1], 0, device=history.device)
    around = _reference(history, back, "level" if reference == "last" else reference, season, level)
    size = history.abs().nanmean(-1)
    deviation = torch.maximum((history - around).abs().nanmean(-1), LEAST * size)
    unit = {"size": size, "deviation": deviation, "none": torch.ones_like(size)}[scaling]
    unit = unit if least is None or scaling == "none" else torch.maximum(unit, least)
    return Scale(reference=here, level=level, unit=torch.where(unit > 0, unit, torch.ones_like(unit)))


def _reference(
    history: Float64[Tensor, "B R"], offsets: Int[Tensor, " M"], kind: str, season: int, level: Float64[Tensor, " B"]
) -> Float64[Tensor, "B M"]:
    """Reference at each offset; the level where a step of the season was never observed."""
    if kind == "season":
        phases = history[:, history.shape[1] % season :].unflatten(1, (-1, season)).nanmedian(1).values  # B season
        found = phases[:, offsets % season]
        return torch.where(found.isnan(), level[:, None], found)
    if kind == "trend":
        return _trend(history, offsets, season, level)
    if kind == "none":
        level = torch.zeros_like(level)
    if kind == "last":
        seen = torch.arange(history.shape[1], device=history.device).where(~history.isnan(), 0).amax(-1)
        level = history.gather(1, seen[:, None])[:, 0]
    return level[:, None].expand(-1, len(offsets))


def _trend(
    history: Float64[Tensor, "B R"], offsets: Int[Tensor, " M"], season: int, level: Float64[Tensor, " B"]
) -> Float64[Tensor, "B M"]:
    r"""The level of the last cycle with a damped trend and the season's shape, $l_C + b\,(t - t_C) + m_{t \bmod m}$.

    Levels $l_c$ are the medians of cycles, the slope b is half of that between the means of their first and last half,
    and the shape is the median, over cycles, of values less their cycle's level. Where nothing was observed, the level
    is that of the whole history, and the shape is zero.
    """
    cycles = history[:, history.shape[1] % season :].unflatten(1, (-1, season))  # B C season
    levels = cycles.nanmedian(2).values  # B C
    levels = levels.where(~levels.isnan(), level[:, None])
    shape = (cycles - levels[..., None]).nanmedian(1).values.nan_to_num(0.0)  # B season
    half = max(levels.shape[1] // 2, 1)
    rise = levels[:, -half:].mean(1) - levels[:, :half].mean(1)
    slope = DAMPED * rise / max((levels.shape[1] - half) * season, 1)
    ahead = offsets + (season + 1) / 2  # steps after the middle of the last cycle
    return levels[:, -1:] + slope[:, None] * ahead + shape[:, offsets % season]


def mean_changes(values: Float64[Tensor, " T"], season: int) -> Float64[Tensor, " N"]:
    """Mean absolute change over a season in all values before each position, and after the last one.

    Zero until a change was observed.

    >>> mean_changes(torch.tensor([1.0, 1.0, 4.0, torch.nan], dtype=torch.float64), 1).tolist()
    [0.0, 0.0, 0.0, 1.5, 1.5]
    """
    changes = torch.full_like(values, torch.nan)
    changes[season:] = (values[season:] - values[:-season]).abs() if len(values) > season else changes[season:]
    seen = ~changes.isnan()
    total, count = changes.nan_to_num(0.0).cumsum(0), seen.cumsum(0)
    return torch.nn.functional.pad(total / count.clamp(min=1), (1, 0))
