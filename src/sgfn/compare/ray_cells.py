"""Cells of a comparison as jobs of a Ray cluster; nodes share no storage: run folders travel there and back."""

import fcntl
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sgfn.compare.cells import STOPPED, CellState, damage
from sgfn.compare.workers import SharedSettings, StatesCallback, WorkerProcess, begin, environment, fail, job_of
from sgfn.config.archives import pack_folder, unpack_folder
from sgfn.config.cluster import Needs, connect
from sgfn.config.cluster_jobs import Event, Job, LostError, Report, run_jobs
from sgfn.config.shipping import Shipment, code_folder, shipment
from sgfn.runs.folder import ERROR, LOCK, Run
from sgfn.runs.loop import Stop
from sgfn.runs.trust import named_code, words_of

EVERY = 0.5
"""Seconds between reports of a cell."""
PREFIX = "sgfn-cell-"


def run_cells_on_cluster(
    states: list[CellState], shared: SharedSettings, *, stop: Stop, watch: StatesCallback, ended: StatesCallback
) -> None:
    """`run_cells` on the cluster that the settings name; cells whose worker or node is lost are tried again."""
    todo = []
    for state in states:
        broken = damage(state.cell.path)
        todo += [] if broken else [state]
        if broken:
            fail(state, broken)
    with connect(shared.cluster or "") as ray:
        needs = Needs(cpus=shared.cpus, gpus=gpus_wanted(ray, shared))
        by_name = {state.cell.name: state for state in todo}
        jobs = [
            Job(name=name, function=perform_cell, argument=_argument(state, shared, needs))
            for name, state in by_name.items()
        ]
        shipped = shipment(shared.copies, _code(todo))
        for events in run_jobs(ray, jobs, needs, shared=shipped, stop=lambda: stop.asked):
            for event in events:
                _take(event, by_name[event.name], shared.samples, stop)
            gone = [by_name[event.name] for event in events if event.ended]
            if gone:
                ended(gone)
            watch(states)


def gpus_wanted(ray: Any, shared: SharedSettings) -> float:
    """GPUs of each cell: as told, or one where they are asked for, or there and not refused."""
    if shared.gpus is not None:
        return shared.gpus
    there = ray.cluster_resources().get("GPU", 0) > 0
    return float(shared.device == "cuda" or (shared.device == "auto" and there))


def _code(states: list[CellState]) -> set[str]:
    """Everything that cells name as `module:name`."""
    words = [
        named_code({**words_of(state.cell.task, state.cell.config), "method": state.cell.method}) for state in states
    ]
    return {name for found in words for name in found.values()}


def _argument(state: CellState, shared: SharedSettings, needs: Needs) -> Callable[[], dict[str, Any]]:
    """What makes the argument of a cell's job when it is due: its settings, and what is there of its folder."""

    def argument() -> dict[str, Any]:
        path = state.cell.path
        there = pack_folder(path, leave_out=(LOCK, ERROR)) if (path / "config.json").is_file() else None
        device = "cpu" if shared.device == "auto" and not needs.gpus else shared.device
        threads = str(max(1, int(needs.cpus)))
        job = job_of(state.cell, shared) | {"device": device}
        return {"job": job, "folder": there, "threads": threads, "version": version("sgfn")}

    return argument


def _take(event: Event, state: CellState, samples: int, stop: Stop) -> None:
    """Bring a cell up to date with what is new of its job."""
    if event.lost:
        state.status, state.node, state.row = "waiting", "", {}
        state.losses += 1
        return
    if event.node:
        if state.status != "running":
            begin(state)
        state.node = event.node
    if event.report:
        state.take_lines(event.report)
    if event.ended:
        _end(event, state, samples, stop)


def _end(event: Event, state: CellState, samples: int, stop: Stop) -> None:
    """Put the folder that came back into its place, and set the status: done, stopped on demand, or failed."""
    found = event.value
    if found is not None and found["folder"] is not None:
        try:
            replace_folder(state.cell.path, found["folder"])
        except ValueError as error:
            return fail(state, str(error))
    state.load_files(samples)
    if state.status == "done" or (stop.asked and (found is None or found["stopped"])):
        return None
    if found is None:
        return fail(state, _words(event.error))
    return fail(state, found["reason"], found["said"])


