"""A plate of good and different orders out of many candidates, chosen greedily, a pass over all of them per well."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.config.checks import in_range, one_of, whole_number
from sgfn.design.distances import coded, distances, metric_of

Metric = Literal["auto", "hamming", "edit"]


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Chosen candidates, the first one the best."""

    chosen: list[int]
    """Their numbers among the candidates."""
    distance: int | None
    """Least distance between two of them; None where there is but one."""
    metric: str
    """What distances are: hamming or edit."""


def select_plate(
    candidates: Sequence[str],
    values: Sequence[float] | Float[np.ndarray, " N"] | Float[Tensor, " N"],
    n: int,
    *,
    distance: int = 1,
    tradeoff: float = 0.0,
    metric: Metric = "auto",
    taken: Sequence[str] = (),
) -> Selection:
    r"""At most n candidates with high values, which differ from each other, and from those taken before, by `distance`
    at least.

    One after the other the candidate is chosen that is best in

    .. math:: (1 - w)\,\frac{v - v_{min}}{v_{max} - v_{min}} + w\,\frac{d}{L},

    with d its distance to the nearest one chosen before, L the longest length and w the `tradeoff`: with 0 the best by
    value, with 1 the most different (Carbonell and Goldstein 1998, SIGIR; without the value, Gonzalez 1985, Theoretical
    Computer Science 38). Fewer than n are returned where no more are so far apart. `metric` auto is Hamming where all
    are equally long, else edits.

    >>> select_plate(["AAA", "AAC", "CCC"], [3.0, 2.0, 1.0], 2, distance=2).chosen
    [0, 2]
    """
    whole_number("n", n, 1)
    whole_number("distance", distance, 0)
    in_range("tradeoff", tradeoff, 0.0, 1.0)
    one_of("metric", metric, ("auto", "hamming", "edit"))
    worth = torch.as_tensor(np.asarray(values, dtype=np.float64))
    if worth.shape != (len(candidates),):
        raise ValueError(f"values must be one for each of {len(candidates)} candidates, got {list(worth.shape)}")
    if not bool(worth.isfinite().all()):
        raise ValueError("values must be finite: leave candidates without one out")
    texts = [*candidates, *taken]
    kind = metric_of(texts) if metric == "auto" else metric
    rows, blank = coded(texts)
    return _greedy(rows, worth, n, blank, kind, distance, tradeoff)


def _greedy(
    rows: Int[Tensor, "M L"], worth: Float[Tensor, " N"], n: int, blank: int, kind: str, distance: int, tradeoff: float
) -> Selection:
    count, longest = worth.shape[0], rows.shape[1]
    span = float(worth.max() - worth.min()) if count else 0.0
    quality = (worth - worth.min()) / span if span > 0 else torch.zeros_like(worth)
    gap = torch.full((count,), longest, dtype=torch.int64)  # to the nearest one chosen or taken
    for other in rows[count:]:
        gap = torch.minimum(gap, distances(rows[:count], other, blank, kind))
    free, chosen, least = torch.ones(count, dtype=torch.bool), [], longest + 1
    while len(chosen) < min(n, count):
        mixed = (1.0 - tradeoff) * quality + tradeoff * gap.double() / longest
        mixed = mixed.masked_fill(~free | (gap < distance), -torch.inf)
        best = int(mixed.argmax())
        if mixed[best] == -torch.inf:
            break
        if chosen:
            apart = distances(rows[chosen], rows[best], blank, kind)
            least = min(least, int(apart.min()))
        chosen.append(best)
        free[best] = False
        gap = torch.minimum(gap, distances(rows[:count], rows[best], blank, kind))
    return Selection(chosen=chosen, distance=least if len(chosen) > 1 else None, metric=kind)
