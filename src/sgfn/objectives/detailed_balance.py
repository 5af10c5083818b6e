"""Detailed balance: an objective with one equation per transition."""

import torch
from jaxtyping import Float
from torch import Tensor

from sgfn.envs.trajectories import Episodes
from sgfn.objectives.scores import Scores, masked_mean


def detailed_balance(scores: Scores, batch: Episodes) -> Float[Tensor, " B"]:
    r"""Stochastic detailed balance, one value per trajectory.

    .. math:: \big(\log F(s) + \log\pi(a|s) + \log\hat P(k|s,a) - \log F(s') - \log\pi_B(s,a|s')\big)^2

    The terminal flow is the reward. The noise-blind and marginal forms differ only in what `scoring` puts into
    `log_pf` and `log_pb`. Reference: Pan et al. (2023), Stochastic Generative Flow Networks, UAI.
    """
    assert scores.log_flow is not None
    log_flow = torch.where(batch.final, batch.log_reward[:, None], scores.log_flow)  # B T+1
    outflow = log_flow[:, :-1] + scores.log_pf + scores.log_dynamics  # B T
    inflow = log_flow[:, 1:] + scores.log_pb  # B T
    return masked_mean((outflow - inflow).square(), batch.valid)
