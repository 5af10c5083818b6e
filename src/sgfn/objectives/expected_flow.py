"""Expected-flow detailed balance: flows are expectations over outcomes, so that a solution always exists."""

import torch
from jaxtyping import Float
from torch import Tensor

from sgfn.envs.trajectories import Episodes
from sgfn.objectives.scores import Scores, masked_mean


def expected_flow(scores: Scores, batch: Episodes) -> Float[Tensor, " B"]:
    r"""Expected detailed balance over all legal intentions, with exact expectations; one value per trajectory.

    .. math:: \big(\log F(s) + \log\pi(a|s) - \log\textstyle\sum_k \hat P(k|s,a)\,F(\mathrm{apply}(s,k))\big)^2

    It samples in proportion to the expected reward downstream, not to the reward: with uniform slip the solution
    is $\pi = (1-\alpha)c + \alpha/V$. Reference: Jiralerspong et al. (2024), Expected flow networks, ICLR.
    """
    assert scores.log_flow is not None
    assert scores.log_policy is not None
    assert scores.log_expected is not None
    legal = scores.log_policy > -torch.inf  # B T A
    residual = scores.log_flow[:, :-1, None] + torch.where(legal, scores.log_policy - scores.log_expected, 0.0)
    squares = torch.where(legal, residual.square(), 0.0).sum(-1) / legal.sum(-1)
    return masked_mean(squares, batch.valid)
