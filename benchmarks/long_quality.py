"""Transformers on long sequences: is the quality the same however steps are run?

    python -m benchmarks.long_quality --device cuda --seeds 3
    python -m benchmarks.long_quality --device cpu --seeds 5

Runs of one setting letter by letter (`letters`), with whole rollouts by one GPU kernel (`graph`) and with compiled
steps as well (`compile`); on a CPU compiled with the gradient's products in float32 (`compile-float32`) and in bfloat16
(`compile`). Motif of length 30 and an Ehrlich function of length 15, 10 % slips, a noise model to learn. Each row has
the mean score of 8,192 sequences that come out, the share of distinct ones, and the last mean losses.
"""

import itertools
from typing import Any

import torch

from benchmarks.common import RESULTS, Row, arguments, write_cells
from sgfn.config import TrainConfig
from sgfn.landscapes.tasks import make_task
from sgfn.learning.execution import stepper
from sgfn.learning.trainer import Trainer

STEPS, SAMPLES, LAST = 4000, 8192, 400
TRANSFORMER = {"net__encoder": "transformer", "net__hidden": 64, "net__layers": 2, "net__heads": 4}
TASKS: dict[str, dict[str, Any]] = {
    "motif": {"motif__length": 30},
    "ehrlich": {"ehrlich__vocab": 20, "ehrlich__length": 15, "ehrlich__motifs": 2, "reward__minimum": 0.01},
}
WAYS = {"cuda": ("letters", "graph", "compile"), "cpu": ("compile-float32", "compile")}


def trained(task: str, way: str, seed: int, steps: int, device: torch.device) -> Trainer:
    """A run at its end, with the losses of its last steps in the meters."""
    common = {"batch": 64, "steps": steps, "seed": seed, "noise__alpha": 0.1}
    trainer = Trainer(make_task(task, TrainConfig().with_(**common | TRANSFORMER | TASKS[task])), device)
    if way == "letters":
        trainer.general.sequences = None
    advance = stepper(trainer, "graph" if way == "letters" else way)
    for count in (steps - min(LAST, steps // 2), min(LAST, steps // 2)):
        trainer.read_meters()
        advance(count)
        trainer.done += count
    return trainer


def measured(trainer: Trainer) -> dict[str, float]:
    """Scores of what comes out, and the last losses."""
    found = trainer.draw(SAMPLES, seed=1)
    means = trainer.read_meters()
    return {
        "mean_score": float(found.scores.double().mean()),
        "distinct": len(found.objects.unique(dim=0)) / SAMPLES,
        "loss": means["loss"],
        "dynamics_nll": means["dynamics_nll"],
    }


def row(task: str, way: str, seed: int, steps: int, device: str) -> list[Row]:
    """The row of one run."""
    found = measured(trained(task, way, seed, steps, torch.device(device)))
    return [{"task": task, "way": way, "seed": seed, "steps": steps} | found]


def main() -> None:
    """Run the study, seeds in turn."""
    args = arguments(__doc__ or "", None, cells=True)
    args.out = args.out or RESULTS / f"long_quality_{args.device}.json"
    runs = [(task, way, seed) for seed, task, way in itertools.product(range(args.seeds), TASKS, WAYS[args.device])]
    write_cells(args, "long_quality", {str(run): (*run, args.steps or STEPS, args.device) for run in runs}, row)


if __name__ == "__main__":
    main()
