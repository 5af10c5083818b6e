"""The table of all figures: one row per label, a body per noise level."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from sgfn.evaluation.seeds import SeedInterval, spread
from sgfn.reports.curves import LEVELS
from sgfn.reports.looks import Look
from sgfn.reports.numbers import DASH, SCORE, plain, score_text
from sgfn.reports.pages.entries import Group, Line


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column of the table: a figure, how it is written, and which of its values is best."""

    key: str
    name: str
    about: str
    decimals: int
    best: Literal["low", "high", "near", "none"]
    of: str | None = None
    """What the value is to be compared with: "near" means near to this."""
    only: bool = False
    """Left out where no run without exact figures has it."""
    rare: bool = False
    """Left out where no run has it."""

    @property
    def first_order(self) -> str:
        """Order of the first press on its name, which brings the best value to the top."""
        return "descending" if self.best == "high" else "ascending"

    def text(self, value: float) -> str:
        """Scores as such, counts without decimals unless a median lies between two."""
        if self.decimals == SCORE:
            return score_text(value)
        return plain(value, self.decimals if self.decimals or value == int(value) else 1)

    def worse(self, line: Line) -> float | None:
        """A number that is lower the better the row is; None where it is not known or nothing is better."""
        found = spread(line.values(self.key))
        if found is None or self.best == "none":
            return None
        aim = spread(line.values(self.of)) if self.of else None
        if self.best == "near" and aim is not None:
            return abs(found.middle - aim.middle)
        return found.middle if self.best == "low" else -found.middle


