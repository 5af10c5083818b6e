"""Sub-trajectory balance beside its neighbours on a small budget: TFBind8, 2,000 updates of 64 trajectories.

python -m benchmarks.subtb --device cpu --seeds 3
"""

from typing import Any

import torch

from benchmarks.common import Row, arguments, measure, spread, train_together, write_cells
from sgfn.config import TrainConfig

METHODS: dict[str, dict[str, Any]] = {
    "marginal TB": {"objective": "tb"},
    "marginal SubTB(.9)": {"objective": "subtb"},
    "marginal DB": {"objective": "db"},
    "kl, TB flow": {"objective": "kl"},
    "kl, SubTB(.9) flow": {"objective": "kl", "kl__flow": "subtb"},
}
ALPHAS = (0.25, 0.5)


def study(alpha: float, name: str, seeds: int, steps: int, device: str) -> list[Row]:
    """Train and measure all seeds of a method at one noise level, side by side."""
    base = TrainConfig().with_(steps=steps, batch=64, noise__alpha=alpha, **METHODS[name])
    configs = [base.with_(seed=seed) for seed in range(seeds)]
    trainers, _ = train_together("tfbind8", configs, torch.device(device))
    return [{"method": name, **measure()(trainer)} for trainer in trainers]


def told(rows: list[Row]) -> None:
    """Print the median of a cell."""
    tv = spread(row["tv"] for row in rows)
    print(f"alpha {rows[0]['alpha']} {rows[0]['method']}: TV %.4f [%.4f, %.4f]" % tv, flush=True)


def main() -> None:
    """Run the study."""
    args = arguments(__doc__ or "", "subtb.json", cells=True)
    more = (args.seeds, args.steps or 2000, args.device)
    cells = {f"alpha {alpha}, {name}": (alpha, name, *more) for alpha in ALPHAS for name in METHODS}
    write_cells(args, "subtb", cells, study, told)


if __name__ == "__main__":
    main()
