"""Bytes and text out of files that anybody may have written: regular files alone, bounded, unpacked and decoded.

Every problem is a ValueError of one line that begins with what the file is called.
"""

import gzip
import json
import re
import stat
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

LARGEST = 2**30
"""Bytes at most of a table that is read, unpacked where it is packed (.gz, .xlsx, .parquet): 1 GiB."""
LARGEST_JSON = 2**28
"""Bytes at most of a JSON file."""
DEEPEST_JSON = 64
"""Arrays and objects inside each other at most; ours have five."""
MOST_COLUMNS = 2**14
"""Columns at most of a table, as many as a spreadsheet has."""
LARGEST_COUNT = 2**25
"""Cells at most of a table in text: each takes some 100 bytes of memory."""
CHUNK = 2**20
PACKED = ".gz"
LINE_END = re.compile(r"\r\n|\r|\n")
MARKS = {b"\xff\xfe\0\0": "UTF-32", b"\0\0\xfe\xff": "UTF-32", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}
"""First bytes of texts in other encodings, the longer ones first."""


# Errors


def located(
    name: str, what: str, line: int | None = None, column: str | None = None, *, unit: str = "line"
) -> ValueError:
    """An error of one line that names the file and, where they are given, the line and the column."""
    place = name + (f", {unit} {line}" if line is not None else "")
    return ValueError(f"{place}{f', column {column!r}' if column is not None else ''}: {what}")


def brief(error: Exception) -> str:
    """The first line of an error, cut where it gets long."""
    lines = str(error).splitlines()
    return lines[0][:120] if lines else type(error).__name__


def check_size(name: str, size: int, does: str = "unpacks to") -> None:
    """Raise where a file holds more than memory should be asked for."""
    if size > LARGEST:
        raise located(name, f"{does} more than {LARGEST / 2**30:g} GiB; keep only the columns and rows you need")


def check_count(name: str, cells: int) -> None:
    """Raise where a text has more cells than memory should be asked for."""
    if cells > LARGEST_COUNT:
        raise located(name, f"more than {LARGEST_COUNT:,} cells; keep only the columns and rows you need")


def check_columns(name: str, columns: int) -> None:
    """Raise where a table has more columns than anybody names."""
    if columns > MOST_COLUMNS:
        raise located(name, f"more than {MOST_COLUMNS:,} columns; keep only those you need, each object in a row")


# Bytes


def check_file(path: Path, name: str) -> int:
    """The size of a file; raises unless a path leads to a regular file."""
    with _found(name):
        facts = path.stat()
    if stat.S_ISDIR(facts.st_mode):
        raise located(name, "a folder, not a file; name the file inside it")
    if not stat.S_ISREG(facts.st_mode):  # a pipe would be waited for, a device may never end
        raise located(name, "a pipe or a device, not a file; save what it gives in a file")
    return facts.st_size


def check_named(files: Mapping[str, Path]) -> None:
    """Raise where a file is too large to be read; files go by the setting that names them."""
    for setting, path in files.items():
        check_size(f"{setting} {path}", check_file(path, f"{setting} {path}"), "has")


@contextmanager
def _found(name: str) -> Iterator[None]:
    """Turn errors of the disk into one line."""
    try:
        yield
    except FileNotFoundError:
        raise located(name, "no such file; check the path") from None
    except OSError as error:
        raise located(name, f"cannot be read ({error.strerror}); check the path and its permissions") from None
    except ValueError:  # a byte of zero, which no name of a file holds
        raise located(repr(name), "no name of a file; check the path") from None


def read_bytes(path: Path, name: str) -> bytes:
    """The content of a regular file that is not too large."""
    check_size(name, check_file(path, name), "has")
    with _found(name), path.open("rb") as file:
        data = file.read(LARGEST + 1)  # it may grow meanwhile
    check_size(name, len(data), "has")
    return data


