"""Comparisons: methods, noise levels and seeds as cells, the processes that work on them, and what they found."""

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sgfn.compare.names import DEFAULT
from sgfn.config import TrainConfig
from sgfn.config.lazy import lazy_attributes

if TYPE_CHECKING:
    from sgfn.compare.comparison import Comparison

__all__ = ["Comparison", "compare"]


def compare(
    task: str,
    config: TrainConfig,
    out: Path | str,
    *,
    methods: Sequence[str] = DEFAULT,
    alphas: Sequence[float] | None = None,
    seeds: int = 3,
    jobs: int = 1,
    device: str = "auto",
    accelerate: str = "auto",
    samples: int = 2048,
    progress: Callable[..., None] | None = None,
    baseline: TrainConfig | None = None,
    said: Collection[str] = (),
    trust: bool = False,
    cluster: str | None = None,
    cluster_cpus: float = 1.0,
    cluster_gpus: float | None = None,
) -> "Comparison":
    """Train and evaluate every method at every noise level with every seed; cells that are done already are kept.

    Each cell is a run folder OUT/METHOD/alphaA/seedS, trained in a process of its own, `jobs` at a time. One that fails
    leaves the others alone and is tried again by the next call, which also continues what was stopped. Methods, noise
    levels and seeds may be added later; another configuration is refused. `baseline` is the recipe that the
    configuration began with: whatever differs from it, and what `said` names, must be read by some method. `progress`
    is called a few times a second with the state of each cell that was asked for. Methods of a folder that is there
    which are code, and are not named again, are not imported unless the folder is trusted. With `cluster` (local, auto
    or HOST:PORT) cells are jobs of Ray, each with so many CPUs and GPUs of a node; one whose worker or node is lost is
    tried again.
    """
    from sgfn.compare.comparison import run_comparison  # torch is slow to import

    chosen = {"methods": methods, "alphas": alphas, "seeds": seeds, "jobs": jobs, "device": device}
    how = {
        "accelerate": accelerate,
        "samples": samples,
        "progress": progress,
        "baseline": baseline,
        "said": said,
        "trust": trust,
    }
    nodes = {"cluster": cluster, "cluster_cpus": cluster_cpus, "cluster_gpus": cluster_gpus}
    return run_comparison(task, config, Path(out), **chosen, **how, **nodes)


__getattr__ = lazy_attributes(__name__, {"Comparison": "sgfn.compare.comparison"})
