"""The run folder: config.json, metrics.jsonl, checkpoint/; what is written is whole or absent."""

import errno
import fcntl
import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from sgfn.config import TrainConfig, from_dict, to_dict
from sgfn.config.files import naming, read_json, replacing, sweep, write_json, write_text
from sgfn.landscapes.tasks import Task, make_task
from sgfn.learning.learner import Learner
from sgfn.learning.methods import build, check_names
from sgfn.runs.background import Background
from sgfn.runs.parts import FILE as PARTS
from sgfn.runs.parts import make, read_parts

FORMAT = 1
LOCK = ".lock"
ERROR = "error.txt"
"""Why a cell of a comparison failed."""
T = TypeVar("T")
OWN_FILES = (
    *("metrics.jsonl", "exact.json", "report.png", "report.html", "checkpoint/state.safetensors", "config.json"),
    PARTS,
)


def holds_others(path: Path, own: tuple[str, ...]) -> bool:
    """Whether a folder has files that are neither a lock, nor a reason of failure, nor the rest of a cut write."""
    rest = tuple(f".{Path(name).name}." for name in own)
    files = path.iterdir() if path.is_dir() else ()
    return any(file.name not in (LOCK, ERROR) and not file.name.startswith(rest) for file in files)


def ours(path: Path, marker: str, own: tuple[str, ...], what: str) -> bool:
    """Whether a folder holds something of ours, told by a file; one that holds anything else is refused."""
    if path.is_file():
        raise ValueError(f"{path} is a file: give --out another name")
    if (path / marker).exists():
        return True
    if holds_others(path, own):
        raise ValueError(f"{path} exists, is not empty and holds no {what}: give --out another name")
    return False


def read_ours(file: Path, read: Callable[[dict[str, Any]], T], *names: str) -> T:
    """What is made of a JSON file of ours with those fields; every way it can be wrong gets its own message."""
    data = read_json(file)
    if not isinstance(data, dict) or not {"format", *names} <= data.keys():
        expected = f"format, {', '.join(names[:-1])} and {names[-1]}"
        raise ValueError(f"{file} was not written by sgfn: fields {expected} are expected")
    if data["format"] != FORMAT:
        raise ValueError(f"{file} has format {data['format']}, this version reads {FORMAT}: use the sgfn that wrote it")
    try:
        return read(data)
    except (ValueError, TypeError, OverflowError) as error:
        raise ValueError(f"{file}: {error}") from None


def checksums(config: TrainConfig) -> dict[str, str]:
    """SHA-256 of each file that a configuration names, as far as they are there, by the field that names it."""
    found = {}
    for name, file in config.files.items():
        if file.is_file():
            with file.open("rb") as content:
                found[name] = hashlib.file_digest(content, "sha256").hexdigest()
    return found


def refuse_changed(path: Path, config: TrainConfig, known: dict[str, str]) -> None:
    """A file read anew must be the file that a run or a comparison was begun with."""
    for name, found in checksums(config).items():
        if known.get(name, found) != found:
            raise ValueError(
                f"--{name} {config.files[name]} has changed since {path} was begun: put the old file back, or begin "
                "again with another --out"
            )


def _config(data: object) -> TrainConfig:
    """A configuration whose names are known, or are `module:name`, which reading does not import."""
    config = from_dict(TrainConfig, data)
    check_names(config, "config.")
    return config


