"""The seam of exploration: what a way to explore is given, and what it may do."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn

from sgfn.config import TrainConfig
from sgfn.envs.base import Env
from sgfn.envs.trajectories import Trajectories
from sgfn.landscapes.tasks import Task
from sgfn.learning.backend import Past
from sgfn.learning.exploration.archive import Archive
from sgfn.learning.exploration.first_rollouts import FirstRollouts
from sgfn.learning.general import GeneralBackend
from sgfn.learning.optimisation import Optimiser
from sgfn.learning.replay import Replay
from sgfn.learning.rollout import Actor


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What a way to explore is made of."""

    task: Task
    env: Env
    """The task's environment, its states numbered where it fits into tables."""
    device: torch.device
    archive: Archive
    """The best distinct objects so far; all ways of a run share it."""
    first: FirstRollouts
    """The first rollouts of the run, which tell whether anything may be hidden."""

    @property
    def config(self) -> TrainConfig:
        """The run's configuration."""
        return self.task.config


class Way:
    """One way to explore; a subclass overrides what it does differently, the rest does nothing.

    Whatever it does, the loss is that of the objective at the trajectory as it happened: balances hold off-policy. So a
    way may change which intentions are drawn (`actor`), make trajectories of its own in the noisy environment
    (`propose`), or pick what is replayed (`pick`); it never changes rewards, outcomes or scores.
    """

    count: int = 0
    """Trajectories of its own that `propose` makes, each of which costs one call of the score."""
    rounds: int = 1
    """How often it is asked for them in a step."""
    share: float = 0.0
    """Share of each replayed batch that `pick` gives."""
    reviews: bool = False
    """Whether `review` is to be told of replayed batches."""

    def __init__(self, surroundings: Surroundings) -> None:
        self.surroundings, self.config = surroundings, surroundings.config
        self.env, self.device, self.archive = surroundings.env, surroundings.device, surroundings.archive

    @property
    def need(self) -> float:
        """How much of its effort the way should spend: none where rollouts alone show all that there is."""
        return float(self.surroundings.first.effort)

    @property
    def rests(self) -> bool:
        """Whether the policy may make rollouts in the place of all its proposals, and learn from them at once."""
        return False

    def own(self, rows: Int[Tensor, " B"]) -> Bool[Tensor, " B"]:
        """Which rollouts of a batch the policy makes itself; by default all."""
        return torch.ones_like(rows, dtype=torch.bool)

    def actor(self, actor: Actor) -> Actor:
        """The actor of the next batch of rollouts; by default the one that is given."""
        return actor

    def propose(self, backend: GeneralBackend, generator: torch.Generator) -> Trajectories | None:
        """Trajectories of its own, `count` of them; their outcomes come from the true kernel."""
        return None

    def observe(self, batch: Trajectories, backend: GeneralBackend, beta: Tensor) -> None:
        """Learn from trajectories that were made in this step, own rollouts and proposals alike."""

    def review(self, batch: Trajectories, backend: GeneralBackend, beta: Tensor) -> None:
        """Learn from a replayed batch; called where `reviews` says so."""

    def pick(
        self, count: int, buffer: Replay, backend: GeneralBackend, beta: Tensor, generator: torch.Generator
    ) -> Past | None:
        """So many past trajectories for a replayed batch; None where there are none yet."""
        return None

    def modules(self) -> dict[str, nn.Module]:
        """Networks of its own by name, for checkpoints."""
        return {}

    def optimisers(self) -> dict[str, Optimiser]:
        """Their optimisers by name, for checkpoints."""
        return {}

    def memory(self) -> dict[str, Tensor]:
        """Other tensors that its next step depends on; they are changed in place only."""
        return {}


class WrappedActor:
    """An actor whose log-policy another function changes; a memory of the inner one is told as before."""

    def __init__(self, inner: Actor) -> None:
        self.inner = inner

    def log_policy(self, t: int, state: Int[Tensor, "B S"]) -> Tensor:
        """log pi(.|s) of the inner actor, as `changed` leaves it; illegal intentions stay impossible."""
        log_policy = self.inner.log_policy(t, state)
        return torch.where(log_policy > -torch.inf, self.changed(log_policy, state), -torch.inf).log_softmax(-1)

    def changed(self, log_policy: Tensor, state: Int[Tensor, "B S"]) -> Tensor:
        """Logits of the behaviour, from the policy's."""
        return log_policy

    def observe(self, t: int, intended: Int[Tensor, " B"], realised: Int[Tensor, " B"]) -> None:
        """Tell the inner actor what happened."""
        self.inner.observe(t, intended, realised)
