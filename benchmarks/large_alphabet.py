"""Memory of training on a large alphabet: `bits` with 8 bits a step (256 letters), transformer 64 x 3, 8 heads.

python -m benchmarks.large_alphabet --device cuda
python -m benchmarks.large_alphabet --device cpu
"""

import resource
import time
from typing import Any

import torch

from benchmarks.common import RESULTS, arguments, write_results
from sgfn.config import TrainConfig
from sgfn.landscapes.tasks import make_task
from sgfn.learning.execution import stepper
from sgfn.learning.trainer import Trainer

BATCHES = {"cuda": (16, 256, 4096), "cpu": (256,)}


def measured(distance: str, batch: int, device: torch.device) -> dict[str, Any]:
    """Peak memory in GiB and updates per second of a run with a learned noise model, at 25 % noise."""
    config = TrainConfig().with_(batch=batch, bits__k=8, bits__distance=distance, net__encoder="transformer")
    config = config.with_(net__hidden=64, net__layers=3, net__heads=8)
    trainer = Trainer(make_task("bits", config), device)
    step, cuda = stepper(trainer), device.type == "cuda"
    step(3 + step.burst)
    trainer.read_meters()
    started, count = time.monotonic(), step.burst if cuda else 3
    step(count)
    trainer.read_meters()
    rate = count / (time.monotonic() - started)
    peak = (
        torch.cuda.max_memory_allocated() / 2**30
        if cuda
        else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    )
    row = {"distance": distance, "batch": batch, "noise_model": trainer.dynamics.kind}
    return row | {"gib": round(peak, 2), "updates_per_second": round(rate, 2)}


def main() -> None:
    """Both distances at every batch."""
    args = arguments(__doc__ or "", None)
    device, rows = torch.device(args.device), []
    for distance in ("hamming", "edit"):
        for batch in BATCHES[device.type]:
            if device.type == "cuda":
                torch.cuda.reset_peak_memory_stats()
            rows.append(measured(distance, batch, device))
            print(rows[-1], flush=True)
    write_results(args.out or RESULTS / f"large_alphabet_{device.type}.json", "large_alphabet", device, rows)


if __name__ == "__main__":
    main()
