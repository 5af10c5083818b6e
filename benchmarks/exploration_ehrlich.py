"""Ehrlich functions from one feasible start: the preset `explore`, and holo-bench's genetic algorithm beside it."""

import time
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from sgfn.config import TrainConfig
from sgfn.config.presets import PRESETS
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
