"""Cells of scores as people write them: empty or NA where nothing was measured, decimal commas."""

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
EITHER = re.compile(r"[+-]?[1-9][0-9]{0,2},[0-9]{3}")
"""A number whose comma may stand before decimals or between thousands."""


def missing(text: str) -> bool:
    """Whether a cell says that nothing was measured."""
    return text.lower() in MISSING


def with_points(table: "Table", columns: Sequence[str]) -> tuple["Table", tuple[str, ...]]:
    """The table with points for decimal commas, and the columns that had some: those among `columns` of a text whose
    fields no comma separates. Columns whose commas may all be between thousands are refused."""
    if table.delimiter in ("", ","):
        return table, ()
    changed = {}
    for name in dict.fromkeys(columns):
        if name in table.columns and (points := _pointed(texts := table.texts(name))):
            _refuse_thousands(table, name, texts)
            changed[name] = points
    return replace(table, frame=table.frame.assign(**changed)), tuple(changed)


def _refuse_thousands(table: "Table", column: str, texts: list[str]) -> None:
    """Raise where every comma of a column may stand between thousands."""
    rows = [row for row, text in enumerate(texts) if "," in text]
    if all(EITHER.fullmatch(texts[row]) for row in rows):
        text = texts[rows[0]]
        what = f"{text!r} has a thousands separator or a decimal comma, and no other row tells which"
        fix = f"write {text.replace(',', '')} or {text.replace(',', '.')}, and so in every row"
        raise table.problem(f"{what}; {fix}", rows[0], column)


def with_commas(columns: Sequence[str]) -> str:
    """A notice of columns with decimal commas; empty where there are none.

    >>> with_commas(["score", "sd"])
    "columns 'score', 'sd': commas are read as decimal commas"
    """
    named = ", ".join(map(repr, columns))
    return f"column{'s' * (len(columns) > 1)} {named}: commas are read as decimal commas" if columns else ""


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
