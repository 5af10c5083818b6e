"""Joint paths of several series: known correlations come back, each series' own law stays, and nothing is invented."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_panels import panel, series

from sgfn.config.presets import PRESETS
from sgfn.reports.forecasts import Progress, forecast
from sgfn.series.forecaster import Forecaster
from sgfn.series.joint import Dependence, dependence_of, factored, joint_noise, matched
from sgfn.series.path_scores import chained
from sgfn.series.settings import Settings

RNG = np.random.default_rng


def two(correlation: float, count: int, seed: int = 0) -> np.ndarray:
    """Two rows of standard normal numbers with a given correlation."""
    first, second = RNG(seed).normal(size=(2, count))
    return np.stack([first, correlation * first + np.sqrt(1 - correlation**2) * second])


@pytest.mark.parametrize("correlation", [-0.9, 0.0, 0.7])
def test_the_correlation_of_common_windows_is_found(correlation: float) -> None:
    scores = two(correlation, 4000).reshape(2, 400, 10).reshape(800, 10)  # windows of a, then of b
    names, starts = ["a"] * 400 + ["b"] * 400, np.tile(np.arange(400), 2)
    found = dependence_of(scores, names, starts, tie=0.0)
    assert found is not None
    assert found.matrix[0, 1] == pytest.approx(correlation, abs=0.03)
    apart = dependence_of(scores, names, np.arange(800), tie=0.0)  # no window of one began with one of the other
    assert apart is None


def test_few_windows_say_little_and_dependent_steps_less() -> None:
    scores, names, starts = two(1.0, 8).reshape(2, 8), ["a", "b"], np.zeros(2, dtype=np.int64)
    loose, tied = (dependence_of(scores, names, starts, tie) for tie in (0.0, 0.8))
    assert loose is not None
    assert tied is not None
    assert loose.matrix[0, 1] == pytest.approx(8 / (8 + 2))
    assert tied.matrix[0, 1] == pytest.approx((8 / 9) / (8 / 9 + 2))


@given(st.integers(2, 8), st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_any_symmetric_matrix_becomes_correlations(size: int, seed: int) -> None:
    matrix = RNG(seed).uniform(-1, 1, size=(size, size))
    made = factored((matrix + matrix.T) / 2)
    found = made @ made.T
    np.testing.assert_allclose(np.diag(found), 1.0)
    assert np.abs(found).max() <= 1 + 1e-9


def test_a_correlation_matrix_is_kept() -> None:
    matrix = np.array([[1.0, 0.8, 0.3], [0.8, 1.0, 0.5], [0.3, 0.5, 1.0]])
    made = factored(matrix)
    np.testing.assert_allclose(made @ made.T, matrix, atol=1e-9)
    noise = chained(joint_noise(made, 20_000, 3, RNG(0)), 0.6)
    for step in range(3):
        np.testing.assert_allclose(np.corrcoef(noise[..., step]), matrix, atol=0.03)


def test_series_that_were_never_seen_together_are_independent() -> None:
    known = Dependence(names=("a", "b"), matrix=np.array([[1.0, 0.9], [0.9, 1.0]]))
    made = known.factor(["b", "new", "a"])
    np.testing.assert_allclose(made @ made.T, [[1.0, 0.0, 0.9], [0.0, 1.0, 0.0], [0.9, 0.0, 1.0]], atol=1e-9)


def test_matching_keeps_the_paths_and_follows_the_template() -> None:
    template, drawn = RNG(0).normal(size=(60, 2)), RNG(1).normal(size=(60, 2))
    found = matched(template, drawn)
    assert sorted(map(tuple, found.tolist())) == sorted(map(tuple, drawn.tolist()))
    after, before = (float((template * one).mean()) for one in (found, drawn))
    assert after > 0.6 > 0.3 > before


# Through a forecaster


def table(correlation: float, count: int = 120) -> pd.DataFrame:
    first, second = 50 + 4 * two(correlation, count, seed=3)
    return pd.DataFrame({"date": pd.date_range("2024-01-01", periods=count), "sold": first, "visits": second})


def path_correlation(correlation: float) -> float:
    forecaster = Forecaster(horizon=4, laws="seasonal-naive,AutoTheta", target_col="sold,visits", season=1)
    found = forecaster.fit(table(correlation)).predict(samples=400)
    assert set(found.names) == {"sold", "visits"}
    centred = found.paths - found.paths.mean(1, keepdims=True)
    return float((centred[0] * centred[1]).mean() / np.sqrt((centred[0] ** 2).mean() * (centred[1] ** 2).mean()))


@pytest.mark.filterwarnings("ignore")
def test_targets_that_move_together_have_paths_that_do() -> None:
    pytest.importorskip("statsforecast.models")
    assert path_correlation(0.95) > 0.7
    assert abs(path_correlation(0.0)) < 0.3


@pytest.mark.filterwarnings("ignore")
def test_joint_paths_have_the_quantiles_of_each_series() -> None:
    pytest.importorskip("statsforecast.models")
    rows = two(0.9, 80, seed=5) * 3 + 20
    small = {"net__hidden": 8, "net__layers": 1, "net__heads": 2, "batch": 8}
    settings = {"horizon": 4, "context": 6, "bins": 8, "members": 1, "folds": 2, "steps": 3}
    config = Forecaster(**settings, laws="seasonal-naive,AutoTheta,network").config.with_(**small)
    found = Forecaster(config).fit(panel(series(rows[0]), series(rows[1], name="b"))).predict(samples=300)
    exact = found.quantiles([0.1, 0.5, 0.9])
    np.testing.assert_allclose(np.quantile(found.paths, [0.1, 0.5, 0.9], axis=1).transpose(1, 2, 0), exact, atol=0.4)


@pytest.mark.filterwarnings("ignore")
def test_the_notice_says_whether_paths_are_joint(tmp_path: Path) -> None:
    pytest.importorskip("statsforecast.models")
    table(0.9, 60).to_csv(tmp_path / "two.csv", index=False)
    small = {"net__hidden": 8, "net__layers": 1, "net__heads": 2, "batch": 8, "steps": 2}
    series = {"series__horizon": 3, "series__context": 6, "series__bins": 8, "series__members": 1, "series__folds": 2}
    config = PRESETS["forecast"].with_(series__file=tmp_path / "two.csv", series__target_col="sold,visits", **series)

    def lines(laws: str) -> str:
        told: list[str] = []
        asked = Settings(windows=0, figures=0, samples=20, paths=tmp_path / f"{laws}.csv", baselines="none")
        whole = config.with_(**small, series__laws=laws)
        forecast(whole, asked, tmp_path / laws, device="cpu", progress=Progress(notice=told.append))
        return " | ".join(told)

    assert "are joint: those of one number are one outcome of all" in lines("seasonal-naive")
    assert "independently: the network alone" in lines("network")
