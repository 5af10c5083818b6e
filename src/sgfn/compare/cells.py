"""Cells of a comparison: a method, a noise level and a seed, each an ordinary run folder; what their files say."""

import json
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from sgfn.compare.contestants import contestant
from sgfn.config import TrainConfig
from sgfn.config.files import read_json
from sgfn.noise import noise_words
from sgfn.runs.folder import ERROR, Run

Status = Literal["waiting", "running", "stopped", "done", "failed"]
SECONDS = "seconds.json"
STOPPED = 130  # exit status of a worker that was asked to stop
REMEMBERED = 16  # looks at a running cell that its speed is taken from


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One method at one noise level with one seed."""

    task: str
    method: str
    alpha: float
    seed: int
    path: Path
    config: TrainConfig

    @property
    def name(self) -> str:
        """The cell's path within the comparison's folder."""
        return "/".join(self.path.parts[-3:])

    @property
    def noise(self) -> str:
        """The noise in a few words."""
        return noise_words(self.config.noise)

    @property
    def label(self) -> str:
        """Method, noise and seed in a few words."""
        return f"{self.method}, {self.noise}, seed {self.seed}"

    @property
    def run(self) -> Run:
        """Its run folder."""
        return Run(path=self.path)


def make_cell(out: Path, task: str, config: TrainConfig, method: str, alpha: float, seed: int) -> Cell:
    """The cell's folder is OUT/METHOD/alphaA/seedS."""
    own = contestant(config, method).with_(noise__alpha=alpha, seed=seed)
    short = f"{alpha:g}"
    path = out / method.replace(":", "-") / f"alpha{short if float(short) == alpha else alpha}" / f"seed{seed}"
    return Cell(task=task, method=method, alpha=alpha, seed=seed, path=path, config=own)


@dataclass
class CellState:
    """Progress and results of one cell."""

    cell: Cell
    status: Status = "waiting"
    error: str = ""
    """Why it failed, in one line."""
    row: dict[str, Any] = field(default_factory=dict)
    """The newest value of each figure in its metrics."""
    results: dict[str, Any] = field(default_factory=dict)
    """exact.json, of a cell that is done."""
    seconds: float | None = None
    """Time spent in training."""
    read: int = 0
    """Bytes of its metrics that have been read."""
    seen: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    """When how many trajectories were first seen."""

    @property
    def step(self) -> int:
        """Training steps done, as far as the metrics tell."""
        return self.row.get("step", 0)

    @property
    def rate(self) -> float:
        """Trajectories per second lately, 0 where nothing is known."""
        if self.status != "running" or len(self.seen) < 2:
            return 0.0
        (start, first), (end, last) = self.seen[0], self.seen[-1]
        return max(last - first, 0) / max(end - start, 1e-9)

    def follow(self) -> None:
        """Read what was added to the metrics since the last look."""
        file = self.cell.run.metrics
        size = file.stat().st_size if file.is_file() else 0
        if size < self.read:  # a resumed run forgets what came after its checkpoint
            self.read, self.row = 0, {}
            self.seen.clear()
        if size == self.read:
            return
        with file.open("rb") as lines:
            lines.seek(self.read)
            whole = lines.read().rpartition(b"\n")[0]
        self.read += len(whole) + 1 if whole else 0
        for row in _rows(whole.splitlines()):
            self.row |= row
        if self.row:
            self.seen.append((time.monotonic(), self.row.get("trajectories", 0)))

    def settle(self, samples: int) -> None:
        """What the files of a cell say that nobody works on."""
        self.read, self.row = 0, {}
        self.follow()
        self.seen.clear()  # nothing is known yet of the speed of the next worker
        self.error = read_error(self.cell.path)
        self.seconds = read_seconds(self.cell.path)
        broken = damage(self.cell.path)
        if broken:
            self.row, self.error = {}, broken
        self.results = {} if broken else finished(self.cell, samples) or {}
        if self.results:
            self.status, self.error = "done", ""
        else:
            self.status = "failed" if self.error else "stopped" if self.row else "waiting"


def _rows(lines: Iterable[bytes]) -> Iterable[dict[str, Any]]:
    """Lines of metrics; one that was cut, and went on after a resume, is passed over."""
    for line in lines:
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict) and "step" in row:
            yield row


def finished(cell: Cell, samples: int) -> dict[str, Any] | None:
    """The results of a cell that was trained to the end as configured and evaluated there; None of any other."""
    exact = cell.path / "exact.json"
    if not (exact.is_file() and (cell.path / "config.json").is_file()):
        return None
    try:
        results = read_json(exact)
    except ValueError:  # damaged: it is evaluated again
        return None
    if not isinstance(results, dict) or (results.get("step"), results.get("samples")) != (cell.config.steps, samples):
        return None
    return results if cell.run.read_config() == (cell.task, cell.config) else None


def damage(path: Path) -> str:
    """What is wrong with configuration or metrics of a cell, in one line; empty where nothing is."""
    run = Run(path=path)
    try:
        if (path / "config.json").is_file():
            run.read_config()
            run.rows()
    except ValueError as error:
        return f"{error}; remove {path} to train it again"
    return ""


def read_error(path: Path) -> str:
    """The first line of error.txt, which a failed cell has."""
    file = path / ERROR
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    return lines[0] if lines else ""


def read_seconds(path: Path) -> float | None:
    """Time that training took in all, also where it was resumed."""
    file = path / SECONDS
    try:
        data = read_json(file) if file.is_file() else {}
    except ValueError:
        return None
    return data.get("seconds") if isinstance(data, dict) else None
