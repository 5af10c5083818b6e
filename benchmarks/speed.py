"""Speed of the training loop: rollout + update, TFBind8, MLP 256 x 2, trajectory balance, alpha .25.

    python -m benchmarks.speed --device cpu

The published loop's 31 updates/s of 16 own and 16 offline trajectories (2 cores, AMD EPYC) is the yardstick; compare
ratios across machines with care.
"""

import statistics
import time
from typing import Any

import torch

from benchmarks.common import arguments, write_results
from sgfn.config import TrainConfig
from sgfn.stepper import stepper
from sgfn.tasks import make_task
from sgfn.trainer import Trainer

PUBLISHED_PER_SECOND = 31 * 32
BATCHES = (16, 256, 4096)
METHODS = {"noise-blind": "known", "marginal, learned dynamics": "batch"}


def rate(config: TrainConfig, device: torch.device, repeats: int = 5, seconds: float = 2.0) -> list[float]:
    """Steps per second, several times over, after a warm-up."""
    trainer = Trainer(make_task("tfbind8", config), device)
    step = stepper(trainer)
    for _ in range(8):
        step()
    rates = []
    for _ in range(repeats):
        _wait(device)
        started, count = time.perf_counter(), 0
        while time.perf_counter() - started < seconds:
            for _ in range(4):
                step()
            count += 4
            _wait(device)
        rates.append(count / (time.perf_counter() - started))
    return rates


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def main() -> None:
    """Run the study."""
    args = arguments(__doc__ or "", "speed_cpu.json")
    device = torch.device(args.device)
    rows: list[dict[str, Any]] = []
    for batch in BATCHES:
        for method, mode in METHODS.items():
            form = "blind" if method == "noise-blind" else "marginal"
            rates = rate(TrainConfig().with_(batch=batch, form=form, dynamics__mode=mode), device)
            median = statistics.median(rates)
            rows.append(
                {
                    "method": method,
                    "batch": batch,
                    "updates_per_second": round(median, 1),
                    "lowest": round(min(rates), 1),
                    "highest": round(max(rates), 1),
                    "trajectories_per_second": round(median * batch),
                    "times_published": round(median * batch / PUBLISHED_PER_SECOND, 2),
                }
            )
            print(rows[-1], flush=True)
    write_results(args.out, "speed", device, rows, published_trajectories_per_second=PUBLISHED_PER_SECOND)


if __name__ == "__main__":
    main()
