"""A cluster of several nodes on this machine, started once, and jobs for it."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from sgfn.config.cluster import connect, ray_module
from sgfn.config.cluster_jobs import Event, Job, LostError, Report, run_jobs

STORE = 80 * 2**20
"""Bytes of each node's object store: the least that Ray takes."""


RUNNING: list[tuple[ExitStack, Any]] = []
"""The cluster that runs now, with what ends it."""


@pytest.fixture
def cluster() -> Any:
    """A cluster with a node of two CPUs, connected, also for the next test that asks; tests add nodes of their own."""
    if not RUNNING:
        running = ExitStack()
        RUNNING.append((running, running.enter_context(started())))
    return RUNNING[0][1]


@contextmanager
def started() -> Iterator[Any]:
    ray = ray_module()
    from ray.cluster_utils import Cluster

    found = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "object_store_memory": STORE})
    with connect(found.address):
        yield found
    found.shutdown()
    assert not ray.is_initialized()


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """End the cluster as soon as the next test does not ask for it: its processes take time also when idle."""
    if RUNNING and "cluster" not in getattr(nextitem, "fixturenames", ()):
        RUNNING.pop()[0].close()


def collect(ray: Any, jobs: list[Job], needs: Any, **how: Any) -> dict[str, list[Event]]:
    """All events of jobs by their names."""
    found: dict[str, list[Event]] = {job.name: [] for job in jobs}
    for events in run_jobs(ray, jobs, needs, **how):
        for event in events:
            found[event.name].append(event)
    return found


# Jobs


def square(argument: int, shared: int, report: Report) -> int:
    return argument * argument + shared


def refuse(argument: str, shared: object, report: Report) -> None:
    raise ValueError(argument)


def killed_until(argument: tuple[str, int], shared: object, report: Report) -> str:
    """Kill this worker as a lack of memory does, the first so many times."""
    folder, times = argument
    before = len(list(Path(folder).iterdir()))
    if before < times:
        (Path(folder) / str(before)).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return f"after {before}"


def lost_itself(argument: object, shared: object, report: Report) -> None:
    raise LostError("killed by SIGKILL (out of memory?)")


def wait_for(argument: str, shared: object, report: Report) -> str:
    """Wait until a file is there, or until asked to stop."""
    while not Path(argument).exists():
        if report(b""):
            return "stopped"
        time.sleep(0.05)
    return "done"


def wait_deaf(argument: str, shared: object, report: Report) -> None:
    """Write the worker's process id, and wait without listening."""
    Path(argument).write_text(str(os.getpid()))
    time.sleep(600)


# Cells of a study


def rows_of_cell(number: int, seeds: int) -> list[dict[str, int]]:
    """Rows of a cell that takes the longer the earlier it comes; that of 13 fails."""
    if number == 13:
        raise ValueError("thirteen")
    time.sleep(0.3 if number == 0 else 0.0)
    return [{"number": number, "seed": seed, "square": number**2 + seed} for seed in range(seeds)]


def square_of_cell(number: int) -> dict[str, int]:
    """The row of a cell; that of 13 fails."""
    return {"square": rows_of_cell(number, 1)[0]["square"]}
