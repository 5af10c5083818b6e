"""Seasons of a series: those that its time step suggests, kept where the data shows them."""

import numpy as np
from jaxtyping import Float64

from sgfn.series.calendar import DAY, YEAR_DAYS, is_numbered

PERIODS = (1 / 24, 1.0, 7.0, YEAR_DAYS)
"""Candidate periods in days: an hour, a day, a week, a year."""
CYCLES = 2.5
"""Least number of periods that the data must cover."""
SHORTEST, LONGEST = 2, 20_000
"""Steps that a season may have."""
THRESHOLD = 1.645
"""Standard errors by which the autocorrelation at a season must exceed zero (one-sided 95 %)."""
PLAIN = 0.4
"""Autocorrelation at a season that is plain to see."""
READ_CYCLES = 12
"""Cycles, from the end, on which a season is tested."""


def candidates(gap: np.timedelta64) -> tuple[int, ...]:
    """Steps of each period that a time step suggests, shortest first; numbers of steps suggest none.

    >>> [candidates(np.timedelta64(*gap)) for gap in [(30, "m"), (1, "D"), (7, "D"), (91, "D")]]
    [(48, 336, 17532), (7, 365), (52,), (4,)]
    """
    if is_numbered(gap):
        return ()
    days = gap / DAY
    found = {round(period / days) for period in PERIODS if period / days >= (12 if period < 1 else 1.5)}
    return tuple(sorted(steps for steps in found if SHORTEST <= steps <= LONGEST))


def seasons_of(
    values: Float64[np.ndarray, " T"], gap: np.timedelta64, given: int = 0, among: tuple[int, ...] | None = None
) -> tuple[int, ...]:
    """Seasons of a history, shortest first: the given one (1 is none), else the candidates that it shows.

    Candidates are those of the time step, unless they are given by `among`.
    """
    if given:
        return (given,) if 1 < given <= len(values) / 2 else ()
    found: list[int] = []
    rest = values
    for steps in candidates(gap) if among is None else among:
        if shows(rest, steps):
            found.append(steps)
            rest = deseasonal(rest, steps)
    return tuple(found)


def shows(values: Float64[np.ndarray, " T"], steps: int) -> bool:
    r"""Whether a series has a season: its autocorrelation $r_m$ after differencing out the trend is significant.

    .. math:: r_m > 1.645 \sqrt{(1 + 2 \sum_{i<m} r_i^2) / n}

    as in the seasonality test of the Theta method, on values less their running mean over a season. Of few long and
    smooth seasons the sum says too much; there a correlation of `PLAIN` that is as far above that at half the season
    will do.

    Reference: Assimakopoulos and Nikolopoulos (2000), The theta model, International Journal of Forecasting 16:521.
    """
    values = values[-READ_CYCLES * steps :] if steps > 1 else values
    if len(values) < CYCLES * steps or np.isnan(values).mean() > 0.5:
        return False
    rest = detrended(values, steps)
    seen = ~np.isnan(rest)
    rest = np.where(seen, rest - np.nanmean(rest), 0.0)
    if not (scale := float(rest @ rest)) > 1e-12 * max(float(np.nansum(np.square(values))), 1e-300):
        return False
    lags = np.fft.irfft(np.abs(np.fft.rfft(rest, 2 * len(rest))) ** 2)[: steps + 1] / scale
    limit = THRESHOLD * np.sqrt((1 + 2 * float(np.square(lags[1:steps]).sum())) / seen.sum())
    whole = float(lags[steps] * len(rest) / (len(rest) - steps))
    return bool(lags[steps] > limit or (whole > PLAIN and whole - lags[steps // 2] > PLAIN))


def detrended(values: Float64[np.ndarray, " T"], steps: int) -> Float64[np.ndarray, " T"]:
    """Values less a straight line and then their running mean over a season, nan where missing.

    At the ends the nearest whole season counts.
    """
    seen = ~np.isnan(values)
    if seen.sum() > 2:
        time = np.arange(len(values))
        values = values - np.polyval(np.polyfit(time[seen], values[seen], 1), time)
    total = np.concatenate([[0.0], np.cumsum(np.where(seen, values, 0.0))])
    count = np.concatenate([[0], np.cumsum(seen)])
    start = np.clip(np.arange(len(values)) - steps // 2, 0, max(len(values) - steps, 0))
    end = np.minimum(start + steps, len(values))
    return values - (total[end] - total[start]) / np.maximum(count[end] - count[start], 1)


def deseasonal(values: Float64[np.ndarray, " T"], steps: int) -> Float64[np.ndarray, " T"]:
    """Values less the mean of each phase of a season, so that longer seasons are tested on what is left."""
    rest = detrended(values, steps)
    phase = np.arange(len(values)) % steps
    seen = ~np.isnan(rest)
    total = np.bincount(phase[seen], weights=rest[seen], minlength=steps)
    return values - (total / np.maximum(np.bincount(phase[seen], minlength=steps), 1))[phase]
