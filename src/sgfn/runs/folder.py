"""The run folder: config.json, metrics.jsonl, checkpoint/; what is written is whole or absent."""

import errno
import fcntl
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
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
from sgfn.runs.copies import DATA, KeptFile, checksums, files_there, keeping, kept_paths, with_files
from sgfn.runs.formats import FORMAT, MIGRATIONS, upgraded
from sgfn.runs.parts import FILE as PARTS
from sgfn.runs.parts import make, read_parts

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
    rest = tuple(f".{Path(name).name}." for name in (*own, DATA))
    files = [file for file in path.iterdir() if file.name not in (LOCK, ERROR)] if path.is_dir() else []
    return any(not file.name.startswith(rest) and not empty_folder(file) for file in files)


def empty_folder(path: Path) -> bool:
    """Whether a path is a folder with nothing in it."""
    return path.is_dir() and not any(path.iterdir())


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
    if data["format"] not in [*MIGRATIONS, FORMAT]:
        known = f"this version reads {min(MIGRATIONS)} to {FORMAT}"
        raise ValueError(f"{file} has format {data['format']}, {known}: use the sgfn that wrote it")
    try:
        return read(upgraded(data, file.parent))
    except (ValueError, TypeError, OverflowError) as error:
        if data["format"] == FORMAT:
            raise ValueError(f"{file}: {error}") from None
        old = f"sgfn {MIGRATIONS[data['format']].version}"
        raise ValueError(
            f"{file} of {old} cannot be read ({error}): use {old}, or begin again with another --out"
        ) from None


def read_files(data: dict[str, Any]) -> dict[str, KeptFile]:
    """Records of the files that a run or a comparison was begun with."""
    return {name: from_dict(KeptFile, record, f"files.{name}") for name, record in dict(data.get("files", {})).items()}


def write_files(kept: Mapping[str, KeptFile]) -> dict[str, Any]:
    """The same for JSON; nothing where there are none."""
    return {"files": {name: asdict(record) for name, record in kept.items()}} if kept else {}


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """Contents of config.json: task, settings, copied files and format."""

    task: str
    config: TrainConfig
    """With the original files, which may have changed or gone since."""
    files: dict[str, KeptFile]
    """Their copies, by the field that names the original."""
    format: int
    """Of the file as it is on disk."""


def _config(data: object) -> TrainConfig:
    """A configuration whose names are known, or are `module:name`, which reading does not import."""
    config = from_dict(TrainConfig, data)
    check_names(config, "config.")
    return config


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run folder: configuration, metrics and checkpoint of one training."""

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

    def create(
        self,
        task: str,
        config: TrainConfig,
        *,
        overwrite: bool,
        known: Mapping[str, str] | None = None,
        copies: Mapping[str, Path] | None = None,
    ) -> None:
        """Start a folder with copies of the files that are named; of a run that is there only our own are removed.

        `known` are checksums of the files as they were read; `copies` are read instead of them, and linked.
        """
        self.check(overwrite=overwrite)
        old = self._old_copies()
        files = files_there(config) if copies is None else copies
        with keeping(self.path, files, known or {}, link=copies is not None) as kept:
            for record in kept.values():
                self._refuse_foreign(record, old)
            for name in (*old, *OWN_FILES):
                (self.path / name).unlink(missing_ok=True)
            self.write_config(task, config, kept)

    def _old_copies(self) -> list[str]:
        """Copies that a run which is there keeps in its data folder."""
        found = self.manifest().files.values() if (self.path / "config.json").is_file() else ()
        copies = [Path(record.copy) for record in found if record.copy is not None]
        return [str(copy) for copy in copies if copy.parent == Path(DATA)]

    def _refuse_foreign(self, record: KeptFile, old: list[str]) -> None:
        if record.copy not in old and record.copy is not None and (self.path / record.copy).exists():
            raise ValueError(f"{self.path / record.copy} is in the way: move it, or give --out another name")

    def write_config(self, task: str, config: TrainConfig, files: Mapping[str, KeptFile]) -> None:
        """Write config.json: what is trained, and the copies of the files it is made from."""
        data = {"format": FORMAT, "task": task, "config": to_dict(config)}
        write_json(self.path / "config.json", data | write_files(files))

    def read_config(self) -> tuple[str, TrainConfig]:
        """Task and configuration, with the original files."""
        manifest = self.manifest()
        return manifest.task, manifest.config

    def manifest(self) -> Manifest:
        """What config.json says, in the present format whatever the folder's own is."""
        if not self.path.exists():
            raise ValueError(f"{self.path} does not exist: name the folder given to `sgfn train --out`")
        file = self.path / "config.json"
        if not file.is_file():
            raise ValueError(f"{self.path} is not a run folder: it has no config.json")
        return read_ours(file, _manifest, "task", "config")

    def copies(self) -> dict[str, Path]:
        """The files that the run is made from, each as it was at the beginning, by the field that names it."""
        manifest = self.manifest()
        return kept_paths(self.path, manifest.config, manifest.files)

    def own_config(self) -> TrainConfig:
        """The configuration with the run's own copies in the place of the original files."""
        return with_files(self.manifest().config, self.copies())

    def upgrade(self, config: TrainConfig) -> None:
        """Write config.json in the present format, with copies of the files; nothing is done if it is as it should."""
        manifest = self.manifest()
        if manifest.format == FORMAT:
            if config != manifest.config:
                self.write_config(manifest.task, config, manifest.files)
            return
        copies = {name: file for name, file in files_there(config).items() if name not in manifest.files}
        copies |= self.copies()
        with keeping(self.path, copies, checksums(copies)) as kept:
            self.write_config(manifest.task, config, kept)

    def task(self) -> Task:
        """The task as configured, from the run's own copies of the files that it was trained on."""
        config, parts = self.own_config(), read_parts(self.path)
        return make_task(self.manifest().task, config) if parts is None else make(parts, config)

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
            sweep(self.path, (*OWN_FILES, DATA))
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
            old = self.manifest().format
            fix = "were the two mixed, or written by another version of sgfn?"
            if old != FORMAT:
                version = f"sgfn {MIGRATIONS[old].version}"
                fix = f"it was written by {version}: go on with that, or train the run again with --overwrite"
            raise ValueError(f"{self.checkpoint} does not fit config.json ({reason}): {fix}") from None

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


def _manifest(data: dict[str, Any]) -> Manifest:
    return Manifest(
        task=str(data["task"]), config=_config(data["config"]), files=read_files(data), format=int(data["format"])
    )


def refuse_forecast(run: Run) -> None:
    """Raise for a run of time series, which has scores and a page of its own."""
    if run.read_config()[0] == "series":
        raise ValueError(
            f"{run.path} holds a forecast, which has no exact answer: its scores are in backtest.json and its page is "
            f"report.html; `sgfn forecast --resume --out {run.path}` writes them again"
        )
