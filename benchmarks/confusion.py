"""TFBind8 under random confusion matrices: how well the default noise model, a network, recovers them while training.

OMP_NUM_THREADS=1 python -m benchmarks.confusion --device cpu --seeds 3
"""

import tempfile
import time
from pathlib import Path

import torch
from jaxtyping import Float64
from torch import Tensor

from benchmarks.common import Measure, Row, arguments, rounded, spread, write_cells
from sgfn.config import TrainConfig
from sgfn.landscapes.tasks import make_task
from sgfn.landscapes.tfbind8 import ALPHABET
from sgfn.learning.dynamics import count_estimate
from sgfn.learning.execution import stepper
from sgfn.learning.rollout import rollout
from sgfn.learning.trainer import Trainer

ERRORS = 0.25


def random_matrix(seed: int) -> Float64[Tensor, "V V"]:
    """A random confusion matrix: a quarter of all letters are wrong, and an eighth to three eighths of each one."""
    generator = torch.Generator().manual_seed(seed)
    shape = (len(ALPHABET), len(ALPHABET))
    other = torch.rand(shape, generator=generator, dtype=torch.float64).fill_diagonal_(0.0)
    wrong = ERRORS * (0.5 + torch.rand(shape[0], 1, generator=generator, dtype=torch.float64))
    return torch.diag(1.0 - wrong[:, 0]) + wrong * other / other.sum(-1, keepdim=True)


def write_matrix(file: Path, matrix: Float64[Tensor, "V V"]) -> None:
    """Write a matrix in the file format that users give."""
    rows = [[letter, *map(repr, row)] for letter, row in zip(ALPHABET, matrix.tolist(), strict=True)]
    file.write_text("\n".join(",".join(row) for row in [["", *ALPHABET], *rows]), encoding="utf-8")


@torch.no_grad()
def recovered(trainer: Trainer, matrix: Float64[Tensor, "V V"]) -> dict[str, float]:
    """Total variation of each letter's law, as the network has it at visited prefixes, and as counts have it."""
    generator = torch.Generator(trainer.device).manual_seed(2)
    batch = rollout(trainer.env, trainer.nets.log_policy, trainer.task.log_reward, batch=4096, generator=generator)
    learned = trainer.general.noise_kernel(batch.states[:, :-1]).matrix().double().cpu()  # B T A K
    rows = (learned - matrix).abs().sum(-1).flatten(0, 1).mean(0) / 2  # A: each letter weighs the same
    counts = (count_estimate(trainer.env, batch).cpu() - matrix).abs().sum(-1) / 2
    return {"tv_rows": float(rows.mean()), "tv_worst_row": float(rows.max()), "tv_counts": float(counts.mean())}


def trained(seed: int, steps: int | None, device: torch.device, folder: Path) -> Row:
    """One matrix, one run with the default configuration."""
    file, matrix = folder / f"confusion-{seed}.csv", random_matrix(seed)
    write_matrix(file, matrix)
    config = TrainConfig().with_(seed=seed, noise__file=file, noise__kind="confusion")
    config = config.with_(steps=steps or config.steps)
    trainer, started = Trainer(make_task("tfbind8", config), device), time.monotonic()
    advance = stepper(trainer)
    for _ in range(config.steps):
        advance()
    trainer.check_finite()
    seconds = time.monotonic() - started
    figures = Measure()(trainer) | rounded(recovered(trainer, matrix))
    figures["alpha"] = None  # the matrix says how much noise there is
    found = {"errors": 1.0 - float(matrix.diagonal().mean()), "seconds": seconds}
    return {**figures, **rounded(found), "steps": config.steps, "batch": config.batch, "matrix": matrix.tolist()}


def study(seed: int, steps: int | None, device: str) -> list[Row]:
    """The row of one seed."""
    with tempfile.TemporaryDirectory() as folder:
        return [trained(seed, steps, torch.device(device), Path(folder))]


def told(rows: list[Row]) -> None:
    """Print the figures of a run."""
    for row in rows:
        found = {name: row[name] for name in ("dynamics_tv", "tv_rows", "tv_worst_row", "tv_counts", "tv")}
        print(f"seed {row['seed']}, {row['seconds']:.0f} s: {found}, floor {row['tv_floor']}", flush=True)


def main() -> None:
    """Run the study."""
    args = arguments(__doc__ or "", "confusion.json", cells=True)
    cells = {f"seed {seed}": (seed, args.steps, args.device) for seed in range(args.seeds)}
    rows = write_cells(args, "confusion", cells, study, told)
    median, low, high = spread(row["dynamics_tv"] for row in rows)
    print(f"mean TV of the noise model: median {median:.5f} [{low:.5f}, {high:.5f}]")


if __name__ == "__main__":
    main()
