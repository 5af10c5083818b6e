"""`train`: run a task into a folder, with checkpoints, metrics and a clean stop."""

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from sgfn.config import TrainConfig, differing
from sgfn.config.checks import require
from sgfn.config.cluster import Needs, check_cluster_settings
from sgfn.config.cluster_workers import ClusterHire, on_cluster
from sgfn.config.processes import HIRE
from sgfn.config.reading import check_named
from sgfn.config.shell import command, flag
from sgfn.landscapes.offline import training_objects
from sgfn.landscapes.tasks import Task, make_task, recorded
from sgfn.learning.execution import Stepper, choose, pick_device, stepper
from sgfn.learning.learner import Learner
from sgfn.learning.methods import build, check
from sgfn.learning.parallel import AgreedStep, ParallelTrainer, Ranks, joined, launched
from sgfn.runs.background import Background
from sgfn.runs.copies import checksums, files_there, fitted_aside, large_copies, settle_copies, with_files
from sgfn.runs.duration import long_on_cpu
from sgfn.runs.folder import PARTS, Run
from sgfn.runs.loop import Lines as Lines
from sgfn.runs.loop import Memory, Progress, loop
from sgfn.runs.loop import Stop as Stop
from sgfn.runs.loop import steps_ahead as steps_ahead
from sgfn.runs.loop import stoppable as stoppable
from sgfn.runs.trust import Trust, again, named


def train(
    task: str,
    config: TrainConfig | None,
    out: Path,
    *,
    resume: bool = False,
    overwrite: bool = False,
    device: str = "auto",
    accelerate: str = "auto",
    insist: bool = True,
    progress: Progress | None = None,
    baseline: TrainConfig | None = None,
    said: Collection[str] = (),
    copies: Mapping[str, Path] | None = None,
    trust: Trust | None = None,
    locks: ExitStack | None = None,
    cluster: str | None = None,
    cluster_cpus: float = 1.0,
    cluster_gpus: float | None = None,
) -> Run:
    """Train a task into the folder `out`; returns the run.

    The run keeps copies of the files that its configuration names; `copies` are files to read in their place, by field.
    With `resume` the run continues with the folder's own configuration, which None stands for, on a CPU bit for bit.
    Given one, only its number of steps may be another, and the schedule of the learning rate then follows it.
    `accelerate` says how steps are run, not what they do (see `stepper`); what cannot be had is an error if we insist.
    `baseline` is the recipe that the configuration began with: whatever differs from it must be read by something; by
    default what equals some preset's value is taken for that one's. `said` are fields that must be read in any case.
    With `resume`, code that only the folder names is not run unless it is trusted, see `evaluate`; without `trust`,
    what `config` names is. `locks` keeps the folder locked afterwards, for a caller who has more to write there.
    `cluster` runs workers of a slow reward, or actors, on a Ray cluster (`local`, `auto`, HOST:PORT), each with so many
    CPUs and GPUs. In processes that torchrun started together, each trains on its share of every batch.
    """
    config = None if config is None else absolute(config)
    trust = named(task, config or TrainConfig()) if trust is None else trust
    run, where = Run(path=Path(out), trust=trust), pick_device(device)
    if resume and overwrite:
        raise ValueError("--resume continues a run and --overwrite replaces it: give one of them")
    if resume:
        _refuse_saved_model(run)
    ranks = launched()
    check_cluster_settings(cluster, cluster_cpus, cluster_gpus)
    asked = Request(
        task=task,
        config=config,
        run=run,
        device=where,
        how=Acceleration(accelerate, insist),
        resume=resume,
        overwrite=overwrite,
        baseline=baseline,
        said=said,
        copies=copies,
    )
    with on_cluster(cluster, Needs(cpus=cluster_cpus, gpus=cluster_gpus or 0.0)), joined(ranks, where):
        if ranks is None or ranks.leads:
            _lead(asked, progress, locks)
        else:
            _follow(asked, ranks)
    return run


class Acceleration(NamedTuple):
    """How steps are run: the way that was asked for, and whether another one is an error."""

    accelerate: str
    insist: bool

    def check(self, learner: Learner) -> None:
        """Raise where a learner's steps cannot be run so."""
        choose(learner, self.accelerate, self.insist)


@dataclass(frozen=True, kw_only=True)
class Request:
    """What `train` was asked for."""

    task: str
    config: TrainConfig | None
    run: Run
    device: torch.device
    how: Acceleration
    resume: bool
    overwrite: bool
    baseline: TrainConfig | None
    said: Collection[str]
    copies: Mapping[str, Path] | None

    @property
    def again(self) -> str:
        """The command that continues the run."""
        return _command(self.task, self.run, self.how)


