"""Forecasts of a stack: classical laws and the network, pooled by learned weights, with sample paths of the pool."""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float64

from sgfn.series.bank import Bank, Cut, LawRunner, WindowProgress, run_here
from sgfn.series.calendar import numbers_of
from sgfn.series.calibration import ATOM
from sgfn.series.categories import aligned
from sgfn.series.classical import NO_COVARIATES, REGRESSION
from sgfn.series.data import SeriesData
from sgfn.series.following import Held, weights_over_time
from sgfn.series.joint import MOST_JOINT, dependence_of, joint_noise, matched
from sgfn.series.laid_laws import laid_spread
from sgfn.series.learner import ForecastLearner
from sgfn.series.panel import Panel
from sgfn.series.path_scores import chained, evenly, network_scores
from sgfn.series.prediction import StackedForecast
from sgfn.series.quantile_laws import GRID, QuantileLaw
from sgfn.series.stack import Stack, group_of, scores_of
from sgfn.series.stack_plan import WINDOWS_IN_ALL, arima_left_out, network_left_out, windows_of
from sgfn.series.supports import Support, are_shares, check_support, supports_of
from sgfn.series.weights import Evidence, fitting, shares
from sgfn.series.window_times import observed, start_of, window_times
from sgfn.series.windows import Windows

NETWORK = "network"
DRAWN_FROM = 0.02
"""Weight from which on a share of the paths is drawn by the network."""
MANY_WINDOWS, COUNTS = 500, 0.05
"""Of more windows than this, laws whose greatest weight is less than that are not computed."""
AT_ONCE = 500
"""Windows that all laws forecast at once, which bounds memory."""
TOLD = 3
"""Values that stand apart which are named."""
NAIVE = "seasonal naive"
LEAST_SCALE = 0.1
"""Least scale of a window's errors, as a share of the median scale."""


@dataclass(frozen=True, kw_only=True)
class Block:
    """Some of many windows, which are forecast block by block."""

    before: int
    """Windows in the blocks before."""
    windows: int
    """Windows in all."""
    seasons: tuple[int, ...] | None = None
    """Seasons that most series of all windows have; None where the block is all there is."""


@dataclass(frozen=True, kw_only=True)
class Composition:
    """What a forecast consists of, for tables and pages."""

    weights: dict[str, float]
    """Mean weight of each law over the series."""
    left_out: dict[str, str]
    """Laws that are no part of it, and why."""
    windows: int
    """Windows by which the weights were learned."""
    supports: dict[str, int]
    """How many series have each support."""
    spread: tuple[float, float]
    """Factor of the spread at the first and at the last step."""

    def to_json(self) -> dict[str, Any]:
        """The same for JSON."""
        return {**vars(self), "spread": list(self.spread)}


