"""The one reader of tables: what is written in any kind of file is read back, and every mistake gets one line."""

import gzip
import io
import os
import re
import tracemalloc
import zipfile
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import numpy as np
import openpyxl
import pandas as pd
import pytest
from exact_tables import PROPERTY
from hypothesis import given
from hypothesis import strategies as st
from table_kinds import WRITERS, first_row, write_kind

from sgfn.config import extras, reading
from sgfn.config.tables import Table, ending, read_plain, read_table

PLAIN = "name,score\na,1\nb,2.5\n"
PACKED = gzip.compress(PLAIN.encode(), mtime=0)


def write(folder: Path, data: str | bytes, name: str = "a.csv") -> Path:
    path = folder / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def complaint(path: Path, field_name: str = "noise.file") -> str:
    """What is said after the field and the path."""
    with pytest.raises(ValueError, match=rf"^{re.escape(f'{field_name} {path}'.strip())}") as caught:
        read_table(path, field_name, each="letter")
    assert "\n" not in str(caught.value)
    return str(caught.value).removeprefix(f"{field_name} {path}".strip())


def cells(table: Table) -> dict[str, list[str]]:
    return {column: table.texts(column) for column in table.columns}


# What is read

LETTERS = st.characters(codec="utf-8", exclude_categories=["C", "Z"], exclude_characters="=_")  # = begins a formula
WORDS = st.text(LETTERS, min_size=1, max_size=6)
NUMBERS = st.floats(-1e300, 1e300) | st.integers(-(10**6), 10**6).map(float)


@st.composite
def frames(draw: st.DrawFn) -> pd.DataFrame:
    rows = draw(st.integers(1, 6))
    names = draw(st.lists(WORDS, min_size=2, max_size=4, unique=True))
    words = draw(st.lists(WORDS, min_size=rows, max_size=rows))
    columns = [draw(st.lists(NUMBERS, min_size=rows, max_size=rows)) for _ in names[1:]]
    return pd.DataFrame(dict(zip(names, [words, *columns], strict=True)))


@PROPERTY
@given(frame=frames(), kind=st.sampled_from(sorted(WRITERS)))
def test_what_is_written_is_read_back(tmp_path_factory: pytest.TempPathFactory, frame: pd.DataFrame, kind: str) -> None:
    """Names, words, numbers to the last digit written, and the place of each row."""
    table = read_table(write_kind(tmp_path_factory.getbasetemp(), frame, kind), "table.file")
    first, *rest = map(str, frame.columns)
    assert table.columns == [first, *rest]
    assert table.texts(first) == frame[first].tolist()
    for column in rest:
        wanted = frame[column].tolist()
        digits = pytest.approx(wanted, rel=1e-15, abs=0.0) if kind == "xlsx" else wanted  # 16 digits are written
        assert [float(text) for text in table.texts(column)] == digits
    place = int(first_row(kind).split()[1])
    assert table.lines.tolist() == list(range(place, place + len(frame)))
    assert str(table.problem("wrong; fix", 0, first)).endswith(
        f"table.{kind}, {first_row(kind)}, column {first!r}: wrong; fix"
    )
    changed = frame.assign(**{rest[0]: frame[rest[0]] + 1 + frame[rest[0]].abs()})
    other = read_table(write_kind(tmp_path_factory.getbasetemp(), changed, kind), "table.file")
    assert other.texts(rest[0]) != table.texts(rest[0])  # and the test can fail


