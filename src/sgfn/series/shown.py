"""What the pretrained network sees of histories: figures of each history and of each step ahead, without units.

Levels are divided by the mean change over a season and squeezed by asinh; changes are divided by their own mean size.
All histories of a batch end at the last column.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sgfn.series.smoothed import LEVELS, LINES, Smoothed, smoothed

CONTEXT = 224
"""Values, from the end of a history, that are read."""
CYCLES = 2
"""Seasons that a history must have: with fewer it is read as if it had none."""
LONGEST_SEASON = 56
LAST = 48
"""Values, from the end, that are seen one by one."""
WINDOWS = (2, 4, 8, 16, 32, 64, 128, 224)
"""Last values whose mean is seen."""
SEASONS_BACK = 6
"""Seasons of which the mean is seen, and the value at the phase of a step ahead."""
LAGS = (1, 2, 3, 4, 6, 12)
HARMONICS = (1, 2)
CLIPPED = 12.0
"""Size at which scaled figures are cut."""
LARGEST = 60.0
"""Size at which extrapolations are cut."""
LEAST_UNIT = 1e-3
"""Least unit, in standard deviations of the history."""

FACTS = 15 + 4 * len(LAGS) + 2 * LAST + LAST // 2 + 2 * len(WINDOWS) + 2 * SEASONS_BACK
FACTS += 2 * len(LEVELS) + 3 * len(LINES)
"""Number of figures of a history."""
QUERIES = 8 + SEASONS_BACK - 1 + 2 * len(HARMONICS)
"""Number of figures of a step ahead."""
RECENT = 0.6
"""Weight of a season beside that of the next newer one, in means of a phase that follow the newest."""
ANCHORS = 13 + len(LEVELS) + 2 * len(LINES)
"""Number of simple extrapolations."""

Column = Float[Tensor, "B 1"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Shown:
    """What the network sees of some histories, and how its output becomes values."""

    whole: Float[Tensor, "B F"]
    """Of each history."""
    ahead: Float[Tensor, "B H G"]
    """Of each step ahead."""
    anchors: Float[Tensor, "B H A"]
    """Simple extrapolations of each step, over units and beside seasonal naive."""
    base: Float[Tensor, "B H"]
    """Seasonal naive forecasts."""
    unit: Float[Tensor, " B"]
    """Mean change over a season."""
    bend: Float[Tensor, " B"]
    """Mean change of these changes from step to step, over units: small where a series hardly bends."""


def show(
    values: Float[Tensor, "B C"], count: Int[Tensor, " B"], season: Int[Tensor, " B"], steps: Int[Tensor, "B H"]
) -> Shown:
    """What the network sees of histories of so many values, for some steps ahead (0 is the next one)."""
    past = Past(values, count, season)
    ahead = Ahead(past, steps)
    return Shown(
        whole=facts_of(past).float(),
        ahead=queries_of(past, ahead).float(),
        anchors=anchors_of(past, ahead).float(),
        base=ahead.base,
        unit=past.unit[:, 0],
        bend=past.bend[:, 0],
    )


def bounded(some: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Scaled figures of which none is extreme."""
    return some.clamp(-CLIPPED, CLIPPED)


def total_of(some: Float[Tensor, "B C"]) -> Column:
    """Sum over a history."""
    return some.sum(1, keepdim=True)


