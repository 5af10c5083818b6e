"""The law with regressors: effects recovered, near laws of simulated processes, and blind to what comes later."""

import pickle
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtri
from small_panels import panel, series

from sgfn.config.series import SeriesConfig
from sgfn.series.bank import Bank
from sgfn.series.classical import NO_COVARIATES, REGRESSION, History, forecasts, left_out
from sgfn.series.forecaster import Forecaster
from sgfn.series.prediction import StackedForecast
from sgfn.series.quantile_laws import GRID
from sgfn.series.regression import SIZES, Effects, best_fit, effects_of, fits_of, innovations, line_and_season
from sgfn.series.stack_plan import unused_covariates
from sgfn.series.supports import REAL

pytest.importorskip("statsforecast.models")
MEDIAN = list(GRID).index(0.5)
COUNT, HORIZON = 80, 8
ROWS = COUNT + HORIZON


def promotions(seed: int = 0) -> np.ndarray:
    """Days of promotion and a price."""
    rng = np.random.default_rng(seed)
    return np.stack([rng.random(ROWS) < 0.2, np.round(10 * np.exp(rng.normal(0, 0.1, ROWS)), 2)], 1).astype(float)


def sales(known: np.ndarray, seed: int = 0, noise: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Means and values of a level of 50 with effects of 12 and -3 a unit, and independent normal errors."""
    mean = 50 + known @ [12.0, -3.0]
    return mean, mean + np.random.default_rng(100 + seed).normal(0, noise, ROWS)


def law(values: np.ndarray, known: np.ndarray | None, **more: Any) -> np.ndarray:
    return forecasts(REGRESSION, values, [COUNT], HORIZON, [more.pop("season", ())], known=known, **more)[0]


def loss(quantiles: np.ndarray, came: np.ndarray) -> float:
    error = came[:, None] - quantiles
    return float(np.maximum(GRID * error, (GRID - 1) * error).mean())


# The estimate


@pytest.mark.parametrize("rate", [0.0, 0.3, 1.0])
def test_innovations_are_errors_of_a_level_that_follows(rate: float) -> None:
    values, level, found = np.random.default_rng(0).normal(size=20), 0.0, []
    seen = np.arange(20) % 7 != 3
    for value in values[seen]:
        found.append(value - level)
        level += rate * found[-1]
    np.testing.assert_allclose(innovations(values[:, None], seen, rate)[:, 0], found)


@pytest.mark.parametrize("rate", [0.0, 0.5])
def test_likelihoods_and_effects_are_those_of_the_gaussian_model(rate: float) -> None:
    """Beside dense matrices: y = X b + W c + e with b ~ N(0, tau s^2) and flat c, profiled over s."""
    rng, some = np.random.default_rng(1), np.ones(30, dtype=bool)
    rows = innovations(np.concatenate([rng.normal(size=(30, 4)), line_and_season(30, 4)], 1), some, rate)
    y, x, w = rows[:, 0], rows[:, 1:4], rows[:, 4:]
    exact = []
    for size in SIZES:
        inverse = np.linalg.inv(np.eye(30) + size * x @ x.T)
        flat = w.T @ inverse @ w
        c = np.linalg.solve(flat, w.T @ inverse @ y)
        left = (y - w @ c) @ inverse @ (y - w @ c)
        free = 30 - w.shape[1]
        twice = np.linalg.slogdet(inverse)[1] - np.linalg.slogdet(flat)[1] - free * np.log(left / free)
        exact.append((twice / 2, *(size * x.T @ inverse @ (y - w @ c))))
    found = fits_of(rows, 3, rate)
    np.testing.assert_allclose([(one.likelihood, *one.effects) for one in found], exact, rtol=1e-8, atol=1e-10)
    assert len({one.effects[0] for one in found}) == len(SIZES)


def test_effects_are_recovered_and_their_size_is_that_of_the_noise() -> None:
    known = promotions()
    mean, values = sales(known)
    found = effects_of(values[:COUNT], known)
    assert not found.log
    assert found.rate <= 0.05
    assert found.deviation == pytest.approx(1.0, abs=0.2)
    error = found.ahead - found.ahead.mean() - (mean[COUNT:] - mean[COUNT:].mean())
    assert np.abs(error).max() < 0.8
    assert (np.sqrt(found.variance) * found.deviation).max() < 0.8
    design = np.concatenate([line_and_season(COUNT, 1), known[:COUNT]], 1)
    by_hand = np.linalg.lstsq(design, values[:COUNT], rcond=None)[0][2:]
    np.testing.assert_allclose(np.diff(found.ahead), np.diff(known[COUNT:] @ by_hand), rtol=0.05, atol=0.3)


def test_elasticities_are_found_on_logarithms() -> None:
    known, rng = promotions(), np.random.default_rng(2)
    effect = 0.5 * known[:, 0] - 2.0 * np.log(known[:, 1])
    found = effects_of(np.exp(8 + effect + rng.normal(0, 0.05, ROWS))[:COUNT], known)
    assert found.log
    assert np.abs(np.diff(found.ahead) - np.diff(effect[COUNT:])).max() < 0.06
    assert not effects_of(sales(known)[1][:COUNT], known).log


def test_sizes_of_effects_shrink_to_none_where_covariates_explain_nothing() -> None:
    rng, shrunk = np.random.default_rng(3), []
    for _ in range(20):
        rows = rng.normal(size=(60, 5))
        fit = best_fit(rows[:, 0], np.ones(60, dtype=bool), rows[:, 1:], line_and_season(60, 1))
        shrunk.append(fit.size <= 0.01)
    assert np.mean(shrunk) > 0.7


# The law


def test_quantiles_are_near_the_law_of_the_process_and_wrong_covariates_lose() -> None:
    """Over several draws: near the exact law's loss; with other covariates, or none, far above it."""
    losses: dict[str, list[float]] = {"exact": [], "regression": [], "wrong": [], "AutoETS": []}
    for seed in range(12):
        known = promotions(seed)
        mean, values = sales(known, seed)
        came = values[COUNT:]
        losses["exact"].append(loss(mean[COUNT:, None] + ndtri(GRID), came))
        losses["regression"].append(loss(law(values, known), came))
        losses["wrong"].append(loss(law(values, promotions(seed + 50)), came))
        losses["AutoETS"].append(loss(forecasts("AutoETS", values, [COUNT], HORIZON, [()])[0], came))
    found = {name: float(np.mean(some)) for name, some in losses.items()}
    assert found["regression"] < 1.06 * found["exact"]
    assert found["wrong"] > 1.8 * found["regression"]
    assert found["AutoETS"] > 1.8 * found["regression"]
    assert found["wrong"] < 1.06 * found["AutoETS"]  # noise costs little


def test_intervals_hold_what_they_say() -> None:
    inside = []
    for seed in range(30):
        known = promotions(seed)
        values = sales(known, seed)[1]
        found = law(values, known)
        low, high = found[:, list(GRID).index(0.1)], found[:, list(GRID).index(0.9)]
        inside.append(((values[COUNT:] >= low) & (values[COUNT:] <= high)).mean())
    assert 0.72 <= np.mean(inside) <= 0.88


def test_laws_that_are_narrower_than_errors_were_are_widened() -> None:
    """To the errors of one step, at most twofold, and by the variance of the effects."""
    some: dict[str, Any] = {"log": False, "before": np.zeros(3), "deviation": 2.0, "rate": 0.0}
    found = Effects(ahead=np.array([5.0, 0.0]), variance=np.array([0.0, 3.0]), **some)
    for width, first in ((0.5, 1.0), (1.5, 2.0), (3.0, 3.0)):
        law = found.added(np.tile(width * ndtri(GRID), (2, 1)))
        second = np.sqrt(first**2 + 3 * 4.0)
        np.testing.assert_allclose(law[0], 5.0 + first * ndtri(GRID), rtol=1e-9)
        np.testing.assert_allclose(law[1], second * ndtri(GRID), rtol=1e-9, atol=1e-12)


def test_nothing_after_the_origin_is_read_but_covariates_up_to_the_horizon() -> None:
    known = promotions()
    values = sales(known)[1]
    longer = np.concatenate([known, 99 + known])
    first = law(values, known)
    np.testing.assert_array_equal(law(np.where(np.arange(ROWS) < COUNT, values, 1e6), longer), first)
    moved = known.copy()
    moved[COUNT, 0] = 1 - moved[COUNT, 0]
    change = law(values, moved)[:, MEDIAN] - first[:, MEDIAN]
    assert abs(change[0]) == pytest.approx(12, abs=2)
    np.testing.assert_allclose(change[1:], 0, atol=1e-9)


@pytest.mark.parametrize("kind", ["collinear", "constant", "missing", "unseen", "huge", "slip", "many"])
def test_odd_covariates_and_values_cost_little(kind: str) -> None:
    known, rng = promotions(), np.random.default_rng(4)
    mean, values = sales(known)
    plain, more = loss(law(values, known), values[COUNT:]), known
    if kind == "collinear":
        more = np.concatenate([known, known @ [[1.0], [2.0]], known], 1)
    elif kind == "constant":
        more = np.concatenate([known, np.full((ROWS, 1), 7.0)], 1)
    elif kind == "unseen":  # a word that comes in the horizon alone
        more = np.concatenate([known, (np.arange(ROWS) == COUNT + 1)[:, None]], 1)
    elif kind == "huge":
        more = known * 1e9
    elif kind == "many":
        more = np.concatenate([known, rng.normal(size=(ROWS, 30))], 1)
    read = values.copy()
    read[:COUNT][{"missing": np.arange(COUNT) % 4 == 1, "slip": np.arange(COUNT) == 40}.get(kind, False)] = (
        np.nan if kind == "missing" else 900.0
    )
    found = law(read, more)
    assert np.isfinite(found).all()
    assert (np.diff(found, axis=-1) >= 0).all()
    assert loss(found, values[COUNT:]) < {"many": 2.0}.get(kind, 1.15) * plain
    assert np.abs(found[:, MEDIAN] - mean[COUNT:]).max() < 6


def test_a_rare_promotion_is_no_slip_of_the_pen() -> None:
    known = np.zeros((ROWS, 1))
    known[[30, COUNT + 2]] = 1.0
    values = 50 + 200 * known[:, 0] + np.random.default_rng(5).normal(0, 1, ROWS)
    one = series(values[:COUNT], known=known)
    bank = Bank(panel(one), HORIZON, [REAL])
    assert set(bank.moved(0, COUNT)) == {30}
    found = bank.quantiles(REGRESSION, [(0, COUNT)])[0]
    assert found[2, MEDIAN] == pytest.approx(250, abs=5)
    assert found[1, MEDIAN] == pytest.approx(50, abs=2)


def test_a_season_that_covariates_hide_shows_in_what_they_leave() -> None:
    known, place = promotions(), np.arange(ROWS)
    values = 50 + 40 * known[:, 0] + 5 * np.sin(place * np.pi / 6) + np.random.default_rng(6).normal(0, 1, ROWS)
    mean = 50 + 40 * known[:, 0] + 5 * np.sin(place * np.pi / 6)
    found = law(values, known, suggested=12)[:, MEDIAN]
    assert np.abs(found - mean[COUNT:]).mean() < 1.2
    assert np.abs(law(values, known)[:, MEDIAN] - mean[COUNT:]).mean() > 2


def test_why_it_is_left_out() -> None:
    known = promotions()
    values = sales(known)[1][:COUNT]
    told = {
        NO_COVARIATES: (values, known[:, :0]),
        "covariates do not reach the horizon": (values, known[: COUNT + 1]),
        "the history is too short": (np.where(np.arange(COUNT) < 70, np.nan, values), known),
        "no covariate has changed yet": (values, np.ones((ROWS, 2))),
        "": (values, known),
    }
    for why, (observed, rows) in told.items():
        history = History(values=values, seasons=(), observed=observed, known=rows)
        assert left_out(REGRESSION, history, HORIZON) == why
    assert left_out(REGRESSION, History(values=values, seasons=())) == NO_COVARIATES
    assert np.isnan(law(values, None)).all()


# In the pool


def fitted(known: np.ndarray, values: np.ndarray, **settings: Any) -> Forecaster:
    more: dict[str, Any] = {"horizon": HORIZON, "effort": "quick"} | settings
    return Forecaster(**more).fit(panel(series(values[:COUNT], known=known)))


def test_the_pool_learns_to_trust_it_and_reads_other_plans() -> None:
    known = promotions()
    mean, values = sales(known)
    forecaster = fitted(known, values, laws="seasonal-naive,AutoETS,regression")
    found = forecaster.predict(samples=20)
    assert isinstance(found, StackedForecast)
    told = forecaster.stacked.composition(found)
    assert told.weights[REGRESSION] > 0.8
    assert np.abs(found.median[0] - mean[COUNT:]).max() < 3
    other = known.copy()
    other[COUNT:, 0] = 1 - known[COUNT:, 0]
    changed = forecaster.predict(panel(series(values[:COUNT], known=other)), samples=20)
    np.testing.assert_allclose(changed.median[0] - found.median[0], 12 * (other[COUNT:, 0] - known[COUNT:, 0]), atol=4)


def test_its_calls_hold_all_that_it_reads() -> None:
    """A runner on another machine gets the call alone; other laws carry no covariates."""
    known = promotions()
    calls = []
    bank = Bank(panel(series(sales(known)[1][:COUNT], known=known)), HORIZON, [REAL])
    bank.runner = lambda some, tell: calls.extend(some) or [one.run() for one in some]
    found = bank.quantiles(REGRESSION, [(0, 60), (0, COUNT)])
    bank.quantiles("seasonal naive", [(0, COUNT)])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(calls[0])).run(), found)
    assert np.isfinite(found).all()
    assert calls[1].known is None


def test_covariates_are_told_of_where_nothing_reads_them() -> None:
    known, some = promotions(), "seasonal-naive,AutoTheta"
    values = sales(known)[1]
    reads = fitted(known, values, laws=f"{some},regression")  # no warning
    assert REGRESSION in reads.stacked.names
    with pytest.warns(UserWarning, match=r"known0, known1 are not used: only the network .* left out \(.*\)$"):
        fitted(known, values, laws=some)
    past = panel(series(values[:COUNT], past=known[:COUNT]))
    with pytest.warns(UserWarning, match=r"past0, past1 are not used: .*; name those known in advance by known$"):
        forecaster = Forecaster(horizon=HORIZON, laws=some).fit(past)
    assert forecaster.stacked.no_covariates == NO_COVARIATES
    assert unused_covariates(past, SeriesConfig(horizon=HORIZON)).endswith("--known")
    with pytest.raises(ValueError, match=r"^series.laws must leave regression out: no covariate is known in advance"):
        Forecaster(horizon=HORIZON, laws="regression").fit(past)