def _words(error: Exception | None) -> str:
    """Why a job ended without a result, in one line."""
    cause = getattr(error, "cause", error)
    if isinstance(cause, LostError | ValueError):
        return str(cause)
    return f"{type(cause).__name__}: {next(iter(str(cause).splitlines()), '')}"


def replace_folder(path: Path, packed: bytes) -> None:
    """Let the files of a tar take the place of a cell's folder, which is the old one or the new one at any time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.sgfn-") as aside:
        new, old = Path(aside) / "new", Path(aside) / "old"
        new.mkdir()
        unpack_folder(packed, new)
        if path.is_dir() and not path.is_symlink():
            path.rename(old)
        new.rename(path)


# On a node


def perform_cell(argument: dict[str, Any], shipped: Shipment, report: Report) -> dict[str, Any]:
    """Train and evaluate a cell in a process and a folder of its own, on some node; returns the folder as bytes."""
    here, there = version("sgfn"), argument["version"]
    if here != there:
        raise ValueError(f"a node has sgfn {here}, and the comparison runs with {there}: install the same on all")
    with own_folder() as place:
        folder = place / "cell"
        copies = shipped.place(place)
        if argument["folder"] is not None:
            folder.mkdir()
            unpack_folder(argument["folder"], folder)
        job = argument["job"] | {"path": str(folder), "copies": {name: str(file) for name, file in copies.items()}}
        threads = {"OMP_NUM_THREADS": argument["threads"]}
        worker = WorkerProcess(job, environment(threads, code_folder(place)) | threads)
        try:
            stopped = _wait(worker, Run(path=folder).metrics, report)
            return _result(worker, folder, stopped)
        finally:
            worker.close()


def _wait(worker: WorkerProcess, metrics: Path, report: Report) -> bool:
    """Report lines of metrics until the process has ended; returns whether it was asked to stop."""
    told, stopped, due = 0, False, 0.0
    while worker.process.poll() is None:
        time.sleep(0.02)
        if time.monotonic() < due:
            continue
        due = time.monotonic() + EVERY
        lines = whole_lines(metrics, told)
        told += len(lines)
        if report(lines) and not stopped:
            worker.stop()
            stopped = True
    return stopped


def whole_lines(file: Path, start: int) -> bytes:
    """Lines of a file from a place on; the last one only if it is whole."""
    if not file.is_file() or file.stat().st_size <= start:
        return b""
    with file.open("rb") as content:
        content.seek(start)
        found = content.read()
    return found[: found.rfind(b"\n") + 1]


def _result(worker: WorkerProcess, folder: Path, stopped: bool) -> dict[str, Any]:
    """How a cell's process has ended, as plain data; raises where it was killed from outside."""
    code = worker.process.returncode
    reason, said = worker.reason()
    if code == -signal.SIGKILL:
        raise LostError(reason)
    packed = pack_folder(folder, leave_out=(LOCK,)) if (folder / "config.json").is_file() else None
    ended = stopped and code in (STOPPED, -signal.SIGTERM)
    return {"folder": packed, "stopped": ended, "reason": reason, "said": said}


@contextmanager
def own_folder() -> Iterator[Path]:
    """A folder for one cell, which goes with it; folders that killed workers left behind go too."""
    base = Path(tempfile.gettempdir())
    for left in base.glob(f"{PREFIX}*"):
        _remove_if_left(left)
    with tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as name:
        handle = os.open(Path(name) / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield Path(name)
        finally:
            os.close(handle)


def _remove_if_left(folder: Path) -> None:
    """Remove a cell's folder whose worker is gone."""
    try:
        handle = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:  # not ours, or just being made
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    except OSError:  # its worker lives
        return
    finally:
        os.close(handle)
