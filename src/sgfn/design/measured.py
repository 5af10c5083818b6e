"""Tables of a round: measured sequences, their scores, what had been ordered, and what had been predicted."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sgfn.config.tables import read_table, spell
from sgfn.design.settings import DesignConfig
from sgfn.landscapes.measurements import ALPHABETS, Measurements, read_measurements

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
Source = pd.DataFrame | Path | str


def with_round(found: pd.DataFrame, number: int) -> pd.DataFrame:
    """Measurements with all columns, those that are missing empty, as of one round."""
    made = found.assign(round=number)
    for name in MEASURED:
        if name not in made:
            made[name] = "" if MEASURED[name] is object else np.nan
    return made[list(MEASURED)].astype(MEASURED)


def read_round(source: Source, config: DesignConfig, *, told: bool = False) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Measurements of a table or a file, checked, and the columns that were not read; replicates stay rows.

    A table that tells of orders (`told`) may name them in a column `order`; its column of sequences then says what came
    out, and may be left out where that is not known.
    """
    frame = _cells(source, told)
    ordered = told and ORDER in frame
    sequence = ORDER if ordered and config.sequence_column not in frame else config.sequence_column
    checked = _checked(source, config, sequence, told)
    if ordered and sequence != ORDER:
        _checked(source, config, ORDER, told)  # orders are sequences of the same letters
    found = pd.DataFrame({"sequence": _letters(frame[sequence], config.alphabet)})
    found["score"] = _weighted(frame, config)
    if config.sd_column:
        found["sd"] = [float(text) for text in spell(frame[config.sd_column])]
    if config.weight_column:
        found["weight"] = _weights(frame, config.weight_column, _named(source, told))
    found["order"] = _letters(frame[ORDER if ordered else sequence], config.alphabet) if told else ""
    read = {config.weight_column, *((ORDER,) if ordered else ())}
    return found, tuple(name for name in checked.ignored if name not in read)


def _weighted(frame: pd.DataFrame, config: DesignConfig) -> list[float]:
    """Weighted sum of each row's scores; the cells were checked before."""
    columns = [[weight * float(text) for text in spell(frame[name])] for name, weight in config.score_parts]
    return [math.fsum(row) for row in zip(*columns, strict=True)]


def _weights(frame: pd.DataFrame, column: str, name: str) -> list[float]:
    """How much each row counts: finite, zero or above."""
    if column not in frame:
        raise ValueError(f"{name}: column {column!r} is not in the header; choose it with --weight-column")
    found = []
    for row, text in enumerate(spell(frame[column]), start=1):
        try:
            found.append(float(text))
        except ValueError:
            found.append(math.nan)
        if not 0.0 <= found[-1] < math.inf:
            what = f"{text!r} is no weight; write a number of 0 or above, or remove the row"
            raise ValueError(f"{name}, row {row} below the header, column {column!r}: {what}")
    return found


def _named(source: Source, told: bool) -> str:
    return _field(told) if isinstance(source, pd.DataFrame) else f"{_field(told)} {source}"


def _checked(source: Source, config: DesignConfig, sequence: str, told: bool) -> Measurements:
    """The table as the reader of measurements takes it, which raises for whatever is wrong with it."""
    return read_measurements(
        source,
        config.alphabet,
        sequence,
        [name for name, _ in config.score_parts],
        duplicates="mean",
        weights=[weight for _, weight in config.score_parts],
        sd_column=config.sd_column,
        signed=True,
        field_name=_field(told),
        flags="--",
    )


def shown_alphabet(table: Path, column: str) -> str:
    """Name of the alphabet that the sequences of a table show: dna unless all letters fit rna or protein alone.

    Proteins must show ten letters at least: a few letters beside A, C, G and T are more likely mistakes in DNA.
    """
    frame = _cells(table, told=False)
    letters = set("".join(spell(frame[column])).upper()) if column in frame else set()
    if letters <= set(ALPHABETS["dna"]) or not letters <= set(ALPHABETS["rna"]) | set(ALPHABETS["protein"]):
        return "dna"
    if letters <= set(ALPHABETS["rna"]):
        return "rna"
    return "protein" if letters <= set(ALPHABETS["protein"]) and len(letters) >= PROTEIN_LETTERS else "dna"


def _field(told: bool) -> str:
    return "--measured" if told else "table"


def _cells(source: Source, told: bool) -> pd.DataFrame:
    if isinstance(source, pd.DataFrame):
        return source.reset_index(drop=True).set_axis([str(name) for name in source.columns], axis=1)
    return read_table(Path(source), _field(told), each="measured sequence").frame


def _letters(cells: Any, alphabet: str) -> list[str]:
    """Sequences as written, or upper-cased where only that makes them valid."""
    return [text if set(text) <= set(alphabet) else text.upper() for text in spell(cells)]
