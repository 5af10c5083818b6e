"""Holidays against published dates, pandas, and what the births study was made with."""

import hashlib
import re
import sys

import holidays
import numpy as np
import pandas as pd
import pytest
from pandas.tseries.holiday import USFederalHolidayCalendar

from sgfn.config.series import SeriesConfig, check_country
from sgfn.series.datasets import load
from sgfn.series.holidays import calendar_of, holiday_features, holiday_names, unknown_years
from sgfn.series.panel import Panel, Series
from sgfn.series.plan import unread


def days(start: str, end: str) -> np.ndarray:
    return np.arange(start, end, dtype="datetime64[D]").astype("datetime64[ns]")


def on(columns: dict[str, np.ndarray], name: str, stamps: np.ndarray) -> list[str]:
    return [str(day)[:10] for day in stamps[columns[f"holiday_{name}"] > 0]]


# The United States


def test_holidays_on_published_dates() -> None:
    """Office of Personnel Management's list for 2024, and Easter of some years from the Book of Common Prayer."""
    stamps = days("2024-01-01", "2025-01-01")
    columns = holiday_features(stamps, "US")
    expected = {
        "new_years_day": "01-01", "martin_luther_king_jr_day": "01-15", "washingtons_birthday": "02-19",
        "easter_sunday": "03-31", "memorial_day": "05-27", "juneteenth_national_independence_day": "06-19",
        "independence_day": "07-04", "labor_day": "09-02", "columbus_day": "10-14", "veterans_day": "11-11",
        "thanksgiving_day": "11-28", "christmas_day": "12-25",
    }  # fmt: skip
    assert holiday_names("US") == tuple(expected)
    for name, day in expected.items():
        assert on(columns, f"{name}_+0", stamps) == [f"2024-{day}"]
    sundays = calendar_of("US", 1969, 2039).named["easter_sunday"].astype(str)
    assert {"1969-04-06", "1988-04-03", "2000-04-23", "2008-03-23", "2038-04-25"} <= set(sundays)


def test_neighbours_of_holidays() -> None:
    stamps = days("2024-12-20", "2025-01-04")
    columns = holiday_features(stamps, "US")
    assert on(columns, "christmas_day_-1", stamps) == ["2024-12-24"]
    assert on(columns, "christmas_day_+2", stamps) == ["2024-12-27"]
    assert on(columns, "new_years_day_-1", stamps) == ["2024-12-31"]  # of the next year's holiday


def test_federal_holidays_are_those_of_pandas() -> None:
    """Pandas keeps a calendar of the days on which federal holidays are observed, right from 1971 on."""
    stamps = days("1986-01-01", "2021-01-01")
    columns = holiday_features(stamps, "US")
    holiday = sum(column for name, column in columns.items() if name.endswith("+0") and "easter" not in name)
    ours = stamps[((holiday > 0) & (pd.DatetimeIndex(stamps).dayofweek < 5)) | (columns["holiday_kept"] > 0)]
    theirs = USFederalHolidayCalendar().holidays(stamps[0], stamps[-1]).to_numpy().astype("datetime64[ns]")
    np.testing.assert_array_equal(ours, theirs)


# The births study

BIRTHS = "c71de56402169c821d8dc77464c91958081f713eddf44fd1d0dfe5c39eea4e3a"
"""Of the table of indicators over the data's span that rules written by hand gave, with which the study was made."""


def digest(columns: dict[str, np.ndarray]) -> str:
    table = np.stack(list(columns.values()), axis=1).astype(bool)
    return hashlib.sha256(np.packbits(table).tobytes()).hexdigest()


def test_births_read_the_same_holidays_as_when_the_study_was_made() -> None:
    """61 columns of 20 years, to the bit; a single day more changes it."""
    columns = holiday_features(load("births").series[0].stamps, "US")
    assert np.stack(list(columns.values())).shape == (61, 7305)
    assert digest(columns) == BIRTHS
    columns["holiday_kept"][0] = 1.0
    assert digest(columns) != BIRTHS


