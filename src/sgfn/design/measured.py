"""Tables of a round: measured sequences, their scores, what had been ordered, and what had been predicted."""

import math
from difflib import get_close_matches
from pathlib import Path

import numpy as np
import pandas as pd

from sgfn.config.checks import shorten
from sgfn.config.tables import Table, read_table
from sgfn.design.settings import DesignConfig

MEASURED = {
    "sequence": object,
    "score": float,
    "sd": float,
    "order": object,
    "round": int,
    "predicted": float,
    "predicted_sd": float,
}
"""Columns of all that was measured, with their types; `sd` and predictions may be missing."""


def with_round(found: pd.DataFrame, number: int) -> pd.DataFrame:
    """Measurements with all columns, those that are missing empty, as of one round."""
    made = found.assign(round=number)
    for name in MEASURED:
        if name not in made:
            made[name] = "" if MEASURED[name] is object else np.nan
    return made[list(MEASURED)].astype(MEASURED)


def read_round(data: pd.DataFrame | Path | str, config: DesignConfig, *, told: bool = False) -> pd.DataFrame:
    """Measurements of a table or a file, checked; replicates stay rows of their own.

    A table that tells of orders (`told`) may name them in a column `order`; its column of sequences then says what came
    out, and may be left out where that is not known.
    """
    table = _table(data, "--measured" if told else "data")
    ordered = told and "order" in table.columns
    column = config.sequence_column
    sequence = "order" if ordered and column not in table.columns else column
    _check_columns(table, [sequence, config.score_column, *([config.sd_column] if config.sd_column else [])])
    read = {"sequence": [_sequence(table, row, sequence, text, config) for row, text in enumerate(table.texts(sequence))]}
    scores = [_number(table, row, config.score_column, text) for row, text in enumerate(table.texts(config.score_column))]
    orders = read["sequence"]
    if ordered:
        orders = [_sequence(table, row, "order", text, config) for row, text in enumerate(table.texts("order"))]
    found = pd.DataFrame({**read, "score": scores, "order": orders if told else [""] * len(scores)})
    if config.sd_column:
        cells = table.texts(config.sd_column)
        found["sd"] = [_number(table, row, config.sd_column, text, least=0.0) for row, text in enumerate(cells)]
    return found


def ignored_columns(data: pd.DataFrame | Path | str, config: DesignConfig) -> list[str]:
    """Columns of a table that are not read."""
    used = {config.sequence_column, config.score_column, config.sd_column, "order"}
    return [name for name in _table(data, "data").columns if name not in used]


def _table(data: pd.DataFrame | Path | str, field: str) -> Table:
    if isinstance(data, pd.DataFrame):
        if not len(data):
            raise ValueError(f"{field}: the table has no rows; add one row for each measured sequence")
        return Table(name="table", frame=data.reset_index(drop=True), lines=np.arange(1, len(data) + 1), unit="row")
    return read_table(Path(data), field, each="measured sequence")


def _check_columns(table: Table, names: list[str]) -> None:
    for name in names:
        if name not in table.columns:
            near = get_close_matches(name, table.columns, n=1, cutoff=0.5)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            header = shorten(", ".join(table.columns))
            raise table.header_problem(f"not in the header ({header}){hint}; name it there, or choose another column", name)


def _sequence(table: Table, row: int, column: str, text: str, config: DesignConfig) -> str:
    if not text:
        raise table.problem("the sequence is empty; fill it in or remove the row", row, column)
    best = next((form for form in (text, text.upper()) if set(form) <= set(config.alphabet)), None)
    if best is None:
        wrong = sorted(set(text.upper()) - set(config.alphabet)) or sorted(set(text) - set(config.alphabet))
        what = f"{shorten(text)!r} holds {shorten(', '.join(map(repr, wrong)))}, not in the alphabet {config.alphabet}"
        raise table.problem(f"{what}; correct or remove the row, or give another --alphabet", row, column)
    return best


def _number(table: Table, row: int, column: str, text: str, least: float = -math.inf) -> float:
    try:
        value = float(text) if "_" not in text else math.nan
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < least:
        fix = "write it like 0.25 or 2.5e-3, or remove the row"
        raise table.problem(f"{shorten(text)!r} is not a finite number{' of 0 or above' * (least == 0)}; {fix}", row, column)
    return value
