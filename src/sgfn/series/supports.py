"""Supports: the set in which values of a series can lie, found from the data or given, and laws kept inside it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from sgfn.config.series import parse_support
from sgfn.series.panel import Panel

Values = Float64[np.ndarray, "*batch"]
ENOUGH = 8
"""Least number of observed values from which a bounded support is inferred."""
NEAR_END = 0.2
"""Distance from 0 and 1 within which proportions must have been to show that these are bounds."""
NEAR_ONE, AT_ONE, VISITS = 0.05, 0.02, 3
"""Distance from 1 to which proportions must have come so many times, and the least distance to which they came."""
SHARE_WORDS = ("share", "proportion", "fraction", "probability", "occupancy", "utilisation", "utilization")
"""Words in the name of a column whose values between 0 and 1 are proportions."""
LARGEST_COUNT = 2.0**53
"""Numbers above it are whole whatever they count."""


@dataclass(frozen=True, kw_only=True)
class Support:
    """An interval, of whole numbers alone where values are counts.

    >>> Support(low=0.0, whole=True).project(np.array([-1.0, 0.4, 2.6])).tolist()
    [0.0, 0.0, 3.0]
    """

    low: float = -np.inf
    high: float = np.inf
    whole: bool = False

    def project(self, values: Values) -> Values:
        """The nearest values of the support; order is kept."""
        inside = np.clip(values, self.low, self.high)
        return np.rint(inside) + 0.0 if self.whole else inside

    def holds(self, values: Values) -> bool:
        """Whether all observed values lie in the support."""
        seen = values[~np.isnan(values)]
        return bool((self.project(seen) == seen).all())

    @property
    def name(self) -> str:
        """The support as `--support` takes it."""
        if self.whole:
            return "count"
        if (self.low, self.high) == (0.0, 1.0):
            return "unit"
        if self.high == np.inf:
            return "real" if self.low == -np.inf else "nonnegative" if self.low == 0 else f"{self.low:g}:inf"
        return f"{self.low:g}:{self.high:g}"

    def __str__(self) -> str:
        words = {"real": "any number", "nonnegative": "0 or more", "count": "whole numbers, 0 or more"}
        return words.get(self.name, f"between {self.low:g} and {self.high:g}")


REAL = Support()
NAMED = {
    "real": REAL,
    "nonnegative": Support(low=0.0),
    "count": Support(low=0.0, whole=True),
    "unit": Support(low=0.0, high=1.0),
}


PERCENT = Support(low=0.0, high=100.0)


def find_support(values: Float64[np.ndarray, " N"]) -> Support:
    """Support that values suggest: counts, proportions, not below zero, or any number.

    Values between 0 and 1 are proportions only if they show a bound: they lie on 1 more than once, or fill the range
    and came back from its upper end again and again. What grew from .3 to .6 may grow on, kilowatts of .9 at most may
    be 1.1 tomorrow; zero and one alone are counts. Fractions that lie on 100 more than once, and never above, are
    percentages.

    >>> some = [0.0, 3.0, 1.0], [0.05, 0.99], [0.5, 7.1], [-1.0, 2.0]
    >>> [find_support(np.array(values * 4)).name for values in some]
    ['count', 'unit', 'nonnegative', 'real']
    """
    seen = values[~np.isnan(values)].astype(np.float64)
    if len(seen) < ENOUGH or seen.min() < 0:
        return REAL
    if (seen == np.rint(seen)).all() and seen.max() < LARGEST_COUNT:
        return NAMED["count"]
    if seen.max() <= 1 and ((seen == 1).sum() > 1 or (came_back(seen) and touches_one(seen))):
        return NAMED["unit"]
    if seen.max() == PERCENT.high and (seen == PERCENT.high).sum() > 1:
        return PERCENT
    return NAMED["nonnegative"]


def came_back(values: Float64[np.ndarray, " N"]) -> bool:
    """Whether values between 0 and 1 have been near both ends, and fell to the lower half after the upper end.

    >>> [came_back(np.array(values)) for values in ([0.05, 0.95, 0.4], [0.05, 0.4, 0.95], [0.3, 0.95, 0.4])]
    [True, False, False]
    """
    top = np.flatnonzero(values >= 1 - NEAR_END)
    return bool(values.min() <= NEAR_END and len(top) > 0 and values[top[0] :].min() <= 0.5)


def touches_one(values: Float64[np.ndarray, " N"]) -> bool:
    """Whether values between 0 and 1 came near 1 again and again; those that lie on 0 again and again must lie on 1.

    >>> [touches_one(np.array(values)) for values in ([0.1, 0.99] * 3, [0.1, 0.9] * 9, [0.1, 0.99], [0.0, 0.99] * 3)]
    [True, False, False, False]
    """
    near = values >= 1 - NEAR_ONE
    visits = int(near[0]) + int((near[1:] & ~near[:-1]).sum())
    return visits >= VISITS and float(values.max()) >= 1 - AT_ONE and int((values == 0).sum()) <= 1


def are_shares(targets: Sequence[str]) -> bool:
    """Whether all names of what is forecast say that it is a proportion.

    >>> are_shares(["share_of_wins"]), are_shares(["Occupancy", "sales"]), are_shares([])
    (True, False, False)
    """
    return bool(targets) and all(any(word in name.lower() for word in SHARE_WORDS) for name in targets)


def named_shares(panel: Panel) -> bool:
    """Whether a panel's values are proportions by their names, and lie between 0 and 1."""
    return are_shares(panel.targets) and all(NAMED["unit"].holds(one.values) for one in panel.series)


def supports_of(setting: str, series: list[Float64[np.ndarray, " _"]], *, shares: bool = False) -> list[Support]:
    """Support of each series: the given one, or what the values suggest where the setting is `auto`.

    Whether values are whole and at most one, or 100, is decided for all series together, as they measure the same kind
    of thing: one series that shows the bound of proportions shows it for all whose values lie between 0 and 1, and
    where a value of any series does not, none has it. Whether they may be negative is decided by each series, or by all
    where it has fewer than `ENOUGH` values. What is called a share is a proportion if all values lie between 0 and 1.
    """
    if setting != "auto":
        low, high, whole = parse_support(setting)
        return [Support(low=low, high=high, whole=whole)] * len(series)
    if shares and series and NAMED["unit"].holds(np.concatenate(series)):
        return [NAMED["unit"]] * len(series)
    known = [find_support(values) if (~np.isnan(values)).sum() >= ENOUGH else None for values in series]
    found = [one for one in known if one is not None]
    if not found:
        return [REAL] * len(series)
    whole, low = all(one.whole for one in found), min(one.low for one in found)
    shown, seen = {one.high for one in found}, np.concatenate(series)
    high = min((bound for bound in shown if Support(low=0.0, high=bound).holds(seen)), default=np.inf)
    return [Support(low=low if one is None else one.low, high=high, whole=whole) for one in known]


def check_given(setting: str, panel: Panel) -> None:
    """Raise where a value of a panel lies outside a support that was given; `auto` gives none."""
    if setting != "auto":
        for one, support in zip(panel.series, supports_of(setting, [s.values for s in panel.series]), strict=True):
            check_support(support, one.name, one.values)


def check_support(support: Support, name: str, values: Float64[np.ndarray, " N"]) -> None:
    """Raise where an observed value lies outside a support that was given."""
    if not support.holds(values):
        seen = values[~np.isnan(values)]
        wrong = float(seen[support.project(seen) != seen][0])
        fix = "take --support auto, or one that holds it (support= in Python)"
        raise ValueError(f"series {name!r} has the value {wrong:g} outside support {support.name}: {fix}")