class StackedForecaster:
    """A stack on top of a learner's network, for the learner's own panel and for later ones."""

    def __init__(self, learner: ForecastLearner, progress: WindowProgress | None = None) -> None:
        self.learner, self.progress = learner, progress
        self.data: SeriesData = learner.data
        self.settings = learner.settings
        kept = self.settings.kept(len(self.data.panel))
        self.lengths = [len(one) - steps for one, steps in zip(self.data.panel.series, kept, strict=True)]
        self.no_network = network_left_out(self.settings, self.lengths)
        self.too_slow = {
            name: arima_left_out(self.settings, self.lengths, log=log)
            for name, log in (("AutoARIMA", False), ("log AutoARIMA", True))
        }
        self.no_covariates = "" if self.data.panel.known_names else NO_COVARIATES
        absent = {NETWORK: self.no_network, REGRESSION: self.no_covariates} | self.too_slow
        self.names = tuple(name for name in self.settings.law_names if not absent.get(name))
        self.runner: LawRunner = run_here
        self.banks: list[tuple[Panel, Bank]] = []
        self.stacks: dict[bool, Stack] = {}
        self.held: dict[bool, Held] = {}
        self.equal = False

    def bank(self, panel: Panel) -> Bank:
        """Classical forecasts of a panel, kept from call to call."""
        panel = aligned(panel, self.data.plan.known_names, self.data.plan.past_names)[0]
        for known, bank in self.banks:
            if same_values(known, panel):
                return bank
        made = Bank(panel, self.data.plan.horizon, self.supports(panel), self.settings.season, self.runner)
        self.banks = [*self.banks[-1:], (panel, made)]
        return made

    def supports(self, panel: Panel) -> list[Support]:
        """Support of each series: of the training part, and of all values of a newer panel, which widen what was found.

        A newer panel may be much shorter than what was learned from: by itself it would say little.
        """
        learned = self.data.panel
        parts = {one.name: one.values[:length] for one, length in zip(learned.series, self.lengths, strict=True)}
        if not same_values(learned, panel):
            empty = np.empty(0)
            parts |= {one.name: np.concatenate([parts.get(one.name, empty), one.values]) for one in panel.series}
        every = supports_of(self.settings.support, list(parts.values()), shares=are_shares(learned.targets))
        by_name = dict(zip(parts, every, strict=True))
        found = [by_name[one.name] for one in panel.series]
        if self.settings.support != "auto":
            for one, support in zip(panel.series, found, strict=True):
                check_support(support, one.name, one.values)
        return found

    def of_laws(self, names: Sequence[str], *, equal: bool = False) -> "StackedForecaster":
        """The same forecaster with some of its laws, which share their forecasts; weights are learned, or `equal`.

        Shows what a law adds without fitting anything again.
        """
        if unknown := [name for name in names if name not in self.names]:
            raise ValueError(f"{unknown[0]!r} is no part of this forecast: choose from {', '.join(self.names)}")
        made = copy(self)
        made.names, made.equal = tuple(name for name in self.names if name in names), equal
        made.stacks, made.held = {}, {}
        return made

    # learning

    def stack(self, *, final: bool) -> Stack:
        """Weights and spreads, from windows of the training part; `final`, from those kept from training too."""
        if final not in self.stacks:
            self._check_laws()
            cuts = self.cuts(final=final)
            bank = self.bank(self.data.panel)
            series = [self.data.panel.series[number].name for number, _ in cuts]
            groups = [group_of(bank, *cut) for cut in cuts]
            ends = [len(one) for one in self.data.panel.series] if final else self.lengths
            evidence = self.evidence(cuts, ends)
            starts, over = window_times(self.data.panel, cuts, self.data.plan.horizon, ends)
            self.held[final] = Held(evidence=evidence, series=series, groups=groups, ended=over / self._span)
            stack = self.held[final].stack(self.names, equal=self.equal)
            if stack.scores is not None:
                stack = replace(
                    stack, dependence=dependence_of(stack.scores[..., ATOM // 2], series, starts, stack.tie)
                )
            self.stacks[final] = stack
            if self.progress:
                self.progress("weights", 1, 1)
        return self.stacks[final]

    def _check_laws(self) -> None:
        """Refuse laws of which none fits any of the series."""
        bank, ends = self.bank(self.data.panel), list(enumerate(self.lengths))
        reasons = {name: bank.why_not(name, ends) if name != NETWORK else "" for name in self.names}
        if reasons and all(reasons.values()):
            name, why = next(iter(reasons.items()))
            raise ValueError(f"none of the laws fits these series ({name}: {why}): name others by --laws")

    def cuts(self, *, final: bool) -> list[Cut]:
        """Windows of the training part, and where the stack is final those side by side after it."""
        horizon, effort = self.data.plan.horizon, self.settings.effort
        cuts = windows_of(self.lengths, horizon, effort, network=not self.no_network)
        if not final:
            return cuts
        whole = [len(one) for one in self.data.panel.series]
        later = [
            (number, cut)
            for number, (length, end) in enumerate(zip(self.lengths, whole, strict=True))
            for cut in range(end - horizon, length - 1, -horizon)
        ]
        room = WINDOWS_IN_ALL[effort]
        return (
            cuts + [later[at] for at in sorted(set(np.linspace(0, len(later) - 1, room).astype(int)))]
            if later
            else cuts
        )

    def evidence(self, cuts: Sequence[Cut], ends: Sequence[int]) -> Evidence:
        """Forecasts of windows by all laws, with the values that came before the given ends of the series."""
        panel, horizon = self.data.panel, self.data.plan.horizon
        bank = self.bank(panel)
        truth = self._before_breaks(observed(panel, cuts, horizon, ends), bank, cuts, ends)
        quantiles = self.quantiles(panel, cuts, "weights", judged=True)
        supports = tuple(bank.supports[number] for number, _ in cuts)
        return Evidence(quantiles=quantiles, truth=truth, scale=self._scales(bank, cuts), supports=supports)

    @staticmethod
    def _scales(bank: Bank, cuts: Sequence[Cut]) -> Float64[np.ndarray, " N"]:
        """Scale of each window's errors, and no less than a share of the median one."""
        scale = np.array([bank.scale(cut) for cut in cuts])
        return np.maximum(scale, LEAST_SCALE * np.median(scale)) if len(scale) else scale

    @staticmethod
    def _before_breaks(
        truth: Float64[np.ndarray, "N H"], bank: Bank, cuts: Sequence[Cut], ends: Sequence[int]
    ) -> Float64[np.ndarray, "N H"]:
        """Values of windows, nan from a break of level on which a window did not know of: no law foresees one."""
        for row, (number, cut) in enumerate(cuts):
            found = bank.level_break(number, ends[number])
            if found is not None and cut < found.place:
                truth[row, found.place - cut :] = np.nan
        return truth

    def quantiles(
        self,
        panel: Panel,
        cuts: Sequence[Cut],
        phase: str,
        names: Sequence[str] | None = None,
        *,
        windows: Windows | None = None,
        block: Block | None = None,
        judged: bool = False,
    ) -> Float64[np.ndarray, "M N H Q"]:
        """Quantiles of each law for each window, nan where a law does not fit, or is none of the given names.

        Progress is told by a phase's name. `windows` are those of the panel, where the caller has them; `block` says
        which part of more windows these are. Where laws are `judged`, the network is as it was before it learned from
        windows of the training part.
        """
        found, bank, block = [], self.bank(panel), block or Block(before=0, windows=len(cuts))
        for at, name in enumerate(self.names):
            if names is not None and name not in names:
                found.append(np.full((len(cuts), self.data.plan.horizon, len(GRID)), np.nan))
            elif name == NETWORK:
                found.append(self._judged(panel, cuts) if judged else self._by_network(panel, cuts, windows))
            else:
                tell = self._told(phase, block.before * len(self.names) + at * len(cuts), block.windows)
                found.append(bank.quantiles(name, cuts, tell, block.seasons))
        bare = np.flatnonzero(~fitting(every := np.stack(found)).any(0))
        if len(bare) and not judged:  # a window that no law fits has seasonal naive's forecast
            every[0, bare] = bank.quantiles(NAIVE, [cuts[row] for row in bare.tolist()], seasons=block.seasons)
        return every

    def _judged(self, panel: Panel, cuts: Sequence[Cut]) -> Float64[np.ndarray, "N H Q"]:
        """Quantiles of the network's law by a network that has not learned from the windows, as a forecaster has it."""
        learned = np.array([cut < self.lengths[number] for number, cut in cuts], dtype=bool)
        found = np.empty((len(cuts), self.data.plan.horizon, len(GRID)))
        for before in (True, False):
            rows = np.flatnonzero(learned == before).tolist()
            found[rows] = self._by_network(panel, [cuts[row] for row in rows], None, before=before)
        return found

    def _by_network(
        self, panel: Panel, cuts: Sequence[Cut], windows: Windows | None, *, before: bool = False
    ) -> Float64[np.ndarray, "N H Q"]:
        """Quantiles of the network's law, which reads the same values that the other laws do."""
        plan, bank = self.data.plan, self.bank(panel)
        found = network_quantiles(self.learner, windows or Windows(panel, plan), cuts, before=before)
        if changed := [at for at, cut in enumerate(cuts) if bank.moved(*cut)]:
            some = [cuts[at] for at in changed]
            places = [(number, cut) for number, (_, cut) in enumerate(some)]
            found[changed] = network_quantiles(self.learner, Windows(bank.as_read(some), plan), places, before=before)
        return found

    @property
    def _span(self) -> float:
        """Time of a horizon, in nanoseconds."""
        plan = self.data.plan
        return max(plan.horizon * float(plan.gap / np.timedelta64(1, "ns")), 1.0)

    def _told(self, phase: str, before: int, each: int) -> WindowProgress | None:
        """Progress of one law as part of a phase, in which each law has as many windows, so many are done before."""
        tell, whole = self.progress, each * len(self.names)
        return None if tell is None else lambda name, done, _: tell(phase, before + done, whole)

    # forecasting

    def predict(
        self, windows: Windows, cuts: Sequence[Cut], samples: int, seed: int, *, final: bool
    ) -> StackedForecast:
        """Forecast windows, with sample paths of the pooled law."""
        panel, stack = windows.panel, self.stack(final=final)
        bank = self.bank(panel)
        fixed = final or len(cuts) > MANY_WINDOWS or self.equal or not len(self.held[final])
        pooled = self._by_fixed_weights if fixed else self._by_weights_over_time
        plain, held = pooled(stack, windows, cuts, "forecast" if final else "backtest")
        supports = tuple(bank.supports[number] for number, _ in cuts)
        law = stack.spread(plain, supports) if final else self._followed(stack, panel, cuts, plain)
        found = StackedForecast(
            names=tuple(panel.series[number].name for number, _ in cuts),
            cuts=tuple(cut for _, cut in cuts),
            stamps=windows.stamps_at(torch.tensor(cuts)),
            paths=np.empty((len(cuts), 0, law.values.shape[1])),
            supports=supports,
            law=law,
            weights=held,
            members=self.names,
        )
        scores = self._scores(windows, cuts, held, samples, seed, stack)
        paths = np.moveaxis(law.at_scores(np.moveaxis(scores, 1, -1)), -1, 1)
        return replace(found, paths=found.inside(paths))

    def _by_fixed_weights(
        self, stack: Stack, windows: Windows, cuts: Sequence[Cut], phase: str
    ) -> tuple[QuantileLaw, Float64[np.ndarray, "M W"]]:
        """Pooled law of windows without spreads, and the weight of each law, as the stack has them."""
        panel, bank, many = windows.panel, self.bank(windows.panel), len(cuts) > MANY_WINDOWS
        weights = np.stack([stack.weights_of(panel.series[n].name, group_of(bank, n, cut)) for n, cut in cuts], 1)
        counts = [
            name for at, name in enumerate(self.names) if not many or weights[at].max() >= COUNTS or name == NAIVE
        ]
        return self._pooled(stack, windows, cuts, weights, phase, counts)

    def _by_weights_over_time(
        self, stack: Stack, windows: Windows, cuts: Sequence[Cut], phase: str
    ) -> tuple[QuantileLaw, Float64[np.ndarray, "M W"]]:
        """The same of windows of the past, whose weights read what had been observed before each."""
        panel, horizon = windows.panel, self.data.plan.horizon
        bank, ends = self.bank(panel), [len(one) for one in panel.series]
        starts, over = window_times(panel, cuts, horizon, ends)
        evidence = Evidence(
            quantiles=self.quantiles(panel, cuts, phase, windows=windows),
            truth=observed(panel, cuts, horizon, ends),
            scale=self._scales(bank, cuts),
            supports=tuple(bank.supports[number] for number, _ in cuts),
        )
        series, groups = [panel.series[n].name for n, _ in cuts], [group_of(bank, n, cut) for n, cut in cuts]
        later = Held(evidence=evidence, series=series, groups=groups, ended=over / self._span)
        weights = weights_over_time(stack, self.held[False], later, starts / self._span)
        law = stack.plain_law(evidence.quantiles, weights, evidence.supports)
        return law, shares(weights, evidence.fits)

    def _pooled(
        self,
        stack: Stack,
        windows: Windows,
        cuts: Sequence[Cut],
        weights: Float64[np.ndarray, "M W"],
        phase: str,
        names: Sequence[str],
    ) -> tuple[QuantileLaw, Float64[np.ndarray, "M W"]]:
        """Pooled law of windows without spreads, and the weight of each law; of some windows at once.

        What the laws say of a block is forgotten with it, where there are several, so that memory does not grow.
        """
        panel, bank = windows.panel, self.bank(windows.panel)
        seasons, laws, held = bank.shared_seasons(cuts), [], []
        for start in range(0, len(cuts), AT_ONCE):
            some, part = cuts[start : start + AT_ONCE], weights[:, start : start + AT_ONCE]
            block = Block(before=start, windows=len(cuts), seasons=seasons)
            quantiles = self.quantiles(panel, some, phase, names, windows=windows, block=block)
            laws.append(stack.plain_law(quantiles, part, [bank.supports[number] for number, _ in some]).values)
            held.append(shares(part, fitting(quantiles)))
            if len(cuts) > AT_ONCE:
                bank.forget(some)
        return QuantileLaw(values=np.concatenate(laws)), np.concatenate(held, 1)

    def _followed(self, stack: Stack, panel: Panel, cuts: Sequence[Cut], law: QuantileLaw) -> QuantileLaw:
        """Pooled law of windows of the past, with spreads that know how earlier ones of them came out.

        A window's spreads read what was observed before it alone: the stack's windows, and those of `cuts` that had
        ended when it began.
        """
        horizon, ends = law.values.shape[1], [len(one) for one in panel.series]
        supports = [self.bank(panel).supports[number] for number, _ in cuts]
        scores = scores_of(law, observed(panel, cuts, horizon, ends), supports)
        starts, over = window_times(panel, cuts, horizon, ends)
        found = np.ones((len(cuts), horizon))
        for start in np.unique(starts):
            known = over <= start
            later = stack.spreads_after(scores[known], over[known] / self._span) if known.any() else stack.spreads
            found[starts == start] = later
        return laid_spread(supports, law, found)

    def _scores(
        self,
        windows: Windows,
        cuts: Sequence[Cut],
        held: Float64[np.ndarray, "M W"],
        samples: int,
        seed: int,
        stack: Stack,
    ) -> Float64[np.ndarray, "W N H"]:
        """Normal scores of sample paths: by the network in proportion to its weight, by a chain of steps otherwise.

        Paths of windows that begin at the same time are joint. In each window and step scores lie evenly over the
        levels, so that paths have the quantiles of the forecast.
        """
        rng = np.random.default_rng(seed)
        noise = rng.normal(size=(len(cuts), samples, self.data.plan.horizon))
        for group, names in self._together(windows.panel, cuts) if stack.dependence else []:
            assert stack.dependence is not None
            noise[group] = joint_noise(stack.dependence.factor(names), samples, noise.shape[-1], rng)
        scores = chained(noise, stack.tie)
        if NETWORK in self.names:
            share = held[self.names.index(NETWORK)]
            by_network = np.round(share * samples).astype(int) * (share >= DRAWN_FROM)
            if by_network.max(initial=0) > 0 and samples > 1:
                drawn = network_scores(self.learner, windows, cuts, int(by_network.max()), seed)
                for at, count in enumerate(by_network.tolist()):
                    scores[at, :count] = matched(scores[at, :count], drawn[at, :count])
        return evenly(scores[:, rng.permutation(samples)], rng)

    @staticmethod
    def _together(panel: Panel, cuts: Sequence[Cut]) -> list[tuple[list[int], list[str]]]:
        """Windows that begin at the same time, and the names of their series, where they are two or more."""
        found: dict[int, dict[str, int]] = {}
        for at, (number, cut) in enumerate(cuts):
            one = panel.series[number]
            found.setdefault(start_of(one, cut), {})[one.name] = at
        return [(list(group.values()), list(group)) for group in found.values() if len(group) > 1]

    def why_apart(self, panel: Panel) -> str:
        """Why paths of the series of a panel are drawn each by itself after their ends; empty where some are joint."""
        if len(panel) > MOST_JOINT:
            return f"there are {len(panel):,} series, paths of {MOST_JOINT} at most are joint"
        if self.stack(final=True).dependence is None:
            return "no two series have held-out windows that began at the same time"
        ends = [(number, len(one)) for number, one in enumerate(panel.series)]
        return "" if self._together(panel, ends) else "no two series end at the same time"

    def moved_line(self, panel: Panel) -> str:
        """One line about values that stand apart and are not read as they are, at the ends; empty where none do."""
        bank, found = self.bank(panel), list[str]()
        for number, one in enumerate(panel.series):
            for place, read in bank.moved(number, len(one)).items():
                found.append(f"{one.name} {time_text(one.stamps[place])} {one.values[place]:,.6g} as {read:,.6g}")
        if not found:
            return ""
        more = f" and {len(found) - TOLD:,} more" if len(found) > TOLD else ""
        words = f"values that stand apart from all others are read as if nearer: {'; '.join(found[:TOLD])}{more}"
        return f"{words} (scores of a backtest count them as they are: correct the file where they are slips)"

    def composition(self, found: StackedForecast) -> Composition:
        """What a forecast consists of."""
        panel = self.data.panel
        ends = [(number, len(one)) for number, one in enumerate(panel.series)]
        mean = dict(zip(self.names, found.weights.mean(1).tolist(), strict=True))
        reasons = {name: self.bank(panel).why_not(name, ends) for name in self.names if name != NETWORK}
        reasons |= self.too_slow | {NETWORK: self.no_network}
        reasons |= {REGRESSION: self.no_covariates} if self.no_covariates else {}
        reasons = {name: why for name, why in reasons.items() if name in self.settings.law_names and name != "Theta"}
        supports = [one.name for one in found.supports]
        stack = self.stack(final=True)
        return Composition(
            weights={name: mean[name] for name in sorted(mean, key=lambda name: -mean[name]) if mean[name] > 0},
            left_out={name: why for name, why in reasons.items() if why},
            windows=stack.windows,
            supports={name: supports.count(name) for name in dict.fromkeys(supports)},
            spread=(float(stack.spreads[0]), float(stack.spreads[-1])),
        )


def time_text(stamp: np.datetime64) -> str:
    """A stamp as text: its number, its day, or its time.

    >>> time_text(np.datetime64("2024-01-31T00:00", "ns")), time_text(np.datetime64("2024-01-31T13:30", "ns"))
    ('2024-01-31', '2024-01-31 13:30:00')
    """
    number = numbers_of(np.array([stamp], dtype="datetime64[ns]"))
    if number is not None:
        return str(number[0])
    return np.datetime_as_string(stamp, unit="s").replace("T", " ").removesuffix(" 00:00:00")


def same_values(one: Panel, other: Panel) -> bool:
    """Whether two panels hold the same series, with the same covariates known in advance."""
    if one is other:
        return True
    pairs = zip(one.series, other.series, strict=False)
    return len(one) == len(other) and all(
        first.name == second.name
        and np.array_equal(first.values, second.values, equal_nan=True)
        and np.array_equal(first.known, second.known)
        for first, second in pairs
    )


# The network in the stack


def network_quantiles(
    learner: ForecastLearner, windows: Windows, cuts: Sequence[Cut], *, before: bool = False
) -> Float64[np.ndarray, "N H Q"]:
    """Quantiles of the network's law at the levels of the grid, in units of the data.

    With `before`, of the network before it learned from the windows for the weights.
    """
    if not cuts:
        return np.empty((0, learner.data.plan.horizon, len(GRID)))
    inputs = windows.inputs(torch.tensor(cuts))
    law = learner.member_laws(inputs, before=before).mean(0)
    scaled = learner.data.bins.quantile(law, torch.from_numpy(GRID))
    return (scaled * inputs.unit[:, None, None] + inputs.reference[..., None]).numpy()
