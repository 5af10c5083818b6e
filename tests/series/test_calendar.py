"""Steps, stamps that follow and features against pandas."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sgfn.series.calendar import common_step, features, following, grid, season_length, typical_gap


def dates(start: str, count: int, freq: str) -> np.ndarray:
    return pd.date_range(start, periods=count, freq=freq).to_numpy().astype("datetime64[ns]")


@pytest.mark.parametrize("freq", ["5min", "h", "D", "W", "MS", "ME", "QS", "QE", "YS", "YE"])
def test_following_stamps_are_those_of_pandas(freq: str) -> None:
    stamps = dates("2019-01-30", 40, freq)
    step = common_step([stamps[:30]])
    assert step is not None
    np.testing.assert_array_equal(following(stamps[:30], step, 10), stamps[30:])
    np.testing.assert_array_equal(grid(stamps[[0, 3, 39]], step), stamps)
    wrong = following(stamps[:30], step, 11)
    assert not np.array_equal(wrong[:10], stamps[29:39])


@pytest.mark.parametrize(
    ("stamps", "then"),
    [
        (["2019-01-15", "2019-03-15", "2019-05-15"], ["2019-07-15", "2019-09-15", "2019-11-15"]),  # months of 31 days
        (["2019-02-28", "2019-03-28", "2019-04-28"], ["2019-05-28", "2019-06-28", "2019-07-28"]),
        (["2019-02-28", "2019-03-31", "2019-04-30"], ["2019-05-31", "2019-06-30", "2019-07-31"]),
        (["2019-01-30", "2019-02-27", "2019-03-30"], ["2019-04-29", "2019-05-30", "2019-06-29"]),  # last but one
        (["2021-02-28", "2022-02-28", "2023-02-28"], ["2024-02-29", "2025-02-28", "2026-02-28"]),
        (["2019-01-31T13", "2019-02-28T13", "2019-03-31T13"], ["2019-04-30T13", "2019-05-31T13", "2019-06-30T13"]),
    ],
)  # fmt: skip
def test_days_and_ends_of_months(stamps: list[str], then: list[str]) -> None:
    """One day of the month goes on as that day; the end of the month, with its time of day, as the end."""
    seen, wanted = (np.array(one, dtype="datetime64[ns]") for one in (stamps, then))
    step = common_step([seen])
    assert step is not None
    np.testing.assert_array_equal(following(seen, step, 3), wanted)
    np.testing.assert_array_equal(grid(seen, step), seen)
    np.testing.assert_array_equal(
        grid(np.concatenate([seen, wanted])[[0, 1, 2, 5]], step), np.concatenate([seen, wanted])
    )
    assert not np.array_equal(following(seen[:2], step, 3), wanted)


def test_following_stamps_of_weekdays_and_of_irregular_series() -> None:
    """Prices of a market go on from Friday to Monday; other irregular stamps by the median gap."""
    weekdays = dates("2024-01-01", 30, "B")
    assert common_step([weekdays]) is None
    np.testing.assert_array_equal(following(weekdays[:25], None, 5), weekdays[25:])
    minutes = np.datetime64("2024-01-01", "ns") + np.array([0, 5, 9, 14, 19]) * np.timedelta64(1, "m")
    assert common_step([minutes]) is None
    np.testing.assert_array_equal(following(minutes, None, 2) - minutes[-1], np.array([5, 10]) * np.timedelta64(1, "m"))


def test_steps_of_several_series() -> None:
    """One step for all, wherever each begins; none when one of them lacks most of its grid."""
    daily, later = dates("2024-01-01", 20, "D"), dates("2024-03-05", 9, "D")
    assert common_step([daily, later[[0, 1, 2, 5]]]) == np.timedelta64(1, "D")
    assert common_step([daily, dates("2024-01-01", 9, "W")]) is None
    assert common_step([daily[:1]]) is None


@given(st.integers(1, 40), st.integers(2, 50))
def test_a_regular_series_has_its_step(minutes: int, count: int) -> None:
    stamps = dates("2024-05-05 03:07", count, f"{minutes}min")
    assert common_step([stamps]) == np.timedelta64(minutes, "m")
    assert typical_gap(stamps, None) == np.timedelta64(minutes, "m")


def test_seasons() -> None:
    assert season_length(np.timedelta64(15, "m")) == 96
    assert season_length(np.timedelta64(365, "D")) == 1
    assert season_length(typical_gap(dates("2020", 9, "MS"), np.timedelta64(1, "M"))) == 12
    assert season_length(typical_gap(dates("2020", 9, "QS"), np.timedelta64(3, "M"))) == 4


# Features


def test_features_fit_the_step() -> None:
    hourly, names = features(dates("2024-01-01", 48, "h"), np.timedelta64(1, "h"))
    assert hourly.shape == (48, len(names))
    assert any(name.startswith("day_") for name in names)
    np.testing.assert_allclose(hourly[:24, names.index("day_sin_1")], hourly[24:, names.index("day_sin_1")], atol=1e-12)
    daily, names = features(dates("2024-01-01", 14, "D"), np.timedelta64(1, "D"))
    assert not any(name.startswith("day_") for name in names)
    np.testing.assert_array_equal(daily[:7, names.index("weekday_0") :][:, :7], np.eye(7))  # 1 January 2024: a Monday
    monthly, names = features(dates("2024-01-01", 12, "MS"), np.timedelta64(1, "M"))
    assert all(name.startswith("year_") for name in names)
    assert np.linalg.matrix_rank(monthly) >= 11  # twelve months can be told apart
    yearly, names = features(dates("2000-01-01", 4, "YS"), np.timedelta64(12, "M"))
    assert (yearly.shape, names) == ((4, 0), ())
