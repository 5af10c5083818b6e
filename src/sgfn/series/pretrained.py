r"""A network that forecasts short series without being trained on them: it was trained once on simulated series.

Its input is the end of a history and the season; its output is, for each step ahead, quantiles at the levels of `GRID`
as $q_{h\tau} = b_h + u\,o_{h\tau}$ with b the seasonal naive forecast and u the mean change over a season, so that it
is the same for a series in other units. It was fitted by quantile loss over u to series that a programme draws
(`python -m benchmarks.pretraining`), which have trends, seasons, cycles, breaks, growth and outliers of many kinds; no
series of anybody is in it.

Reference: Dooley et al. (2023), ForecastPFN: synthetically-trained zero-shot forecasting, NeurIPS.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Float64, Int
from safetensors.torch import load_file
from torch import Tensor, nn

from sgfn.series.quantile_laws import GRID

CONTEXT, HORIZON = 224, 64
"""Values, from the end of a history, that the network reads; steps that it forecasts at most."""
SHORTEST, CYCLES = 8, 2
"""Values that it needs, and seasons; with fewer seasons it is told of none."""
LONGEST_SEASON = 56
LAST = 48
"""Values, from the end, that it sees one by one."""
WINDOWS = (2, 4, 8, 16, 32, 64, 128, 224)
"""Last values whose mean it sees."""
SEASONS_BACK = 6
"""Seasons of which it sees the mean, and the value at the phase of a step ahead."""
LAGS = (1, 2, 3, 4, 6, 12)
HARMONICS = (1, 2)
CLIPPED = 12.0
"""Size at which scaled inputs are cut."""
LARGEST = 60.0
"""Size at which extrapolations are cut."""
ANCHORS = 11
LEAST_UNIT = 1e-3
"""Least unit, in standard deviations of the history."""
WIDTH = 256
WEIGHTS = Path(__file__).parent / "data" / "pretrained.safetensors"


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


def bounded(some: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Scaled numbers of which none is extreme."""
    return some.clamp(-CLIPPED, CLIPPED)


def correlations(values: Float[Tensor, "B C"], known: Bool[Tensor, "B C"]) -> Float[Tensor, "B L"]:
    """Autocorrelations of known values about zero."""
    total = values.square().sum(1).clamp(min=1e-30)
    values = torch.where(known, values, 0.0)
    return torch.stack([(values[:, lag:] * values[:, :-lag]).sum(1) / total for lag in LAGS], 1)


