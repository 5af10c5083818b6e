"""What is said of runs that take long on a CPU."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import pytest
import torch

from sgfn.config import TrainConfig
from sgfn.config.train import Accelerate
from sgfn.landscapes import function
from sgfn.landscapes.tasks import make_task
from sgfn.learning.trainer import Trainer
from sgfn.runs import duration
from sgfn.runs.duration import LONG, PER_WEIGHT, RATES, evaluated, expected_minutes, long_on_cpu, weights

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
EHRLICH: dict[str, Any] = {"ehrlich__vocab": 20, "ehrlich__length": 50, "ehrlich__motifs": 2, "batch": 64}
TRANSFORMER: dict[str, Any] = {"net__encoder": "transformer", "net__hidden": 16, "net__layers": 1, "net__heads": 2}


def trainer(task: str = "ehrlich", **changes: object) -> Trainer:
    return Trainer(make_task(task, TrainConfig().with_(**changes)), torch.device("cpu"))


def test_weights_of_products_are_counted() -> None:
    mlp = trainer(**EHRLICH, net__hidden=32, net__layers=2)
    assert weights(mlp.nets.encoder, mlp) == 32 * 32  # the first layer is summed
    reader = trainer(**EHRLICH, **TRANSFORMER)
    block, tables = 12 * 16 * 16, (22 + 51) * 16  # reads, writes and the layers between; tokens and positions
    assert weights(reader.nets.encoder, reader) == block + tables


def test_minutes_are_those_of_the_steps_left() -> None:
    run = trainer(**EHRLICH, steps=1000, net__hidden=32)
    assert expected_minutes(run, 1024, 1e10) == 1000 * PER_WEIGHT * 1024 * 64 * 50 / 1e10 / 60
    run.done = 900
    assert expected_minutes(run, 1024, 1e10) == 100 * PER_WEIGHT * 1024 * 64 * 50 / 1e10 / 60


def test_long_runs_are_told_with_what_would_be_faster() -> None:
    small = trainer(**EHRLICH, **TRANSFORMER, steps=1000)
    assert long_on_cpu(small) == ""
    rate = RATES["transformer", "compile"]
    steps = round(1000 * 2 * LONG / expected_minutes(small, weights(small.nets.encoder, small), rate))
    words = f"{steps:,} steps take about 40 min on a CPU: fewer --steps"  # an MLP of 256 would take longer
    assert long_on_cpu(trainer(**EHRLICH, **TRANSFORMER, steps=steps)).startswith(words)
    assert "about 2.9 h" in long_on_cpu(trainer(**EHRLICH, **TRANSFORMER, steps=steps), "eager")
    wide: dict[str, Any] = TRANSFORMER | {"net__hidden": 128, "net__layers": 3}
    line = long_on_cpu(trainer(**EHRLICH, **wide, steps=40_000))
    assert "an MLP (--net.encoder mlp --net.hidden 256) takes about" in line
    assert "\n" not in line
    assert "MLP" not in long_on_cpu(trainer(**EHRLICH, net__hidden=256, steps=10_000_000))


@pytest.mark.parametrize("way", get_args(Accelerate))
def test_every_way_to_run_steps_has_a_rate(way: str) -> None:
    assert "take about" in long_on_cpu(trainer(**EHRLICH, net__hidden=256, steps=10_000_000), way)


CELLS: dict[str, dict[str, Any]] = {
    "protein50": {"net__encoder": "transformer", "net__hidden": 128, "net__layers": 3, "net__heads": 8},
    "protein50-mlp": {"net__hidden": 256, "net__layers": 2},
}


@pytest.mark.parametrize("way", ["compile", "eager"])
@pytest.mark.parametrize("cell", CELLS)
def test_rates_are_those_that_were_measured(cell: str, way: str) -> None:
    rows = json.loads((RESULTS / "two_trees_long_cpu.json").read_text())["rows"]
    (measured,) = [row["updates_per_second"] for row in rows if (row["cell"], row["who"]) == (cell, way)]
    run = trainer(**EHRLICH, **CELLS[cell], steps=1)
    seconds = 60 * expected_minutes(run, weights(run.nets.encoder, run), RATES[run.config.net.encoder, way])
    assert seconds == pytest.approx(1 / measured, rel=0.05)


def test_states_that_a_graph_shares_are_counted_once() -> None:
    assert evaluated(trainer("grid", batch=4)) == 4 * 15  # 8 x 8 cells: no more than 14 moves and a stop
    assert evaluated(trainer("grid", batch=400)) == 64
    assert evaluated(trainer("words", batch=4096)) > evaluated(trainer("words", batch=1024))


def test_nothing_is_said_where_scores_are_in_a_table() -> None:
    assert long_on_cpu(trainer("tfbind8", steps=100_000_000, net__hidden=64)) == ""


TIME, EACH = [0.0], [0.0]


def waits(texts: list[str]) -> list[float]:
    """A function of strings that takes time by the clock of the test."""
    TIME[0] += EACH[0] * len(texts)
    return [1.0] * len(texts)


@pytest.mark.parametrize(
    ("wait", "steps", "alone"), [(0.5, 1000, True), (0.5, 50, True), (0.0, 5000, True), (0.5, 1000, False)]
)
def test_a_slow_function_is_told_of_once_with_what_would_be_faster(
    wait: float, steps: int, alone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (duration, function):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: TIME[0]))
    EACH[0] = wait
    named = {"callable__function": f"{__name__}:waits", "callable__length": 12}
    run = trainer("callable", batch=8, net__hidden=8, steps=steps, **named)
    landscape = run.task.landscape
    assert isinstance(landscape, function.FunctionLandscape)
    if not alone:
        monkeypatch.setattr(landscape, "remote", object())
    slow, told = duration.SlowFunction(run), list[str]()
    for _ in range(12):
        if alone:
            run.step()
        run.done += 1
        TIME[0] += 1.0
        told.append(slow.words())
    said = wait > 0.0 and steps == 1000 and alone
    assert [i for i, line in enumerate(told) if line] == ([1] if said else [])
    if said:
        assert told[1].startswith("998 steps more take about 1.4 h, 80% of it in ")
        assert "waits (500 ms a string): workers (--callable.workers " in told[1]
        assert "\n" not in told[1]
