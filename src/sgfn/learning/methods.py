"""A learner for a task: the configured method, checked before anything is made."""

import torch
from jaxtyping import Int
from torch import Tensor

from sgfn.config import TrainConfig
from sgfn.landscapes.tasks import Task
from sgfn.learning.learner import Learner
from sgfn.learning.registry import METHODS, MethodEntry, build, check_fit, check_names, check_objective
from sgfn.learning.unread import lean, refuse_unread, unread

__all__ = [
    "METHODS",
    "MethodEntry",
    "build",
    "check",
    "check_fit",
    "check_names",
    "check_objective",
    "lean",
    "make_learner",
    "refuse_unread",
    "unread",
]


def check(task: Task, baseline: TrainConfig | None = None) -> None:
    """Refuse, before anything is made, what is not read, and what the task's method cannot work on.

    `baseline` is the recipe that the configuration began with; see `refuse_unread`.
    """
    check_names(task.config)
    check_fit(task)
    refuse_unread(task, task.config, baseline)


def make_learner(task: Task, device: torch.device, offline: Int[Tensor, "N O"] | None = None) -> Learner:
    """A method set to work on a task that suits it."""
    check(task)
    return build(task, device, offline)
