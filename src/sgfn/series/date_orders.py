"""Dates in numbers whose order of day, month and year only the column as a whole can tell: 31/01/2024, 01/02/24.

Of the orders in which all cells are dates one is plain where rows go on in time under it and go back under the others,
or where the others would leave most of the steps between their dates without a row.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Shaped

Days = Shaped[np.ndarray, " R"]

CLOCKS = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
LAST = {"day{0}month{0}year": "%d{0}%m{0}%Y", "month{0}day{0}year": "%m{0}%d{0}%Y"}
LAST_OF_TWO = {"day{0}month{0}year": "%d{0}%m{0}%y", "month{0}day{0}year": "%m{0}%d{0}%y"}
FIRST_OF_TWO = {"year{0}month{0}day": "%y{0}%m{0}%d"}
NAMED_OF_TWO = {"day{0}Mon{0}year": "%d{0}%b{0}%y", "year{0}Mon{0}day": "%y{0}%b{0}%d"}
KINDS = (
    (re.compile(r"\d{1,2}([./-])\d{1,2}\1\d{4}( .*)?"), LAST),
    (re.compile(r"\d{1,2}([./-])\d{1,2}\1\d\d( .*)?"), LAST_OF_TWO | FIRST_OF_TWO),
    (re.compile(r"\d{1,2}([./ -])[^\W\d]{3}\1\d\d( .*)?"), NAMED_OF_TWO),
)
"""Patterns of cells, and the orders in which they may be read."""
TRIED = 20
"""Cells on which a form is tried before all are read by it."""
MOST = 0.5
"""Share of the cells that an order must read."""
CLEAR = 2
"""How many times as many rows must go back in time in one order as in another for the latter to be plain."""
DAY = np.timedelta64(1, "D")
FEWER = 3
"""How many times as large a share of its steps must have a row."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Reading:
    """A column of dates read in one order."""

    order: str
    """Such as day/month/year."""
    stamps: pd.Series
    """In universal time, NaT where a cell is no date in this order."""
    short_year: bool = False
    """Whether years have two digits: 69 to 99 are 1969 to 1999, others 2000 to 2068."""

    @property
    def days(self) -> Days:
        """Days of the cells that are dates."""
        return self.stamps.dropna().dt.tz_localize(None).to_numpy().astype("datetime64[D]")

    @property
    def whole(self) -> bool:
        """Whether all cells are dates in this order."""
        return bool(self.stamps.notna().all())

    @property
    def lacking(self) -> int:
        """Cells that are no dates in this order."""
        return int(self.stamps.isna().sum())

    @property
    def wrong(self) -> int:
        """Cells that are no dates, and rows that go back in time where most go on, or go on where most go back."""
        steps = np.diff(self.days.astype(np.int64))
        return self.lacking + int(min((steps < 0).sum(), (steps > 0).sum()))

    @property
    def covered(self) -> float:
        """Share of the steps between the first date and the last that have a row, by the least step in days or months.

        By the least step of all, such as an hour, where most rows are one apart.

        >>> days = pd.Series(pd.to_datetime(["2023-01-01", "2023-01-02", "2024-01-01"], utc=True))
        >>> Reading(order="", stamps=days).covered < 0.01
        True
        """
        times = np.unique(self.stamps.dropna().dt.tz_localize(None).to_numpy())
        gaps = np.diff(times)
        if len(gaps) and gaps.min() == np.median(gaps) < DAY:
            return float(len(times) / ((times[-1] - times[0]) / gaps.min() + 1))
        days = np.unique(self.days)
        months = days.astype("datetime64[M]")
        number = days.astype(np.int64)
        if len(set((days - months.astype("datetime64[D]")).tolist())) == 1:  # one day of the month alone
            number = months.astype(np.int64)
        return float(len(days) / ((number[-1] - number[0]) / np.diff(number).min() + 1)) if len(days) > 1 else 1.0

    def beats(self, other: "Reading") -> bool:
        """Whether this order is plain beside another."""
        if CLEAR * min(self.wrong, other.wrong) < max(self.wrong, other.wrong):
            return self.wrong < other.wrong
        return self.covered > FEWER * other.covered


def readings(text: pd.Series) -> list[Reading]:
    """A column in each order in which most cells are dates; none where it holds other things."""
    found = []
    for order, forms in _orders(text):
        fits = [stamps for form in forms if (stamps := by_form(text, form)) is not None]
        best = max(fits, key=lambda one: int(one.notna().sum()), default=None)
        if best is not None and best.notna().mean() > MOST:
            found.append(Reading(order=order, stamps=best, short_year="%y" in forms[0]))
    return found


def _orders(text: pd.Series) -> Iterator[tuple[str, list[str]]]:
    """Orders in which the cells may be read, and the forms of each with their clocks."""
    given = text[text != ""]
    for pattern, orders in KINDS:
        if len(given) and given.iloc[:TRIED].str.fullmatch(pattern).mean() > MOST:
            for mark in dict.fromkeys(given.iloc[:TRIED].str.extract(pattern, expand=True)[0].dropna()):
                for order, form in orders.items():
                    yield order.format(mark), [form.format(mark) + clock for clock in CLOCKS]


def by_form(text: pd.Series, form: str) -> pd.Series | None:
    """Times of cells by one form, NaT where it does not fit; None where it fits none of the first ones."""
    if pd.to_datetime(text.iloc[:TRIED], format=form, errors="coerce", utc=True).isna().all():
        return None
    return pd.to_datetime(text, format=form, errors="coerce", utc=True)


def plain_reading(every: Sequence[Reading]) -> Reading | None:
    """The order that the column makes plain; None where two or more are left.

    Years come first only in dates that no other order reads, or between hyphens, as in ISO 8601; elsewhere rows that go
    on in time with the year first leave it open.
    """
    years_first = [one for one in every if one.order.startswith("year")]
    others = [one for one in every if one not in years_first]
    least = min((one.lacking for one in others), default=0)
    others = [one for one in others if one.lacking == least]
    hyphens = all("-month-" in one.order or one.order.startswith("month-") for one in every)
    if hyphens or not others:
        return _best(others + years_first)
    found = _best(others)
    return None if found is None or any(one.beats(found) for one in years_first) else found


def unclear_row(every: Sequence[Reading]) -> int | None:
    """The first row that is another date in another order; None where the column makes one plain, or there is none."""
    if len(every) < 2 or plain_reading(every) is not None:
        return None
    first, *others = (one.stamps.dt.tz_localize(None).to_numpy() for one in every)
    differs = np.logical_or.reduce([(first != other) & ~np.isnat(first) & ~np.isnat(other) for other in others])
    return int(np.flatnonzero(differs)[0]) if differs.any() else None


def _best(some: Sequence[Reading]) -> Reading | None:
    """The reading that is plain beside all others; None where there is none."""
    fits = [one for one in some if all(one is other or one.beats(other) for other in some)]
    return fits[0] if len(fits) == 1 else None
