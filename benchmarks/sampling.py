"""Sequences per second from a model: drawn only, and streamed into files; TFBind8, 25 % slip, hidden 256 x 2.

    python -m benchmarks.sampling --device cpu
    python -m benchmarks.sampling --device cuda

Weights are fresh: how fast samples come does not depend on them. Medians of three, each on an instance that has drawn
once before; a process of its own for each row, so that its memory is its own.
"""

import argparse
import multiprocessing
import resource
import statistics
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from benchmarks.common import RESULTS, device_here, write_results
from sgfn.config import TrainConfig
from sgfn.landscapes.tasks import make_task
from sgfn.learning.learner import Learner
from sgfn.learning.trainer import Trainer
from sgfn.runs.sampling import write_samples

ROUNDS = 3
SIZES = {"draw": (100_000, 1_000_000), "csv": (100_000, 1_000_000), "parquet": (100_000, 1_000_000)}
MANY = 10_000_000
GOALS = {"cpu": 50_000, "cuda": 1_000_000}


def fresh(device: str) -> Trainer:
    """A model to draw from."""
    config = TrainConfig().with_(noise__alpha=0.25, net__hidden=256, net__layers=2)
    return Trainer(make_task("tfbind8", config), torch.device(device))


def draw(learner: Learner, n: int, kind: str, folder: Path) -> None:
    """Draw samples into a file, or discard them."""
    if kind == "draw":
        for _ in learner.stream(n, seed=0):
            pass
    else:
        write_samples(learner.task.env, learner.stream(n, seed=0), folder / f"samples.{kind}")


def peak() -> float:
    """Largest memory of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


def measure(kind: str, n: int, device: str) -> dict[str, Any]:
    """Measure one row."""
    learner, seconds, cuda = fresh(device), [], device == "cuda"
    with tempfile.TemporaryDirectory() as folder:
        draw(learner, 1000, kind, Path(folder))
        before = peak()
        for _ in range(ROUNDS):
            started = time.perf_counter()
            draw(learner, n, kind, Path(folder))  # samples end on the host, so nothing is still under way
            seconds.append(time.perf_counter() - started)
    middle = statistics.median(seconds)
    return {
        "what": kind,
        "sequences": n,
        "sequences_per_second": round(n / middle),
        "slowest": round(n / max(seconds)),
        "fastest": round(n / min(seconds)),
        "times_the_goal": round(n / middle / GOALS[device], 2),
        "memory_mib": round(peak()),
        "more_than_for_1000_mib": round(peak() - before),
        "device_memory_mib": round(torch.cuda.max_memory_allocated() / 2**20) if cuda else None,
    }


def apart(kind: str, n: int, device: str) -> dict[str, Any]:
    """Measure one row in a process of its own."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(partial(measure, kind, n, device)).result()


def main() -> None:
    """Run the study."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", type=device_here, default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    cases = [(kind, n) for kind, sizes in SIZES.items() for n in sizes]
    if args.device == "cuda":
        cases.insert(2, ("draw", MANY))
    rows = []
    for kind, n in cases:
        if kind == "parquet" and find_spec("pyarrow") is None:
            print("parquet: left out, as pyarrow is not installed")
            continue
        rows.append(apart(kind, n, args.device))
        print(rows[-1], flush=True)
    out = args.out or RESULTS / f"sampling_{args.device}.json"
    goal = {"goal_per_second": GOALS[args.device]}
    write_results(out, "sampling", torch.device(args.device), rows, **goal)


if __name__ == "__main__":
    main()
