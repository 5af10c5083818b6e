"""Tilted scenarios: against the exact tilted law on a small forecast, and their own checks."""

from typing import Any

import numpy as np
import pytest
import torch
from small_panels import panel, series

from sgfn.evaluation import exact
from sgfn.series.forecaster import Forecaster
from sgfn.series.tilt import TiltedPaths, tilt, tilt_config, tilt_trainer
from sgfn.series.tilt_checks import collapse_line, diversity, effective_share, suggested_temperature
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


# Collapse


def exact_share(law: np.ndarray, cost: np.ndarray, temperature: float) -> float:
    weight = np.exp((cost - cost.max()) / temperature)
    return float((law * weight).sum() ** 2 / (law * weight**2).sum())


def test_draws_that_collapse_are_told_with_a_temperature_that_mends_it(fitted: Forecaster) -> None:
    """A cold tilt towards the best of 25 paths, against the exact law of all of them."""

    def steep(paths: np.ndarray) -> np.ndarray:
        return np.floor(2 * paths.sum(1))

    data = fitted.fitted.data
    windows = Windows(data.panel, data.plan)
    config = tilt_config("tb", 1, 8, 0)
    task = tilt_trainer(fitted, windows, windows.ends(), steep, 1.0, config).task
    landscape, objects = task.landscape, task.env.all_objects()
    assert isinstance(landscape, TiltedPaths)
    cold = tilt(fitted, steep, temperature=0.05, steps=1, samples=600)
    warm = tilt(fitted, steep, temperature=20.0, steps=5, samples=600)
    assert cold.collapse.collapsed
    assert not warm.collapse.collapsed
    assert warm.collapse.suggested is None
    assert "the draws collapse: " in collapse_line(cold.summary)
    assert collapse_line(warm.summary) == ""
    hotter = cold.collapse.suggested
    assert hotter is not None
    law = landscape.log_forecast(objects).double().exp().numpy()
    costs = landscape.cost_of(landscape.paths(objects)).numpy()
    weight = np.exp((costs - costs.max()) / hotter).mean(0)
    share = (law * weight).sum() ** 2 / (law * weight**2).sum() / law.sum()
    assert share == pytest.approx(0.1, rel=0.5)  # by 600 paths
    assert float(cold.collapse.forecast.entropy) == pytest.approx(-(law * np.log(law)).sum(), abs=0.15)
    assert cold.collapse.tilted.entropy < 0.5 * cold.collapse.forecast.entropy


@pytest.mark.parametrize("temperature", [0.1, 0.5, 2.0])
def test_the_effective_share_is_that_of_a_categorical_law(temperature: float) -> None:
    """Draws of a law over six outcomes, each as often as its probability says, against sums over the law."""
    law, cost = np.array([0.4, 0.25, 0.15, 0.1, 0.05, 0.05]), np.array([0.0, 1.0, 0.5, 2.0, 3.0, -1.0])
    draws = np.repeat(cost, np.round(law * 100).astype(int))
    assert effective_share(draws[None], temperature) == pytest.approx(exact_share(law, cost, temperature), rel=1e-12)
    wanted = suggested_temperature(draws[None], temperature, share=0.6)
    if wanted is None:
        assert exact_share(law, cost, temperature) >= 0.6
    else:
        assert exact_share(law, cost, wanted) == pytest.approx(0.6, abs=1e-6)
        assert exact_share(law, cost, 0.9 * wanted) < 0.6  # a colder one leaves less


def test_entropy_and_distinct_paths_of_draws() -> None:
    paths = np.array([[0, 1], [0, 1], [1, 1], [0, 1]])
    found = diversity(paths, np.ones(4))
    assert (found.distinct, found.top_share) == (2, 0.75)
    assert found.entropy == pytest.approx(-(0.75 * np.log(0.75) + 0.25 * np.log(0.25)))
    assert diversity(paths, np.array([0.0, 0.0, 5.0, 0.0])).effective == pytest.approx(1.0)
