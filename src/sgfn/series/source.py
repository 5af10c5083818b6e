"""A user's table of time series before anything is believed of it: text columns, and the line of each row.

Every problem is a ValueError of one line, `FILE, line N, column 'C': what; fix`, N as an editor counts lines.
"""

import csv
import gzip
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float64, Int64, Shaped

MISSING = ("", "na", "n/a", "nan", "null", "none", ".", "-", "?")
SWITCHES = {"true": "1", "false": "0", "yes": "1", "no": "0"}
PARQUET = (".parquet", ".pq")
DELIMITERS = ",;\t|"
ALIASES = {
    "unique_id": ("id", "series", "series_id", "item", "item_id", "name", "sku", "store", "shop", "product"),
    "ds": ("date", "datetime", "timestamp", "time", "day", "month"),
    "y": ("value", "target", "sales", "demand"),
}
SLASHED = ("%m/%d/%Y", "%d/%m/%Y")
OFFSET = re.compile(r"\s*(?:[zZ]|[+-]\d\d(?::?\d\d)?)$")
"""From universal time, at the end of a time of day."""
RESET = "give data.reset_index(), or data.reset_index(names='ds') where the index has no name"
LARGEST = 1e30
"""Training reads values in float32: what is larger would become infinite there."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """Columns of a file or of a DataFrame, and where each row stands there."""

    name: str
    frame: pd.DataFrame
    lines: Int64[np.ndarray, " R"]
    unit: str = "line"
    index: tuple[str, ...] = ()
    """Names of a DataFrame's index, which is not read; `ds` where it has none and holds times."""

    def problem(self, what: str, row: int | None = None, column: str | None = None) -> ValueError:
        """An error that names the place."""
        place = self.name + (f", {self.unit} {self.lines[row]}" if row is not None else "")
        return ValueError(f"{place}{f', column {column!r}' if column else ''}: {what}")

    def require(self, column: str, option: str) -> None:
        """Raise unless a column is there, and suggest the nearest name."""
        if column in self.frame.columns:
            return
        if column in self.index:
            raise self.problem(f"{column!r} is the index, not a column; {RESET}")
        near, flag = self.nearest(column), f"--{option.replace('_', '-')} ({option} in Python)"
        hint = f"did you mean {near!r}? Choose it with {flag}" if near else f"choose one with {flag}"
        there = ", ".join(map(str, self.frame.columns))[:120]
        raise self.problem(f"no column {column!r} among {there}; {hint}")

    def nearest(self, column: str) -> str:
        """A column that may be meant by a name; empty where there is none."""
        folded = {str(name).lower(): str(name) for name in self.frame.columns}
        near = [name for name in ALIASES.get(column, ()) if name in folded]
        near += get_close_matches(column.lower(), folded, n=1, cutoff=0.5)
        return folded[near[0]] if near else ""

    def numbers(self, column: str) -> Float64[np.ndarray, " R"]:
        """A column as finite numbers, nan where it is empty."""
        cells = self.frame[column]
        if pd.api.types.is_numeric_dtype(cells):  # bool is numeric too
            found = cells.to_numpy(dtype=np.float64, na_value=np.nan)
        else:
            found = self.parsed(column, text_of(cells))
        if wrong := where(np.isinf(found) | (np.abs(found) > LARGEST)):
            what = f"{cells.iloc[wrong[0]]!s} is {'not finite' if np.isinf(found[wrong[0]]) else 'too large'}"
            fix = f"write a number within {LARGEST:g}, or leave it empty where it is missing"
            raise self.problem(f"{what}; {fix}", wrong[0], column)
        return found

    def parsed(self, column: str, text: pd.Series) -> Float64[np.ndarray, " R"]:
        """Numbers out of text."""
        folded = text.str.lower()
        empty = folded.isin(MISSING)
        found = pd.to_numeric(folded.replace(SWITCHES), errors="coerce").to_numpy(dtype=np.float64)
        if wrong := where(np.isnan(found) & ~empty.to_numpy()):
            what = not_a_number(text.iloc[wrong[0]])
            raise self.problem(f"{what}; {self.way_out(column)}", wrong[0], column)
        return found

    def way_out(self, column: str) -> str:
        """What to do about a column that should hold numbers."""
        named = column in ALIASES["unique_id"] and "unique_id" not in self.frame.columns
        other = f"name the series by it (--id-col {column})" if named else f"leave a covariate out (--ignore {column})"
        return f"write a number such as 2.5, leave it empty where it is missing, or {other}"

    def stamps(self, column: str) -> "Times":
        """A column as times, datetime64[ns], without offsets from universal time."""
        cells = self.frame[column]
        if pd.api.types.is_datetime64_any_dtype(cells):
            text, universal, local = cells, pd.to_datetime(cells, utc=True), cells.dt.tz_localize(None)
        else:
            text = text_of(whole_numbers(cells))
            universal, local = parse_times(text), None
        if wrong := where(universal.isna().to_numpy()):
            raise self.problem(not_a_time(str(text.iloc[wrong[0]]), text), wrong[0], column)
        return one_clock(universal, self.local(column, text, universal) if local is None else local)

    def local(self, column: str, text: pd.Series, universal: pd.Series) -> pd.Series:
        """Times as they are written, offsets left out; all have one or none has."""
        timed = text.str.contains("[:T]")
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


