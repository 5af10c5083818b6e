"""TFBind8, beta 3: how near each objective comes to the target at five noise levels.

MLP 256 x 2, batch 256, 12,000 steps, learned dynamics, 5 seeds. One command rebuilds results/tfbind8_quality.json:

    python -m benchmarks.tfbind8_quality --device cuda
"""

from typing import Any

import torch

from benchmarks.common import Measure, arguments, tell, train_together, write_results
from sgfn.config import TrainConfig

ALPHAS = (0.0, 0.1, 0.25, 0.5, 0.75)
METHODS = (("marginal", "db"), ("marginal", "tb"), ("published", "db"), ("published", "tb"), ("blind", "db"))


def configs(alpha: float, seeds: int, steps: int) -> list[TrainConfig]:
    """All methods and seeds at one noise level."""
    base = TrainConfig().with_(batch=256, steps=steps, noise__alpha=alpha)
    return [base.with_(form=f, objective=o, seed=seed) for f, o in METHODS for seed in range(seeds)]


def main() -> None:
    """Run the study."""
    args = arguments(__doc__ or "", "tfbind8_quality.json")
    device, measure = torch.device(args.device), Measure()
    rows: list[dict[str, Any]] = []
    for alpha in ALPHAS:
        trainers, seconds = train_together("tfbind8", configs(alpha, args.seeds, args.steps or 12000), device)
        new = [measure(trainer) for trainer in trainers]
        rows += new
        print(f"alpha {alpha}: {len(new)} runs in {seconds:.0f} s, floor {new[0]['tv_floor']:.4f}")
        tell(new, METHODS, "tv")
        write_results(args.out, "tfbind8_quality", device, rows)


if __name__ == "__main__":
    main()
