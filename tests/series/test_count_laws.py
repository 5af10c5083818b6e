"""Laws of counts: their means and probabilities against known laws, alone, pooled, spread, and with a season."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats
from small_panels import panel, series, stamps_of

from sgfn.evaluation.metrics.forecast import LEVELS
from sgfn.series import laid_laws
from sgfn.series.count_laws import as_counts, count_quantiles, counted, pooled_counts, seasonal_counts
from sgfn.series.forecaster import Forecaster
from sgfn.series.laid_laws import laid_into, laid_means, laid_spread, with_pooled_counts
from sgfn.series.quantile_laws import GRID, NODES, QuantileLaw, pooled
from sgfn.series.stack import learn_stack, scores_of
from sgfn.series.supports import NAMED
from sgfn.series.weights import Evidence

COUNT = (NAMED["count"],)
WEEK = np.array([0.0, 0.0, 0.0, 0.0, 1.0, 4.0, 5.0])


def mean_of(quantiles: np.ndarray) -> float:
    return float(laid_means(COUNT, QuantileLaw(values=quantiles[None, None])).item())


def zeros_of(quantiles: np.ndarray) -> float:
    return float(QuantileLaw(values=quantiles[None]).cdf(np.array([0.5])).item())


@pytest.mark.parametrize(("mean", "ratio"), [(0.3, 1.0), (0.05, 1.0), (0.8, 3.9), (4.0, 1.0), (1.5, 2.0)])
def test_count_laws_have_their_mean_and_probabilities(mean: float, ratio: float) -> None:
    exact, how = (stats.poisson, (mean,)) if ratio == 1 else (stats.nbinom, (mean / (ratio - 1), 1 / ratio))
    found = count_quantiles(mean, ratio)
    np.testing.assert_array_equal(NAMED["count"].project(found), exact.ppf(GRID, *how))
    assert mean_of(found) == pytest.approx(mean, rel=0.02)
    assert zeros_of(found) == pytest.approx(exact.cdf(0, *how), abs=0.01)
    whole = exact.ppf(GRID, *how).astype(
        float
    )  # as they were kept before: whole numbers at the levels, lines between them
    if mean == 0.3:
        assert abs(zeros_of(whole) - exact.cdf(0, *how)) > 0.01


def test_what_is_there_is_counted() -> None:
    values = np.random.default_rng(0).poisson(4, 200) * (np.random.default_rng(1).random(200) < 0.2) * 1.0
    found = counted(values)
    assert mean_of(found) == pytest.approx(values.mean(), rel=0.05)
    assert mean_of(counted(np.zeros(20))) == 0.0


def test_normal_laws_below_zero_become_laws_of_counts_with_their_means() -> None:
    past = np.random.default_rng(0).poisson(0.4, 200).astype(float)
    found = as_counts((0.4 + 0.63 * NODES)[None], past)[0]
    assert mean_of(found) == pytest.approx(0.4, rel=0.03)
    assert mean_of(0.4 + 0.63 * NODES) > 0.45
    high = (40 + 3 * NODES)[None]
    np.testing.assert_array_equal(as_counts(high, past), high)


def test_pooled_probabilities_and_their_means_are_those_of_the_members() -> None:
    laws = np.stack([count_quantiles(0.1, 1.0), count_quantiles(0.9, 1.0)])[:, None]
    found = pooled_counts(laws, np.array([[0.75], [0.25]]), 0.0)[0]
    assert mean_of(found) == pytest.approx(0.3, rel=0.03)
    zero = 0.75 * stats.poisson.cdf(0, 0.1) + 0.25 * stats.poisson.cdf(0, 0.9)
    assert zeros_of(found) == pytest.approx(zero, abs=0.01)
    assert mean_of(pooled(laws, np.array([[0.75], [0.25]])).values[0]) < 0.24  # quantiles that are pooled lose some


def test_steps_that_are_seldom_zero_keep_their_pooled_quantiles() -> None:
    """Hours of a day beside those of a night without any: pooled probabilities would be as wide as laws lie apart."""
    laws = np.array([[count_quantiles(0.1, 1.0), 40 + 3 * NODES], [count_quantiles(0.9, 1.0), 60 + 3 * NODES]])
    weights = np.full((2, 1), 0.5)
    plain = pooled(laws[:, None], np.full((2, 1, 2), 0.5))
    found = with_pooled_counts(plain, laws[:, None], weights, COUNT).values[0]
    np.testing.assert_array_equal(found[1], plain.values[0, 1])
    np.testing.assert_allclose(found[0], pooled_counts(laws[:, :1], weights, 0.0)[0])


def test_a_member_that_hardly_counts_may_reach_far() -> None:
    """As many counts as it reaches to would not fit into memory."""
    laws = np.stack([count_quantiles(0.3, 1.0), np.append(count_quantiles(0.3, 1.0)[:-1], 1e12)])[:, None]
    weights = np.array([[1 - 1e-9], [1e-9]])
    np.testing.assert_allclose(pooled_counts(laws, weights, 0.0), pooled_counts(laws[:1], np.ones((1, 1)), 0.0))


def test_many_windows_are_pooled_in_parts_as_each_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    means = np.random.default_rng(0).uniform(0.1, 2.0, (2, 5, 3))
    laws = np.array([[[count_quantiles(one, 1.0) for one in row] for row in part] for part in means.tolist()])
    weights = np.full((2, 5), 0.5)
    plain = pooled(laws, np.full((2, 5, 3), 0.5))
    whole = with_pooled_counts(plain, laws, weights, 5 * COUNT).values
    assert np.abs(whole - plain.values).max() > 0.1
    monkeypatch.setattr(laid_laws, "AT_ONCE", 4)
    np.testing.assert_allclose(with_pooled_counts(plain, laws, weights, 5 * COUNT).values, whole)


@pytest.mark.parametrize("factor", [0.7, 1.3])
def test_a_spread_keeps_the_mean_of_what_is_often_zero(factor: float) -> None:
    law = QuantileLaw(values=count_quantiles(0.3, 1.0)[None, None])
    factors = np.full((1, 1), factor)
    assert float(laid_means(COUNT, laid_spread(COUNT, law, factors)).item()) == pytest.approx(0.3, rel=0.04)
    assert abs(float(laid_means(COUNT, law.spread(factors)).item()) - 0.3) > 0.05
    wide = QuantileLaw.normal(np.full((1, 1), 40.0), np.ones((1, 1)))
    np.testing.assert_array_equal(laid_spread(COUNT, wide, factors).values, wide.spread(factors).values)


def known_windows(seed: int) -> Evidence:
    """Windows of Poisson values with rate .3, forecast by their own law and by a normal one."""
    truth = np.random.default_rng(seed).poisson(0.3, (40, 7)).astype(float)
    laws = [count_quantiles(0.3, 1.0), as_counts((0.3 + 0.55 * NODES)[None], truth.ravel())[0]]
    quantiles = np.stack([np.broadcast_to(one, (40, 7, len(GRID))) for one in laws])
    return Evidence(quantiles=quantiles, truth=truth, scale=np.ones(40), supports=COUNT * 40)


def test_the_law_of_rare_events_is_not_narrowed_and_keeps_its_mean() -> None:
    """Scores of zeros lie over all the mass below one half; read as points they made the law too narrow."""
    means, spreads = [], []
    for seed in range(12):
        some = known_windows(seed)
        stack = learn_stack(("a", "b"), some, ["s"] * 40, ["g"] * 40)
        law = stack.plain_law(some.quantiles[:, :1], stack.weights[:, None], COUNT)
        means.append(laid_means(COUNT, stack.spread(law, COUNT)).mean())
        spreads.append(stack.spreads.mean())
    assert np.mean(means) == pytest.approx(0.3, rel=0.05)
    assert np.mean(spreads) == pytest.approx(1.0, abs=0.1)
    some = known_windows(0)
    law = QuantileLaw(values=np.broadcast_to(0.3 + 0.55 * NODES, (40, 7, len(GRID))))
    bare, laid = (np.abs(scores_of(law, some.truth, supports)) for supports in ((), some.supports))
    assert np.quantile(bare, 0.7) < 0.6 < 0.8 < np.quantile(laid, 0.7)


@pytest.fixture(scope="module")
def rare() -> tuple[np.ndarray, Any]:
    """Ten series of rare events with one rate, and the forecast of them."""
    rng = np.random.default_rng(5)
    values = rng.poisson(0.4, (10, 90)).astype(float)
    some = panel(*(series(one, name=f"s{at}") for at, one in enumerate(values)))
    return values, Forecaster(horizon=5, laws="CrostonSBA,ADIDA,empirical,AutoTheta").fit(some).predict(samples=50)


def test_the_mean_of_a_forecast_of_rare_events_is_right(rare: tuple[np.ndarray, Any]) -> None:
    pytest.importorskip("statsforecast.models")
    values, found = rare
    assert found.mean.mean() == pytest.approx(values.mean(), rel=0.12)
    assert found.paths.mean() == pytest.approx(found.mean.mean(), rel=0.1)
    assert (found.quantiles() == np.rint(found.quantiles())).all()
    zero = float(found.cdf(np.zeros((10, 5))).mean())
    assert zero == pytest.approx(float((values == 0).mean()), abs=0.05)


# Seasons


def loss(quantiles: np.ndarray, rates: np.ndarray) -> float:
    """Expected quantile loss of forecasts of Poisson values with known rates, over all counts."""
    counts = np.arange(60.0)
    mass = np.diff(stats.poisson.cdf(counts, rates[:, None]), prepend=0.0)
    error = counts - quantiles[..., None]  # H Q K
    each = np.maximum(LEVELS[:, None] * error, (LEVELS[:, None] - 1) * error)
    return float(np.einsum("hqk,hk->", each, mass))


def test_counts_with_a_season_are_nearly_as_good_as_their_own_law() -> None:
    ahead, ratios, flat = WEEK[(np.arange(14) + 84) % 7], [], []
    best = loss(stats.poisson.ppf(LEVELS, ahead[:, None]), ahead)
    for seed in range(10):
        values = np.random.default_rng(seed).poisson(WEEK[np.arange(84) % 7]).astype(float)
        law = QuantileLaw(values=seasonal_counts(values, 7, 14)[None])
        ratios.append(loss(laid_into(COUNT, law.quantile(LEVELS))[0], ahead) / best)
        flat.append(loss(np.tile(np.quantile(values, LEVELS), (14, 1)), ahead) / best)
    assert np.mean(ratios) < 1.1
    assert np.mean(flat) > 1.8


def test_a_level_that_grows_is_followed() -> None:
    rates = np.linspace(0.5, 8.0, 140) * np.tile([0.2, 1.0, 1.0, 1.0, 1.0, 1.0, 1.8], 20)
    values = np.random.default_rng(0).poisson(rates).astype(float)
    found = laid_means(COUNT, QuantileLaw(values=seasonal_counts(values, 7, 7)[None]))
    assert 5.5 < found.mean() < 9.5
    assert values.mean() < 5


def test_the_pool_forecasts_a_week_that_is_plain() -> None:
    """Half of the days have nothing, so that flat laws of intermittent series are in the pool; the week decides."""
    pytest.importorskip("statsforecast.models")
    days = np.arange(112)
    values = [np.random.default_rng(seed).poisson(WEEK[days % 7]).astype(float) for seed in range(2)]
    day = np.timedelta64(86_400 * 10**9, "ns")
    stamps = stamps_of(112, step=day)
    some = panel(*(replace(series(one, name=f"s{at}"), stamps=stamps) for at, one in enumerate(values)), step=day)
    laws = "seasonal-naive,CrostonSBA,empirical,seasonal-counts"
    found = Forecaster(horizon=14, laws=laws).fit(some).predict(samples=2)
    ahead = WEEK[(np.arange(14) + 112) % 7]
    best = loss(stats.poisson.ppf(LEVELS, ahead[:, None]), ahead)
    assert np.mean([loss(one, ahead) for one in found.quantiles()]) < 1.15 * best
