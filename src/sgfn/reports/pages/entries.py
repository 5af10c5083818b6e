"""Runs gathered by noise and label, and what the seeds of each say together."""

import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from sgfn.evaluation.seeds import low_middle_high
from sgfn.reports.sources import Source


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One run, finished, failed, or still to come."""

    label: str
    """The method's name in a comparison, or the folder's name in a report of single runs."""
    source: Source | None
    """None where the run failed, or has not begun."""
    noise: str
    """For example "25% noise": entries are grouped by it."""
    seed: int
    error: str = ""
    """One line, where the run failed."""


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Median and band over seeds."""

    x: Float[np.ndarray, " N"]
    low: Float[np.ndarray, " N"]
    middle: Float[np.ndarray, " N"]
    high: Float[np.ndarray, " N"]
    count: int


@dataclass(frozen=True, kw_only=True)
class Found:
    """An object that came out, its score, and how many seeds have it."""

    text: str
    score: float
    seeds: int


@dataclass(frozen=True, kw_only=True)
class Line:
    """One label at one noise level, with all its seeds."""

    label: str
    series: int
    """Number of the label on the page, which decides its colour."""
    entries: list[Entry]

    @property
    def sources(self) -> list[Source]:
        """Runs with metrics that did not fail."""
        return [entry.source for entry in self.entries if entry.source is not None and not entry.error]

    @property
    def evaluated(self) -> list[Source]:
        """Runs with exact.json."""
        return [source for source in self.sources if source.results]

    @property
    def failed(self) -> list[Entry]:
        """Runs that ended in an error."""
        return [entry for entry in self.entries if entry.error]

    def values(self, key: str) -> list[float]:
        """A figure of every seed that has it."""
        if key == "trajectories":
            found = [source.rows[-1].get(key) for source in self.evaluated]
        else:
            found = [source.results.get(key) for source in self.evaluated]
        return [value for value in map(number, found) if value is not None]

    def pooled(self, key: str, count: int) -> list[Found]:
        """The best distinct objects of all seeds: `designs` or `modes`."""
        scores: dict[str, list[float]] = {}
        for source in self.evaluated:
            for text, score in source.results.get(key) or []:
                scores.setdefault(text, []).append(number(score) or 0.0)
        found = [Found(text=text, score=max(s), seeds=len(s)) for text, s in scores.items()]
        return sorted(found, key=lambda one: (-one.score, one.text))[:count]


@dataclass(frozen=True, kw_only=True)
class Group:
    """All labels at one noise level, of one task with one exponent."""

    name: str
    lines: list[Line]

    def values(self, key: str) -> list[float]:
        """A figure of every run."""
        return [value for line in self.lines for value in line.values(key)]


def number(value: Any) -> float | None:
    """A finite number, or None for everything else that a file may hold."""
    if isinstance(value, int | float) and math.isfinite(value):
        return float(value)
    return None


def learning(line: Line, column: str) -> Curve | None:
    """A column of the metrics over environment calls, seeds brought to shared places by linear interpolation.

    Only places that at least half as many seeds span as any other are kept: a median of one seed is none.
    """
    runs = [points for source in line.sources if len(points := _points(source, column))]
    if not runs:
        return None
    x = np.unique(np.concatenate([points[:, 0] for points in runs]))
    values = np.stack([np.interp(x, p[:, 0], p[:, 1], left=np.nan, right=np.nan) for p in runs])
    known = np.isfinite(values).sum(0)
    kept = 2 * known >= known.max()
    low, middle, high = low_middle_high(values[:, kept])
    return Curve(x=x[kept], low=low, middle=middle, high=high, count=len(runs))


def _points(source: Source, column: str) -> Float[np.ndarray, "N 2"]:
    """Environment calls and values, each place once."""
    found = {number(row.get("trajectories")): number(row.get(column)) for row in source.rows}
    pairs = sorted((x, y) for x, y in found.items() if x is not None and y is not None)
    return np.array(pairs, dtype=float).reshape(-1, 2)


def grouped(entries: list[Entry]) -> list[Group]:
    """Groups by noise (task and exponent too where they differ) in natural order, labels in the order they came in."""
    series = {label: i for i, label in enumerate(dict.fromkeys(entry.label for entry in entries))}
    homes: dict[Home, list[Entry]] = {}
    for entry in sorted(entries, key=lambda one: one.source is None):  # those that have a task come first
        homes.setdefault(_home(entry, homes), []).append(entry)
    several = [len({key[i] for key in homes if key[0]}) > 1 for i in range(3)]
    groups = []
    for key in sorted(homes, key=lambda key: [_natural(part) for part in key]):
        parts = [key[0]] * several[0] + [key[1]] + [key[2]] * several[2]
        lines = [_line(label, series[label], homes[key]) for label in series]
        groups.append(Group(name=", ".join(filter(None, parts)), lines=[line for line in lines if line.entries]))
    return groups


Home = tuple[str, str, str, str]
"""Task, noise and exponent in words, and all else that decides which laws can be compared."""


def _home(entry: Entry, homes: dict[Home, list[Entry]]) -> Home:
    if entry.source is not None:
        config = entry.source.config
        beta = "own beta" if config.beta is None else f"beta {config.beta:g}"
        tasks = (config.grid, config.motif, config.bits, config.ehrlich, config.rna, config.table, config.callable)
        return entry.source.task, entry.noise, beta, repr((config.noise, config.reward, *tasks))
    return next((key for key in homes if key[1] == entry.noise), ("", entry.noise, "", ""))


def _line(label: str, series: int, entries: list[Entry]) -> Line:
    own = sorted((entry for entry in entries if entry.label == label), key=lambda one: one.seed)
    return Line(label=label, series=series, entries=own)


def _natural(text: str) -> list[tuple[float, str]]:
    """A key that sorts 5% before 10%."""
    parts = re.split(r"(\d+(?:\.\d+)?)", text)
    return [(float(part), "") if i % 2 else (-1.0, part) for i, part in enumerate(parts)]
