"""Cells of a comparison as jobs of a Ray cluster; nodes share no storage: run folders travel there and back."""

import signal
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sgfn.compare.cells import STOPPED, CellState, damage
from sgfn.compare.workers import SharedSettings, StatesCallback, WorkerProcess, begin, environment, fail, job_of
from sgfn.config.archives import pack_folder, unpack_folder
from sgfn.config.cluster import Needs, connect, device_on_node
from sgfn.config.cluster_jobs import Event, Job, LostError, Report, error_words, gpus_wanted, run_jobs
from sgfn.config.shipping import Shipment, code_folder, shipment
from sgfn.config.work_folders import own_folder
from sgfn.runs.folder import ERROR, LOCK, Run
from sgfn.runs.loop import Stop
from sgfn.runs.trust import named_code, words_of

EVERY = 0.5
"""Seconds between reports of a cell."""


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
        needs = Needs(cpus=shared.cpus, gpus=gpus_wanted(ray, shared.device, shared.gpus))
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
        begun = (path / "config.json").is_file()
        there = pack_folder(path, keep=lambda name: name not in (LOCK, ERROR)) if begun else None
        threads = str(max(1, int(needs.cpus)))
        return {"job": job_of(state.cell, shared), "folder": there, "threads": threads, "version": version("sgfn")}

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
        except (ValueError, OSError) as error:
            return fail(state, str(error))
    state.load_files(samples)
    if state.status == "done" or (stop.asked and (found is None or found["stopped"])):
        return None
    if found is None:
        return fail(state, error_words(event.error))
    return fail(state, found["reason"], found["said"])


def replace_folder(path: Path, packed: bytes) -> None:
    """Let the files of a tar take the place of a cell's folder, which is the old one or the new one at any time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.sgfn-") as aside:
        new, old = Path(aside) / "new", Path(aside) / "old"
        new.mkdir()
        unpack_folder(packed, new)
        try:
            if path.is_dir() and not path.is_symlink():
                path.rename(old)
            new.rename(path)
        except BaseException:
            if old.exists() and not path.exists():
                old.rename(path)
            raise


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
        job["device"] = device_on_node(job["device"])
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
    packed = pack_folder(folder, keep=lambda name: name != LOCK) if (folder / "config.json").is_file() else None
    ended = stopped and code in (STOPPED, -signal.SIGTERM)
    return {"folder": packed, "stopped": ended, "reason": reason, "said": said}
