"""The explorer: all ways to explore of a run, as the trainer asks them."""

import torch
from torch import Tensor, nn

from sgfn.config.registry import called_as, of_kind
from sgfn.envs.base import Env
from sgfn.envs.trajectories import Episodes, Trajectories
from sgfn.landscapes.offline import start_objects
from sgfn.landscapes.tasks import Task
from sgfn.learning.backend import Past
from sgfn.learning.exploration.archive import Archive
from sgfn.learning.exploration.base import Surroundings, Way
from sgfn.learning.exploration.first_rollouts import FirstRollouts
from sgfn.learning.exploration.registry import chosen_ways
from sgfn.learning.general import GeneralBackend
from sgfn.learning.optimisation import Optimiser
from sgfn.learning.replay import Replay, rebuild, uniform_draws
from sgfn.learning.rollout import Actor, Policy, as_actor, clocks


class Explorer:
    """The chosen ways with what they share: the archive, and the objects it begins with."""

    def __init__(self, task: Task, env: Env, device: torch.device) -> None:
        self.task, self.env, self.device = task, env, device
        self.archive = Archive(env, task.config.archive.capacity, device)
        self.first = FirstRollouts(env, float(task.beta), device)
        around = Surroundings(task=task, env=env, device=device, archive=self.archive, first=self.first)
        self.ways: dict[str, Way] = {}
        self.resting: set[str] = set()  # ways whose proposals of this step are left to the policy
        for entry in chosen_ways(task.config):
            if entry.way:
                with called_as("exploration", entry.name):
                    self.ways[entry.name] = of_kind("exploration", entry.name, entry.make(around), Way)

    @property
    def proposals(self) -> int:
        """Trajectories per step that the ways make beside the agent's own."""
        return sum(way.count * way.rounds for way in self.ways.values())

    def actor(self, policy: Policy) -> Actor:
        """The actor of the agent's own rollouts, changed by every way that changes it."""
        actor = as_actor(policy)
        for way in self.ways.values():
            actor = way.actor(actor)
        return actor

    def leave(self) -> int:
        """How many trajectories of the coming step ways that rest leave to the policy, as more of its own rollouts."""
        self.resting = {name for name, way in self.ways.items() if way.rests}
        return sum(self.ways[name].count * self.ways[name].rounds for name in self.resting)

    def begin(self, backend: GeneralBackend, generator: torch.Generator) -> int:
        """Put the objects that are known beforehand into the archive; returns how many were scored for that."""
        known = start_objects(self.task)
        if known is None or not len(known):
            return 0
        clock = clocks((self.env.horizon, 2, len(known), max(self.env.actions, self.env.outcomes)), generator)
        self.archive.add(backend.retraced(known.to(self.device), clock))
        return len(known)

    def advance(
        self, own: Episodes, backend: GeneralBackend, beta: Tensor, generator: torch.Generator
    ) -> list[Trajectories]:
        """Learn from a step's own batch, and make the proposals of all ways, for the replay buffer."""
        made = own if isinstance(own, Trajectories) else rebuild(self.env, own.intended, own.realised, own.log_reward)
        self._remember(made, backend)
        self._observe(made, backend, beta)
        found = []
        for name, way in self.ways.items():
            for _ in range(way.rounds if way.count and name not in self.resting else 0):
                more = way.propose(backend, generator)
                if more is not None:
                    self._observe(more, backend, beta)
                    found.append(more)
        return found

    def _remember(self, made: Trajectories, backend: GeneralBackend) -> None:
        """Keep the first rollouts that the policy makes itself."""
        if self.first.complete:
            return
        rows = torch.arange(len(made.realised), device=self.device)
        own = torch.stack([way.own(rows) for way in self.ways.values()]).all(0)
        if own.any():
            self.first.add(made.log_reward[own], -backend.log_chance(made)[own])

    def _observe(self, batch: Trajectories, backend: GeneralBackend, beta: Tensor) -> None:
        self.archive.add(batch)
        self.first.look(self.archive.log_reward[0], beta)
        for way in self.ways.values():
            way.observe(batch, backend, beta)

    def pick(
        self, count: int, buffer: Replay, backend: GeneralBackend, beta: Tensor, generator: torch.Generator
    ) -> Past:
        """A replayed batch: the share of each way that picks, and the rest uniformly from the buffer."""
        parts, left = [], count
        for way in self.ways.values():
            wanted = min(left, round(count * way.share))
            past = way.pick(wanted, buffer, backend, beta, generator) if wanted else None
            if past is not None:
                parts.append(past)
                left -= wanted
        if left:
            parts.append(buffer.pick(uniform_draws(left, generator)))
        intended, realised, log_reward = (torch.cat(part) for part in zip(*parts, strict=True))
        reviewers = [way for way in self.ways.values() if way.reviews]
        if reviewers:
            batch = rebuild(self.env, intended, realised, log_reward)
            for way in reviewers:
                way.review(batch, backend, beta)
        return intended, realised, log_reward

    # what checkpoints keep

    def modules(self) -> dict[str, nn.Module]:
        """Networks of the ways, by way and name."""
        return {_joined(name, key): part for name, way in self.ways.items() for key, part in way.modules().items()}

    def optimisers(self) -> dict[str, Optimiser]:
        """Optimisers of the ways, by way and name."""
        return {_joined(name, key): part for name, way in self.ways.items() for key, part in way.optimisers().items()}

    def memory(self) -> dict[str, dict[str, Tensor]]:
        """The archive, the first rollouts, and the tensors of the ways."""
        kept = {f"way-{_plain(name)}": way.memory() for name, way in self.ways.items()}
        shared = {"archive": self.archive.state(), "first": self.first.state()}
        return shared | {name: part for name, part in kept.items() if part}

    def found(self) -> dict[str, Tensor]:
        """Figures for the log: the highest reward of any object so far."""
        return {"best_reward": self.archive.log_reward[0].exp()}


def _plain(name: str) -> str:
    return name.replace(".", "_").replace(":", "_")


def _joined(name: str, key: str) -> str:
    return f"{_plain(name)}-{key}"
