"""The cost model finds the costs that rates were made with, and docs/scale.md says what was measured."""

from pathlib import Path

import pytest
from benchmarks.common import read_results
from benchmarks.scale.figures import FILE, LOOKS, cell_model, rates, reward_model, scale_figure
from benchmarks.scale.model import CostModel, fitted
from hypothesis import given
from hypothesis import strategies as st

CLUSTER_FILES = Path(__file__).parent.parent / "examples" / "cluster"


@given(st.floats(1e-3, 2e-2), st.floats(1e-4, 2e-4))
def test_costs_are_found_again(overhead: float, driver: float) -> None:
    true = CostModel(overhead=overhead, driver=driver)
    points = [(w, t, true.rate(w, t)) for w in (1, 4, 256) for t in (0.0, 0.01, 0.1)]
    assert fitted(points, driver).overhead == pytest.approx(overhead, rel=1e-4)
    slower = [(w, t, 0.9 * rate) for w, t, rate in points if t]
    assert fitted(slower, driver).overhead > 1.05 * overhead


def test_the_driver_is_the_limit_from_enough_workers_on() -> None:
    model = CostModel(overhead=0.01, driver=0.001)
    assert model.rate(1, 0.09) == pytest.approx(10.0)
    assert model.efficiency(1, 0.09) == pytest.approx(0.9)
    assert model.enough(0.09) == pytest.approx(100.0)
    assert model.rate(99, 0.09) < 1000 - 1
    assert model.rate(1000, 0.09) == pytest.approx(1000.0)


@pytest.mark.parametrize("latency", [0.01, 0.1])
def test_two_workers_score_waiting_rewards_twice_as_fast(latency: float) -> None:
    assert rates(latency, 2)[0] >= 0.9 * 2 * rates(latency, 1)[0]


def test_the_model_is_near_what_was_measured() -> None:
    for latency in (0.01, 0.1):
        for workers in (1, 2, 4):
            assert reward_model().rate(workers, latency) == pytest.approx(rates(latency, workers)[0], rel=0.25)
    assert cell_model().overhead > cell_model().driver
    assert {row["part"] for row in read_results(FILE)["rows"]} == {"rewards", "jobs", "cells"}


def test_the_figure_has_a_curve_for_each_job() -> None:
    legend = scale_figure().axes[0].get_legend()
    assert legend is not None
    assert len(legend.get_texts()) == len(LOOKS)


def test_cluster_files_are_named_in_the_page() -> None:
    page = (Path(__file__).parent.parent / "docs" / "scale.md").read_text(encoding="utf-8")
    for file in CLUSTER_FILES.iterdir():
        assert f"examples/cluster/{file.name}" in page
        assert "RAY_USAGE_STATS_ENABLED=0" in file.read_text(encoding="utf-8")
