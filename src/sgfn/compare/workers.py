"""Worker processes, one for each cell of a comparison: a failing cell leaves the others running."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sgfn.compare.cells import STOPPED, Cell, CellState, damage
from sgfn.config import to_dict
from sgfn.config.files import write_text
from sgfn.runs.folder import ERROR
from sgfn.runs.train import Stop

COMMAND = [sys.executable, "-P", "-m", "sgfn.compare.worker_process"]
PAUSE = 0.2  # seconds between looks at the workers
StatesCallback = Callable[[list[CellState]], None]
"""Called with the states of cells."""


@dataclass(frozen=True, kw_only=True)
class SharedSettings:
    """Settings that all cells share: jobs at once, device, way to run steps, samples of an evaluation."""

    jobs: int
    device: str
    accelerate: str
    samples: int
    copies: Mapping[str, Path] = field(default_factory=dict)
    """The comparison's copies of the files that its configuration names, which cells read."""
    cluster: str | None = None
    """Address of a cluster that runs the cells; None for processes of this machine."""
    cpus: float = 1.0
    """CPUs that a cell takes of a node."""
    gpus: float | None = None
    """GPUs that a cell takes of a node; None: one where the device wants it."""


class WorkerProcess:
    """A process that trains and evaluates the cell of a job."""

    def __init__(self, job: Mapping[str, Any], environment: Mapping[str, str]) -> None:
        self.log = tempfile.TemporaryFile()  # noqa: SIM115 -- lives as long as the process
        self.process = subprocess.Popen(
            COMMAND,
            stdin=subprocess.PIPE,
            stdout=self.log,
            stderr=self.log,
            env=environment,
            start_new_session=True,  # Ctrl-C reaches the parent alone, which asks its workers to stop
        )
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):  # it ended at once: its exit status tells
            self.process.stdin.write((json.dumps(job) + "\n").encode())
            self.process.stdin.flush()

    def stop(self) -> None:
        """Ask the process to write a checkpoint and end."""
        self.process.terminate()

    def close(self) -> None:
        """Kill the process and close its files."""
        self.process.kill()
        self.process.wait()
        if self.process.stdin is not None:
            with suppress(BrokenPipeError):
                self.process.stdin.close()
        self.log.close()

    def reason(self) -> tuple[str, str]:
        """Why the process failed: (one-line cause, full output)."""
        self.log.seek(0)
        said = self.log.read().decode(errors="replace").strip()
        code = self.process.returncode
        if code == 0:
            return "ended without results", said
        if code < 0:
            hint = " (out of memory?)" if code == -signal.SIGKILL else ""
            return f"killed by {signal.Signals(-code).name}{hint}", said
        return " ".join(said.splitlines()[-1].split()) if said else f"ended with exit status {code}", said


class Worker(WorkerProcess):
    """A process of this machine that trains and evaluates one cell of a comparison in its folder."""

    def __init__(self, state: CellState, shared: SharedSettings) -> None:
        self.state = state
        super().__init__(job_of(state.cell, shared), environment({} if shared.jobs == 1 else {"OMP_NUM_THREADS": "1"}))


def job_of(cell: Cell, shared: SharedSettings) -> dict[str, Any]:
    """The job of a worker as plain data."""
    job = {"task": cell.task, "config": to_dict(cell.config), "path": str(cell.path)}
    job |= {"device": shared.device, "accelerate": shared.accelerate, "samples": shared.samples}
    return job | {"copies": {name: str(file) for name, file in shared.copies.items()}}


def environment(default: Mapping[str, str], *last: Path) -> dict[str, str]:
    """Environment variables of a worker: our module path, those of ours, and `default` where the user set none.

    The current folder and those given come last, as PYTHONPATH goes before the standard library.
    """
    here = [str(Path.cwd()), *map(str, last)]
    folders = [*(folder for folder in sys.path if folder and folder not in here), *here]
    return {**default, **os.environ, "PYTHONPATH": os.pathsep.join(folders)}


def run_cells(
    states: list[CellState], shared: SharedSettings, *, stop: Stop, watch: StatesCallback, ended: StatesCallback
) -> None:
    """Run cells, `shared.jobs` at a time; `watch` gets all states at intervals, `ended` those of cells that ended."""
    waiting, workers, asked = list(reversed(states)), list[Worker](), False
    try:
        while workers or (waiting and not stop.asked):
            while waiting and len(workers) < shared.jobs and not stop.asked:
                state = waiting.pop()
                broken = damage(state.cell.path)
                if broken:
                    fail(state, broken)
                else:
                    workers.append(_start(state, shared))
            if stop.asked and not asked:
                asked = True
                for worker in workers:
                    worker.stop()
            gone = [worker for worker in workers if worker.process.poll() is not None]
            workers = [worker for worker in workers if worker not in gone]
            for worker in gone:
                _end(worker, shared.samples, stop)
            for worker in workers:
                worker.state.read_new_metrics()
            if gone:
                ended([worker.state for worker in gone])
            watch(states)
            time.sleep(0.0 if gone else PAUSE)
    except Exception:  # such as a table that cannot be written: the cells keep their work
        _stop_all(workers)
        raise
    finally:
        for worker in workers:
            worker.close()


def _stop_all(workers: list[Worker]) -> None:
    """Ask all workers to write their checkpoints and end."""
    for worker in workers:
        worker.stop()
    for worker in workers:
        with suppress(subprocess.TimeoutExpired):
            worker.process.wait(60)


def _start(state: CellState, shared: SharedSettings) -> Worker:
    begin(state)
    return Worker(state, shared)


def begin(state: CellState) -> None:
    """Mark a cell as running, and forget how it failed before."""
    (state.cell.path / ERROR).unlink(missing_ok=True)
    state.status, state.error = "running", ""


def _end(worker: Worker, samples: int, stop: Stop) -> None:
    """Set the status of a cell whose process has ended: done, stopped on demand, or failed."""
    state = worker.state
    state.load_files(samples)
    stopped = stop.asked and worker.process.returncode in (STOPPED, -signal.SIGTERM)
    if state.status != "done" and not stopped:
        fail(state, *worker.reason())
    worker.close()


def fail(state: CellState, line: str, said: str = "") -> None:
    """Mark a cell as failed; its error file gets the one-line cause and the full output."""
    state.status, state.error = "failed", line
    write_text(state.cell.path / ERROR, f"{line}\n" + ("" if said in ("", line) else f"\n{said}\n"))
