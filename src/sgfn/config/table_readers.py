"""Cells out of text, Excel and Parquet files, for `sgfn.config.tables`; errors name the file and the line."""

import csv
import io
import re
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from sgfn.config.csv_cells import unmarked
from sgfn.config.extras import optional
from sgfn.config.reading import (
    brief,
    check_columns,
    check_count,
    check_file,
    check_size,
    lines_of,
    located,
    read_bytes,
    read_text,
)

DELIMITERS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars"}
SHEET_ROWS = 2**20
"""Rows at most of an Excel sheet."""

Records = list[tuple[int, list[Any]]]
"""Number of the line or row, and its cells, all as many; the first record is the header."""


# Errors


@contextmanager
def _readable(name: str, kind: str) -> Iterator[None]:
    """Turn whatever a library says of a damaged file into one line."""
    try:
        yield
    except Exception as error:  # a parser may fail anywhere in a damaged file
        raise located(name, f"not a readable {kind} ({brief(error)}); save it again, or save it as CSV") from None


def _count(fields: int, wanted: int) -> str:
    return f"{fields} field{'s' * (fields != 1)} where the header has {wanted}"


# Text


def delimiter_of(header: str, kind: str = "") -> str:
    """The mark between fields: tab in a .tsv that has one, else the commonest in the header outside quotes.

    >>> delimiter_of('a;b;"c, d, e"'), delimiter_of("a, b, c" + chr(9) + "score", ".tsv") == chr(9)
    (';', True)
    """
    bare = re.sub(r'"[^"]*"', "", header)
    return "\t" if kind == ".tsv" and "\t" in bare else max(DELIMITERS, key=bare.count)


def text_records(path: Path, name: str, kind: str) -> tuple[str, Records]:
    """The mark between fields, and records of separated values that are not empty, with the line of each."""
    text = read_text(path, name)
    first = next((line for line in lines_of(text) if line.strip()), "")
    delimiter = delimiter_of(first, kind)
    found = list(_split(name, text, delimiter))
    for line, fields in found[1:]:
        if len(fields) != (wanted := len(found[0][1])):
            quote = f"put a field that holds {DELIMITERS[delimiter]} in quotes"
            fix = "fill in what is missing" if len(fields) < wanted else quote
            raise located(name, f"{_count(len(fields), wanted)}; {fix}", line)
    return delimiter, found


def _split(name: str, text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Records of text; a quoted field may span several lines."""
    reader = csv.reader(lines_of(text), delimiter=delimiter, strict=True)
    line, cells = 1, 0
    try:
        for record in reader:
            fields = [unmarked(field.strip()) for field in record]
            check_columns(name, len(fields))
            check_count(name, cells := cells + len(fields))
            if any(fields):
                yield line, fields
            line = reader.line_num + 1
    except csv.Error as error:
        long = "field larger" in str(error)
        what = f"a field has more than {csv.field_size_limit():,} characters" if long else f"not valid CSV ({error})"
        fix = "close each quote that is opened" + (", or shorten it" if long else "")
        raise located(name, f"{what}; {fix}", line) from None


# FASTA


def fasta_records(path: Path, name: str) -> Records:
    """Records of FASTA: columns `name`, `sequence` and one for each `key=value` of the headers, in any of them.

    `>peptide7 score=1.2 sd=0.1` gives `score` and `sd`; a sequence may span several lines.
    """
    found: list[tuple[int, dict[str, str]]] = []
    for number, line in enumerate(lines_of(read_text(path, name)), start=1):
        check_count(name, number)
        text = line.strip()
        if text.startswith(">"):
            words = text[1:].split()
            title = " ".join(word for word in words if "=" not in word)
            keys = dict(word.split("=", 1) for word in words if "=" in word)
            found.append((number, {"name": title, "sequence": "", **keys}))
        elif text and not found:
            raise located(name, "not FASTA: the first line must begin with > and name the sequence", number)
        elif text and not text.startswith(";"):
            found[-1][1]["sequence"] += text
    header = list(dict.fromkeys(key for _, cells in found for key in cells))
    return [(1, header), *((line, [cells.get(key, "") for key in header]) for line, cells in found)] if found else []


# Excel


def sheet_records(path: Path, name: str) -> tuple[Records, str]:
    """Rows of a workbook's first sheet that are not empty, and what errors call it: its title too, if it has others.

    Formulas have the values that were last computed.
    """
    openpyxl = optional("openpyxl", f"{name}: reading Excel", "save the table as CSV")
    data = read_bytes(path, name)
    with _readable(name, "Excel workbook"), zipfile.ZipFile(io.BytesIO(data)) as parts:
        size = sum(part.file_size for part in parts.infolist())
    check_size(name, size)
    with _readable(name, "Excel workbook"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of styles and validations, which do not matter here
        book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
        sheets = book.worksheets
        rows = list(_sheet_rows(sheets[0]))
    if len(sheets) > 1:
        name = f"{name}, first sheet {sheets[0].title!r}"
    wanted = len(rows[0][1]) if rows else 0
    for number, cells in rows:
        if len(cells) > wanted:
            raise located(name, f"{_count(len(cells), wanted)}; name each column", number, unit="row")
    return [(number, cells + [None] * (wanted - len(cells))) for number, cells in rows], name


def _sheet_rows(sheet: Any) -> Iterator[tuple[int, list[Any]]]:
    """Number and cells of each row that is not empty, up to its last cell that is not."""
    sheet.reset_dimensions()  # some programs write a wrong size
    for number, row in enumerate(sheet.iter_rows(values_only=True), start=1):
        if number > SHEET_ROWS:
            raise ValueError(f"more than {SHEET_ROWS:,} rows")
        cells = [None if isinstance(cell, str) and not cell.strip() else cell for cell in row]
        while cells and cells[-1] is None:
            cells.pop()
        if cells:
            yield number, cells


# Parquet


def parquet_frame(path: Path, name: str) -> pd.DataFrame:
    """The table in a Parquet file; an index that pandas stored becomes columns."""
    parquet = optional("pyarrow.parquet", f"{name}: reading Parquet", "save the table as CSV")
    check_file(path, name)
    with _readable(name, "Parquet file"):
        facts = parquet.read_metadata(path)
        packed = sum(facts.row_group(group).total_byte_size for group in range(facts.num_row_groups))
    check_columns(name, facts.num_columns)
    check_size(name, max(packed, 8 * facts.num_rows * facts.num_columns))  # a repeated value takes next to no room
    with _readable(name, "Parquet file"):
        frame = pd.read_parquet(path)
    named = any(level is not None for level in frame.index.names)
    frame = frame.reset_index(drop=not named)
    return frame.set_axis([str(column) for column in frame.columns], axis=1)