@dataclass(frozen=True, kw_only=True)
class Times:
    """Stamps of each row, and what should be said of them."""

    stamps: Shaped[np.ndarray, " R"]
    notice: str = ""


# Cells


def where(condition: Bool[np.ndarray, " R"]) -> list[int]:
    """The rows in which something holds."""
    return np.flatnonzero(condition).tolist()


def text_of(cells: pd.Series) -> pd.Series:
    """Cells as text without blanks around it, empty where missing."""
    return cells.astype(object).where(cells.notna(), "").astype(str).str.strip()


def not_a_number(text: str) -> str:
    """What to say of a cell that should be a number."""
    comma = pd.notna(pd.to_numeric(text.replace(",", "."), errors="coerce"))
    return f"{text[:40]!r} {'has a decimal comma' if comma else 'is not a number'}"


def not_a_time(text: str, column: pd.Series) -> str:
    """What to say of a cell that should be a time."""
    if not text or text == "NaT":
        return "the time stamp is empty; fill it in or remove the row"
    if all(pd.to_datetime(column, format=form, errors="coerce").notna().all() for form in SLASHED):
        return f"{text[:40]!r} may be day/month or month/day; write 2024-01-31"
    return f"{text[:40]!r} is not a time stamp; write 2024-01-31 or 2024-01-31 13:45 (years 1678 to 2261)"


def parse_times(text: pd.Series) -> pd.Series:
    """ISO 8601, or a date with slashes whose order the column itself makes plain; NaT where neither fits."""
    found = pd.to_datetime(text, format="ISO8601", errors="coerce", utc=True)
    if not found.isna().all():
        return found
    slashed = [pd.to_datetime(text, format=form, errors="coerce", utc=True) for form in SLASHED]
    fits = [one for one in slashed if one.notna().all()]
    return fits[0] if len(fits) == 1 else found


def whole_numbers(cells: pd.Series) -> pd.Series:
    """Numbers such as 20240131.0 without the point; a column with an empty cell holds its numbers so."""
    if not pd.api.types.is_float_dtype(cells):
        return cells
    seen = cells.dropna()
    whole = np.isfinite(seen).all() and (seen == seen.round()).all() and (seen.abs() < 2**53).all()
    return cells.astype("Int64") if whole else cells


def one_clock(universal: pd.Series, local: pd.Series) -> Times:
    """Local time where it is as regular as universal time is: one offset for all, or one time of day for all."""
    there, offset = local.to_numpy().astype("datetime64[ns]"), local - universal.dt.tz_localize(None)
    if not offset.any():
        return Times(stamps=there)
    if offset.nunique() == 1 or local.dt.time.nunique() == 1:
        return Times(stamps=there, notice="offsets from universal time are left out; stamps are local time")
    return Times(
        stamps=universal.dt.tz_localize(None).to_numpy().astype("datetime64[ns]"),
        notice="offsets from universal time differ; stamps are read, and written, in universal time",
    )


