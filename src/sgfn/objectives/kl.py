"""The KL objective: an outcome policy learns the target, and the policy comes as near to it as the noise allows."""

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor

from sgfn.config import TrainConfig
from sgfn.envs.trajectories import Episodes
from sgfn.objectives.parts import Parts, weighted_sum
from sgfn.objectives.scores import Scores, masked_mean


def outcome_flow_kl(
    scores: Scores, batch: Episodes, flow: Callable[[Scores, Episodes], Tensor], weight: float = 1.0
) -> Float[Tensor, " B"]:
    r"""A balance objective over outcomes plus the KL from the outcome policy to the policy's law under noise.

    .. math:: L_{flow}(c) + w\,\overline{KL\big(c(\cdot|s)\,\|\,\textstyle\sum_a \pi(a|s)\hat P(\cdot|s,a)\big)}

    The first term does not involve the noise, so any trajectory is valid data for it. The second has a minimum also
    where the balance equations under noise have no solution: the closest reachable law, node by node.
    """
    return weighted_sum(flow(scores, batch), projection_term(scores, batch), {"projection_kl": weight})


def projection_term(scores: Scores, batch: Episodes) -> dict[str, Float[Tensor, " B"]]:
    """The projection KL, mean over the steps of each trajectory."""
    assert scores.projection is not None
    return {"projection_kl": masked_mean(scores.projection, batch.valid)}


def kl_terms(scores: Scores, batch: Episodes, config: TrainConfig) -> tuple[dict[str, Tensor], Parts]:
    """What `kl` adds to its flow loss; there are no further parts."""
    return projection_term(scores, batch), {}
