"""Baselines against statsforecast, on whose figures published comparisons rest."""

import numpy as np
import pytest

from sgfn.evaluation.metrics.forecast import LEVELS
from sgfn.series import baselines
from sgfn.series.panel import Panel, Series
from sgfn.series.protocol import rolling_origins

models = pytest.importorskip("statsforecast.models")


def wave(count: int = 60, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return 20 + np.sin(np.arange(count) * 2 * np.pi / 7) * 4 + rng.normal(0, 1, count)


@pytest.mark.parametrize("season", [1, 7])
def test_seasonal_naive_is_that_of_statsforecast(season: int) -> None:
    values = wave()
    model = models.Naive() if season == 1 else models.SeasonalNaive(season_length=season)
    theirs = model.forecast(values, h=10, level=[20, 40, 60, 80])
    ours = baselines.seasonal_naive(values, 10, season=season)
    names = ["lo-80", "lo-60", "lo-40", "lo-20", "mean", "hi-20", "hi-40", "hi-60", "hi-80"]
    np.testing.assert_allclose(ours, np.stack([theirs[name] for name in names], axis=1), atol=1e-6)
    other = baselines.seasonal_naive(values, 10, season=season + 1)
    assert np.abs(other - ours).max() > 0.1


def test_missing_values_are_carried() -> None:
    values = wave(21)
    values[[-1, -3]] = np.nan
    forecast = baselines.seasonal_naive(values, 7, season=7)
    assert forecast[6, 4] == values[-2]
    assert forecast[4, 4] == values[-4]
    with pytest.raises(ValueError, match="at least one observed value"):
        baselines.naive(np.full(4, np.nan), 2)


def test_short_histories() -> None:
    """A season longer than the history is cut to it, one value has no spread."""
    assert baselines.seasonal_naive(np.array([1.0, 2.0]), 3, season=7)[:, 4].tolist() == [1.0, 2.0, 1.0]
    np.testing.assert_array_equal(baselines.naive(np.array([3.0]), 2), np.full((2, 9), 3.0))


@pytest.mark.parametrize("season", [1, 7])
def test_exponential_smoothing_has_ordered_quantiles_and_the_mean_in_the_middle(season: int) -> None:
    found = baselines.auto_ets(wave(), 5, season=season)
    assert found.shape == (5, 9)
    assert (np.diff(found, axis=1) > 0).all()
    theirs = models.AutoETS(season_length=season).forecast(wave(), h=5)["mean"]
    np.testing.assert_allclose(found[:, 4], theirs)
    few = baselines.auto_ets(wave(), 5, np.array([0.05, 0.5, 0.95]), season=season)
    assert (few[:, 0] < found[:, 0]).all()
    np.testing.assert_allclose(few[:, 1], theirs)


@pytest.mark.parametrize("count", [1, 3, 7, 8, 12])
@pytest.mark.parametrize("season", [1, 7])
def test_exponential_smoothing_of_short_or_constant_histories(count: int, season: int) -> None:
    for values in (wave(count), np.full(count, 3.0)):
        found = baselines.auto_ets(values, 3, season=season)
        assert np.isfinite(found).all()
        assert (np.diff(found, axis=1) >= -1e-9).all()


def test_absence_of_statsforecast_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "statsforecast.models", None)
    with pytest.raises(ValueError, match=r"pip install 'sgfn\[forecast\]'"):
        baselines.auto_ets(wave(), 5, LEVELS)
    monkeypatch.undo()
    assert np.isfinite(baselines.auto_ets(wave(), 5, LEVELS)).all()


def daily(values: np.ndarray, name: str = "a") -> Series:
    stamps = (np.datetime64("2024-01-01") + np.arange(len(values))).astype("datetime64[ns]")
    none = np.zeros((len(values), 0))
    return Series(name=name, stamps=stamps, values=values, known=none, past=none)


def test_periods_of_a_regular_series_are_its_seasons() -> None:
    """By time or by rows, the forecast is one; a hole is bridged by the value before it."""
    series = daily(wave(40))
    week = np.timedelta64(7, "D")
    ahead = series.stamps[-1] + np.arange(1, 11) * np.timedelta64(1, "D")
    by_time = baselines.periodic_naive(series, ahead, week)
    np.testing.assert_allclose(by_time, baselines.seasonal_naive(series.values, 10, season=7))
    assert np.abs(baselines.periodic_naive(series, ahead, week + 1) - by_time).max() > 0.1
    series.values[-3] = np.nan
    assert baselines.periodic_naive(series, ahead, week)[4, 4] == series.values[-4]


def test_baselines_on_windows() -> None:
    """Each sees only what came before its window, and the season comes from the step."""
    panel = Panel(series=(daily(wave(80)),), step=np.timedelta64(1, "D"))
    origins = rolling_origins(panel, horizon=7, windows=2)
    setting = baselines.BaselineSettings.of(panel)
    assert setting.season == 7
    for name, baseline in baselines.BASELINES.items():
        found = baseline(origins[0], setting)
        assert found.shape == (7, 9), name
        panel.series[0].values[origins[0].cut :] += 100.0
        np.testing.assert_array_equal(baseline(origins[0], setting), found)
        panel.series[0].values[origins[0].cut :] -= 100.0
    irregular = Panel(series=panel.series, step=None)
    by_time = baselines.seasonal_naive_at(origins[1], baselines.BaselineSettings.of(irregular))
    np.testing.assert_allclose(by_time, baselines.seasonal_naive_at(origins[1], setting))


def test_working_days_have_a_season_of_five_rows() -> None:
    """Mondays are forecast by Mondays, though stamps are irregular; a season that is given counts rows."""
    days = np.busday_offset(np.datetime64("2024-01-01"), np.arange(60)).astype("datetime64[ns]")
    weekly = np.tile([10.0, 20.0, 30.0, 40.0, 50.0], 12) + np.arange(60) / 1000
    none = np.zeros((60, 0))
    panel = Panel(series=(Series(name="a", stamps=days, values=weekly, known=none, past=none),), step=None)
    (origin,) = rolling_origins(panel, horizon=5, windows=1)
    setting = baselines.BaselineSettings.of(panel)
    assert (setting.season, setting.period) == (5, None)
    np.testing.assert_allclose(baselines.seasonal_naive_at(origin, setting)[:, 4], weekly[-10:-5])
    assert baselines.BaselineSettings.of(panel, season=10).season == 10
    uneven = Panel(series=(daily(wave(80)),), step=None)
    assert baselines.BaselineSettings.of(uneven).period == np.timedelta64(7, "D")
