"""Cells of studies in a pool of processes: each is written as soon as it is there, and what a file has is not redone.

A study is a list of cells, seed by seed, so that one that was cut short has few seeds and not few settings.
"""

import sys
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch

from benchmarks.common import RESULTS, machine
from sgfn.config.files import read_json, write_json

Row = dict[str, Any]
TRIES = 2
"""How often a cell is begun whose process dies."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One computation: what its row is known by, and what computes the row."""

    key: Row
    function: Callable[..., Row]
    arguments: tuple[Any, ...] = ()
    turn: float = 0.0
    """Cells of a lower turn come first, whichever study they are of."""

    def compute(self) -> Row:
        """The row, on one thread; the figures that it is known by come first."""
        torch.set_num_threads(1)
        return self.key | self.function(*self.arguments)


@dataclass(kw_only=True)
class Study:
    """Cells of one file of results."""

    out: Path
    command: str
    cells: list[Cell]
    about: Callable[[list[Row]], Row] = field(default=lambda rows: {})
    """What the file says beside its rows."""
    rows: list[Row] = field(default_factory=list)
    before: list[Row] = field(default_factory=list)
    """Commands and machines of rows that the file had already."""

    def begin(self, committed: bool = False) -> list[Cell]:
        """Read the file, or if asked for the committed one where there is none yet, and give the cells that lack."""
        known = RESULTS / self.out.name if committed and not self.out.is_file() else self.out
        if known.is_file():
            found = read_json(known)
            self.rows = found["rows"]
            self.before = _commands(found, {"command": self.command, "machine": machine(torch.device("cpu"))})
        return [cell for cell in self.cells if not any(is_of(row, cell.key) for row in self.rows)]

    def keep(self, row: Row) -> None:
        """Take a row into the file, in the place of an older one."""
        keys = next((cell.key for cell in self.cells if is_of(row, cell.key)), row)
        self.rows = [*(one for one in self.rows if not keys.items() <= one.items()), row]
        self.write()

    def write(self) -> None:
        """Write the file."""
        order = {str(cell.key): place for place, cell in enumerate(self.cells)}
        names = list(self.cells[0].key) if self.cells else []
        self.rows.sort(key=lambda row: order.get(str({name: row.get(name) for name in names}), -1))
        about = {"command": self.command, "machine": machine(torch.device("cpu"))} | self.about(self.rows)
        write_json(self.out, about | ({"before": self.before} if self.before else {}) | {"rows": self.rows})


def is_of(row: Row, key: Row) -> bool:
    """Whether a row is that of a cell; rows marked `older`, with the reason, are computed again."""
    return key.items() <= row.items() and "older" not in row


def _commands(found: Row, now: Row) -> list[Row]:
    """Commands and machines of a file, oldest first, each once, less the present one."""
    own = [
        {"command": found[name], "machine": found.get("machine")} for name in ("command", "commands") if name in found
    ]
    listed = [*found.get("before", []), *own]
    return [one for place, one in enumerate(listed) if one != now and one not in listed[:place]]


def perform(studies: list[Study], jobs: int = 1, minutes: float = float("inf"), *, committed: bool = False) -> None:
    """Compute what lacks, turn by turn, in so many processes; after so many minutes no cell is begun."""
    deadline = time.monotonic() + 60 * minutes
    waiting = [(study, cell) for study in studies for cell in study.begin(committed)]
    waiting.sort(key=lambda one: one[1].turn)
    if jobs == 1:
        for study, cell in waiting:
            if time.monotonic() < deadline:
                _take(study, cell, cell.compute())
        return
    _in_processes(waiting, jobs, deadline)


def _in_processes(waiting: list[tuple[Study, Cell]], jobs: int, deadline: float) -> None:
    """Cells in processes; one that fails is told and left out, one whose process dies is tried again."""
    waiting, tried = list(reversed(waiting)), dict[int, int]()
    running: dict[Future[Row], tuple[Study, Cell]] = {}
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"))
    try:
        while running or (waiting and time.monotonic() < deadline):
            while waiting and len(running) < jobs and time.monotonic() < deadline:
                study, cell = waiting.pop()
                tried[id(cell)] = tried.get(id(cell), 0) + 1
                running[pool.submit(cell.compute)] = (study, cell)
            broken = False
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                study, cell = running.pop(future)
                error = future.exception()
                if error is None:
                    _take(study, cell, future.result())
                elif isinstance(error, BrokenExecutor) and tried[id(cell)] < TRIES:
                    waiting.append((study, cell))
                else:
                    print(f"{study.out.name} {cell.key}: {error!r}", file=sys.stderr, flush=True)
                broken |= isinstance(error, BrokenExecutor)
            if broken and not running:
                pool.shutdown()
                pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"))
    finally:
        pool.shutdown(cancel_futures=True)


def _take(study: Study, cell: Cell, row: Row) -> None:
    study.keep(row)
    shown = {name: value for name, value in row.items() if isinstance(value, int | float | str)}
    print(f"{study.out.name} {shown}", flush=True)
