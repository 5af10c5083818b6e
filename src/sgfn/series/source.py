"""A user's table of time series before anything is believed of it: its cells as times, numbers and names.

Every problem is a ValueError of one line, `FILE, line N, column 'C': what; fix`.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float64, Shaped

from sgfn.config.checks import nearest
from sgfn.config.shell import flag
from sgfn.config.tables import Table, read_table, spell
from sgfn.series.number_text import SIGNED, comma_numbers, decimal_commas, not_a_number, with_points
from sgfn.series.times import (
    Times,
    labelled_times,
    looks_like_dates,
    not_a_time,
    parse_times,
    told_row,
    without_offsets,
)

NO_WORD = "none"
"""Missing among numbers; among words it is one of them (a promotion of kind none)."""
MISSING = ("", "na", "n/a", "nan", "null", NO_WORD, ".", "-", "?")
SWITCHES = {"true": "1", "false": "0", "yes": "1", "no": "0"}
ALIASES = {
    "unique_id": ("id", "series", "series_id", "item", "item_id", "name", "sku", "store", "shop", "product"),
    "ds": (
        "date",
        "datetime",
        "timestamp",
        "time",
        "day",
        "week",
        "month",
        "quarter",
        "year",
        "period",
        "index",
        "epoch",
        "step",
        "datum",
        "zeit",
        "zeitpunkt",
        "zeitstempel",
        "monat",
        "jahr",
        "fecha",
    ),
    "y": ("value", "values", "target", "sales", "demand", "count", "quantity"),
}
OFFSET = re.compile(r"\s*(?:[zZ]|[+-]\d\d(?::?\d\d)?)$")
"""From universal time, at the end of a time of day."""
RESET = "give data.reset_index(), or data.reset_index(names='ds') where the index has no name"
MANY = (list, dict, set, tuple, np.ndarray)
"""Cells of a DataFrame that are no single value."""
LARGEST = 1e30
"""Training reads values in float32: what is larger would become infinite there."""


@dataclass(frozen=True, kw_only=True)
class SeriesTable(Table):
    """Columns of a file or of a DataFrame, and where each row stands there."""

    index: tuple[str, ...] = ()
    """Names of a DataFrame's index, which is not read; `ds` where it has none and holds times."""

    def require(self, column: str, option: str) -> None:
        """Raise unless a column is there, and suggest the nearest name."""
        if column in self.frame.columns:
            return
        if column in self.index:
            raise self.problem(f"{column!r} is the index, not a column; {RESET}")
        near, flag = self.nearest(column), f"--{option.replace('_', '-')} ({option} in Python)"
        several = " or several (a,b)" if option == "target_col" else ""
        hint = f"did you mean {near!r}? Choose it with {flag}" if near else f"choose one{several} with {flag}"
        there = ", ".join(map(str, self.frame.columns))[:120]
        raise self.problem(f"no column {column!r} among {there}; {hint}")

    def nearest(self, column: str) -> str:
        """A column that may be meant by a name; empty where there is none."""
        folded = {str(name).lower(): str(name) for name in self.frame.columns}
        known = [folded[name] for name in ALIASES.get(column, ()) if name in folded]
        return known[0] if known else nearest(column, folded.values())

    def numbers(self, column: str, *, target: bool = False) -> Float64[np.ndarray, " R"]:
        """A column as finite numbers, nan where it is empty; errors offer no way without a `target`."""
        cells = self.frame[column]
        if pd.api.types.is_numeric_dtype(cells):  # bool is numeric too
            found = cells.to_numpy(dtype=np.float64, na_value=np.nan)
        else:
            found = self.parsed(column, text_of(cells), target=target)
        if wrong := where(np.isinf(found) | (np.abs(found) > LARGEST)):
            what = f"{cells.iloc[wrong[0]]!s} is {'not finite' if np.isinf(found[wrong[0]]) else 'too large'}"
            fix = f"write a number within {LARGEST:g}, or leave it empty where it is missing"
            raise self.problem(f"{what}; {fix}", wrong[0], column)
        return found

    def parsed(self, column: str, text: pd.Series, *, target: bool = False) -> Float64[np.ndarray, " R"]:
        """Numbers out of text."""
        folded = text.str.lower()
        empty = folded.isin(MISSING)
        if self.has_decimal_commas(column):
            folded = with_points(folded.mask(empty, ""))
        found = pd.to_numeric(folded.replace(SWITCHES), errors="coerce").to_numpy(dtype=np.float64)
        if wrong := where(np.isnan(found) & ~empty.to_numpy()):
            what = not_a_number(text.iloc[wrong[0]])
            way = (
                "write a number such as 2.5, or leave it empty where it is missing" if target else self.way_out(column)
            )
            raise self.problem(what if ": write" in what else f"{what}; {way}", wrong[0], column)
        return found

    def has_decimal_commas(self, column: str) -> bool:
        """Whether a column is read with decimal commas: fields lie between semicolons, and all its numbers allow it."""
        if self.delimiter != ";":
            return False
        text = text_of(self.frame[column])
        return decimal_commas(text[~text.str.lower().isin(MISSING)])

    def words(self, column: str) -> pd.Series | None:
        """A column of which no cell is a number, as text that is empty where missing; None for other columns."""
        cells = self.frame[column]
        if pd.api.types.is_numeric_dtype(cells) or pd.api.types.is_datetime64_any_dtype(cells):
            return None
        text = text_of(cells)
        folded = text.str.lower()
        given = ~folded.isin(MISSING)
        numbers = pd.to_numeric(folded.replace(SWITCHES), errors="coerce")
        if not given.any() or numbers[given].notna().any() or comma_numbers(text[given]).all():
            return None
        return text.where(given | (folded == NO_WORD), "")

    def mostly_numbers(self, column: str) -> bool:
        """Whether more than half of the cells of a column of text that are not empty are numbers, commas allowed."""
        cells = self.frame[column]
        if pd.api.types.is_datetime64_any_dtype(cells):
            return False
        text = text_of(cells)
        text = text[~text.str.lower().isin(MISSING)]
        numbers = pd.to_numeric(text, errors="coerce").notna() | comma_numbers(text).astype(bool)
        return bool(len(text)) and float((numbers | text.str.fullmatch(SIGNED).astype(bool)).mean()) > 0.5

    def names_series(self, column: str) -> bool:
        """Whether a column has a customary name of names of series, and none is called `unique_id`."""
        return column in ALIASES["unique_id"] and "unique_id" not in self.frame.columns

    def way_out(self, column: str) -> str:
        """What to do about a column that should hold numbers."""
        other = f"leave a covariate out ({flag('ignore', column)})"
        if self.names_series(column):
            other = f"name the series by it ({flag('id-col', column)})"
        return f"write a number such as 2.5, leave it empty where it is missing, or {other}"

    def stamps(self, column: str) -> "Times":
        """A column as times, datetime64[ns], without offsets from universal time; see `sgfn.series.times`."""
        cells = self.frame[column]
        if pd.api.types.is_datetime64_any_dtype(cells):
            text, universal, local = cells, pd.to_datetime(cells, utc=True), cells.dt.tz_localize(None)
        else:
            text = text_of(cells)
            if (labelled := labelled_times(text)) is not None and not np.isnat(labelled.stamps).any():
                return labelled
            universal, local = parse_times(text), None
        if wrong := where(universal.isna().to_numpy()):
            row = told_row(wrong[0], text)
            raise self.problem(not_a_time(row, text), row, column)
        return without_offsets(universal, self.local(column, text, universal) if local is None else local)

    def local(self, column: str, text: pd.Series, universal: pd.Series) -> pd.Series:
        """Times as they are written, offsets left out; all have one or none has."""
        timed = text.str.contains(r":|\dT\d")  # 04-OCT-2021 ends with no offset
        aware = timed & text.str.contains(OFFSET)
        if not aware.any():
            return universal.dt.tz_localize(None)
        if wrong := where(~aware.to_numpy()):
            there, other = text.iloc[wrong[0]], text[aware].iloc[0]
            what = f"{there!r} has no offset from universal time, but {other!r} has; write all with one, or none"
            raise self.problem(what, wrong[0], column)
        return parse_times(text.str.replace(OFFSET, "", regex=True)).dt.tz_localize(None)

    def labels(self, column: str) -> Shaped[np.ndarray, " R"]:
        """A column as names, none of them empty."""
        text = text_of(self.frame[column])
        if wrong := where((text == "").to_numpy()):
            raise self.problem("the name of the series is empty; fill it in", wrong[0], column)
        return text.to_numpy(dtype=object)


