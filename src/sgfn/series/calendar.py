"""Time stamps: their common step, the stamps that follow, and features of the calendar that are known in advance.

A step is a fixed `timedelta64`, or whole months (`timedelta64[M]`) for monthly, quarterly and yearly series, or None
when stamps are irregular.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Float64, Shaped
from pandas.tseries.offsets import BaseOffset

from sgfn.series.holidays import holiday_features

DAY = np.timedelta64(86_400_000_000_000, "ns")
YEAR_DAYS = 365.2425
FULL_ENOUGH = 0.5  # of a grid's points must be observed; sparser stamps are irregular
WEEKS_TO_TELL = 3  # of stamps without a weekend before we believe that weekends never come

Stamps = Shaped[np.ndarray, " N"]
NUMBERED = np.timedelta64(60_000_000_001, "ns")
"""Step of stamps that stand for numbers of steps: no clock has it, so that they are told from times everywhere."""
NUMBER_ZERO = np.datetime64("1900-01-01", "ns")
"""Stamp of the number 0."""


# Numbers of steps


def numbered_stamps(numbers: Shaped[np.ndarray, " N"]) -> Stamps:
    """Stamps that stand for numbers of steps."""
    return NUMBER_ZERO + numbers.astype(np.int64) * NUMBERED


def is_numbered(gap: np.timedelta64 | None) -> bool:
    """Whether a step is one of numbered stamps, or some of them."""
    return gap is not None and not in_months(gap) and int((gap % NUMBERED).astype(np.int64)) == 0


def numbers_of(stamps: Shaped[np.ndarray, "*batch"]) -> Shaped[np.ndarray, "*batch"] | None:
    """Numbers that stamps stand for; None where they are times.

    >>> numbers_of(numbered_stamps(np.array([0, 1, 7]))).tolist()
    [0, 1, 7]
    """
    found, rest = np.divmod(stamps - NUMBER_ZERO, NUMBERED)
    return found if stamps.size and not np.isnat(stamps).any() and not rest.astype(np.int64).any() else None


# Steps


def in_months(step: np.timedelta64) -> bool:
    """Whether a step counts months, whose lengths differ."""
    return np.datetime_data(step)[0] in ("M", "Y")


def months_in(step: np.timedelta64) -> int:
    """How many months a step of months or years has."""
    return int(step.astype("timedelta64[M]").astype(np.int64))


def common_step(stamps: Sequence[np.ndarray]) -> np.timedelta64 | None:
    """The step of which every gap in every series is a whole multiple; None if there is none or too much is missing."""
    gaps = np.concatenate([np.diff(one) for one in stamps])
    if len(gaps) == 0 or never_on_weekends(np.concatenate(stamps), gaps):
        return None
    if gaps.min() >= 28 * DAY and (months := common_months(stamps)):
        return np.timedelta64(months, "M")
    step = gaps.min()
    whole = not (gaps % step).astype(np.int64).any()
    full = all(len(one) >= FULL_ENOUGH * ((one[-1] - one[0]) / step + 1) for one in stamps if len(one))
    return step if whole and full else None


def common_months(stamps: Sequence[np.ndarray]) -> int | None:
    """Months between stamps that all lie on one day of the month, or all on its last day; None if they do not."""
    if not all(len(one) == 0 or on_one_day_of_month(one) for one in stamps):
        return None
    months = np.concatenate([np.diff(month_number(one)) for one in stamps])
    step = int(np.gcd.reduce(months))
    full = all(len(one) >= FULL_ENOUGH * (np.ptp(month_number(one)) / step + 1) for one in stamps if len(one))
    return step if step >= 1 and full else None


def month_number(stamps: Stamps) -> Shaped[np.ndarray, " N"]:
    """Months since January 1970."""
    return stamps.astype("datetime64[M]").astype(np.int64)


def into_month(stamps: Stamps) -> Shaped[np.ndarray, " N"]:
    """Time since the month began."""
    return stamps - stamps.astype("datetime64[M]").astype("datetime64[ns]")


def before_next_month(stamps: Stamps) -> Shaped[np.ndarray, " N"]:
    """Time until the next month begins."""
    return (stamps.astype("datetime64[M]") + 1).astype("datetime64[ns]") - stamps


def on_one_day_of_month(stamps: Stamps) -> bool:
    """Whether stamps lie on one day that every month has, or all at one distance from the month's end."""
    start, end = into_month(stamps), before_next_month(stamps)
    return bool((np.ptp(start) == 0 and start.max() < 28 * DAY) or np.ptp(end) == 0)


def one_step(stamps: Stamps, step: np.timedelta64) -> Shaped[np.ndarray, " M"]:
    """Whether each stamp is followed by the one a step later."""
    if not in_months(step):
        return np.diff(stamps) == step
    return (np.diff(month_number(stamps)) == months_in(step)) & on_one_day_of_month(stamps)


def never_on_weekends(stamps: Stamps, gaps: Shaped[np.ndarray, " G"]) -> bool:
    """Whether stamps are days from Monday to Friday over several weeks, as in a market's prices."""
    daily = gaps.min() == DAY and gaps.max() > DAY
    return bool(daily and np.ptp(stamps) >= WEEKS_TO_TELL * 7 * DAY and weekday(stamps).max() < 5)


def weekday(stamps: Stamps) -> Shaped[np.ndarray, " N"]:
    """Day of the week, Monday 0 to Sunday 6."""
    return pd.DatetimeIndex(stamps).dayofweek.to_numpy().astype(np.int64)


