"""Cells of scores as people write them: empty or NA where nothing was measured, decimal commas between semicolons."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from sgfn.config.tables import Table

MISSING = ("", "na", "n/a", "nan", "null", "none")
"""Scores of what was not measured, in any case."""
DECIMAL = re.compile(r"[+-]?[0-9]*(,[0-9]+)?([eE][+-]?[0-9]+)?")
"""A number with a comma before its decimals, or none."""


def missing(text: str) -> bool:
    """Whether a cell says that nothing was measured."""
    return text.lower() in MISSING


def with_points(table: "Table", columns: Sequence[str]) -> "Table":
    """The table with points for decimal commas, in columns of numbers of a text whose fields no comma separates."""
    if table.delimiter in ("", ","):
        return table
    changed = {name: texts for name in columns if name in table.columns and (texts := _pointed(table.texts(name)))}
    return replace(table, frame=table.frame.assign(**changed)) if changed else table


def _pointed(texts: list[str]) -> list[str] | None:
    """Numbers with points; None where no cell has a comma, or one has something else than a number around it.

    >>> _pointed(["0,25", "NA", "3"]), _pointed(["1,5", "2.5"])
    (['0.25', 'NA', '3'], None)
    """
    written = [text for text in texts if not missing(text)]
    if not any("," in text for text in written) or not all(DECIMAL.fullmatch(text) for text in written):
        return None
    return [text.replace(",", ".") for text in texts]


def with_scores(table: "Table", columns: Sequence[str]) -> tuple["Table", tuple[int, ...]]:
    """The rows that have all scores, and the lines of the others; columns that are not there are left to checks."""
    names = [name for name in columns if name in table.columns]
    scores = zip(*map(table.texts, names), strict=True)
    kept = np.array([not any(map(missing, row)) for row in scores], dtype=bool)
    if not names or kept.all():
        return table, ()
    if not kept.any():
        raise table.problem("no row has a score; fill in those that were measured", column=names[0])
    found = replace(table, frame=table.frame[kept].reset_index(drop=True), lines=table.lines[kept])
    return found, tuple(int(line) for line in table.lines[~kept])


def without_score(lines: Sequence[int], unit: str, what: str = "left out") -> str:
    """A notice of rows without a score; empty where there are none.

    >>> without_score([3, 7], "line")
    '2 rows without a score (the first on line 3): left out'
    """
    rows = "1 row" if len(lines) == 1 else f"{len(lines)} rows"
    return f"{rows} without a score (the first on {unit} {lines[0]}): {what}" if lines else ""
