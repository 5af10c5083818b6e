"""A JASPAR motif at length 30 under 10 % noise: where nothing can be enumerated, against exact answers all the same.

The score is additive, so the target can be sampled and its log-probabilities are known. KL from the target to the
trained law is a mean over exact samples, with its standard error; the policy's expected score is a mean over its own.

    OMP_NUM_THREADS=1 python -m benchmarks.motif --device cpu --seeds 3
"""

import itertools
import time
from typing import Any

import torch

from benchmarks.common import Row, arguments, rounded, write_cells
from sgfn.config import TrainConfig
from sgfn.evaluation.likelihood import log_law, mean_and_error
from sgfn.landscapes.motif import Motif
from sgfn.landscapes.tasks import Task, make_task
from sgfn.learning.execution import stepper
from sgfn.learning.trainer import Trainer
from sgfn.noise import UniformSlip

FACTOR, LENGTH, ALPHA = "CTCF", 30, 0.1
BETAS, OBJECTIVES = (3.0, 5.0), ("tb", "kl")
SAMPLES = 20_000


def make(config: TrainConfig, beta: float) -> tuple[Task, Motif]:
    """The motif task and its landscape."""
    task = make_task("motif", config.with_(beta=beta, motif__factor=FACTOR, motif__length=LENGTH, noise__alpha=ALPHA))
    assert isinstance(task.landscape, Motif)
    return task, task.landscape


def figures(trainer: Trainer, landscape: Motif, beta: float) -> dict[str, Any]:
    """Estimates with errors, beside the exact answers."""
    landscape.to(torch.device("cpu"))
    noise = UniformSlip(alpha=ALPHA)
    objects = landscape.exact_sample(SAMPLES, beta, torch.Generator().manual_seed(7))
    law = log_law(trainer.env, trainer.nets.log_policy, objects.to(trainer.device)).cpu()
    kl, kl_error = mean_and_error(landscape.log_prob(objects, beta) - law)
    blind = (1 - ALPHA) * landscape.target_conditional(beta) + ALPHA / 4
    known = {"kl_floor": landscape.floor_kl(beta, noise), "kl_blind": landscape.kl_to(blind, beta)}
    known |= {
        "target_score": landscape.expected_score(beta),
        "floor_score": landscape.floor_expected_score(beta, noise),
    }
    known["log_z_exact"] = landscape.log_partition(beta)
    landscape.to(trainer.device)
    score, score_error = mean_and_error(trainer.draw(SAMPLES, 7).scores.double())
    found = {"kl": kl, "kl_error": kl_error, "score": score, "score_error": score_error}
    return rounded({**found, "log_z": float(trainer.nets.log_z.detach()), **known})


def run(beta: float, objective: str, seed: int, steps: int, device: str) -> list[Row]:
    """Train and measure one cell."""
    config = TrainConfig().with_(objective=objective, seed=seed, steps=steps, batch=64, optim__lr=2e-3)
    task, landscape = make(config, beta)
    trainer, started = Trainer(task, torch.device(device)), time.monotonic()
    advance = stepper(trainer)
    for _ in range(steps):
        advance()
    trainer.check_finite()
    seconds = round(time.monotonic() - started, 1)
    row = {"beta": beta, "objective": objective, "seed": seed}
    return [{**row, **figures(trainer, landscape, beta), "seconds": seconds}]


def main() -> None:
    """Run the study, two runs at a time."""
    args = arguments(__doc__ or "", "motif.json", cells=True)
    runs = itertools.product(BETAS, OBJECTIVES, range(args.seeds))
    cells = {str(one): (*one, args.steps or 2000, args.device) for one in runs}
    about = {"factor": FACTOR, "length": LENGTH, "alpha": ALPHA, "samples": SAMPLES}
    write_cells(args, "motif", cells, run, jobs=2, **about)


if __name__ == "__main__":
    main()