def _lead(asked: Request, progress: Progress | None, locks: ExitStack | None) -> None:
    """Train into the folder, as the only process or as the rank that leads."""
    kept = recorded(asked.task)
    new = None if asked.resume else _placed(asked, progress)
    with ExitStack() as own, stoppable() as stop, ExitStack() as until_begun:
        (own if locks is None else locks).enter_context(asked.run.locked())  # nothing is written before this line
        if new is None:
            learner, record = _resumed(asked, kept), Beginning(asked.run)
        else:
            learner, record = new.learner, _begun(asked, kept, new, own, until_begun)
        own.callback(learner.close)
        learner.task.landscape.attach(asked.run.path, resumed=asked.resume)
        if not record.place.checkpoint.is_file():
            record.save(learner)  # there is always one to go on from, whenever the run is killed
        if progress and (line := long_on_cpu(learner, asked.how.accelerate)):
            progress(learner.done, {"notice": line})
        with _telling(record, lambda: asked.again):
            advance = stepper(learner, *asked.how)
            if isinstance(learner, ParallelTrainer):
                advance, stop = _agreed(learner, advance, stop)
                learner.ranks.spread(learner.state())
            loop(record, learner, advance, progress, stop, record.begin)
        if stop.asked and learner.done < learner.config.steps:
            raise KeyboardInterrupt(record.stopped(learner.done, asked.again))


def _placed(asked: Request, progress: Progress | None) -> "NewRun":
    """A new run whose folder may be written; says where its copies are large."""
    new = _new_run(asked)
    asked.run.check(overwrite=asked.overwrite)
    if progress and asked.copies is None and (line := large_copies(new.files, asked.run.path)):
        progress(0, {"notice": line})
    return new


def _agreed(learner: ParallelTrainer, advance: Stepper, stop: Stop) -> tuple[Stepper, Stop]:
    """The stepper, and the stop that all ranks take after the same step; this rank's own alone would leave others."""
    shared = Stop()

    def ask() -> None:
        shared.asked = True

    return AgreedStep(advance, learner, lambda: stop.asked, ask), shared


def _follow(asked: Request, ranks: Ranks) -> None:
    """Train as a rank that does not lead: it writes nothing, and takes its state from the one that does."""
    kept = recorded(asked.task)
    if asked.resume:
        state = ranks.spread(None)
        own = asked.run.own_config()
        learner = _learner(make_task(kept, own.with_(steps=(asked.config or own).steps)), asked.device)
    else:
        learner = _new_run(asked).learner
        state = ranks.spread(None)
    learner.load(state)
    with stoppable() as stop:
        assert isinstance(learner, ParallelTrainer)
        advance, shared = _agreed(learner, stepper(learner, *asked.how), stop)
        loop(Memory(), learner, advance, None, shared)
        if shared.asked and learner.done < learner.config.steps:
            raise SystemExit(2)  # the one that leads says so


@dataclass(frozen=True, kw_only=True)
class NewRun:
    """A run that has not begun: its configuration, the files it reads with their checksums, and the learner."""

    config: TrainConfig
    files: dict[str, Path]
    known: dict[str, str]
    learner: Learner


def _new_run(asked: Request) -> NewRun:
    """Make the learner of a new run, and check whatever can be wrong with it; writes nothing."""
    config = asked.config or TrainConfig()
    files = files_there(config) if asked.copies is None else dict(asked.copies)
    check_named(files)
    known = checksums(files)
    made = make_task(asked.task, with_files(config, files))
    check(made, asked.baseline, asked.said)
    learner = _learner(made, asked.device)
    asked.how.check(learner)
    return NewRun(config=config, files=files, known=known, learner=learner)


def _begun(asked: Request, task: str, new: NewRun, own: ExitStack, until_begun: ExitStack) -> "Beginning":
    """Record of a new run, whose folder now holds its configuration and the files that it names."""
    fitted = own.enter_context(fitted_aside(new.learner.task.landscape, new.files))
    record = _beginning(asked.run, new.files | fitted, asked.overwrite, until_begun)
    record.place.create(task, new.config, known=new.known, copies=asked.copies, fitted=fitted)
    return record


@contextmanager
def _telling(record: "Beginning", again: Callable[[], str]) -> Iterator[None]:
    """Let an error of code that is not ours say what is kept of the run."""
    try:
        yield
    except BaseException as error:
        if getattr(error, "__notes__", None):  # it tells what is kept
            error.__notes__ = record.kept(error.__notes__, again())
        raise