@pytest.mark.parametrize("kind", sorted(WRITERS))
def test_types_that_cells_have_of_their_own(tmp_path: Path, kind: str) -> None:
    """Times, truth values, whole numbers and empty cells spell alike, whatever the file."""
    days = [datetime(2024, 1, 31, 13, 45), datetime(2024, 2, 1)]
    frame = pd.DataFrame({"ds": days, "open": [True, False], "count": [7, 8], "y": [1.0, np.nan], "id": ["007", "NA"]})
    found = cells(read_table(write_kind(tmp_path, frame, kind)))
    assert found == {
        "ds": ["2024-01-31 13:45:00", "2024-02-01 00:00:00"],
        "open": ["True", "False"],
        "count": ["7", "8"],
        "y": ["1.0" if kind[:3] in ("csv", "tsv", "txt") else "1", ""],
        "id": ["007", "NA"],
    }


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", PLAIN),
        ("a.CSV", PLAIN.replace("\n", "\r\n")),
        ("a.csv", PLAIN.replace("\n", "\r")),
        ("a", "\ufeff" + PLAIN),
        ("a.txt", PLAIN.replace(",", "\t")),
        ("a.csv", PLAIN.replace(",", ";")),
        ("a.csv", PLAIN.replace(",", "|")),
        ("a.tsv", PLAIN),
        ("a.csv", "name,score,,\na,1,,\nb,2.5,,\n"),  # as a spreadsheet writes columns that were cleared
        ("a.csv", '"name";"score"\n"a" ;1\nb; 2.5 \n'.replace('" ', '"')),
    ],
)
def test_ways_to_write_text(tmp_path: Path, name: str, text: str) -> None:
    table = read_table(write(tmp_path, text, name))
    assert cells(table) == {"name": ["a", "b"], "score": ["1", "2.5"]}
    assert (table.lines.tolist(), table.unit, table.header) == ([2, 3], "line", 1)
    packed = write(tmp_path, gzip.compress(text.encode()), f"{name}.gz")
    assert cells(read_table(packed)) == cells(table)


def test_lines_are_counted_as_an_editor_does(tmp_path: Path) -> None:
    """Over empty lines and a field of two lines; marks that only Python takes for line ends do not count."""
    text = '\nname,note\r\na,"one\r\ntwo"\r\n\r\nb,\u2028\x0b\n,\nc,x\n'
    table = read_table(write(tmp_path, text))
    assert (table.header, table.lines.tolist()) == (2, [3, 6, 8])
    plain = read_plain(write(tmp_path, "A\n\n B \rC\u2028\r\nD", "a.txt"), column="x")
    assert (plain.lines.tolist(), cells(plain)) == ([1, 3, 4, 5], {"x": ["A", "B", "C", "D"]})


def workbook(path: Path, rows: list[list[object]], *, sheets: int = 1) -> Path:
    book = openpyxl.Workbook()
    for row in rows:
        book.worksheets[0].append(row)
    for _ in range(sheets - 1):
        book.create_sheet().append(["other"])
    book.save(path)
    return path


def test_rows_of_a_sheet(tmp_path: Path) -> None:
    """The first sheet; empty rows are passed over and counted; a short row has empty cells; 1 in a header is a name."""
    rows = [[], ["name", 1.0, None], [None, " "], ["a", 2], [], ["b"]]
    table = read_table(workbook(tmp_path / "a.xlsx", rows, sheets=2))
    assert cells(table) == {"name": ["a", "b"], "1": ["2", ""]}
    assert (table.header, table.lines.tolist(), table.unit) == (2, [4, 6], "row")
    long = workbook(tmp_path / "long.xlsx", [["name"], ["a"], ["b", 1]])
    assert complaint(long) == ", row 3: 2 fields where the header has 1; name each column"


