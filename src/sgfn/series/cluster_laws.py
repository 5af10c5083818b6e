"""Classical laws of many series as jobs of a cluster, some series in each: the numbers are those of this process."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from jaxtyping import Float64

from sgfn.config.cluster import Needs, connect
from sgfn.config.cluster_jobs import Event, Job, Report, error_words, run_jobs, slots
from sgfn.series.bank import LawCall, run_here

PER_SLOT = 4
"""Shards for each job that the cluster can run at once, so that none waits long for the last."""
CHEAP = ("seasonal naive", "empirical")
"""Laws that are computed sooner than sent."""


@dataclass(frozen=True, kw_only=True)
class ClusterLaws:
    """A runner of laws (see `Bank`) that gives shards of series to a cluster."""

    cluster: str
    cpus: float = 1.0

    def __call__(self, calls: list[LawCall], tell: Callable[[int], None]) -> list[Float64[np.ndarray, "C H Q"]]:
        """Quantiles of each call, in their order."""
        if not calls or calls[0].name in CHEAP:
            return run_here(calls, tell)
        needs = Needs(cpus=self.cpus)
        with connect(self.cluster) as ray:
            parts = shards(calls, PER_SLOT * max(1, slots(ray, needs)))
            jobs = [Job(name=str(at), function=run_laws, argument=_given(part)) for at, part in enumerate(parts)]
            found: dict[str, Any] = {}
            for events in run_jobs(ray, jobs, needs):
                for event in events:
                    _take(event, found, parts, tell)
        return [one for at in range(len(parts)) for one in found[str(at)]]


def shards(calls: list[LawCall], count: int) -> list[list[LawCall]]:
    """Calls in at most so many parts of nearly one size, in order."""
    count = min(count, len(calls))
    ends = [round(len(calls) * part / count) for part in range(count + 1)]
    return [calls[start:end] for start, end in pairwise(ends)]


def _given(part: list[LawCall]) -> Callable[[], list[LawCall]]:
    return lambda: part


def _take(event: Event, found: dict[str, Any], parts: list[list[LawCall]], tell: Callable[[int], None]) -> None:
    """Keep what a shard has found; raises where it has failed."""
    if not event.ended:
        return
    if event.error is not None:
        raise ValueError(f"a shard of series failed: {error_words(event.error)}")
    found[event.name] = event.value
    tell(sum(len(call.cuts) for call in parts[int(event.name)]))


def run_laws(calls: list[LawCall], shared: object, report: Report) -> list[Float64[np.ndarray, "C H Q"]]:
    """Laws of a shard of series, on some node."""
    return run_here(calls, lambda _: None)
