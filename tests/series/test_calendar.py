"""Steps, stamps that follow, features and holidays against pandas and against published dates."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sgfn.series.calendar import common_step, features, following, grid, season_length, typical_gap
from sgfn.series.holidays import UNITED_STATES, easter, holiday_features


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


def test_holidays_on_published_dates() -> None:
    """Office of Personnel Management's list for 2024, and Easter of some years from the Book of Common Prayer."""
    expected = {
        "new_year": "01-01", "king": "01-15", "washington": "02-19", "memorial": "05-27", "juneteenth": "06-19",
        "independence": "07-04", "labor": "09-02", "columbus": "10-14", "veterans": "11-11", "thanksgiving": "11-28",
        "christmas": "12-25",
    }  # fmt: skip
    for name, day in expected.items():
        assert str(UNITED_STATES[name](2024)) == f"2024-{day}"
    for day in ("1969-04-06", "1988-04-03", "2000-04-23", "2008-03-23", "2038-04-25"):
        assert str(easter(int(day[:4]))) == day
    assert UNITED_STATES["king"](1985) is None
    assert str(UNITED_STATES["veterans"](1973)) == "1973-10-22"
    assert str(UNITED_STATES["memorial"](1969)) == "1969-05-30"


def test_federal_holidays_are_those_of_pandas() -> None:
    """Pandas keeps a calendar of the days on which federal holidays are observed, right from 1971 on."""
    from pandas.tseries.holiday import USFederalHolidayCalendar

    stamps = dates("1986-01-01", 365 * 35, "D")
    columns = holiday_features(stamps, "US")
    days = sum(columns[name] for name in columns if name.endswith("+0") and not name.startswith("easter"))
    ours = stamps[((days > 0) & (pd.DatetimeIndex(stamps).dayofweek < 5)) | (columns["kept"] > 0)]
    theirs = USFederalHolidayCalendar().holidays(stamps[0], stamps[-1]).to_numpy().astype("datetime64[ns]")
    np.testing.assert_array_equal(ours, theirs)


def test_neighbours_of_holidays() -> None:
    stamps = dates("2024-12-20", 15, "D")
    columns = holiday_features(stamps, "US")
    assert str(stamps[columns["christmas_-1"] > 0][0])[:10] == "2024-12-24"
    assert str(stamps[columns["new_year_-1"] > 0][0])[:10] == "2024-12-31"  # of the next year's holiday
    with pytest.raises(ValueError, match=r"holidays 'UK' is unknown: choose from US"):
        holiday_features(stamps, "UK")
