"""`train`: run a task into a folder, with checkpoints, metrics and a clean stop."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch

from sgfn.config import TrainConfig, differing
from sgfn.config.checks import require
from sgfn.landscapes.offline import training_objects
from sgfn.landscapes.tasks import Task, make_task, recorded
from sgfn.learning.execution import choose, pick_device, stepper
from sgfn.learning.learner import Learner
from sgfn.learning.methods import build, check
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
) -> Run:
    """Train a task into the folder `out`; returns the run.

    With `resume` the run continues with the folder's own configuration, which None stands for, on a CPU bit for bit.
    Given one, only its number of steps may be another, and the schedule of the learning rate then follows it.
    `accelerate` says how steps are run, not what they do (see `stepper`); what cannot be had is an error if we insist.
    `baseline` is the recipe that the configuration began with: whatever differs from it must be read by something;
    where it is not told, what equals some preset's value is taken for that one's.
    """
    run, where = Run(path=Path(out)), pick_device(device)
    if resume and overwrite:
        raise ValueError("--resume continues a run and --overwrite replaces it: give one of them")
    learner, config = None, None if config is None else absolute(config)
    kept = recorded(task)
    if resume:
        run.read_config()
    else:
        made = make_task(task, config or TrainConfig())
        check(made, baseline)
        learner = _learner(made, where)
        choose(learner, accelerate, insist)
        run.check(overwrite=overwrite)
    with run.locked(), stoppable() as stop:  # nothing is written before this line
        if learner is None:
            learner = _resumed(run, kept, config, where, lambda found: choose(found, accelerate, insist))
        else:
            run.create(kept, learner.config, overwrite=overwrite)
        loop(run, learner, stepper(learner, accelerate, insist), progress, stop)
    if stop.asked and learner.done < learner.config.steps:
        how = "" if accelerate == "auto" else f" --accelerate {accelerate}"
        again = f"sgfn train {task} --resume{how} --out {run.path}"
        raise KeyboardInterrupt(f"stopped at step {learner.done:,}; continue with: {again}")
    return run


def _resumed(
    run: Run, task: str, wanted: TrainConfig | None, device: torch.device, judge: Callable[[Learner], object]
) -> Learner:
    """The run as it stands; nothing is written before it is judged."""
    found, config, files = run.read_all()
    if found != task:
        raise ValueError(f"{run.path} holds a run of {found}, not of {task}: give --out another name")
    if (run.path / PARTS).is_file():
        raise ValueError(f"{run.path} was saved by model.save with Python objects of its own: train it with sgfn.fit")
    wanted = wanted or config
    flags = differing(wanted, config.with_(steps=wanted.steps))
    if flags:
        flags = ", ".join(flags)
        raise ValueError(f"{run.path} continues with its own configuration: with --resume leave {flags} out")
    learner = _learner(replace(run.task(), config=wanted), device)
    judge(learner)
    if run.checkpoint.is_file():
        run.restore(learner)
    elif run.rows():
        raise ValueError(f"{run.path} has no checkpoint to continue from: start it again with --overwrite")
    if wanted.steps != config.steps:
        require(wanted.steps > learner.done, "steps", f"be more than the {learner.done:,} that are done", wanted.steps)
        run.write_config(task, wanted, files)
    run.rewind(learner.done)
    return learner


def _learner(task: Task, device: torch.device) -> Learner:
    return build(task, device, training_objects(task))


def absolute(config: TrainConfig) -> TrainConfig:
    """Files by their full path, so that the run finds them again from any folder."""
    return config.with_(**{name.replace(".", "__"): file.resolve() for name, file in config.files.items()})
