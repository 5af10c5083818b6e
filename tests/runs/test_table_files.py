"""Tables that are written as CSV: no cell is a formula to a spreadsheet, numbers stay numbers, names come back."""

import csv
import io
from pathlib import Path

import pandas as pd
import pytest
from exact_tables import PROPERTY
from hypothesis import given
from hypothesis import strategies as st

from sgfn.config.csv_cells import FORMULA, cell, csv_text, marked, unmarked
from sgfn.config.tables import read_table
from sgfn.runs.table_files import write_csv

NAMES = ["=1+1", "=x", "+a", "-2+3", "@SUM(A1)", "'=x", "a,b", 'q"r', "a\rb", "a\nb", "x;=y", "-3", "\uff1dx", "plain"]


def test_text_is_marked_and_numbers_are_not(tmp_path: Path) -> None:
    table = pd.DataFrame({"unique_id": NAMES, "=y": [-3.5] * len(NAMES), "ds": pd.Timestamp("2024-01-31")})
    write_csv(tmp_path / "a.csv", table, "%.10g")
    with (tmp_path / "a.csv").open(newline="", encoding="utf-8") as file:
        header, *rows = list(csv.reader(file, strict=True))
    assert header == ["unique_id", "'=y", "ds"]
    assert [row[0] for row in rows] == [marked(name) for name in NAMES]
    assert not [row for row in rows if row[0][0] in FORMULA]
    assert {tuple(row[1:]) for row in rows} == {("-3.5", "2024-01-31")}
    assert list(table["unique_id"]) == NAMES  # what was given is left alone
    back = read_table(tmp_path / "a.csv")
    assert back.columns == ["unique_id", "=y", "ds"]
    assert back.texts("unique_id") == NAMES


def test_plain_tables_are_as_pandas_writes_them(tmp_path: Path) -> None:
    table = pd.DataFrame({"unique_id": ["a", "b"], "y": [0.1, float("nan")]})
    write_csv(tmp_path / "a.csv", table)
    assert (tmp_path / "a.csv").read_text() == table.to_csv(index=False) == "unique_id,y\na,0.1\nb,\n"


@PROPERTY
@given(st.text(max_size=8))
def test_marks_come_off_again(text: str) -> None:
    assert unmarked(marked(text)) == text
    assert not marked(text) or marked(text)[0] not in FORMULA


@PROPERTY
@given(st.lists(st.lists(st.text(max_size=6), min_size=2, max_size=2), min_size=1, max_size=4))
def test_rows_are_split_as_they_were_joined(rows: list[list[str]]) -> None:
    text = csv_text(["a", "b"], rows)
    if "\0" not in text:
        read = list(csv.reader(io.StringIO(text, newline=""), strict=True))
        assert read == [["a", "b"], *([marked(one) for one in row] for row in rows)]


@pytest.mark.parametrize(("value", "text"), [(1, "1"), (-2.5, "-2.5"), (None, ""), (True, "True"), ("-2.5", "'-2.5")])
def test_values_of_cells(value: object, text: str) -> None:
    assert cell(value) == text