TOP = "top100_mean"
"""A score, of which the lowest is best where low scores are good."""
COLUMNS = [
    Column(
        key="tv",
        name="Distance to target",
        about="total variation between the exact law of what comes out and the target: 0 is perfect, 1 is disjoint",
        decimals=4,
        best="low",
    ),
    Column(
        key="kl",
        name="KL from target",
        about="mean of log target minus log law over draws from the target, in nats: 0 is perfect",
        decimals=SCORE,
        best="low",
        only=True,
    ),
    Column(
        key="expected_reward",
        name="Expected score",
        about="mean score of what comes out, computed exactly, beside the target's; nearest to it is best",
        decimals=SCORE,
        best="near",
        of="target_expected_reward",
    ),
    Column(
        key="sample_mean",
        name="Mean of samples",
        about="mean score of the samples drawn for this page",
        decimals=SCORE,
        best="near",
        of="target_expected_reward",
        only=True,
    ),
    Column(
        key=TOP,
        name="Top 100 mean",
        about="mean score of the 100 best distinct samples",
        decimals=SCORE,
        best="high",
    ),
    Column(
        key="modes_greedy",
        name="Modes",
        about="good samples that lie apart from each other",
        decimals=0,
        best="high",
    ),
    Column(
        key="modes_reference",
        name="Known modes",
        about="how many of the landscape's own modes were found",
        decimals=0,
        best="high",
        of="modes_reference_total",
    ),
    Column(
        key="diversity",
        name="Diversity",
        about="mean distance between two samples",
        decimals=SCORE,
        best="none",
        rare=True,
    ),
    Column(
        key="novelty",
        name="Novelty",
        about="mean distance of a sample to the nearest object known beforehand",
        decimals=SCORE,
        best="none",
        rare=True,
    ),
    Column(
        key="dynamics_tv",
        name="Noise model error",
        about="total variation between learned and true noise, mean over visited states",
        decimals=4,
        best="low",
    ),
    Column(
        key="trajectories",
        name="Environment calls",
        about="trajectories drawn from the environment while training",
        decimals=0,
        best="none",
    ),
]


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One figure of one row."""

    text: str
    value: str | None = None
    """What the column is sorted by; None where nothing is known."""
    best: bool = False
    of: str = ""
    """What it is to be compared with."""
    ends: str = ""
    """Quartiles or range over seeds."""


@dataclass(frozen=True, kw_only=True)
class TableRow:
    """One label at one noise level."""

    label: str
    look: Look
    seeds: str
    cells: list[Cell]


@dataclass(frozen=True, kw_only=True)
class TableBody:
    """All rows at one noise level, with what is known of it whoever trains."""

    name: str
    facts: str
    rows: list[TableRow]


@dataclass(frozen=True, kw_only=True)
class SummaryTable:
    """The whole table; its bodies share their columns."""

    first: str
    """Name of the first column."""
    columns: list[Column]
    bodies: list[TableBody]


def summary_table(groups: list[Group]) -> SummaryTable:
    """The table of these groups; columns that only estimates fill are left out where exact figures are known."""
    columns = [column for column in COLUMNS if not column.only or _wanted(column, groups)]
    columns = [column for column in columns if not column.rare or any(group.values(column.key) for group in groups)]
    if any(source.sign < 0 for group in groups for line in group.lines for source in line.evaluated):
        columns = [replace(column, best="low") if column.key == TOP else column for column in columns]
    first = "Method" if repeated(groups) else "Run"
    return SummaryTable(first=first, columns=columns, bodies=[_body(group, columns) for group in groups])


def repeated(groups: list[Group]) -> bool:
    """Whether any row stands for more than one run."""
    return any(len(line.entries) > 1 for group in groups for line in group.lines)


def _wanted(column: Column, groups: list[Group]) -> bool:
    """Whether some run without exact figures has this estimate."""
    bare = [line for group in groups for line in group.lines if line.evaluated and not line.values("tv")]
    return any(line.values(column.key) for line in bare)


def _body(group: Group, columns: list[Column]) -> TableBody:
    best = {column.key: _best(column, group.lines) for column in columns}
    rows = [_row(line, columns, best) for line in group.lines]
    return TableBody(name=group.name, facts=facts(group), rows=rows)


def _best(column: Column, lines: list[Line]) -> set[str]:
    """Labels with the best value as it is written; nobody where all are alike."""
    known = {line.label: worse for line in lines if (worse := column.worse(line)) is not None}
    written = {label: column.text(value) for label, value in known.items()}
    if len(set(written.values())) < 2:
        return set()
    least = written[min(known, key=lambda label: known[label])]
    return {label for label, text in written.items() if text == least}


def _row(line: Line, columns: list[Column], best: dict[str, set[str]]) -> TableRow:
    cells = [_cell(column, line, line.label in best[column.key]) for column in columns]
    return TableRow(label=line.label, look=line.look, seeds=seeds(line), cells=cells)


def seeds(line: Line) -> str:
    """How many runs stand behind a row."""
    done, planned = len(line.evaluated), len(line.entries)
    text = f"{done} seed{'' if done == 1 else 's'}" if done == planned else f"{done} of {planned} seeds"
    failed = len(line.failed)
    return f"{text}, {failed} failed" if failed else text


def _cell(column: Column, line: Line, best: bool) -> Cell:
    found = spread(line.values(column.key))
    if found is None:
        return Cell(text=DASH)
    aim = spread(line.values(column.of)) if column.of else None
    of = "" if aim is None else f"of {column.text(aim.middle)}"
    ends, value = _ends(found, column.text), repr(found.middle)
    return Cell(text=column.text(found.middle), value=value, best=best, of=of, ends=ends)


def _ends(found: SeedInterval, text: Callable[[float], str]) -> str:
    """Quartiles or range in words; empty where they are written alike."""
    low, high = text(found.low), text(found.high)
    return "" if found.count < 2 or low == high else f"{low} to {high}"


def facts(group: Group) -> str:
    """What is known of a noise level, whoever trains on it."""
    known = [(label, group.values(key), _distance) for key, label in LEVELS.items()]
    mean = group.values("target_expected_reward")
    known.append(("target\N{RIGHT SINGLE QUOTATION MARK}s expected score", mean, score_text))
    said = [f"{label} {_span(values, text)}" for label, values, text in known if values]
    return " \N{MIDDLE DOT} ".join(said)


def _distance(value: float) -> str:
    return plain(value, 4)


def _span(values: list[float], text: Callable[[float], str]) -> str:
    """One number, or two where runs of a group differ in it."""
    return " to ".join(dict.fromkeys(text(value) for value in (min(values), max(values))))
