"""What is said of runs that take long on a CPU."""

import torch

from sgfn.config import TrainConfig
from sgfn.landscapes.tasks import make_task
from sgfn.learning.trainer import Trainer
from sgfn.runs.duration import LONG, PER_WEIGHT, RATE, expected_minutes, long_on_cpu, weights

EHRLICH = {"ehrlich__vocab": 20, "ehrlich__length": 50, "ehrlich__motifs": 2, "batch": 64}
TRANSFORMER = {"net__encoder": "transformer", "net__hidden": 16, "net__layers": 1, "net__heads": 2}


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
    assert expected_minutes(run, 1024) == 1000 * PER_WEIGHT * 1024 * 64 * 50 / RATE / 60
    run.done = 900
    assert expected_minutes(run, 1024) == 100 * PER_WEIGHT * 1024 * 64 * 50 / RATE / 60


def test_long_runs_are_told_with_what_would_be_faster() -> None:
    quick = trainer(**EHRLICH, **TRANSFORMER, steps=1000)
    assert long_on_cpu(quick) == ""
    steps = round(1000 * 2 * LONG / expected_minutes(quick, weights(quick.nets.encoder, quick)))
    line = long_on_cpu(trainer(**EHRLICH, **TRANSFORMER, steps=steps))
    assert line.startswith(
        f"{steps:,} steps take about 40 min on a CPU: an MLP (--net.encoder mlp --net.hidden 256) takes"
    )
    assert "\n" not in line
    assert "MLP" not in long_on_cpu(trainer(**EHRLICH, net__hidden=256, steps=10_000_000))


def test_nothing_is_said_where_scores_are_in_a_table() -> None:
    assert long_on_cpu(trainer("tfbind8", steps=100_000_000, net__hidden=64)) == ""