class Past:
    """Histories with their scales; `change` is that over a season, `beside` that from value to value."""

    def __init__(self, values: Float[Tensor, "B C"], count: Int[Tensor, " B"], season: Int[Tensor, " B"]) -> None:
        self.place = torch.arange(CONTEXT, device=values.device)
        self.count, first = count[:, None], CONTEXT - count[:, None]
        self.known: Bool[Tensor, "B C"] = self.place >= first
        self.season: Int[Tensor, "B 1"] = torch.where(count >= CYCLES * season, season, 1)[:, None]
        self.values = torch.where(self.known, values, values.gather(1, first))  # the first value before it
        self.last, self.total = self.values[:, -1:], self.count.to(values.dtype)
        self.lagged: Bool[Tensor, "B C"] = self.place - self.season >= first
        earlier = self.values.gather(1, (self.place - self.season).clamp(min=0))
        self.change = torch.where(self.lagged, self.values - earlier, 0.0)
        self.beside = F.pad(self.values.diff(dim=1), (1, 0))
        self.mean = total_of(torch.where(self.known, self.values, 0.0)) / self.total
        self.centred = torch.where(self.known, self.values - self.mean, 0.0)

    @cached_property
    def spread(self) -> Column:
        """Standard deviation."""
        return (total_of(self.centred.square()) / self.total).sqrt() + 1e-9 * self.mean.abs() + 1e-30

    @cached_property
    def unit(self) -> Column:
        """Mean change over a season."""
        return torch.maximum(total_of(self.change.abs()) / total_of(self.lagged), LEAST_UNIT * self.spread)

    @cached_property
    def step(self) -> Column:
        """Mean change from value to value."""
        return torch.maximum(total_of(self.beside.abs()) / (self.total - 1), LEAST_UNIT * self.spread)

    @cached_property
    def bend(self) -> Column:
        """Mean change of the changes over a season, over units."""
        both = self.lagged & self.lagged.roll(1, 1) & (self.place > 0)
        bends = torch.where(both, self.change.diff(dim=1, prepend=self.change[:, :1]), 0.0)
        return (total_of(bends.abs()) / (total_of(self.lagged) - 1).clamp(min=1) / self.unit).clamp(min=1e-3)

    @cached_property
    def lately(self) -> Float[Tensor, "B C"]:
        """Changes over the last season."""
        return torch.where(self.place >= CONTEXT - self.season, self.change, 0.0)

    @cached_property
    def usual(self) -> Float[Tensor, "B S"]:
        """Mean of each phase of the season."""
        return phase_means(self.values, torch.remainder(self.place - CONTEXT, self.season), self.known)

    @cached_property
    def apart(self) -> Float[Tensor, "B C"]:
        """Values beside the mean of their phase."""
        usual = self.usual.gather(1, torch.remainder(self.place - CONTEXT, self.season))
        return torch.where(self.known, self.values - usual, 0.0)

    @cached_property
    def levels_apart(self) -> Float[Tensor, "B W"]:
        """Means of these over the last values."""
        ends = torch.tensor(WINDOWS, device=self.values.device).expand(len(self.values), -1)
        sums = F.pad(self.apart.cumsum(1), (1, 0))
        return (sums[:, -1:] - sums.gather(1, CONTEXT - ends)) / torch.minimum(ends, self.count)

    @cached_property
    def smoothed(self) -> Smoothed:
        """Levels and lines of what lies beside the mean of each phase."""
        return smoothed(self.apart, self.known)

    @cached_property
    def seasons(self) -> tuple[Float[Tensor, "B S"], Float[Tensor, "B S"]]:
        """Means of the last seasons, the newest first, and which of them are there."""
        sums = F.pad(self.values.cumsum(1), (1, 0))
        cycles = torch.arange(SEASONS_BACK + 1, device=sums.device)
        edges = sums.gather(1, (CONTEXT - cycles * self.season).clamp(min=0))
        levels = (edges[:, :-1] - edges[:, 1:]) / self.season
        return levels, (cycles[1:] * self.season <= self.count).to(sums.dtype)


class Ahead:
    """Steps ahead with what lies whole seasons before them."""

    def __init__(self, past: Past, steps: Int[Tensor, "B H"]) -> None:
        self.steps, self.phase = steps, torch.remainder(steps, past.season)
        cycles = torch.arange(1, SEASONS_BACK + 1, device=steps.device)
        back = self.phase[..., None] - past.season[..., None] * cycles  # B H K, from the end
        found = past.values.gather(1, (CONTEXT + back).clamp(min=0).flatten(1)).unflatten(1, back.shape[1:])
        self.base, self.older = found[..., 0], found[..., 1:]
        self.seen = (-back <= past.count[:, None])[..., 1:].to(past.values.dtype)
        self.same = past.usual.gather(1, self.phase)
        self.distance = (steps + 1).to(past.values.dtype)


def phase_means(
    values: Float[Tensor, "B C"], phase: Int[Tensor, "B C"], known: Bool[Tensor, "B C"]
) -> Float[Tensor, "B S"]:
    """Mean of the known values of each phase of the season."""
    sums = values.new_zeros(len(values), LONGEST_SEASON)
    counts = sums.scatter_add(1, phase, known.to(values.dtype))
    return sums.scatter_add(1, phase, torch.where(known, values, 0.0)) / counts.clamp(min=1)


def correlations(values: Float[Tensor, "B C"], known: Bool[Tensor, "B C"]) -> Float[Tensor, "B L"]:
    """Autocorrelations of known values about zero."""
    total = values.square().sum(1).clamp(min=1e-30)
    values = torch.where(known, values, 0.0)
    return torch.stack([(values[:, lag:] * values[:, :-lag]).sum(1) / total for lag in LAGS], 1)


