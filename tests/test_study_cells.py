"""Cells of a study: here, in processes and on a real Ray they give the same file; every study of cells has the flag."""

import argparse
import importlib
import json
import pickle
import re
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from benchmarks import together
from benchmarks.cells import Cell, Study, perform, row_by_row
from benchmarks.common import each_cell, importable, rows_of, write_cells
from ray_jobs import rows_of_cell, square_of_cell

from sgfn.config.cluster import ray_module
from sgfn.config.files import read_json, write_json

ROOT = Path(__file__).parent.parent
STUDIES = (
    *("ceiling", "channels", "compiled_quality", "confusion", "design", "design_proxies", "exploration", "forecast"),
    *("forecast_breadth", "kl_family", "libraries", "long_quality", "motif", "published", "soft_optimum", "subtb"),
    *("thought", "tfbind8_quality", "together"),
)
"""Modules of studies whose cells are independent and not timed against each other."""


def study(out: Path, cluster: str | None, jobs: int, numbers: tuple[int, ...] = (0, 1, 2)) -> list[dict[str, Any]]:
    args = argparse.Namespace(out=out, device="cpu", cluster=cluster)
    cells = {f"cell {number}": (number, 2) for number in numbers}
    first = [{"number": -1, "seed": 0, "square": 1}]
    return write_cells(args, "study", cells, rows_of_cell, lambda rows: None, first, jobs, about="squares")


def test_rows_come_in_the_order_of_cells_and_an_error_is_raised_at_once(tmp_path: Path) -> None:
    rows = study(tmp_path / "a.json", None, 1)
    assert [row["square"] for row in rows] == [1, 0, 1, 1, 2, 4, 5]
    assert read_json(tmp_path / "a.json")["rows"] == rows
    assert read_json(tmp_path / "a.json")["about"] == "squares"
    with pytest.raises(ValueError, match="thirteen"):
        study(tmp_path / "b.json", None, 1, (1, 13, 2))
    assert [row["number"] for row in rows_of(tmp_path / "b.json")] == [-1, 1, 1]


@pytest.mark.slow
def test_the_same_on_a_cluster_where_one_that_fails_costs_no_other(
    cluster: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert study(tmp_path / "a.json", "auto", 1) == study(tmp_path / "b.json", None, 1)
    with pytest.raises(SystemExit, match="1 of 3 cells failed, see above: cell 13"):
        study(tmp_path / "c.json", "auto", 1, (0, 13, 2))
    assert "cell 13: thirteen" in capsys.readouterr().out
    assert [row["number"] for row in rows_of(tmp_path / "c.json")] == [-1, 0, 0, 2, 2]


@pytest.mark.slow
def test_the_same_in_processes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="1 of 4 cells failed"):
        study(tmp_path / "a.json", None, 2, (0, 13, 1, 2))
    assert "cell 13: thirteen" in capsys.readouterr().out
    assert rows_of(tmp_path / "a.json") == study(tmp_path / "b.json", None, 1)


@pytest.mark.parametrize("address", ["nowhere", "127.0.0.1:1"])
def test_an_address_that_is_none_is_told_in_one_line(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_module(), "is_initialized", lambda: False)  # another test may be connected
    with pytest.raises(SystemExit, match=rf"^--cluster {address}: ") as told:
        each_cell({"a": (0, 1)}, rows_of_cell, lambda name, rows: None, address)
    assert "\n" not in str(told.value)


def squares(out: Path, seeds: tuple[int, ...], turn: float = 0.0) -> Study:
    """A study of squares; thirteen fails."""
    cells = [
        Cell(key={"number": seed}, function=square_of_cell, arguments=(seed,), turn=turn + index)
        for index, seed in enumerate(seeds)
    ]
    return Study(out=out, command="squares", cells=cells, about=lambda rows: {"sum": sum(r["square"] for r in rows)})


def test_cells_with_a_row_are_not_done_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "a.json"
    rows = [{"number": 0, "square": 7}, {"number": 1, "square": 8, "older": "x"}]
    write_json(out, {"command": "old", "note": "by hand", "rows": rows})
    perform([squares(out, (1, 0, 2))])
    found = read_json(out)
    assert found["rows"] == [{"number": n, "square": s} for n, s in ((1, 1), (0, 7), (2, 4))]  # in the order of cells
    assert (found["sum"], found["before"]) == (12, [{"command": "old", "machine": None}])
    assert found["note"] == "by hand"
    assert len(capsys.readouterr().out.splitlines()) == 2
    perform([squares(out, (1, 0, 2, 3))], minutes=0.0)  # nothing is begun after the time
    assert read_json(out) == found
    with pytest.raises(ValueError, match="thirteen"):
        perform([squares(out, (3, 13, 4))])
    assert {row["number"] for row in read_json(out)["rows"]} == {0, 1, 2, 3}


