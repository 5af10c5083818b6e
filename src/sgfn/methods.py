"""Methods by name: flow networks, and the peers they are compared with."""

from collections.abc import Callable

import torch
from jaxtyping import Int
from torch import Tensor

from sgfn.learner import Learner
from sgfn.peers.a2c import A2C
from sgfn.peers.mars import Mars
from sgfn.peers.metropolis import MetropolisHastings
from sgfn.peers.ppo import PPO
from sgfn.peers.random import UniformPolicy
from sgfn.peers.sac import SAC
from sgfn.series.learner import ForecastLearner
from sgfn.tasks import Task
from sgfn.trainer import Trainer

LEARNERS: dict[str, Callable[[Task, torch.device], Learner]] = {
    "gfn": Trainer,
    "random": UniformPolicy,
    "mh": MetropolisHastings,
    "mars": Mars,
    "a2c": A2C,
    "ppo": PPO,
    "sac": SAC,
    "forecast": ForecastLearner,
}
"""Keys equal the config's `Method`."""


def make_learner(task: Task, device: torch.device, offline: Int[Tensor, "N O"] | None = None) -> Learner:
    """A method set to work on a task; only flow networks have a use for known objects."""
    kind = LEARNERS[task.config.method]
    if task.series is not None and kind is not ForecastLearner:
        method = task.config.method
        raise ValueError(f"task series is learned by method 'forecast', not by {method!r}: add --preset forecast")
    if kind is Trainer:
        return Trainer(task, device, offline)
    return kind(task, device)
