"""The run folder: config.json, metrics.jsonl, checkpoint/; what is written is whole or absent."""

import json
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor

from sgfn.config import TrainConfig, from_dict, to_dict
from sgfn.config.checks import quoted
from sgfn.config.files import ASIDE, naming, read_json, refuse_irregular, replacing, resolved, sweep, write_json
from sgfn.config.shell import command, flag
from sgfn.config.staging import LOCK, NEW, PATIENCE, READY, holding, settle, staging, take_over
from sgfn.landscapes.function_files import LOG, SCORES
from sgfn.landscapes.tasks import Task, make_task
from sgfn.learning.learner import Learner
from sgfn.learning.methods import build, check_names
from sgfn.runs import metrics
from sgfn.runs.background import Background
from sgfn.runs.checkpoints import (
    AGAIN,
    DONE,
    NotFinite,
    State,
    check_learner,
    check_networks,
    read_file,
    save_file,
    tensor_shape,
)
from sgfn.runs.copies import (
    DATA,
    KeptFile,
    checksums,
    copy_names,
    files_there,
    keeping,
    kept_paths,
    settle_copies,
    with_files,
)
from sgfn.runs.formats import FORMAT, MIGRATIONS, file_records, upgraded
from sgfn.runs.parts import FILE as PARTS
from sgfn.runs.parts import make, named_parts, read_parts
from sgfn.runs.trust import Trust, named, named_code, refuse_code, refuse_files, refuse_links, refuse_other, remember
from sgfn.runs.trust import words_of as words_in

ERROR = "error.txt"
"""Why a cell of a comparison failed."""
T = TypeVar("T")
OWN_FILES = (
    *("metrics.jsonl", "exact.json", "report.png", "report.html", "checkpoint/state.safetensors", "config.json"),
    *(LOG, SCORES),
    PARTS,
)
OPENED = (*OWN_FILES, LOCK, ERROR, "seconds.json", "refit")
"""What is opened in a folder by its name."""
DRAWN = ("report.png", "report.html")
"""What is drawn from a run, and may be drawn again."""


def holds_others(path: Path, own: tuple[str, ...]) -> bool:
    """Whether a folder has files that are neither a lock, nor a reason of failure, nor the rest of a cut write."""
    rest = tuple(f".{Path(name).name}." for name in (*own, DATA))
    files = [file for file in path.iterdir() if file.name not in (LOCK, ERROR, NEW, READY)] if path.is_dir() else []
    files = [file for file in files if not file.name.startswith(rest) and not ASIDE.fullmatch(file.name)]
    return any(not empty_folder(file) for file in files)


def empty_folder(path: Path) -> bool:
    """Whether a path is a folder with nothing in it."""
    return path.is_dir() and not any(path.iterdir())


