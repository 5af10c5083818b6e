"""The loop of a training: steps, lines of metrics, checkpoints and a clean stop; in memory or into a folder."""

import math
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch

from sgfn.config import LogConfig
from sgfn.envs import laws
from sgfn.evaluation import exact
from sgfn.learning.execution import COMPILING, Stepper
from sgfn.learning.learner import Learner
from sgfn.runs.advice import advice
from sgfn.runs.background import Background
from sgfn.runs.duration import SlowFunction
from sgfn.runs.last_step import State, calls_others_code, kept_on_failure

PAUSE = 0.5
"""Seconds between two figures of the moment."""
FIRST_PART, PART_SECONDS, LONG_WAIT = 64, 1.0, 5.0
"""Objects of a whole space that somebody's function is asked for first, seconds that later parts take, and seconds of
waiting from which on it is told."""
Progress = Callable[[int, dict[str, Any]], None]
"""Called with the step and the newest figures."""


@dataclass
class Stop:
    """Whether someone asked the run to stop, and what to say to that."""

    asked: bool = False
    answer: Callable[[], None] | None = None


WAITS = "stopping when the first step is compiled; once more to stop at once"
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
AT_ONCE = "stopped at once; --resume continues from the last checkpoint, or from the start"


@contextmanager
def stoppable(signals: tuple[signal.Signals, ...] = STOPS, at_once: str = AT_ONCE) -> Iterator[Stop]:
    """Ctrl-C, SIGTERM and a closed terminal ask for a stop after the present step; a second one acts at once."""
    stop = Stop()

    def ask(number: int, _: object) -> None:
        if stop.asked:
            raise KeyboardInterrupt(at_once)
        stop.asked = True
        if stop.answer:
            stop.answer()

    try:
        before = {number: signal.signal(number, ask) for number in signals}
    except ValueError:  # not the main thread: signals are somebody else's
        before = {}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@runtime_checkable
class Record(Protocol):
    """Where a training leaves its lines of metrics and its checkpoints: a run folder, or memory."""

    def append(self, row: dict[str, Any]) -> None:
        """One more line of metrics."""
        ...

    def save(self, learner: Learner, background: Background | None = None) -> None:
        """The learner as it is now."""
        ...

    def write_state(self, state: State) -> None:
        """A state of the learner, now."""
        ...


class Memory:
    """Lines of metrics in a list; there are no checkpoints."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def append(self, row: dict[str, Any]) -> None:
        """One more line of metrics."""
        self.rows.append(row)

    def save(self, learner: Learner, background: Background | None = None) -> None:
        """Nothing: the learner itself stays."""

    def write_state(self, state: State) -> None:
        """Nothing: there is nobody to read it."""


def loop(
    record: Record,
    learner: Learner,
    advance: Stepper,
    progress: Progress | None,
    stop: Stop,
    pulse: Callable[[int], None] | None = None,
) -> None:
    """Train to the configured number of steps, or until somebody asks to stop; `pulse` is told every step's number."""
    config, first, last = learner.config.log, learner.done, learner.config.steps
    lines, careful = Lines(record, learner, progress), not isinstance(record, Memory) and calls_others_code(learner)
    with Background() as background:
        state: State = {}

        def write(state: State) -> None:
            lines.settle()
            background.wait()
            record.write_state(state)

        def kept() -> AbstractContextManager[None]:
            return kept_on_failure(learner, state, write) if careful else nullcontext()

        with kept():
            known = _known_rewards(learner, stop, progress) if config.exact_every else None
        lines.start()
        if progress:
            progress(first, {"notice": advance.notice} if advance.notice else {})
            for notice in filter(None, (learner.task.env.noise.notice, learner.task.landscape.data_notice)):
                progress(first, {"notice": notice})
        if progress and advance.notice.startswith(COMPILING):
            stop.answer = lambda: progress(first, {"notice": WAITS})
        slow = SlowFunction(learner)
        while learner.done < last and not stop.asked:
            burst = min(advance.burst, steps_ahead(learner.done, last, config))
            with kept():
                advance(burst)
                learner.done += burst
                if pulse:
                    pulse(learner.done)
                if learner.done == first + burst:
                    lines.begin()
                    stop.answer = None
                _look(learner, lines, known)
            lines.beat()
            if progress and (words := slow.words()):
                progress(learner.done, {"notice": words})
            if learner.done % config.checkpoint_every == 0 or learner.done == last:
                _save(record, learner, lines, background)
        if stop.asked and learner.done > first:
            _save(record, learner, lines, background)
    if progress and learner.done == last:  # all is written
        for text in advice(learner, lines.last, known):
            progress(last, {"notice": text})


