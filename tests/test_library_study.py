"""The study of libraries: its tables in the docs are those of the committed results, and cells are computed once."""

from pathlib import Path

import pytest
from benchmarks.cells import Cell, perform
from benchmarks.libraries.__main__ import ROUNDS, study_of, summary
from benchmarks.libraries.tables import TABLES, interval

from sgfn.config.files import read_json

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("name", TABLES)
def test_tables_are_those_of_the_results(name: str) -> None:
    page = (ROOT / "docs" / "libraries.md").read_text(encoding="utf-8")
    found = page.partition(f"<!-- {name}: begin -->\n")[2].partition(f"\n<!-- {name}: end -->")[0]
    assert found == TABLES[name](), f"{name}: python -m benchmarks.figures"


def test_the_results_pass_their_marks() -> None:
    known = read_json(ROOT / "benchmarks" / "results" / "libraries_known.json")
    best = {row["how"]: row["expected"] for row in known["summary"]}
    assert best["pairs"] >= 0.385 > best["coordinate"]
    rounds = read_json(ROOT / "benchmarks" / "results" / "libraries_rounds.json")["summary"]
    found = {row["library"]: row for row in rounds}
    assert found["mean, size 96"]["seeds"] >= 20
    assert found["mean, size 96"]["best_interval"][0] > found["NDT"]["best"] > found["NNK"]["best"]
    assert set(found) <= set(ROUNDS)


def test_cells_are_computed_once(tmp_path: Path) -> None:
    made: list[int] = []

    def compute(seed: int) -> dict[str, object]:
        made.append(seed)
        return _row(seed)

    cells = [Cell(key={"how": "x", "seed": seed}, function=compute, arguments=(seed,)) for seed in (0, 1)]
    perform([study_of("known", tmp_path / "r.json", cells[:1])])
    perform([study_of("known", tmp_path / "r.json", cells)])
    assert made == [0, 1]
    (line,) = read_json(tmp_path / "r.json")["summary"]
    assert (line["seeds"], line["expected"], line["expected_range"]) == (2, 0.5, [0.0, 1.0])
    assert summary([_row(3)], "how", ("absent",)) == [{"how": "x", "seeds": 1}]
    assert interval([1.0, 3.0]) == pytest.approx((2.0, 1.96))


def _row(seed: int) -> dict[str, object]:
    return {"how": "x", "seed": seed, "expected": float(seed)}
