"""Median of a figure over seeds and the ends of its interval, by one rule for tables, figures and pages."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

FEW = 4
"""Below this number of seeds quartiles mean little: the range is shown instead."""


@dataclass(frozen=True, kw_only=True)
class SeedInterval:
    """Median of a figure over seeds, between quartiles or, of few seeds, between the lowest and the highest."""

    low: float
    middle: float
    high: float
    count: int


def low_middle_high(values: Float[np.ndarray, " S *rest"]) -> Float[np.ndarray, " 3 *rest"]:
    """Lower end, median and upper end over seeds: quartiles, or the range of few seeds; nan values are left out."""
    ends = (0.25, 0.75) if len(values) >= FEW else (0.0, 1.0)
    return np.nanquantile(values, [ends[0], 0.5, ends[1]], axis=0)


def spread(values: Iterable[float | int | None]) -> SeedInterval | None:
    """Median and ends of one figure over seeds, leaving out None; None where no value is known.

    >>> spread([1.0, 2.0, 3.0, 4.0, 100.0])
    SeedInterval(low=2.0, middle=3.0, high=4.0, count=5)
    >>> spread([1.0, 2.0, None, 100.0])
    SeedInterval(low=1.0, middle=2.0, high=100.0, count=3)
    """
    known = [float(value) for value in values if value is not None]
    if not known:
        return None
    low, middle, high = low_middle_high(np.array(known)).tolist()
    return SeedInterval(low=low, middle=middle, high=high, count=len(known))


def rule(counts: Iterable[int]) -> str:
    """Name of the interval that is shown for these numbers of seeds; empty where each has one seed.

    >>> rule([3]), rule([1, 5]), rule([3, 5]), rule([1])
    ('range', 'quartiles', 'quartiles (range below 4 seeds)', '')
    """
    few = {count < FEW for count in counts if count > 1}
    if len(few) == 2:
        return f"quartiles (range below {FEW} seeds)"
    return "" if not few else "range" if few.pop() else "quartiles"
