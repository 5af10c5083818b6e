"""Tables of a round: measured sequences, their scores, what had been ordered, and what had been predicted."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sgfn.config.checks import nearest, shorten
from sgfn.config.tables import Table, spell
from sgfn.design.settings import DesignConfig
from sgfn.landscapes.measurements import ALPHABETS, Measurements, read_measurements, table_of
from sgfn.landscapes.score_cells import with_points, with_scores

MEASURED = {
    "sequence": object,
    "score": float,
    "sd": float,
    "weight": float,
    "order": object,
    "round": int,
    "predicted": float,
    "predicted_sd": float,
}
"""Columns of all that was measured, with their types; `sd` and predictions may be missing."""
ORDER = "order"
"""Column that says what was ordered, in tables that tell of a plate."""
PROTEIN_LETTERS = 10
"""Different letters from which on a table is taken for one of proteins."""
WELL = re.compile(r"[A-Za-z]{0,2}[0-9]+")
"""A whole number, or the name of a well."""
LEAST_SEQUENCE = 4
"""Characters from which on a cell without a digit is taken for a sequence."""
Source = pd.DataFrame | Path | str


def with_round(found: pd.DataFrame, number: int) -> pd.DataFrame:
    """Measurements with all columns, those that are missing empty, as of one round."""
    made = found.assign(round=number)
    for name in MEASURED:
        if name not in made:
            made[name] = "" if MEASURED[name] is object else np.nan
    return made[list(MEASURED)].astype(MEASURED)


@dataclass(frozen=True, kw_only=True, eq=False)
class RoundTable:
    """Measurements of a table, checked: replicates stay rows, rows without a score are left out where they may be."""

    table: Table
    """The rows that were read, with their lines."""
    rows: pd.DataFrame
    """Columns `sequence`, `score`, `order` and, where they are set, `sd` and `weight`."""
    order_column: str
    """Column that says what was ordered."""
    ignored: tuple[str, ...]
    """Columns that were not read."""
    unmeasured: tuple[int, ...]
    """Lines without a score."""
    respelled: tuple[int, ...]
    """Lines whose sequence was written with U where the others have T, or the other way round."""
    commas: tuple[str, ...]
    """Columns with decimal commas."""


def read_round(source: Source, config: DesignConfig, *, told: bool = False, flags: bool = False) -> RoundTable:
    """Measurements of a table or a file.

    A table that tells of orders (`told`) may name them in a column `order`; its column of sequences then says what came
    out, and may be left out where that is not known. A column `order` that numbers rows is not read. A score that is
    empty or NA says that nothing was measured. `flags`: messages name flags of the command line, not parameters of
    Python.
    """
    given = with_names(table_of(source, _field(told, flags)), _columns(config, told))
    pointed, commas = with_points(given, _numbers(config))
    whole, respelled = _one_spelling(pointed, config, told)
    table, unmeasured = with_scores(whole, [name for name, _ in config.score_parts])
    frame, ordered = table.frame, told and ORDER in table.columns and not _numbered(table, config)
    sequence = ORDER if ordered and config.sequence_column not in frame else config.sequence_column
    if told and not ordered and sequence not in frame and not nearest(sequence, table.columns):
        what = f"neither {ORDER!r} nor {sequence!r} is in the header ({shorten(', '.join(table.columns))})"
        raise table.header_problem(f"{what}; write into a column {ORDER} what was ordered, as orders.csv has it")
    checked = _checked(table, config, sequence, flags)
    if ordered and sequence != ORDER:
        _checked(table, config, ORDER, flags)  # orders are sequences of the same letters
    found = pd.DataFrame({"sequence": _letters(frame[sequence], config.alphabet)})
    found["score"] = _weighted(frame, config)
    if config.sd_column:
        found["sd"] = [float(text) for text in table.texts(config.sd_column)]
    if config.weight_column:
        found["weight"] = _weights(table, config.weight_column, flags)
    ordering = ORDER if ordered else sequence
    found["order"] = _letters(frame[ordering], config.alphabet) if told else ""
    read = {config.weight_column, *((ORDER,) if ordered else ())}
    return RoundTable(
        table=table,
        rows=found,
        order_column=ordering,
        ignored=tuple(name for name in checked.ignored if name not in read),
        unmeasured=unmeasured,
        respelled=respelled,
        commas=commas,
    )


def _columns(config: DesignConfig, told: bool) -> list[str]:
    """Names of the columns that are read, those that need not be there included."""
    return [config.sequence_column, *_numbers(config), *((ORDER,) if told else ())]


def _numbers(config: DesignConfig) -> list[str]:
    """Names of the columns that hold numbers."""
    scores = [name for name, _ in config.score_parts]
    return [*scores, *(name for name in (config.sd_column, config.weight_column) if name)]


def _numbered(table: Table, config: DesignConfig) -> bool:
    """Whether a column `order` numbers the rows, or names them, beside a column of sequences."""
    if config.sequence_column not in table.columns:
        return False
    cells = [text for text in table.texts(ORDER) if text]
    counted = all(text.isdecimal() and int(text) == number for number, text in enumerate(cells, start=1))
    return counted or all(_is_name(text, config.alphabet) for text in cells)


def _is_name(text: str, letters: str) -> bool:
    """Whether a cell is a number, a well or another name, and not a sequence, however wrong its letters are.

    >>> [_is_name(text, "ACGT") for text in ("12", "A1", "well 2", "x", "ACGTACGN", "ACGT-ACGA", "NNNNNN", "ACG5TA")]
    [True, True, True, True, False, False, False, False]
    """
    if any(letter.isdecimal() for letter in letters):  # numbers may be sequences
        return False
    own = sum(letter in letters.upper() for letter in text.upper())
    short = len(text) < LEAST_SEQUENCE or any(letter.isdecimal() for letter in text)
    return WELL.fullmatch(text) is not None or (short and 2 * own <= len(text))


def with_names(table: Table, names: Sequence[str]) -> Table:
    """The table with its columns called as they are asked for, where one alone differs from a name by its case."""
    lacking = {name: [own for own in table.columns if own.lower() == name.lower()] for name in names}
    found = {own[0]: name for name, own in lacking.items() if len(own) == 1 and name not in table.columns}
    return replace(table, frame=table.frame.rename(columns=found)) if found else table


def _one_spelling(table: Table, config: DesignConfig, told: bool) -> tuple[Table, tuple[int, ...]]:
    """The table with T for U, or U for T, as the alphabet has it, and the lines where that changed something.

    Only where a table has both letters, or tells of a plate whose alphabet is known: elsewhere a strange letter is more
    likely a mistake in the choice of the alphabet.
    """
    strange = {frozenset("ACGT"): "U", frozenset("ACGU"): "T"}.get(frozenset(config.alphabet))
    names = [name for name in (config.sequence_column, ORDER) if strange and name in table.columns]
    texts = {name: spell(table.frame[name]) for name in names}
    letters = set("".join(map("".join, texts.values())).upper())
    if strange is None or strange not in letters or not (told or {"T", "U"} <= letters):
        return table, ()
    swap = str.maketrans("Tt", "Uu") if strange == "T" else str.maketrans("Uu", "Tt")
    frame = table.frame.assign(**{name: [text.translate(swap) for text in texts[name]] for name in names})
    rows = [any(strange in texts[name][row].upper() for name in names) for row in range(len(frame))]
    changed = tuple(int(line) for line, one in zip(table.lines, rows, strict=True) if one)
    return replace(table, frame=frame), changed


def _weighted(frame: pd.DataFrame, config: DesignConfig) -> list[float]:
    """Weighted sum of each row's scores; the cells were checked before."""
    columns = [[weight * float(text) for text in spell(frame[name])] for name, weight in config.score_parts]
    return [math.fsum(row) for row in zip(*columns, strict=True)]


