"""How long a run will take, and what would be faster: by counting products on a CPU, by timing a function."""

import os
import time

from torch import nn

from sgfn.envs.sequence import SequenceEnv
from sgfn.envs.tabulated import TabulatedEnv
from sgfn.landscapes.function import FunctionLandscape
from sgfn.learning.execution import choose
from sgfn.learning.kernels.distinct_states import shares_distinct
from sgfn.learning.learner import Learner
from sgfn.learning.trainer import Trainer
from sgfn.nets.encoders import MLP, StateTable

RATES = {("transformer", "compile"): 3.77e11, ("transformer", "eager"): 8.6e10, ("mlp", "compile"): 1.25e11}
RATES |= {("mlp", "eager"): 6.94e10}
"""Operations per second on two idle cores, of networks whose products fill a step, by network and way to run steps."""
PER_WEIGHT = 8
"""Operations for each weight and state of a batch: two in the rollout, two in the update and four in its gradient."""
LONG = 20.0
"""Minutes from which a run is said to take long."""
WORKERS = {"callable": "callable.workers", "rna": "rna.workers"}
"""Flags for workers, by task."""
LOOK_AFTER, MOSTLY = 10.0, 0.5
"""Seconds of training after which a function is known to be slow, and the share of them that it then takes."""


def long_on_cpu(learner: Learner, accelerate: str = "auto") -> str:
    """That a run takes long on a CPU and what would be faster; empty where it does not, or where nobody can tell."""
    if not isinstance(learner, Trainer) or learner.device.type != "cpu" or learner.scores_in_table:
        return ""
    config, way = learner.config, choose(learner, accelerate, insist=False)[0].removesuffix("-float32")
    kind = "transformer" if config.net.encoder == "transformer" else "mlp"
    minutes = expected_minutes(learner, weights(learner.nets.encoder, learner), RATES[kind, way])
    if minutes < LONG:
        return ""
    faster = "fewer --steps, a smaller --batch or a GPU (--device cuda) would be faster"
    if kind == "transformer":
        mlp = expected_minutes(learner, 256 * 256, RATES["mlp", way])
        if mlp < minutes:
            faster = f"an MLP (--net.encoder mlp --net.hidden 256) takes about {told(mlp)}; {faster}"
    return f"{config.steps:,} steps take about {told(minutes)} on a CPU: {faster}"


def expected_minutes(learner: Trainer, count: int, rate: float) -> float:
    """Minutes for the steps that are left, by networks of so many weights at so many operations per second."""
    return (learner.config.steps - learner.done) * PER_WEIGHT * count * evaluated(learner) / rate / 60.0


def evaluated(learner: Trainer) -> int:
    """States that a step evaluates: those of the batch, in a graph with joins each different one once."""
    env, states = learner.env, learner.config.batch * learner.env.horizon
    if isinstance(env, TabulatedEnv) and shares_distinct(env, learner.nets, learner.device):
        return min(states, env.num_states)
    return states


def weights(encoder: nn.Module, learner: Trainer) -> int:
    """Weights that take part in products; tables, and first layers of MLPs on sequences, are looked up instead."""
    matrices = [p.numel() for p in encoder.parameters() if p.ndim == 2 and not isinstance(encoder, StateTable)]
    summed = isinstance(encoder, MLP) and isinstance(learner.env, SequenceEnv)
    return sum(matrices[1:] if summed else matrices)


class SlowFunction:
    """Tells once, some seconds into a long training, that scores by one process take most of its time."""

    def __init__(self, learner: Learner) -> None:
        self.learner, landscape = learner, learner.task.landscape
        self.landscape: FunctionLandscape | None = None
        if isinstance(landscape, FunctionLandscape) and landscape.remote is None and learner.task.name in WORKERS:
            found = landscape.made_by is not None or learner.task.name == "rna"  # by a worker
            self.landscape = landscape if found else None
        self.began = self._now()

    def words(self) -> str:
        """What takes long and what would be faster; empty before that is known, and ever after it was told."""
        if self.landscape is None or time.monotonic() - self.began[0] < LOOK_AFTER:
            return ""
        seconds, steps, waited, asked = (now - before for now, before in zip(self._now(), self.began, strict=True))
        name, left = self.landscape.name, self.learner.config.steps - self.learner.done
        self.landscape = None
        minutes = seconds / max(1, steps) * left / 60.0
        if minutes < LONG or waited < MOSTLY * seconds or not asked:
            return ""
        flag, each = WORKERS[self.learner.task.name], 1000.0 * waited / asked
        return (
            f"{left:,} steps more take about {told(minutes)}, {waited / seconds:.0%} of it in {name} ({each:.3g} ms a "
            f"string): workers (--{flag} {max(2, os.cpu_count() or 1)}) call it in parallel while training goes on"
        )

    def _now(self) -> tuple[float, int, float, int]:
        """Time, steps, and what the function has taken so far."""
        waited, asked = (0.0, 0) if self.landscape is None else (self.landscape.waited, self.landscape.asked)
        return time.monotonic(), self.learner.done, waited, asked


def told(minutes: float) -> str:
    """A duration in words.

    >>> told(12.3), told(95.0), told(3000.0)
    ('12 min', '1.6 h', '50 h')
    """
    if minutes < 60.0:
        return f"{max(1.0, minutes):.0f} min"
    return f"{minutes / 60.0:.1f} h" if minutes < 600.0 else f"{minutes / 60.0:.0f} h"
