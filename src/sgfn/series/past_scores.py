"""Spread of a forecast, from scores of the same forecaster on windows before its origin."""

import numpy as np
import torch
from jaxtyping import Bool, Float64, Int, Int64, Shaped
from torch import Tensor

from sgfn.series.calibration import NormalScores, widened
from sgfn.series.ensemble import DrawnPaths
from sgfn.series.learner import BLOCK, ForecastLearner
from sgfn.series.panel import Series
from sgfn.series.windows import SCALED_BY, Windows, counts_before

PER_HORIZON = 4
"""Number of past windows that are scored in the time of one horizon."""
MAX_DENSE_SERIES = 8
"""Most series that are scored at full density; of more series, each is scored less often."""
REACH_IN_MEMORIES = 4.0
"""How far back past windows are scored, in multiples of the memory."""


def spreads(learner: ForecastLearner, windows: Windows, cuts: Int[Tensor, "W 2"]) -> Float64[Tensor, " W"]:
    """Spread of the forecast of each window, from values before it alone; one where no past value can be scored."""
    plan = windows.plan
    memory = learner.settings.recall * plan.horizon * float(plan.gap / np.timedelta64(1, "ns"))
    if memory == 0:
        return torch.ones(len(cuts), dtype=torch.float64)
    origins = nanoseconds(np.array([windows.stamps[number][cut - 1] for number, cut in cuts.tolist()]))
    found = scores(learner, windows, past_cuts(windows, origins, REACH_IN_MEMORIES * memory))
    return torch.from_numpy(found.spreads(origins, memory))


def laws(
    learner: ForecastLearner, windows: Windows, cuts: Int[Tensor, "W 2"], drawn: DrawnPaths, *, latent: bool = False
) -> tuple[Float64[Tensor, "W H K"], Float64[Tensor, "W H K"]]:
    """Law of each step under which paths were drawn, and the law that is forecast.

    The forecast law is the members' mean, with the measurement error and calibrated; `latent`, it is neither.
    """
    inputs = windows.inputs(cuts)
    drawn_law, law = drawn.law.cpu(), learner.member_laws(inputs).mean(0)
    if latent:
        return drawn_law, law
    drawn_law, law = learner.as_measured(drawn_law, inputs), learner.as_measured(law, inputs)
    return drawn_law, widened(law, spreads(learner, windows, cuts))


def nanoseconds(stamps: Shaped[np.ndarray, "*batch"]) -> Int64[np.ndarray, "*batch"]:
    """Time stamps as integers, in nanoseconds."""
    return stamps.astype("datetime64[ns]").astype(np.int64)


def past_cuts(windows: Windows, origins: Int64[np.ndarray, " W"], reach: float) -> Int[Tensor, "N 2"]:
    """Windows that begin at most `reach` before one of the origins, from a fixed set that the origins do not change."""
    stride, thin = strides(windows)
    later, found = np.sort(origins), [np.empty((0, 2), dtype=np.int64)]
    for number, series in enumerate(windows.panel.series):
        last = len(series) + (len(series.future) - windows.plan.horizon + 1 if windows.plan.known_names else 0)
        cut = np.arange(stride * (1 + number % thin), min(last, len(series)), stride * thin)
        cut = cut[counts_before(series.values)[cut] >= SCALED_BY]
        time = nanoseconds(windows.stamps[number][cut])
        place = np.searchsorted(later, time)
        near = (place < len(later)) & (later[np.minimum(place, len(later) - 1)] - time <= reach)
        found.append(np.stack([np.full(int(near.sum()), number), cut[near]], 1))
    return torch.from_numpy(np.concatenate(found))


def strides(windows: Windows) -> tuple[int, int]:
    """Steps between scored windows of a series, and the factor by which many series are scored less often."""
    return max(1, windows.plan.horizon // PER_HORIZON), -(-len(windows.panel) // MAX_DENSE_SERIES)


def scores(learner: ForecastLearner, windows: Windows, cuts: Int[Tensor, "N 2"]) -> NormalScores:
    """Normal scores of the values observed in windows, under the mean law of members that did not learn from them.

    Members are taken as they were before the turn: after it they learned from what they had held out, too.
    """
    size, time = [np.empty(0)], [np.empty(0, dtype=np.int64)]
    for some in cuts.split(BLOCK):
        targets, inputs = windows.targets(some), windows.inputs(some)
        fresh = unlearned(learner, windows, some) & ~targets.isnan()  # M B H
        share = fresh.double() / fresh.sum(0).clamp(min=1)
        law = learner.as_measured((share[..., None] * learner.member_laws(inputs, before=True)).sum(0), inputs)
        level = learner.data.bins.cdf(law, targets.nan_to_num(0.0))
        counts = fresh.any(0).numpy()
        size.append(torch.special.ndtri(level.clamp(1e-9, 1 - 1e-9)).abs().numpy()[counts])
        time.append(nanoseconds(windows.stamps_at(some))[counts])
    (stride, thin), horizon = strides(windows), windows.plan.horizon
    weight = stride * thin / horizon**2 / len(windows.panel)
    sizes = np.concatenate(size)
    return NormalScores(size=sizes, time=np.concatenate(time), weight=np.full(len(sizes), weight))


def unlearned(learner: ForecastLearner, windows: Windows, cuts: Int[Tensor, "N 2"]) -> Bool[Tensor, "M N H"]:
    """Which steps of windows each member did not learn from, before the turn where there is one.

    These are steps after its training data, all steps of a series it was not trained on, and those it held out.
    """
    known = {series.name: (number, series) for number, series in enumerate(learner.data.training.series)}
    same_stamps = {
        series.name: _same_stamps(series, known[series.name][1])
        for series in windows.panel.series
        if series.name in known
    }
    stamps, found = windows.stamps_at(cuts), []
    numbers = torch.zeros(len(cuts), dtype=torch.int64)
    held = np.zeros((len(cuts), 1), dtype=bool)
    after = np.ones(stamps.shape, dtype=bool)
    for row, number in enumerate(cuts[:, 0].tolist()):
        series = windows.panel.series[number]
        if series.name in known:
            numbers[row], trained = known[series.name]
            held[row] = same_stamps[series.name]
            after[row] = stamps[row] > trained.stamps[-1]
    there = torch.stack([numbers, cuts[:, 1]], 1).to(learner.device)
    for member in range(learner.settings.members):
        holds_out = learner.holds_out(member, there).cpu()
        found.append(torch.from_numpy(after) | (holds_out & torch.from_numpy(held)))
    return torch.stack(found)


def _same_stamps(series: Series, trained: Series) -> bool:
    """Whether a series has the stamps it had in training: held-out steps are identified by their position."""
    shared = min(len(series), len(trained))
    return bool((series.stamps[:shared] == trained.stamps[:shared]).all())
