"""Facts of a task that are known before training, and a row for each task that there is."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

from sgfn.config import NoiseConfig, TrainConfig
from sgfn.envs import SequenceEnv, laws
from sgfn.envs.base import Enumerable
from sgfn.evaluation import exact
from sgfn.evaluation.measure import check_limit, known_facts, reference
from sgfn.evaluation.result import Figures
from sgfn.landscapes.tasks import Task, make_task, task_entry, task_names


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TaskFacts(Figures):
    """Size of a task, its highest score, and what is reachable at the configured noise and exponent.

    Also a mapping: `facts.objects` and `facts["objects"]` are the same. What is not known of a task, from `mean` on,
    has no place in the mapping.
    """

    task: str
    summary: str
    objects: int | None
    states: int | None
    actions: int
    horizon: int
    alphabet: str | None
    alpha: float
    noise: str
    beta: float
    maximum: float | None
    """Best score, where it is known: the highest, or the lowest where low ones are good."""
    listed: bool
    """Whether the environment can list its states."""
    exact: bool
    """Whether laws are computed by enumeration."""
    minimise: bool = False
    """Whether low scores are good."""
    mean: float | None = None
    """Mean score of all objects."""
    top100_mean: float | None = None
    tv_floor: float | None = None
    tv_blind: float | None = None
    tv_uniform: float | None = None
    target_expected_reward: float | None = None
    floor_expected_reward: float | None = None
    floor_kind: str | None = None
    floor_kl: float | None = None
    log_z: float | None = None
    optimum: str | None = None
    """An object of the highest score."""
    further: dict[str, Any] | None = None
    """What a landscape of one's own tells beside these."""

    def __iter__(self) -> Iterator[str]:
        known = ENUMERATED if self.exact else ()
        return (name for name in ALL_FACTS if name not in SELDOM or name in known or getattr(self, name) is not None)


ALL_FACTS = tuple(field.name for field in fields(TaskFacts))
SELDOM = frozenset(ALL_FACTS[ALL_FACTS.index("mean") :])
ENUMERATED = ("tv_floor", "tv_blind", "tv_uniform", "target_expected_reward", "floor_expected_reward")
"""Figures that an enumeration gives; None where a floor is not computed."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CatalogueRow(Figures):
    """A task in the list of all: size, whether exact answers exist, what it needs and whether that is installed."""

    task: str
    objects: int | None = None
    alphabet: str | None = None
    exact: str | None = None
    """"yes" by enumeration, "formula" at any size, or "no"; None where the task cannot be made."""
    beta: float | None = None
    needs: str | None
    ready: bool
    summary: str


def describe(name: str, config: TrainConfig, max_states: int = laws.MAX_STATES) -> TaskFacts:
    """Facts of a task: size, highest score, top-100 mean, what is reachable at the configured noise and exponent."""
    check_limit(max_states)
    task = make_task(name, config)
    enumerable, shape = laws.enumerable(task.env, max_states), task.landscape.score_transform
    known = _enumerated_facts(reference(task, max_states), minimise=shape.minimise) if enumerable else {}
    found = known_facts(task) | known
    further = {name: found.pop(name) for name in [*found] if name not in ALL_FACTS}
    return TaskFacts(
        task=task.name,
        summary=task.summary,
        objects=getattr(task.env, "num_objects", None),
        states=getattr(task.env, "num_states", None),
        actions=task.env.actions,
        horizon=task.env.horizon,
        alphabet=task.env.alphabet if isinstance(task.env, SequenceEnv) else None,
        alpha=config.noise.alpha,
        noise=task.env.noise_summary,
        beta=task.beta,
        maximum=shape.score(task.landscape.maximum) if math.isfinite(task.landscape.maximum) else None,
        listed=isinstance(task.env, Enumerable),
        exact=enumerable,
        minimise=shape.minimise,
        further=further or None,
        **found,
    )


def catalogue(config: TrainConfig, max_states: int = laws.MAX_STATES) -> list[CatalogueRow]:
    """A row for each task: size, alphabet, whether exact answers exist, what it needs and whether that is installed."""
    check_limit(max_states)
    quiet = config.with_(noise=NoiseConfig())  # another noise may fit one task only, and size does not depend on it
    return [_row(name, quiet, max_states) for name in task_names()]


def _row(name: str, config: TrainConfig, max_states: int) -> CatalogueRow:
    entry = task_entry(name)
    needs, ready = entry.needs(config)
    if not ready:
        return CatalogueRow(task=name, needs=needs or None, ready=ready, summary=entry.line)
    task = make_task(name, config)
    return CatalogueRow(
        task=name,
        objects=getattr(task.env, "num_objects", None),
        alphabet=task.env.alphabet if isinstance(task.env, SequenceEnv) else None,
        exact=_exactness(task, max_states),
        beta=task.beta,
        needs=needs or None,
        ready=ready,
        summary=task.summary,
    )


def _exactness(task: Task, max_states: int) -> str:
    if laws.enumerable(task.env, max_states):
        return "yes"
    return "formula" if "log_z" in known_facts(task) else "no"


def _enumerated_facts(known: exact.ReferenceLaws, *, minimise: bool) -> dict[str, Any]:
    figures = exact.distances(known.target, known)
    return {
        "mean": float(known.scores.mean()),
        "top100_mean": float(known.scores.sort(descending=not minimise).values[:100].mean()),
        **{name: figures[name] for name in ENUMERATED},
        "floor_kind": known.floor_kind,
    }
