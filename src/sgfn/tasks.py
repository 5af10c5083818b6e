"""Tasks by name: an environment, a landscape, and the exponent they are usually run with."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.config import TrainConfig, one_of
from sgfn.envs import Env, GridEnv, SequenceEnv
from sgfn.landscapes import tfbind8
from sgfn.landscapes.base import Landscape, log_reward
from sgfn.landscapes.hypergrid import Hypergrid
from sgfn.landscapes.table import TableLandscape
from sgfn.landscapes.words import Words
from sgfn.noise import UniformSlip


@dataclass(frozen=True, kw_only=True)
class Task:
    """What to build and what it is worth."""

    name: str
    summary: str
    env: Env
    landscape: Landscape
    beta: float
    config: TrainConfig

    def log_reward(self, objects: Int[Tensor, "*batch O"]) -> Float[Tensor, "*batch"]:
        """log R before the exponent (mission M7)."""
        return log_reward(self.landscape.scores(objects), self.config.reward)


def _tfbind8(name: str, config: TrainConfig) -> Task:
    table = name.partition("-")[2] or tfbind8.DEFAULT
    env = SequenceEnv(length=tfbind8.LENGTH, alphabet=tfbind8.ALPHABET, noise=UniformSlip(alpha=config.noise.alpha))
    landscape = TableLandscape(torch.from_numpy(tfbind8.load_scores(table)), vocab=env.vocab, mode_level=0.9)
    summary = f"DNA 8-mers, binding to {table.upper()} (Barrera et al. 2016)"
    return Task(name=name, summary=summary, env=env, landscape=landscape, beta=_or(config.beta, 3.0), config=config)


def _grid(name: str, config: TrainConfig) -> Task:
    env = GridEnv(ndim=config.grid.ndim, side=config.grid.side, noise=UniformSlip(alpha=config.noise.alpha))
    summary = f"hypergrid, {env.ndim} coordinates of {env.side} cells, peaks in the corners (Bengio et al. 2021)"
    landscape = Hypergrid(side=env.side)
    return Task(name=name, summary=summary, env=env, landscape=landscape, beta=_or(config.beta, 1.0), config=config)


def _words(name: str, config: TrainConfig) -> Task:
    env = SequenceEnv(length=7, alphabet="ACGT", stop=True, noise=UniformSlip(alpha=config.noise.alpha))
    summary = "DNA strings of 1 to 7 letters near three hidden words: variable length"
    landscape = Words(alphabet=env.alphabet)
    return Task(name=name, summary=summary, env=env, landscape=landscape, beta=_or(config.beta, 1.0), config=config)


BUILDERS: dict[str, Callable[[str, TrainConfig], Task]] = {"tfbind8": _tfbind8, "grid": _grid, "words": _words}


def task_names() -> list[str]:
    """Every task that can be trained now; tables fetched into the cache included."""
    tables = [f"tfbind8-{name.lower()}" for name in tfbind8.available() if name != tfbind8.DEFAULT]
    return ["tfbind8", *tables, *[name for name in BUILDERS if name != "tfbind8"]]


def make_task(name: str, config: TrainConfig) -> Task:
    """Build a task; an unknown name gets the nearest one suggested."""
    kind = name.partition("-")[0]
    if kind not in BUILDERS or (kind != "tfbind8" and name != kind):
        one_of("task", name, task_names())
    return BUILDERS[kind](name, config)


def _or(beta: float | None, default: float) -> float:
    return default if beta is None else beta
