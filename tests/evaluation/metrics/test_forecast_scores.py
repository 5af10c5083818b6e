"""Scores of forecasts against utilsforecast, against closed forms, and their properties."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import norm

from sgfn.evaluation.metrics import forecast as metrics

LEVELS = metrics.LEVELS
finite = st.floats(-1e3, 1e3, allow_subnormal=False)


def random_case(seed: int, windows: int = 4, horizon: int = 6) -> tuple[np.ndarray, np.ndarray]:
    """Sorted quantile forecasts and a truth."""
    rng = np.random.default_rng(seed)
    return np.sort(rng.normal(10, 3, (windows, horizon, 9)), axis=-1), rng.normal(10, 3, (windows, horizon))


def long_frame(quantiles: np.ndarray, truth: np.ndarray) -> pd.DataFrame:
    """The frame that utilsforecast reads: one row per window and step."""
    windows, horizon = truth.shape
    frame = pd.DataFrame({"unique_id": np.repeat(np.arange(windows), horizon), "y": truth.ravel()})
    frame["ds"], frame["cutoff"] = np.tile(np.arange(horizon), windows) + 40, 39
    for at, level in enumerate(LEVELS):
        frame[f"q{round(100 * level)}"] = quantiles[..., at].ravel()
    return frame


@pytest.fixture
def utils() -> Any:
    """The other library, which takes a second to import: where its test runs alone."""
    return pytest.importorskip("utilsforecast.losses")


@pytest.mark.parametrize("seed", range(3))
def test_scores_equal_those_of_utilsforecast(seed: int, utils: Any) -> None:
    """MSE, MAE, MASE, quantile loss, scaled CRPS and coverage, all to 1e-6."""
    quantiles, truth = random_case(seed)
    history = np.random.default_rng(seed + 9).normal(10, 3, (4, 40))
    frame = long_frame(quantiles, truth)
    stamps = np.tile(np.arange(40), 4)
    train = pd.DataFrame({"unique_id": np.repeat(np.arange(4), 40), "ds": stamps, "y": history.ravel()})
    scale = np.array([metrics.seasonal_error(one, 7) for one in history])
    names = [f"q{round(100 * level)}" for level in LEVELS]
    median = quantiles[..., 4]
    assert metrics.mse(median, truth) == pytest.approx(utils.mse(frame, ["q50"])["q50"].mean(), abs=1e-6)
    assert metrics.mae(median, truth) == pytest.approx(utils.mae(frame, ["q50"])["q50"].mean(), abs=1e-6)
    mase = utils.mase(frame, ["q50"], 7, train)["q50"].mean()
    assert metrics.mase(median, truth, scale) == pytest.approx(mase, abs=1e-6)
    loss = utils.quantile_loss(frame, {"q30": "q30"}, q=0.3)["q30"].mean()
    assert metrics.pinball(quantiles, truth, LEVELS)[..., 2].mean() / 2 == pytest.approx(loss, abs=1e-6)
    crps = [utils.scaled_crps(frame[frame.unique_id == one], {"m": names}, LEVELS)["m"].item() for one in range(4)]
    ours = [metrics.wql(quantiles[[one]], truth[[one]]) for one in range(4)]
    np.testing.assert_allclose(ours, crps, atol=1e-6)
    inside = utils.coverage(frame.rename(columns={"q10": "m-lo-80", "q90": "m-hi-80"}).assign(m=0.0), ["m"], 80)[
        "m"
    ].mean()
    assert metrics.coverage(quantiles, truth) == pytest.approx(inside, abs=1e-6)
    assert metrics.mse(median + 0.1, truth) != pytest.approx(utils.mse(frame, ["q50"])["q50"].mean(), abs=1e-6)


@given(arrays(np.float64, (3, 5), elements=finite), st.integers(0, 14))
def test_missing_values_are_as_if_they_were_not_there(truth: np.ndarray, gone: int) -> None:
    quantiles = np.repeat(truth[..., None] + 1.0, 9, axis=-1) + LEVELS
    holed = truth.copy()
    holed.flat[gone] = np.nan
    seen = ~np.isnan(holed)
    kept, left = quantiles[seen][None], truth[seen][None]
    for score in (metrics.coverage, metrics.width):
        assert score(quantiles, holed) == pytest.approx(score(kept, left))
    for point in (metrics.mse, metrics.mae, metrics.rmse):
        assert point(quantiles[..., 4], holed) == pytest.approx(point(kept[..., 4], left))
    np.testing.assert_allclose(metrics.calibration(quantiles, holed), metrics.calibration(kept, left))
    if np.abs(left).sum() > 1e-3:
        assert metrics.wql(quantiles, holed) == pytest.approx(metrics.wql(kept, left))


@given(arrays(np.float64, (2, 4), elements=finite), st.floats(0.1, 10), st.sampled_from([-1.0, 1.0]))
def test_wql_does_not_know_the_unit(truth: np.ndarray, factor: float, shift: float) -> None:
    truth = truth + 2e3  # away from zero
    quantiles = np.repeat(truth[..., None], 9, axis=-1) + shift * np.sort(LEVELS)
    assert metrics.wql(quantiles * factor, truth * factor) == pytest.approx(metrics.wql(quantiles, truth))


def test_a_true_law_is_calibrated_and_scores_best() -> None:
    """Normal values: the true quantiles hold their shares, and every other law has a larger loss and a larger CRPS."""
    rng = np.random.default_rng(0)
    truth = rng.normal(5, 1, (2000, 5))

    def law(spread: float) -> np.ndarray:
        return np.broadcast_to(5 + spread * norm.ppf(LEVELS), (2000, 5, 9))

    np.testing.assert_allclose(metrics.calibration(law(1.0), truth), LEVELS, atol=0.015)
    assert metrics.coverage(law(1.0), truth) == pytest.approx(0.8, abs=0.015)
    assert metrics.coverage(law(0.5), truth) < 0.6
    assert metrics.wql(law(1.0), truth) < min(metrics.wql(law(0.5), truth), metrics.wql(law(2.0), truth))
    paths = rng.normal(5, 1, (2000, 40, 5))
    exact = np.mean(  # the CRPS of a standard normal law, Gneiting and Raftery (2007), equation 21
        (truth - 5) * (2 * norm.cdf(truth - 5) - 1) + 2 * norm.pdf(truth - 5) - 1 / np.sqrt(np.pi)
    )
    assert metrics.crps(paths, truth) == pytest.approx(exact, abs=0.01)
    assert metrics.crps(5 + 3 * (paths - 5), truth) > 1.2 * exact


def test_crps_of_few_paths_by_hand() -> None:
    """Paths 0 and 4 against 1: (1 + 3) / 2 - 4 / 2 = 0."""
    paths = np.array([[[0.0], [4.0]]])
    assert metrics.crps(paths, np.array([[1.0]])) == pytest.approx(0.0)
    with pytest.raises(ValueError, match="at least 2 per window, got 1"):
        metrics.crps(paths[:, :1], np.array([[1.0]]))


def test_windows_without_a_scale_are_left_out_of_mase() -> None:
    """A history of zeros, and one without two neighbours: their errors would count as infinite."""
    truth, points = np.array([[2.0, 4.0], [1.0, 1.0], [9.0, 9.0]]), np.zeros((3, 2))
    histories = [np.array([1.0, 3.0]), np.zeros(5), np.array([1.0, np.nan, 2.0])]
    scale = np.array([metrics.seasonal_error(one) for one in histories])
    np.testing.assert_array_equal(scale, [2.0, 0.0, np.nan])
    assert metrics.mase(points, truth, scale) == 1.5
    assert np.isnan(metrics.mase(points[1:], truth[1:], scale[1:]))
    assert np.isnan(metrics.wql(np.ones((1, 2, 9)), np.zeros((1, 2))))


def test_wrong_fields_are_named() -> None:
    with pytest.raises(ValueError, match=r"lag must lie in \[1, 2\] for a history of 3 values, got 3"):
        metrics.seasonal_error(np.arange(3.0), 3)
    with pytest.raises(ValueError, match=r"interval of 0.9 needs the levels 0.05 and 0.95"):
        metrics.coverage(*random_case(0), interval=0.9)