# What is refused


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.csv", "", ": the file is empty; write a header and one row for each letter"),
        ("a.csv", " \n\n", ": the file is empty; write a header and one row for each letter"),
        ("a.csv", "a,b\n", ": a header and no rows; add one row for each letter"),
        ("a.csv", "a,b\n1,2\n3\n", ", line 3: 1 field where the header has 2; fill in what is missing"),
        ("a.tsv", "a\tb\n1\t2\t3\n", ", line 2: 3 fields where the header has 2; put a field that holds tabs in q"),
        ("a.csv", "\nb,a,a\n1,2,3\n", ", line 2, column 'a': 2 columns have this name; rename all but one"),
        ("a.csv", "x,,\n1,2,3\n", ", line 1, column '': 2 columns have this name; rename all but one"),
        ("a.csv", b"a\n\xe9\n", ", line 2: byte 0xe9 is not UTF-8 text; save the table as CSV in UTF-8"),
        ("a.csv", b"a\n\0\n", ", line 2: byte 0x00 is not UTF-8 text; save the table as CSV in UTF-8"),
        ("a.csv", "a\n1\n".encode("utf-16"), ": the text is in UTF-16; save the table as CSV in UTF-8"),
        ("a.csv", "a\n1\n".encode("utf-32"), ": the text is in UTF-32; save the table as CSV in UTF-8"),
        ("a.csv", "a\n" + "b" * 131_073, ", line 2: a field has more than 131,072 characters; close each quote"),
        ("a.csv", 'a\n"b\n', ", line 2: not valid CSV (unexpected end of data); close each quote that is opened"),
        ("a.csv.gz", PLAIN, ": cannot be read as gzip (Not a gzipped file (b'na')); pack the table again"),
        ("a.gz", PACKED[:-9], ": cannot be read as gzip (Compressed file ended before"),
        ("a.gz", PACKED[:10] + b"\xff" * 20, ": cannot be read as gzip (Error -3 while decomp"),
        ("a.parquet", b"PAR1 and no more", ": not a readable Parquet file ("),
        ("a.pq", b"", ": not a readable Parquet file (Parquet file size is 0 bytes"),
        ("a.xlsx", b"", ": not a readable Excel workbook (File is not a zip file); save it again, or save it as CSV"),
        ("a.xlsx", b"PK\x03\x04", ": not a readable Excel workbook (File is not a zip file)"),
        ("a.xls", b"", ": tables are not read from '.xls' files; save it as .csv, .tsv, .txt (each also with .gz), "),
        ("a.parquet.gz", b"", ": tables are not read from '.parquet.gz' files; save it as .csv"),
    ],
)  # fmt: skip
def test_wrong_files_get_one_line(tmp_path: Path, name: str, data: str | bytes, message: str) -> None:
    assert complaint(write(tmp_path, data, name)).startswith(message)
    assert len(read_table(write(tmp_path, PLAIN, "right.csv")).frame) == 2


def test_no_file_a_folder_a_pipe_and_a_device(tmp_path: Path) -> None:
    """A pipe would be waited for, a device may never end."""
    (tmp_path / "folder.csv").mkdir()
    os.mkfifo(tmp_path / "pipe.csv")
    assert complaint(tmp_path / "none.csv") == ": no such file; check the path"
    assert complaint(tmp_path / "none.xlsx", "") == ": no such file; check the path"
    assert complaint(tmp_path / "none.parquet", "") == ": no such file; check the path"
    assert complaint(tmp_path / "folder.csv") == ": a folder, not a file; name the file inside it"
    assert complaint(tmp_path / "pipe.csv") == ": a pipe or a device, not a file; save what it gives in a file"
    assert complaint(Path("/dev/zero")) == ": a pipe or a device, not a file; save what it gives in a file"
    below = write(tmp_path, PLAIN) / "b.csv"
    assert complaint(below) == ": cannot be read (Not a directory); check the path and its permissions"
    (tmp_path / "link.csv").symlink_to(below.parent)
    assert len(read_table(tmp_path / "link.csv").frame) == 2


def test_a_workbook_that_is_another_zip(tmp_path: Path) -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as parts:
        parts.writestr("notes.txt", "nothing")
    assert complaint(write(tmp_path, data.getvalue(), "a.xlsx")).startswith(": not a readable Excel workbook (")


