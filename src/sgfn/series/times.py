"""Ways in which people write time: ISO dates, quarters, months and weeks, decimal years, epochs, and numbers of steps.

A whole column is read in one way. What is not plain from the cells is told in a notice.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np
import pandas as pd
from jaxtyping import Float64, Int64, Shaped

from sgfn.series.calendar import numbered_stamps
from sgfn.series.date_orders import CLOCKS, Reading, by_form, plain_reading, readings, unclear_row

YEARS = (1678, 2261)
"""Years that time stamps in nanoseconds can hold."""
NAMED_MONTHS = (
    *(form for month in "bB" for form in (f"%{month} %Y", f"%Y %{month}", f"%{month}-%Y", f"%Y-%{month}")),
    *(f"%d{mark}%{month}{mark}%Y{clock}" for month in "bB" for mark in "- /" for clock in CLOCKS),
    *(f"%{month} %d{comma} %Y" for month in "bB" for comma in ("", ",")),
)
"""Jan 2021, 2021-Jan, 04-Jan-2021, 4 January 2021, Jan 4, 2021."""
DATE_LIKE = re.compile(r"\d{1,4}([./-])\s?([^\W\d]{3,9}|\d{1,2})\1\s?\d{2,4}\b|\d{1,2}\.? [^\W\d]{3,9}\.? \d{4}\b")
"""Cells that somebody meant as dates, whether they can be read or not."""
EPOCHS = {"s": (1e8, 1e11), "ms": (1e11, 1e14), "us": (1e14, 1e17), "ns": (1e17, 9.2e18)}
"""Size of numbers that count from 1970 in each unit: from 1973 on in seconds, later ones in all others."""
UNITS = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
MOST_STEPS = 10**7
"""Largest number that counts steps."""
LABELS = {
    "quarter": re.compile(r"(?P<year>\d{4})[\s-]?[qQ](?P<part>[1-4])|[qQ](?P<first>[1-4])[\s/-]?(?P<last>\d{4})"),
    "month": re.compile(r"(?P<year>\d{4})[\s-]?[mM](?P<part>\d{1,2})"),
    "week": re.compile(r"(?P<year>\d{4})[\s-]?[wW](?P<part>\d{1,2})"),
}
"""1998Q1, 1998-Q1, Q1 1998; 1998M01; 1998W07 and 1998-W07."""
SHORT_YEAR = re.compile(r"(?P<month>[A-Za-z]{3,9})[-' ]+(?P<year>\d{2})")
"""Jan-19 and Jan '19, as spreadsheets write months."""


@dataclass(frozen=True, kw_only=True)
class Times:
    """Stamps of each row, and what should be said of them."""

    stamps: Shaped[np.ndarray, " R"]
    notice: str = ""


def labelled_times(text: pd.Series) -> Times | None:
    """Times of a column of labels or numbers; None where it is neither, and where ISO 8601 reads it.

    >>> labelled_times(pd.Series(["1998Q1", "1998Q2"])).stamps.astype("datetime64[M]").tolist()
    [datetime.date(1998, 1, 1), datetime.date(1998, 4, 1)]
    """
    for kind, pattern in LABELS.items():
        if text.str.fullmatch(pattern).all():
            return Times(stamps=np.array([_day(kind, pattern, cell) for cell in text], dtype="datetime64[ns]"))
    if text.str.fullmatch(SHORT_YEAR).all():
        return short_years(text)
    if dated := readings(text):
        return ordered_times(text, dated)
    numbers = pd.to_numeric(text, errors="coerce").to_numpy(dtype=np.float64)
    if np.isnan(numbers).any():
        return None
    if text.str.fullmatch(r"[+-]?\d+").all():
        return whole_times(np.array([int(cell) for cell in text], dtype=object))
    return decimal_times(numbers)


def _day(kind: str, pattern: re.Pattern[str], cell: str) -> np.datetime64:
    """First day of a labelled quarter, month or week; NaT where there is no such month or week."""
    found = pattern.fullmatch(cell)
    assert found is not None
    parts = found.groupdict()
    year, part = int(parts["year"] or parts["last"]), int(parts["part"] or parts["first"])
    try:
        if kind == "week":
            return np.datetime64(date.fromisocalendar(year, part, 1), "ns")
        return np.datetime64(date(year, part if kind == "month" else 3 * part - 2, 1), "ns")
    except ValueError:
        return np.datetime64("NaT", "ns")


