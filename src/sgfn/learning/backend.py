"""Backends: how a trainer's batches are rolled out, scored and learned from.

A backend is given the same environment, noise, networks and objective whichever it is, and gives the same numbers up to
rounding; `GeneralBackend` takes any, others are faster where they fit.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.config import TrainConfig
from sgfn.config.importing import function_label
from sgfn.envs.base import Env
from sgfn.envs.trajectories import Episodes
from sgfn.landscapes.tasks import Task
from sgfn.learning.optimisation import Optimiser
from sgfn.nets.dynamics import NoiseModel
from sgfn.nets.heads import FlowNets
from sgfn.objectives.entropy import entropy_figures, entropy_terms
from sgfn.objectives.scores import Scores

Objective = Callable[[Scores, Episodes], Float[Tensor, " B"]]
"""Scores and trajectories to one loss per trajectory."""
Past = tuple[Int[Tensor, "B T"], Int[Tensor, "B T"], Float[Tensor, " B"]]
"""Intentions, outcomes and log-rewards, as a buffer keeps them."""


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What a backend works with."""

    task: Task
    env: Env
    """The task's environment, its states numbered where it fits into tables."""
    nets: FlowNets
    noise_model: NoiseModel
    optimiser: Optimiser
    """Of policy and flow."""
    noise_optimiser: Optimiser
    offline: Int[Tensor, "N O"] | None
    """Known objects that a share of each batch is drawn from."""
    objective: Objective
    reads_flow: bool
    """Whether the objective reads flows of states between root and end."""
    reads_intentions: bool
    """Whether the objective, or exploration, reads the policy at all intentions."""

    @property
    def config(self) -> TrainConfig:
        """The run's configuration."""
        return self.task.config

    @property
    def device(self) -> torch.device:
        """Where the networks are."""
        return self.nets.log_z.device

    @torch.no_grad()
    def entropy(self, scores: Scores, batch: Episodes) -> Float[Tensor, " N"] | None:
        """`ENTROPY_METERS` of a batch, where the run watches them."""
        if not self.config.watches_entropy:
            return None
        return entropy_figures(entropy_terms(scores, batch, self.config.entropy), batch)


class Learned(NamedTuple):
    """What an update on a batch of rollouts leaves behind.

    A tuple, as all that compiled functions hand on.
    """

    loss: Float[Tensor, ""]
    noise_loss: Float[Tensor, ""]
    """Negative log-likelihood of the outcomes under the noise model."""
    entropy: Float[Tensor, " N"] | None
    """`ENTROPY_METERS` of the batch, where the run watches them."""
    pending: Any
    """What the noise model has yet to learn from, for `update_noise_model`; None where that is done."""


class Backend(ABC):
    """Rolls out, scores and updates; `draw` holds all random numbers, so that the rest is a function of them."""

    def __init__(self, setup: Setup) -> None:
        self.setup, self.config = setup, setup.config

    @abstractmethod
    def draw(self, generator: torch.Generator, temperature: float | Tensor) -> Any:
        """Random numbers of one batch of rollouts."""

    @abstractmethod
    def learn(self, draws: Any, beta: Float[Tensor, ""], rate: Float[Tensor, ""]) -> tuple[Episodes, Learned]:
        """A batch of rollouts and an update on it, at a reward exponent and a share of the learning rate."""

    @abstractmethod
    def relearn(self, past: Past, beta: Float[Tensor, ""], rate: Float[Tensor, ""]) -> None:
        """An update of policy and flow on past trajectories: balance holds off-policy."""

    @abstractmethod
    def refit_noise_model(self, past: Past, rate: Float[Tensor, ""]) -> Float[Tensor, ""]:
        """An update of the noise model on past outcomes; gives its loss."""

    def update_noise_model(self, pending: Any, rate: Float[Tensor, ""]) -> None:
        """The update of the noise model that `learn` left for later."""
        raise NotImplementedError(f"{type(self).__name__} leaves no update for later")


def without_states(batch: Episodes) -> Episodes:
    """The batch as every backend has it: states are numbered in some, and others have none."""
    names = [field.name for field in fields(Episodes)]
    return Episodes(**{name: getattr(batch, name) for name in names})


class CheckedObjective:
    """An objective from elsewhere whose losses are checked: one for each trajectory, with a gradient."""

    def __init__(self, function: Objective) -> None:
        self.function, self.name = function, function_label(function)

    def __call__(self, scores: Scores, batch: Episodes) -> Float[Tensor, " B"]:
        """The losses of a batch; one line says what is wrong with them."""
        loss, count = self.function(scores, without_states(batch)), batch.valid.shape[0]
        if not isinstance(loss, Tensor) or loss.shape != (count,):
            got = f"shape {list(loss.shape)}" if isinstance(loss, Tensor) else type(loss).__name__
            raise ValueError(f"objective {self.name} must return a tensor of shape [{count}], one loss each, got {got}")
        if torch.is_grad_enabled() and not loss.requires_grad:
            raise ValueError(f"objective {self.name} returned losses without a gradient: compute them from the scores")
        return loss
