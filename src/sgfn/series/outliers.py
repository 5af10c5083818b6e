"""Values of a history that stand apart from all others, such as slips of the pen, and what the laws read instead.

A value's departure is its distance from the median of the three values before it, or after it where that is less. With
a season the same is asked of changes over the season, and the smaller departure counts, so that a peak that comes every
year is none. Values stand apart where their departures are more than `APART` times the next
largest of the whole history, and few do. A break of level is none once a second value confirms it, and neither is
whatever has happened in the history before.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float64, Int64
from numpy.lib.stride_tricks import sliding_window_view

Values = Float64[np.ndarray, " T"]

APART = 3.0
"""Least ratio of the departures of values that stand apart to the next largest one."""
USUAL = 0.9
"""Share of the other values that depart less than a value that is moved does afterwards."""
SHORTEST = 20
"""Least number of values of which some can stand apart."""
ROUNDING = 1e-9
"""Departures below this share of the largest value are rounding."""
SIDE = 3
"""Neighbours on one side of a value."""
ONE_IN = 50
"""At most one value in so many stands apart, and one more."""


def moved(values: Values, seasons: Sequence[int] = ()) -> dict[int, float]:
    """Places of the values that stand apart, with what is read instead of each; empty where there are none.

    A value is moved towards its neighbours until it departs from them as far as nine in ten others do at most.

    >>> {place: round(value, 2) for place, value in moved(np.array([*np.sin(np.arange(30)), 40.0])).items()}
    {30: 1.54}
    """
    found = departures(values, seasons)
    places = standing_apart(np.where(np.abs(found) > ROUNDING * np.abs(values).max(initial=0.0), np.abs(found), 0.0))
    if not len(places):
        return {}
    usual = float(np.quantile(np.delete(np.abs(found), places), USUAL))
    read = values[places] - found[places] + np.sign(found[places]) * usual
    return dict(zip(places.tolist(), read.tolist(), strict=True))


def with_moved(values: Values, places: Mapping[int, float]) -> Values:
    """Values of which some are replaced; the same array where none are."""
    if not places:
        return values
    found = values.copy()
    found[list(places)] = list(places.values())
    return found


def standing_apart(sizes: Values) -> Int64[np.ndarray, " K"]:
    """Places of the values whose departures are `APART` times all others', in order; none in short histories.

    >>> [standing_apart(np.array([1.0, 2.0] * 10 + [last])).tolist() for last in (7.0, 5.0)]
    [[20], []]
    """
    if len(sizes) < SHORTEST:
        return np.empty(0, dtype=np.int64)
    most = 1 + len(sizes) // ONE_IN
    order = np.argsort(-sizes, kind="stable")
    largest = sizes[order[: most + 1]]
    gaps = np.flatnonzero(largest[:-1] > APART * np.maximum(largest[1:], 1e-9 * sizes.max()))
    return np.sort(order[: gaps[-1] + 1] if len(gaps) else order[:0]).astype(np.int64)


def departures(values: Values, seasons: Sequence[int] = ()) -> Values:
    """Departure of each value from its neighbours, or that of its change over a season, if less."""
    parts = [_departures(values)]
    parts[0][:SIDE] = 0.0  # of the first values, in which many a series begins to decay, nothing later depends
    for steps in seasons:
        if len(values) > steps + 2 * SIDE:
            changes = _departures(values[steps:] - values[:-steps])
            parts += [np.pad(changes, (steps, 0), constant_values=np.inf)]
            parts += [np.pad(-changes, (0, steps), constant_values=np.inf)]
    return _least(parts)


def _least(parts: list[Values]) -> Values:
    """Of several numbers at each place, the one of least size."""
    every = np.stack(parts)
    return np.take_along_axis(every, np.abs(every).argmin(0)[None], 0)[0]


def _departures(values: Values) -> Values:
    """Distance from the median of the three values before or after, whichever is less; fewer where there are fewer.

    The last value may also be near the one before it, and the first near the one after it: two together are no slip.
    """
    if len(values) < 2 * SIDE:
        return np.zeros(len(values))
    found = _from_those_before(values)
    back = _from_those_before(values[::-1])[::-1]
    return _least([found, back])


def _from_those_before(values: Values) -> Values:
    """Distance of each value from the median of the three before it; of the last, from the one before if less."""
    found = np.full(len(values), np.inf)
    found[SIDE:] = values[SIDE:] - np.median(sliding_window_view(values, SIDE)[:-1], 1)
    found[1:SIDE] = [values[at] - np.median(values[:at]) for at in range(1, SIDE)]
    last = values[-1] - values[-2]
    found[-1] = last if abs(last) < abs(found[-1]) else found[-1]
    return found
