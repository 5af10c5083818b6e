"""`sample`: draw from a trained run into a file."""

from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path

from jaxtyping import Int
from torch import Tensor

from sgfn.config.checks import in_range, require, whole_number
from sgfn.config.files import check_target, resolved
from sgfn.envs import Env
from sgfn.envs.trajectories import Samples
from sgfn.landscapes.base import Landscape
from sgfn.runs.folder import Run
from sgfn.runs.model import opened
from sgfn.runs.sample_files import WRITERS, writing
from sgfn.runs.spelling import ORIGINS, TextRows, spell_intended, spell_objects, text_rows
from sgfn.runs.table_files import kind_of
from sgfn.runs.trust import Trust

Progress = Callable[[int], None]
"""Told how many samples are written, block by block."""


def sample(
    run: Path | str,
    n: int,
    out: Path | str,
    *,
    temperature: float = 1.0,
    greedy: bool = False,
    seed: int = 0,
    device: str = "auto",
    overwrite: bool = False,
    progress: Progress | None = None,
    trust: Trust = False,
) -> int:
    """Draw n objects from a trained run into a CSV (or .csv.gz, or .parquet), block by block: memory stays flat.

    Columns: what was realised, its score in the user's units, what was intended, and of a table whether the score was
    measured or predicted. A temperature above 1 flattens the policy, one below 1 sharpens it; `greedy` always intends
    what is most probable. Of a forecast: n paths of each series, as unique_id, sample, ds, y. Code that only the run
    names is not run unless it is trusted, see `evaluate`.
    """
    out = Path(out)
    require(n >= 1, "-n", "be at least 1", n)
    in_range("-n", n, 1, 10**9)
    whole_number("seed", seed, 0, 2**31 - 1)
    check_target(out, overwrite=overwrite)
    folder = Run(path=Path(run), trust=trust)
    folder.refuse_own(out)
    if folder.read_config()[0] == "series":
        if temperature != 1.0 or greedy:
            raise ValueError(
                f"{folder.path} holds a forecast, which has no policy to change: leave temperature and greedy out"
            )
        return sample_paths(folder, n, out, seed, device)
    kind_of(out, WRITERS)
    model = opened(folder, device)
    write_samples(model.env, model.stream(n, temperature, greedy, seed=seed), out, progress, model.task.landscape)
    return n


def write_samples(
    env: Env,
    blocks: Iterable[Samples],
    out: Path,
    progress: Progress | None = None,
    landscape: Landscape | None = None,
) -> None:
    """Write blocks of samples into a file, whole or absent; a landscape tells scores in the user's units, and one of
    measurements which of them were measured."""
    done = 0
    origin = landscape is not None and landscape.measured(env.objects(env.initial(1))) is not None
    with writing(out, origin=origin) as write:
        for block in blocks:
            texts = spell_objects(env, block.objects.numpy())
            others = [spell_origins(landscape, block.objects)] if landscape is not None and origin else []
            scores = block.scores if landscape is None else landscape.told(block.objects, block.scores)
            write(texts, scores.numpy(), spell_intended(env, block.intended), *others)
            done += block.scores.shape[0]
            if progress is not None:
                progress(done)


def spell_origins(landscape: Landscape, objects: Int[Tensor, "N O"]) -> TextRows:
    """`measured` or `predicted` for each object."""
    known = landscape.measured(objects)
    assert known is not None
    return text_rows([one.encode() for one in ORIGINS]).take(known.long().cpu().numpy(), 0)


def sample_paths(run: Run, n: int, out: Path, seed: int, device: str) -> int:
    """Draw n paths of each series that a forecast has learned, from its end on, into a CSV or Parquet file."""
    files, forecaster = import_module("sgfn.series.files"), import_module("sgfn.series.forecaster")

    kind_of(out, files.WRITERS)
    if out.name in files.FILES and resolved(out.parent) == resolved(run.path):
        raise ValueError(f"{out} is a file that the forecast itself wrote: give --out another name")
    drawn = forecaster.Forecaster.load(run.path, device=device, trust=run.trust).predict(samples=n, seed=seed)
    files.write_table(out, files.path_table(drawn))
    return n * len(drawn)
