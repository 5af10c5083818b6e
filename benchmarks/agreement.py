"""The ways to run steps agree: losses of one random stream, run eagerly, captured and compiled.

    python -m benchmarks.agreement table --device cuda   DNA 8-mers, whose scores fit in a table
    python -m benchmarks.agreement long --device cuda    long sequences, large alphabets, transformers; every objective

Writes results/agreement_DEVICE.json, or agreement_long_DEVICE.json: the largest relative difference from eager steps,
of the mean losses of bursts, for the objective and for the noise model (`_nll`); `other_seed` says what that is for
another random stream, and `again` for the same eager steps once more. On a GPU a compiled step leaves work to a second
stream; `overlap` is how far any number of the whole state is from that of the same run with all work in one stream,
null where there is no second one.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

import torch

from benchmarks.common import RESULTS, arguments, write_results
from benchmarks.contest import DEFAULT
from benchmarks.speed_peers.ours import settings
from sgfn.config import TrainConfig
from sgfn.landscapes.tasks import make_task
from sgfn.learning.execution import replayed, stepper
from sgfn.learning.trainer import Trainer

BATCHES, STEPS, BURST = (16, 256, 4096), 75, replayed(8)
Means = dict[str, list[float]]
TRANSFORMER = {"net__encoder": "transformer", "net__hidden": 64, "net__layers": 2, "net__heads": 4}
MLP = {"net__hidden": 256, "net__layers": 2}
MOTIF = {"motif__length": 30, **MLP}
EHRLICH = {"ehrlich__vocab": 20, "ehrlich__length": 32, "ehrlich__motifs": 4, **MLP}
HOST = {"callable__function": "benchmarks.host_reward:best_match", "callable__length": 30}
"""A function of strings, which is called between two halves of a step."""
LONG: dict[str, tuple[str, dict[str, Any]]] = {
    "motif 30": ("motif", MOTIF),
    "motif 30, db": ("motif", MOTIF | {"objective": "db"}),
    "motif 30, kl-entropy": ("motif", MOTIF | {"objective": "kl-entropy"}),
    "Ehrlich 32": ("ehrlich", EHRLICH),
    "bits 8, transformer": ("bits", {"bits__k": 8, "bits__distance": "hamming", **TRANSFORMER}),
    "motif 30, transformer, subtb": ("motif", {"motif__length": 30, "objective": "subtb", **TRANSFORMER}),
    "motif 30, kl": ("motif", MOTIF | {"objective": "kl"}),
    "motif 30, published db": ("motif", MOTIF | {"objective": "db", "form": "published"}),
    "motif 30, large batch": ("motif", MOTIF | {"batch": 4096}),
    "Ehrlich 32, large batch": ("ehrlich", EHRLICH | {"batch": 4096}),
    "host reward, length 30": ("callable", HOST | MLP),
    "host reward, length 30, transformer, db": ("callable", HOST | TRANSFORMER | {"objective": "db"}),
    "host reward, length 8": ("callable", HOST | MLP | {"callable__length": 8}),
    "host reward, length 12, replay": ("callable", HOST | MLP | {"callable__length": 12, "replay__updates": 1}),
}
"""Tasks whose scores fit in no table, or are computed on the host, at 25 % slips with a noise model to learn."""
LONG_BATCH = 64
Make = Callable[[int], Trainer]
"""From a seed to a trainer at the start of its run."""


def trainer_of(objective: str, batch: int, device: torch.device, seed: int = 0) -> Trainer:
    """A trainer at the start of a run."""
    job = {**DEFAULT, "objective": objective, "batch": batch, "seed": seed}
    return Trainer(make_task("tfbind8", settings(job)), device)  # pyright: ignore[reportArgumentType]


def long_trainer_of(task: str, changes: dict[str, Any], device: torch.device, seed: int = 0) -> Trainer:
    """A trainer on one of the long tasks, at the start of its run."""
    common = {"batch": LONG_BATCH, "steps": 20_000, "seed": seed, "noise__alpha": 0.25}
    return Trainer(make_task(task, TrainConfig().with_(**common | changes)), device)


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


def overlap(first: Trainer, make: Make, steps: int) -> float | None:
    """How far a compiled run is from the same run in one stream, over all that a checkpoint holds."""
    if first.side_stream is None:
        return None
    second = make(0)
    losses(second, "compile", steps, one_stream=True)
    pairs = zip(first.state().values(), second.state().values(), strict=True)
    return max(float((a.double() - b.double()).abs().max()) for a, b in pairs)


def compared(make: Make, device: torch.device, steps: int) -> dict[str, Any]:
    """How far each way to run steps is from eager ones, and how far another random stream is."""
    ways = ("graph", "compile") if device.type == "cuda" else ("compile",)
    eager = losses(make(0), "eager", steps)
    other = losses(make(1), ways[0], steps)
    again = losses(make(0), "eager", steps)
    row: dict[str, Any] = {"steps": steps, "last_loss": eager["loss"][-1], "other_seed": apart(other, eager, "loss")}
    row["again"] = apart(again, eager, "loss")
    for way in ways:
        trainer = make(0)
        found = losses(trainer, way, steps)
        row |= {way: apart(found, eager, "loss"), f"{way}_nll": apart(found, eager, "dynamics_nll")}
        if way == "compile":
            row["overlap"] = overlap(trainer, make, steps)
    return row


def cases(part: str, device: torch.device) -> Iterator[tuple[dict[str, Any], Make]]:
    """What tells a case from others, and its trainers."""
    if part == "table":
        for objective, batch in product(("tb", "stochastic"), BATCHES):
            yield {"objective": objective, "batch": batch}, partial(trainer_of, objective, batch, device)
        return
    for name, (task, changes) in LONG.items():
        shown = {"case": name, "objective": changes.get("objective", "tb"), "batch": changes.get("batch", LONG_BATCH)}
        yield shown, partial(long_trainer_of, task, changes, device)


def main() -> None:
    """Compare all ways to run steps, for every case."""
    args = arguments(__doc__ or "", None, part=["table", "long"])
    device, rows, part = torch.device(args.device), [], args.part
    out = args.out or RESULTS / f"agreement_{'long_' if part == 'long' else ''}{device.type}.json"
    for shown, make in cases(part, device):
        rows.append(shown | compared(make, device, max(BURST, args.steps or STEPS)))
        print(rows[-1], flush=True)
        write_results(out, "agreement", device, rows)


if __name__ == "__main__":
    main()
