"""Balance objectives: each a pure function (Scores, Trajectories) -> one loss per trajectory."""

from collections.abc import Callable
from functools import partial

from jaxtyping import Float
from torch import Tensor

from sgfn.objectives.detailed_balance import detailed_balance
from sgfn.objectives.subtrajectory_balance import subtrajectory_balance
from sgfn.objectives.trajectory_balance import trajectory_balance
from sgfn.trajectories import Scores, Trajectories

Objective = Callable[[Scores, Trajectories], Float[Tensor, " B"]]

OBJECTIVES: dict[str, Callable[..., Float[Tensor, " B"]]] = {
    "db": detailed_balance,
    "tb": trajectory_balance,
    "subtb": subtrajectory_balance,
}


def make_objective(name: str, subtb_lambda: float) -> Objective:
    """The objective of that name, its parameters bound."""
    if name == "subtb":
        return partial(subtrajectory_balance, decay=subtb_lambda)
    return OBJECTIVES[name]
