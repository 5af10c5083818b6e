"""Sub-trajectory balance beside its neighbours on a small budget: TFBind8, 2,000 updates of 64 trajectories.

python -m benchmarks.subtb --device cpu --seeds 3
"""

from typing import Any

import torch

from benchmarks.common import Measure, arguments, spread, train_together, write_results
from sgfn.config import TrainConfig

METHODS: dict[str, dict[str, Any]] = {
    "marginal TB": {"objective": "tb"},
    "marginal SubTB(.9)": {"objective": "subtb"},
    "marginal DB": {"objective": "db"},
    "kl, TB flow": {"objective": "kl"},
    "kl, SubTB(.9) flow": {"objective": "kl", "kl__flow": "subtb"},
}
ALPHAS = (0.25, 0.5)


def main() -> None:
    """Run the study."""
    args = arguments(__doc__ or "", "subtb.json")
    device, measure = torch.device(args.device), Measure()
    rows: list[dict[str, Any]] = []
    for alpha in ALPHAS:
        for name, changes in METHODS.items():
            base = TrainConfig().with_(steps=args.steps or 2000, batch=64, noise__alpha=alpha, **changes)
            configs = [base.with_(seed=seed) for seed in range(args.seeds)]
            trainers, seconds = train_together("tfbind8", configs, device)
            new = [{"method": name, **measure(trainer)} for trainer in trainers]
            rows += new
            print(f"alpha {alpha} {name}: TV %.4f [%.4f, %.4f]" % spread(r["tv"] for r in new), f"{seconds:.0f} s")
    write_results(args.out, "subtb", device, rows)


if __name__ == "__main__":
    main()
