"""TFBind8, beta 3: how near each objective comes to the target at five noise levels.

MLP 256 x 2, batch 256, 12,000 steps, learned dynamics, 5 seeds. One command rebuilds results/tfbind8_quality.json:

    python -m benchmarks.tfbind8_quality --device cuda
"""

import torch

from benchmarks.common import Row, arguments, measure, tell, train_together, write_cells
from sgfn.config import TrainConfig

ALPHAS = (0.0, 0.1, 0.25, 0.5, 0.75)
METHODS = (("marginal", "db"), ("marginal", "tb"), ("published", "db"), ("published", "tb"), ("blind", "db"))


def configs(alpha: float, seeds: int, steps: int) -> list[TrainConfig]:
    """All methods and seeds at one noise level."""
    base = TrainConfig().with_(batch=256, steps=steps, noise__alpha=alpha)
    return [base.with_(form=f, objective=o, seed=seed) for f, o in METHODS for seed in range(seeds)]


def level(alpha: float, seeds: int, steps: int, device: str) -> list[Row]:
    """Train and measure all runs of one noise level, side by side."""
    trainers, seconds = train_together("tfbind8", configs(alpha, seeds, steps), torch.device(device))
    print(f"alpha {alpha}: {len(trainers)} runs in {seconds:.0f} s")
    return [measure()(trainer) for trainer in trainers]


def told(rows: list[Row]) -> None:
    """Print the medians of one noise level."""
    print(f"alpha {rows[0]['alpha']}: floor {rows[0]['tv_floor']:.4f}")
    tell(rows, METHODS, "tv")


def main() -> None:
    """Run the study."""
    args = arguments(__doc__ or "", "tfbind8_quality.json", cells=True)
    steps = args.steps or 12000
    cells = {f"alpha {alpha}": (alpha, args.seeds, steps, args.device) for alpha in ALPHAS}
    write_cells(args, "tfbind8_quality", cells, level, told)


if __name__ == "__main__":
    main()
