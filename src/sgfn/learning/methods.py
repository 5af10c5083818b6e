"""A learner for a task: the configured method, checked before anything is made."""

from collections.abc import Collection

import torch
from jaxtyping import Int
from torch import Tensor

from sgfn.config import TrainConfig
from sgfn.config.registry import called_as, of_kind
from sgfn.landscapes.tasks import Task
from sgfn.learning.exploration.registry import check_ways
from sgfn.learning.forms import FORMS, form_entry
from sgfn.learning.learner import Learner
from sgfn.learning.registry import METHODS, MethodEntry, check_names
from sgfn.learning.suitability import check_task
from sgfn.learning.trainer import Trainer
from sgfn.learning.unread import refuse_unread, unread, without_unread
from sgfn.objectives import OBJECTIVES, scored_as
from sgfn.objectives.registry import NO_BASE, base_of, chain

__all__ = [
    "METHODS",
    "MethodEntry",
    "build",
    "check",
    "check_fit",
    "check_names",
    "check_objective",
    "make_learner",
    "refuse_unread",
    "unread",
    "without_unread",
]


def check(task: Task, baseline: TrainConfig | None = None, said: Collection[str] = ()) -> None:
    """Refuse, before anything is made, what is not read, and what the task's method cannot work on.

    `baseline` is the recipe that the configuration began with, `said` what was given; see `refuse_unread`.
    """
    check_names(task.config)
    check_fit(task)
    refuse_unread(task, task.config, baseline, said)


def make_learner(task: Task, device: torch.device, offline: Int[Tensor, "N O"] | None = None) -> Learner:
    """A method set to work on a task that suits it."""
    check(task)
    return build(task, device, offline)


def check_flows(task: Task) -> None:
    """Refuse an objective, a form or a network that the task's states do not suit."""
    check_task(task)
    check_objective(task.config)
    check_ways(task.config)


def check_objective(config: TrainConfig) -> None:
    """Refuse an objective in a form that makes no sense for it, or with a memory that it is not sound with."""
    entry, form = OBJECTIVES[config.objective], form_entry(scored_as(config))
    if form.name in entry.refuses:
        use = " or ".join(name for name in FORMS if name not in entry.refuses)
        raise ValueError(f"objective {entry.name!r} weighs intentions, which form {form.name!r} ignores: use {use}")
    if entry.base is not None and base_of(entry, config) is None and not any(entry.weights(config).values()):
        terms = " and ".join(entry.weights(config))
        raise ValueError(f"objective {entry.name!r} has no term left: {entry.base[1]} is {NO_BASE}, {terms} weigh 0")
    least = max((one.least_batch for one in chain(config)), default=1)
    if config.batch < least:
        raise ValueError(f"objective {entry.name!r} compares trajectories of a batch: set --batch to {least} or more")
    if config.thought.layers > 0 and not entry.memory:
        raise ValueError(
            f"thought.layers: objective {entry.name!r} has no history of the children it imagines: use tb or kl"
        )
    if config.thought.layers > 0 and form.no_memory:
        raise ValueError(f"thought.layers does not go with form {form.name!r} ({form.no_memory}): use form marginal")


def check_series(task: Task) -> None:
    """Refuse a task that is no time series, and settings that reach further back than its series do."""
    if task.series is None:
        raise ValueError(f"method 'forecast' learns time series, and {task.name} is none: use task series")
    task.config.series.check_reach(max(len(one) for one in task.series.training.series))


def check_fit(task: Task) -> None:
    """Refuse what the task's method cannot work on."""
    entry = METHODS[task.config.method]
    if task.series is not None and not entry.forecasts and entry.name in METHODS:
        raise ValueError(f"task series is learned by method 'forecast', not by {entry.name!r}: add --preset forecast")
    entry.refuse(task)


def build(task: Task, device: torch.device, offline: Int[Tensor, "N O"] | None = None) -> Learner:
    """A method set to work, unchecked, for a run that is there already; only flow networks use known objects."""
    make = METHODS[task.config.method].make
    if isinstance(make, type) and issubclass(make, Trainer):
        return make(task, device, offline)
    with called_as("method", task.config.method):
        return of_kind("method", task.config.method, make(task, device), Learner)
