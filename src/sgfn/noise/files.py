"""Noise read from a user's table: a confusion matrix, or a slip rate for each position."""

import math
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from sgfn.config.checks import shorten
from sgfn.noise.kinds import ByPosition, ConfusionMatrix

if TYPE_CHECKING:
    from sgfn.config.tables import Table

FIELD = "noise.file"
STOP = "stop"
"""Label of the stop action in a confusion matrix."""


def read_confusion(file: Path, alphabet: str, stop: bool = False) -> ConfusionMatrix:
    """The matrix in a table with the realised letters in its header and the intended one before each row; `stop` too
    where it slips."""
    from sgfn.config.tables import read_table  # pandas is slow to import, and large

    labels = [*alphabet, *([STOP] if stop else [])]
    table = read_table(file, FIELD, each="intended letter")
    first, *names = table.columns
    columns = _labels(table, "the header", names, labels)
    order = _labels(table, "the first column", table.texts(first), labels)
    cells = [_probabilities(table, name) for name in names]
    matrix = torch.zeros(len(labels), len(labels), dtype=torch.float64)
    for row, values in enumerate(zip(*cells, strict=True)):
        total = math.fsum(values)
        if abs(total - 1.0) > 1e-6:
            raise table.problem(f"row {labels[order[row]]!r} sums to {total:.7g}, it must sum to 1", row)
        matrix[order[row], columns] = torch.tensor(values, dtype=torch.float64) / total
    return ConfusionMatrix(matrix=matrix, stop=stop)


def read_rates(file: Path, length: int, stop: bool = False) -> ByPosition:
    """The rates in the column `alpha`, one row per position from the first on; a column `position` must count them."""
    from sgfn.config.tables import read_table

    table = read_table(file, FIELD, each="position")
    if "alpha" not in table.columns:
        raise table.header_problem("the header has no column 'alpha'")
    alphas = _probabilities(table, "alpha")
    if 1.0 in alphas:
        raise table.problem("must lie in [0, 1), got 1", alphas.index(1.0), "alpha")
    counted = table.texts("position") if "position" in table.columns else []
    for row, text in enumerate(counted):
        if text != str(row + 1):
            raise table.problem(f"expected {row + 1}, got {shorten(text)}", row, "position")
    if len(alphas) < length:
        raise ValueError(f"{table.name} has {len(alphas)} positions, the task has {length}: add rows")
    return ByPosition(alphas=tuple(alphas), stop=stop)


def _labels(table: "Table", where: str, found: list[str], wanted: list[str]) -> list[int]:
    """Which entry of `wanted` each label is; each must be there exactly once, in any order."""
    wrong = [name for name in found if name not in wanted]
    missing = [name for name in wanted if name not in found]
    twice = [name for name in wanted if found.count(name) > 1]
    for names, trouble in ((wrong, "has the unknown"), (missing, "lacks"), (twice, "repeats")):
        if names:
            listed = shorten(", ".join(map(repr, names)), 80)
            what = f"{where} {trouble} {listed}; it needs each of {' '.join(wanted)} once"
            raise table.header_problem(what) if where == "the header" else ValueError(f"{table.name}, {what}")
    return [wanted.index(name) for name in found]


def _probabilities(table: "Table", column: str) -> list[float]:
    """The numbers of a column, each in [0, 1]."""
    return [_probability(table, row, column, text) for row, text in enumerate(table.texts(column))]


def _probability(table: "Table", row: int, column: str, text: str) -> float:
    try:
        value = float(text.replace("_", "x"))  # Python's own 1_000 is no number of a table
    except ValueError:
        raise table.problem(f"{shorten(text)!r} is not a number", row, column) from None
    if not 0.0 <= value <= 1.0 + 1e-6:
        raise table.problem(f"{shorten(text)} is no probability in [0, 1]", row, column)
    return value
