"""The table of all figures: one row per label, a body per noise level."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal
from xml.etree.ElementTree import Element

from sgfn.evaluation.seeds import SeedInterval, spread
from sgfn.reports.pages.charts import LEVELS, plain, swatch
from sgfn.reports.pages.entries import Group, Line
from sgfn.reports.pages.markup import tag

DASH = "\N{EN DASH}"
SCORE = 3
"""Decimals of a score of ordinary size."""


def score_text(value: float) -> str:
    """Three decimals, or two digits of a small number.

    >>> score_text(0.97137), score_text(-12.5), score_text(0.000374), score_text(1e-16)
    ('0.971', '\N{MINUS SIGN}12.500', '0.00037', '0.000')
    """
    if 1e-9 < abs(value) < 0.01:
        return f"{value:.2g}".replace("-", "\N{MINUS SIGN}")
    return plain(value, SCORE)


@dataclass(frozen=True, kw_only=True)
class Column:
    """A figure, how it is written, and which of its values is best."""

    key: str
    name: str
    about: str
    decimals: int
    best: Literal["low", "high", "near", "none"]
    of: str | None = None
    """What the value is to be compared with: "near" means near to this."""
    only: bool = False
    """Left out where no run has it."""

    def text(self, value: float) -> str:
        """Scores as such, counts without decimals unless a median lies between two."""
        if self.decimals == SCORE:
            return score_text(value)
        return plain(value, self.decimals if self.decimals or value == int(value) else 1)

    def worse(self, line: Line) -> float | None:
        """What is to be as low as possible."""
        found = spread(line.values(self.key))
        if found is None or self.best == "none":
            return None
        aim = spread(line.values(self.of)) if self.of else None
        if self.best == "near" and aim is not None:
            return abs(found.middle - aim.middle)
        return found.middle if self.best == "low" else -found.middle


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
        key="top100_mean",
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


def summary_table(groups: list[Group]) -> Element:
    """All groups under one head, so that columns stand in line."""
    columns = [column for column in COLUMNS if not column.only or _wanted(column, groups)]
    head = tag(
        "tr",
        _head("label", "Method" if repeated(groups) else "Run", "text"),
        [_head(c.key, c.name, c.best) for c in columns],
    )
    bodies = [_body(group, columns) for group in groups]
    caption = tag("caption", "Figures of every row, by noise level", class_="hidden")
    return tag("table", caption, tag("thead", head), bodies, class_="figures sortable")


def repeated(groups: list[Group]) -> bool:
    """Whether any row stands for more than one run."""
    return any(len(line.entries) > 1 for group in groups for line in group.lines)


def legend(groups: list[Group]) -> Element:
    """What each column means."""
    columns = [column for column in COLUMNS if not column.only or _wanted(column, groups)]
    lines = [[tag("dt", column.name), tag("dd", column.about)] for column in columns]
    return tag("details", tag("summary", "What the columns mean"), tag("dl", lines))


def _wanted(column: Column, groups: list[Group]) -> bool:
    """Estimates step in where the exact figures are missing."""
    bare = [line for group in groups for line in group.lines if line.evaluated and not line.values("tv")]
    return any(line.values(column.key) for line in bare)


def _head(key: str, name: str, best: str) -> Element:
    """A column's name is a button, so keys reach it; the best value comes first at the first press."""
    first = "descending" if best == "high" else "ascending"
    return tag("th", tag("button", name, type="button", data_first=first), scope="col", data_key=key)


def _body(group: Group, columns: list[Column]) -> Element:
    best = {column.key: _best(column, group.lines) for column in columns}
    rows = [_row(line, columns, best) for line in group.lines]
    title = tag("div", tag("strong", group.name), tag("span", facts(group)), class_="facts")
    head = tag("tr", tag("th", title, colspan=len(columns) + 1, scope="rowgroup"), class_="group")
    return tag("tbody", head, rows)


def _best(column: Column, lines: list[Line]) -> set[str]:
    """Labels with the best value as it is written; nobody where all are alike."""
    known = {line.label: worse for line in lines if (worse := column.worse(line)) is not None}
    written = {label: column.text(value) for label, value in known.items()}
    if len(set(written.values())) < 2:
        return set()
    least = written[min(known, key=lambda label: known[label])]
    return {label for label, text in written.items() if text == least}


def _row(line: Line, columns: list[Column], best: dict[str, set[str]]) -> Element:
    name = tag("th", swatch(line.series), tag("span", line.label, class_="label"), scope="row", data_value=line.label)
    name.append(tag("small", seeds(line)))
    return tag("tr", name, [_cell(column, line, line.label in best[column.key]) for column in columns])


def seeds(line: Line) -> str:
    """How many runs stand behind a row."""
    done, all_of_them = len(line.evaluated), len(line.entries)
    text = f"{done} seed{'' if done == 1 else 's'}" if done == all_of_them else f"{done} of {all_of_them} seeds"
    failed = len(line.failed)
    return f"{text}, {failed} failed" if failed else text


def _cell(column: Column, line: Line, best: bool) -> Element:
    found = spread(line.values(column.key))
    if found is None:
        return tag("td", DASH)
    text = column.text(found.middle)
    parts: list[object] = [tag("strong", text, tag("span", " (best)", class_="hidden")) if best else text]
    aim = spread(line.values(column.of)) if column.of else None
    if aim is not None:
        parts.append(tag("span", f" of {column.text(aim.middle)}", class_="of"))
    return tag("td", parts, _ends(found, column.text), data_value=repr(found.middle), class_="best" if best else None)


def _ends(found: SeedInterval, text: Callable[[float], str]) -> Element | None:
    """Quartiles or range, beneath."""
    low, high = text(found.low), text(found.high)
    if found.count < 2 or low == high:
        return None
    return tag("small", f"{low} to {high}")


def facts(group: Group) -> str:
    """What is known of a noise level, whoever trains on it."""
    known = [(label, group.values(key), _distance) for key, label in LEVELS]
    mean = group.values("target_expected_reward")
    known.append(("target\N{RIGHT SINGLE QUOTATION MARK}s expected score", mean, score_text))
    said = [f"{label} {_span(values, text)}" for label, values, text in known if values]
    return " \N{MIDDLE DOT} ".join(said)


def _distance(value: float) -> str:
    return plain(value, 4)


def _span(values: list[float], text: Callable[[float], str]) -> str:
    """One number, or two where runs of a group differ in it."""
    return " to ".join(dict.fromkeys(text(value) for value in (min(values), max(values))))
