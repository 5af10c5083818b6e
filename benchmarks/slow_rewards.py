"""Slow rewards, actors and ranks: throughput by number of workers, what a lag costs, and training on two CPU processes.

python -m benchmarks.slow_rewards scores      # scores per second of a reward that waits 10 or 100 ms for each string
python -m benchmarks.slow_rewards steps       # training steps per second with a reward of 10 ms
python -m benchmarks.slow_rewards lag         # exact distance to the target by the age of the weights that sampled
python -m benchmarks.slow_rewards torchrun    # steps per second of one process, and of two that share its batches

Each cell is written when it is done; the same command again goes on with those that are missing.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import torch

from benchmarks.common import RESULTS, arguments, machine
from sgfn.config import TrainConfig
from sgfn.config.files import read_json, write_json
from sgfn.config.processes import Make, hiring
from sgfn.envs import laws
from sgfn.evaluation import exact
from sgfn.landscapes.function import FunctionLandscape
from sgfn.landscapes.tasks import make_task
from sgfn.learning.parallel import ParallelTrainer, joined, launched
from sgfn.learning.trainer import Trainer

CPU = torch.device("cpu")
WAITS = {0.01: 300, 0.1: 40}
"""Seconds that a reward waits for each string, and strings of a measurement for each worker."""
WORKERS = (1, 2, 4)
LAGS = (0, 4, 16, 64)
RANKS = "SGFN_BENCHMARK_STEPS"


def wait_10ms(texts: list[str]) -> list[float]:
    """A reward that takes ten milliseconds for each string, in which it does nothing."""
    return _waited(texts, 0.01)


def wait_100ms(texts: list[str]) -> list[float]:
    """The same, a hundred milliseconds."""
    return _waited(texts, 0.1)


def _waited(texts: list[str], seconds: float) -> list[float]:
    time.sleep(seconds * len(texts))
    return [1.0 + text.count("A") for text in texts]


FUNCTIONS: dict[float, str] = {0.01: "wait_10ms", 0.1: "wait_100ms"}


def scored(seconds: float, workers: int, seed: int) -> dict[str, float]:
    """Scores per second that workers give, after they have started."""
    config = TrainConfig().with_(
        callable__function=f"benchmarks.slow_rewards:{FUNCTIONS[seconds]}",
        callable__length=20,
        callable__workers=workers,
        callable__timeout=1e6,
    )
    landscape, generator = make_task("callable", config).landscape, torch.Generator().manual_seed(seed)
    assert isinstance(landscape, FunctionLandscape)
    landscape.scores(torch.randint(4, (4 * workers, 20), generator=generator))
    assert landscape.remote is not None
    assert landscape.remote.pool is not None
    while landscape.remote.pool.present < workers:
        time.sleep(0.1)
    objects = torch.randint(4, (WAITS[seconds] * workers, 20), generator=generator)
    started = time.perf_counter()
    landscape.scores(objects)
    found = len(objects) / (time.perf_counter() - started)
    landscape.close()
    return {"scores_per_second": found}


def stepped(how: str, workers: int, seed: int) -> dict[str, float]:
    """Steps per second of a training whose reward takes 10 ms a string, batches of 64; `here` is without workers."""
    config = TrainConfig().with_(
        callable__function="benchmarks.slow_rewards:wait_10ms",
        callable__length=12,
        callable__workers=workers,
        callable__timeout=0.0 if how == "here" else 1e6,
        batch=64,
        seed=seed,
        replay__updates=1,
        net__hidden=64,
        dynamics__hidden=16,
    )
    trainer = Trainer(make_task("callable", config), CPU)
    steps = 15
    for _ in range(3):
        trainer.step()
    started = time.perf_counter()
    for _ in range(steps):
        trainer.step()
    found = steps / (time.perf_counter() - started)
    trainer.close()
    return {"steps_per_second": found}


class InlineWorker:
    """A worker that answers where it is asked: numbers alone matter here, and a fixed lag gives them."""

    def __init__(self, make: Make) -> None:
        self.answer = make()

    def start(self) -> None:
        """Nothing to start."""

    def ask(self, request: Any, timeout: float | None) -> Any:
        """The answer."""
        return self.answer(request)

    def close(self) -> None:
        """Nothing to end."""


def lagged(lag: int, replay: int, seed: int) -> dict[str, float]:
    """Exact distance to the target of a run whose every batch was sampled by weights of `lag` updates before."""
    config = TrainConfig().with_(
        steps=400,
        batch=16,
        seed=seed,
        net__hidden=32,
        dynamics__hidden=16,
        replay__updates=replay,
        grid__side=4,
        noise__alpha=0.1,
        optim__lr=5e-3,
        optim__warmup=20,
    )
    if lag:
        config = config.with_(actors=(lag + 2) // 2, actors_lag=lag, deterministic=True)
    with hiring(InlineWorker):
        trainer = Trainer(make_task("grid", config), CPU)
        for _ in range(config.steps):
            trainer.step()
            trainer.done += 1
        task = trainer.task
        target = exact.target(task.log_target(laws.check_size(task.env).all_objects()), task.beta)
        found = exact.total_variation(trainer.law(), target)
        trainer.close()
    return {"tv": found}


def ranked(ranks: int, batch: int, seed: int) -> dict[str, float]:
    """Steps per second of `ranks` processes with one thread each that share batches of TFBind8."""
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(ranks)]
    command += ["-m", "benchmarks.slow_rewards", "rank"]
    env = os.environ | {RANKS: json.dumps([batch, seed]), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    return json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))


def rank() -> None:
    """One of the processes of `ranked`: the first prints its steps per second."""
    batch, seed = json.loads(os.environ[RANKS])
    ranks, steps = launched(), 60
    config = TrainConfig().with_(batch=batch, seed=seed)
    with joined(ranks, CPU):
        task = make_task("tfbind8", config)
        trainer = Trainer(task, CPU) if ranks is None else ParallelTrainer(task, CPU, ranks=ranks)
        for _ in range(10):
            trainer.step()
        started = time.perf_counter()
        for _ in range(steps):
            trainer.step()
        found = steps / (time.perf_counter() - started)
    if ranks is None or ranks.leads:
        print(json.dumps({"steps_per_second": found}))


STUDIES: dict[str, tuple[Callable[..., dict[str, float]], tuple[str, ...], list[tuple[Any, ...]]]] = {
    "scores": (scored, ("seconds", "workers"), list(product(WAITS, WORKERS))),
    "steps": (stepped, ("how", "workers"), [("here", 1), ("workers", 1), ("workers", 2), ("workers", 4)]),
    "lag": (lagged, ("lag", "replay"), list(product(LAGS, (0,)))),
    "torchrun": (ranked, ("ranks", "batch"), list(product((1, 2), (256, 4096)))),
}


def main() -> None:
    """Measure the cells of a study that are missing, seed by seed, and summarise them."""
    if sys.argv[1:] == ["rank"]:
        return rank()
    args = arguments(__doc__ or "", None, study=list(STUDIES))
    path: Path = args.out or RESULTS / f"slow_rewards_{args.study}.json"
    measure, names, cells = STUDIES[args.study]
    found: list[dict[str, Any]] = read_json(path)["cells"] if path.is_file() else []
    for seed, cell in product(range(args.seeds), cells):
        key = dict(zip(names, cell, strict=True)) | {"seed": seed}
        if not any(key.items() <= old.items() for old in found):
            found.append(key | measure(*cell, seed) | {"load": round(os.getloadavg()[0], 1)})
            command = f"python -m benchmarks.slow_rewards {args.study} --seeds {args.seeds}"
            about = {"command": command, "machine": machine(CPU) | {"cores": os.cpu_count()}}
            write_json(path, about | {"summary": summary(found, names), "cells": found})
    return print(json.dumps(summary(found, names), indent=1))


def summary(cells: list[dict[str, Any]], names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Median, least and greatest figure over seeds of each kind of cell."""
    groups: dict[tuple[Any, ...], list[float]] = {}
    figure = next(name for name in cells[0] if name in ("scores_per_second", "steps_per_second", "tv"))
    for cell in cells:
        groups.setdefault(tuple(cell[name] for name in names), []).append(cell[figure])
    return [
        dict(zip(names, key, strict=True))
        | {figure: round(statistics.median(values), 4), "range": [round(min(values), 4), round(max(values), 4)]}
        for key, values in groups.items()
    ]


if __name__ == "__main__":
    main()
