"""Scores: what an objective reads of a batch of trajectories."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class Scores:
    """Log-probabilities of a batch, zero on padded steps; `final` states carry no flow of their own."""

    log_pf: Float[Tensor, "B T"]
    """Forward: of the intention, of the outcome, or of the outcome with the intention summed out (see `scoring`)."""
    log_dynamics: Float[Tensor, "B T"]
    """Of the outcome given the intention, detached; zero where the form does not use it."""
    log_pb: Float[Tensor, "B T"]
    """Backward: of the (parent, intention) or of the parent, read at the next state."""
    log_flow: Float[Tensor, "B T+1"] | None
    """None where no flow of a state is read."""
    log_z: Float[Tensor, ""]
    log_policy: Float[Tensor, "B T A"] | None = None
    """log pi of every intention at the state before the step; minus infinity where illegal."""
    log_intention: Float[Tensor, "B T A"] | None = None
    """What the step tells about the intention: pi_B(a|s') where it is learned, else the posterior
    pi(a|s) P^(k|s,a) / Pbar(k|s)."""
    projection: Float[Tensor, "B T"] | None = None
    """KL from the outcome policy to the policy's law over outcomes, per step; for the KL objective."""
    log_expected: Float[Tensor, "B T A"] | None = None
    """Logarithm of the flow expected after each intention; for expected flows."""


def masked_mean(values: Float[Tensor, "B T"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, " B"]:
    """Mean over the true entries of each row."""
    return torch.where(mask, values, 0.0).sum(1) / mask.sum(1).clamp(min=1)
