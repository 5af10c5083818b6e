"""Tasks of a few objects under every kind of noise, for the tests of chains."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from device_watch import AsOnDevice
from exact_tables import ENVS, KINDS, spelled
from small_runs import same_tensors
from torch import Tensor

from sgfn.config import TrainConfig
from sgfn.envs.base import Enumerable
from sgfn.landscapes.base import Landscape
from sgfn.landscapes.tasks import Task
from sgfn.learning.learner import Learner
from sgfn.noise import ConfusionMatrix


def random_errors(size: int, alpha: float) -> Tensor:
    """A confusion matrix drawn at random."""
    rows = torch.rand(size, size, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    return (1 - alpha) * torch.eye(size, dtype=torch.float64) + alpha * rows / rows.sum(-1, keepdim=True)


CHAINED = {name: make for name, make in ENVS.items() if not name.startswith("forecast")}
"""Chains change sequences and grids; forecasts are learned from what came."""
SPACES: dict[str, Callable[[float], Enumerable]] = CHAINED | KINDS
SPACES |= {"confusion-random-L3-V3": spelled(3, "ACG", lambda a: ConfusionMatrix(matrix=random_errors(3, a)))}
"""Sequences of fixed and of variable length, and grids; noise of every kind."""


@dataclass
class Numbered(Landscape):
    """A score for each object, by its number."""

    env: Enumerable
    table: Tensor
    maximum: float = 1.0
    mode_level: float = 0.9

    def scores(self, objects: Tensor) -> Tensor:
        return self.table[self.env.object_index(objects)]


def task_of(env: Enumerable, table: Tensor | None = None, beta: float = 2.0, **changes: Any) -> Task:
    """An environment with scores between .1 and 1, or with the given ones."""
    generator = torch.Generator().manual_seed(1)
    if table is None:
        table = 0.1 + 0.9 * torch.rand(env.num_objects, generator=generator, dtype=torch.float64)
    config = TrainConfig().with_(**{"method": "mh", "batch": 8, "steps": 20, "net__hidden": 16} | changes)
    return Task(name="numbered", summary="", env=env, landscape=Numbered(env, table), beta=beta, config=config)


def advance(learner: Learner, steps: int) -> dict[str, Tensor]:
    for _ in range(steps):
        learner.step()
        learner.done += 1
    return saved(learner)


def saved(learner: Learner) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in learner.state().items()}


def enough(counts: Tensor, law: Tensor) -> tuple[Tensor, Tensor]:
    """Counts and laws for a chi-square test: what is expected less than five times is put into one class."""
    assert not counts[law == 0].any(), "an impossible event happened"
    law, order = law.sort(-1)
    counts, expected = counts.gather(-1, order).double(), counts.sum(-1, keepdim=True) * law
    rare = (expected < 5) | (expected.cumsum(-1) - expected < 5)  # so that the class itself is large enough
    return tuple(
        torch.cat([values.masked_fill(rare, 0.0), (values * rare).sum(-1, keepdim=True)], -1)
        for values in (counts, law)
    )


class NoWait(AsOnDevice):
    """Fails where a step would wait for a device: a number read back, a size that depends on data, a new constant."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        assert func.overloadpacket.__name__ not in ("_local_scalar_dense", "nonzero", "masked_select", "lift_fresh")
        return func(*args, **(kwargs or {}))


def check_continues(make: Callable[[], Learner]) -> None:
    """A learner that takes over the state of another takes the same steps; a fresh one does not."""
    first, second = make(), make()
    state = advance(first, 5)
    advance(second, 2)
    second.load({key: value.clone() for key, value in state.items()})
    assert same_tensors(saved(second), state)
    straight = advance(first, 4)
    assert same_tensors(advance(second, 4), straight)
    assert not same_tensors(advance(make(), 4), straight)
