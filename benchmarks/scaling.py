"""How the cost of an update grows with length, vocabulary and batch.

    python -m benchmarks.scaling --device cpu

Trajectory balance with a learned noise model (uniform slip .1), MLP 256 x 2, on bit strings, whose length and
vocabulary are free (Hamming distance to 25 modes); steps are run as `sgfn train` would run a short job. Writes
results/scaling_DEVICE.json.
"""

import resource
import statistics
import time
from typing import Any

import torch

from benchmarks.common import RESULTS, arguments, write_results
from sgfn.config import TrainConfig
from sgfn.landscapes.tasks import make_task
from sgfn.learning.execution import stepper
from sgfn.learning.trainer import Trainer

BASE = {"length": 16, "vocab": 4, "batch": 64}
AXES = {
    "length": (8, 16, 32, 64, 128, 256),
    "vocab": (4, 8, 16, 32, 64),
    "batch": (16, 64, 256, 1024, 4096, 16384, 65536),
}
ROUNDS, SECONDS = 5, 0.5


def configured(length: int, vocab: int, batch: int) -> TrainConfig:
    """Configuration of a run of a given size."""
    bits = vocab.bit_length() - 1  # of a token
    size = {"bits__k": bits, "bits__length": bits * length, "bits__distance": "hamming", "bits__modes": 25}
    return TrainConfig().with_(batch=batch, noise__alpha=0.1, **size)


def cost(size: dict[str, int], device: torch.device, rounds: int) -> dict[str, Any]:
    """Seconds of an update, and peak memory."""
    trainer = Trainer(make_task("bits", configured(**size)), device)
    advance = stepper(trainer)
    steps = max(1, advance.burst)
    timed(trainer, advance, 2 * steps + 3)
    steps = max(steps, int(SECONDS / timed(trainer, advance, steps)))
    seconds = [timed(trainer, advance, steps) for _ in range(rounds)]
    return {**size, "seconds": round(statistics.median(seconds), 8), "lowest": round(min(seconds), 8), **memory(device)}


def timed(trainer: Trainer, advance: Any, steps: int) -> float:
    """Seconds of one update, all of them done when the clock stops."""
    started = time.perf_counter()
    advance(steps)
    trainer.done += steps
    trainer.read_meters()  # waits for the device
    return (time.perf_counter() - started) / steps


def memory(device: torch.device) -> dict[str, float]:
    """Peak memory in MiB: of the process so far, or on the device since the last call."""
    if device.type == "cpu":
        return {"memory_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)}
    peak = torch.cuda.max_memory_allocated() / 2**20
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    return {"memory_mib": round(peak, 1)}


def main() -> None:
    """Measure along each axis, with the other sizes as in `BASE`."""
    args = arguments(__doc__ or "", None)
    device, rows = torch.device(args.device), []
    for axis, values in AXES.items():
        for value in values:
            rows.append({"axis": axis, **cost({**BASE, axis: value}, device, args.steps or ROUNDS)})
            print(rows[-1], flush=True)
    write_results(args.out or RESULTS / f"scaling_{device.type}.json", "scaling", device, rows)


if __name__ == "__main__":
    main()