@dataclass(frozen=True, kw_only=True)
class Run:
    """A folder that holds one training."""

    path: Path

    @property
    def checkpoint(self) -> Path:
        """Weights, optimisers, buffer and random state."""
        return self.path / "checkpoint" / "state.safetensors"

    @property
    def metrics(self) -> Path:
        """One JSON object per logged step."""
        return self.path / "metrics.jsonl"

    def check(self, *, overwrite: bool) -> None:
        """Refuse a folder that holds a run, unless it may be replaced, or anything else."""
        if not ours(self.path, "config.json", OWN_FILES, "run"):
            return
        if not overwrite:
            raise ValueError(f"{self.path} already holds a run: add --resume to continue it, --overwrite to replace it")
        self.read_config()  # whatever is not a run of ours raises here

    def create(self, task: str, config: TrainConfig, *, overwrite: bool) -> None:
        """Start a folder; of a run that is there only our own files are removed."""
        self.check(overwrite=overwrite)
        for name in OWN_FILES:
            (self.path / name).unlink(missing_ok=True)
        self.write_config(task, config, checksums(config))

    def write_config(self, task: str, config: TrainConfig, files: dict[str, str]) -> None:
        """What is trained, and the checksums of the files it is made from."""
        data = {"format": FORMAT, "task": task, "config": to_dict(config)}
        write_json(self.path / "config.json", data | ({"files": files} if files else {}))

    def read_config(self) -> tuple[str, TrainConfig]:
        """Task and configuration."""
        task, config, _ = self.read_all()
        return task, config

    def read_all(self) -> tuple[str, TrainConfig, dict[str, str]]:
        """Task, configuration and checksums; early runs have none of these."""
        if not self.path.exists():
            raise ValueError(f"{self.path} does not exist: name the folder given to `sgfn train --out`")
        file = self.path / "config.json"
        if not file.is_file():
            raise ValueError(f"{self.path} is not a run folder: it has no config.json")
        return read_ours(
            file,
            lambda data: (str(data["task"]), _config(data["config"]), dict(data.get("files", {}))),
            *("task", "config"),
        )

    def task(self) -> Task:
        """The task as configured, from the files that it was trained on."""
        task, config, files = self.read_all()
        refuse_changed(self.path, config, files)
        parts = read_parts(self.path)
        return make_task(task, config) if parts is None else make(parts, config)

    def save(self, learner: Learner, background: Background | None = None) -> None:
        """Write a checkpoint of the present moment, now or in the background."""
        state = {name: value.cpu().contiguous().clone() for name, value in learner.state().items()}
        if background is None:
            self._write(state)
        else:
            background.do(lambda: self._write(state))

    def _write(self, state: dict[str, Tensor]) -> None:
        """A checkpoint beside the old one, which then takes its place."""
        with replacing(self.checkpoint) as aside:
            try:
                save_file(state, aside)
            except SafetensorError as error:  # how it reports a full disk
                raise OSError(errno.EIO, f"cannot be written ({error})") from None

    def load_state(self) -> dict[str, Tensor]:
        """Tensors of the checkpoint."""
        if not self.checkpoint.is_file():
            raise ValueError(f"{self.path} has no checkpoint yet: train it first (sgfn train ... --out {self.path})")
        try:
            return load_file(self.checkpoint)
        except (SafetensorError, OSError) as error:
            raise ValueError(f"{self.checkpoint} cannot be read ({error}): the run must be trained again") from None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder against a second training, for as long as this process lives."""
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / LOCK).open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ValueError(f"another process is training in {self.path}: wait for it, or give --out") from None
            sweep(self.path, OWN_FILES)
            yield

    def load(self, device: torch.device, task: Task | None = None) -> Learner:
        """The networks as the checkpoint left them, on any device; to continue training, see `restore`.

        The task is the folder's own, unless it is given, made from the same configuration.
        """
        made, state = self.task() if task is None else task, self.load_state()
        learner = build(made, device)
        self.restore_networks(learner, state)
        return learner

    def restore_networks(self, learner: Learner, state: dict[str, Tensor] | None = None) -> None:
        """Put the checkpoint's networks into a learner, on any device."""
        state = self.load_state() if state is None else state
        self._put(learner.load_networks, state)
        learner.done = int(state["self.done"])

    def restore(self, learner: Learner) -> None:
        """Put the whole checkpoint into a learner, random state included: the next step is the next step."""
        self._put(learner.load, self.load_state())

    def _put(self, load: Callable[[dict[str, Tensor]], None], state: dict[str, Tensor]) -> None:
        try:
            load(state)
        except (RuntimeError, KeyError) as error:
            reason = str(error).splitlines()[0]
            what = f"{self.checkpoint} does not fit config.json ({reason})"
            raise ValueError(f"{what}: were the two mixed, or written by another version of sgfn?") from None

    def append(self, row: dict[str, Any]) -> None:
        """One more line of metrics."""
        with naming(self.metrics), self.metrics.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")

    def rows(self) -> list[dict[str, Any]]:
        """All whole lines of metrics; a line cut short by a crash can only be the last, and is dropped."""
        if not self.metrics.is_file():
            return []
        lines = self.metrics.read_bytes().splitlines()
        rows = []
        for number, line in enumerate(lines, start=1):
            try:
                row = json.loads(line)
            except ValueError:
                row = None
            if isinstance(row, dict) and "step" in row:
                rows.append(row)
            elif number < len(lines):
                raise ValueError(f"{self.metrics}, line {number}: not valid JSON with a step")
        return rows

    def rewind(self, step: int) -> None:
        """Forget the lines written after a checkpoint, so that a resumed run writes them again."""
        kept = [json.dumps(row) + "\n" for row in self.rows() if row["step"] <= step]
        write_text(self.metrics, "".join(kept))


def refuse_forecast(run: Run) -> None:
    """Raise for a run of time series, which has scores and a page of its own."""
    if run.read_config()[0] == "series":
        raise ValueError(
            f"{run.path} holds a forecast, which has no exact answer: its scores are in backtest.json and its page is "
            f"report.html; `sgfn forecast --resume --out {run.path}` writes them again"
        )
