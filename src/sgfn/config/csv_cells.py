"""Text in cells of CSV files: marked so that no spreadsheet runs it, quoted so that every reader splits it alike.

A cell that begins with `=`, `+`, `-`, `@`, a tab or a line end is a formula to a spreadsheet, whoever wrote the text in
it. Such text gets an apostrophe before it, which spreadsheets take as the mark of text; `unmarked` takes it off again.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

MARK = "'"
FORMULA = "=+-@\t\r\n\uff1d\uff0b\uff0d\uff20"
"""First letters of formulas; the last four are the wide forms of the first four, which some spreadsheets read alike."""
_RUN = re.compile(f"{MARK}*[{re.escape(FORMULA)}]")
SPLITTING = ',;|\t\r\n"'
"""Letters at which some reader would split a cell that is not in quotes."""


def marked(text: str) -> str:
    """Text as a cell holds it, with an apostrophe before what would be run, or would lose its apostrophe when read.

    >>> [marked(text) for text in ("=1+1", "a=1", "'=1", "'a")]
    ["'=1+1", 'a=1', "''=1", "'a"]
    """
    return MARK + text if _RUN.match(text) else text


def unmarked(text: str) -> str:
    """Text from a cell as `marked` made it.

    >>> [unmarked(cell) for cell in ("'=1+1", "a=1", "''=1", "'a", "=1")]
    ['=1+1', 'a=1', "'=1", "'a", '=1']
    """
    return text[1:] if text.startswith(MARK) and _RUN.match(text) else text


def cell(value: Any) -> str:
    """A value as it stands between commas; nothing for None.

    >>> [cell(value) for value in (-1.5, None, "-1", 'a "b", c')]
    ['-1.5', '', "'-1", '"a ""b"", c"']
    """
    if not isinstance(value, str):
        return "" if value is None else str(value)
    text = marked(value)
    return '"' + text.replace('"', '""') + '"' if any(letter in text for letter in SPLITTING) else text


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """The text of a CSV file."""
    return "".join(",".join(map(cell, row)) + "\n" for row in (header, *rows))
