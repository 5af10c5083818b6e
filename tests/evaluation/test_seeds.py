"""One rule for what several seeds say together: table, figure and page show the same numbers, and the same words."""

from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from page_entries import Page
from rich.console import Console
from stub_workers import WRITE_PAGE, run

from sgfn.cli import tables
from sgfn.compare.cells import CellState
from sgfn.compare.figure import comparison_figure, curve_of
from sgfn.compare.results import together
from sgfn.evaluation.seeds import low_middle_high, rule, spread
from sgfn.reports.pages import Entry

numbers = st.lists(st.floats(-1e3, 1e3, allow_nan=False), min_size=1, max_size=9)


@given(numbers)
def test_ends_are_quartiles_from_four_values_on_and_the_range_below(values: list[float]) -> None:
    many = len(values) >= 4
    wanted = np.quantile(values, [0.25, 0.5, 0.75]) if many else [min(values), np.median(values), max(values)]
    found = spread([*values, None])
    assert found is not None
    assert (found.low, found.middle, found.high) == pytest.approx(tuple(wanted))
    assert found.count == len(values)
    columns = np.array([values, values[::-1]]).T  # the order of seeds does not matter
    assert low_middle_high(columns) == pytest.approx(np.array([wanted, wanted]).T)
    assert spread([None]) is None
    assert rule([len(values)]) == ("" if len(values) == 1 else "quartiles" if many else "range")


def test_what_is_not_known_of_a_seed_is_passed_over() -> None:
    values = np.array([[1.0, 5.0], [2.0, np.nan], [3.0, 7.0], [4.0, 9.0]])
    found = low_middle_high(values)
    assert found[:, 0] == pytest.approx(np.quantile([1, 2, 3, 4], [0.25, 0.5, 0.75]))
    assert found[:, 1] == pytest.approx(np.quantile([5, 7, 9], [0.25, 0.5, 0.75]))  # the seeds decide, not the place


@pytest.mark.parametrize("seeds", [1, 3, 4])
def test_table_figure_and_page_agree(
    seeds: int, stub: Path, pages: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    states: list[CellState] = []
    found = run(stub, ["tb"], seeds=seeds, progress=lambda known: states.__setitem__(slice(None), known))
    tvs = [0.25 + (seed + 1) ** 2 / 100 for seed in range(seeds)]
    low, middle, high = np.quantile(tvs, [0.25, 0.5, 0.75]) if seeds > 3 else (min(tvs), np.median(tvs), max(tvs))
    (row,) = found.summary
    name = {1: "", 3: "range", 4: "quartiles"}[seeds]
    assert row["tv"] == together(tvs) == pytest.approx({"median": middle, "low": low, "high": high, "ends": name})

    screen = StringIO()
    monkeypatch.setattr(tables, "out", Console(file=screen, width=120, highlight=False, markup=False))
    tables.print_comparison(found.summary)
    ends = f" [{low:.4f}, {high:.4f}]" if seeds > 1 else ""
    assert f" {middle:.4f}{ends} " in screen.getvalue()
    assert f"medians over seeds{f' [{name}]' if name else ''}; " in screen.getvalue()

    title = comparison_figure(states).get_suptitle()
    assert title == f"grid: medians over seeds{f', bands: {name}' if name else ''}"
    curve = curve_of(states, "tv")
    assert curve is not None
    assert [curve.low[0], curve.middle[0], curve.high[0]] == pytest.approx([low, middle, high])

    entries: list[Entry] = pages[-1]["entries"]
    WRITE_PAGE(stub / "page.html", "", entries)
    shown = Page((stub / "page.html").read_text())
    beneath = f" [{low:.4f} to {high:.4f}]" if seeds > 1 else ""
    assert any(f"{middle:.4f}{beneath}" in row for row in shown.rows)
    assert (f"in small type beneath them: {name}. " in shown.text) == (f"bands: {name}." in shown.text) == (seeds > 1)


def test_more_and_fewer_seeds_side_by_side() -> None:
    assert rule([1, 3, 5]) == "quartiles (range below 4 seeds)"
    assert rule([]) == rule([0, 1]) == ""
