"""`train`: run a task into a folder, with checkpoints, metrics and a clean stop."""

import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from sgfn.config import LogConfig, TrainConfig, differing
from sgfn.config.checks import require
from sgfn.envs import laws
from sgfn.evaluation import exact
from sgfn.landscapes.offline import training_objects
from sgfn.landscapes.tasks import Task, make_task
from sgfn.learning.execution import COMPILING, Stepper, choose, pick_device, stepper
from sgfn.learning.learner import Glance, Learner
from sgfn.learning.methods import build, check
from sgfn.runs.background import Background
from sgfn.runs.copies import checksums, files_there, large_copies, with_files
from sgfn.runs.folder import Run

Progress = Callable[[int, dict[str, Any]], None]
"""Called with the step and the newest figures."""


@dataclass
class Stop:
    """Whether someone asked the run to stop, and what to say to that."""

    asked: bool = False
    answer: Callable[[], None] | None = None


WAITS = "stopping when the first step is compiled; once more to stop at once"
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def stoppable() -> Iterator[Stop]:
    """Ctrl-C, SIGTERM and a closed terminal ask for a stop after the present step; a second one acts at once."""
    stop = Stop()

    def ask(number: int, _: object) -> None:
        if stop.asked:
            raise KeyboardInterrupt("stopped at once; --resume continues from the last checkpoint, or from the start")
        stop.asked = True
        if stop.answer:
            stop.answer()

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
    config: TrainConfig | None,
    out: Path,
    *,
    resume: bool = False,
    overwrite: bool = False,
    device: str = "auto",
    accelerate: str = "auto",
    insist: bool = True,
    progress: Progress | None = None,
    copies: Mapping[str, Path] | None = None,
) -> Run:
    """Train a task into the folder `out`; returns the run.

    The run keeps copies of the files that its configuration names; `copies` are files to read in their place, by field.
    With `resume` the run continues with the folder's own configuration, which None stands for, on a CPU bit for bit.
    Given one, only its number of steps may be another, and the schedule of the learning rate then follows it.
    `accelerate` says how steps are run, not what they do (see `stepper`); what cannot be had is an error if we insist.
    """
    run, where = Run(path=Path(out)), pick_device(device)
    if resume and overwrite:
        raise ValueError("--resume continues a run and --overwrite replaces it: give one of them")
    config = None if config is None else absolute(config)
    learner, known = None, dict[str, str]()
    if resume:
        run.read_config()
    else:
        config = config or TrainConfig()
        files = files_there(config) if copies is None else dict(copies)
        known = checksums(files)
        made = make_task(task, with_files(config, files))
        check(made)
        learner = _learner(made, where)
        choose(learner, accelerate, insist)
        run.check(overwrite=overwrite)
        if progress and copies is None and (line := large_copies(files, run.path)):
            progress(0, {"notice": line})
    with run.locked(), stoppable() as stop:  # nothing is written before this line
        if learner is None:
            learner = _resumed(run, task, config, where, lambda found: choose(found, accelerate, insist))
        else:
            assert config is not None
            run.create(task, config, overwrite=overwrite, known=known, copies=copies)
        _loop(run, learner, stepper(learner, accelerate, insist), progress, stop)
    if stop.asked and learner.done < learner.config.steps:
        how = "" if accelerate == "auto" else f" --accelerate {accelerate}"
        again = f"sgfn train {task} --resume{how} --out {run.path}"
        raise KeyboardInterrupt(f"stopped at step {learner.done:,}; continue with: {again}")
    return run


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


def _loop(run: Run, learner: Learner, advance: Stepper, progress: Progress | None, stop: Stop) -> None:
    config = learner.config.log
    known = _known_target(learner) if config.exact_every else None
    first, last = learner.done, learner.config.steps
    if progress:
        progress(first, {"notice": advance.notice} if advance.notice else {})
    if progress and advance.notice == COMPILING:
        stop.answer = lambda: progress(first, {"notice": WAITS})
    lines = Lines(run, learner, progress)
    with Background() as background:
        while learner.done < last and not stop.asked:
            burst = min(advance.burst, steps_ahead(learner.done, last, config))
            advance(burst)
            learner.done += burst
            if learner.done == first + burst:
                lines.begin()
                stop.answer = None
            ending = learner.done == last
            looks = config.exact_every > 0 and learner.done % config.exact_every == 0
            if learner.done % config.every == 0 or looks or ending:
                judged = {}
                if known is not None and (looks or ending):
                    judged = {"tv": exact.total_variation(learner.law(), known)}
                lines.add(judged)
            if learner.done % config.checkpoint_every == 0 or ending:
                _save(run, learner, lines, background)
        if stop.asked and learner.done > first:
            _save(run, learner, lines, background)


class Lines:
    """Metrics of a run; on a GPU a line is read when the next one is due, so that no step waits for it."""

    def __init__(self, run: Run, learner: Learner, progress: Progress | None) -> None:
        self.run, self.learner, self.progress = run, learner, progress
        self.begun = self.started = (time.monotonic(), learner.done)
        self.late = learner.device.type == "cuda"
        self.waiting: tuple[dict[str, Any], Glance, dict[str, float]] | None = None
        self.rate = 0.0  # of the line that waits

    def begin(self) -> None:
        """Rates count from here on: before the first steps there may have been a compilation."""
        self.begun = (time.monotonic(), self.learner.done)

    def add(self, more: dict[str, float]) -> None:
        """The figures of this moment."""
        self.settle()
        head = {"step": self.learner.done, "trajectories": self.learner.trajectories}
        self.waiting = (head, self.learner.glance(), more)
        moment, step = self.begun if self.learner.done > self.begun[1] else self.started
        self.rate = (self.learner.done - step) * self.learner.config.batch / (time.monotonic() - moment)
        if not self.late:
            self.settle()

    def settle(self) -> None:
        """Write the line that waits, and show it."""
        if self.waiting is None:
            return
        (head, glance, more), self.waiting = self.waiting, None
        row = head | self.learner.read(glance) | more
        self.run.append(row)
        if self.progress:
            self.progress(glance.step, row | {"rate": self.rate})


def steps_ahead(done: int, last: int, config: LogConfig) -> int:
    """Steps until there is something to do besides them."""
    every = [config.every, config.checkpoint_every, *([config.exact_every] if config.exact_every else [])]
    return min(last - done, *(period - done % period for period in every))


def _save(run: Run, learner: Learner, lines: Lines, background: Background) -> None:
    """Checkpoint after all lines up to here, but never one with weights that are not finite."""
    lines.settle()
    learner.check_finite()
    run.save(learner, background)


def _known_target(learner: Learner) -> torch.Tensor | None:
    task = learner.task
    if not laws.enumerable(task.env) or not learner.has_law:
        return None
    objects = task.env.all_objects().to(learner.device)
    return exact.target(task.log_reward(objects).cpu(), task.beta)
