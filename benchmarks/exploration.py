"""Which way to explore finds what is hidden, and how soon; every call of the score is counted.

python -m benchmarks.exploration ehrlich   Ehrlich functions from one feasible start, preset `explore`
python -m benchmarks.exploration rival     the same functions, start and calls by the genetic algorithm of holo-bench
                                           (package pytorch-holo, in an environment of its own with this one's packages)
python -m benchmarks.exploration grids     hypergrids with a low plain and with a lure: ways at equal trajectories
python -m benchmarks.exploration tell      the tables of docs/exploration.md, from the committed results

Rows that a file has already are not run again.
"""

import argparse
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.common import RESULTS, command, positive
from benchmarks.common import machine as described_machine
from sgfn.config import TrainConfig
from sgfn.config.files import read_json, write_json
from sgfn.config.presets import PRESETS
from sgfn.evaluation import exact
from sgfn.evaluation.measure import reference
from sgfn.landscapes.tasks import Task, make_task
from sgfn.learning.methods import make_learner

CALLS = 200_000
LEVEL = 0.75
CELLS = {
    "V 20, length 32": {"vocab": 20, "length": 32, "motifs": 4},
    "V 32, length 32": {"vocab": 32, "length": 32, "motifs": 4},
    "V 20, length 64": {"vocab": 20, "length": 64, "motifs": 4},
    "V 20, length 15": {"vocab": 20, "length": 15, "motifs": 2},
}
"""Ehrlich functions with motifs of 4 letters and quantisation 4; the seed of a run is that of its function too."""


@dataclass
class Watch:
    """Counts calls of a landscape's scores, and remembers what reached a level and when."""

    calls: int = 0
    best: float = 0.0
    reached: dict[float, int] = field(default_factory=dict)
    objects: set[bytes] = field(default_factory=set)
    """Distinct objects of at least `LEVEL`."""

    def see(self, objects: Tensor, scores: Tensor) -> None:
        """Count a batch of calls."""
        self.calls += len(objects)
        self.best = max(self.best, float(scores.max()))
        for level in (LEVEL, 1.0):
            if level not in self.reached and self.best >= level:
                self.reached[level] = self.calls
        self.objects |= {row.tobytes() for row in objects[scores >= LEVEL].to(torch.int16).numpy()}

    def row(self) -> dict[str, Any]:
        """What was found, for a file of results."""
        calls = {f"calls_to_{level:g}": self.reached.get(level) for level in (LEVEL, 1.0)}
        return {"calls": self.calls, "best": self.best, **calls, "distinct": len(self.objects)}


def watch(task: Task, watched: Watch) -> None:
    """Let a task's scores be counted from now on."""
    scores = task.landscape.scores

    def counting(objects: Tensor) -> Tensor:
        found = scores(objects)
        watched.see(objects, found)
        return found

    task.landscape.scores = counting


def ehrlich_config(cell: str, alpha: float, seed: int) -> TrainConfig:
    """The preset `explore` on a function; the exponent grows with the length, as the number of sequences does."""
    function = {f"ehrlich__{name}": value for name, value in CELLS[cell].items()}
    beta = 40.0 if CELLS[cell]["length"] > 32 else 20.0
    return PRESETS["explore"].with_(**function, ehrlich__seed=seed, noise__alpha=alpha, beta=beta, seed=seed)


def ehrlich(cell: str, alpha: float, seed: int) -> dict[str, Any]:
    """One run of ours, and what its policy samples afterwards."""
    task, watched = make_task("ehrlich", ehrlich_config(cell, alpha, seed)), Watch()
    watch(task, watched)
    began = time.process_time()
    learner = make_learner(task, torch.device("cpu"))
    for _ in range(learner.config.steps):
        learner.step()
    found = watched.row() | {"seconds": round(time.process_time() - began, 1)}
    explorer = learner.explorer  # pyright: ignore[reportAttributeAccessIssue]
    found["kept"] = int((explorer.archive.log_reward.exp() >= LEVEL - 1e-6).sum())
    samples = learner.draw(2000, seed)
    good = samples.objects[samples.scores >= LEVEL]
    return found | {
        "sample_mean": round(float(samples.scores.mean()), 4),
        "sample_best": float(samples.scores.max()),
        "sample_distinct": len(torch.unique(good, dim=0)),
    }


