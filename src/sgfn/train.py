"""`train`: run a task into a folder, with checkpoints, metrics and a clean stop."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from sgfn import exact
from sgfn.checks import one_of
from sgfn.config import TrainConfig, to_dict
from sgfn.offline import training_objects
from sgfn.runs import Run
from sgfn.tasks import Task, make_task
from sgfn.trainer import Trainer, stepper

Progress = Callable[[int, dict[str, Any]], None]
"""Called with the step and the newest figures."""


def pick_device(name: str) -> torch.device:
    """`auto` is a GPU where there is one."""
    one_of("device", name, ["auto", "cpu", "cuda"])
    if name == "cuda" and not torch.cuda.is_available():
        raise ValueError("device 'cuda' is not available here: use --device cpu")
    return torch.device("cuda" if name == "cuda" or (name == "auto" and torch.cuda.is_available()) else "cpu")


@dataclass
class Stop:
    """Whether someone asked the run to stop."""

    asked: bool = False


STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def stoppable() -> Iterator[Stop]:
    """Ctrl-C, SIGTERM and a closed terminal ask for a stop after the present step; a second one acts at once."""
    stop = Stop()

    def ask(number: int, _: object) -> None:
        if stop.asked:
            raise KeyboardInterrupt
        stop.asked = True

    try:
        before = {number: signal.signal(number, ask) for number in STOPS}
    except ValueError:  # not the main thread: signals are somebody else's
        before = {}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def train(
    task: str,
    config: TrainConfig,
    out: Path,
    *,
    resume: bool = False,
    overwrite: bool = False,
    device: str = "auto",
    progress: Progress | None = None,
) -> Run:
    """Train a task into the folder `out`; returns the run.

    With `resume` the folder's own configuration is used and the run continues bit for bit; another configuration than
    that, or the default one, is refused.
    """
    run, where = Run(path=Path(out)), pick_device(device)
    if resume and overwrite:
        raise ValueError("--resume continues a run and --overwrite replaces it: give one of them")
    config = _absolute(config)
    if resume:
        run.read_config()
        trainer = None
    else:
        trainer = _trainer(make_task(task, config), where)
        run.check(overwrite=overwrite)
    with run.locked(), stoppable() as stop:  # nothing is written before this line
        if trainer is None:
            trainer = _resumed(run, task, config, where)
        else:
            run.create(task, config, overwrite=overwrite)
        _loop(run, trainer, progress, stop)
    if stop.asked and trainer.done < trainer.config.steps:
        again = f"sgfn train {task} --resume --out {run.path}"
        raise KeyboardInterrupt(f"stopped at step {trainer.done:,}; continue with: {again}")
    return run


def _resumed(run: Run, task: str, wanted: TrainConfig, device: torch.device) -> Trainer:
    found, config = run.read_config()
    if found != task:
        raise ValueError(f"{run.path} holds a run of {found}, not of {task}: give --out another name")
    if wanted not in (config, TrainConfig()):
        raise ValueError(f"{run.path} continues with its own configuration: with --resume leave {_changed(wanted)} out")
    trainer = _trainer(make_task(task, config), device)
    if run.checkpoint.is_file():
        run.restore(trainer)
    elif run.rows():
        raise ValueError(f"{run.path} has no checkpoint to continue from: start it again with --overwrite")
    run.rewind(trainer.done)
    return trainer


def _changed(config: TrainConfig) -> str:
    """Flags in which a configuration differs from the default."""
    mine, default = to_dict(config), to_dict(TrainConfig())
    names = [n for n in mine if not isinstance(mine[n], dict) and mine[n] != default[n]]
    names += [f"{p}.{n}" for p in mine if isinstance(mine[p], dict) for n in mine[p] if mine[p][n] != default[p][n]]
    return ", ".join(f"--{name}" for name in names)


def _trainer(task: Task, device: torch.device) -> Trainer:
    return Trainer(task, device, training_objects(task))


def _absolute(config: TrainConfig) -> TrainConfig:
    """Files by their full path, so that the run finds them again from any folder."""
    files = {
        "offline__file": config.offline.file,
        "table__file": config.table.file,
        "noise__file": config.noise.file,
    }
    return config.with_(**{name: file.resolve() for name, file in files.items() if file is not None})


def _loop(run: Run, trainer: Trainer, progress: Progress | None, stop: Stop) -> None:
    config, advance = trainer.config.log, stepper(trainer)
    known = _known_target(trainer) if config.exact_every else None
    started, first, last = time.monotonic(), trainer.done, trainer.config.steps
    if progress:
        progress(first, {})
    while trainer.done < last and not stop.asked:
        advance()
        trainer.done += 1
        ending = trainer.done == last
        looks = config.exact_every > 0 and trainer.done % config.exact_every == 0
        if trainer.done % config.every == 0 or looks or ending:
            row = _figures(trainer)
            if known is not None and (looks or ending):
                row["tv"] = exact.total_variation(trainer.law(), known)
            run.append(row)
            rate = (trainer.done - first) * trainer.config.batch / (time.monotonic() - started)
            if progress:
                progress(trainer.done, row | {"rate": rate})
        if trainer.done % config.checkpoint_every == 0 or ending:
            _save(run, trainer)
    if stop.asked and trainer.done > first:
        _save(run, trainer)


def _figures(trainer: Trainer) -> dict[str, Any]:
    """One line of metrics; a batch more than the steps had was drawn, to guess log Z."""
    trajectories = (trainer.done + 1) * (trainer.config.batch - trainer.config.offline_batch)
    return {"step": trainer.done, "trajectories": trajectories, **trainer.read_meters()}


def _save(run: Run, trainer: Trainer) -> None:
    """Checkpoint, but never one with weights that are not finite."""
    trainer.check_finite()
    run.save(trainer)


def _known_target(trainer: Trainer) -> torch.Tensor | None:
    task = trainer.task
    if not exact.enumerable(task.env) or not trainer.has_law:
        return None
    objects = task.env.all_objects().to(trainer.device)
    return exact.target(task.log_reward(objects).cpu(), task.beta)