def facts_of(past: Past) -> Float[Tensor, "B F"]:
    """Figures of each history: scales, correlations, the last values, and levels further back."""
    found = [*scales_of(past), correlations(past.centred, past.known), correlations(past.change, past.lagged)]
    found += [correlations(past.beside, past.known), correlations(past.apart, past.known)]
    found += [bounded(past.levels_apart / past.unit), torch.asinh((past.values - past.last) / past.unit)[:, -LAST:]]
    found += [bounded(past.change / past.unit)[:, -LAST:], bounded(past.beside / past.step)[:, -LAST // 2 :]]
    found += [*levels_of(past), *smoothed_of(past)]
    return torch.cat([one.to(past.values.dtype) for one in found], 1)


def scales_of(past: Past) -> list[Float[Tensor, "B 1"]]:
    """Lengths and scales of each history, relative to each other."""
    season, unit, lowest = past.season, past.unit, torch.where(past.known, past.values, torch.inf)
    highest = torch.where(past.known, past.values, -torch.inf).amax(1, keepdim=True)
    lowest = lowest.amin(1, keepdim=True)
    found = [season.log(), past.total.log(), (past.total / season).log(), (past.spread / unit).log()]
    found += [(past.step / unit).log(), past.bend.log(), torch.asinh(past.mean / unit)]
    found += [torch.asinh(past.mean / past.spread), torch.asinh((lowest - past.last) / unit)]
    found += [torch.asinh(lowest / unit), torch.asinh((highest - past.last) / unit)]
    found += [(total_of(past.lately.abs()) / season / unit).clamp(min=1e-3).log()]
    found += [bounded(total_of(past.lately) / season / unit), bounded(past.change.abs().amax(1, keepdim=True) / unit)]
    return [*found, (total_of(past.change.square()) / total_of(past.lagged)).sqrt() / unit]


def levels_of(past: Past) -> list[Float[Tensor, "B N"]]:
    """Means of the last values, and of the last seasons with whether they are there."""
    sums = F.pad(past.values.cumsum(1), (1, 0))
    ends = torch.tensor(WINDOWS, device=sums.device).expand(len(sums), -1)
    means = (sums[:, -1:] - sums.gather(1, CONTEXT - ends)) / ends
    levels, there = past.seasons
    means = torch.asinh((means - past.last) / past.unit)
    return [means, torch.asinh((levels - levels[:, :1]) / past.unit) * there, there]


def smoothed_of(past: Past) -> list[Float[Tensor, "B N"]]:
    """Levels and lines by discounted least squares, and how large their errors of one step were."""
    found, unit = past.smoothed, past.unit
    sizes = [(errors / unit).clamp(min=1e-3).log() for errors in (found.level_errors, found.line_errors)]
    return [*sizes, *(bounded(some / unit) for some in (found.levels, found.ends, 4 * found.slopes))]


def queries_of(past: Past, ahead: Ahead) -> Float[Tensor, "B H G"]:
    """Figures of each step ahead: what lay seasons before it, beside it and in the mean, and how far it is."""
    base, unit = ahead.base, past.unit
    before, after = (
        past.values.gather(1, CONTEXT - past.season + torch.remainder(ahead.steps + shift, past.season))
        for shift in (-1, 1)
    )
    found = [torch.asinh((base - past.last) / unit), bounded((base - past.mean) / past.spread)]
    found += [bounded((other - base) / unit) for other in (ahead.same, before, after)]
    found += [ahead.distance / 16, ahead.distance.log(), (ahead.distance / past.season).log()]
    angle = 2 * torch.pi * ahead.phase[..., None] / past.season[..., None]
    waves = angle * torch.tensor(HARMONICS, device=angle.device)
    older = bounded((ahead.older - base[..., None]) / unit[..., None]) * ahead.seen
    return torch.cat([torch.stack(found, -1), older, waves.sin(), waves.cos()], -1)


def anchors_of(past: Past, ahead: Ahead) -> Float[Tensor, "B H A"]:
    """Simple extrapolations: of the last season's growth, of the last changes, of means and levels, of the slope."""
    base, change = ahead.base, past.change
    cycle = torch.div(ahead.steps, past.season, rounding_mode="floor") + 1
    latest = change.gather(1, CONTEXT - past.season + ahead.phase)
    growth = total_of(past.lately) / past.season
    slope = past.beside[:, -4:].mean(1, keepdim=True)
    found = [growth * cycle, latest * cycle, change[:, -1:].expand_as(base), ahead.same - base, slope * ahead.distance]
    found += [past.mean - base, growth.expand_as(base), change[:, -4:].mean(1, keepdim=True).expand_as(base)]
    lines = past.smoothed
    levels = (past.apart[:, -1:], past.levels_apart[:, 1:2], past.levels_apart[:, 3:4])
    levels += (*lines.levels.split(1, 1), *lines.ends.split(1, 1))
    found += [ahead.same + level - base for level in levels]
    found += [slope * ahead.distance for slope in lines.slopes.split(1, 1)]
    found += phases_of(past, ahead)
    return (torch.stack(found, -1) / past.unit[..., None]).clamp(-LARGEST, LARGEST)


def phases_of(past: Past, ahead: Ahead) -> list[Float[Tensor, "B H"]]:
    """Means of a phase in which newer seasons count more, beside seasonal naive; and at the newest season's level."""
    levels, there = past.seasons
    weights = there * RECENT ** torch.arange(SEASONS_BACK, device=there.device)
    weights = weights / weights.sum(1, keepdim=True).clamp(min=1e-30)
    older = torch.cat([ahead.base[..., None], ahead.older], -1)
    seen = (older * weights[:, None]).sum(-1) - ahead.base * weights.sum(1, keepdim=True)
    return [seen, seen + (levels[:, :1] - (levels * weights).sum(1, keepdim=True))]