def show(
    values: Float[Tensor, "B C"],
    count: Int[Tensor, " B"],
    season: Int[Tensor, " B"],
    steps: Int[Tensor, "B H"],
) -> Shown:
    """What the network sees of histories that end at the last column, for some steps ahead (0 is the next one)."""
    place = torch.arange(CONTEXT, device=values.device)
    known = place >= CONTEXT - count[:, None]
    season = torch.where(count >= CYCLES * season, season, 1)[:, None]  # B 1
    values = torch.where(known, values, values.gather(1, CONTEXT - count[:, None]))  # the first value before it
    last, total = values[:, -1:], count[:, None].to(values.dtype)
    lagged = place - season >= CONTEXT - count[:, None]
    change = torch.where(lagged, values - values.gather(1, (place - season).clamp(min=0)), 0.0)
    beside = F.pad(values.diff(dim=1), (1, 0))
    mean = torch.where(known, values, 0.0).sum(1, keepdim=True) / total
    centred = torch.where(known, values - mean, 0.0)
    spread = (centred.square().sum(1, keepdim=True) / total).sqrt() + 1e-9 * mean.abs() + 1e-30
    unit = torch.maximum(change.abs().sum(1, keepdim=True) / lagged.sum(1, keepdim=True), LEAST_UNIT * spread)
    step = torch.maximum(beside.abs().sum(1, keepdim=True) / (total - 1), LEAST_UNIT * spread)
    scaled = torch.asinh((values - last) / unit)
    bends = torch.where(lagged & lagged.roll(1, 1) & (place > 0), change.diff(dim=1, prepend=change[:, :1]), 0.0)
    bend = (bends.abs().sum(1, keepdim=True) / (lagged.sum(1, keepdim=True) - 1).clamp(min=1) / unit).clamp(min=1e-3)

    usual = phase_means(values, torch.remainder(place - CONTEXT, season), known)
    same = usual.gather(1, torch.remainder(steps, season))
    apart = torch.where(known, values - usual.gather(1, torch.remainder(place - CONTEXT, season)), 0.0)

    sums = F.pad(values.cumsum(1), (1, 0))
    ends = torch.tensor(WINDOWS, device=values.device).expand(len(values), -1)
    means = (sums[:, -1:] - sums.gather(1, CONTEXT - ends)) / ends
    apart_sums, counted = F.pad(apart.cumsum(1), (1, 0)), torch.minimum(ends, count[:, None])
    levels_apart = (apart_sums[:, -1:] - apart_sums.gather(1, CONTEXT - ends)) / counted
    cycles = torch.arange(SEASONS_BACK + 1, device=values.device)
    edges = sums.gather(1, (CONTEXT - cycles * season).clamp(min=0))
    levels = (edges[:, :-1] - edges[:, 1:]) / season
    there = (cycles[1:] * season <= count[:, None]).to(values.dtype)
    lately = torch.where(place >= CONTEXT - season, change, 0.0)
    lowest, highest = (torch.where(known, values, sign * torch.inf) for sign in (1, -1))
    facts = [season.log(), total.log(), (total / season).log(), (spread / unit).log(), (step / unit).log(), bend.log()]
    facts += [torch.asinh(mean / unit), torch.asinh(mean / spread)]
    facts += [torch.asinh((lowest.amin(1, keepdim=True) - last) / unit), torch.asinh(lowest.amin(1, keepdim=True) / unit)]
    facts += [torch.asinh((highest.amax(1, keepdim=True) - last) / unit)]
    facts += [(lately.abs().sum(1, keepdim=True) / season / unit).clamp(min=1e-3).log(), bounded(lately.sum(1, keepdim=True) / season / unit)]
    facts += [bounded(change.abs().amax(1, keepdim=True) / unit), (change.square().sum(1, keepdim=True) / lagged.sum(1, keepdim=True)).sqrt() / unit]
    facts += [correlations(centred, known), correlations(change, lagged), correlations(beside, known)]
    facts += [correlations(apart, known), bounded(levels_apart / unit)]
    facts += [scaled[:, -LAST:], bounded(change / unit)[:, -LAST:], bounded(beside / step)[:, -LAST // 2 :]]
    facts += [torch.asinh((means - last) / unit), torch.asinh((levels - levels[:, :1]) / unit) * there, there]
    whole = torch.cat([one.to(values.dtype) for one in facts], 1)

    back = torch.remainder(steps, season)[..., None] - season[..., None] * (cycles[1:] - 0)  # B H K, from the end
    found = values.gather(1, (CONTEXT + back).clamp(min=0).flatten(1)).unflatten(1, back.shape[1:])
    seen = ((-back) <= count[:, None, None]).to(values.dtype)
    base, older = found[..., 0], found[..., 1:]
    before, after = (
        values.gather(1, CONTEXT - season + torch.remainder(steps + shift, season)) for shift in (-1, 1)
    )
    angle = 2 * torch.pi * torch.remainder(steps, season)[..., None] / season[..., None]
    waves = angle * torch.tensor(HARMONICS, device=values.device)
    distance = (steps + 1).to(values.dtype)
    units = unit[..., None]
    queries = [torch.asinh((base - last) / unit), bounded((base - mean) / spread), bounded((same - base) / unit)]
    queries += [bounded((before - base) / unit), bounded((after - base) / unit), distance / 16, distance.log()]
    queries += [(distance / season).log()]
    ahead = torch.cat(
        [torch.stack(queries, -1), bounded((older - base[..., None]) / units) * seen[..., 1:], waves.sin(), waves.cos()], -1
    )
    cycle = torch.div(steps, season, rounding_mode="floor") + 1
    latest = change.gather(1, CONTEXT - season + torch.remainder(steps, season))
    yearly = lately.sum(1, keepdim=True) / season
    slope = beside[:, -4:].mean(1, keepdim=True)
    anchors = [yearly * cycle, latest * cycle, change[:, -1:].expand_as(base), same - base, slope * distance]
    anchors += [mean - base, yearly.expand_as(base), change[:, -4:].mean(1, keepdim=True).expand_as(base)]
    anchors += [same + level - base for level in (apart[:, -1:], levels_apart[:, 1:2], levels_apart[:, 3:4])]
    anchors = (torch.stack(anchors, -1) / units).clamp(-LARGEST, LARGEST)
    return Shown(
        whole=whole.float(), ahead=ahead.float(), anchors=anchors.float(), base=base, unit=unit[:, 0], bend=bend[:, 0]
    )


def phase_means(
    values: Float[Tensor, "B C"], phase: Int[Tensor, "B C"], known: Bool[Tensor, "B C"]
) -> Float[Tensor, "B S"]:
    """Mean of the known values of each phase of the season."""
    sums = values.new_zeros(len(values), LONGEST_SEASON)
    counts = sums.scatter_add(1, phase, known.to(values.dtype))
    return sums.scatter_add(1, phase, torch.where(known, values, 0.0)) / counts.clamp(min=1)


FACTS = 15 + 4 * len(LAGS) + 2 * LAST + LAST // 2 + 2 * len(WINDOWS) + 2 * SEASONS_BACK
QUERIES = 8 + SEASONS_BACK - 1 + 2 * len(HARMONICS)


class PretrainedNet(nn.Module):
    """Quantiles of what comes next, over units and beside seasonal naive."""

    def __init__(self) -> None:
        super().__init__()
        self.whole, self.ahead = nn.Linear(FACTS, WIDTH), nn.Linear(QUERIES, WIDTH)
        self.first, self.second, self.third = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.last = nn.Linear(WIDTH, WIDTH)
        self.head = nn.Linear(WIDTH, len(GRID) + ANCHORS)

    def forward(
        self, whole: Float[Tensor, "B F"], ahead: Float[Tensor, "B H G"], anchors: Float[Tensor, "B H A"]
    ) -> Float[Tensor, "B H Q"]:
        """Quantiles over units, beside seasonal naive: the median, and what lies between neighbouring levels."""
        series = F.gelu(self.whole(whole))
        series = series + F.gelu(self.first(series))
        items = F.gelu(self.second(series)[:, None] + self.ahead(ahead))
        items = items + F.gelu(self.third(items))
        found = self.head(items + F.gelu(self.last(items))).float()
        middle = len(GRID) // 2
        below, median, above, shares = found.split([middle, 1, len(GRID) - middle - 1, ANCHORS], -1)
        median = median + (shares * anchors).sum(-1, keepdim=True)
        below = median - F.softplus(below).flip(-1).cumsum(-1).flip(-1)
        return torch.cat([below, median, median + F.softplus(above).cumsum(-1)], -1)


@lru_cache(1)
def pretrained_net() -> PretrainedNet:
    """The network with the weights that come with the package."""
    net = PretrainedNet()
    net.load_state_dict({name: value.float() for name, value in load_file(WEIGHTS).items()})
    return net.eval().requires_grad_(False)


def pretrained_quantiles(
    histories: Sequence[Float64[np.ndarray, " T"]], seasons: Sequence[int], horizon: int, net: PretrainedNet | None = None
) -> Float64[np.ndarray, "B H Q"]:
    """Quantiles at the levels of the grid, of what comes after each history, which has no gaps."""
    values = np.zeros((len(histories), CONTEXT))
    for row, history in zip(values, histories, strict=True):
        read = history[-CONTEXT:]
        row[-len(read) :] = read
    counts = torch.tensor([min(len(one), CONTEXT) for one in histories])
    steps = torch.arange(horizon).expand(len(histories), -1)
    with torch.no_grad():
        shown = show(torch.from_numpy(values), counts, torch.tensor(list(seasons)), steps)
        found = (net or pretrained_net())(shown.whole, shown.ahead, shown.anchors).double()
    return (shown.base[..., None] + shown.unit[:, None, None] * found).numpy()
