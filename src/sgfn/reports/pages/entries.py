"""Runs of a page in groups by noise, and within a group by label, whose seeds are taken together."""

import re
from dataclasses import dataclass

from sgfn.reports.curves import Curve, Scores, learning, scores_of
from sgfn.reports.looks import Look, look_of
from sgfn.reports.sources import Source, number


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
    look: Look | None = None
    """How its label is drawn; by default labels take the palette's colours in turn."""


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
    """Number of the label on the page."""
    entries: list[Entry]

    @property
    def look(self) -> Look:
        """Colour and dashes of the label."""
        return next((entry.look for entry in self.entries if entry.look), look_of(self.series))

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

    def learning(self, column: str) -> Curve | None:
        """Median and band over seeds of a column of the metrics over environment calls; None where nobody has it."""
        return learning([source.rows for source in self.sources], column)

    @property
    def scores(self) -> list[Scores]:
        """Distributions of scores, one of each seed that has them."""
        return [found for source in self.evaluated if (found := scores_of(source.results)) is not None]

    def pooled(self, key: str, count: int) -> list[Found]:
        """The best distinct objects of all seeds: `designs` or `modes`."""
        scores: dict[str, list[float]] = {}
        sign = min((source.sign for source in self.evaluated), default=1.0)
        for source in self.evaluated:
            for text, score in source.results.get(key) or []:
                scores.setdefault(text, []).append(sign * (number(score) or 0.0))
        found = [Found(text=text, score=sign * max(s), seeds=len(s)) for text, s in scores.items()]
        return sorted(found, key=lambda one: (-sign * one.score, one.text))[:count]


@dataclass(frozen=True, kw_only=True)
class Group:
    """All labels at one noise level, of one task with one exponent."""

    name: str
    lines: list[Line]

    def values(self, key: str) -> list[float]:
        """A figure of every run."""
        return [value for line in self.lines for value in line.values(key)]


def grouped(entries: list[Entry]) -> list[Group]:
    """Groups by noise (task and exponent too where they differ) in natural order, labels in the order they came in."""
    series = {label: i for i, label in enumerate(dict.fromkeys(entry.label for entry in entries))}
    members: dict[GroupKey, list[Entry]] = {}
    for entry in sorted(entries, key=lambda one: one.source is None):  # those that have a task come first
        members.setdefault(_group_key(entry, members), []).append(entry)
    several = [len({key[i] for key in members if key[0]}) > 1 for i in range(3)]
    groups = []
    for key in sorted(members, key=lambda key: [_natural(part) for part in key]):
        parts = [key[0]] * several[0] + [key[1]] + [key[2]] * several[2]
        lines = [_line(label, series[label], members[key]) for label in series]
        groups.append(Group(name=", ".join(filter(None, parts)), lines=[line for line in lines if line.entries]))
    return groups


GroupKey = tuple[str, str, str, str]
"""Task, noise and exponent in words, and all else that decides which laws can be compared."""


def _group_key(entry: Entry, members: dict[GroupKey, list[Entry]]) -> GroupKey:
    if entry.source is not None:
        config = entry.source.config
        beta = "own beta" if config.beta is None else f"beta {config.beta:g}"
        tasks = (config.grid, config.motif, config.bits, config.ehrlich, config.rna, config.table, config.callable)
        return entry.source.task, entry.noise, beta, repr((config.noise, config.reward, config.aim, *tasks))
    return next((key for key in members if key[1] == entry.noise), ("", entry.noise, "", ""))


def _line(label: str, series: int, entries: list[Entry]) -> Line:
    own = sorted((entry for entry in entries if entry.label == label), key=lambda one: one.seed)
    return Line(label=label, series=series, entries=own)


def _natural(text: str) -> list[tuple[float, str]]:
    """A key that sorts 5% before 10%."""
    parts = re.split(r"(\d+(?:\.\d+)?)", text)
    return [(float(part), "") if i % 2 else (-1.0, part) for i, part in enumerate(parts)]
