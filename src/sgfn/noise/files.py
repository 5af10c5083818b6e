"""Noise read from a user's table: a confusion matrix, or a slip rate for each position."""

import math
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float64
from torch import Tensor

from sgfn.config.checks import shorten
from sgfn.noise.kinds import ByPosition, ConfusionMatrix

if TYPE_CHECKING:
    from sgfn.config.tables import Table

FIELD = "noise.file"
STOP = "stop"
"""Label of the stop action in a confusion matrix."""
ROUNDING = 0.02
"""By how much the sum of rounded probabilities may miss one."""


def read_confusion(file: Path, alphabet: str, stop: bool = False) -> ConfusionMatrix:
    """The matrix in a table with the realised letters in its header and the intended one before each row; `stop` too
    where it slips.

    Letters may be lower case. Counts, percentages and rounded numbers are made probabilities, which `notice` tells.
    """
    from sgfn.config.tables import read_table  # pandas is slow to import, and large

    labels = [*alphabet, *([STOP] if stop else [])]
    table = read_table(file, FIELD, each="intended letter")
    matrix, notice = read_laws(table, labels, table.columns[1:])
    made = ConfusionMatrix(matrix=matrix, stop=stop)
    object.__setattr__(made, "notice", notice)
    return made


def read_laws(table: "Table", labels: list[str], names: list[str]) -> tuple[Float64[Tensor, "V V"], str]:
    """Laws of what is written for each label, from the named columns, and what was done to make them laws."""
    columns = match_labels(table, "the header", names, labels)
    order = match_labels(table, "the first column", table.texts(table.columns[0]), labels)
    cells = list(zip(*(amounts(table, name) for name in names), strict=True))
    unit = _unit(cells)
    matrix = torch.zeros(len(labels), len(labels), dtype=torch.float64)
    for row, values in enumerate(cells):
        total = math.fsum(values)
        if total == 0.0 or (unit is None and abs(total - 1.0) > ROUNDING):
            what = f"row {labels[order[row]]!r} sums to {total:.7g}, it must sum to 1"
            raise table.problem(what, row)
        matrix[order[row], columns] = torch.tensor(values, dtype=torch.float64) / total
    return matrix, f"{table.name}: {unit} were made probabilities, row by row" if unit else ""


def _unit(cells: list[tuple[float, ...]]) -> str | None:
    """What rows of numbers that do not sum to 1 are; empty where they do, None where that cannot be told."""
    sums = [math.fsum(row) for row in cells]
    if all(abs(total - 1.0) <= 1e-6 for total in sums):
        return ""
    if all(abs(total - 1.0) <= ROUNDING for total in sums):
        return "rounded numbers"
    if all(abs(total - 100.0) <= 100 * ROUNDING for total in sums):
        return "percentages"
    return "counts" if all(value.is_integer() for row in cells for value in row) else None


def read_rates(file: Path, length: int, stop: bool = False) -> ByPosition:
    """The rates in the column `alpha`, one row per position from the first on; a column `position` must count them."""
    from sgfn.config.tables import read_table

    table = read_table(file, FIELD, each="position")
    if "alpha" not in table.columns:
        raise table.header_problem("the header has no column 'alpha'")
    alphas = rate_column(table, "alpha")
    check_positions(table)
    if len(alphas) < length:
        raise ValueError(f"{table.name} has {len(alphas)} positions, the task has {length}: add rows")
    return ByPosition(alphas=tuple(alphas), stop=stop)


def match_labels(table: "Table", where: str, found: list[str], wanted: list[str]) -> list[int]:
    """Which entry of `wanted` each label is; each must be there exactly once, in any order and case."""
    found = [name if name in wanted or name.upper() not in wanted else name.upper() for name in found]
    wrong = [name for name in found if name not in wanted]
    missing = [name for name in wanted if name not in found]
    twice = [name for name in wanted if found.count(name) > 1]
    for names, trouble in ((wrong, "has the unknown"), (missing, "lacks"), (twice, "repeats")):
        if names:
            listed = shorten(", ".join(map(repr, names)), 80)
            what = f"{where} {trouble} {listed}; it needs each of {' '.join(wanted)} once"
            raise table.header_problem(what) if where == "the header" else ValueError(f"{table.name}, {what}")
    return [wanted.index(name) for name in found]


def check_positions(table: "Table") -> None:
    """Raise unless a column `position`, where there is one, counts the rows from 1 on."""
    for row, text in enumerate(table.texts("position") if "position" in table.columns else []):
        if text != str(row + 1):
            raise table.problem(f"expected {row + 1}, got {shorten(text)}", row, "position")


def rate_column(table: "Table", column: str) -> list[float]:
    """The numbers of a column, each a rate in [0, 1)."""
    found = [_amount(table, row, column, text) for row, text in enumerate(table.texts(column))]
    for row, value in enumerate(found):
        if value >= 1.0:
            wrong = "must lie in [0, 1), got 1" if value == 1.0 else f"{value:g} is no probability in [0, 1]"
            raise table.problem(wrong, row, column)
    return found


def amounts(table: "Table", column: str) -> list[float]:
    """The numbers of a column, each zero or above."""
    return [_amount(table, row, column, text) for row, text in enumerate(table.texts(column))]


def _amount(table: "Table", row: int, column: str, text: str) -> float:
    try:
        value = float(text.replace("_", "x"))  # Python's own 1_000 is no number of a table
    except ValueError:
        raise table.problem(f"{shorten(text)!r} is not a number", row, column) from None
    if not 0.0 <= value < math.inf:
        raise table.problem(f"{shorten(text)} is no probability in [0, 1]", row, column)
    return value