def ours(path: Path, marker: str, own: tuple[str, ...], what: str) -> bool:
    """Whether a folder holds something of ours, told by a file; one that holds anything else is refused."""
    if path.is_file():
        raise ValueError(f"{path} is a file: give --out another name")
    if path.is_symlink() and not path.exists():
        raise ValueError(f"{path} is a link that leads nowhere: give --out another name")
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
    if type(data["format"]) is not int or data["format"] not in [*MIGRATIONS, FORMAT]:
        known = f"this version reads {min(MIGRATIONS)} to {FORMAT}"
        raise ValueError(f"{file} has format {quoted(data['format'])}, {known}: use the sgfn that wrote it")
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
    return {name: from_dict(KeptFile, record, f"files.{name}") for name, record in file_records(data).items()}


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
    trust: Trust = field(default=False, compare=False)
    """What the reader trusts of the code and the files that the folder names: see `sgfn.runs.trust`."""

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
        known: Mapping[str, str] | None = None,
        copies: Mapping[str, Path] | None = None,
        fitted: Mapping[str, Path] | None = None,
    ) -> None:
        """Start in a folder without a run: write config.json and copies of the files that it names.

        `known` are checksums of the files as they were read; `copies` are read instead of them, and linked; `fitted`
        are files that the run is to keep as well, by the settings that read them again.
        """
        files = {**(files_there(config) if copies is None else copies), **(fitted or {})}
        _refuse_foreign(self.path, files)
        settle_copies(self.path, {})
        with keeping(self.path, files, known or {}, link=copies is not None) as kept:
            self.write_config(task, config, kept)
        remember(named(task, config))

    @contextmanager
    def replacement(self, files: Mapping[str, Path], *, overwrite: bool) -> Iterator["Run"]:
        """A new run in a hidden folder of this one, which takes its place when the block ends well.

        Until then the old run stays as it is, and after it what is not ours. `files` are those that the new run will
        keep copies of.
        """
        self.check(overwrite=overwrite)
        old = self._own_files()
        _refuse_foreign(self.path, files, old)
        for name in old:
            refuse_irregular(self.path / name)
        with staging(self.path) as folder:
            yield (new := Run(path=folder))
            forecast = new.read_config()[0] == "series"  # its page stays with its tables until there are new ones
            take_over(self.path, [name for name in old if not (forecast and name == "report.html")])

    def _own_files(self) -> list[str]:
        """Files that belong to a run which is there, and copies that it keeps in its data folder."""
        found = self.manifest().files.values() if (self.path / "config.json").is_file() else ()
        copies = [Path(record.copy) for record in found if record.copy is not None]
        kept = [str(copy) for copy in copies if copy.parent == Path(DATA) and copy.name != ".."]
        return [*kept, *OWN_FILES]

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
        self.settle()
        if not self.path.exists():
            raise ValueError(f"{self.path} does not exist: name the folder given to `sgfn train --out`")
        file = self.path / "config.json"
        self.refuse_links()
        if not file.is_file():
            refuse_design(self.path)
            raise ValueError(f"{self.path} is not a run folder: it has no config.json")
        return read_ours(file, _manifest, "task", "config")

    def copies(self) -> dict[str, Path]:
        """The files that the run is made from, each as it was at the beginning, by the field that names it."""
        return self._copies(self.manifest())

    def _copies(self, manifest: Manifest) -> dict[str, Path]:
        copied = {name for name, record in manifest.files.items() if record.copy is not None}
        others = {name: file for name, file in manifest.config.files.items() if name not in copied}
        refuse_files(self.path, others, self.trust)
        return kept_paths(self.path, manifest.config, manifest.files, self.trust)

    def refuse_links(self) -> None:
        """Raise where a file of the run is a link that leads out of its folder, unless the run is trusted."""
        refuse_links(self.path, OPENED, self.trust)

    def refuse_own(self, file: Path, flag: str = "--out") -> None:
        """Raise where a file that is to be written is one that the run is made of."""
        place, home = resolved(file), resolved(self.path)
        if place in [home / name for name in OPENED if name not in DRAWN] or place.parent == home / DATA:
            raise ValueError(f"{file} is a file that {self.path} is made of: give {flag} another name")

    def words(self) -> dict[str, str | None]:
        """What the folder says, by field, where code or files can be named."""
        return self._words(self.manifest())

    def _words(self, manifest: Manifest) -> dict[str, str | None]:
        return words_in(manifest.task, manifest.config) | named_parts(self.path)

    def code(self) -> dict[str, str]:
        """What the folder names as `module:name`, by field."""
        return named_code(self.words())

    def own_config(self, given: Collection[str] = ()) -> TrainConfig:
        """The configuration with the run's own copies in the place of the original files, for whoever acts on it.

        Raises where it names code that is not trusted, but for fields whose objects are `given`.
        """
        manifest = self.manifest()
        words = self._words(manifest)
        refuse_other(self.path, words, self.trust)
        names = {field: name for field, name in named_code(words).items() if field not in given}
        refuse_code(self.path, names, self.trust)
        return self._as_trained(with_files(manifest.config, self._copies(manifest)))

    def _as_trained(self, config: TrainConfig) -> TrainConfig:
        """The noise model that the checkpoint holds in the place of `auto`, which chose otherwise in earlier days."""
        if config.dynamics.model != "auto" or not self.checkpoint.is_file():
            return config
        network = tensor_shape(self.checkpoint, "dynamics.outcome.weight") is not None
        return config.with_(dynamics__model="full") if network else config

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
            self.write_state(state)
        else:
            background.do(lambda: self.write_state(state))

    def write_state(self, state: dict[str, Tensor]) -> None:
        """Write a checkpoint beside the old one, whose place it then takes."""
        with replacing(self.checkpoint) as aside:
            save_file(state, aside)

    def load_state(self) -> dict[str, Tensor]:
        """Tensors of the checkpoint."""
        if not self.checkpoint.is_file():
            fix = f"train it first (sgfn train ... {flag('out', self.path)})"
            raise ValueError(f"{self.path} has no checkpoint yet: {fix}")
        return read_file(self.checkpoint)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder against a second writer, for as long as this process lives."""
        self.refuse_links()
        if self.path.exists() and not self.path.is_dir():
            raise ValueError(f"{self.path} is not a folder: give --out another name")
        self.path.mkdir(parents=True, exist_ok=True)
        with holding(self.path, "training in"):
            sweep(self.path, OWN_FILES)  # copies that wait for their names are left to `settle_copies`
            yield

    def settle(self) -> None:
        """Bring a run to its place whose writer was killed on the way; one that is alive is waited for."""
        settle(self.path, self.locked, PATIENCE)

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
        self._put(learner, state, check_networks, learner.load_networks)
        learner.done = int(state[DONE])

    def restore(self, learner: Learner, state: dict[str, Tensor] | None = None) -> None:
        """Put the whole checkpoint into a learner, random state included: the next step is the next step."""
        self._put(learner, self.load_state() if state is None else state, check_learner, learner.load)

    def _put(
        self,
        learner: Learner,
        state: dict[str, Tensor],
        check: Callable[[Learner, State], None],
        load: Callable[[dict[str, Tensor]], None],
    ) -> None:
        """Load a checkpoint that fits, is finite, and has made some of the steps that are configured."""
        try:
            check(learner, state)
        except NotFinite as error:
            raise ValueError(f"{self.checkpoint}: {error}: {AGAIN}") from None
        except ValueError as error:
            raise self._misfit(str(error)) from None
        done, steps = int(state[DONE]), self.read_config()[1].steps
        if not 0 <= done <= steps:
            raise self._misfit(f"{DONE} is {done}, of {steps} steps")
        try:
            load(state)
        except (RuntimeError, KeyError) as error:
            reason = "; ".join(line.strip(" \t.") for line in str(error).splitlines() if line.strip())
            reason = re.sub(r"Error\(s\) in loading state_dict for \w+:; ", "", reason)
            raise self._misfit(reason if len(reason) <= 300 else f"{reason[:300]}...") from None

    def _misfit(self, reason: str) -> ValueError:
        """The error for a checkpoint that is not one of the folder's configuration."""
        old = self.manifest().format
        fix = "were the two mixed, or written by another version of sgfn?"
        if old != FORMAT:
            version = f"sgfn {MIGRATIONS[old].version}"
            fix = f"it was written by {version}: go on with that, or train the run again with --overwrite"
        return ValueError(f"{self.checkpoint} does not fit config.json ({reason}): {fix}")

    def append(self, row: dict[str, Any]) -> None:
        """One more line of metrics."""
        with naming(self.metrics):
            how = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK  # nobody waits for a pipe
            with os.fdopen(os.open(self.metrics, how, 0o666), "a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")

    def rows(self) -> list[dict[str, Any]]:
        """All whole lines of metrics; a line cut short by a crash can only be the last, and is dropped."""
        self.refuse_links()
        return metrics.read_rows(self.metrics)

    def thinned_rows(self) -> list[dict[str, Any]]:
        """Lines of metrics for a picture: all of a few thousand, of more as many, spread evenly."""
        self.refuse_links()
        return metrics.thinned_rows(self.metrics)

    def last_row(self) -> dict[str, Any] | None:
        """The newest line of metrics; None before there is one."""
        self.refuse_links()
        return metrics.last_row(self.metrics)

    def rewind(self, step: int) -> None:
        """Forget the lines written after a checkpoint, so that a resumed run writes them again."""
        refuse_irregular(self.metrics)
        metrics.rewind(self.metrics, step)