def _look(learner: Learner, lines: "Lines", known: torch.Tensor | None) -> None:
    """Add a line of metrics where one is due, with the exact distance where that is."""
    config, ending = learner.config.log, learner.done == learner.config.steps
    looks = config.exact_every > 0 and learner.done % config.exact_every == 0
    if learner.done % config.every == 0 or looks or ending:
        judged = {}
        if known is not None and (looks or ending):
            judged = {"tv": _distance(learner, known)}
        lines.add(judged)


class Lines:
    """Metrics of a run; on a GPU a line is read when the next one is due, so that no step waits for it."""

    def __init__(self, record: Record, learner: Learner, progress: Progress | None) -> None:
        self.record, self.learner, self.progress = record, learner, progress
        self.start()
        self.late = learner.device.type == "cuda"
        self.waiting: tuple[dict[str, Any], Any, dict[str, float]] | None = None  # head, figures on their way, more
        self.rate, self.shown = 0.0, 0.0  # of the line that waits; when figures of the moment were last shown
        self.last: dict[str, Any] = {}

    def start(self) -> None:
        """Training starts here."""
        self.begun = self.started = (time.monotonic(), self.learner.done)

    def begin(self) -> None:
        """Rates count from here on: before the first steps there may have been a compilation."""
        self.begun = (time.monotonic(), self.learner.done)

    def add(self, more: dict[str, float]) -> None:
        """Take the figures of this moment for the next line of metrics."""
        self.settle()
        head = {"step": self.learner.done, "trajectories": self.learner.trajectories}
        self.waiting = (head, self.learner.snapshot(), more)
        moment, step = self.begun if self.learner.done > self.begun[1] else self.started
        self.rate = (self.learner.done - step) * self.learner.batch / (time.monotonic() - moment)
        if not self.late:
            self.settle()

    def beat(self) -> None:
        """Show the figures of this moment, where a learner has some, a few times in a second."""
        if self.progress and time.monotonic() - self.shown > PAUSE and (live := self.learner.live()):
            self.shown = time.monotonic()
            self.progress(self.learner.done, {"live": live})

    def settle(self) -> None:
        """Write the line that waits, and show it."""
        if self.waiting is None:
            return
        (head, snapshot, more), self.waiting = self.waiting, None
        self.last = row = head | self.learner.read_snapshot(snapshot) | more
        self.record.append(row)
        if self.progress:
            self.progress(snapshot.step, row | {"rate": self.rate})


def steps_ahead(done: int, last: int, config: LogConfig) -> int:
    """Steps until there is something to do besides them."""
    every = [config.every, config.checkpoint_every, *([config.exact_every] if config.exact_every else [])]
    return min(last - done, *(period - done % period for period in every))


def _save(record: Record, learner: Learner, lines: Lines, background: Background) -> None:
    """Checkpoint after all lines up to here, but never one with weights that are not finite."""
    lines.settle()
    learner.check_finite()
    record.save(learner, background)


def _distance(learner: Learner, known: torch.Tensor) -> float:
    """Exact distance to the target of the present exponent; finite weights may be so large that there is none."""
    found = exact.total_variation(learner.law(), exact.target(known, learner.exponent))
    if math.isnan(found):
        learner.raise_non_finite({}, learner.done)
    return found


def _known_rewards(learner: Learner, stop: Stop, progress: Progress | None) -> torch.Tensor | None:
    """Log-rewards of all objects before the exponent; None where the law or the objects cannot be had.

    Somebody's function is asked for some at a time, so that a stop is heeded, and who waits is told for what.
    """
    task, first = learner.task, learner.done
    if not laws.enumerable(task.env) or not learner.has_law:
        return None
    objects = task.env.all_objects().to(learner.device)
    if not task.landscape.on_host:
        return task.log_target(objects).cpu()

    def tell(seconds: float) -> None:
        if progress:
            what = f"all {len(objects):,} objects are scored first, for exact distances: about {seconds:,.0f} s more"
            progress(first, {"notice": f"{what}; --log.exact-every 0 leaves that out"})

    return in_parts(task.log_target, objects, lambda: stop.asked, tell)


def in_parts(
    score: Callable[[torch.Tensor], torch.Tensor],
    objects: torch.Tensor,
    stopped: Callable[[], bool],
    tell: Callable[[float], None],
) -> torch.Tensor | None:
    """Scores of objects by a function that may be slow, in parts of about a second; None after a stop.

    `tell` is called once, with the seconds that are left, where these are more than a few.
    """
    found, place, size, told = list[torch.Tensor](), 0, FIRST_PART, False
    while place < len(objects):
        if stopped():
            return None
        began, part = time.monotonic(), objects[place : place + size]
        found.append(score(part).cpu())
        place, seconds = place + len(part), max(time.monotonic() - began, 1e-6)
        left = seconds / len(part) * (len(objects) - place)
        if left > LONG_WAIT and not told:
            told = True
            tell(left)
        size = max(1, min(int(len(part) * PART_SECONDS / seconds), 16 * len(part)))
    return torch.cat(found)
