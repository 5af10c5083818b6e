"""Backends: they roll out, score and learn from a trainer's batches.

All are given the same environment, noise, networks and objective, and compute the same numbers up to rounding:
`GeneralBackend` takes any, others are faster where they fit.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.config import TrainConfig
from sgfn.envs.base import Env
from sgfn.envs.trajectories import Episodes
from sgfn.landscapes.tasks import Task
from sgfn.learning.optimisation import Optimiser
from sgfn.learning.rollout import Actor, Policy
from sgfn.nets.dynamics import NoiseModel
from sgfn.nets.heads import FlowNets
from sgfn.objectives.entropy import entropy_parts, entropy_terms
from sgfn.objectives.parts import Parts, balance_parts
from sgfn.objectives.scores import Scores

Objective = Callable[[Scores, Episodes], Float[Tensor, " B"]]
"""Scores and trajectories to one loss per trajectory."""
LogRewards = list[Float[Tensor, " _"]]
"""Log-rewards of the parts of a batch: the agent's own trajectories, and the offline share where there is one."""
Past = tuple[Int[Tensor, "B T"], Int[Tensor, "B T"], Float[Tensor, " B"]]
"""Intentions, outcomes and log-rewards of past trajectories, as a replay buffer keeps them."""


@dataclass(frozen=True, kw_only=True)
class Setup:
    """Task, networks, optimisers and objective that a backend works with."""

    task: Task
    env: Env
    """The task's environment, its states numbered where it fits into tables."""
    nets: FlowNets
    noise_model: NoiseModel
    optimiser: Optimiser
    """The optimiser of policy and flow."""
    noise_optimiser: Optimiser
    offline: Int[Tensor, "N O"] | None
    """Known objects that a share of each batch is drawn from."""
    objective: Objective
    reads_flow: bool
    """Whether the objective reads flows of states between root and end."""
    reads_intentions: bool
    """Whether the objective, exploration or the log reads the policy at all intentions."""
    balance_terms: tuple[str, ...] = ()
    """Terms of the balance that are logged, by the names of `objectives.parts.balance_parts`."""
    weighed: Callable[[Tensor, Tensor], Tensor] = lambda mean, valid: mean
    """A mean over valid steps, weighed so that the mean over all ranks of it is that over all their steps."""
    behaviour: Callable[[Policy], Actor] | None = None
    """Changes the actor of the agent's own rollouts, where a way to explore does; the general backend asks for it."""

    @property
    def config(self) -> TrainConfig:
        """The run's configuration."""
        return self.task.config

    @property
    def device(self) -> torch.device:
        """The device of the networks."""
        return self.nets.log_z.device

    @torch.no_grad()
    def parts(self, scores: Scores, batch: Episodes, raised: Episodes, own: Parts) -> Parts:
        """Everything that is logged of a batch beside its loss, by name: the objective's own parts, and ours.

        `raised` is the batch at the reward exponent. Where the run watches the entropy and the objective does not tell
        of it already, its figures are computed here.
        """
        found = own | balance_parts(scores, raised, self.balance_terms)
        if self.config.watches_entropy:
            if "r_gamma" not in found:
                found |= entropy_parts(entropy_terms(scores, batch, self.config.entropy), batch)
            found["reward_minus_kl"] = batch.log_reward.exp().mean() - found["policy_kl"]
        return found


def stacked(parts: Parts) -> Float[Tensor, " P"] | None:
    """Parts as one tensor, in their order; None where there are none."""
    return torch.stack([value.detach().to(torch.float32) for value in parts.values()]) if parts else None


@dataclass(frozen=True, kw_only=True)
class UnscoredBatch:
    """Rollouts of a batch whose rewards are not known yet."""

    objects: list[Int[Tensor, "_ O"]]
    """What the trajectories end in: the agent's own, then those of the offline share, where there is one."""
    rollouts: Any
    """The trajectories, as the backend that made them goes on with them."""


