"""Medians over seeds of what was measured while training, and distributions of scores: the data behind figures."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from sgfn.evaluation.seeds import low_middle_high
from sgfn.reports.sources import Rows, number

LEVELS = {"tv_floor": "best reachable", "tv_blind": "ignoring the noise", "tv_uniform": "uniform policy"}
"""Distances to the target, by their key in exact.json, that the curve of a distance is compared with."""
BINS = 40
"""Bins of distributions that several runs share."""


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Median over seeds and the ends of a band around it."""

    x: Float[np.ndarray, " N"]
    low: Float[np.ndarray, " N"]
    middle: Float[np.ndarray, " N"]
    high: Float[np.ndarray, " N"]
    count: int
    """Seeds."""


def learning(runs: Sequence[Rows], column: str, x: str = "trajectories") -> Curve | None:
    """A column of the metrics over environment calls, or over another column; None where no run has it.

    Seeds are brought to shared places by linear interpolation. Only places that at least half as many seeds span as
    any other are kept: a median of one seed is none.
    """
    points = [found for rows in runs if len(found := _points(rows, column, x))]
    if not points:
        return None
    places = np.unique(np.concatenate([found[:, 0] for found in points]))
    values = np.stack([np.interp(places, p[:, 0], p[:, 1], left=np.nan, right=np.nan) for p in points])
    known = np.isfinite(values).sum(0)
    kept = 2 * known >= known.max()
    low, middle, high = low_middle_high(values[:, kept])
    return Curve(x=places[kept], low=low, middle=middle, high=high, count=len(points))


def _points(rows: Rows, column: str, x: str) -> Float[np.ndarray, "N 2"]:
    """Pairs of place and value in order of places, the last value where a place occurs twice."""
    found = {number(row.get(x)): number(row.get(column)) for row in rows}
    pairs = sorted((a, b) for a, b in found.items() if a is not None and b is not None)
    return np.array(pairs, dtype=float).reshape(-1, 2)


@dataclass(frozen=True, kw_only=True)
class Scores:
    """Shares of objects with a score between neighbouring edges; None for what is not known."""

    edges: Float[np.ndarray, " N"]
    target: Float[np.ndarray, " M"] | None = None
    law: Float[np.ndarray, " M"] | None = None
    """Exact law of the trained policy."""
    samples: Float[np.ndarray, " M"] | None = None

    @property
    def known(self) -> dict[str, Float[np.ndarray, " M"]]:
        """The distributions that are there, by name."""
        parts = {"target": self.target, "samples": self.samples, "law": self.law}
        return {name: share for name, share in parts.items() if share is not None}

    @property
    def means(self) -> dict[str, float]:
        """Mean score of each distribution, taking objects to lie in the middle of their bins."""
        middles = (self.edges[1:] + self.edges[:-1]) / 2
        return {name: float((share * middles).sum() / max(share.sum(), 1e-12)) for name, share in self.known.items()}


def scores_of(results: dict[str, Any]) -> Scores | None:
    """The distributions in exact.json; None where there are none."""
    found = results.get("histogram") or {}
    if not found.get("edges"):
        return None
    shares = {name: np.array(found[name], dtype=float) for name in ("target", "law", "samples") if name in found}
    return Scores(edges=np.array(found["edges"], dtype=float), **shares)


def shared_edges(found: Sequence[Scores]) -> Float[np.ndarray, " N"] | None:
    """Edges of equal bins that span the scores of all runs; None without runs."""
    if not found:
        return None
    return np.linspace(min(one.edges[0] for one in found), max(one.edges[-1] for one in found), BINS + 1)


def mean_scores(found: Sequence[Scores], edges: Float[np.ndarray, " N"]) -> Scores:
    """Means over seeds of each distribution, brought to the given edges; mass is kept."""
    shares: dict[str, list[Float[np.ndarray, " M"]]] = {}
    for one in found:
        for name, share in one.known.items():
            total = np.concatenate([[0.0], np.cumsum(share)])
            shares.setdefault(name, []).append(np.diff(np.interp(edges, one.edges, total)))
    return Scores(edges=edges, **{name: np.mean(rows, axis=0) for name, rows in shares.items()})
