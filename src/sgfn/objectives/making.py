"""The configured objective as one function, and in words."""

from functools import partial
from operator import attrgetter

from sgfn.config import TrainConfig
from sgfn.config.checks import is_ours
from sgfn.config.registry import imported
from sgfn.objectives.checks import CheckedObjective
from sgfn.objectives.parts import WeightedTerms, WithParts
from sgfn.objectives.registry import NO_BASE, OBJECTIVES, ObjectiveEntry, base_of
from sgfn.objectives.scores import Objective


def make_objective(config: TrainConfig) -> Objective:
    """The configured objective, its parameters bound."""
    return _bound(OBJECTIVES[config.objective], config)


def _bound(entry: ObjectiveEntry, config: TrainConfig) -> Objective:
    bound, under = entry.bind(config), base_of(entry, config)
    base = None if under is None else _bound(under, config)
    if entry.terms is not None:
        terms = partial(imported(entry.terms), config=config)
        return WeightedTerms(base, entry.base_label, terms, entry.weights(config))
    if entry.base is not None and base is not None:
        bound[entry.base[0]] = base
    loss = partial(entry.loss, **bound) if bound else entry.loss
    if not is_ours(entry.loss):
        return CheckedObjective(loss, entry.name)
    return loss if entry.parts is None else WithParts(loss, imported(entry.parts))


def loss_words(config: TrainConfig) -> str:
    """What a run's loss is made of, in one line: each term with its weight; code that it names is not imported.

    >>> loss_words(TrainConfig(objective="kl"))
    'loss = flow_loss (tb over outcomes) + 1 projection_kl'
    """
    return f"loss = {_words(config.objective, config)}"


def _words(name: str, config: TrainConfig) -> str:
    if name not in OBJECTIVES:
        return name
    entry = OBJECTIVES[name]
    if entry.terms is None:
        return name if entry.form is not None else f"{config.form} {name}"
    weighed = [f"{weight:g} {term}" for term, weight in entry.weights(config).items() if weight]
    off = [term for term, weight in entry.weights(config).items() if not weight]
    below = attrgetter(entry.base[1])(config) if entry.base is not None else NO_BASE
    inner = f"{below} over outcomes" if entry.form == "outcome" else _words(below, config)
    parts = ([] if below == NO_BASE else [f"{entry.base_label} ({inner})"]) + weighed
    return " + ".join(parts or ["nothing"]) + (f"; off: {', '.join(off)}" if off else "")
