"""`sample`: draw from a trained run into a file."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from jaxtyping import Int
from torch import Tensor

from sgfn.config.checks import in_range
from sgfn.envs import Env, SequenceEnv
from sgfn.evaluation.orders import as_orders
from sgfn.learning.execution import pick_device
from sgfn.learning.learner import Learner
from sgfn.runs.folder import Run
from sgfn.runs.sample_files import WRITERS, writing
from sgfn.runs.spelling import Letters, spell, spell_objects
from sgfn.runs.table_files import kind_of

Progress = Callable[[int], None]
"""Told how many samples are written, block by block."""


def sample(
    run: Path | str,
    n: int,
    out: Path | str,
    *,
    seed: int = 0,
    device: str = "auto",
    overwrite: bool = False,
    progress: Progress | None = None,
) -> int:
    """Draw n objects from a trained run into a CSV (or .csv.gz, or .parquet), block by block: memory stays flat.

    Columns: what was realised, its score, and what was intended. Of a forecast: n paths of each series, as unique_id,
    sample, ds, y.
    """
    out = Path(out)
    if n < 1:
        raise ValueError(f"-n must be at least 1, got {n}")
    in_range("seed", seed, 0, 2**31 - 1)
    if out.exists() and not overwrite:
        raise ValueError(f"{out} exists: add --overwrite to replace it, or give --out another name")
    if Run(path=Path(run)).read_config()[0] == "series":
        return sample_paths(Path(run), n, out, seed, device)
    kind_of(out, WRITERS)
    write_samples(Run(path=Path(run)).load(pick_device(device)), n, out, seed, progress)
    return n


def write_samples(learner: Learner, n: int, out: Path, seed: int, progress: Progress | None = None) -> None:
    """Draw from a learner into a file, whole or absent."""
    env, done = learner.task.env, 0
    with writing(out) as write:
        for block in learner.stream(n, seed):
            texts = spell_objects(env, block.objects.numpy())
            write(texts, block.scores.numpy(), _spell_intended(env, block.intended))
            done += block.scores.shape[0]
            if progress is not None:
                progress(done)


def _spell_intended(env: Env, intended: Int[Tensor, "N T"]) -> Letters:
    """Orders as text; on a grid, the numbers of the moves."""
    if isinstance(env, SequenceEnv):
        return spell_objects(env, (as_orders(env, intended) if env.stop else intended).numpy())
    return spell(intended.numpy(), [str(i) for i in range(env.actions)], " ")


def sample_paths(run: Path, n: int, out: Path, seed: int, device: str) -> int:
    """Draw n paths of each series that a forecast has learned, from its end on, into a CSV or Parquet file."""
    files, forecaster = import_module("sgfn.series.files"), import_module("sgfn.series.forecaster")

    kind_of(out, files.WRITERS)
    drawn = forecaster.Forecaster.load(run, device=device).predict(samples=n, seed=seed)
    files.write_table(out, files.path_table(drawn))
    return n * len(drawn)