# Cells


def where(condition: Bool[np.ndarray, " R"]) -> list[int]:
    """The rows in which something holds."""
    return np.flatnonzero(condition).tolist()


def text_of(cells: pd.Series) -> pd.Series:
    """Cells as text without blanks around it, empty where missing; 20240131.0 as 20240131."""
    return pd.Series(spell(cells), dtype=object)


# Sources


def open_table(source: Path | str | pd.DataFrame) -> SeriesTable:
    """A DataFrame, or a file of those that `sgfn.config.tables` reads, as a table of cells."""
    if not isinstance(source, pd.DataFrame):
        table = SeriesTable(**vars(read_table(Path(source), each="observed value")))
        check_header(table)
        return table
    table = frame_table(source)
    if not len(table.frame):
        raise table.problem("no rows; write one row for each observed value")
    if len(twice := table.frame.columns[table.frame.columns.duplicated()]):
        raise table.problem(f"two columns are named {twice[0]!r}; rename one")
    for name in table.columns:
        if wrong := [row for row, cell in enumerate(table.frame[name].tolist()) if isinstance(cell, MANY)]:
            what = f"a cell is a {type(table.frame[name].iloc[wrong[0]]).__name__}, not one value"
            raise table.problem(f"{what}; make it a column for each value, or drop the column", wrong[0], name)
    return table


def check_header(table: SeriesTable) -> None:
    """Raise where the names of columns are a time or numbers that go on below: the file has no header."""
    for name in table.columns:
        dated = looks_like_dates(pd.Series([name])) and looks_like_dates(text_of(table.frame[name]))
        pointed = re.fullmatch(r"[+-]?\d+\.\d+", name) is not None and table.mostly_numbers(name)
        if dated or pointed:
            what = f"{name!r} is a value, not the name of a column"
            raise table.header_problem(f"{what}; write a header such as ds,y as the first line")


def frame_table(frame: pd.DataFrame) -> SeriesTable:
    """A DataFrame; its index is no column."""
    names = [str(name) for name in frame.index.names if name is not None]
    if not names and isinstance(frame.index, pd.DatetimeIndex):
        names = ["ds"]
    plain = frame.reset_index(drop=True).set_axis(frame.columns.map(str), axis=1)
    return SeriesTable(name="DataFrame", frame=plain, lines=np.arange(len(frame)), unit="row", index=tuple(names))
