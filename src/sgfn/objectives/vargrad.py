"""VarGrad: trajectory balance without a learned log Z."""

from jaxtyping import Float
from torch import Tensor

from sgfn.envs.trajectories import Episodes
from sgfn.objectives.scores import Scores, log_ratio


def log_variance(scores: Scores, batch: Episodes) -> Float[Tensor, " B"]:
    r"""Squared distance of each trajectory's log-ratio from the batch's mean: their mean is a variance.

    .. math:: \big(\ell_i - \overline{\ell}\big)^2, \qquad
              \ell = \textstyle\sum_t [\log\pi + \log\hat P - \log\pi_B] - \log R^\beta

    It is trajectory balance with log Z at its optimum for the batch, $-\overline\ell$, so that nothing has to be
    learned before rewards of any size make sense. Its gradient is zero for a single trajectory.

    References: Richter et al. (2020), VarGrad, NeurIPS; Zhang et al. (2023), Robust scheduling with GFlowNets, ICLR.
    """
    ratio = log_ratio(scores, batch)
    return (ratio - ratio.mean()).square()


def log_z_part(scores: Scores, batch: Episodes) -> dict[str, Float[Tensor, ""]]:
    """log Z as the batch tells it, the mean of minus the log-ratio."""
    return {"log_z": -log_ratio(scores, batch).detach().mean()}