def _weights(table: Table, column: str, flags: bool) -> list[float]:
    """How much each row counts: finite, zero or above."""
    if column not in table.columns:
        chosen = "--weight-column" if flags else "weight_column="
        raise table.header_problem(f"column {column!r} is not in the header; choose it with {chosen}")
    found = []
    for row, text in enumerate(table.texts(column)):
        try:
            found.append(float(text))
        except ValueError:
            found.append(math.nan)
        if not 0.0 <= found[-1] < math.inf:
            what = f"{text!r} is no weight; write a number of 0 or above, or remove the row"
            raise table.problem(what, row, column)
    return found


def _checked(table: Table, config: DesignConfig, sequence: str, flags: bool) -> Measurements:
    """The table as the reader of measurements takes it, which raises for whatever is wrong with it."""
    return read_measurements(
        table,
        config.alphabet,
        sequence,
        [name for name, _ in config.score_parts],
        duplicates="mean",
        weights=[weight for _, weight in config.score_parts],
        sd_column=config.sd_column,
        signed=True,
        flags="--" if flags else "",
    )


def shown_alphabet(table: Path, column: str) -> str:
    """Name of the alphabet that the sequences of a table show: dna unless the letters are those of rna or proteins.

    Proteins must show ten letters at least: a few letters beside A, C, G and T are more likely mistakes in DNA.
    """
    frame = with_names(table_of(table, "table"), [column]).frame
    written = "".join(spell(frame[column])).upper() if column in frame else ""
    letters = set(written)
    if letters <= {*ALPHABETS["dna"], *ALPHABETS["rna"]} and written.count("U") > written.count("T"):
        return "rna"
    shown = letters & set(ALPHABETS["protein"])  # a strange letter or two are told later, by their line
    return "protein" if len(shown) >= PROTEIN_LETTERS else "dna"


def _field(told: bool, flags: bool) -> str:
    """What errors write before a file's name."""
    return ("--measured" if flags else "") if told else "table"


def _letters(cells: Any, alphabet: str) -> list[str]:
    """Sequences as written, or upper-cased where only that makes them valid."""
    return [text if set(text) <= set(alphabet) else text.upper() for text in spell(cells)]
