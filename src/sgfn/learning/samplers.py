"""Sampler processes: they roll out and score batches with weights that are a few updates old, for one that learns."""

import hashlib
import os
import sys
import weakref
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor

from sgfn.config import TrainConfig
from sgfn.config.processes import HIRE, Pool, ProcessWorker, RemoteError, WorkerLost
from sgfn.config.user_code import brief, in_user_code
from sgfn.landscapes.base import Landscape
from sgfn.landscapes.offline import training_objects
from sgfn.landscapes.tasks import is_known, make_task, recorded
from sgfn.learning.ahead import AheadBackend, Promised, ScoredAhead, Waiting, objects_of
from sgfn.learning.backend import Backend, Past, Setup
from sgfn.learning.exploration.registry import chosen_ways

Weights = tuple[np.ndarray, np.ndarray]
"""All weights of policy and flow, and of the noise model, as their optimisers hold them."""
PER_ACTOR = 2
"""Batches that are asked of each actor at a time: one that it makes, and the next."""


class Unscored(Landscape):
    """Scores of 1, for networks that are made to act only."""

    maximum, mode_level = 1.0, float("inf")

    def scores(self, objects: Int[Tensor, "*batch O"]) -> Float[Tensor, "*batch"]:
        """One for every object."""
        return torch.ones(objects.shape[:-1], device=objects.device)


class Sampler:
    """Body of a sampler: rolls out a batch by the weights that it is sent, and scores it."""

    def __init__(self, task: str, config: TrainConfig) -> None:
        from sgfn.learning.trainer import Trainer

        torch.set_num_threads(1)
        self.task = make_task(task, config)
        silent = replace(self.task, landscape=Unscored())
        self.trainer = Trainer(silent, torch.device("cpu"), training_objects(self.task))

    def __call__(self, request: tuple[int, float, Weights]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Intentions, outcomes and log-rewards of the batch of a number, which decides its random numbers."""
        number, temperature, weights = request
        trainer, config = self.trainer, self.task.config
        for optimiser, values in zip((trainer.optimiser, trainer.dynamics_optimiser), weights, strict=True):
            optimiser.values.copy_(torch.tensor(values))
        generator = torch.Generator().manual_seed(mixed(config.seed, "actor", number))
        intended, realised = trainer.backend.roll(trainer.backend.draw(generator, temperature))
        log_reward = self.task.log_reward(objects_of(trainer.env, realised))
        return intended.to(torch.int16).numpy(), realised.to(torch.int16).numpy(), log_reward.numpy()


def make_sampler(task: str, config: TrainConfig, folder: str) -> Sampler:
    """A sampler in another process, which looks for a user's modules in a folder too."""
    if folder not in sys.path and os.path.isdir(folder):  # noqa: PTH112 -- text, as in sys.path
        sys.path.append(folder)
    return Sampler(task, config)


def mixed(*parts: object) -> int:
    """A seed that depends on all of several things.

    >>> mixed(0, "rank", 1) != mixed(0, "rank", 2), mixed(3) == mixed(3)
    (True, True)
    """
    return int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=8).digest(), "big") >> 1


class SampledAhead(AheadBackend):
    """Has batches rolled out and scored by actors, and trains on them when they arrive."""

    def __init__(self, inner: Backend, setup: Setup, index: Float64[Tensor, ""]) -> None:
        config = setup.config
        self.lag_bound = PER_ACTOR * config.actors if config.actors_lag is None else config.actors_lag
        places = min(self.lag_bound, PER_ACTOR * config.actors - 1) + 1
        super().__init__(inner, setup, index, places=places, bound=self.lag_bound)
        self.issued = torch.zeros((), dtype=torch.int64)
        self.pool: Pool | None = None

    def draw(self, generator: torch.Generator, temperature: float | Tensor) -> list[tuple[int, float]]:
        """Numbers of the batches that are missing, which decide their random numbers, and the temperature."""
        first, count = int(self.issued), self.missing()
        self.issued += count
        return [(number, float(temperature)) for number in range(first, first + count)]

    def send(self, place: int, draws: tuple[int, float]) -> Promised:
        """Ask an actor for a batch by the present weights."""
        request = (*draws, self._weights())
        return Promised(self._started().submit(lambda ask: ask(request)))

    def fetch(self, waiting: Waiting) -> Past:
        """A batch that an actor has made."""
        try:
            intended, realised, log_reward = waiting.request.future.result()
        except (RemoteError, WorkerLost) as error:
            raise ValueError(f"an actor failed{in_user_code(error)}: {brief(error)}") from error
        device = self.setup.device
        meant, done, reward = (torch.tensor(part, device=device) for part in (intended, realised, log_reward))
        return meant.long(), done.long(), reward

    def _weights(self) -> Weights:
        both = (self.setup.optimiser, self.setup.noise_optimiser)
        return tuple(one.values.detach().cpu().numpy().copy() for one in both)  # pyright: ignore[reportReturnType]

    def _started(self) -> Pool:
        if self.pool is None:
            task, config = self.setup.task, self.config.with_(actors=0, actors_lag=None, exploration="constant")
            make = partial(make_sampler, recorded(task.name, elsewhere=True), config, os.getcwd())  # noqa: PTH109
            self.pool = Pool(partial(HIRE.get() or ProcessWorker, make), self.config.actors)
            weakref.finalize(self, self.pool.close)
        return self.pool

    def memory(self) -> dict[str, dict[str, Tensor]]:
        """How many batches were asked for, so that no number comes twice; those on their way are asked for anew."""
        return {"actors": {"issued": self.issued, "lag": self.lag}}

    def resume(self) -> None:
        """Forget batches of another past."""
        self.queue = []

    def live(self) -> dict[str, float]:
        """Batches that are waited for."""
        return {"waiting": float(sum(not waiting.request.ready for waiting in self.queue))}

    def close(self) -> None:
        """End the actors; batches on their way are lost."""
        if self.pool is not None:
            self.pool.close()
            self.pool, self.queue = None, []


def check_actors(setup: Setup) -> None:
    """Refuse what actors in other processes cannot do."""
    task, config = setup.task, setup.config
    if not is_known(task.name):
        raise ValueError(f"actors make the task anew from its name, and {task.name} has none: name module:builder")
    if task.landscape.scores_ahead:
        raise ValueError("actors score what they roll out: leave workers and time-outs of the reward out, or actors")
    for way in chosen_ways(config):
        if way.behaviour:
            raise ValueError(f"exploration {way.name!r} changes rollouts as it learns, which actors do not know of")


def arranged(inner: Backend, setup: Setup, index: Float64[Tensor, ""]) -> Backend:
    """The backend itself, or around it one that trains on batches which others have scored or made meanwhile."""
    if setup.config.actors:
        check_actors(setup)
        return SampledAhead(inner, setup, index)
    if setup.config.ahead and setup.task.landscape.scores_ahead:
        return ScoredAhead(inner, setup, index)
    return inner
