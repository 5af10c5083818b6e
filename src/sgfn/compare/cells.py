"""Cells of a comparison: a method, a noise level and a seed, each an ordinary run folder; their state by its files."""

import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from sgfn.compare.contestants import contestant
from sgfn.config import TrainConfig
from sgfn.config.files import read_json
from sgfn.evaluation.measure import EXACT_KEYS
from sgfn.noise import noise_words
from sgfn.reports.sources import number
from sgfn.runs.folder import ERROR, Run
from sgfn.runs.metrics import newest
from sgfn.runs.results import read_results

Status = Literal["waiting", "running", "stopped", "done", "failed"]
SECONDS = "seconds.json"
STOPPED = 130  # exit status of a worker that was asked to stop
REMEMBERED = 16  # newest readings of a running cell, from which its speed is computed


FIGURES = [
    *EXACT_KEYS,
    "top100_mean",
    "top100_median",
    "modes_greedy",
    "modes_reference",
    "modes_reference_total",
    "dynamics_tv",
    "sample_mean",
    "unique",
    "diversity",
]
"""Fields of exact.json that are single numbers."""
LARGEST = 1e300
"""No figure is larger in size."""


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
    """The cell of a method, noise level and seed, with its folder OUT/METHOD/alphaA/seedS."""
    own = contestant(config.with_(noise__alpha=alpha), method).with_(noise__alpha=alpha, seed=seed)
    return Cell(task=task, method=method, alpha=alpha, seed=seed, path=cell_path(out, method, alpha, seed), config=own)


def cell_path(out: Path, method: str, alpha: float, seed: int) -> Path:
    """Folder of a cell."""
    short = f"{alpha:g}"
    return out / method.replace(":", "-") / f"alpha{short if float(short) == alpha else alpha}" / f"seed{seed}"


@dataclass
class CellState:
    """Progress and results of one cell."""

    cell: Cell
    status: Status = "waiting"
    error: str = ""
    """Why it failed, in one line."""
    row: dict[str, Any] = field(default_factory=dict)
    """The newest value of each metric, by name."""
    results: dict[str, Any] = field(default_factory=dict)
    """Content of exact.json, for a cell that is done."""
    seconds: float | None = None
    """Seconds spent in training; None where unknown."""
    read: int = 0
    """Bytes of its metrics file that have been read."""
    seen: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    """(time, trajectories) of the newest readings of the metrics."""
    node: str = ""
    """Node of a cluster that runs it, or has run it in this process."""
    losses: int = 0
    """How often its worker or node was lost."""

    @property
    def step(self) -> int:
        """Training steps done, by the newest line of metrics."""
        return self.row.get("step", 0)

    @property
    def rate(self) -> float:
        """Trajectories per second over the newest readings; 0 where unknown."""
        if self.status != "running" or len(self.seen) < 2:
            return 0.0
        (start, first), (end, last) = self.seen[0], self.seen[-1]
        return max(last - first, 0) / max(end - start, 1e-9)

    def read_new_metrics(self) -> None:
        """Read the lines that were added to the metrics since the last call."""
        file = self.cell.run.metrics
        size = file.stat().st_size if file.is_file() else 0
        if size < self.read:  # a resumed run has dropped the lines after its checkpoint
            self.read, self.row = 0, {}
            self.seen.clear()
        if size == self.read:
            return
        with file.open("rb") as lines:
            lines.seek(self.read)
            whole = lines.read().rpartition(b"\n")[0]
        self.read += len(whole) + 1 if whole else 0
        self.take_lines(whole)

    def take_lines(self, lines: bytes) -> None:
        """Take the figures of new lines of metrics."""
        self.row |= newest(lines.splitlines())
        if self.row:
            self.seen.append((time.monotonic(), self.row.get("trajectories", 0)))

    def load_files(self, samples: int) -> None:
        """Set status, metrics and results from the files of a cell that no worker runs."""
        self.read, self.row = 0, {}
        broken = damage(self.cell.path)
        self.error, self.seconds = broken, None
        if not broken:
            self.read_new_metrics()
            self.error, self.seconds = read_error(self.cell.path), read_seconds(self.cell.path)
        self.seen.clear()  # the speed of the next worker is unknown
        self.results = {} if broken else finished(self.cell, samples) or {}
        if self.results:
            self.status, self.error = "done", ""
        else:
            self.status = "failed" if self.error else "stopped" if self.row else "waiting"


def finished(cell: Cell, samples: int) -> dict[str, Any] | None:
    """Results of a cell that was trained to the end as configured and evaluated there; None of any other."""
    if not (cell.path / "config.json").is_file():
        return None
    try:
        results = read_results(cell.path)
    except ValueError:  # damaged: it is evaluated again
        return None
    if (results.get("step"), results.get("samples")) != (cell.config.steps, samples):
        return None
    if not all(_is_figure(results.get(name)) for name in FIGURES):
        return None
    return results if cell.run.read_config() == (cell.task, cell.config) else None


def _is_figure(value: Any) -> bool:
    """Whether a value of exact.json is a number, or None for what is not known."""
    return value is None or (isinstance(value, int | float) and abs(value) < LARGEST)


def damage(path: Path) -> str:
    """What is wrong with the configuration or metrics files of a cell, in one line; empty where nothing is."""
    run = Run(path=path)
    try:
        run.refuse_links()
        if (path / "config.json").is_file():
            run.read_config()
            run.thinned_rows()
    except ValueError as error:
        return f"{error}; remove {path} to train it again"
    return ""


def read_error(path: Path) -> str:
    """The first line of error.txt, which a failed cell has; empty without the file."""
    file = path / ERROR
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines() if file.is_file() else []
    return lines[0] if lines else ""


def read_seconds(path: Path) -> float | None:
    """Seconds that training took in all, resumed parts included; None where unknown."""
    file = path / SECONDS
    try:
        data = read_json(file) if file.is_file() else {}
    except ValueError:
        return None
    return number(data.get("seconds")) if isinstance(data, dict) else None
