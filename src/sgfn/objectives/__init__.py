"""Objectives: each a pure function (Scores, Episodes) -> one loss per trajectory."""

from collections.abc import Callable
from functools import partial

from jaxtyping import Float
from torch import Tensor

from sgfn.config import TrainConfig
from sgfn.envs.trajectories import Episodes
from sgfn.objectives.detailed_balance import detailed_balance
from sgfn.objectives.expected_flow import expected_flow
from sgfn.objectives.kl import outcome_flow_kl
from sgfn.objectives.kl_entropy import kl_entropy
from sgfn.objectives.scores import Scores
from sgfn.objectives.subtrajectory_balance import subtrajectory_balance
from sgfn.objectives.trajectory_balance import trajectory_balance

Objective = Callable[[Scores, Episodes], Float[Tensor, " B"]]

BALANCE: dict[str, Callable[..., Float[Tensor, " B"]]] = {
    "db": detailed_balance,
    "tb": trajectory_balance,
    "subtb": subtrajectory_balance,
}
OBJECTIVES: dict[str, Callable[..., Float[Tensor, " B"]]] = {
    **BALANCE,
    "kl": outcome_flow_kl,
    "eflow": expected_flow,
    "kl-entropy": kl_entropy,
}


def make_objective(config: TrainConfig) -> Objective:
    """The configured objective, its parameters bound."""
    if config.objective == "eflow":
        return expected_flow
    if config.objective == "kl-entropy":
        return partial(kl_entropy, base=_plain(config.entropy.base, config), config=config.entropy)
    return _plain(config.objective, config)


def _plain(name: str, config: TrainConfig) -> Objective:
    """A balance objective, or the KL objective with its flow."""
    if name == "kl":
        return partial(outcome_flow_kl, flow=_plain(config.kl.flow, config), weight=config.kl.weight)
    return partial(subtrajectory_balance, decay=config.subtb_lambda) if name == "subtb" else BALANCE[name]
