"""Small models that tests fit in memory: settings, a reward, noises, an encoder, and what a refusal looks like."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import sgfn
from sgfn.envs.trajectories import Episodes
from sgfn.noise import ByPosition, ConfusionMatrix, HiddenRate, UniformSlip
from sgfn.objectives.scores import Scores

QUICK: dict[str, Any] = {"steps": 6, "batch": 8, "net__hidden": 16, "dynamics__hidden": 8, "progress": False}
QUICK |= {"device": "cpu", "log__every": 2, "optim__lr": 0.02, "optim__warmup": 0}
CONFUSED = ConfusionMatrix(matrix=torch.tensor([[0.8, 0.2], [0.3, 0.7]], dtype=torch.float64))


def count_a(texts: list[str]) -> list[float]:
    """A reward that can be found by its name."""
    return [1.0 + text.count("A") for text in texts]


def fit(task: Any = None, **changes: Any) -> sgfn.Model:
    task = sgfn.Sequences("AC", 3, noise=0.2) if task is None else task
    given: dict[str, Any] = {"reward": count_a} if not isinstance(task, str) else {}
    return sgfn.fit(task, **(QUICK | given | changes))


@contextmanager
def refused(words: str) -> Iterator[None]:
    """A ValueError of one line that holds the words."""
    with pytest.raises(ValueError, match=re.escape(words)) as error:
        yield
    assert "\n" not in str(error.value)


NOISES = [UniformSlip(alpha=0.2), HiddenRate(mean=0.2, concentration=2.0), CONFUSED, ByPosition(alphas=(0.0, 0.1, 0.5))]


def own_balance(scores: Scores, batch: Episodes) -> Tensor:
    """Trajectory balance, written out."""
    steps = (scores.log_pf + scores.log_dynamics - scores.log_pb).sum(1)
    return (scores.log_z + steps - batch.log_reward).square()


def encoder(features: int) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(features, 12), nn.Tanh(), nn.Dropout(0.5), nn.Linear(12, 7))


WITHOUT_NET = {name: value for name, value in QUICK.items() if name != "net__hidden"}
