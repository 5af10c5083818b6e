"""Windows of a panel as tensors: inputs known at an origin and, separately, the targets observed after it.

Row j of a window is one step. It holds the value *before* it and everything known in advance *at* it, so that row j may
be used to forecast value j. `Windows.inputs` reads nothing at or after the origin but what is known in advance;
`Windows.targets` is the one place where the future is read.
"""

import warnings
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor

from sgfn.config.series import Reference, SeriesConfig
from sgfn.series.calendar import features, following
from sgfn.series.categories import aligned
from sgfn.series.panel import Panel, Series
from sgfn.series.plan import Plan, moments
from sgfn.series.scaling import LEAST_CHANGE, Scale, joined, mean_changes, scale_of

TREND_COUNTS = 1.15
"""Factor of the residual of a trend where references are compared: it is taken where it plainly leaves less."""
COMPARED_WINDOWS = 2048
"""Most windows on which references and scalings are compared."""
COMPARED_SERIES = 400
"""Most series of whose windows they are."""
SCALED_BY = 2
"""Least number of values in a history by which a window is scaled."""
HISTORIES = 2**26
"""Values at most of the histories by which windows are scaled at once, which bounds memory."""
LONG_HISTORY = 2**16
"""Values from which on a history is cut to what the longest series has."""
CHOICES: dict[str, tuple[Reference, ...]] = {
    "auto": ("season", "level", "last"),
    "best": ("season", "trend", "level", "last"),
}
"""References among which the training windows choose; `auto` is what runs made before there was a trend say."""
LARGEST_INPUT = 10.0
"""Bound of the scaled values that a network reads."""


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """Inputs of B windows as a network reads them: L steps of context, H of forecast, M = L + H rows in all."""

    rows: Float[Tensor, "B M F"]
    """Features known at each step: covariates known in advance, lagged values and past-only covariates."""
    values: Float[Tensor, "B L"]
    """Scaled values of the context, zero where missing."""
    seen: Bool[Tensor, "B L"]
    reference: Float64[Tensor, "B H"]
    """Reference that is added to a scaled forecast, after its multiplication by the unit."""
    unit: Float64[Tensor, " B"]

    def __getitem__(self, index: Int[Tensor, " N"]) -> "Inputs":
        """Inputs of some of the windows, which may be repeated."""
        return Inputs(**{name: getattr(self, name)[index] for name in Inputs.__annotations__})

    def to(self, device: torch.device) -> "Inputs":
        """The same inputs on another device."""
        return Inputs(**{name: getattr(self, name).to(device) for name in Inputs.__annotations__})

    def in_units(self, scaled: Float64[Tensor, "B *N H"]) -> Float64[Tensor, "B *N H"]:
        """Scaled values in units of the data."""
        lead = (slice(None), *(None,) * (scaled.dim() - 2))
        return scaled * self.unit[(*lead, None)] + self.reference[(*lead, slice(None))]


