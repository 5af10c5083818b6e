"""Hypergrid 8 x 8 with the published rewards: mean L1 to the target after 20,000 steps of 16 trajectories.

python -m benchmarks.grid_quality --device cuda
"""

from typing import Any

import torch

from benchmarks.common import Measure, arguments, tell, train_together, write_results
from sgfn.config import TrainConfig

ALPHAS = (0.25, 0.5)
METHODS = (("marginal", "tb"), ("marginal", "db"), ("published", "tb"), ("published", "db"))


def main() -> None:
    """Run the study."""
    args = arguments(__doc__ or "", "grid_quality.json")
    device, measure = torch.device(args.device), Measure()
    rows: list[dict[str, Any]] = []
    for alpha in ALPHAS:
        base = TrainConfig().with_(batch=16, steps=args.steps or 20000, noise__alpha=alpha)
        configs = [base.with_(form=f, objective=o, seed=s) for f, o in METHODS for s in range(args.seeds)]
        trainers, seconds = train_together("grid", configs, device)
        new = [measure(trainer) for trainer in trainers]
        for row in new:
            row["optimum_l1"] = round(2 * row["tv_floor"] / 64, 7)
        rows += new
        print(f"alpha {alpha}: {len(new)} runs in {seconds:.0f} s, optimum {new[0]['optimum_l1']:.5f}")
        tell(new, METHODS, "l1_mean")
        write_results(args.out, "grid_quality", device, rows)


if __name__ == "__main__":
    main()