# Files


def open_table(source: Path | str | pd.DataFrame) -> Table:
    """A DataFrame, or a CSV (plain or .gz) or Parquet file, as a table of cells."""
    if isinstance(source, pd.DataFrame):
        table = frame_table(source)
    else:
        table = parquet(Path(source)) if Path(source).suffix.lower() in PARQUET else text_table(Path(source))
    if not len(table.frame):
        raise table.problem("no rows; write one row for each observed value")
    if len(twice := table.frame.columns[table.frame.columns.duplicated()]):
        raise table.problem(f"two columns are named {twice[0]!r}; rename one")
    return table


def frame_table(frame: pd.DataFrame) -> Table:
    """A DataFrame; its index is no column."""
    names = [str(name) for name in frame.index.names if name is not None]
    if not names and isinstance(frame.index, pd.DatetimeIndex):
        names = ["ds"]
    plain = frame.reset_index(drop=True).set_axis(frame.columns.map(str), axis=1)
    return Table(name="DataFrame", frame=plain, lines=np.arange(len(frame)), unit="row", index=tuple(names))


def parquet(file: Path) -> Table:
    """A Parquet file; needs pyarrow."""
    try:
        frame = pd.read_parquet(file)
    except ImportError:
        raise ValueError(
            f"{file}: reading Parquet needs pyarrow; pip install pyarrow, or save the table as CSV"
        ) from None
    except FileNotFoundError:
        raise ValueError(f"{file}: no such file; check the path") from None
    except (OSError, ValueError) as error:
        raise ValueError(f"{file}: not a readable Parquet file ({str(error).splitlines()[0][:120]})") from None
    named = [name for name in frame.index.names if name is not None]  # pandas stores an index as columns
    return Table(name=str(file), frame=frame.reset_index(drop=not named), lines=np.arange(len(frame)), unit="row")


def text_table(file: Path) -> Table:
    """A file of separated values with a header; the separator is the commonest mark of the header."""
    text = decoded(file)
    first = next((line for line in text.splitlines() if line.strip()), "")
    if not first:
        raise ValueError(f"{file}: the file is empty; write a header (unique_id,ds,y) and one row for each value")
    records = list(read_records(file, text, max(DELIMITERS, key=first.count)))
    header = records[0][1]
    for line, fields in records[1:]:
        if len(fields) != len(header):
            what = f"{len(fields)} fields where the header has {len(header)}; fill in what is missing or quote a field"
            raise ValueError(f"{file}, line {line}: {what}")
    rows = [fields for _, fields in records[1:]]
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(header)
    series = [pd.Series(column, name=name, dtype=object) for name, column in zip(header, columns, strict=True)]
    lines = np.array([line for line, _ in records[1:]], dtype=np.int64)
    return Table(name=str(file), frame=pd.concat(series, axis=1), lines=lines)


def read_records(file: Path, text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Each record that is not empty, with the line on which it begins."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    line = 1
    try:
        for record in reader:
            fields = [field.strip() for field in record]
            if any(fields):
                yield line, fields
            line = reader.line_num + 1
    except csv.Error as error:
        raise ValueError(f"{file}, line {line}: not valid CSV ({error}); close each quote that is opened") from None


def decoded(file: Path) -> str:
    """The whole text of a file, unpacked where it ends in .gz."""
    if file.is_dir():
        raise ValueError(f"{file}: a folder, not a file; name the file inside it")
    try:
        blob = file.read_bytes()
        return (gzip.decompress(blob) if file.suffix.lower() == ".gz" else blob).decode("utf-8-sig")
    except FileNotFoundError:
        raise ValueError(f"{file}: no such file; check the path") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{file}: byte {error.start} is not UTF-8 text; save the table as CSV in UTF-8") from None
    except (OSError, EOFError) as error:
        raise ValueError(f"{file}: cannot be read ({error}); check the file and its permissions") from None
