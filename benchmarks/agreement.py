"""The ways to run steps agree: losses of one random stream, run eagerly, captured and compiled.

    python -m benchmarks.agreement --device cuda

Writes results/agreement_DEVICE.json: the largest relative difference from eager steps, of the mean losses of bursts,
for the objective and for the noise model (`_nll`); `other_seed` says what that is for another random stream. On a GPU a
compiled step leaves work to a second stream; `overlap` is how far any number of the whole state is from that of the
same run with all work in one stream, null where there is no second one.
"""

from typing import Any

import torch

from benchmarks.common import RESULTS, arguments, write_results
from benchmarks.contest import DEFAULT
from benchmarks.speed_peers.ours import settings
from sgfn.landscapes.tasks import make_task
from sgfn.learning.execution import replayed, stepper
from sgfn.learning.trainer import Trainer

BATCHES, STEPS, BURST = (16, 256, 4096), 75, replayed(8)
Means = dict[str, list[float]]


def trainer_of(objective: str, batch: int, device: torch.device, seed: int = 0) -> Trainer:
    """A trainer at the start of a run."""
    job = {**DEFAULT, "objective": objective, "batch": batch, "seed": seed}
    return Trainer(make_task("tfbind8", settings(job)), device)  # pyright: ignore[reportArgumentType]


def losses(trainer: Trainer, accelerate: str, steps: int, *, one_stream: bool = False) -> Means:
    """Mean losses of each burst of steps."""
    advance, found = stepper(trainer, accelerate), {"loss": [], "dynamics_nll": []}
    if one_stream:
        trainer.side_stream = None
    for _ in range(steps // BURST):
        advance(BURST)
        trainer.done += BURST
        means = trainer.read_meters()
        for name, values in found.items():
            values.append(means[name])
    return found


def apart(found: Means, known: Means, name: str) -> float:
    """Largest relative difference between the mean losses of two runs."""
    return max(abs(a - b) / (abs(b) or 1.0) for a, b in zip(found[name], known[name], strict=True))


def overlap(first: Trainer, objective: str, batch: int, steps: int) -> float | None:
    """How far a compiled run is from the same run in one stream, over all that a checkpoint holds."""
    if first.side_stream is None:
        return None
    second = trainer_of(objective, batch, first.device)
    losses(second, "compile", steps, one_stream=True)
    pairs = zip(first.state().values(), second.state().values(), strict=True)
    return max(float((a.double() - b.double()).abs().max()) for a, b in pairs)


def main() -> None:
    """Compare all ways to run steps, for every batch size and objective."""
    args = arguments(__doc__ or "", None)
    device, rows = torch.device(args.device), []
    ways = ("graph", "compile") if device.type == "cuda" else ("compile",)
    for objective in ("tb", "stochastic"):
        for batch in BATCHES:
            steps = max(BURST, args.steps or STEPS)
            eager = losses(trainer_of(objective, batch, device), "eager", steps)
            other = losses(trainer_of(objective, batch, device, seed=1), ways[0], steps)
            row: dict[str, Any] = {"objective": objective, "batch": batch, "steps": steps}
            row |= {"last_loss": eager["loss"][-1], "other_seed": apart(other, eager, "loss")}
            for way in ways:
                trainer = trainer_of(objective, batch, device)
                found = losses(trainer, way, steps)
                row |= {way: apart(found, eager, "loss"), f"{way}_nll": apart(found, eager, "dynamics_nll")}
                if way == "compile":
                    row["overlap"] = overlap(trainer, objective, batch, steps)
            rows.append(row)
            print(row, flush=True)
    write_results(args.out or RESULTS / f"agreement_{device.type}.json", "agreement", device, rows)


if __name__ == "__main__":
    main()
