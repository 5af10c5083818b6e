"""Classical laws: those of statsforecast, from values before the origin alone, and finite on odd histories."""

import numpy as np
import pytest

from sgfn.series import classical
from sgfn.series.classical import NAMES, History, forecasts, left_out
from sgfn.series.decomposition import KeptSeasons
from sgfn.series.own_theta import own_theta
from sgfn.series.quantile_laws import GRID

models = pytest.importorskip("statsforecast.models")
MEDIAN = list(GRID).index(0.5)


def wave(count: int = 72, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return 50 + 0.2 * np.arange(count) + 6 * np.sin(np.arange(count) * np.pi / 6) + rng.normal(0, 1, count)


@pytest.mark.parametrize("name", ["AutoETS", "AutoTheta", "MSTL", "seasonal naive"])
def test_laws_are_those_of_statsforecast(name: str) -> None:
    make = {
        "AutoETS": lambda: models.AutoETS(season_length=12),
        "AutoTheta": lambda: models.AutoTheta(season_length=12),
        "MSTL": lambda: models.MSTL(season_length=[12], trend_forecaster=models.AutoETS(model="ZZN")),
        "seasonal naive": lambda: models.SeasonalNaive(season_length=12),
    }[name]
    theirs = make().forecast(wave(), h=5, level=[80])
    ours = forecasts(name, wave(), [72], 5, [(12,)])[0]
    np.testing.assert_allclose(ours[:, MEDIAN], theirs["mean"], rtol=1e-6)
    np.testing.assert_allclose(ours[:, list(GRID).index(0.9)], theirs["hi-80"], rtol=2e-2)
    other = forecasts(name, wave(seed=1), [72], 5, [(12,)])[0]
    assert np.abs(other - ours).max() > 0.1


@pytest.mark.parametrize("name", ["AutoETS", "AutoTheta", "AutoARIMA", "MSTL", "seasonal naive"])
def test_nothing_after_the_origin_is_read(name: str) -> None:
    """Values after the first origin are changed: its forecast stays, that of the later one does not."""
    values, cuts = wave(), [60, 63]
    changed = np.where(np.arange(72) >= 60, values + 40, values)
    first, second = (forecasts(name, one, cuts, 6, [(12,)] * 2) for one in (values, changed))
    np.testing.assert_array_equal(first[0], second[0])
    assert np.abs(first[1] - second[1]).max() > 1


@pytest.mark.parametrize("name", ["AutoTheta", "MSTL", "AutoETS"])
def test_quick_models_are_fitted_at_each_origin_of_short_histories(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    values, cuts = wave(), [60, 63]
    both, later = (forecasts(name, values, some, 6, [(12,)] * len(some)) for some in (cuts, cuts[1:]))
    np.testing.assert_array_equal(both[1], later[0])
    monkeypatch.setattr(classical, "QUICK_VALUES", {})
    kept = forecasts(name, values, cuts, 6, [(12,)] * 2)
    assert np.abs(kept[1] - later[0]).max() > 1e-3


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["constant", "zeros", "one", "short", "jump"])
def test_odd_histories_have_finite_laws_or_none(name: str, kind: str) -> None:
    values = {
        "constant": np.full(40, 7.0),
        "zeros": np.zeros(40),
        "one": np.array([3.0]),
        "short": np.array([1.0, 4.0, 2.0]),
        "jump": np.r_[np.zeros(39), 1e6],
    }[kind]
    found = forecasts(name, values, [len(values)], 4, [()], whole=True)
    assert np.isfinite(found).all() or np.isnan(found).all()
    if np.isfinite(found).all():
        assert (np.diff(found, axis=-1) >= 0).all()


def test_which_laws_fit() -> None:
    plain = History(values=wave(), seasons=(12,))
    demand = History(values=np.tile([0.0, 0.0, 3.0], 20), seasons=())
    weekly = History(values=wave(300), seasons=(52,))
    busy = History(values=np.tile([0.0, 0.0, 3.0], 20), seasons=(3,), whole=True)
    assert [name for name in NAMES if not left_out(name, plain)] == [
        *classical.MODELS,
        "seasonal naive",
        "pretrained",
        "log pretrained",
    ]
    assert {name for name in NAMES if not left_out(name, demand)} >= {"CrostonSBA", "ADIDA", "empirical"}
    assert left_out("seasonal counts", busy) == ""
    assert left_out("seasonal counts", demand) == "values are no small counts with a season"
    assert left_out("AutoETS", weekly) == "a season of 52 steps is too long for it"
    assert left_out("MSTL", weekly) == ""
    assert left_out("log MSTL", History(values=wave() - 60, seasons=(12,))) == "values are not all above zero"
    unseen = History(values=wave(), seasons=(), suggested=12)
    assert [left_out(name, unseen) for name in ("MSTL", "log MSTL")] == ["", "there is no season"]
    assert left_out("MSTL", History(values=wave(25), seasons=(), suggested=12)) == "the history is too short"
    assert plain.season == 12
    assert History(values=wave(), seasons=(5, 12)).season == 12


def test_a_season_that_the_step_suggests_is_decomposed_where_none_shows() -> None:
    """MSTL of no season that shows, and a suggested one, is that of the season; nothing else reads the suggestion."""
    given, suggested = (
        forecasts("MSTL", wave(), [66], 6, [seasons], suggested=steps) for seasons, steps in (((12,), 1), ((), 12))
    )
    np.testing.assert_array_equal(given, suggested)
    assert np.isnan(forecasts("MSTL", wave(), [66], 6, [()])).all()
    plain, other = (forecasts("AutoTheta", wave(), [66], 6, [()], suggested=steps) for steps in (1, 12))
    np.testing.assert_array_equal(plain, other)


def test_a_law_of_logarithms_grows_with_the_level() -> None:
    """Exponential growth with a season that grows along is followed far better than by the law of the values."""
    rng, time = np.random.default_rng(0), np.arange(96)
    values = np.exp(1 + 0.03 * time + 0.5 * np.sin(time * np.pi / 6) + rng.normal(0, 0.05, 96))
    error = {
        name: np.abs(forecasts(name, values, [84], 12, [(12,)])[0][:, MEDIAN] - values[84:]).mean()
        for name in ("MSTL", "log MSTL")
    }
    assert error["log MSTL"] < 0.7 * error["MSTL"]


def test_without_statsforecast_three_laws_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classical, "has_statsforecast", lambda: False)
    history = History(values=wave(), seasons=(12,))
    assert {name for name in NAMES if not left_out(name, history)} == {
        "seasonal naive",
        "Theta",
        "pretrained",
        "log pretrained",
    }
    assert np.isfinite(forecasts("Theta", wave(), [72], 6, [(12,)])).all()


