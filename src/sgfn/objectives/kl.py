"""The KL objective: an outcome policy learns the target, and the policy comes as near to it as the noise allows."""

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor

from sgfn.envs.trajectories import Episodes
from sgfn.objectives.scores import Scores, masked_mean


def outcome_flow_kl(
    scores: Scores, batch: Episodes, flow: Callable[[Scores, Episodes], Tensor], weight: float = 1.0
) -> Float[Tensor, " B"]:
    r"""A balance objective over outcomes plus the KL from the outcome policy to the policy's law under noise.

    .. math:: L_{flow}(c) + w\,\overline{KL\big(c(\cdot|s)\,\|\,\textstyle\sum_a \pi(a|s)\hat P(\cdot|s,a)\big)}

    The first term does not involve the noise, so any trajectory is valid data for it. The second has a minimum also
    where the balance equations under noise have no solution: the closest reachable law, node by node.
    """
    assert scores.projection is not None
    return flow(scores, batch) + weight * masked_mean(scores.projection, batch.valid)
