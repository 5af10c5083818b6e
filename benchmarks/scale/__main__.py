"""Overhead of jobs and cells on Ray, and throughput of waiting rewards with 1, 2 and 4 workers.

    python -m benchmarks.scale            all that is not in the file yet
    python -m benchmarks.scale rewards    one part

Rewards wait and compute nothing, as a laboratory's or a simulator's on another machine do, so that 4 workers fit on 2
cores. Each turn is a row of its own; a study that was stopped goes on where it was.
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from benchmarks.common import RESULTS, machine, positive
from sgfn.compare import compare
from sgfn.config import TrainConfig
from sgfn.config.archives import pack_folder, unpack_folder
from sgfn.config.cluster import Needs, connect
from sgfn.config.cluster_jobs import Job, Report, run_jobs
from sgfn.config.files import read_json, write_json

OUT = RESULTS / "scale.json"
WORKERS = (1, 2, 4)
LATENCIES = (0.0, 0.01, 0.1)
SECONDS = 4.0
"""Seconds that a turn of waiting rewards takes in the ideal."""
EMPTY = 400
"""Jobs of a turn that do nothing."""
CELL = TrainConfig().with_(steps=1, batch=8, grid__side=3, net__hidden=16, dynamics__hidden=8)
Row = dict[str, Any]


def wait_for_reward(latency: float) -> float:
    """A reward that takes its time elsewhere."""
    time.sleep(latency)
    return 1.0


def empty_job(argument: object, shared: object, report: Report) -> None:
    """Nothing."""


def reward_turn(ray: Any, latency: float, workers: int) -> Row:
    """Rewards per second with so many of them under way, one a task."""
    score = ray.remote(num_cpus=0.25, max_retries=0)(wait_for_reward)
    ray.get([score.remote(0.3) for _ in range(workers)])  # their processes are there
    count = round(workers * SECONDS / latency) if latency else EMPTY * workers
    began, waiting, done = time.monotonic(), list[Any](), 0
    for _ in range(count):
        if len(waiting) == workers:
            ready, waiting = ray.wait(waiting, num_returns=1)
            done += len(ready)
        waiting.append(score.remote(latency))
    ray.get(waiting)
    seconds = time.monotonic() - began
    return {"latency": latency, "workers": workers, "rewards": count, "per_second": count / seconds}


def job_turn(ray: Any, workers: int) -> Row:
    """Seconds that each job costs which does nothing, with so many at once: what the driver can give out at most."""
    jobs = [Job(name=str(at), function=empty_job, argument=lambda: None) for at in range(EMPTY)]
    began = time.monotonic()
    for _ in run_jobs(ray, jobs, Needs(cpus=4.0 / workers)):
        pass
    return {"workers": workers, "jobs": EMPTY, "seconds_per_job": (time.monotonic() - began) / EMPTY}


def cell_turn(cluster: str | None) -> Row:
    """Seconds of the smallest cell, one at a time: a process, torch, one step and its evaluation."""
    with tempfile.TemporaryDirectory() as folder:
        began, ended = time.monotonic(), list[float]()

        def watch(states: list[Any]) -> None:
            done = sum(state.status == "done" for state in states)
            ended.extend([time.monotonic()] * (done - len(ended)))

        options = {"cluster": cluster, "cluster_cpus": 4.0} if cluster else {}
        options |= {"methods": ["tb"], "seeds": 4, "samples": 8, "device": "cpu"}
        found = compare("grid", CELL, Path(folder) / "c", progress=watch, **options)
        assert not found.failed
        gaps = [after - before for before, after in zip([began, *ended], ended, strict=False)]
        cell = Path(folder) / "c/tb/alpha0.25/seed0"
        began = time.monotonic()
        packed = pack_folder(cell)
        unpack_folder(packed, Path(folder) / "back")
        travel = time.monotonic() - began
    engine = "cluster" if cluster else "local"
    return {"engine": engine, "seconds_per_cell": statistics.median(gaps[1:]), "bytes": len(packed), "travel": travel}


def parts(turns: int) -> Iterator[tuple[str, Row, Callable[[Any], Row]]]:
    """Name of a part, what tells a row from the others of it, and what measures the row; turn by turn."""
    for turn in range(turns):
        for latency in LATENCIES:
            for workers in WORKERS:
                key = {"latency": latency, "workers": workers, "turn": turn}
                yield "rewards", key, lambda ray, at=latency, many=workers: reward_turn(ray, at, many)
        for workers in WORKERS:
            yield "jobs", {"workers": workers, "turn": turn}, lambda ray, many=workers: job_turn(ray, many)
        for engine in ("local", "cluster"):
            where = "auto" if engine == "cluster" else None
            yield "cells", {"engine": engine, "turn": turn}, lambda ray, where=where: cell_turn(where)


def is_there(rows: list[Row], part: str, key: Row) -> bool:
    """Whether a row was measured before."""
    return any(row["part"] == part and all(row.get(name) == value for name, value in key.items()) for row in rows)


def main() -> None:
    """Measure what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="?", choices=("rewards", "jobs", "cells"), default=None)
    parser.add_argument("--turns", type=positive, default=3)
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    rows: list[Row] = read_json(given.out)["rows"] if given.out.is_file() else []
    torch.set_num_threads(1)
    began = time.monotonic()
    with connect("local", cpus=4) as ray:
        started = time.monotonic() - began
        for part, key, measure in parts(given.turns):
            if is_there(rows, part, key) or given.part not in (None, part):
                continue
            rows.append({"part": part, **key, **measure(ray), "load": round(os.getloadavg()[0], 1)})
            print(rows[-1], flush=True)
            about = {"command": f"python -m benchmarks.scale --turns {given.turns}", "start_seconds": round(started, 2)}
            write_json(given.out, {**about, "machine": machine(torch.device("cpu")), "rows": rows})


if __name__ == "__main__":
    main()