class Windows:
    """All windows of a panel, cut out on demand; a window is a series' number and how many values come before it."""

    def __init__(self, panel: Panel, plan: Plan, device: torch.device | str = "cpu") -> None:
        panel, unknown = aligned(panel, plan.known_names, plan.past_names)
        for line in unknown:
            warnings.warn(line, UserWarning, stacklevel=3)
        if (panel.known_names, panel.past_names) != (plan.known_names, plan.past_names):
            raise ValueError(
                f"the panel has covariates {[*panel.known_names, *panel.past_names]}, the forecaster was fitted with "
                f"{[*plan.known_names, *plan.past_names]}: give the same"
            )
        self.panel, self.plan, self.device = panel, plan, torch.device(device)
        self.stamps = [_stamps(series, panel, plan.horizon) for series in panel.series]
        sizes = [len(stamps) for stamps in self.stamps]
        self.starts = torch.tensor(np.cumsum([0, *sizes[:-1]]), device=device)
        self.lengths = torch.tensor([len(series) for series in panel.series], device=device)
        self.values = self._flat([_padded(series.values, size) for series, size in self._sized()])
        self.past = self._flat([plan.past_scaled(_padded(s.past, size)) for s, size in self._sized()])
        self.known = self._flat([self._known(i).astype(np.float32) for i in range(len(panel))])
        self.clock = self._flat([plan.clock(stamps) for stamps in self.stamps])
        self.scaled_at = self._flat([_scaled_at(self._enough(s, size), plan.season) for s, size in self._sized()])
        self.changes = torch.cat([self._changes(s, size) for s, size in self._sized()])
        self.history = history_of(plan, max(len(series) for series in panel.series))
        self.offsets = torch.arange(-plan.context, plan.horizon, device=device)

    def _sized(self) -> list[tuple[Series, int]]:
        return [(series, len(stamps)) for series, stamps in zip(self.panel.series, self.stamps, strict=True)]

    def _flat(self, parts: list[np.ndarray]) -> Tensor:
        return torch.from_numpy(np.concatenate(parts)).to(self.device)

    def _known(self, number: int) -> np.ndarray:
        """Covariates known in advance, scaled, and calendar features; nan in rows that the panel does not have."""
        series, stamps, plan = self.panel.series[number], self.stamps[number], self.plan
        given = plan.known_scaled(_padded(series.known, len(stamps)))
        if not plan.calendar_names:
            return given
        found, names = features(stamps, plan.gap, None if plan.holidays == "none" else plan.holidays)
        return np.concatenate([given, found[:, [names.index(name) for name in plan.calendar_names]]], 1)

    # windows

    def cuts(self) -> Int[Tensor, "N 2"]:
        """(series, cut) of every window to learn from: enough values before it, and at least one in it."""
        found = []
        for number, series in enumerate(self.panel.series):
            seen = counts_before(series.values)
            first = max(2, min(self.plan.context, (len(series) - self.plan.horizon) // 2))
            cut = np.arange(first, len(series) - self.plan.horizon + 1)
            enough = self._enough(series, len(series) + 1)[cut]
            cut = cut[enough & (seen[cut + self.plan.horizon] > seen[cut])] if len(cut) else cut
            found.append(np.stack([np.full_like(cut, number), cut], 1))
        cuts = np.concatenate(found)
        if not len(cuts):
            longest = max(len(series) for series in self.panel.series)
            raise ValueError(
                f"no window to learn from: the longest series has {longest} steps, a horizon of {self.plan.horizon} "
                f"needs {self.plan.horizon + 2} or more; take a shorter horizon"
            )
        return torch.from_numpy(cuts).to(self.device)

    def ends(self) -> Int[Tensor, "N 2"]:
        """(series, cut) of the window after the last value of each series."""
        return torch.stack([torch.arange(len(self.panel), device=self.device), self.lengths], 1)

    def folds(self, cuts: Int[Tensor, "B 2"], count: int) -> Int[Tensor, "B H"]:
        """Fold of time, out of `count`, in which each forecast step lies; folds alternate every two horizons or so."""
        horizon, length = self.plan.horizon, self.lengths[cuts[:, 0]]
        rounds = (length // (2 * horizon * count)).clamp(min=1)
        block = torch.maximum(-(-length // (count * rounds)), torch.full_like(length, horizon))
        return (cuts[:, 1, None] + self.offsets[self.plan.context :]) // block[:, None] % count

    def _enough(self, series: Series, size: int) -> Bool[np.ndarray, " N"]:
        """Whether the history before each cut holds the two values that a scale needs."""
        cut, seen = np.minimum(np.arange(size), len(series)), counts_before(series.values)
        return seen[cut] - seen[np.maximum(cut - self.plan.history, 0)] >= SCALED_BY

    def scale(self, cuts: Int[Tensor, "B 2"]) -> Scale:
        """Scale of each window, from values before it alone; nan where there are none.

        After an outage as long as the history, it is computed from the last seasons before that hold values.
        """
        block = max(HISTORIES // self.history, 1)
        found = [self._scale(part) for part in cuts.split(block)]
        return found[0] if len(found) == 1 else joined(found)

    def _scale(self, cuts: Int[Tensor, "B 2"]) -> Scale:
        plan = self.plan
        back = torch.arange(-self.history, 0, device=self.device)
        settings = {"reference": plan.reference, "scaling": plan.scaling, "season": plan.season}
        moved = self._before_outages(cuts)
        least = LEAST_CHANGE * self.changes[self.starts[cuts[:, 0]] + moved[:, 1].clamp(min=0)]
        found = scale_of(self._values(moved, back), self.offsets, least=least, **settings)
        return Scale(reference=found.reference, level=found.level, unit=found.unit * plan.spread)

    def _changes(self, series: Series, size: int) -> Float64[Tensor, " N"]:
        """Mean change over a season before each row of a series, and after its end."""
        found = mean_changes(torch.from_numpy(series.values).to(self.device), self.plan.season)
        return torch.nn.functional.pad(found, (0, max(size - len(found), 0)), value=float(found[-1]))[:size]

    def _before_outages(self, cuts: Int[Tensor, "B 2"]) -> Int[Tensor, "B 2"]:
        number, cut = cuts.unbind(1)
        moved = self.scaled_at[self.starts[number] + cut.clamp(min=0)]
        return torch.stack([number, moved.where(cut >= 0, cut)], 1)

    def inputs(self, cuts: Int[Tensor, "B 2"]) -> Inputs:
        """Inputs of windows, from what is known at their origins."""
        plan, scale = self.plan, self.scale(cuts)
        context = self._values(cuts, self.offsets[: plan.context])
        scaled = scale.apply(torch.nn.functional.pad(context, (0, plan.horizon), value=torch.nan))[:, : plan.context]
        seen = ~scaled.isnan()
        parts = [
            self._known_at(cuts),
            self._past_at(cuts),
            self._lagged(cuts, scale),
            clip_and_fill(scale.shape)[0][..., None],
        ]
        parts += [self._gaps(cuts)] if plan.irregular else []
        parts += [self._absolute(scale)] if plan.absolute else []
        return Inputs(
            rows=torch.cat([part.float() for part in parts], -1),
            values=clip_and_fill(scaled)[0].float(),
            seen=seen,
            reference=scale.reference[:, plan.context :].nan_to_num(0.0),
            unit=scale.unit.nan_to_num(1.0),
        )

    def targets(self, cuts: Int[Tensor, "B 2"]) -> Float64[Tensor, "B H"]:
        """Observed values of the windows, scaled; nan where missing. Nothing else reads the future."""
        place, ahead = self.starts[cuts[:, 0]] + cuts[:, 1], self.offsets[self.plan.context :]
        values = self.values[(place[:, None] + ahead).clamp(max=len(self.values) - 1)]
        inside = cuts[:, 1, None] + ahead < self.lengths[cuts[:, 0], None]
        scale = self.scale(cuts)
        return (values.where(inside, torch.nan) - scale.reference[:, self.plan.context :]) / scale.unit[:, None]

    def stamps_at(self, cuts: Int[Tensor, "B 2"]) -> np.ndarray:
        """Time stamps of the forecast steps."""
        horizon = self.plan.horizon
        return np.stack([self.stamps[number][cut : cut + horizon] for number, cut in cuts.tolist()])

    # parts of a window

    def _values(self, cuts: Int[Tensor, "B 2"], back: Int[Tensor, " R"]) -> Float64[Tensor, "B R"]:
        """Values at negative offsets from the cut; nan before the series begins."""
        return self._before(self.values, cuts, back)

    def _before(self, flat: Tensor, cuts: Int[Tensor, "B 2"], back: Int[Tensor, " R"]) -> Tensor:
        place = cuts[:, 1, None] + back
        found = flat[(self.starts[cuts[:, 0], None] + place).clamp(0, len(flat) - 1)]
        outside = (place < 0) | (back >= 0)
        return found.masked_fill(outside.view(*outside.shape, *(1,) * (found.dim() - 2)), torch.nan)

    def _known_at(self, cuts: Int[Tensor, "B 2"]) -> Float[Tensor, "B M C"]:
        place = cuts[:, 1, None] + self.offsets
        found = self.known[self.starts[cuts[:, 0], None] + place.clamp(min=0)]
        lacking = found.isnan().any(-1)
        if bool(lacking.any()):
            number, cut = cuts[int(lacking.any(-1).nonzero()[0, 0])].tolist()
            raise ValueError(
                f"series {self.panel.series[number].name!r}: {list(self.plan.known_names)} are known in advance, but "
                f"their rows do not reach {self.plan.horizon} steps past value {cut}: add rows with empty values"
            )
        return found

    def _past_at(self, cuts: Int[Tensor, "B 2"]) -> Float64[Tensor, "B M Q"]:
        """Past-only covariates, one step late as values are, and which of them were observed."""
        filled, seen = clip_and_fill(self._before(self.past, cuts, self.offsets - 1))
        return torch.cat([filled, seen.double()], -1)

    def _lagged(self, cuts: Int[Tensor, "B 2"], scale: Scale) -> Float64[Tensor, "B M G"]:
        """Values one lag before each row, relative to the level and unit of that time, less the present season's shape.

        Every lag is a horizon or more, so all of them are known.
        """
        found = [torch.zeros(len(cuts), len(self.offsets), 0, dtype=torch.float64, device=self.device)]
        for lag in self.plan.lags:
            then = self.scale(cuts - torch.tensor([0, lag], device=self.device))
            old = (self._values(cuts, self.offsets - lag) - then.level[:, None]) / then.unit[:, None]
            filled, seen = clip_and_fill(old - scale.shape)
            found += [filled[..., None], seen[..., None].double()]
        return torch.cat(found, -1)

    def _absolute(self, scale: Scale) -> Float64[Tensor, "B M 2"]:
        """Level and logarithm of the unit, standardised over training windows; the same in every row."""
        mean, deviation = torch.from_numpy(self.plan.scale_moments).to(self.device)
        found = clip_and_fill((_level_and_unit(scale) - mean) / deviation)[0]
        return found[:, None].expand(-1, len(self.offsets), -1)

    def _gaps(self, cuts: Int[Tensor, "B 2"]) -> Float64[Tensor, "B M 2"]:
        r"""For irregular stamps: $\log_2$ of the gap before a step, and the time from the last value to the step."""
        place = self.starts[cuts[:, 0], None] + (cuts[:, 1, None] + self.offsets).clamp(min=0)
        first = self.starts[cuts[:, 0], None]
        gap = self.clock[place] - self.clock[torch.maximum(place - 1, first)]
        age = self.clock[place] - self.clock[torch.maximum(first + cuts[:, 1, None] - 1, first)]
        return torch.stack([gap.clamp(1e-3, 1e4).log2(), age.sign() * age.abs().log1p()], -1)


def history_of(plan: Plan, longest: int) -> int:
    """Values before a cut that a scale is computed from; of a very long history no more seasons than there are."""
    there = -(-longest // plan.season) * plan.season
    return min(plan.history, there) if plan.history > LONG_HISTORY else plan.history


def clip_and_fill(scaled: Float64[Tensor, "*batch"]) -> tuple[Float64[Tensor, "*batch"], Bool[Tensor, "*batch"]]:
    """Values clipped to the bound, zero where nothing was observed, and whether something was."""
    return scaled.nan_to_num(0.0).clamp(-LARGEST_INPUT, LARGEST_INPUT), ~scaled.isnan()


def _level_and_unit(scale: Scale) -> Float64[Tensor, "B 2"]:
    return torch.stack([scale.level, scale.unit.log()], -1)


def counts_before(values: Float64[np.ndarray, " N"]) -> Int[np.ndarray, " M"]:
    """How many values were observed before each position, and in all."""
    return np.concatenate([[0], np.cumsum(~np.isnan(values))])


def _scaled_at(enough: Bool[np.ndarray, " N"], season: int) -> Int[np.ndarray, " N"]:
    """For each cut, the latest one a whole number of seasons before (or itself) with enough history; itself if none.

    >>> _scaled_at(np.array([False, False, True, True, False, False, False]), 2).tolist()
    [0, 1, 2, 3, 2, 3, 2]
    """
    places = np.arange(len(enough))
    rows = np.pad(np.where(enough, places, -1), (0, -len(enough) % season), constant_values=-1).reshape(-1, season)
    last = np.maximum.accumulate(rows, axis=0).reshape(-1)[: len(enough)]
    return np.where(last < 0, places, last)


def _stamps(series: Series, panel: Panel, horizon: int) -> np.ndarray:
    """Stamps of a series followed by a horizon of future ones: those given, then those that would follow."""
    given = np.concatenate([series.stamps, series.future[:horizon]])
    missing = horizon - len(given) + len(series)
    return given if missing == 0 else np.concatenate([given, following(given, panel.step, missing)])


def _padded(rows: np.ndarray, size: int) -> np.ndarray:
    """Rows cut or padded with nan to a number of rows."""
    lacking = max(0, size - len(rows))
    return np.concatenate([rows[:size], np.full((lacking, *rows.shape[1:]), np.nan)])


def plan_for(panel: Panel, config: SeriesConfig) -> Plan:
    """Plan for a training panel, with all settings that were left open chosen from it.

    The reference is the one whose residuals are smallest, the scaling the one under which windows differ least in size.
    """
    plan, panel = Plan.of(panel, config), some_series(panel, COMPARED_SERIES)
    choices = CHOICES.get(plan.reference, (plan.reference,))
    references = tuple(kind for kind in choices if plan.season > 1 or kind != "season" or len(choices) == 1)
    plan = min((replace(plan, reference=kind) for kind in references), key=lambda one: _weighed_residual(panel, one))
    scalings = ("deviation", "size") if plan.scaling == "auto" else (plan.scaling,)
    plan = min((replace(plan, scaling=kind) for kind in scalings), key=lambda one: _size_variation(panel, one))
    plan = replace(plan, spread=float(_sizes(panel, plan).nanmean()) or 1.0)
    windows = Windows(panel, plan)
    return replace(plan, scale_moments=moments([_level_and_unit(windows.scale(_spaced_cuts(windows))).numpy()]))


def some_series(panel: Panel, most: int) -> Panel:
    """A panel of at most so many of the series, evenly spread; the longest is among them."""
    if len(panel) <= most:
        return panel
    longest = max(range(len(panel)), key=lambda number: len(panel.series[number]))
    places = sorted({*np.linspace(0, len(panel) - 1, most - 1).round().astype(int).tolist(), longest})
    return replace(panel, series=tuple(panel.series[number] for number in places))


def _weighed_residual(panel: Panel, plan: Plan) -> float:
    """Mean residual of a reference; that of a trend counts for more, as its level is that of the last cycle alone."""
    return _mean_residual(panel, plan) * (TREND_COUNTS if plan.reference == "trend" else 1.0)


def _mean_residual(panel: Panel, plan: Plan) -> float:
    """Mean absolute residual of a reference, in one unit for all references."""
    common = replace(plan, scaling="deviation")
    level = Windows(panel, replace(common, reference="level"))
    windows, cuts = Windows(panel, common), _spaced_cuts(level)
    ratio = windows.scale(cuts).unit / level.scale(cuts).unit
    return float((windows.targets(cuts).abs() * ratio[:, None]).nanmean())


def _size_variation(panel: Panel, plan: Plan) -> float:
    """How much windows differ in the size of their targets: standard deviation of the logarithm of that size."""
    sizes = _sizes(panel, plan).nanmean(1)
    return float(sizes[sizes > 0].log().std(correction=0)) if bool((sizes > 0).any()) else 0.0


def _sizes(panel: Panel, plan: Plan) -> Float64[Tensor, "N H"]:
    windows = Windows(panel, plan)
    return windows.targets(_spaced_cuts(windows)).abs()


def _spaced_cuts(windows: Windows) -> Int[Tensor, "N 2"]:
    """Training windows, evenly spread, at most `COMPARED_WINDOWS`."""
    cuts = windows.cuts()
    return cuts[torch.linspace(0, len(cuts) - 1, min(COMPARED_WINDOWS, len(cuts))).round().long()]