def short_years(text: pd.Series) -> Times | None:
    """Times of months with years of two digits; None where the digits may be days: months do not go on year by year.

    >>> short_years(pd.Series(["Dec-98", "Jan-99"])).stamps.astype("datetime64[M]").tolist()
    [datetime.date(1998, 12, 1), datetime.date(1999, 1, 1)]
    >>> short_years(pd.Series(["Jan-30", "Jan-31", "Feb-01"])) is None
    True
    """
    cells = text.str.replace(SHORT_YEAR, lambda cell: f"{cell['month'][:3]} {cell['year']}", regex=True)
    stamps = pd.to_datetime(cells, format="%b %y", errors="coerce")
    order = np.diff(stamps.to_numpy().astype("datetime64[M]").astype(np.int64))
    if stamps.isna().any() or stamps.dt.month.nunique() == 1 or not ((order >= 0).all() or (order <= 0).all()):
        return None
    told = f"months such as {text.iloc[0]} are read as {stamps.iloc[0]:%B %Y}"
    return Times(stamps=stamps.to_numpy().astype("datetime64[ns]"), notice=told)


def whole_times(numbers: Shaped[np.ndarray, " R"]) -> Times | None:
    """Times of whole numbers: year and month, an epoch, or numbers of steps; None for years and days as ISO 8601."""
    low, high = int(numbers.min()), int(numbers.max())
    if YEARS[0] <= low and high <= YEARS[1]:
        return None
    month = numbers % 100
    if YEARS[0] * 100 < low and high < YEARS[1] * 100 + 13 and (month >= 1).all() and (month <= 12).all():
        stamps = [np.datetime64(f"{n // 100:04d}-{n % 100:02d}", "ns") for n in numbers]
        return Times(stamps=np.array(stamps), notice="numbers such as 199801 are read as year and month")
    if YEARS[0] * 10_000 < low and high < (YEARS[1] + 1) * 10_000:
        return None
    for unit, (least, most) in EPOCHS.items():
        if least <= low and high < most:
            stamps = numbers.astype(np.int64).astype(f"datetime64[{unit}]").astype("datetime64[ns]")
            return Times(stamps=stamps, notice=f"numbers are read as {UNITS[unit]} since 1970 in universal time")
    return step_times(numbers.astype(np.int64)) if max(-low, high) <= MOST_STEPS else None


def step_times(numbers: Int64[np.ndarray, " R"]) -> Times:
    """Times of numbers of steps, which know no calendar."""
    told = "numbers are read as numbers of steps, without weekdays, years or seasons; --season tells of a season"
    return Times(stamps=numbered_stamps(numbers), notice=told)


def decimal_times(years: Float64[np.ndarray, " R"]) -> Times | None:
    """Times of years with a fraction, as R writes them (1956.25), on whole months; None for anything else."""
    months = years * 12
    whole = np.round(months)
    if years.min() < YEARS[0] or years.max() >= YEARS[1] + 1 or np.abs(months - whole).max() > 0.02:
        return None
    stamps = (whole.astype(np.int64) - 1970 * 12).astype("datetime64[M]").astype("datetime64[ns]")
    return Times(stamps=stamps, notice="numbers such as 1956.25 are read as years with months")


def parse_times(text: pd.Series) -> pd.Series:
    """ISO 8601, dates in numbers whose order the column itself makes plain, or named months; NaT where none fits.

    A form that fits more than half of the cells is taken, so that the others are the ones that are wrong.
    """
    found = pd.to_datetime(text, format="ISO8601", errors="coerce", utc=True)
    if not found.isna().all():
        return found
    if every := readings(text):
        plain = plain_reading(every)
        return found if plain is None else plain.stamps
    named = [fit for form in NAMED_MONTHS if (fit := by_form(text, form)) is not None]
    best = max(named, key=lambda one: int(one.notna().sum()), default=found)
    return best if best.notna().mean() > 0.5 else found


def ordered_times(text: pd.Series, every: Sequence[Reading]) -> Times | None:
    """Times of dates whose order the whole column makes plain; None where it does not, or where cells are no dates.

    >>> dates = pd.Series(["30/01/24", "31/01/24", "01/02/24"])
    >>> ordered_times(dates, readings(dates)).notice
    'dates such as 30/01/24 are read as 30 January 2024 (day/month/year)'
    """
    plain = plain_reading(every)
    if plain is None or not plain.whole:
        return None
    stamps = plain.stamps.dt.tz_localize(None).to_numpy().astype("datetime64[ns]")
    if sum(one.whole for one in every) == 1 and not plain.short_year:
        return Times(stamps=stamps)
    told = f"dates such as {text.iloc[0]} are read as {in_full(plain, 0)} ({plain.order})"
    return Times(stamps=stamps, notice=told)


def in_full(reading: Reading, row: int) -> str:
    """A row's date with the month in words, in a reading of its column."""
    day = reading.stamps.iloc[row]
    return f"{day.day} {day:%B %Y}"


