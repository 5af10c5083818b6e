"""`evaluate`: a trained run against the exact answer."""

from pathlib import Path

from sgfn.config.files import write_json
from sgfn.envs.laws import MAX_STATES
from sgfn.evaluation.measure import MODE_DISTANCE
from sgfn.evaluation.result import Evaluation
from sgfn.runs.folder import Run, refuse_forecast
from sgfn.runs.model import opened
from sgfn.runs.results import FILE
from sgfn.runs.trust import Trust


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
) -> Evaluation:
    """Compare a trained run with the exact answer; writes exact.json inside RUN.

    Code that only the run names is not run unless it is trusted: all of it, or what is named again by its field.
    """
    folder = Run(path=Path(run), trust=trust)
    refuse_forecast(folder)
    modes = {"mode_distance": mode_distance, "mode_level": mode_level}
    result = opened(folder, device).evaluate(samples=samples, seed=seed, max_states=max_states, **modes)
    write_json(folder.path / FILE, dict(result))
    return result
