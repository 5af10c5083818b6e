"""Cells out of text, Excel and Parquet files, for `sgfn.config.tables`; errors name the file and the line."""

import csv
import gzip
import io
import re
import stat
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from sgfn.config.extras import optional

DELIMITERS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars"}
LARGEST = 2**30
"""Bytes at most that a packed file (.gz, .xlsx, .parquet) may unpack to: 1 GiB."""
CHUNK = 2**20
SHEET_ROWS = 2**20
"""Rows at most of an Excel sheet."""
PACKED = ".gz"
LINE_END = re.compile(r"\r\n|\r|\n")

Records = list[tuple[int, list[Any]]]
"""Number of the line or row, and its cells, all as many; the first record is the header."""


# Errors


def located(
    name: str, what: str, line: int | None = None, column: str | None = None, *, unit: str = "line"
) -> ValueError:
    """An error of one line that names the file and, where they are given, the line and the column."""
    place = name + (f", {unit} {line}" if line is not None else "")
    return ValueError(f"{place}{f', column {column!r}' if column is not None else ''}: {what}")


@contextmanager
def _readable(name: str, kind: str) -> Iterator[None]:
    """Turn whatever a library says of a damaged file into one line."""
    try:
        yield
    except Exception as error:  # a parser may fail anywhere in a damaged file
        raise located(name, f"not a readable {kind} ({_brief(error)}); save it again, or save it as CSV") from None


def _brief(error: Exception) -> str:
    """The first line of an error, cut where it gets long."""
    lines = str(error).splitlines()
    return lines[0][:120] if lines else type(error).__name__


def _check_size(name: str, size: int) -> None:
    """Raise where a file would unpack to more than memory should be asked for."""
    if size > LARGEST:
        raise located(name, f"unpacks to more than {LARGEST / 2**30:g} GiB; keep only the columns and rows you need")


def _count(fields: int, wanted: int) -> str:
    return f"{fields} field{'s' * (fields != 1)} where the header has {wanted}"


# Bytes


def check_file(path: Path, name: str) -> None:
    """Raise unless a path leads to a regular file."""
    with _found(name):
        mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        raise located(name, "a folder, not a file; name the file inside it")
    if not stat.S_ISREG(mode):  # a pipe would be waited for, a device may never end
        raise located(name, "a pipe or a device, not a file; save the table in a file")


@contextmanager
def _found(name: str) -> Iterator[None]:
    """Turn errors of the disk into one line."""
    try:
        yield
    except FileNotFoundError:
        raise located(name, "no such file; check the path") from None
    except OSError as error:
        raise located(name, f"cannot be read ({error.strerror}); check the path and its permissions") from None


def _content(path: Path, name: str) -> bytes:
    check_file(path, name)
    with _found(name):
        return path.read_bytes()


def _unpacked(data: bytes, name: str) -> bytes:
    """What gzip packed, read in pieces so that a small file cannot fill the memory."""
    parts, size = [], 0
    try:
        with gzip.open(io.BytesIO(data)) as file:
            while part := file.read(CHUNK):
                parts.append(part)
                size += len(part)
                _check_size(name, size)
    except (OSError, EOFError, zlib.error) as error:
        raise located(name, f"cannot be read as gzip ({_brief(error)}); pack the table again") from None
    return b"".join(parts)


# Text


def read_text(path: Path, name: str) -> str:
    """The whole text of a file, unpacked, less the mark of byte order that spreadsheets put at its beginning."""
    data = _content(path, name)
    data = _unpacked(data, name) if path.suffix.lower() == PACKED else data
    try:
        text, wrong = data.decode("utf-8-sig"), data.find(b"\0")
    except UnicodeDecodeError as error:
        text, wrong = "", error.start
    if wrong >= 0:
        line = len(re.findall(rb"\r\n|\r|\n", data[:wrong])) + 1
        raise located(name, f"byte 0x{data[wrong]:02x} is not UTF-8 text; save the table as CSV in UTF-8", line)
    return text


def delimiter_of(header: str, kind: str = "") -> str:
    """The mark between fields: tab in a .tsv that has one, else the commonest in the header outside quotes.

    >>> delimiter_of('a;b;"c, d, e"'), delimiter_of("a, b, c" + chr(9) + "score", ".tsv") == chr(9)
    (';', True)
    """
    bare = re.sub(r'"[^"]*"', "", header)
    return "\t" if kind == ".tsv" and "\t" in bare else max(DELIMITERS, key=bare.count)


def text_records(path: Path, name: str, kind: str) -> Records:
    """Records of separated values that are not empty, each with the line on which it begins."""
    text = read_text(path, name)
    first = next((line for line in LINE_END.split(text) if line.strip()), "")
    delimiter = delimiter_of(first, kind)
    found = list(_split(name, text, delimiter))
    for line, fields in found[1:]:
        if len(fields) != (wanted := len(found[0][1])):
            quote = f"put a field that holds {DELIMITERS[delimiter]} in quotes"
            fix = "fill in what is missing" if len(fields) < wanted else quote
            raise located(name, f"{_count(len(fields), wanted)}; {fix}", line)
    return found


def _split(name: str, text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Records of text; a quoted field may span several lines."""
    # newline="" leaves line ends as they are, so that \n, \r\n and \r all count as an editor counts them
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    line = 1
    try:
        for record in reader:
            fields = [field.strip() for field in record]
            if any(fields):
                yield line, fields
            line = reader.line_num + 1
    except csv.Error as error:
        raise located(name, f"not valid CSV ({error}); close each quote that is opened", line) from None


# Excel


def sheet_records(path: Path, name: str) -> Records:
    """Rows of a workbook's first sheet that are not empty; formulas have the values that were last computed."""
    openpyxl = optional("openpyxl", f"{name}: reading Excel", "save the table as CSV")
    data = _content(path, name)
    with _readable(name, "Excel workbook"), zipfile.ZipFile(io.BytesIO(data)) as parts:
        size = sum(part.file_size for part in parts.infolist())
    _check_size(name, size)
    with _readable(name, "Excel workbook"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of styles and validations, which do not matter here
        rows = list(_sheet_rows(openpyxl, data))
    wanted = len(rows[0][1]) if rows else 0
    for number, cells in rows:
        if len(cells) > wanted:
            raise located(name, f"{_count(len(cells), wanted)}; name each column", number, unit="row")
    return [(number, cells + [None] * (wanted - len(cells))) for number, cells in rows]


def _sheet_rows(openpyxl: Any, data: bytes) -> Iterator[tuple[int, list[Any]]]:
    """Number and cells of each row that is not empty, up to its last cell that is not."""
    book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
    sheet = book.worksheets[0]
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
    _check_size(name, max(packed, 8 * facts.num_rows * facts.num_columns))  # a repeated value takes next to no room
    with _readable(name, "Parquet file"):
        frame = pd.read_parquet(path)
    named = any(level is not None for level in frame.index.names)
    frame = frame.reset_index(drop=not named)
    return frame.set_axis([str(column) for column in frame.columns], axis=1)
