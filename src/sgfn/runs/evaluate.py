"""`evaluate`: a trained run against the exact answer."""

import time
from collections.abc import Callable
from pathlib import Path

import torch

from sgfn.config.files import write_json
from sgfn.envs import laws
from sgfn.envs.laws import MAX_STATES
from sgfn.evaluation.measure import MODE_DISTANCE
from sgfn.evaluation.result import Evaluation
from sgfn.evaluation.stages import StageProgress
from sgfn.landscapes.tasks import Task
from sgfn.runs.folder import Run, refuse_forecast
from sgfn.runs.loop import LONG_WAIT
from sgfn.runs.model import opened
from sgfn.runs.results import FILE
from sgfn.runs.trust import Trust

FEW = 16
"""Objects by which the time of all is guessed."""


def evaluate(
    run: Path | str,
    *,
    samples: int = 2048,
    seed: int = 0,
    device: str = "auto",
    max_states: int = MAX_STATES,
    mode_distance: int = MODE_DISTANCE,
    mode_level: float | None = None,
    trust: Trust = False,
    notice: Callable[[str], None] | None = None,
    progress: StageProgress | None = None,
) -> Evaluation:
    """Compare a trained run with the exact answer; writes exact.json inside RUN.

    `notice` is told before a slow function is asked for the scores of all objects; `progress` is called with
    the name of a stage, how many of its parts are done, and of how many (None where nobody can tell).
    Code that only the run names is not run unless it is trusted: all of it, or what is named again by its field.
    """
    folder = Run(path=Path(run), trust=trust)
    refuse_forecast(folder)
    modes = {"mode_distance": mode_distance, "mode_level": mode_level}
    model = opened(folder, device)
    if notice is not None and (line := slow_words(model.task, max_states, model.learner.device)):
        notice(line)
    result = model.evaluate(samples=samples, seed=seed, max_states=max_states, progress=progress, **modes)
    write_json(folder.path / FILE, dict(result))
    return result


def slow_words(task: Task, max_states: int, device: torch.device) -> str:
    """How long somebody's function takes for all objects, which are about to be scored; empty where that is not long.

    A few of them are timed, whose scores the function's landscape keeps.
    """
    env = task.env
    if not task.landscape.on_host or not laws.enumerable(env, max_states):
        return ""
    few, began = env.all_objects()[:FEW].to(device), time.monotonic()
    task.landscape.scores(few)
    seconds = (time.monotonic() - began) / len(few) * (env.num_objects - len(few))
    if seconds <= LONG_WAIT:
        return ""
    words = f"all {env.num_objects:,} objects are scored for the exact answer: about {seconds:,.0f} s more"
    return f"{words}; --max-states 1 leaves that out"
