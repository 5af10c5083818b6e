"""The presets `exact` and `frugal` on TFBind8: distance to the target, seconds and trajectories.

Runs go one after another, so that the seconds are those of one run alone (set-up and graph capture included):

    python -m benchmarks.tfbind8_presets --device cuda --seeds 3
"""

import time
from typing import Any

import torch

from benchmarks.common import Measure, arguments, spread, train_together, write_results
from sgfn.presets import PRESETS

STUDIES = [("exact", 0.0), ("exact", 0.1), ("exact", 0.25), ("frugal", 0.25)]


def main() -> None:
    """Run the study."""
    args = arguments(__doc__ or "", "tfbind8_presets.json")
    device, measure = torch.device(args.device), Measure()
    rows: list[dict[str, Any]] = []
    for preset, alpha in STUDIES:
        for seed in range(args.seeds):
            config = PRESETS[preset].with_(seed=seed, noise__alpha=alpha)
            config = config.with_(steps=args.steps or config.steps)
            started = time.monotonic()
            (trainer,), _ = train_together("tfbind8", [config], device)
            seconds = time.monotonic() - started
            trajectories = config.steps * config.batch
            rows.append(
                {"preset": preset, "seconds": round(seconds, 2), "trajectories": trajectories, **measure(trainer)}
            )
        new = [row for row in rows if (row["preset"], row["alpha"]) == (preset, alpha)]
        tv, seconds = spread(r["tv"] for r in new), spread(r["seconds"] for r in new)
        print(f"{preset} alpha {alpha}: TV %.4f [%.4f, %.4f]" % tv, end=" ")
        print(f"floor {new[0]['tv_floor']:.4f}, %.1f s [%.1f, %.1f]" % seconds, flush=True)
        write_results(args.out, "tfbind8_presets", device, rows)


if __name__ == "__main__":
    main()
