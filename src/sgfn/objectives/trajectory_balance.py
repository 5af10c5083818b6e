"""Trajectory balance: an objective with one equation per trajectory."""

import torch
from jaxtyping import Float
from torch import Tensor

from sgfn.envs.trajectories import Episodes
from sgfn.objectives.scores import Scores


def trajectory_balance(scores: Scores, batch: Episodes) -> Float[Tensor, " B"]:
    r"""Stochastic trajectory balance, one value per trajectory.

    .. math:: \big(\log Z + \textstyle\sum_t [\log\pi + \log\hat P - \log\pi_B] - \log R^\beta\big)^2

    References: Malkin et al. (2022), Trajectory balance, NeurIPS; Pan et al. (2023), Stochastic Generative Flow
    Networks, UAI.
    """
    steps = torch.where(batch.valid, scores.log_pf + scores.log_dynamics - scores.log_pb, 0.0)
    return (scores.log_z + steps.sum(1) - batch.log_reward).square()
