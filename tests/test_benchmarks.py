"""What README and docs claim is what the committed results say."""

import json
from pathlib import Path
from typing import Any

import pytest
from benchmarks import figures
from benchmarks.common import RESULTS, read_results, spread

ROOT = Path(__file__).parent.parent
PROTOTYPE = {  # method.md, section 5: TV by alpha of the plain prototype, one seed
    ("marginal", "db"): {0.0: 0.192, 0.1: 0.192, 0.25: 0.192, 0.5: 0.202, 0.75: 0.245},
    ("marginal", "tb"): {0.0: 0.171, 0.1: 0.170, 0.25: 0.169, 0.5: 0.173, 0.75: 0.224},
}


@pytest.mark.parametrize("page", ["README.md", "docs/results.md"])
def test_tables_are_those_of_the_results(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert figures.with_tables(text) == text
    assert figures.with_tables(text.replace("0.156", "0.056")) == text  # a number changed by hand is written over


@pytest.mark.parametrize("file", sorted(RESULTS.glob("*.json")), ids=lambda file: file.name)
def test_results_name_command_and_machine(file: Path) -> None:
    result = json.loads(file.read_text(encoding="utf-8"))
    assert result["command"].startswith("python -m benchmarks.")
    assert "/" not in result["command"]
    assert {"device", "torch", "python"} <= result["machine"].keys()
    assert result["rows"]


@pytest.mark.parametrize("method", PROTOTYPE)
@pytest.mark.parametrize("alpha", [0.0, 0.1, 0.25, 0.5, 0.75])
def test_marginal_forms_are_at_or_below_the_prototype(method: tuple[str, str], alpha: float) -> None:
    values = tv_of(read_results("tfbind8_quality.json")["rows"], alpha, *method)
    assert len(values) >= 5
    assert spread(values)[0] <= PROTOTYPE[method][alpha]


def tv_of(rows: list[dict[str, Any]], alpha: float, form: str, objective: str) -> list[float]:
    return [r["tv"] for r in rows if (r["alpha"], r["form"], r["objective"]) == (alpha, form, objective)]


@pytest.mark.parametrize("alpha", [0.0, 0.1, 0.25])
def test_preset_exact_reaches_the_floor(alpha: float) -> None:
    rows = [row for row in read_results("tfbind8_exact.json")["rows"] if row["alpha"] == alpha]
    assert len(rows) >= 3
    assert max(row["tv"] - row["tv_floor"] for row in rows) <= 0.005
    assert max(row["seconds"] for row in rows) <= 60


def test_preset_frugal_keeps_to_its_budget() -> None:
    rows = read_results("tfbind8_frugal.json")["rows"]
    assert max(row["trajectories"] for row in rows) <= 160_000
    assert max(row["tv"] for row in rows) <= 0.10


@pytest.mark.parametrize(("alpha", "published"), [(0.25, 0.00139), (0.5, 0.0035)])
def test_grid_is_below_the_published_distance(alpha: float, published: float) -> None:
    cells = figures.group(read_results("grid_quality.json")["rows"], "l1_mean")
    assert max(high for cell, (_, _, high) in cells.items() if cell[0] == alpha) <= published


def test_speed_is_ten_times_the_published_loop() -> None:
    rows = {(r["batch"], r["method"]): r for r in read_results("speed_cpu.json")["rows"]}
    assert rows[256, "marginal, learned dynamics"]["times_published"] >= 10