def following(stamps: Stamps, step: np.timedelta64 | None, count: int) -> Shaped[np.ndarray, " H"]:
    """The next stamps: by the step, by weekdays when no stamp lies on a weekend, else by the median gap."""
    ahead = np.arange(1, count + 1)
    if step is None:
        gaps = np.diff(stamps) if len(stamps) > 1 else np.array([DAY])
        if never_on_weekends(stamps, gaps):
            return stepped(stamps[-1], pd.offsets.BusinessDay(), count)
        return stamps[-1] + ahead * np.median(gaps.astype(np.int64)).astype("timedelta64[ns]")
    if not in_months(step):
        return stamps[-1] + ahead * step.astype("timedelta64[ns]")
    return month_stepped(stamps[-1], months_in(step), count, before_end(stamps))


def stepped(stamp: np.datetime64, offset: BaseOffset, count: int) -> Shaped[np.ndarray, " H"]:
    """So many stamps after one, by an offset of pandas."""
    return pd.date_range(pd.Timestamp(stamp), periods=count + 1, freq=offset)[1:].to_numpy()


def month_stepped(stamp: np.datetime64, months: int, count: int, before: np.timedelta64) -> Shaped[np.ndarray, " H"]:
    """So many stamps after one, months apart, all on one day of the month; or `before` the beginning of the next."""
    return stepped(stamp + before, pd.DateOffset(months=months), count) - before


def before_end(stamps: Stamps) -> np.timedelta64:
    """How long before the end of their months stamps lie; zero where they lie on one day of the month instead.

    What lies on the last day of every month is bound to the end, though it may be the 28th of each February.
    """
    ends = before_next_month(stamps)
    one_day = np.ptp(into_month(stamps)) == 0 and ends.max() > DAY
    return np.timedelta64(0, "ns") if one_day or np.ptp(ends) else ends[0]


def grid(stamps: Stamps, step: np.timedelta64) -> Shaped[np.ndarray, " M"]:
    """Every stamp from the first to the last by a step."""
    if not in_months(step):
        return np.concatenate([stamps[:1], following(stamps[:1], step, int((stamps[-1] - stamps[0]) // step))])
    months = months_in(step)
    count = int(np.ptp(month_number(stamps)) // months)
    return np.concatenate([stamps[:1], month_stepped(stamps[0], months, count, before_end(stamps))])


def typical_gap(stamps: Stamps, step: np.timedelta64 | None) -> np.timedelta64:
    """The step, a month taken as 30.44 days; the median gap of irregular stamps."""
    if step is None:
        gaps = np.diff(stamps) if len(stamps) > 1 else np.array([DAY])
        return np.median(gaps.astype(np.int64)).astype(np.int64).astype("timedelta64[ns]")
    if in_months(step):
        return np.timedelta64(round(months_in(step) * YEAR_DAYS / 12 * 86_400), "s").astype("timedelta64[ns]")
    return step.astype("timedelta64[ns]")


def season_length(gap: np.timedelta64) -> int:
    """Steps in the season one expects: a day of sub-daily stamps, a week of days, a year of anything slower.

    >>> [season_length(np.timedelta64(*gap)) for gap in [(5, "m"), (1, "h"), (1, "D"), (7, "D"), (30, "D"), (91, "D")]]
    [288, 24, 7, 52, 12, 4]
    """
    if is_numbered(gap):
        return 1
    days = gap / DAY
    for period in (1.0, 7.0, YEAR_DAYS):
        if days <= period / 2:
            return round(period / days)
    return 1


# Features known in advance


def features(
    stamps: Stamps, step: np.timedelta64 | None, holidays: str | None = None
) -> tuple[Float64[np.ndarray, "N C"], tuple[str, ...]]:
    r"""Calendar features as fit the step, and their names.

    Waves $\sin(2\pi h \phi), \cos(2\pi h \phi)$ of the fraction $\phi$ of the day (sub-daily stamps) and of the year,
    the weekday as seven indicators (days and shorter), and indicators of holidays and their neighbours on request.
    """
    gap = typical_gap(stamps, step)
    if is_numbered(gap):
        return np.empty((len(stamps), 0)), ()
    columns: dict[str, np.ndarray] = {}
    if gap < DAY:
        columns |= waves("day", (stamps - stamps.astype("datetime64[D]")) / DAY, 4)
    if gap <= DAY:
        columns |= {f"weekday_{day}": (weekday(stamps) == day).astype(np.float64) for day in range(7)}
    if gap < YEAR_DAYS / 2 * DAY:
        columns |= waves("year", year_fraction(stamps), 6)
    if holidays is not None:
        columns |= holiday_features(stamps, holidays)
    table = np.stack(list(columns.values()), axis=1) if columns else np.empty((len(stamps), 0))
    return table, tuple(columns)


def waves(name: str, fraction: Float64[np.ndarray, " N"], harmonics: int) -> dict[str, np.ndarray]:
    """Sines and cosines of the first harmonics of a period."""
    return {
        f"{name}_{wave.__name__}_{harmonic}": wave(2 * np.pi * harmonic * fraction)
        for harmonic in range(1, harmonics + 1)
        for wave in (np.sin, np.cos)
    }


def year_fraction(stamps: Stamps) -> Float64[np.ndarray, " N"]:
    """How much of its year has passed, in [0, 1)."""
    first = stamps.astype("datetime64[Y]")
    start, end = first.astype("datetime64[ns]"), (first + 1).astype("datetime64[ns]")
    return (stamps - start) / (end - start)


__all__ = [
    "common_step",
    "features",
    "following",
    "in_months",
    "is_numbered",
    "never_on_weekends",
    "numbered_stamps",
    "numbers_of",
    "one_step",
    "season_length",
    "typical_gap",
    "weekday",
]
