"""Scores of past windows: which steps are scored, that nothing later is read, and that coverage comes right."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from small_panels import panel, series
from torch import Tensor

from sgfn.series.forecaster import Forecaster
from sgfn.series.learner import ForecastLearner
from sgfn.series.past_scores import past_cuts, scores, spreads, unlearned
from sgfn.series.windows import Inputs, Windows

HORIZON, SPARE = 4, 600
SETTINGS: dict[str, Any] = {
    "laws": "network",
    "horizon": HORIZON,
    "context": 8,
    "season": 1,
    "calendar": False,
    "lags": "none",
    "reference": "none",
    "scaling": "none",
    "absolute": False,
    "bins": 32,
    "members": 2,
    "folds": 4,
    "steps": 1,
    "spare": SPARE,
}
SMALL = {"net__hidden": 8, "net__layers": 1, "net__heads": 2}


def fitted(values: np.ndarray, **changes: Any) -> Forecaster:
    """A forecaster that has hardly learned anything."""
    made = Forecaster(**SETTINGS | changes)
    return Forecaster(made.config.with_(**SMALL)).fit(panel(series(values)))


def windows_of(learner: ForecastLearner) -> Windows:
    return Windows(learner.data.panel, learner.data.plan)


@pytest.fixture(scope="module")
def white() -> Forecaster:
    """Independent standard normal values."""
    return fitted(np.random.default_rng(0).normal(size=2000))


def says(monkeypatch: pytest.MonkeyPatch, learner: ForecastLearner, deviation: float) -> None:
    """Let each member forecast a normal law of this deviation, whatever came before."""
    ends = torch.zeros(1, dtype=torch.float64)
    below = torch.special.ndtr(learner.data.bins.edges / (deviation * learner.data.plan.spread**-1))
    law = torch.diff(below, prepend=ends, append=ends + 1)

    def member_laws(inputs: Inputs, *, before: bool = False) -> Tensor:
        return law.expand(2, len(inputs.unit), HORIZON, -1)

    monkeypatch.setattr(learner, "member_laws", member_laws)


@pytest.mark.parametrize("deviation", [0.6, 1.0, 1.6])
def test_intervals_hold_what_they_should(monkeypatch: pytest.MonkeyPatch, white: Forecaster, deviation: float) -> None:
    """Over 145 windows of 4 independent steps the standard error of coverage is .017; the prior leaves a little."""
    learner = white.fitted
    says(monkeypatch, learner, deviation)
    values = learner.data.panel.series[0].values
    cuts = list(range(1420, 2000, HORIZON))
    truth = np.stack([values[cut : cut + HORIZON] for cut in cuts])
    inside = {}
    for recall in (0.0, 20.0):
        monkeypatch.setattr(learner, "settings", replace(learner.settings, recall=recall))
        found = white.predict(origins=[("a", cut) for cut in cuts], samples=60)
        low, high = np.moveaxis(found.quantiles([0.1, 0.9]), -1, 0)
        inside[recall] = np.mean((low <= truth) & (truth <= high))
        drawn = np.quantile(found.paths, [0.1, 0.9], axis=1)
        assert np.mean((drawn[0] <= truth) & (truth <= drawn[1])) == pytest.approx(inside[recall], abs=0.05)
    error = math.sqrt(0.8 * 0.2 / truth.size)
    assert inside[20.0] == pytest.approx(0.8, abs=4 * error)
    if deviation == 1.0:
        assert inside[0.0] == pytest.approx(inside[20.0], abs=0.03)  # what is right stays
    else:
        assert abs(inside[0.0] - 0.8) > 6 * error


def test_what_comes_later_is_not_remembered(white: Forecaster) -> None:
    learner = white.fitted
    values = learner.data.panel.series[0].values.copy()
    cuts = torch.tensor([[0, 1700], [0, 1701]])
    before = spreads(learner, windows_of(learner), cuts)
    for first, same in ((1701, True), (1690, False)):
        other = values.copy()
        other[first:] = 50.0
        found = spreads(learner, Windows(panel(series(other)), learner.data.plan), cuts)
        assert torch.equal(found, before) == same


def test_each_origin_remembers_alike_whichever_others_are_asked_for(white: Forecaster) -> None:
    learner = white.fitted
    windows = windows_of(learner)
    cuts = torch.tensor([[0, 900], [0, 1500], [0, 1503], [0, 2000]])
    together = spreads(learner, windows, cuts)
    for one in range(4):
        assert float(spreads(learner, windows, cuts[one : one + 1])[0]) == pytest.approx(float(together[one]), rel=0.01)
    assert len(together.unique()) == 4


def test_only_what_members_did_not_learn_is_judged(white: Forecaster) -> None:
    learner = white.fitted
    windows = windows_of(learner)
    cuts = torch.tensor([[0, cut] for cut in range(8, 1996)])
    found, step = unlearned(learner, windows, cuts), cuts[:, 1, None] + torch.arange(HORIZON)
    assert bool(found[:, step >= 1400].all())
    for member in (0, 1):
        assert torch.equal(found[member][step < 1400], learner.holds_out(member, cuts)[step < 1400])
    assert not bool((found[0] & found[1])[step < 1400].any())
    strange = Windows(panel(series(windows.panel.series[0].values, "b")), learner.data.plan)
    assert bool(unlearned(learner, strange, cuts).all())
    late = windows.panel.series[0]
    late = replace(late, stamps=late.stamps[3:], values=late.values[3:], known=late.known[3:], past=late.past[3:])
    moved = unlearned(learner, Windows(panel(late), learner.data.plan), cuts[:-3])
    assert torch.equal(moved[0], step[:-3] + 3 >= 1400)  # where the folds lie is not known
    whole, keep = windows.panel.series[0], np.arange(2000) != 10
    parts = {name: getattr(whole, name)[keep] for name in ("stamps", "values", "known", "past")}
    holed = panel(replace(whole, **parts), step=None)
    thinned = unlearned(learner, Windows(holed, learner.data.plan), cuts[10:-1])
    assert torch.equal(thinned[0], step[10:-1] + 1 >= 1400)  # nor where a row is gone


def test_without_folds_or_memory_the_law_is_as_learned() -> None:
    values = np.random.default_rng(0).normal(size=400)
    cases: list[dict[str, Any]] = [{"folds": 0, "spare": 0}, {"recall": 0.0, "spare": 40}]
    for changes in cases:
        learner = fitted(values, **changes).fitted
        assert spreads(learner, windows_of(learner), torch.tensor([[0, 400]])).tolist() == [1.0]


@pytest.mark.parametrize("count", [1, 3, 20])
def test_a_horizon_of_time_counts_for_one_however_many_series(white: Forecaster, count: int) -> None:
    learner = white.fitted
    values = learner.data.panel.series[0].values
    windows = Windows(panel(*(series(values, f"new{i}") for i in range(count))), learner.data.plan)
    span = 40.0 * HORIZON * 3600 * 10**9
    origin = np.array([windows.stamps[0][1999].astype(np.int64)])
    found = scores(learner, windows, past_cuts(windows, origin, span))
    assert len(found.size) <= 8 * 41 * 4 * HORIZON
    assert float(found.weight.sum()) == pytest.approx(40, rel=0.1)


def test_known_covariates_that_end_with_the_values_are_enough() -> None:
    """Past windows that would need more of what is known in advance than there is are passed over."""
    rng = np.random.default_rng(0)
    values, known = rng.normal(size=300), rng.normal(size=(304, 1))
    changes: dict[str, Any] = {"spare": 40}
    made = Forecaster(Forecaster(**SETTINGS | changes).config.with_(**SMALL)).fit(panel(series(values, known=known)))
    short = panel(series(values, known=known[:300]))
    assert made.predict(short, origins=[("a", 296)], samples=2).paths.shape == (1, 2, HORIZON)


def test_after_the_turn_the_past_is_judged_by_members_from_before_it() -> None:
    """The last steps learn from all windows: what members held out before is then no past they did not learn from."""
    values = np.random.default_rng(0).normal(size=2000)
    learner = fitted(values, laws="seasonal-naive,network", refresh=0.5, steps=2, optim__lr=0.5).fitted
    end = len(learner.data.training.series[0])
    assert end < len(learner.data.known.series[0]) == 2000 - SPARE
    windows, cuts = windows_of(learner), torch.tensor([[0, cut] for cut in range(8, 1996, 5)])
    step = cuts[:, 1, None] + torch.arange(HORIZON)
    assert torch.equal(unlearned(learner, windows, cuts)[0], (step >= end) | learner.holds_out(0, cuts))
    found = scores(learner, windows, cuts).size
    learner.best.load_state_dict(learner.before.state_dict())
    np.testing.assert_array_equal(scores(learner, windows, cuts).size, found)
