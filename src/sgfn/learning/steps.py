"""What is handed on between the parts of a step of the trainer."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from jaxtyping import Float, Float64, Int
from torch import Tensor

from sgfn.learning.backend import UnscoredBatch


@dataclass(frozen=True, kw_only=True)
class StepDraws:
    """All random numbers of a step, drawn before it."""

    rollouts: Any
    """Those of the batch of rollouts, as the backend draws them."""
    replay: list[Float64[Tensor, " B"]]
    """Uniform numbers that pick past trajectories for policy and flow, one tensor per update."""
    refits: list[Float64[Tensor, " B"]]
    """Uniform numbers that pick past trajectories for the noise model, one tensor per round."""


class StepRemainder(NamedTuple):
    """Arguments of `finish`: the part of a step that the next rollouts do not depend on."""

    pending: Any
    """Argument of `Backend.update_noise_model`; None where the update is done."""
    loss: Float[Tensor, ""]
    nll: Float[Tensor, ""]
    log_reward: Float[Tensor, " B"]
    length: Int[Tensor, " B"]
    parts: Float[Tensor, " P"] | None


@dataclass(frozen=True, kw_only=True)
class BegunStep:
    """A step whose batch is rolled out and not scored yet."""

    draws: StepDraws
    """Without those of the rollouts, which are done."""
    batch: UnscoredBatch
