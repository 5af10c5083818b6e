"""Values that stand apart from all others: which they are, what laws read instead, and that nothing else is moved."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_panels import panel, series

from sgfn.series.bank import Bank
from sgfn.series.classical import filled, forecasts
from sgfn.series.outliers import departures, moved, with_moved
from sgfn.series.supports import REAL

HORIZON = 4


def waves(count: int = 72, season: int = 12, noise: float = 0.5) -> np.ndarray:
    wave = 50 + 10 * np.sin(np.arange(count) * 2 * np.pi / season)
    return wave + np.random.default_rng(3).normal(0, noise, count)


def spoiled(at: int, value: float) -> np.ndarray:
    values = waves()
    values[at] = value
    return values


@pytest.mark.parametrize("at", [-1, -2, -3, 40])
@pytest.mark.parametrize("value", [500.0, -200.0])
def test_one_wrong_value_is_moved_near_to_what_it_was(at: int, value: float) -> None:
    values = spoiled(at, value)
    found = moved(values, (12,))
    assert list(found) == [at % len(values)]
    true, read = waves()[at], with_moved(values, found)[at]
    assert abs(read - true) < 0.05 * abs(value - true)
    others = np.arange(len(values)) != at % len(values)
    np.testing.assert_array_equal(with_moved(values, found)[others], values[others])


def test_a_break_of_level_is_followed_once_a_second_value_confirms_it() -> None:
    values = waves(noise=0.5)
    values[-2:] += 500
    assert list(moved(values[:-1], (12,))) == [70]
    assert moved(values, (12,)) == {}


def test_a_peak_of_every_season_is_none() -> None:
    values = np.random.default_rng(0).normal(10, 0.3, 80)
    values[3::12] += 60
    assert moved(values, (12,)) == {}
    assert moved(values[:76], (12,)) == {}  # ends in a peak
    assert moved(np.delete(values, slice(10, 70)), ()) == {}  # too short to say


@pytest.mark.parametrize("law", ["normal", "t", "walk", "growth", "counts"])
def test_hardly_any_value_of_ordinary_series_stands_apart(law: str) -> None:
    rng, found = np.random.default_rng(0), 0
    for _ in range(100):
        noise = rng.normal(size=80)
        draws = {
            "normal": noise,
            "t": rng.standard_t(3, 80),
            "walk": noise.cumsum(),
            "growth": np.exp(0.05 * np.arange(80) + 0.1 * noise),
            "counts": rng.poisson(3.0, 80).astype(float),
        }
        found += bool(moved(draws[law]))
    assert found <= (6 if law == "t" else 1)


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60),
    st.lists(st.integers(1, 30), max_size=2),
    st.floats(0.5, 4.0),
    st.floats(-100.0, 100.0),
)
def test_departures_are_finite_and_follow_a_change_of_units(
    values: list[float], seasons: list[int], factor: float, shift: float
) -> None:
    given_values = np.array(values)
    found = departures(given_values, seasons)
    assert np.isfinite(found).all()
    assert len(found) == len(values)
    scaled = departures(factor * given_values + shift, seasons)
    np.testing.assert_allclose(np.abs(scaled), factor * np.abs(found), atol=1e-6 * (1 + np.abs(given_values).max()))
    assert all(np.isfinite(list(moved(given_values, seasons).values())))


def test_laws_read_what_was_moved_before_their_cut_alone() -> None:
    """A wrong last value misleads seasonal naive and the others where it is not moved."""
    values = spoiled(-1, 500.0)
    bank = Bank(panel(series(values)), HORIZON, [REAL], season=12)
    assert bank.moved(0, 71) == {}
    assert list(bank.moved(0, 72)) == [71]
    true = forecasts("seasonal naive", waves(), [72], HORIZON, [()])[0]
    ours = bank.quantiles("seasonal naive", [(0, 72)])[0]
    plain = forecasts("seasonal naive", values, [72], HORIZON, [()])[0]
    assert np.abs(plain - true).mean() > 300
    assert bank.history((0, 72)).values.max() < 80
    assert np.abs(ours).max() < 100
    read = bank.as_read([(0, 72), (0, 71)])
    assert read.series[0].values[-1] < 80
    assert read.series[1].values[-1] == 500.0


def test_intermittent_series_have_none() -> None:
    values = np.zeros(60)
    values[[10, 25, 30]] = [1.0, 2.0, 1.0]
    values[-1] = 100.0
    assert moved(values) != {}
    assert Bank(panel(series(values)), HORIZON, [REAL]).moved(0, 60) == {}


def test_rounding_does_not_stand_apart() -> None:
    """A season on a line, without noise: what departs is the last digit of the numbers."""
    months = np.arange(90)
    values = np.round(100 + months + 20 * np.sin(months * 2 * np.pi / 12), 1)
    assert moved(values, (12,)) == {}
    assert list(moved(np.where(months == 50, 900.0, values), (12,))) == [50]


def test_a_missing_value_beside_one_that_stands_apart_stays_missing() -> None:
    """Gaps are filled for the search, from the slip itself; what was not observed is neither told nor read."""
    values = waves()
    values[40], values[41] = 900.0, np.nan
    bank = Bank(panel(series(values)), HORIZON, [REAL], season=12)
    assert set(moved(filled(values), (12,))) == {40, 41}
    assert set(bank.moved(0, 72)) == {40}
    read = bank.as_read([(0, 72)]).series[0].values
    assert np.flatnonzero(np.isnan(read)).tolist() == [41]
    assert read[40] < 100
