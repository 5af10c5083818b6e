"""All ways to explore, and peers, on tasks where exploration decides, each with as many trajectories a step."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from sgfn.config import TrainConfig
from sgfn.envs.laws import enumerable
from sgfn.evaluation import exact
from sgfn.evaluation.measure import reference
from sgfn.landscapes.bits import Bits
from sgfn.landscapes.ehrlich import Ehrlich
from sgfn.landscapes.hypergrid import Hypergrid
from sgfn.landscapes.offline import training_objects
from sgfn.landscapes.tasks import Task, make_task
from sgfn.learning.learner import Learner
from sgfn.learning.methods import make_learner
from sgfn.learning.rollout import rollout
from sgfn.learning.trainer import Trainer

BATCH = 64
"""Trajectories a step, proposals included."""
LOOK, LARGE = 5, 10_000
"""Steps between two exact laws, twice as many in spaces of more states than that."""
LONGER = 3.2
"""Budget of constant epsilon beside that of all others, so that a factor of 3 is decided where a way reaches a goal."""
_GRID = {"task": "grid", "steps": 400, "reward__minimum": 1e-6, "optim__log_z_factor": 50.0}
_WORDS = {"steps": 500, "optim__log_z_factor": 300.0}
_EHRLICH = {"task": "ehrlich", **_WORDS, "beta": 20.0, "ehrlich__vocab": 20}
RNA, LONG = "RNA 14, beta 40", "Ehrlich V 20, length 32"
TASKS: dict[str, dict[str, Any]] = {
    "corners 2 x 20, R0 1e-3": {**_GRID, "grid__ndim": 2, "grid__side": 20, "grid__r0": 1e-3},
    "corners 2 x 64, R0 1e-3": {**_GRID, "grid__ndim": 2, "grid__side": 64, "grid__r0": 1e-3},
    "corners 4 x 8, R0 1e-4": {**_GRID, "grid__ndim": 4, "grid__side": 8, "grid__r0": 1e-4},
    "corners 4 x 12, R0 1e-5": {**_GRID, "steps": 480, "grid__ndim": 4, "grid__side": 12, "grid__r0": 1e-5},
    "lure 3 x 10, R0 1e-5": {**_GRID, "grid__ndim": 3, "grid__side": 10, "grid__r0": 1e-5, "grid__shape": "deceptive"},
    "bits 64, beta 100": {"task": "bits", **_WORDS, "bits__length": 64, "bits__modes": 6, "beta": 100.0}
    | {"bits__distance": "hamming"},
    "Ehrlich V 20, length 15": {**_EHRLICH, "ehrlich__length": 15, "ehrlich__motifs": 2},
    LONG: {**_EHRLICH, "steps": 600, "ehrlich__length": 32, "ehrlich__motifs": 4},
    RNA: {"task": "rna", **_WORDS, "steps": 300, "beta": 40.0},
}
"""Name of the task, settings, and the most steps of a run."""
SOLVED = 0.75
"""Score of an Ehrlich function that counts as found; of RNA that of the best helix, as .9 of it is found at once."""
KNOWN = {
    "TFBind8": {"task": "tfbind8", "steps": 600, "optim__log_z_factor": 50.0, "net__hidden": 128, "replay__batch": 512},
}
"""Where nothing is hidden, and nothing may be lost."""
NOISES = (0.0, 0.1, 0.25)
_FLOW = {"net__hidden": 64, "optim__lr": 5e-3, "dynamics__mode": "known", "replay__updates": 3, "replay__batch": 128}
_MOST = {"batch": BATCH // 4, "local__count": BATCH - BATCH // 4, "archive__capacity": 300}
STARTED = "constant, start"
SLOW = ("thompson", "surprise", "novelty", "ppo", "sac")
"""Ways and peers that are left out where a run takes minutes."""
WAYS: dict[str, dict[str, Any]] = {
    "constant .01": {},
    "constant .1": {"explore": 0.1},
    "local+best": {"exploration": "local+best", **_MOST},
    "local": {"exploration": "local", **_MOST},
    "teacher": {"exploration": "teacher", "teacher__hidden": 64},
    "entropy": {"exploration": "entropy"},
    "entropy-state": {"exploration": "entropy-state"},
    STARTED: {"offline__share": 1 / BATCH},
    "best": {"exploration": "best"},
    "thompson": {"exploration": "thompson", "thompson__hidden": 64},
    "surprise": {"exploration": "surprise"},
    "novelty": {"exploration": "novelty"},
    "ppo": {"method": "ppo"},
    "sac": {"method": "sac"},
    "mars": {"method": "mars"},
}
"""Ways of ours and peers, those of most interest first; all ways of ours replay as much. `constant, start` has the one
feasible sequence that local search begins with in every batch, and is for Ehrlich functions alone."""


def fits(task: str, way: str, alpha: float) -> bool:
    """Whether a run belongs to the study: a start is known of Ehrlich functions alone, and long ones take minutes."""
    if task == LONG and (way in SLOW or way == "teacher" or alpha > 0):
        return False
    return way != STARTED or TASKS.get(task, {}).get("task") == "ehrlich"


def turn(cell: str, way: str, seed: int) -> float:
    """When a run has its turn: a seed of the ways of most interest is done two seeds before the same one of others."""
    place = list(WAYS).index(way)
    return seed + (0.0 if place < 5 else 1.5 if place < 8 else 2.5) + (cell == LONG)


def ways_config(task: str, way: str, alpha: float, seed: int) -> TrainConfig:
    """Settings of one run; peers have no replay, no log Z and no model of the noise to read."""
    own, chosen = WAYS[way], dict({**TASKS, **KNOWN}[task])
    name = chosen.pop("task")
    if "method" in own:
        chosen = {name: value for name, value in chosen.items() if not name.startswith("optim")}
    common = {} if way == "mars" else {"net__hidden": 64} if "method" in own else _FLOW
    seeds = {f"{name}__seed": seed} if name in ("bits", "ehrlich") else {}
    steps = round(chosen.pop("steps") * (LONGER if way.startswith("constant") and task in TASKS else 1))
    settings = {"batch": BATCH, **common, **chosen, **seeds, **own, "steps": steps}
    return TrainConfig().with_(**settings, noise__alpha=alpha, seed=seed)


def modes_of(task: Task) -> tuple[int, Callable[[Tensor, Tensor], Tensor]]:
    """How many modes a task has, and a function of (objects, scores) to the numbers of those that are hit."""
    landscape = task.landscape
    if isinstance(landscape, Hypergrid):
        side, ndim = landscape.side, task.config.grid.ndim
        return 2**ndim, lambda objects, scores: corner(objects[scores >= landscape.mode_level - 1e-4], side)
    if isinstance(landscape, Bits):
        return len(landscape.modes), lambda objects, scores: (landscape.distances(objects) == 0).nonzero()[:, 1]
    level = SOLVED if isinstance(landscape, Ehrlich) else landscape.maximum - 1e-4
    return 1, lambda objects, scores: torch.zeros(int((scores >= level).sum()), dtype=torch.int64)


def corner(objects: Tensor, side: int) -> Tensor:
    """The corner that each cell lies in, numbered."""
    upper = (2 * objects > side - 1).long()
    return (upper * 2 ** torch.arange(objects.shape[-1], device=objects.device)).sum(-1)


@dataclass
class Discoveries:
    """Calls of a landscape's scores, and which modes were hit after how many."""

    hits: Callable[[Tensor, Tensor], Tensor]
    calls: int = 0
    best: float = 0.0
    first_call: dict[int, int] = field(default_factory=dict)

    def watch(self, task: Task) -> None:
        """Count the calls of a task's scores from now on; those that are equal count again."""
        scores = task.landscape.scores

        def counting(objects: Tensor) -> Tensor:
            found = scores(objects)
            self.calls += len(objects)
            self.best = max(self.best, float(found.max()))
            for mode in self.hits(objects, found).unique().tolist():
                self.first_call.setdefault(mode, self.calls)
            return found

        task.landscape.scores = counting


