"""The ways to run steps agree: losses of one random stream, run eagerly, captured and compiled.

    python -m benchmarks.agreement --device cuda

Writes results/agreement_DEVICE.json: the largest relative difference from eager steps, of mean losses over bursts.
"""

from typing import Any

import torch

from benchmarks.common import RESULTS, arguments, write_results
from benchmarks.contest import DEFAULT
from benchmarks.speed_peers.ours import settings
from sgfn.stepper import REPLAYED, stepper
from sgfn.tasks import make_task
from sgfn.trainer import Trainer

BATCHES, STEPS = (16, 256, 4096), 48


def losses(objective: str, batch: int, accelerate: str, device: torch.device, steps: int) -> list[float]:
    """Mean loss of each burst of steps."""
    job = {**DEFAULT, "objective": objective, "batch": batch}
    trainer = Trainer(make_task("tfbind8", settings(job)), device)  # pyright: ignore[reportArgumentType]
    advance, found = stepper(trainer, accelerate), []
    for _ in range(steps // REPLAYED):
        advance(REPLAYED)
        trainer.done += REPLAYED
        found.append(trainer.read_meters()["loss"])
    return found


def main() -> None:
    """Every way, batch and objective."""
    args = arguments(__doc__ or "", None)
    device, rows = torch.device(args.device), []
    ways = ("graph", "compile") if device.type == "cuda" else ("compile",)
    for objective in ("tb", "stochastic"):
        for batch in BATCHES:
            steps = max(REPLAYED, args.steps or STEPS)
            eager = losses(objective, batch, "eager", device, steps)
            row: dict[str, Any] = {"objective": objective, "batch": batch, "steps": steps, "last_loss": eager[-1]}
            for way in ways:
                found = losses(objective, batch, way, device, steps)
                row[way] = max(abs(a - b) / abs(b) for a, b in zip(found, eager, strict=True))
            rows.append(row)
            print(row, flush=True)
    write_results(args.out or RESULTS / f"agreement_{device.type}.json", "agreement", device, rows)


if __name__ == "__main__":
    main()
