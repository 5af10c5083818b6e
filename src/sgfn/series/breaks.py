"""A lasting break of level in a history, and the values before it as they would lie at the level after it.

Models of a series whose level once jumped far take the jump for noise: their intervals stay wide for as long as it is
in what they read. With medians over M values before and after each place t,

.. math:: D_t = \\mathrm{med}(y_t, \\dots, y_{t+M-1}) - \\mathrm{med}(y_{t-M}, \\dots, y_{t-1}),

a break is the place of the largest $|D_t|$ where that is `APART` times as large as nine in ten of those whose values it
has no part in, and where most of it came at once. Trends and walks, whose $D_t$ are all of a size, have none.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float64
from numpy.lib.stride_tricks import sliding_window_view

Values = Float64[np.ndarray, " T"]

SIDE = 8
"""Least number of values on either side of a break; whole seasons of them."""
READ = 1_000
"""Values, from the end, in which a break is looked for."""
APART = 5.0
"""Least ratio of a break to nine in ten other differences of medians."""
USUAL = 0.9
AT_ONCE, NEAR = 0.7, 3
"""Least share of the difference that came at once, over so many values."""
NOISE, ALIKE = 4.0, 4.0
"""Least ratio of a break to the mean deviation on either side, and most ratio of these to each other: where noise
changes with the level, values before the break say little of those after it."""


@dataclass(frozen=True, kw_only=True)
class Break:
    """A break of level: the first place after it, and by how much the level changed."""

    place: int
    change: float

    def aligned(self, values: Values, *, whole: bool = False) -> dict[int, float]:
        """Places before the break that hold a value, with what each would be at the level after it."""
        change = round(self.change) if whole else self.change
        return {at: value + change for at, value in enumerate(values[: self.place].tolist()) if value == value}


def level_break(values: Values, seasons: Sequence[int] = ()) -> Break | None:
    """The largest lasting break of level of a history without gaps; None where there is none.

    >>> level_break(np.r_[np.arange(40.0) % 3, 50 + np.arange(20.0) % 3])
    Break(place=40, change=50.0)
    >>> level_break(np.arange(60.0)) is None
    True
    """
    skipped, values = max(len(values) - READ, 0), values[-READ:]
    season = max((steps for steps in seasons if 6 * steps <= len(values)), default=1)
    side = -(-SIDE // season) * season
    if len(values) < 4 * side:
        return None
    middles = np.median(sliding_window_view(values, side), 1)
    changes = middles[side:] - middles[:-side]  # of places side, ..., T - side
    at = int(np.abs(changes).argmax())
    others = np.abs(changes[np.abs(np.arange(len(changes)) - at) >= side])
    if len(others) < side or not abs(changes[at]) > APART * float(np.quantile(others, USUAL)):
        return None
    found = _sharp(values, at + side, side, season)
    return found and replace(found, place=found.place + skipped)


def _sharp(values: Values, about: int, side: int, season: int) -> Break | None:
    """The break near a place that leaves least on both sides; None where less than most of it came at once."""
    rest = values - _phases(values, about, side, season)
    part = rest[about - side : about + side]

    def left(place: int) -> float:
        return sum(float(np.abs(some - np.median(some)).sum()) for some in (part[:place], part[place:]))

    places = range(max(about - side // 2, side), min(about + side // 2, len(values) - side) + 1)
    place = min(places, key=lambda one: left(one - about + side))
    before, after = rest[place - side : place], rest[place : place + side]
    change = float(np.median(after) - np.median(before))
    sudden = float(np.median(rest[place : place + NEAR]) - np.median(rest[place - NEAR : place]))
    noise = sorted(float(np.abs(some - np.median(some)).mean()) for some in (before, after))
    clear = abs(change) >= NOISE * noise[1] and noise[1] <= ALIKE * noise[0] and change * sudden > 0
    return Break(place=place, change=change) if clear and abs(sudden) >= AT_ONCE * abs(change) else None


def _phases(values: Values, about: int, side: int, season: int) -> Values:
    """The season's shape: medians by phase of what is left after the levels on either side of a place."""
    if season == 1:
        return np.zeros(len(values))
    levels = np.where(np.arange(len(values)) < about, np.median(values[:about]), np.median(values[about:]))
    phase, rest = np.arange(len(values)) % season, values - levels
    return np.array([np.median(rest[phase == one]) for one in range(season)])[phase]
