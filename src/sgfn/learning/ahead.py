r"""Batches that are rolled out ahead: they wait for their scores while training goes on with earlier ones.

A balance holds for trajectories of any origin, so that a batch may be trained on some updates after it was rolled out:
it is scored by teacher forcing at the weights of that moment.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor

from sgfn.envs.base import Env
from sgfn.envs.trajectories import Episodes
from sgfn.learning.backend import Backend, Learned, Past, Setup

EMPTY = -1
"""Number of a place in which no batch waits."""


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """A batch on its way: its place, the update at which it was asked for, and what it is waited for by."""

    place: int
    born: int
    request: Any
    """Tells by `ready` whether it has arrived, and by `futures` what it waits for."""


class AheadBackend(Backend, ABC):
    """A backend that trains on batches asked for earlier; there are `places` for those on their way.

    Where a `bound` is given, no batch is trained on later than so many updates after it was asked for.
    """

    alone = False

    def __init__(
        self, inner: Backend, setup: Setup, index: Float64[Tensor, ""], *, places: int, bound: int | None = None
    ) -> None:
        super().__init__(setup)
        self.inner, self.index, self.places, self.bound = inner, index, places, bound
        self.queue: list[Waiting] = []  # the oldest first
        self.lag = torch.zeros(2, dtype=torch.float64)  # sum and count since it was last read

    @abstractmethod
    def send(self, place: int, draws: Any) -> Any:
        """Ask for a batch, to be kept in a place; returns what it is waited for by."""

    @abstractmethod
    def fetch(self, waiting: Waiting) -> Past:
        """A batch with its log-rewards, waited for."""

    @property
    def done(self) -> int:
        """Updates so far."""
        return int(self.index)

    def missing(self) -> int:
        """Batches to ask for before the next update; at the end of a run none that nobody would train on."""
        wanted = min(self.places, max(1, self.config.steps - self.done))
        return max(0, wanted - len(self.queue))

    def draw(self, generator: torch.Generator, temperature: float | Tensor) -> list[Any]:
        """Random numbers of the batches that are missing."""
        return [self.inner.draw(generator, temperature) for _ in range(self.missing())]

    def learn(self, draws: list[Any], beta: Float[Tensor, ""], rate: Float[Tensor, ""]) -> tuple[Episodes, Learned]:
        """Ask for new batches, and update on one that has arrived: the oldest of them, or the oldest of all."""
        for one, place in zip(draws, self._free(), strict=False):
            self.queue.append(Waiting(place=place, born=self.done, request=self.send(place, one)))
        chosen = self._next()
        past = self.fetch(chosen)
        self.lag += torch.tensor([self.done - chosen.born, 1.0], dtype=torch.float64)
        self.queue.remove(chosen)
        self.free(chosen.place)
        return self.inner.learn_from(past, beta, rate)

    def free(self, place: int) -> None:
        """Forget what was kept in a place."""

    def _free(self) -> Iterator[int]:
        taken = {waiting.place for waiting in self.queue}
        return (place for place in range(self.places) if place not in taken)

    def _next(self) -> Waiting:
        """The batch to train on: the oldest, or the oldest of those that have arrived and may be preferred to it."""
        if self.config.deterministic:
            return self.queue[0]
        allowed = [waiting for waiting in self.queue if self._in_time(waiting)]
        while not (ready := [waiting for waiting in allowed if waiting.request.ready]):
            wait([future for waiting in allowed for future in waiting.request.futures], return_when=FIRST_COMPLETED)
        return ready[0]

    def _in_time(self, chosen: Waiting) -> bool:
        """Whether all other batches can be trained on within the bound, the oldest first, after this one."""
        others = [waiting.born for waiting in self.queue if waiting is not chosen]
        return self.bound is None or all(born + self.bound > self.done + i for i, born in enumerate(others))

    def relearn(self, past: Past, beta: Float[Tensor, ""], rate: Float[Tensor, ""]) -> None:
        """Update policy and flow on past trajectories."""
        self.inner.relearn(past, beta, rate)

    def refit_noise_model(self, past: Past, rate: Float[Tensor, ""]) -> Float[Tensor, ""]:
        """Update the noise model on past outcomes; returns its loss."""
        return self.inner.refit_noise_model(past, rate)

    def update_noise_model(self, pending: Any, rate: Float[Tensor, ""]) -> None:
        """Do the update of the noise model that `learn` left."""
        self.inner.update_noise_model(pending, rate)

    def readings(self) -> dict[str, Tensor]:
        """Mean number of updates between asking for a batch and training on it, since this was last asked."""
        found = self.lag[0] / self.lag[1].clamp(min=1.0)
        self.lag.zero_()
        return {"lag": found}


class ScoredAhead(AheadBackend):
    """Rolls out here, and has batches scored by the workers of the landscape."""

    def __init__(self, inner: Backend, setup: Setup, index: Float64[Tensor, ""]) -> None:
        super().__init__(inner, setup, index, places=setup.config.ahead + 1)
        shape, device = (self.places, self.config.batch, setup.env.horizon), setup.device
        self.intended = torch.zeros(shape, dtype=torch.int16, device=device)
        self.realised = torch.zeros_like(self.intended)
        self.number = torch.full((self.places,), EMPTY)  # of the batch in a place, in the order of rolling out
        self.born = torch.zeros_like(self.number)

    def send(self, place: int, draws: Any) -> Any:
        """Roll a batch out, keep it, and ask for its scores."""
        self.intended[place], self.realised[place] = (part.to(torch.int16) for part in self.inner.roll(draws))
        self.number[place], self.born[place] = int(self.number.max()) + 1, self.done
        return self.setup.task.landscape.request(self.objects(place))

    def objects(self, place: int) -> Int[Tensor, "B O"]:
        """The objects that the trajectories in a place end in."""
        return objects_of(self.setup.env, self.realised[place].long())

    def fetch(self, waiting: Waiting) -> Past:
        """A batch with its log-rewards: whatever the task makes of scores is made now."""
        place, task = waiting.place, self.setup.task
        with task.landscape.taken(waiting.request):
            log_reward = task.log_reward(self.objects(place))
        return self.intended[place].long(), self.realised[place].long(), log_reward

    def free(self, place: int) -> None:
        """Mark a place as empty."""
        self.number[place] = EMPTY

    def memory(self) -> dict[str, dict[str, Tensor]]:
        """The batches that wait for their scores."""
        names = ("intended", "realised", "number", "born", "lag")
        return {"ahead": {name: getattr(self, name) for name in names}}

    def resume(self) -> None:
        """Ask again for the scores of batches that waited when the state was saved, in their order."""
        order = [place for place in self.number.argsort().tolist() if self.number[place] != EMPTY]
        request = self.setup.task.landscape.request
        self.queue = [Waiting(place=p, born=int(self.born[p]), request=request(self.objects(p))) for p in order]


def objects_of(env: Env, realised: Int[Tensor, "B T"]) -> Int[Tensor, "B O"]:
    """The objects that outcomes lead to."""
    return env.objects(env.unrolled(realised)[0][:, -1])


@dataclass(frozen=True)
class Promised:
    """A request that one future answers."""

    future: Future[Any]

    @property
    def futures(self) -> list[Future[Any]]:
        """What is still waited for."""
        return [] if self.future.done() else [self.future]

    @property
    def ready(self) -> bool:
        """Whether it has arrived, or has failed."""
        return self.future.done()
