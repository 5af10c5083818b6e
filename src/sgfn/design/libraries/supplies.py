"""A supplier's bias read from a small table: what comes out where a letter is ordered."""

import math
from pathlib import Path

import numpy as np
from jaxtyping import Float64

from sgfn.config.checks import shorten
from sgfn.config.tables import Table, read_table
from sgfn.design.libraries.codons import BASES, LETTERS, Supply

FIELD = "--bias"
LETTER = "letter"


def read_supply(path: Path | str, field: str = FIELD) -> Supply:
    """The supply of a table with columns `letter`, A, C, G and T: proportions (sum 1) or percentages (sum 100).

    The row N, where there is one, tells the bias of letters without a row and of mixtures in percent too.
    """
    table = read_table(Path(path), field, each="letter of IUPAC")
    for column in (LETTER, *BASES):
        if column not in table.columns:
            raise table.header_problem(f"column {column!r} is not in the header; it needs {LETTER},A,C,G,T")
    named: dict[str, Float64[np.ndarray, " 4"]] = {}
    cells = [table.texts(base) for base in BASES]
    for row, text in enumerate(table.texts(LETTER)):
        letter = text.upper()
        if letter not in LETTERS:
            raise table.problem(f"{shorten(text)!r} is no letter of IUPAC; choose from {''.join(LETTERS)}", row, LETTER)
        if letter in named:
            raise table.problem(f"{letter} is there twice; remove one row", row, LETTER)
        named[letter] = _proportions(table, row, letter, [column[row] for column in cells])
    return Supply(rates=named.get("N", np.full(4, 0.25)), named=named)


def _proportions(table: Table, row: int, letter: str, texts: list[str]) -> Float64[np.ndarray, " 4"]:
    """Four proportions of sum one, of the bases that the letter stands for alone."""
    found = np.array([_number(table, row, base, text) for base, text in zip(BASES, texts, strict=True)])
    total = math.fsum(found)
    if min(abs(total - 1.0), abs(total - 100.0) / 100.0) > 0.011:
        raise table.problem(f"the proportions of {letter} sum to {total:.4g}; they must sum to 1 or to 100", row)
    for base, share in zip(BASES, found, strict=True):
        if (share > 0) != (base in LETTERS[letter]):
            must = "be above 0" if base in LETTERS[letter] else "be 0"
            raise table.problem(f"{letter} stands for {' '.join(LETTERS[letter])}: {base} must {must}", row, base)
    return found / total


def _number(table: Table, row: int, column: str, text: str) -> float:
    try:
        value = float(text.replace("_", "x").removesuffix("%"))
    except ValueError:
        value = math.nan
    if not 0.0 <= value <= 100.0:
        raise table.problem(f"{shorten(text)!r} is no proportion; write a number of 0 or above", row, column)
    return value