def test_files_have_a_line_for_each_row() -> None:
    about, rows = {"command": "x", "about": {"a": [1, 2]}}, [{"seed": 0, "best": [0.5, None]}, {"seed": 1}]
    text = row_by_row(about, rows)
    assert json.loads(text) == about | {"rows": rows}
    assert text.endswith('    {"seed": 0, "best": [0.5, null]},\n    {"seed": 1}\n  ]\n}\n')
    assert json.loads(row_by_row(about, [])) == about | {"rows": []}


def test_studies_take_turns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    perform([squares(tmp_path / "a.json", (1, 2)), squares(tmp_path / "b.json", (1, 2), turn=0.5)])
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [f"{x}.json" for x in "abab"]
    assert [row["square"] for row in rows_of(tmp_path / "b.json")] == [1, 4]


class Pool(ThreadPoolExecutor):
    """Threads that are given what processes would be: copies of functions and arguments, by their names."""

    def __init__(self, jobs: int, **_: Any) -> None:
        super().__init__(jobs)

    def submit(self, function: Any, *given: Any, **_: Any) -> Future[Any]:
        return super().submit(*pickle.loads(pickle.dumps((function, *given))))


def test_studies_in_processes_give_the_same_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.common.ProcessPoolExecutor", Pool)  # `test_the_same_in_processes` has real ones
    with pytest.raises(SystemExit, match="1 of 3 cells failed"):
        perform([squares(tmp_path / "a.json", (1, 13)), squares(tmp_path / "b.json", (2,))], jobs=2)
    assert [row["square"] for row in [*rows_of(tmp_path / "a.json"), *rows_of(tmp_path / "b.json")]] == [1, 4]


def test_what_runs_as_a_command_is_known_to_others_by_its_module(monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("benchmarks.soft_optimum")
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", module.__spec__)

    def optima(alpha: float) -> list[dict[str, Any]]:
        raise AssertionError("the function of __main__, which no node has")

    optima.__module__ = "__main__"
    assert importable(optima) is module.optima
    assert importable(rows_of_cell) is rows_of_cell
    kept: dict[str, Any] = {}
    each_cell({"a": (0, 1)}, rows_of_cell, kept.__setitem__)
    assert kept == {"a": [{"number": 0, "seed": 0, "square": 0}]}


@pytest.mark.parametrize("name", STUDIES)
def test_every_study_of_cells_has_the_flag(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    package = (ROOT / "benchmarks" / name).is_dir()
    module = importlib.import_module(f"benchmarks.{name}" + (".__main__" if package else ""))
    monkeypatch.setattr(sys, "argv", [name, "--help"])
    with pytest.raises(SystemExit) as stop:
        module.main()
    assert stop.value.code == 0
    assert "--cluster CLUSTER" in capsys.readouterr().out


def test_the_page_lists_them() -> None:
    page = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    (line,) = (line for line in page.splitlines() if line.startswith("| `python -m benchmarks.STUDY"))
    assert set(re.findall(r"`([a-z0-9_]+)`", line)) == set(STUDIES)


def test_several_studies_share_a_pool_seed_by_seed(tmp_path: Path) -> None:
    parts = {name: together.PARTS[name].study(tmp_path, 2) for name in ("p4", "searches", "rates", "validation")}
    assert parts["rates"].command == "python -m benchmarks.channels rates --seeds 2 --first 100"
    assert parts["validation"].command == "python -m benchmarks.exploration validation --seeds 2"
    for study in parts.values():
        seeds = [cell.key["seed"] for cell in sorted(study.cells, key=lambda cell: cell.turn)]
        assert seeds == sorted(seeds)
        assert len({str(cell.key) for cell in study.cells}) == len(study.cells)
    lacking = parts["p4"].begin(committed=True)  # the first seeds of all but the last method are in the committed file
    assert {cell.key["method"] for cell in lacking} <= {"thompson"}
    assert not (tmp_path / "design_p4.json").exists()
