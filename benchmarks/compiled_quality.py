"""TFBind8 with compiled steps on a CPU: is the quality that of the first study?

MLP 256 x 2, batch 256, 12,000 steps, learned dynamics, as in `tfbind8_quality`, a run to a process and a thread:

    python -m benchmarks.compiled_quality --seeds 3
"""

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import torch

from benchmarks.common import Measure, arguments, write_results
from sgfn.config import TrainConfig
from sgfn.landscapes.tasks import make_task
from sgfn.learning.execution import stepper
from sgfn.learning.trainer import Trainer

ALPHAS, OBJECTIVES = (0.0, 0.25, 0.75), ("tb", "db")


def trained(config: TrainConfig) -> dict[str, Any]:
    """One run, measured exactly."""
    torch.set_num_threads(1)
    trainer = Trainer(make_task("tfbind8", config), torch.device("cpu"))
    stepper(trainer, "compile")(config.steps)
    trainer.done = config.steps
    trainer.check_finite()
    return Measure()(trainer)


def main() -> None:
    """Run the study, on as many cores as there are."""
    args = arguments(__doc__ or "", "compiled_quality.json")
    base = TrainConfig().with_(batch=256, steps=args.steps or 12000)
    configs = [
        base.with_(objective=objective, noise__alpha=alpha, seed=seed)
        for alpha in ALPHAS
        for objective in OBJECTIVES
        for seed in range(args.seeds)
    ]
    rows = []
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
        for row in pool.map(trained, configs):
            rows.append(row)
            print({name: row[name] for name in ("alpha", "objective", "seed", "tv")}, flush=True)
            write_results(args.out, "compiled_quality", torch.device("cpu"), rows)


if __name__ == "__main__":
    main()
