"""The presets `exact` and `frugal` on TFBind8: distance to the target, seconds and trajectories.

Runs go one after another, so that the seconds are those of one run alone (set-up and graph capture included):

    python -m benchmarks.tfbind8_presets exact --device cuda --seeds 3
    python -m benchmarks.tfbind8_presets exact kl --device cuda --seeds 3
    python -m benchmarks.tfbind8_presets frugal --device cuda --seeds 3
"""

import time
from typing import Any

import torch

from benchmarks.common import RESULTS, Measure, arguments, spread, train_together, write_results
from sgfn.config.presets import PRESETS

ALPHAS = {("exact", "tb"): (0.0, 0.1, 0.25, 0.5, 0.75), ("exact", "kl"): (0.5, 0.75), ("frugal", "tb"): (0.25,)}


def main() -> None:
    """Run the study."""
    args = arguments(__doc__ or "", None, preset=["exact", "frugal"], objective=["tb", "kl"])
    preset, objective = args.preset, args.objective
    out = args.out or RESULTS / f"tfbind8_{preset}_{objective}.json"
    device, measure = torch.device(args.device), Measure()
    rows: list[dict[str, Any]] = []
    for alpha in ALPHAS[preset, objective]:
        for seed in range(args.seeds):
            config = PRESETS[preset].with_(objective=objective, seed=seed, noise__alpha=alpha)
            config = config.with_(steps=args.steps or config.steps)
            started = time.monotonic()
            (trainer,), _ = train_together("tfbind8", [config], device)
            seconds = time.monotonic() - started
            trajectories = (config.steps + 1) * config.batch  # one batch more to guess log Z
            rows.append(
                {"preset": preset, "seconds": round(seconds, 2), "trajectories": trajectories, **measure(trainer)}
            )
        new = [row for row in rows if row["alpha"] == alpha]
        tv, seconds = spread(r["tv"] for r in new), spread(r["seconds"] for r in new)
        print(f"{preset} {objective} alpha {alpha}: TV %.4f [%.4f, %.4f]" % tv, end=" ")
        print(f"floor {new[0]['tv_floor']:.4f}, %.1f s [%.1f, %.1f]" % seconds, flush=True)
        write_results(out, "tfbind8_presets", device, rows)


if __name__ == "__main__":
    main()
