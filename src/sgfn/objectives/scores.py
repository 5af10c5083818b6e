"""Scores: log-probabilities and flows of a batch of trajectories, which objectives read."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from sgfn.envs.trajectories import Episodes


@dataclass(frozen=True, kw_only=True)
class Scores:
    """Log-probabilities of a batch, zero on padded steps; the flow of a `final` state is zero, not log R."""

    log_pf: Float[Tensor, "B T"]
    """Forward: of the intention, of the outcome, or of the outcome with intentions summed out (see `scoring`)."""
    log_dynamics: Float[Tensor, "B T"]
    """Log-probability of the outcome given the intention, detached; zero where the form does not use it."""
    log_pb: Float[Tensor, "B T"]
    """Backward log-probability of the (parent, intention) or of the parent, read at the next state."""
    log_flow: Float[Tensor, "B T+1"] | None
    """Log-flow of each unfinished state; None where the objective reads none.

    It is zero at a finished state, whose flow is its reward: put it there before use, as
    `torch.where(batch.final, batch.log_reward[:, None], scores.log_flow)`.
    """
    log_z: Float[Tensor, ""]
    log_policy: Float[Tensor, "B T A"] | None = None
    """log pi of every intention at the state before the step; minus infinity where illegal."""
    log_intention: Float[Tensor, "B T A"] | None = None
    """Log-law of the intention given the outcome: pi_B(a|s') if learned, else pi(a|s) P^(k|s,a) / Pbar(k|s)."""
    projection: Float[Tensor, "B T"] | None = None
    """KL from the outcome policy to the policy's law over outcomes, per step; for the KL objective."""
    log_expected: Float[Tensor, "B T A"] | None = None
    """Logarithm of the flow expected after each intention; for expected flows."""


Objective = Callable[[Scores, Episodes], Float[Tensor, " B"]]
"""From scores and a batch of trajectories to one loss per trajectory."""


def masked_mean(values: Float[Tensor, "B T"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, " B"]:
    """Mean of each row over the entries where the mask is true."""
    return torch.where(mask, values, 0.0).sum(1) / mask.sum(1).clamp(min=1)


def log_ratio(scores: Scores, batch: Episodes) -> Float[Tensor, " B"]:
    r"""$\sum_t [\log\pi + \log\hat P - \log\pi_B] - \log R^\beta$ of each trajectory: -log Z where all is balanced."""
    steps = torch.where(batch.valid, scores.log_pf + scores.log_dynamics - scores.log_pb, 0.0)
    return steps.sum(1) - batch.log_reward