def _command(task: str, run: Run, how: Acceleration) -> str:
    """The command that continues a run; it names again what the run may only then use."""
    chosen = "" if how.accelerate == "auto" else f" --accelerate {how.accelerate}"
    code = {field: name for field, name in run.code().items() if field != "task"}
    return command("train", task, "--resume") + chosen + again(code) + f" {flag('out', run.path)}"


def _beginning(run: Run, files: Mapping[str, Path], overwrite: bool, until_begun: ExitStack) -> "Beginning":
    """Where a new run is begun: in its folder, or beside a run that is there, which it replaces when the stack ends."""
    if not (run.path / "config.json").exists():
        return Beginning(run)
    new = until_begun.enter_context(run.replacement(files, overwrite=overwrite))
    return Beginning(run, new, until_begun.close)


class Beginning:
    """Record of a run that may have to replace another one: lines and checkpoints go to its folder.

    Before the first step of one that does they go elsewhere, so that the old run stays until the new one has a
    checkpoint and has been seen to work.
    """

    def __init__(self, run: Run, elsewhere: Run | None = None, into_place: Callable[[], None] = lambda: None) -> None:
        self.run, self.place, self.into_place = run, elsewhere or run, into_place

    def begin(self, step: int) -> None:
        """Let the new run take the place of the old one, when its first steps are done."""
        if self.place is not self.run:
            self.into_place()
            self.place = self.run

    def append(self, row: dict[str, Any]) -> None:
        """One more line of metrics."""
        self.run.append(row)

    def save(self, learner: Learner, background: Background | None = None) -> None:
        """The learner as it is now."""
        self.place.save(learner, background)

    def write_state(self, state: dict[str, Tensor]) -> None:
        """A state of the learner, now."""
        self.place.write_state(state)

    def stopped(self, step: int, again: str) -> str:
        """What to say when somebody has asked to stop."""
        if self.place is not self.run:
            return f"stopped before the first step; {self.run.path} holds its old run as before"
        return f"stopped at step {step:,}; continue with: {again}"

    def kept(self, notes: list[str], again: str) -> list[str]:
        """What to say of the run when code that is not ours has failed."""
        if self.place is not self.run:
            return [f"{self.run.path} holds its old run as before"]
        return [*notes, f"mend the code, then continue with: {again}"]


def _refuse_saved_model(run: Run) -> None:
    """Raise for a folder that is no run, or that `model.save` wrote with objects which only Python has."""
    run.read_config()
    if (run.path / PARTS).is_file():
        raise ValueError(f"{run.path} was saved by model.save with Python objects of its own: train it with sgfn.fit")


def _resumed(asked: Request, task: str) -> Learner:
    """The run as it stands; nothing is written before it is checked, but copies may get their final names."""
    run, wanted = asked.run, asked.config
    found, config = run.read_config()
    if found != task:
        raise ValueError(f"{run.path} holds a run of {found}, not of {task}: give --out another name")
    settle_copies(run.path, run.manifest().files)
    wanted = wanted or config
    flags = differing(wanted, config.with_(steps=wanted.steps))
    if flags:
        flags = ", ".join(flags)
        raise ValueError(f"{run.path} continues with its own configuration: with --resume leave {flags} out")
    learner = _learner(make_task(task, run.own_config().with_(steps=wanted.steps)), asked.device)
    asked.how.check(learner)
    if run.checkpoint.is_file():
        run.restore(learner)
    elif run.last_row() is not None:
        raise ValueError(f"{run.path} has no checkpoint to continue from: start it again with --overwrite")
    if wanted.steps != config.steps:
        require(wanted.steps > learner.done, "steps", f"be more than the {learner.done:,} that are done", wanted.steps)
    run.upgrade(wanted)
    run.rewind(learner.done)
    return learner


def _learner(task: Task, device: torch.device) -> Learner:
    ranks, hire = launched(), HIRE.get()
    if hire is not None and not (task.config.actors or task.landscape.scores_ahead):
        reads = "--actors N and the workers of a function (--callable.function, --callable.workers N) read --cluster"
        raise ValueError(f"task {task.name} has nothing to run on a cluster: {reads}; add one, or leave it out")
    if isinstance(hire, ClusterHire):
        hire.open()  # before anything is written
    if ranks is None:
        return build(task, device, training_objects(task))
    return ParallelTrainer(task, device, training_objects(task), ranks=ranks)


def absolute(config: TrainConfig) -> TrainConfig:
    """Files by their full path, so that the run finds them again from any folder; a link to itself stays as it is."""
    if not isinstance(config, TrainConfig):
        raise ValueError(f"config must be a TrainConfig, got {type(config).__name__}: write TrainConfig(steps=100)")
    whole = {name: Path(os.path.realpath(file)) for name, file in config.files.items()}
    return config.with_(**{name.replace(".", "__"): file for name, file in whole.items()})