def test_our_theta_follows_trend_and_season() -> None:
    """Of a straight line with a season the median is near what comes, and half the trend is in it."""
    time = np.arange(96)
    exact = 10 + 0.5 * time + 4 * np.sin(time * np.pi / 6)
    found = own_theta(exact[:84], 12, 12, GRID)
    assert np.abs(found[:, MEDIAN] - exact[84:]).mean() < 0.5 * np.abs(exact[83] - exact[84:]).mean()
    theirs = models.AutoTheta(season_length=12).forecast(wave(), h=12)["mean"]
    assert np.abs(own_theta(wave(), 12, 12, GRID)[:, MEDIAN] - theirs).mean() < 2.0


def test_seasons_that_are_kept_are_those_of_a_fit() -> None:
    """Right after the fit nothing changes; some steps later the forecast is near that of a fit of all values."""
    values = wave(120)
    fitted = KeptSeasons([12]).fit(values[:110])
    level = [80.0]
    now = fitted.predict(h=6, level=level)["mean"]
    np.testing.assert_allclose(fitted.later(values[:110], 0, 6, level)["mean"], now, rtol=1e-6)
    kept = fitted.later(values[:115], 5, 6, level)["mean"]
    fresh = KeptSeasons([12]).fit(values[:115]).predict(h=6, level=level)["mean"]
    assert np.abs(kept - fresh).mean() < 0.3 * np.abs(fresh - now).mean()
    np.testing.assert_allclose(fitted.repeated(24)[:12], fitted.repeated(24)[12:])


@pytest.mark.parametrize("name", ["AutoETS", "AutoTheta", "AutoARIMA", "MSTL"])
def test_a_model_that_is_kept_meets_its_season_at_the_right_phase(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read of a long history begins elsewhere at each origin; forecasts are near those of a new fit."""
    monkeypatch.setitem(classical.READ, name, 60)
    values = 50 + 9 * np.sin(np.arange(140) * np.pi / 6) + np.random.default_rng(0).normal(0, 0.5, 140)
    kept = forecasts(name, values, [120, 125], 6, [(12,)] * 2)[1][:, MEDIAN]
    fresh = forecasts(name, values, [125], 6, [(12,)])[0][:, MEDIAN]
    assert np.abs(kept - fresh).max() < 1.5
    assert np.abs(kept - values[125:131]).max() < 3


def test_one_of_very_many_series_has_fewer_forms() -> None:
    """Additive errors and seasons alone, near the forecast of the whole search."""
    whole, brief = (forecasts("AutoETS", wave(), [72], 5, [(12,)], of_many=many)[0] for many in (False, True))
    theirs = models.AutoETS(season_length=12, model="AZA").forecast(wave(), h=5)["mean"]
    np.testing.assert_allclose(brief[:, MEDIAN], theirs, rtol=1e-6)
    assert np.abs(brief[:, MEDIAN] - whole[:, MEDIAN]).max() < 3