def rival(cell: str, alpha: float, seed: int) -> dict[str, Any]:
    """One run of holo-bench's genetic algorithm: 1,000 particles, mutation 1/L, recombination .1, survival .1.

    Under noise each particle is an order like ours: what comes out of it is scored, and is the particle from then on.
    """
    from holo.optim import DiscreteEvolution  # pyright: ignore[reportMissingImports]

    task, watched = make_task("ehrlich", ehrlich_config(cell, alpha, seed)), Watch()
    watch(task, watched)
    start, began = task.landscape.start_objects(), time.process_time()
    assert start is not None
    torch.manual_seed(seed)
    length, vocab = CELLS[cell]["length"], CELLS[cell]["vocab"]
    best = torch.nn.Parameter(start[0].float(), requires_grad=False)
    settings = {"mutation_prob": 1 / length, "recombine_prob": 0.1, "num_particles": 1000, "survival_quantile": 0.1}
    search, kept = DiscreteEvolution([best], list(range(vocab)), **settings), 0

    def loss(buffers: list[Tensor]) -> Tensor:
        nonlocal kept
        slips = torch.rand(buffers[0].shape) < alpha
        buffers[0].copy_(torch.where(slips, torch.randint(vocab, slips.shape).float(), buffers[0]))
        objects = buffers[0].long()
        scores = task.landscape.scores(objects)
        kept = len(torch.unique(objects[scores >= LEVEL], dim=0))
        return torch.where(task.landscape.feasible(objects), -scores, torch.inf)  # pyright: ignore

    for _ in range(CALLS // 1000):
        search.step(loss)
    return watched.row() | {"seconds": round(time.process_time() - began, 1), "kept": kept}


# hypergrids

GRIDS = {
    "corners 2 x 16": {"grid__ndim": 2, "grid__side": 16, "grid__r0": 1e-4},
    "lure 2 x 16": {"grid__ndim": 2, "grid__side": 16, "grid__r0": 1e-5, "grid__shape": "deceptive"},
}
_NET = {"net__hidden": 64, "optim__lr": 2e-3, "optim__log_z_factor": 50.0, "reward__minimum": 1e-5}
_LEARNED = {"dynamics__mode": "known"}
WAYS: dict[str, dict[str, Any]] = {
    "constant .01": {},
    "constant .1": {"explore": 0.1},
    "entropy": {"exploration": "entropy"},
    "entropy-state": {"exploration": "entropy-state"},
    "novelty": {"exploration": "novelty"},
    "best": {"exploration": "best"},
    "surprise": {"exploration": "surprise"},
    "local": {"exploration": "local", "batch": 16, "local__count": 16},
    "local+novelty": {"exploration": "local+novelty", "batch": 16, "local__count": 16},
    "ppo": {"method": "ppo"},
    "sac": {"method": "sac"},
    "mars": {"method": "mars"},
}
"""Ways and peers, each with 32 trajectories a step."""
LOOK = 10


def grid_config(cell: str, way: str, alpha: float, seed: int) -> TrainConfig:
    """Settings of one run; peers have no replay and no model of the noise to read."""
    own = WAYS[way]
    flows = {} if "method" in own else {**_LEARNED, "replay__updates": 1}
    net = {**_NET} if "method" not in own else {name: value for name, value in _NET.items() if "optim" not in name}
    settings = {"steps": 250, "batch": 32, **net, **flows, **GRIDS[cell], **own}
    return TrainConfig().with_(**settings, noise__alpha=alpha, seed=seed)


def corner(objects: Tensor, side: int) -> Tensor:
    """The corner that each cell lies in, numbered."""
    upper = (2 * objects > side - 1).long()
    return (upper * 2 ** torch.arange(objects.shape[-1])).sum(-1)


def grid(cell: str, way: str, alpha: float, seed: int) -> dict[str, Any]:
    """One run: calls until the peaks of all corners were seen, and until the law is near the floor."""
    config = grid_config(cell, way, alpha, seed)
    task = make_task("grid", config)
    laws, landscape, side, ndim = reference(task), task.landscape, config.grid.side, config.grid.ndim
    modes, seen, calls, all_seen = 2**ndim, set(), 0, None
    scores = landscape.scores

    def counting(objects: Tensor) -> Tensor:
        nonlocal calls, all_seen
        found = scores(objects)
        calls += len(objects)
        seen.update(corner(objects[found >= landscape.mode_level - 1e-4], side).tolist())
        if all_seen is None and len(seen) == modes:
            all_seen = calls
        return found

    landscape.scores = counting
    began, near, tv = time.process_time(), None, 1.0
    floor = exact.total_variation(laws.floor, laws.target) if laws.floor is not None else 0.0
    learner = make_learner(task, torch.device("cpu"))
    for step in range(1, config.steps + 1):
        learner.step()
        if learner.has_law and step % LOOK == 0:
            tv = exact.total_variation(learner.law(), laws.target)
            near = calls if near is None and tv <= goal(floor) else near
    return {
        "calls": calls,
        "modes": len(seen),
        "calls_to_all_modes": all_seen,
        "calls_to_goal": near,
        "tv": round(tv, 4) if learner.has_law else None,
        "floor": round(floor, 4),
        "seconds": round(time.process_time() - began, 1),
    }


def goal(floor: float) -> float:
    """Distance that counts as near: 1.2 times the floor, and .1 more, as the floor without noise is zero."""
    return 1.2 * floor + 0.1


# cells, files and tables

Run = Callable[..., dict[str, Any]]
STUDIES: dict[str, tuple[Run, str, dict[str, Iterable[Any]]]] = {
    "ehrlich": (ehrlich, "exploration_ehrlich.json", {"cell": CELLS, "alpha": (0.0, 0.1)}),
    "rival": (rival, "exploration_rival.json", {"cell": CELLS, "alpha": (0.0, 0.1)}),
    "grids": (grid, "exploration_grids.json", {"cell": GRIDS, "alpha": (0.0, 0.25), "way": WAYS}),
}


def one(study: str, cell: dict[str, Any]) -> dict[str, Any]:
    """One run in a process of its own, on one thread."""
    torch.set_num_threads(1)
    return cell | STUDIES[study][0](**cell)


def cells_of(study: str, seeds: int) -> Iterator[dict[str, Any]]:
    """All runs of a study, seed by seed, so that a study that is stopped has few whole seeds, not few cells."""
    axes = STUDIES[study][2]
    for seed, *values in product(range(seeds), *axes.values()):
        yield dict(zip(axes, values, strict=True)) | {"seed": seed}


def run(study: str, seeds: int, jobs: int, out: Path) -> None:
    """Run what the file does not have yet; it is written after every run."""
    there = read_json(out)["rows"] if out.is_file() else []
    wanted = [cell for cell in cells_of(study, seeds) if not any(cell.items() <= row.items() for row in there)]
    about = {"command": command("exploration"), "machine": described_machine(torch.device("cpu"))}
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for done in as_completed([pool.submit(one, study, cell) for cell in wanted]):
            there.append(done.result())
            order = {str(cell): place for place, cell in enumerate(cells_of(study, seeds))}
            keys = [*STUDIES[study][2], "seed"]
            there.sort(key=lambda row: order.get(str({key: row[key] for key in keys}), len(order)))
            write_json(out, {**about, "rows": there})
            print(there[-1] if len(there) == len(order) else done.result(), flush=True)


def tell() -> None:
    """Print the tables of docs/exploration.md."""
    from benchmarks.exploration_tables import ehrlich_table, grid_table

    print(ehrlich_table())
    print()
    print(grid_table())


def main() -> None:
    """Run a study, or print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", choices=[*STUDIES, "tell"])
    parser.add_argument("--seeds", type=positive, default=5)
    parser.add_argument("--jobs", type=positive, default=1)
    parser.add_argument("--out", type=Path, default=None)
    args = parser.parse_args()
    if args.study == "tell":
        return tell()
    return run(args.study, args.seeds, args.jobs, args.out or RESULTS / STUDIES[args.study][1])


if __name__ == "__main__":
    main()
