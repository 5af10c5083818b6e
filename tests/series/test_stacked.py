"""Forecasts of a stack: its parts, its paths, its support, and that it reads nothing of what it forecasts."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_panels import panel, series

from sgfn.config.presets import PRESETS
from sgfn.config.series import SeriesConfig
from sgfn.series.forecaster import Forecaster
from sgfn.series.path_scores import chained, evenly
from sgfn.series.prediction import StackedForecast
from sgfn.series.quantile_laws import GRID, QuantileLaw
from sgfn.series.stack_plan import REFRESH, held_back, network_left_out, network_steps, with_effort
from sgfn.series.supports import NAMED, Support
from sgfn.series.windows import Windows

pytest.importorskip("statsforecast.models")
SMALL: dict[str, Any] = {"net__hidden": 8, "net__layers": 1, "net__heads": 2, "batch": 8}
LAWS = "seasonal-naive,AutoTheta,network"
MEDIAN = list(GRID).index(0.5)


def waves(count: int = 90, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.rint(20 + 6 * np.sin(np.arange(count) * 2 * np.pi / 24) + rng.normal(0, 2, count))


def made(**changes: Any) -> Forecaster:
    plain = {"horizon": 4, "context": 6, "bins": 8, "members": 1, "folds": 2, "steps": 3, "laws": LAWS}
    return Forecaster(Forecaster(**plain | changes).config.with_(**SMALL))


@pytest.fixture(scope="module")
def fitted() -> Forecaster:
    return made(spare=8).fit(panel(series(waves()), series(waves(seed=1), name="b")))


@pytest.fixture(scope="module")
def found(fitted: Forecaster) -> StackedForecast:
    found = fitted.predict(samples=200)
    assert isinstance(found, StackedForecast)
    return found


def test_it_says_what_it_consists_of(fitted: Forecaster, found: StackedForecast) -> None:
    told = fitted.stacked.composition(found)
    assert set(told.weights) <= {"seasonal naive", "AutoTheta", "network"}
    assert sum(told.weights.values()) == pytest.approx(1.0)
    assert told.supports == {"count": 2}
    assert told.windows > 4
    np.testing.assert_allclose(found.weights.sum(0), 1.0)


def test_blocks_of_windows_have_the_same_law_and_are_forgotten(
    fitted: Forecaster, found: StackedForecast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sgfn.series.stacked.AT_ONCE", 1)
    monkeypatch.setattr("sgfn.series.path_scores.AT_ONCE", 1)
    told: list[tuple[str, int, int]] = []
    stacked = fitted.stacked
    monkeypatch.setattr(stacked, "progress", lambda *row: told.append(row))
    ends = [(number, len(one)) for number, one in enumerate(stacked.data.panel.series)]
    stacked.bank(stacked.data.panel).forget(ends)
    again = fitted.predict(samples=20)
    assert isinstance(again, StackedForecast)
    np.testing.assert_allclose(again.law.values, found.law.values, rtol=1e-5)
    np.testing.assert_allclose(again.weights, found.weights)
    np.testing.assert_allclose(again.mean, found.mean, rtol=1e-5)
    assert not {cut for _, cut in stacked.bank(stacked.data.panel).kept} & set(ends)
    done = [row[1] for row in told if row[0] == "forecast"]
    assert done == sorted(done)
    assert all(0 < count <= row[2] for count, row in zip(done, told, strict=False))
    assert np.abs(np.corrcoef(again.paths[:, :, 0])[0, 1]) < 0.99  # blocks draw for themselves


def test_quantiles_are_pooled_means_of_those_of_the_laws(fitted: Forecaster) -> None:
    """Without the spread and the support, by hand."""
    stacked, cuts = fitted.stacked, [(0, 90), (1, 90)]
    stack, parts = stacked.stack(final=True), stacked.quantiles(fitted.fitted.data.panel, cuts, "test")
    weights = np.stack([stack.by_series.get(name, stack.weights) for name in ("a", "b")], 1)
    law = QuantileLaw(values=np.maximum.accumulate((weights[:, :, None, None] * parts).sum(0), -1))
    law = law.spread(np.broadcast_to(stack.spreads, (2, 4)))
    found = fitted.predict(samples=2)
    np.testing.assert_allclose(found.plain_quantiles(GRID), law.values, rtol=1e-9)


def test_paths_have_the_quantiles_of_the_forecast(found: StackedForecast) -> None:
    low, high = found.quantiles([0.1, 0.9])[..., 0], found.quantiles([0.1, 0.9])[..., 1]
    inside = ((found.paths >= low[:, None]) & (found.paths <= high[:, None])).mean(1)
    assert (inside >= 0.79).all()  # an interval of counts holds its ends
    np.testing.assert_allclose(found.paths.mean(1), found.mean, atol=0.25)


def test_probabilities_of_counts_add_up_to_the_cdf(found: StackedForecast) -> None:
    at = np.full((2, 4), 18.0)
    mass = sum(np.exp(found.log_density(np.full((2, 4), float(k)))) for k in range(19))
    np.testing.assert_allclose(mass, found.cdf(at), atol=1e-9)
    assert (found.cdf(at - 19) == 0).all()
    assert np.isnan(found.cdf(np.full((2, 4), np.nan))).all()


def test_later_values_change_nothing_before(fitted: Forecaster) -> None:
    """Weights, supports and laws of a backtest window come from before it."""
    before = fitted.predict(origins=[("a", 82), ("b", 86)], samples=2)
    changed = [np.where(np.arange(90) >= 82, -1.5, waves(seed=seed)) for seed in (0, 1)]
    other = made(spare=8).fit(panel(series(changed[0]), series(changed[1], name="b")))
    np.testing.assert_array_equal(other.predict(origins=[("a", 82)], samples=2).quantiles()[0], before.quantiles()[0])
    assert np.abs(other.predict(samples=2).quantiles() - fitted.predict(samples=2).quantiles()).max() > 1


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(["count", "unit", "nonnegative", "real"]), st.floats(-9, 9), st.floats(0, 9), st.integers(0, 99))
def test_no_quantile_leaves_the_support(name: str, mean: float, deviation: float, seed: int) -> None:
    law = QuantileLaw.normal(np.full((1, 3), mean), np.full((1, 3), deviation))
    found = StackedForecast(
        names=("a",),
        cuts=(9,),
        stamps=np.zeros((1, 3), dtype="datetime64[ns]"),
        paths=np.empty((1, 0, 3)),
        supports=(NAMED[name],),
        law=law,
        weights=np.ones((1, 1)),
        members=("AutoETS",),
    )
    quantiles = found.quantiles([0.001, 0.1, 0.5, 0.9, 0.999])
    assert NAMED[name].holds(quantiles)
    assert (np.diff(quantiles) >= 0).all()
    assert NAMED[name].low <= found.mean.min() <= found.mean.max() <= NAMED[name].high
    assert (found.cdf(quantiles[..., 2]) >= 0.5 - 1e-9).all()


@pytest.mark.parametrize("name", ["count", "unit", "nonnegative"])
def test_a_support_is_found_and_kept_by_quantiles_and_paths(name: str) -> None:
    raw = np.random.default_rng(3).gamma(0.3, 2.0, 40)
    values = {"count": np.floor(raw), "unit": np.minimum(raw, 1.0)}.get(name, raw)
    found = made(laws="seasonal-naive,AutoTheta", horizon=3).fit(panel(series(values))).predict(samples=30)
    assert found.supports == (NAMED[name],)
    assert NAMED[name].holds(found.quantiles([0.001, 0.1, 0.5, 0.9, 0.999]))
    assert NAMED[name].holds(found.paths)
    other = made(laws="seasonal-naive,AutoTheta", horizon=3, support="real").fit(panel(series(values)))
    assert other.predict(samples=30).quantiles([0.001]).min() < 0


def test_a_few_newer_values_have_the_support_of_what_was_learned() -> None:
    """And widen it where they leave it; so does a series that was not learned from."""
    counts = np.random.default_rng(5).poisson(1.5, 60).astype(np.float64)
    forecaster = made(laws="seasonal-naive,AutoTheta", horizon=3).fit(panel(series(counts)))
    found = forecaster.predict(panel(series(counts[:5])), samples=30)
    assert found.supports == (NAMED["count"],)
    assert NAMED["count"].holds(found.quantiles([0.001, 0.1, 0.999]))
    assert forecaster.predict(panel(series(counts[:5], name="b")), samples=30).supports == (NAMED["count"],)
    assert forecaster.predict(panel(series(counts[:5] + 0.5)), samples=30).supports == (NAMED["nonnegative"],)
    assert forecaster.predict(panel(series(counts[:5] - 9.5)), samples=30).supports == (Support(),)


def test_a_target_that_is_called_a_share_is_one_also_after_saving(tmp_path: Path) -> None:
    days = pd.date_range("2024-03-01", periods=60)
    frame = pd.DataFrame({"ds": days, "win_share": 0.5 + 0.1 * np.sin(np.arange(60) / 3)})
    forecaster = made(laws="seasonal-naive,AutoTheta", horizon=3, target_col="win_share").fit(frame)
    forecaster.save(tmp_path / "run")
    for one in (forecaster, Forecaster.load(tmp_path / "run")):
        assert one.predict(samples=2).supports == (NAMED["unit"],)
    other = made(laws="seasonal-naive,AutoTheta", horizon=3, target_col="wins")
    assert other.fit(frame.rename(columns={"win_share": "wins"})).predict(samples=2).supports != (NAMED["unit"],)


def test_scores_of_paths() -> None:
    rng = np.random.default_rng(0)
    scores = chained(rng.normal(size=(1, 4000, 3)), 0.8)
    assert np.corrcoef(scores[0, :, 0], scores[0, :, 1])[0, 1] == pytest.approx(0.8, abs=0.03)
    even = evenly(scores[:, :100], rng)
    assert (np.sort((even < 0).sum(1)) == 50).all()
    assert np.corrcoef(even[0, :, 0], even[0, :, 1])[0, 1] > 0.6


def test_short_series_have_no_network_and_effort_decides_its_size() -> None:
    usual = PRESETS["forecast"].with_(series__horizon=12)
    assert "windows to learn from, 300 are needed" in network_left_out(SeriesConfig(horizon=12), [60])
    assert network_left_out(SeriesConfig(horizon=12), [3000]) == ""
    assert network_left_out(SeriesConfig(horizon=12, effort="quick"), [3000]) == "effort is quick"
    assert network_left_out(SeriesConfig(horizon=12, laws="network"), [60]) == ""
    assert held_back(SeriesConfig(horizon=12, laws="network"), [3000]) == (0,)
    assert held_back(SeriesConfig(horizon=12), [3000])[0] >= 12
    assert with_effort(usual, [60]).steps == 1
    assert with_effort(usual, [5000]).steps < usual.steps
    best = usual.with_(series__effort="best")
    assert with_effort(best, [5000]) == best.with_(series__refresh=REFRESH)
    assert with_effort(usual.with_(steps=7), [5000]).steps == 7


def test_a_refresh_that_was_given_is_kept() -> None:
    """Nought too; its steps are then those that learn, with none added for the end."""
    usual = PRESETS["forecast"].with_(series__horizon=12)
    found = {share: with_effort(usual.with_(series__refresh=share), [5000]) for share in (None, 0.0, 0.5)}
    assert [one.series.refresh for one in found.values()] == [REFRESH, 0.0, 0.5]
    steps = network_steps(usual.series, [5000])
    assert [one.steps for one in found.values()] == [round(steps / 0.8), steps, round(steps / 0.8)]


def test_wrong_names() -> None:
    with pytest.raises(ValueError, match=r"series\.laws"):
        SeriesConfig(laws="AutoETS,nothing")
    assert SeriesConfig(laws="classical", effort="quick").law_names[:2] == ("seasonal naive", "AutoETS")
    assert SeriesConfig(noise="known", deviation=1.0).law_names == ("network",)


# Ablations, and windows of the past


def test_some_of_the_laws_share_their_forecasts(fitted: Forecaster) -> None:
    stacked, cuts = fitted.stacked, [(0, 82), (1, 86)]
    windows = Windows(stacked.data.panel, stacked.data.plan)
    part = stacked.of_laws(("AutoTheta",))
    alone = part.predict(windows, cuts, samples=2, seed=0, final=False)
    np.testing.assert_allclose(alone.weights, 1.0)
    assert part.banks is stacked.banks
    assert stacked.names != part.names
    even = stacked.of_laws(stacked.names, equal=True).predict(windows, cuts, samples=2, seed=0, final=False)
    theta, naive = (even.weights[even.members.index(name), 0] for name in ("AutoTheta", "seasonal naive"))
    assert naive / theta == pytest.approx(0.3)
    with pytest.raises(ValueError, match="'AutoETS' is no part of this forecast: choose from seasonal naive"):
        stacked.of_laws(("AutoETS",))


def test_spreads_and_weights_follow_windows_that_have_ended(fitted: Forecaster) -> None:
    """Later windows of a backtest know how earlier ones came out; nothing that came after a window changes it."""
    alone = fitted.predict(origins=[("a", 86)], samples=2)
    both = fitted.predict(origins=[("a", 82), ("a", 86)], samples=2)
    first = fitted.predict(origins=[("a", 82)], samples=2)
    np.testing.assert_allclose(both.plain_quantiles(GRID)[0], first.plain_quantiles(GRID)[0], rtol=1e-9)
    assert isinstance(both, StackedForecast)
    assert isinstance(alone, StackedForecast)
    assert np.abs(both.weights[:, 1] - alone.weights[:, 0]).max() > 1e-9
    np.testing.assert_allclose(both.weights.sum(0), 1.0)
    part = fitted.stacked.of_laws(("AutoTheta",))
    windows = Windows(part.data.panel, part.data.plan)
    one, two = (
        part.predict(windows, cuts, samples=2, seed=0, final=False).plain_quantiles(GRID)
        for cuts in ([(0, 86)], [(0, 82), (0, 86)])
    )
    assert np.abs(two[1] - one[0]).max() > 1e-9
    np.testing.assert_allclose(two[1][:, MEDIAN], one[0][:, MEDIAN], rtol=1e-9)  # a spread moves no median


# A user's own data through the pool

OWN = {
    "counts": (lambda rng: rng.poisson(1.2, 60), "count"),
    "shares": (lambda rng: rng.beta(0.8, 1.0, 60).round(4), "unit"),
    "amounts": (lambda rng: rng.gamma(2, 30, 60).round(2), "nonnegative"),
    "balances": (lambda rng: np.cumsum(rng.normal(0, 3, 60)).round(2), "real"),
}


@pytest.mark.parametrize("kind", OWN)
@pytest.mark.filterwarnings("ignore")
def test_tables_of_users_go_through_the_pool(kind: str, tmp_path: Path) -> None:
    """Found columns, found support, laws in the pool with weights; quantiles and paths inside the support."""
    make, support = OWN[kind]
    days = pd.date_range("2024-03-01", periods=60)
    own = pd.DataFrame({"day": days, "what": make(np.random.default_rng(1))})
    own.to_csv(tmp_path / "own.csv", index=False)
    forecaster = Forecaster(horizon=5, laws="seasonal-naive,AutoTheta,empirical").fit(tmp_path / "own.csv")
    found = forecaster.predict(samples=40)
    assert isinstance(found, StackedForecast)
    assert forecaster.stacked.composition(found).supports == {support: 1}
    assert found.supports[0].holds(found.quantiles([0.01, 0.5, 0.99]))
    assert found.supports[0].holds(found.paths)
    assert found.to_frame()["ds"].iloc[0] == days[-1] + pd.Timedelta("1D")
    low, high = found.quantiles([0.1, 0.9])[0].T
    assert (low <= high).all()
    assert float(own["what"].min()) - 1e-9 <= float(found.median.min()) <= float(own["what"].max())


def test_a_wrong_last_value_hardly_moves_the_forecast_and_is_told() -> None:
    """Laws and network read what the value should have been; a forecaster of the untouched data says the same."""
    values = waves(240) + np.random.default_rng(1).normal(0, 1, 240)
    wrong = values.copy()
    wrong[-1] = 900.0
    forecaster = made(spare=8, steps=20).fit(panel(series(values)))
    right = forecaster.predict(samples=2)
    found = forecaster.predict(panel(series(wrong)), samples=2)
    assert np.abs(found.median - right.median).max() < 15
    line = forecaster.stacked.moved_line(panel(series(wrong)))
    assert "a 2024-01-10 23:00:00 900 as" in line
    assert forecaster.stacked.moved_line(panel(series(values))) == ""


def test_laws_of_which_none_fits_are_refused_and_windows_that_none_fits_are_naive() -> None:
    short, long = 50.0 + np.arange(9), 50.0 + np.tile([0.0, 5.0, 1.0, 0.0], 12) + 0.1 * np.arange(48)
    with pytest.raises(ValueError, match="none of the laws fits these series"):
        made(laws="CrostonSBA", horizon=2).fit(panel(series(short))).predict()
    both = panel(series(short[:7], "short"), series(long, "long"))
    found = made(laws="AutoETS", horizon=2, season=4).fit(both).predict(samples=20)
    assert (found.quantiles() > 40).all()  # where no law fits, quantiles were zero
