"""`train`: run a task into a folder, with checkpoints, metrics and a clean stop."""

from collections.abc import Callable, Mapping
from pathlib import Path

import torch

from sgfn.config import TrainConfig, differing
from sgfn.config.checks import require
from sgfn.landscapes.offline import training_objects
from sgfn.landscapes.tasks import Task, make_task, recorded
from sgfn.learning.execution import choose, pick_device, stepper
from sgfn.learning.learner import Learner
from sgfn.learning.methods import build, check
from sgfn.runs.copies import checksums, files_there, large_copies, with_files
from sgfn.runs.folder import PARTS, Run
from sgfn.runs.loop import Lines as Lines
from sgfn.runs.loop import Progress, loop
from sgfn.runs.loop import Stop as Stop
from sgfn.runs.loop import steps_ahead as steps_ahead
from sgfn.runs.loop import stoppable as stoppable


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
    copies: Mapping[str, Path] | None = None,
) -> Run:
    """Train a task into the folder `out`; returns the run.

    The run keeps copies of the files that its configuration names; `copies` are files to read in their place, by field.
    With `resume` the run continues with the folder's own configuration, which None stands for, on a CPU bit for bit.
    Given one, only its number of steps may be another, and the schedule of the learning rate then follows it.
    `accelerate` says how steps are run, not what they do (see `stepper`); what cannot be had is an error if we insist.
    `baseline` is the recipe that the configuration began with: whatever differs from it must be read by something;
    where it is not told, what equals some preset's value is taken for that one's.
    """
    run, where = Run(path=Path(out)), pick_device(device)
    if resume and overwrite:
        raise ValueError("--resume continues a run and --overwrite replaces it: give one of them")
    config = None if config is None else absolute(config)
    learner, known = None, dict[str, str]()
    if resume:
        _refuse_saved_model(run)
    kept = recorded(task)
    if not resume:
        config = config or TrainConfig()
        files = files_there(config) if copies is None else dict(copies)
        known = checksums(files)
        made = make_task(task, with_files(config, files))
        check(made, baseline)
        learner = _learner(made, where)
        choose(learner, accelerate, insist)
        run.check(overwrite=overwrite)
        if progress and copies is None and (line := large_copies(files, run.path)):
            progress(0, {"notice": line})
    with run.locked(), stoppable() as stop:  # nothing is written before this line
        if learner is None:
            learner = _resumed(run, kept, config, where, lambda found: choose(found, accelerate, insist))
        else:
            assert config is not None
            run.create(kept, config, overwrite=overwrite, known=known, copies=copies)
        loop(run, learner, stepper(learner, accelerate, insist), progress, stop)
    if stop.asked and learner.done < learner.config.steps:
        how = "" if accelerate == "auto" else f" --accelerate {accelerate}"
        again = f"sgfn train {task} --resume{how} --out {run.path}"
        raise KeyboardInterrupt(f"stopped at step {learner.done:,}; continue with: {again}")
    return run


def _refuse_saved_model(run: Run) -> None:
    """Raise for a folder that is no run, or that `model.save` wrote with objects which only Python has."""
    run.read_config()
    if (run.path / PARTS).is_file():
        raise ValueError(f"{run.path} was saved by model.save with Python objects of its own: train it with sgfn.fit")


def _resumed(
    run: Run, task: str, wanted: TrainConfig | None, device: torch.device, judge: Callable[[Learner], object]
) -> Learner:
    """The run as it stands; nothing is written before it is judged."""
    found, config = run.read_config()
    if found != task:
        raise ValueError(f"{run.path} holds a run of {found}, not of {task}: give --out another name")
    wanted = wanted or config
    flags = differing(wanted, config.with_(steps=wanted.steps))
    if flags:
        flags = ", ".join(flags)
        raise ValueError(f"{run.path} continues with its own configuration: with --resume leave {flags} out")
    learner = _learner(make_task(task, run.own_config().with_(steps=wanted.steps)), device)
    judge(learner)
    if run.checkpoint.is_file():
        run.restore(learner)
    elif run.rows():
        raise ValueError(f"{run.path} has no checkpoint to continue from: start it again with --overwrite")
    if wanted.steps != config.steps:
        require(wanted.steps > learner.done, "steps", f"be more than the {learner.done:,} that are done", wanted.steps)
    run.upgrade(wanted)
    run.rewind(learner.done)
    return learner


def _learner(task: Task, device: torch.device) -> Learner:
    return build(task, device, training_objects(task))


def absolute(config: TrainConfig) -> TrainConfig:
    """Files by their full path, so that the run finds them again from any folder."""
    return config.with_(**{name.replace(".", "__"): file.resolve() for name, file in config.files.items()})
