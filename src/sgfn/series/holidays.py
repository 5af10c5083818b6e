"""Public holidays of any country, by the package `holidays`, as indicators of days.

A country's holidays are told apart by their English names. Days off that bear no such name (kept on a weekday because
the holiday fell on a weekend, moved, or declared once) share one indicator.
"""

import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Shaped

from sgfn.config.series import check_country, holiday_package

REACH = 2
"""Days before and after a holiday that have indicators of their own."""
NAMED = (1960, 2041)
"""Years in two of which at least a holiday must be kept to be told apart by name; the same for all data, so that a
forecaster reads the same columns whichever years it is given."""
ESTIMATED = re.compile(r"\s*\((?:observed, )?estimated\)$")
"""What the package adds to the name of a holiday whose day is not announced yet."""

Days = Shaped[np.ndarray, " _"]
NO_DAYS: np.ndarray = np.array([], dtype="datetime64[D]")


@dataclass(frozen=True, kw_only=True)
class Calendar:
    """Days off of a country over some years."""

    named: dict[str, Days]
    """The days of each holiday by name, on the day that it falls on."""
    off: Days
    """All days off, also those that are kept on another day than the holiday falls on."""


def holiday_features(stamps: Shaped[np.ndarray, " N"], country: str) -> dict[str, np.ndarray]:
    """An indicator per holiday and day from two days before it to two after, and one of days off without a name."""
    check_country("holidays", country)
    days = stamps.astype("datetime64[D]")
    years = days.astype("datetime64[Y]").astype(np.int64) + 1970
    calendar = calendar_of(country, int(years.min()) - 1, int(years.max()) + 2)
    columns: dict[str, np.ndarray] = {}
    named = {name: calendar.named.get(name, NO_DAYS) for name in holiday_names(country)}
    for name, dates in named.items():
        for offset in range(-REACH, REACH + 1):
            columns[f"holiday_{name}_{offset:+d}"] = np.isin(days, dates + offset).astype(np.float64)
    kept = np.setdiff1d(calendar.off, np.concatenate([NO_DAYS, *named.values()]))
    columns["holiday_kept"] = np.isin(days, kept).astype(np.float64)
    return columns


@cache
def holiday_names(country: str) -> tuple[str, ...]:
    """Names of a country's holidays that come again, in the order of the year.

    >>> holiday_names("US")[:3]
    ('new_years_day', 'martin_luther_king_jr_day', 'washingtons_birthday')
    """
    named = calendar_of(country, *NAMED).named
    again = {name: days for name, days in named.items() if len(np.unique(days.astype("datetime64[Y]"))) > 1}
    return tuple(sorted(again, key=lambda name: day_of_year(again[name])))


def day_of_year(days: Days) -> float:
    """Mean day of the year."""
    return float(np.mean((days - days.astype("datetime64[Y]")).astype(np.int64)))


@cache
def calendar_of(country: str, first: int, past: int) -> Calendar:
    """Holidays and days off in the years [first, past)."""
    falling, kept = (package_days(country, first, past, observed=observed) for observed in (False, True))
    named: dict[str, list[date]] = {}
    for day in falling:
        for name in falling.get_list(day):
            named.setdefault(as_column(name), []).append(day)
    found = Calendar(
        named={name: as_days(days) for name, days in named.items()}, off=np.union1d(as_days(falling), as_days(kept))
    )
    return with_easter_and_early_days(found, first, past) if falling.country == "US" else found


def package_days(country: str, first: int, past: int, *, observed: bool) -> Any:
    """The package's mapping from days to names, in English where it has that, within the years that it knows."""
    package = holiday_package("holidays")
    known = package.country_holidays(country)
    years = range(max(first, known.start_year), min(past, known.end_year + 1))
    language = "en_US" if "en_US" in known.supported_languages else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # `unknown_years` tells of them, and of the data's years alone
        return package.country_holidays(country, years=years, observed=observed, language=language)


def unknown_years(country: str, first: int, past: int) -> str:
    """Which of the years [first, past) the package knows no, or not all, holidays of; empty where it knows them all.

    >>> unknown_years("IN", 1990, 2000), unknown_years("IN", 2010, 2020)
    ('holidays IN of 1990 to 1999 are not all known', '')
    """
    package = holiday_package("holidays")
    known = package.country_holidays(country)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for year in range(first, past):
            package.country_holidays(country, years=year)
    whole = known.start_year <= first and past - 1 <= known.end_year and not told
    return "" if whole else f"holidays {country} of {first} to {past - 1} are not all known"


def with_easter_and_early_days(calendar: Calendar, first: int, past: int) -> Calendar:
    """The calendar of the United States with Easter Sunday, and with days kept before 1971.

    Easter is no public holiday there, so the package has none, nor a day beside it. Before 1971 the package knows no
    days kept, although federal offices kept Sunday's holidays on Monday (Executive Order 10358 of 1952) and Saturday's
    on Friday (Public Law 86-362 of 1959).
    """
    sundays = as_days((pd.Timestamp(year, 1, 1) + pd.offsets.Easter()).date() for year in range(first, past))
    early = np.concatenate([days[days < np.datetime64("1971-01-01")] for days in calendar.named.values()])
    off = np.union1d(calendar.off, np.concatenate([moved_from_weekend(early), sundays]))
    return Calendar(named={**calendar.named, "easter_sunday": sundays}, off=off)


def moved_from_weekend(days: Days) -> Days:
    """The Friday before each day that is a Saturday, the Monday after each that is a Sunday."""
    weekday = (days.astype(np.int64) + 3) % 7
    return np.concatenate([days[weekday == 5] - 1, days[weekday == 6] + 1])


def as_days(days: Iterable[date]) -> Days:
    """Dates as an array in order."""
    return np.array(sorted(days), dtype="datetime64[D]")


def as_column(name: str) -> str:
    """The name of a holiday as part of a column's name.

    >>> as_column("New Year's Day"), as_column("Eid al-Fitr (estimated)")
    ('new_years_day', 'eid_al_fitr')
    """
    return re.sub(r"\W+", "_", ESTIMATED.sub("", name).lower().replace("'", "").replace("\u2019", "")).strip("_")
