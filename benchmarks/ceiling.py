"""Metrics of 2,048 draws from the best reachable law itself: no policy with that law samples better.

python -m benchmarks.ceiling --device cpu --seeds 20

TFBind8 at the published noise levels and at both exponents; seeds are those of the draws.
"""

from typing import Any

import torch

from benchmarks.common import arguments, rounded, write_cells
from benchmarks.published import SAMPLES, STUDIES
from sgfn.config import TrainConfig
from sgfn.envs.laws import check_size
from sgfn.envs.trajectories import Samples
from sgfn.evaluation.measure import reference, sample_figures
from sgfn.landscapes.tasks import make_task

KEYS = ("top100_mean", "modes_greedy", "modes_reference")


def draws(cell: dict[str, Any], config: TrainConfig, seeds: int) -> list[dict[str, Any]]:
    """One row for each set of draws."""
    task = make_task(STUDIES["tfbind8"].task, config)
    law, objects, rows = reference(task).floor, check_size(task.env).all_objects(), []
    assert law is not None
    scores = task.landscape.scores(objects)
    for seed in range(seeds):
        generator = torch.Generator().manual_seed(seed)
        drawn = torch.multinomial(law, SAMPLES, replacement=True, generator=generator)
        found = sample_figures(task, Samples(objects=objects[drawn], scores=scores[drawn], intended=objects[drawn]))
        rows.append(cell | {"seed": seed} | rounded({key: found[key] for key in KEYS}))
    return rows


def main() -> None:
    """Run the study for all noise levels and exponents."""
    args = arguments(__doc__ or "", "published_ceiling.json", cells=True)
    args.device = "cpu"
    cells = {str(cell): (cell, config, args.seeds) for cell, config in STUDIES["tfbind8"].cells(None)}
    write_cells(args, "ceiling", cells, draws, lambda rows: print(f"{len(rows)} draws at {rows[0]['alpha']}"))


if __name__ == "__main__":
    main()