def goal(floor: float) -> float:
    """Total variation that counts as near: 1.2 times the floor, and .2 more, as most floors are zero."""
    return 1.2 * floor + 0.2


@dataclass
class Law:
    """The exact law of a learner beside the target, where it can be computed; the first time that it was near."""

    target: Tensor | None
    floor: float | None
    tv: float | None = None
    calls: int | None = None

    @classmethod
    def of(cls, task: Task) -> "Law":
        """The exact answer; nothing for spaces that are too large."""
        if not enumerable(task.env):
            return cls(None, None)
        laws = reference(task)
        floor = None if laws.floor is None else exact.total_variation(laws.floor, laws.target)
        return cls(laws.target, floor)

    def look(self, learner: Learner, calls: int) -> None:
        """Compare the present law, unless one was near; where the floor is not known, it is taken to be zero."""
        if self.target is None or self.calls is not None or not learner.has_law:
            return
        self.tv = exact.total_variation(learner.law(), self.target)
        if self.tv <= goal(self.floor or 0.0):
            self.calls = calls


def explored(
    cell: str, alpha: float, way: str, seed: int, *, device: str = "cpu", steps: int | None = None
) -> dict[str, Any]:
    """One run, ended when all modes of a grid were hit and its law is near, or one mode of another space was.

    Where nothing is hidden, or the goal is not reached, it goes on to its last step.
    """
    task = make_task({**TASKS, **KNOWN}[cell]["task"], ways_config(cell, way, alpha, seed))
    steps = task.config.steps if steps is None else steps
    law, (modes, hits) = Law.of(task), modes_of(task)
    wanted = modes if law.target is not None else 1
    found = Discoveries(hits)
    found.watch(task)
    began = time.process_time()
    try:
        learner = make_learner(task, torch.device(device), training_objects(task))
    except ValueError as refusal:  # chains need the law of every order, of which a large grid has too many
        return {"refused": str(refusal)}
    every = steps if cell in KNOWN else LOOK * (2 if law.target is not None and len(law.target) > LARGE else 1)
    for step in range(1, steps + 1):
        learner.step()
        hit = len(found.first_call) >= wanted
        if (hit and law.target is None) or step % every == 0 or step == steps:
            law.look(learner, found.calls)
            if cell in TASKS and hit and (law.target is None or law.calls is not None):
                break
    near = {
        "tv": None if law.tv is None else round(law.tv, 4),
        "floor": None if law.floor is None else round(law.floor, 4),
        "seconds": round(time.process_time() - began, 1),
    }
    if cell in KNOWN:  # its scores are a table, read once and whole
        return {"trajectories": (steps + 1) * BATCH, **near}
    hit_all = len(found.first_call) == modes
    return {
        "calls": found.calls,
        "best": round(found.best, 5),
        "modes": len(found.first_call),
        "calls_to_first_mode": min(found.first_call.values(), default=None),
        "calls_to_all_modes": max(found.first_call.values()) if hit_all else None,
        "calls_to_goal": law.calls,
        **near,
    }


def heated(cell: str, alpha: float, seed: int, *, steps: int = 140, count: int = 1000) -> dict[str, Any]:
    """What a temperature changes in rollouts of a policy that explored by r_gamma: their length, and different ends."""
    task = make_task(TASKS[cell]["task"], ways_config(cell, "entropy", alpha, seed))
    learner = make_learner(task, torch.device("cpu"))
    assert isinstance(learner, Trainer)
    for _ in range(steps):
        learner.step()
    ratio, found = float(learner.entropy_ratio), {}
    generator = torch.Generator().manual_seed(seed)
    for name, temperature in (("plain", 1.0), ("by_ratio", ratio), ("hot", 2.0)):
        settings = {"batch": count, "generator": generator, "temperature": temperature}
        batch = rollout(learner.env, learner.actor(), task.log_reward, **settings)
        ends = learner.env.objects(batch.states[:, -1])
        found[f"length_{name}"] = round(float(batch.length.float().mean()), 3)
        found[f"distinct_{name}"] = len(torch.unique(ends, dim=0))
    return {"r_gamma": round(ratio, 4), **found}
