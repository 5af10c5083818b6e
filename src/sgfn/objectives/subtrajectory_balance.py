"""Sub-trajectory balance: an objective with one equation per part of a trajectory."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from sgfn.envs.trajectories import Episodes
from sgfn.objectives.scores import Scores


def subtrajectory_balance(scores: Scores, batch: Episodes, decay: float = 0.9) -> Float[Tensor, " B"]:
    r"""Stochastic SubTB(lambda): squared balance residuals of all sub-trajectories i < j, weighted by lambda^(j-i).

    .. math:: \frac{\sum_{i<j} \lambda^{j-i}\,(u_i - u_j)^2}{\sum_{i<j} \lambda^{j-i}}, \qquad
              u_t = \log F(s_t) - \textstyle\sum_{t' < t} [\log\pi + \log\hat P - \log\pi_B]

    With T = 1 or lambda = 0 this is detailed balance.
    Reference: Madan et al. (2023), Learning GFlowNets from partial episodes, ICML.
    """
    assert scores.log_flow is not None
    log_flow = torch.where(batch.final, batch.log_reward[:, None], scores.log_flow)  # B T+1
    steps = torch.where(batch.valid, scores.log_pf + scores.log_dynamics - scores.log_pb, 0.0)
    potential = log_flow - F.pad(steps.cumsum(1), (1, 0))  # B T+1
    residual = potential[:, :, None] - potential[:, None, :]  # B T+1 T+1
    position = torch.arange(potential.shape[1], device=potential.device)
    gap = position[None, :] - position[:, None]
    inside = (gap > 0) & (position <= batch.length[:, None])[:, None, :]  # j is at most the final state
    weight = inside * decay ** (gap - 1).clamp(min=0).to(potential.dtype)  # lambda cancels once: lambda = 0 is DB
    return (weight * residual.square()).sum((1, 2)) / weight.sum((1, 2)).clamp(min=1e-12)
