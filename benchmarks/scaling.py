"""How the cost of an update grows with length, vocabulary and batch, with an MLP and with a transformer.

    python -m benchmarks.scaling --device cuda

Trajectory balance with a learned noise model (uniform slip .1), MLP 256 x 2 or transformer 64 x 3 with 8 heads, on bit
strings, whose length and vocabulary are free (Hamming distance to 25 modes); steps are run as `sgfn train` would run a
short job. Prints the slope of each line, both axes logarithmic: 1 is in proportion, 2 its square. Writes each size to
results/scaling_DEVICE.json; those that are there are not measured again, and after `--minutes` no more are begun.
"""

import argparse
import math
import resource
import statistics
import time
from dataclasses import replace
from itertools import pairwise, product, zip_longest
from pathlib import Path
from typing import Any

import torch

from benchmarks.common import RESULTS, device_here, positive, write_results
from sgfn.config import TrainConfig
from sgfn.config.files import read_json
from sgfn.config.tasks import LONGEST
from sgfn.envs.sequence import SequenceEnv
from sgfn.landscapes.bits import Bits
from sgfn.landscapes.tasks import Task, make_task
from sgfn.learning.execution import stepper
from sgfn.learning.trainer import Trainer

BASE = {"length": 16, "vocab": 4, "batch": 64}
AXES = {
    "length": (8, 16, 32, 64, 128, 256, 512),
    "vocab": (4, 8, 16, 32, 64, 128, 256),
    "batch": (16, 64, 256, 1024, 4096, 16384, 65536),
}
ENCODERS: dict[str, dict[str, Any]] = {
    "mlp": {"net__hidden": 256, "net__layers": 2},
    "transformer": {"net__encoder": "transformer", "net__hidden": 64, "net__layers": 3, "net__heads": 8},
}
ROUNDS, SECONDS, MINUTES = 3, {"cpu": 0.5, "cuda": 0.2}, {"cpu": 20.0, "cuda": 2.75}
MOST_ON_CPU = 4096
"""Largest batch of a transformer on a CPU, which takes seconds for an update of it."""
MODES = 25
Size = dict[str, Any]


def configured(encoder: str, length: int, vocab: int, batch: int) -> TrainConfig:
    """Configuration of a run of a given size."""
    bits = vocab.bit_length() - 1  # of a token
    size = {
        "bits__k": bits,
        "bits__length": min(bits * length, LONGEST),
        "bits__distance": "hamming",
        "bits__modes": MODES,
    }
    return TrainConfig().with_(batch=batch, noise__alpha=0.1, **size, **ENCODERS[encoder])


def task_of(size: Size) -> Task:
    """The task of a given size; strings of more bits than a configuration takes are put in by hand."""
    task, bits = make_task("bits", configured(**size)), size["vocab"].bit_length() - 1
    if bits * size["length"] <= LONGEST:
        return task
    landscape = Bits(length=bits * size["length"], k=bits, modes=MODES, distance="hamming")
    env = SequenceEnv(length=size["length"], alphabet=landscape.alphabet, noise=task.env.noise)
    return replace(task, env=env, landscape=landscape)


def sizes(device: str) -> list[tuple[str, Size]]:
    """Axes and sizes in the order in which they are measured, each axis in turn, so that those cut off are large."""
    lines = []
    for encoder, axis in product(ENCODERS, AXES):
        most = MOST_ON_CPU if (device, encoder, axis) == ("cpu", "transformer", "batch") else math.inf
        lines.append([(axis, {"encoder": encoder, **BASE, axis: value}) for value in AXES[axis] if value <= most])
    return [entry for turn in zip_longest(*lines) for entry in turn if entry is not None]


def cost(size: Size, device: torch.device, rounds: int) -> dict[str, Any]:
    """Seconds of an update, and peak memory; an error where it does not fit."""
    try:
        return {**size, **_cost(size, device, rounds)}
    except RuntimeError as error:  # out of memory, say: other sizes may go
        return {**size, "error": f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"}


def _cost(size: Size, device: torch.device, rounds: int) -> dict[str, float]:
    started = time.perf_counter()
    trainer = Trainer(task_of(size), device)
    advance = stepper(trainer)
    steps = max(1, advance.burst)
    timed(trainer, advance, 2 * steps + 3)
    start = time.perf_counter() - started
    bursts = int(SECONDS[device.type] / timed(trainer, advance, steps) / steps)
    seconds = [timed(trainer, advance, max(1, bursts) * steps) for _ in range(rounds)]
    found = {"seconds": round(statistics.median(seconds), 8), "lowest": round(min(seconds), 8)}
    return {**found, "highest": round(max(seconds), 8), "start_seconds": round(start, 2), **memory(device)}


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


def slopes(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Slope of each line: least squares over all of its points, and between its last two; both axes logarithmic.

    >>> square = [{"encoder": "mlp", "axis": "batch", "batch": n, "seconds": n**2} for n in (1, 2, 8)]
    >>> slopes(square)
    [{'encoder': 'mlp', 'axis': 'batch', 'points': 3, 'all': 2.0, 'last': 2.0}]
    """
    found = []
    for encoder, axis in product(ENCODERS, AXES):
        line = [row for row in rows if (row.get("encoder"), row["axis"]) == (encoder, axis) and "seconds" in row]
        points = sorted((math.log(row[axis]), math.log(row["seconds"])) for row in line)
        if len(points) > 1:
            fitted = statistics.linear_regression([x for x, _ in points], [y for _, y in points]).slope
            *_, ((x, y), (further, later)) = pairwise(points)
            last = (later - y) / (further - x)
            head = {"encoder": encoder, "axis": axis, "points": len(points)}
            found.append({**head, "all": round(fitted, 3), "last": round(last, 3)})
    return found


def measure(out: Path, device: torch.device, rounds: int, minutes: float) -> list[dict[str, Any]]:
    """Measure along each axis what the file does not have, with the other sizes as in `BASE`; returns all rows."""
    known = read_json(out)["rows"] if out.is_file() else []
    rows: list[dict[str, Any]] = [row for row in known if "encoder" in row]
    began = time.monotonic()
    for axis, size in sizes(device.type):
        if any({"axis": axis, **size}.items() <= row.items() for row in rows):
            continue
        same = next(({**row, "axis": axis} for row in rows if size.items() <= row.items()), None)
        if same is None and time.monotonic() - began > 60.0 * minutes:
            print(f"{minutes} minutes are over: the same command goes on from here")
            break
        rows.append(same or {"axis": axis, **cost(size, device, rounds)})
        print(rows[-1], flush=True)
        write_results(out, "scaling", device, rows, slopes=slopes(rows))
    return rows


def main() -> None:
    """Measure what is missing, and print how each line grows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", type=device_here, default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, default=None, help="file of the results")
    parser.add_argument("--rounds", type=positive, default=ROUNDS, help="times that each size is timed")
    parser.add_argument("--minutes", type=float, default=0.0, help="no more sizes are begun after so many")
    args = parser.parse_args()
    out = args.out or RESULTS / f"scaling_{args.device}.json"
    rows = measure(out, torch.device(args.device), args.rounds, args.minutes or MINUTES[args.device])
    for slope in slopes(rows):
        print(
            "{encoder:>12} {axis:>8}: slope {all:.2f} over {points} sizes, {last:.2f} between the last two".format(
                **slope
            )
        )


if __name__ == "__main__":
    main()
