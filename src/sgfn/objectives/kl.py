"""The KL objective: learn what should happen, and separately the nearest that can be made to happen."""

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor

from sgfn.envs.trajectories import Episodes
from sgfn.objectives.scores import Scores, masked_mean


def outcome_flow_kl(
    scores: Scores, batch: Episodes, flow: Callable[[Scores, Episodes], Tensor], weight: float = 1.0
) -> Float[Tensor, " B"]:
    r"""A balance objective over outcomes, plus the projection of the outcome policy onto what the noise allows.

    .. math:: L_{flow}(c) + w\,\overline{KL\big(c(\cdot|s)\,\|\,\textstyle\sum_a \pi(a|s)\hat P(\cdot|s,a)\big)}

    The first term knows no noise, so any trajectory is valid data for it; the second stays meaningful where the balance
    equations under noise have no solution: its minimiser is the closest law there is, node by node.
    """
    assert scores.projection is not None
    return flow(scores, batch) + weight * masked_mean(scores.projection, batch.valid)