def _refuse_foreign(folder: Path, files: Mapping[str, Path], own: Sequence[str] = ()) -> None:
    """Raise where a file that is not ours has the name that a copy would have."""
    for name in copy_names(files).values():
        if f"{DATA}/{name}" not in own and (path := folder / DATA / name).exists():
            raise ValueError(f"{path} is in the way: move it, or give --out another name")


def _manifest(data: dict[str, Any]) -> Manifest:
    return Manifest(
        task=str(data["task"]), config=_config(data["config"]), files=read_files(data), format=int(data["format"])
    )


def refuse_design(path: Path) -> None:
    """Raise for the folder of a round of design, which is no run and has its plate already."""
    if (path / "design.json").is_file() and not (path / "config.json").is_file():
        plate = f": its plate is in {path / 'orders.csv'}" if (path / "orders.csv").is_file() else ""
        following = command("design", "propose", path, measured="new.csv")
        raise ValueError(f"{path} holds a round of design, not a run{plate}; the next plate is made by `{following}`")


def refuse_forecast(run: Run, why: str = "which has no exact answer") -> None:
    """Raise for a run of time series, which has scores and a page of its own."""
    if run.read_config()[0] == "series":
        raise ValueError(
            f"{run.path} holds a forecast, {why}: its scores are in backtest.json and its page is "
            f"report.html; `{command('forecast', '--resume', out=run.path)}` writes them again"
        )