def _unpacked(path: Path, name: str) -> bytearray:
    """What gzip packed; a first pass finds the size and keeps nothing, so that a small file cannot fill the memory."""
    check_size(name, check_file(path, name), "has")
    with _found(name):
        path.open("rb").close()
    try:
        whole, filled = bytearray(sum(len(part) for part in _pieces(path, name))), 0
        for part in _pieces(path, name):
            whole[filled : filled + len(part)] = part
            filled += len(part)
    except (OSError, EOFError, zlib.error) as error:
        raise located(name, f"cannot be read as gzip ({brief(error)}); pack the table again") from None
    del whole[filled:]  # it may have changed meanwhile
    return whole


def _pieces(path: Path, name: str) -> Iterator[bytes]:
    """Piece after piece of what gzip packed; raises as soon as they are too many."""
    size = 0
    with gzip.open(path) as file:
        while part := file.read(CHUNK):
            size += len(part)
            check_size(name, size)
            yield part


# Text


def read_text(path: Path, name: str) -> str:
    """The whole text of a file, unpacked, less the mark of byte order that spreadsheets put at its beginning."""
    data = _unpacked(path, name) if path.suffix.lower() == PACKED else read_bytes(path, name)
    if other := next((kind for mark, kind in MARKS.items() if data.startswith(mark)), None):
        raise located(name, f"the text is in {other}; save the table as CSV in UTF-8")
    try:
        text, wrong = data.decode("utf-8-sig"), data.find(b"\0")
    except UnicodeDecodeError as error:
        text, wrong = "", error.start
    if wrong >= 0:
        line = len(re.findall(rb"\r\n|\r|\n", data[:wrong])) + 1
        raise located(name, f"byte 0x{data[wrong]:02x} is not UTF-8 text; save the table as CSV in UTF-8", line)
    return text


def lines_of(text: str) -> Iterator[str]:
    """Lines with their ends, one at a time, as an editor counts them.

    >>> list(lines_of("a\\r\\nb\\rc"))
    ['a\\r\\n', 'b\\r', 'c']
    """
    start = 0
    for end in LINE_END.finditer(text):
        yield text[start : end.end()]
        start = end.end()
    if start < len(text):
        yield text[start:]


# JSON


def read_json(path: Path) -> Any:
    """The content of a JSON file, no larger and no deeper than ours are; errors name the file and the line."""
    if check_file(path, str(path)) > LARGEST_JSON:
        raise located(str(path), f"has more than {LARGEST_JSON // 2**20} MiB: sgfn wrote no such file")
    try:
        text = read_bytes(path, str(path)).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise located(str(path), "not a text file") from None
    return parse_json(text, str(path))


def parse_json(text: str | bytes, name: str = "JSON") -> Any:
    """What JSON text says; whatever is wrong with it is a ValueError."""
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise located(name, f"not valid JSON ({error.msg})", error.lineno) from None
    except UnicodeDecodeError:
        raise located(name, "not a text file") from None
    except RecursionError:
        raise _too_deep(name) from None
    except ValueError as error:  # a whole number of thousands of digits
        raise located(name, f"not valid JSON ({brief(error).partition(':')[0]})") from None
    if _depth(data) > DEEPEST_JSON:
        raise _too_deep(name)
    if "\\ud" in (text if isinstance(text, str) else text.decode()).lower():  # half a character may be written so
        try:
            json.dumps(data, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise located(name, f"holds {error.object[error.start]!a}, which is no character of a text") from None
    return data


def _too_deep(name: str) -> ValueError:
    return located(name, f"not valid JSON for sgfn: more than {DEEPEST_JSON} arrays and objects inside each other")


def _depth(data: Any) -> int:
    """Arrays and objects inside each other, counted up to one more than there may be."""
    level, depth = [data] if isinstance(data, dict | list) else [], 0
    while level and depth <= DEEPEST_JSON:
        depth += 1
        inner = (one.values() if isinstance(one, dict) else one for one in level)
        level = [value for values in inner for value in values if isinstance(value, dict | list)]
    return depth