def peak_of(call: Callable[[], object]) -> int:
    """Bytes of memory that Python asks for at the most during a call."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", ["csv.gz", "parquet", "xlsx"])
def test_what_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """Five megabytes in a few kilobytes: read below the limit, refused above it."""
    assert reading.LARGEST == 2**30
    frame = pd.DataFrame({"name": ["a" * 100] * 50_000 if kind == "csv.gz" else ["a" * 9000] * 600})
    path = write_kind(tmp_path, frame, kind)
    monkeypatch.setattr(reading, "LARGEST", 2**22 if kind == "csv.gz" else path.stat().st_size + 1000)
    monkeypatch.setattr(reading, "CHUNK", 2**16)
    if kind == "csv.gz":
        assert peak_of(lambda: complaint(path)) < 2**20 < reading.LARGEST
    assert re.search(r": unpacks to more than \S+ GiB; keep only the columns and rows you need$", complaint(path))
    monkeypatch.setattr(reading, "LARGEST", 2**30)
    assert len(read_table(path).frame) == len(frame)


def test_a_text_that_is_too_large_or_has_too_many_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, plain = write(tmp_path, "a,b\n1,2\n3,4\n"), write(tmp_path, "a\nb\nc\nd\ne\nf\n", "a.txt")
    monkeypatch.setattr(reading, "LARGEST_COUNT", 6)
    assert len(read_table(path).frame) == 2
    assert len(read_plain(plain).frame) == 6
    monkeypatch.setattr(reading, "LARGEST_COUNT", 5)
    assert complaint(path) == ": more than 5 cells; keep only the columns and rows you need"
    with pytest.raises(ValueError, match=r"a\.txt: more than 5 cells"):
        read_plain(plain)
    monkeypatch.setattr(reading, "LARGEST", 11)
    assert re.search(r": has more than \S+ GiB; keep only the columns and rows you need$", complaint(path))


def test_a_link_to_itself_and_a_name_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "loop.csv").symlink_to(tmp_path / "loop.csv")
    assert complaint(tmp_path / "loop.csv") == (
        ": cannot be read (Too many levels of symbolic links); check the path and its permissions"
    )
    with pytest.raises(ValueError, match=r"^'noise\.file .*': no name of a file; check the path$"):
        read_table(tmp_path / "a\0b.csv", "noise.file")


def test_a_small_parquet_file_of_many_equal_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A repeated value takes next to no room in the file, and all of it in memory."""
    path = write_kind(tmp_path, pd.DataFrame({"x": np.ones(200_000)}), "parquet")
    monkeypatch.setattr(reading, "LARGEST", 10**6)
    assert path.stat().st_size < 10**4
    assert ": unpacks to more than" in complaint(path)


@pytest.mark.parametrize(
    ("kind", "module", "message"),
    [
        ("parquet", "pyarrow", ": reading Parquet needs pyarrow; install it with pip install 'sgfn[parquet]', or save"),
        ("xlsx", "openpyxl", ": reading Excel needs openpyxl; install it with pip install 'sgfn[excel]', or save the"),
    ],
)
def test_an_extra_that_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, module: str, message: str
) -> None:
    path = write_kind(tmp_path, pd.DataFrame({"a": [1]}), kind)
    there: Callable[[str], object] = extras.import_module

    def absent(name: str) -> object:
        if name.partition(".")[0] == module:
            raise ImportError(name)
        return there(name)

    assert len(read_table(path).frame) == 1
    monkeypatch.setattr(extras, "import_module", absent)
    assert complaint(path).startswith(message)


def test_endings() -> None:
    names = ("a.csv", "b.TSV.GZ", "c.d.txt", "e", "f.gz", "g.pq", "h.xlsx")
    assert [ending(Path(name)) for name in names] == [".csv", ".tsv", ".txt", "", "", ".pq", ".xlsx"]
    with pytest.raises(ValueError, match=r"^a\.json\.gz: tables are not read from '\.json\.gz' files; save it as"):
        ending(Path("a.json.gz"))


def table_or_message(path: Path) -> Table | str:
    try:
        return read_table(path)
    except ValueError as error:
        return str(error)


ANYTHING = st.binary(max_size=40) | st.text('AC"x,;\r\n\t 01.-|\u2028\x0b', max_size=40).map(str.encode)


@PROPERTY
@given(data=ANYTHING, name=st.sampled_from(["a.csv", "a.tsv", "a", "a.csv.gz", "a.parquet", "a.xlsx"]))
def test_whatever_is_in_the_file_the_answer_is_a_table_or_one_line(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, name: str
) -> None:
    path = write(tmp_path_factory.getbasetemp(), data, name)
    table = table_or_message(path)
    if isinstance(table, str):
        assert table.startswith(str(path))
        assert len(table.splitlines()) == 1
        assert "; " in table  # a fix
    else:
        assert len(table.frame) == len(table.lines) > 0
        assert all(len(column) == len(table.lines) for column in cells(table).values())
