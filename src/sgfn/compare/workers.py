"""Worker processes, one for each cell of a comparison: what becomes of one is no concern of the others."""

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

from sgfn.compare.cells import STOPPED, Cell, CellState, damage
from sgfn.config import to_dict
from sgfn.config.files import write_text
from sgfn.runs.folder import ERROR
from sgfn.runs.train import Stop

COMMAND = [sys.executable, "-P", "-m", "sgfn.compare.worker_process"]
PAUSE = 0.2  # seconds between looks at the workers
Watch = Callable[[list[CellState]], None]


@dataclass(frozen=True, kw_only=True)
class Terms:
    """Jobs, device, way to run steps and samples that all cells share."""

    jobs: int
    device: str
    accelerate: str
    samples: int
    copies: Mapping[str, Path] = field(default_factory=dict)
    """The comparison's copies of the files that its configuration names, which cells read."""


class Worker:
    """A process that trains and evaluates one cell."""

    def __init__(self, state: CellState, terms: Terms) -> None:
        self.state, cell = state, state.cell
        self.log = tempfile.TemporaryFile()  # noqa: SIM115 -- lives as long as the process
        self.process = subprocess.Popen(
            COMMAND,
            stdin=subprocess.PIPE,
            stdout=self.log,
            stderr=self.log,
            env=_environment(terms.jobs == 1),
            start_new_session=True,  # Ctrl-C reaches the parent alone, which asks its workers to stop
        )
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):  # it ended at once: its exit status tells
            self.process.stdin.write(_job(cell, terms))
            self.process.stdin.flush()

    def stop(self) -> None:
        """Ask a worker for a checkpoint and an end."""
        self.process.terminate()

    def close(self) -> None:
        """Nothing is left of it after this, whatever it was doing."""
        self.process.kill()
        self.process.wait()
        if self.process.stdin is not None:
            with suppress(BrokenPipeError):
                self.process.stdin.close()
        self.log.close()

    def reason(self) -> tuple[str, str]:
        """Why it failed, in one line, and all it said."""
        self.log.seek(0)
        said = self.log.read().decode(errors="replace").strip()
        code = self.process.returncode
        if code == 0:
            return "ended without results", said
        if code < 0:
            hint = " (out of memory?)" if code == -signal.SIGKILL else ""
            return f"killed by {signal.Signals(-code).name}{hint}", said
        return " ".join(said.splitlines()[-1].split()) if said else f"ended with exit status {code}", said


def _job(cell: Cell, terms: Terms) -> bytes:
    job = {"task": cell.task, "config": to_dict(cell.config), "path": str(cell.path)}
    job |= {"device": terms.device, "accelerate": terms.accelerate, "samples": terms.samples}
    job |= {"copies": {name: str(file) for name, file in terms.copies.items()}}
    return (json.dumps(job) + "\n").encode()


def _environment(alone: bool) -> dict[str, str]:
    """Modules are found as they are here; workers side by side have one thread each unless the user says otherwise."""
    threads = {} if alone else {"OMP_NUM_THREADS": "1"}
    return threads | os.environ | {"PYTHONPATH": os.pathsep.join(folder or str(Path.cwd()) for folder in sys.path)}


def run_cells(states: list[CellState], terms: Terms, *, stop: Stop, watch: Watch, ended: Watch) -> None:
    """Bring cells to their end, so many at a time; `watch` is called now and then, `ended` with those that ended."""
    waiting, workers, asked = list(reversed(states)), list[Worker](), False
    try:
        while workers or (waiting and not stop.asked):
            while waiting and len(workers) < terms.jobs and not stop.asked:
                state = waiting.pop()
                broken = damage(state.cell.path)
                if broken:
                    _fail(state, broken)
                else:
                    workers.append(_start(state, terms))
            if stop.asked and not asked:
                asked = True
                for worker in workers:
                    worker.stop()
            gone = [worker for worker in workers if worker.process.poll() is not None]
            workers = [worker for worker in workers if worker not in gone]
            for worker in gone:
                _end(worker, terms.samples, stop)
            for worker in workers:
                worker.state.follow()
            if gone:
                ended([worker.state for worker in gone])
            watch(states)
            time.sleep(0.0 if gone else PAUSE)
    except Exception:  # a table that cannot be written is no reason to lose their work
        _let_go(workers)
        raise
    finally:
        for worker in workers:
            worker.close()


def _let_go(workers: list[Worker]) -> None:
    """Ask all workers to write their checkpoints and end."""
    for worker in workers:
        worker.stop()
    for worker in workers:
        with suppress(subprocess.TimeoutExpired):
            worker.process.wait(60)


def _start(state: CellState, terms: Terms) -> Worker:
    (state.cell.path / ERROR).unlink(missing_ok=True)  # it is tried again
    state.status, state.error = "running", ""
    return Worker(state, terms)


def _end(worker: Worker, samples: int, stop: Stop) -> None:
    """What has become of a cell: done, stopped on demand, or failed."""
    state = worker.state
    state.settle(samples)
    stopped = stop.asked and worker.process.returncode in (STOPPED, -signal.SIGTERM)
    if state.status != "done" and not stopped:
        _fail(state, *worker.reason())
    worker.close()


def _fail(state: CellState, line: str, said: str = "") -> None:
    """Keep the reason in one line, and all that was said."""
    state.status, state.error = "failed", line
    write_text(state.cell.path / ERROR, f"{line}\n" + ("" if said in ("", line) else f"\n{said}\n"))