class Learned(NamedTuple):
    """Result of an update on a batch of rollouts; a tuple, which compiled functions can return."""

    loss: Float[Tensor, ""]
    noise_loss: Float[Tensor, ""]
    """Negative log-likelihood of the outcomes under the noise model."""
    parts: Float[Tensor, " P"] | None
    """`Setup.parts` of the batch, in the order of their names; None where there are none."""
    pending: Any
    """Argument of `update_noise_model`; None where the noise model is updated already."""


class Backend(ABC):
    """Rolls out, scores and updates; all random numbers come from `draw`, so that `learn` is a function of them."""

    alone: bool = True
    """Whether a step is all done here, so that it may be compiled or captured."""
    extends: bool = False
    """Whether batches may have more rollouts than are configured."""
    extra: int = 0
    """How many more the next ones have: those that ways to explore leave to the policy."""

    def __init__(self, setup: Setup) -> None:
        self.setup, self.config = setup, setup.config

    @abstractmethod
    def draw(self, generator: torch.Generator, temperature: float | Tensor) -> Any:
        """Random numbers of one batch of rollouts."""

    def learn(self, draws: Any, beta: Float[Tensor, ""], rate: Float[Tensor, ""]) -> tuple[Episodes, Learned]:
        """Roll out a batch and update on it, at reward exponent `beta` and `rate` times the learning rates."""
        batch = self.begin(draws)
        return self.complete(batch, self.log_rewards(batch), beta, rate)

    # the parts of `learn`: only `log_rewards` may leave the device

    def begin(self, draws: Any) -> UnscoredBatch:
        """Roll out a batch."""
        raise NotImplementedError(f"{type(self).__name__} learns in one piece")

    def log_rewards(self, batch: UnscoredBatch) -> LogRewards:
        """Log-rewards of the objects of a batch, as the task computes them."""
        return [self.setup.task.log_reward(objects) for objects in batch.objects]

    def complete(
        self, batch: UnscoredBatch, log_rewards: LogRewards, beta: Float[Tensor, ""], rate: Float[Tensor, ""]
    ) -> tuple[Episodes, Learned]:
        """Update on a batch whose log-rewards are given."""
        raise NotImplementedError(f"{type(self).__name__} learns in one piece")

    @abstractmethod
    def relearn(self, past: Past, beta: Float[Tensor, ""], rate: Float[Tensor, ""]) -> None:
        """Update policy and flow on past trajectories: balance holds off-policy."""

    @abstractmethod
    def refit_noise_model(self, past: Past, rate: Float[Tensor, ""]) -> Float[Tensor, ""]:
        """Update the noise model on past outcomes; returns its loss."""

    # batches that are scored elsewhere, and trained on later

    def roll(self, draws: Any) -> tuple[Int[Tensor, "B T"], Int[Tensor, "B T"]]:
        """Intentions and outcomes of a batch of rollouts that nobody has scored."""
        raise NotImplementedError(f"{type(self).__name__} scores what it rolls out")

    def learn_from(self, past: Past, beta: Float[Tensor, ""], rate: Float[Tensor, ""]) -> tuple[Episodes, Learned]:
        """Update on a batch that `roll` made some time ago, scored since, as `learn` does on a new one."""
        raise NotImplementedError(f"{type(self).__name__} scores what it rolls out")

    def memory(self) -> dict[str, dict[str, Tensor]]:
        """Tensors that the next step depends on, by part and name; most backends have none."""
        return {}

    def resume(self) -> None:
        """Take up what `memory` holds, after it was loaded."""
        return

    def readings(self) -> dict[str, Tensor]:
        """Metrics of the backend itself."""
        return {}

    def live(self) -> dict[str, float]:
        """Figures of this moment for a progress bar."""
        return self.setup.task.landscape.live()

    def close(self) -> None:
        """End processes that batches were made in."""
        return

    def update_noise_model(self, pending: Any, rate: Float[Tensor, ""]) -> None:
        """Do the update of the noise model that `learn` left in `Learned.pending`."""
        raise NotImplementedError(f"{type(self).__name__} leaves no update for later")
