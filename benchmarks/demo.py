"""What `make demo` reaches on this machine: time and distance of the preset `table`.

python -m benchmarks.demo --device cpu --seeds 1
"""

import time
from typing import Any

import torch

from benchmarks.common import Measure, arguments, train_together, write_results
from sgfn.config.presets import PRESETS


def main() -> None:
    """Run the study."""
    args = arguments(__doc__ or "", "demo_cpu.json")
    device, measure = torch.device(args.device), Measure()
    rows: list[dict[str, Any]] = []
    for seed in range(args.seeds):
        config = PRESETS["table"].with_(seed=seed)
        started = time.monotonic()
        (trainer,), _ = train_together("tfbind8", [config.with_(steps=args.steps or config.steps)], device)
        seen = (trainer.config.steps + 1) * config.batch  # one batch more to guess log Z
        took = {"seconds": round(time.monotonic() - started, 1), "trajectories": seen}
        rows.append({"preset": "table", **took, **measure(trainer)})
        print(rows[-1], flush=True)
    write_results(args.out, "demo", device, rows)


if __name__ == "__main__":
    main()
