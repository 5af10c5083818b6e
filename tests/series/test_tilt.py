"""Tilted scenarios: against the exact tilted law on a small forecast, and their own checks."""

from typing import Any

import numpy as np
import pytest
import torch
from small_panels import panel, series

from sgfn.evaluation import exact
from sgfn.series.forecaster import Forecaster
from sgfn.series.tilt import TiltedPaths, tilt, tilt_config, tilt_trainer
from sgfn.series.windows import Windows


@pytest.fixture(scope="module")
def fitted() -> Forecaster:
    """Two steps of an autoregression in five bins: 25 paths, all of which can be listed."""
    rng, values = np.random.default_rng(0), np.zeros(800)
    for t in range(1, 800):
        values[t] = 0.8 * values[t - 1] + rng.normal()
    settings: dict[str, Any] = {"season": 1, "calendar": False, "reference": "none", "scaling": "none", "folds": 0}
    made = Forecaster(horizon=2, context=4, bins=5, members=2, steps=40, batch=32, laws="network", **settings)
    small = {"net__hidden": 16, "net__layers": 1, "net__heads": 2, "optim__lr": 5e-3}
    return Forecaster(made.config.with_(**small)).fit(panel(series(values)))


def highest(paths: np.ndarray) -> np.ndarray:
    return paths.max(1)


@pytest.mark.parametrize("objective", ["tb", "kl"])
def test_the_policy_begins_at_the_forecast_and_learns_the_tilted_law(fitted: Forecaster, objective: Any) -> None:
    data = fitted.fitted.data
    windows = Windows(data.panel, data.plan)
    config = tilt_config(objective, 80, 64, 0)
    trainer = tilt_trainer(fitted, windows, windows.ends(), highest, 1.0, config.with_(optim__lr=1e-2))
    landscape, objects = trainer.task.landscape, trainer.task.env.all_objects()
    assert isinstance(landscape, TiltedPaths)
    forecast = landscape.log_forecast(objects).double().exp()
    wanted = torch.softmax(trainer.task.log_reward(objects).double(), 0)
    assert float(forecast.sum()) == pytest.approx(1.0, abs=1e-4)
    assert exact.total_variation(trainer.law(), forecast) < 1e-3
    before = exact.total_variation(trainer.law(), wanted)
    for _ in range(80):
        trainer.step()
    assert exact.total_variation(trainer.law(), wanted) < 0.1 < 0.2 < before


def test_figures_of_a_tilt_agree_with_importance_sampling(fitted: Forecaster) -> None:
    found = tilt(fitted, highest, temperature=1.0, steps=120, samples=1500)
    assert found.ess > 0.5 > 1.5 * found.ess_forecast
    assert found.summary["apart"] < 4.0
    assert float(found.mean.mean()) > float(found.mean_forecast.mean()) + 0.3  # high paths matter more
    weighted = (found.weight[:, None] * found.paths).sum(0) / found.weight.sum()
    assert np.allclose(weighted, found.mean)
    assert np.array_equal(found.cost, highest(found.paths))  # at the values that are written, not at bins
    assert len(np.unique(found.paths)) > 5 * 2 * 4
    assert found.stamps.shape == (2,)


def test_the_mean_without_the_tilt_is_that_of_the_forecast(fitted: Forecaster) -> None:
    """Not that of places which a cold tilt chooses within the wide bins: they would lie .1 higher."""
    found = tilt(fitted, highest, temperature=0.3, steps=1, samples=4000)
    law = fitted.predict(samples=2).mean[0]
    assert np.abs(found.mean_forecast - law).max() < 0.06 < float((found.mean - law).min())


def test_a_hot_tilt_is_the_forecast(fitted: Forecaster) -> None:
    found = tilt(fitted, highest, temperature=1e6, steps=5, samples=500)
    assert found.ess > 0.98
    assert np.abs(found.mean - found.mean_forecast).max() < 5 * found.error.max()


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        (lambda paths: paths, r"^the cost must give one number for each of \d+ paths, got shape"),
        (lambda paths: np.full(len(paths), np.inf), r"^the cost must be finite, got inf"),
    ],
)
def test_wrong_costs_are_refused(fitted: Forecaster, cost: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tilt(fitted, cost, temperature=1.0, steps=1, samples=10)
    with pytest.raises(ValueError, match=r"^temperature must lie in \[1e-09, inf\), got 0"):
        tilt(fitted, highest, temperature=0.0)


@pytest.mark.parametrize("objective", ["tb", "kl"])
def test_costs_far_from_nought_tilt_alike(fitted: Forecaster, objective: Any) -> None:
    """A constant changes nothing, however large: costs are compared in double precision."""
    shifted = lambda paths: highest(paths) + 2.0**27  # noqa: E731
    plain, far = (
        tilt(fitted, cost, temperature=1.0, steps=20, samples=400, objective=objective) for cost in (highest, shifted)
    )
    assert np.allclose(far.weight, plain.weight, rtol=1e-3)
    assert np.array_equal(far.paths, plain.paths)


def test_weight_on_a_single_path_is_told_in_finite_numbers(fitted: Forecaster) -> None:
    found = tilt(fitted, lambda paths: paths.sum(1), temperature=1e-3, steps=1, samples=50)
    assert found.ess * 50 < 1.5
    assert all(np.isfinite(value) for value in found.summary.values())


def test_the_tilted_law_counts_places_within_bins(fitted: Forecaster) -> None:
    """Reward of each path of bins against the mean over its places, by hand."""
    data = fitted.fitted.data
    windows = Windows(data.panel, data.plan)
    trainer = tilt_trainer(fitted, windows, windows.ends(), highest, 2.0, tilt_config("tb", 1, 8, 0))
    landscape, objects = trainer.task.landscape, trainer.task.env.all_objects()
    assert isinstance(landscape, TiltedPaths)
    table = landscape.table.numpy()
    wanted = []
    for _, first, second in objects.tolist():
        costs = [max(table[place, 0, first], table[place, 1, second]) for place in range(len(table))]
        wanted.append(np.log(np.mean(np.exp((np.array(costs) - landscape.level) / 2.0))))
    assert np.allclose(landscape.scores(objects).numpy(), wanted, atol=1e-4)
    mean = (landscape.log_forecast(objects).exp() * landscape.scores(objects).exp()).sum()
    assert float(mean) == pytest.approx(1.0, abs=0.3)  # the level is that of 512 paths
