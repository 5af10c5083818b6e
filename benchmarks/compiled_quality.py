"""TFBind8 with compiled steps on a CPU: is the quality that of the first study?

MLP 256 x 2, batch 256, 12,000 steps, learned dynamics, as in `tfbind8_quality`, a run to a process and a thread:

    python -m benchmarks.compiled_quality --seeds 3
"""

import os

import torch

from benchmarks.common import Measure, Row, arguments, write_cells
from sgfn.config import TrainConfig
from sgfn.landscapes.tasks import make_task
from sgfn.learning.execution import stepper
from sgfn.learning.trainer import Trainer

ALPHAS, OBJECTIVES = (0.0, 0.25, 0.75), ("tb", "db")


def trained(config: TrainConfig) -> list[Row]:
    """One run, measured exactly."""
    torch.set_num_threads(1)
    trainer = Trainer(make_task("tfbind8", config), torch.device("cpu"))
    stepper(trainer, "compile")(config.steps)
    trainer.done = config.steps
    trainer.check_finite()
    return [Measure()(trainer)]


def told(rows: list[Row]) -> None:
    """Print a run's distance."""
    print(*({name: row[name] for name in ("alpha", "objective", "seed", "tv")} for row in rows), flush=True)


def main() -> None:
    """Run the study, on as many cores as there are."""
    args = arguments(__doc__ or "", "compiled_quality.json", cells=True)
    args.device = "cpu"
    base = TrainConfig().with_(batch=256, steps=args.steps or 12000)
    cells = {
        f"alpha {alpha}, {objective}, seed {seed}": (base.with_(objective=objective, noise__alpha=alpha, seed=seed),)
        for alpha in ALPHAS
        for objective in OBJECTIVES
        for seed in range(args.seeds)
    }
    write_cells(args, "compiled_quality", cells, trained, told, jobs=os.cpu_count() or 1)


if __name__ == "__main__":
    main()
