"""`evaluate`: a trained run against the exact answer."""

from pathlib import Path
from typing import Any

from sgfn.config.files import write_json
from sgfn.envs.laws import MAX_STATES
from sgfn.evaluation.measure import measure
from sgfn.learning.execution import pick_device
from sgfn.learning.learner import Learner
from sgfn.runs.folder import Run, refuse_forecast


def figures(learner: Learner, samples: int, seed: int, max_states: int) -> dict[str, Any]:
    """What `evaluate` writes and prints, of a learner in memory."""
    head = {"task": learner.task.name, "step": learner.done, "samples": samples, "seed": seed}
    return head | measure(learner, samples, seed, max_states)


def evaluate(
    run: Path | str, *, samples: int = 2048, seed: int = 0, device: str = "auto", max_states: int = MAX_STATES
) -> dict[str, Any]:
    """Compare a trained run with the exact answer; writes exact.json inside RUN."""
    folder = Run(path=Path(run))
    refuse_forecast(folder)
    result = figures(folder.load(pick_device(device)), samples, seed, max_states)
    write_json(folder.path / "exact.json", result)
    return result
