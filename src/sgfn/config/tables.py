"""One reader for every table that a user gives: CSV, TSV, text and FASTA, each also packed with gzip, Parquet, Excel.

Every problem is a ValueError of one line, `FIELD FILE, line N, column 'C': what; fix`. N counts lines as an editor
does, rows of the sheet in Excel, and rows from 1 on in Parquet.
"""

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Int64

from sgfn.config.reading import PACKED, check_count, lines_of, located, read_text
from sgfn.config.table_readers import Records, fasta_records, parquet_frame, sheet_records, text_records

TEXT = (".csv", ".tsv", ".txt")
PARQUET, EXCEL = (".parquet", ".pq"), (".xlsx", ".xlsm")
FASTA = (".fasta", ".fa", ".fas", ".fna", ".faa")
ACCEPTED = f"{', '.join(TEXT)} (each also with .gz), .parquet or .xlsx"


@dataclass(frozen=True, kw_only=True)
class Table:
    """Columns of a file, and the line or row of the file at which each row of the table stands."""

    name: str
    """What an error calls the file."""
    frame: pd.DataFrame
    """Cells as they were written: text of a text file, typed values of Parquet and Excel."""
    lines: Int64[np.ndarray, " R"]
    unit: str = "line"
    header: int | None = None
    """Line of the header; None where the names of the columns stand in no line."""
    delimiter: str = ""
    """Mark between the fields of a text; empty for other files."""

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return [str(name) for name in self.frame.columns]

    def problem(self, what: str, row: int | None = None, column: str | None = None) -> ValueError:
        """An error that names the file and, where they are given, the row's line and the column."""
        return located(self.name, what, None if row is None else int(self.lines[row]), column, unit=self.unit)

    def header_problem(self, what: str, column: str | None = None) -> ValueError:
        """An error that names the file and the line of the header."""
        return located(self.name, what, self.header, column, unit=self.unit)

    def texts(self, column: str) -> list[str]:
        """The cells of a column as text without blanks around it, empty where the cell is."""
        return spell(self.frame[column])


def read_table(path: Path, field_name: str = "", each: str = "entry") -> Table:
    """The table in a file, read as the ending of its name says; it has a row at least, and columns of different names.

    `field_name` is the setting that names the file, `each` what a row stands for: errors speak of them. The header of a
    text and of Excel's first sheet is the first line that is not empty; empty lines below it are passed over.
    """
    name, kind = called(path, field_name), ending(path, field_name)
    if kind in PARQUET:
        frame = parquet_frame(path, name)
        table = Table(name=name, frame=frame, lines=np.arange(1, len(frame) + 1), unit="row")
    elif kind in EXCEL:
        records, name = sheet_records(path, name)
        table = _from_records(name, records, "row", each)
    elif kind in FASTA:
        table = _from_records(name, fasta_records(path, name), "line", each)
    else:
        delimiter, records = text_records(path, name, kind)
        table = replace(_from_records(name, records, "line", each), delimiter=delimiter)
    _check_names(table)
    if not len(table.frame):
        raise table.problem(f"a header and no rows; add one row for each {each}")
    return table


def read_plain(path: Path, field_name: str = "", column: str = "", each: str = "entry") -> Table:
    """The lines of a text without a header, packed or not, as a table of one column; blank lines are passed over."""
    name = called(path, field_name)
    numbered = []
    for number, line in enumerate(lines_of(read_text(path, name)), start=1):
        check_count(name, number)
        if text := line.strip():
            numbered.append((number, text))
    if not numbered:
        raise located(name, f"the file is empty; write one line for each {each}")
    lines = np.array([n for n, _ in numbered], dtype=np.int64)
    return Table(name=name, frame=pd.DataFrame({column: [line for _, line in numbered]}, dtype=object), lines=lines)


def called(path: Path, field_name: str) -> str:
    """What an error calls a file: the setting that names it, if any, and its path."""
    return f"{field_name} {path}".strip()


def ending(path: Path, field_name: str = "") -> str:
    """The ending of a table's name without `.gz`, in lower case; empty where there is none, which means text.

    >>> ending(Path("a.CSV.gz")), ending(Path("b.parquet")), ending(Path("c"))
    ('.csv', '.parquet', '')
    """
    packed = path.suffix.lower() == PACKED
    kind = (path.with_suffix("") if packed else path).suffix.lower()
    if kind in ("", *TEXT, *FASTA) or (not packed and kind in (*PARQUET, *EXCEL)):
        return kind
    whole = kind + PACKED * packed
    raise located(called(path, field_name), f"tables are not read from {whole!r} files; save it as {ACCEPTED}")


def spell(cells: pd.Series) -> list[str]:
    """Cells as text without blanks around it, empty where missing; whole numbers without a point.

    >>> spell(pd.Series([1.0, None, 2.5])), spell(pd.Series([" a", 7]))
    (['1', '', '2.5'], ['a', '7'])
    """
    missing = cells.isna().tolist()
    return ["" if empty else _spelled(cell) for cell, empty in zip(cells.tolist(), missing, strict=True)]


def _spelled(cell: Any) -> str:
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53:
        return str(int(cell))
    return (cell.decode("utf-8", "replace") if isinstance(cell, bytes) else str(cell)).strip()


def _from_records(name: str, records: Records, unit: str, each: str) -> Table:
    """A table of a header and rows; columns without a name that hold nothing are left out."""
    if not records:
        raise located(name, f"the file is empty; write a header and one row for each {each}")
    (first, header), *rows = records
    kept = [at for at in range(len(header)) if any(cells[at] not in ("", None) for _, cells in records)]
    names = ["" if header[at] is None else _spelled(header[at]) for at in kept]
    series = [_column([cells[at] for _, cells in rows], text=unit == "line") for at in kept]
    frame = pd.concat(series, axis=1).set_axis(names, axis=1)
    lines = np.array([line for line, _ in rows], dtype=np.int64)
    return Table(name=name, frame=frame, lines=lines, unit=unit, header=first)


def _column(cells: list[Any], *, text: bool) -> pd.Series:
    """Cells of one column; numbers and times of a sheet get the type that they have in common."""
    return pd.Series(cells, dtype=object) if text or not cells else pd.Series(cells)


def _check_names(table: Table) -> None:
    """Raise where two columns have one name."""
    counts = Counter(table.columns)
    name, count = max(counts.items(), key=lambda item: item[1], default=("", 0))
    if count > 1:
        raise table.header_problem(f"{count} columns have this name; rename all but one", name)
