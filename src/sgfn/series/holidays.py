"""Public holidays computed by rule, so that no table has to be fetched or renewed."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Shaped

from sgfn.config.checks import one_of

REACH = 2
"""Days before and after a holiday that have indicators of their own."""

Day = np.datetime64
Rule = Callable[[int], Day | None]


# Rules


def date(year: int, month: int, day: int) -> Day:
    """A fixed date."""
    return np.datetime64(f"{year:04d}-{month:02d}-{day:02d}", "D")


def nth(year: int, month: int, weekday: str, count: int) -> Day:
    """The count-th weekday of a month.

    >>> nth(2024, 11, "Thu", 4)
    np.datetime64('2024-11-28')
    """
    return np.busday_offset(date(year, month, 1), count - 1, roll="forward", weekmask=weekday)


def last(year: int, month: int, weekday: str) -> Day:
    """The last weekday of a month.

    >>> last(2024, 5, "Mon")
    np.datetime64('2024-05-27')
    """
    end = (np.datetime64(f"{year:04d}-{month:02d}", "M") + 1).astype("datetime64[D]") - 1
    return np.busday_offset(end, 0, roll="backward", weekmask=weekday)


def easter(year: int) -> Day:
    """Easter Sunday of the Gregorian calendar (the anonymous rule of 1876, Nature 13:487).

    >>> easter(2024)
    np.datetime64('2024-03-31')
    """
    golden, century, rest = year % 19, year // 100, year % 100
    moved = (century - (century + 8) // 25 + 1) // 3
    epact = (19 * golden + century - century // 4 - moved + 15) % 30
    weekday = (32 + 2 * (century % 4) + 2 * (rest // 4) - epact - rest % 4) % 7
    late = (golden + 11 * epact + 22 * weekday) // 451
    month, day = divmod(epact + weekday - 7 * late + 114, 31)
    return date(year, month, day + 1)


def veterans_day(year: int) -> Day:
    """11 November; the fourth Monday of October from 1971 to 1977."""
    return nth(year, 10, "Mon", 4) if 1971 <= year <= 1977 else date(year, 11, 11)


# From 1971 the Uniform Monday Holiday Act moved three of them.
UNITED_STATES: dict[str, Rule] = {
    "new_year": lambda year: date(year, 1, 1),
    "king": lambda year: nth(year, 1, "Mon", 3) if year >= 1986 else None,
    "washington": lambda year: nth(year, 2, "Mon", 3) if year >= 1971 else date(year, 2, 22),
    "easter": easter,
    "memorial": lambda year: last(year, 5, "Mon") if year >= 1971 else date(year, 5, 30),
    "juneteenth": lambda year: date(year, 6, 19) if year >= 2021 else None,
    "independence": lambda year: date(year, 7, 4),
    "labor": lambda year: nth(year, 9, "Mon", 1),
    "columbus": lambda year: nth(year, 10, "Mon", 2) if year >= 1971 else date(year, 10, 12),
    "veterans": veterans_day,
    "thanksgiving": lambda year: nth(year, 11, "Thu", 4),
    "christmas": lambda year: date(year, 12, 25),
}
HOLIDAYS: dict[str, dict[str, Rule]] = {"US": UNITED_STATES}


# Indicators


def dates_of(rule: Rule, first: int, past: int) -> Shaped[np.ndarray, " Y"]:
    """The days a rule gives in the years [first, past)."""
    days = [day for year in range(first, past) if (day := rule(year)) is not None]
    return np.array(days, dtype="datetime64[D]")


def kept_on(days: Shaped[np.ndarray, " Y"]) -> Shaped[np.ndarray, " Z"]:
    """Weekdays on which holidays of a weekend are kept: the Friday before a Saturday, the Monday after a Sunday."""
    weekday = (days.astype(np.int64) + 3) % 7
    return np.concatenate([days[weekday == 5] - 1, days[weekday == 6] + 1])


def holiday_features(stamps: Shaped[np.ndarray, " N"], country: str) -> dict[str, np.ndarray]:
    """An indicator per holiday and day from two days before it to two after, and one of weekdays kept instead."""
    one_of("holidays", country, HOLIDAYS)
    days = stamps.astype("datetime64[D]")
    years = days.astype("datetime64[Y]").astype(np.int64) + 1970
    columns: dict[str, np.ndarray] = {}
    kept: list[np.ndarray] = []
    for name, rule in HOLIDAYS[country].items():
        dates = dates_of(rule, int(years.min()) - 1, int(years.max()) + 2)
        kept += [kept_on(dates)] if name != "easter" else []
        for offset in range(-REACH, REACH + 1):
            columns[f"{name}_{offset:+d}"] = np.isin(days, dates + offset).astype(np.float64)
    columns["kept"] = np.isin(days, np.concatenate(kept)).astype(np.float64)
    return columns
