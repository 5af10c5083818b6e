"""The configured objective as one function."""

from functools import partial

from sgfn.config import TrainConfig
from sgfn.config.checks import is_ours
from sgfn.objectives.checks import CheckedObjective
from sgfn.objectives.registry import OBJECTIVES, ObjectiveEntry, base_of
from sgfn.objectives.scores import Objective


def make_objective(config: TrainConfig) -> Objective:
    """The configured objective, its parameters bound."""
    return _bound(OBJECTIVES[config.objective], config)


def _bound(entry: ObjectiveEntry, config: TrainConfig) -> Objective:
    bound, under = entry.bind(config), base_of(entry, config)
    if entry.base is not None and under is not None:
        bound[entry.base[0]] = _bound(under, config)
    loss = partial(entry.loss, **bound) if bound else entry.loss
    return loss if is_ours(entry.loss) else CheckedObjective(loss, entry.name)