def either(cell: str, row: int, every: Sequence[Reading]) -> str:
    """What to say of a cell that is a date in two orders or more, and is not plain from its column."""
    meant = " or ".join(f"{in_full(one, row)} ({one.order})" for one in every if one.stamps.notna().iloc[row])
    return f"{cell[:40]!r} may be {meant}; write all dates as 2024-01-31"


def looks_like_dates(text: pd.Series) -> bool:
    """Whether most cells of a column that are not empty look like dates, in whatever order.

    >>> looks_like_dates(pd.Series(["31.01.24", "", "28.02.24"])), looks_like_dates(pd.Series(["red", "1.5"]))
    (True, False)
    """
    given = text[text != ""]
    return bool(len(given)) and float(given.str.match(DATE_LIKE).mean()) > 0.5


def told_row(wrong: int, column: pd.Series) -> int:
    """The row to speak of where that one is no time: where an order is not plain, one whose readings differ."""
    text = str(column.iloc[wrong])
    row = unclear_row(readings(column)) if text and text != "NaT" else None
    return wrong if row is None else row


def not_a_time(row: int, column: pd.Series) -> str:
    """What to say of a cell that should be a time."""
    text = str(column.iloc[row])
    if not text or text == "NaT":
        return "the time stamp is empty; fill it in or remove the row"
    every = readings(column)
    if len(every) > 1 and plain_reading(every) is None and any(one.stamps.notna().iloc[row] for one in every):
        return either(text, row, every)
    ways = "2024-01-31, 2024-01-31 13:45, 2024Q1 or 2024M01"
    though = ", though it looks like a date" if looks_like_dates(pd.Series([text])) else ""
    return f"{text[:40]!r} is not a time stamp{though}; write {ways} (years {YEARS[0]} to {YEARS[1]})"


def without_offsets(universal: pd.Series, local: pd.Series) -> Times:
    """Times without offsets: local where all have one offset or one time of day, else universal; with a notice."""
    there, offset = local.to_numpy().astype("datetime64[ns]"), local - universal.dt.tz_localize(None)
    if not offset.any():
        return Times(stamps=there)
    if offset.nunique() == 1 or local.dt.time.nunique() == 1:
        return Times(stamps=there, notice="offsets from universal time are left out; stamps are local time")
    return Times(
        stamps=universal.dt.tz_localize(None).to_numpy().astype("datetime64[ns]"),
        notice="offsets from universal time differ; stamps are read, and written, in universal time",
    )


# Steps that a user names


FREQUENCIES = {"min": "min", "h": "h", "H": "h", "D": "D", "W": "W", "B": "B"}
MONTHS = {"M": 1, "MS": 1, "ME": 1, "Q": 3, "QS": 3, "QE": 3, "A": 12, "Y": 12, "YS": 12, "YE": 12}
FREQUENCY = re.compile(r"(\d*)([A-Za-z]+)")
MONDAY = np.datetime64("1970-01-05", "ns")


def step_named(freq: str) -> np.timedelta64 | None:
    """The step of a frequency such as D, 30min, h, W, M, Q or Y; None for B, whose stamps have no even step.

    >>> [str(step_named(freq)) for freq in ("30min", "Q", "W")]
    ['1800000000000 nanoseconds', '3 months', '604800000000000 nanoseconds']
    """
    found = FREQUENCY.fullmatch(freq)
    count, unit = (int(found[1] or 1), found[2]) if found else (0, "")
    if count < 1 or (unit not in FREQUENCIES and unit not in MONTHS):
        raise ValueError(f"freq {freq!r} is unknown: write one of 30min, h, D, B, W, M, Q or Y")
    if unit in MONTHS:
        return np.timedelta64(count * MONTHS[unit], "M")
    if unit == "B":
        return None
    days = {"W": 7 * 86_400, "D": 86_400, "h": 3_600, "H": 3_600, "min": 60}
    return np.timedelta64(count * days[unit] * 10**9, "ns")


def snapped(stamps: Shaped[np.ndarray, " R"], freq: str) -> Shaped[np.ndarray, " R"]:
    """Stamps at the beginning of their steps: of the day, the week from Monday, the month, the quarter, the year."""
    step = step_named(freq)
    if step is None:
        return stamps.astype("datetime64[D]").astype("datetime64[ns]")
    if np.datetime_data(step)[0] == "M":
        months = int(step.astype(np.int64))
        number = stamps.astype("datetime64[M]").astype(np.int64) // months * months
        return number.astype("datetime64[M]").astype("datetime64[ns]")
    return stamps - (stamps - MONDAY) % step