def test_what_is_added_to_the_package() -> None:
    """Over the births' span: Easter Sundays, and the four days kept in 1969 and 1970 that the package does not know."""
    calendar = calendar_of("US", 1969, 1989)
    theirs = np.array(sorted(holidays.country_holidays("US", years=range(1969, 1989))), dtype="datetime64[D]")
    added = np.setdiff1d(calendar.off, [*theirs, *calendar.named["easter_sunday"]])
    assert added.astype(str).tolist() == ["1969-02-21", "1969-10-13", "1970-02-23", "1970-05-29"]
    assert len(calendar.named["easter_sunday"]) == 20
    assert np.isin(theirs, calendar.off).all()


# Other countries


def test_names_are_english_and_in_the_order_of_the_year() -> None:
    assert holiday_names("DE")[:4] == ("new_years_day", "good_friday", "easter_monday", "labor_day")
    stamps = days("2024-03-01", "2024-06-01")
    columns = holiday_features(stamps, "DE")
    assert on(columns, "good_friday_+0", stamps) == ["2024-03-29"]
    assert on(columns, "easter_monday_-1", stamps) == ["2024-03-31"]
    assert on(columns, "kept", stamps) == []  # nothing is moved from a weekend
    assert set(holiday_features(stamps[:1], "DE")) == set(columns)  # whatever the years


def test_days_that_are_moved_or_declared_once_share_an_indicator() -> None:
    """A British New Year on a Saturday is kept on Monday; the funeral of 2022 was once."""
    stamps = days("2022-01-01", "2023-01-01")
    columns = holiday_features(stamps, "GB")
    kept = on(columns, "kept", stamps)
    assert {"2022-01-03", "2022-09-19"} <= set(kept)
    assert "2022-01-01" not in kept
    assert on(columns, "new_years_day_+0", stamps) == ["2022-01-01"]
    np.testing.assert_array_equal(list(holiday_features(stamps, "UK").values()), list(columns.values()))


def test_many_countries() -> None:
    """Indicators of zeros and ones under names of their own; no warning of the package gets through."""
    stamps = days("2023-01-01", "2024-01-01")
    codes = list(holidays.list_supported_countries(include_aliases=False))
    assert len(codes) > 200
    found = {code: holiday_features(stamps, code) for code in [*codes[::6], "IN"]}
    check_country("holidays", codes[-1])
    for columns in found.values():
        table = np.stack(list(columns.values()))
        assert np.isin(table, (0.0, 1.0)).all()
        assert all(name.startswith("holiday_") for name in columns)
    assert sum(columns["holiday_kept"].any() for columns in found.values()) > 3


def test_years_that_are_not_all_known_are_told() -> None:
    assert unknown_years("US", 1969, 1989) == ""
    assert unknown_years("QA", 1960, 1980) == "holidays QA of 1960 to 1979 are not all known"
    stamps = days("1990-01-01", "1996-01-01")
    values = np.sin(np.arange(len(stamps)))
    series = Series(
        name="y", stamps=stamps, values=values, known=np.empty((len(stamps), 0)), past=np.empty((len(stamps), 0))
    )
    panel = Panel(series=(series,), step=np.timedelta64(1, "D"), known_names=(), past_names=())
    assert unread(panel, SeriesConfig(holidays="IN")) == ("holidays IN of 1990 to 1995 are not all known",)
    assert unread(panel, SeriesConfig(holidays="US")) == ()


# What is refused


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        ("us", "US"),
        ("US ", "US"),
        ("Germany", "DE"),
        ("Untied States", "US"),
        ("Japn", "JP"),
        ("", None),
    ],
)
def test_unknown_countries(code: str, hint: str | None) -> None:
    wanted = f"series.holidays {code!r} is unknown: write none, or a country's code such as US, DE or JP"
    with pytest.raises(ValueError, match=r"^series\.holidays ") as caught:
        SeriesConfig(holidays=code)
    assert str(caught.value) == wanted + (f"; did you mean {hint!r}?" if hint else "")
    if hint:
        check_country("series.holidays", hint)


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    stamps = days("2024-01-01", "2024-01-09")
    holiday_features(stamps, "US")
    monkeypatch.setitem(sys.modules, "holidays", None)
    wanted = "needs holidays; install it with pip install 'sgfn[holidays]'"
    with pytest.raises(ValueError, match=rf"^series\.holidays {re.escape(wanted)}$"):
        SeriesConfig(holidays="US")
    with pytest.raises(ValueError, match=rf"^holidays {re.escape(wanted)}$"):
        holiday_features(stamps, "US")
    assert SeriesConfig().holidays == "none"
