"""Trajectories and samples: what was intended and what happened."""

from dataclasses import dataclass, fields, replace
from typing import TypeVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sgfn.envs.base import Env


@dataclass(frozen=True, kw_only=True)
class Episodes:
    """What was intended and what happened in a batch of finished trajectories, padded to the horizon T."""

    intended: Int[Tensor, "B T"]
    """What the agent meant to do (its thought)."""
    realised: Int[Tensor, "B T"]
    """What the environment did (the real action)."""
    valid: Bool[Tensor, "B T"]
    """Steps that happened; the rest is padding."""
    log_reward: Float[Tensor, " B"]

    @property
    def final(self) -> Bool[Tensor, "B N"]:
        """States that are the finished object: the one after the last valid step, and its repeats."""
        first = torch.zeros_like(self.valid[:, :1])
        return torch.cat([first, ~self.valid[:, 1:], torch.ones_like(first)], 1)

    @property
    def length(self) -> Int[Tensor, " B"]:
        """Number of valid steps."""
        return self.valid.sum(1)


@dataclass(frozen=True, kw_only=True)
class WholeEpisodes(Episodes):
    """Episodes in which no step is padding, as is known without a look at `valid`."""


@dataclass(frozen=True, kw_only=True)
class Trajectories(Episodes):
    """Episodes with the states they pass through; padded steps repeat the last state."""

    states: Int[Tensor, "B T+1 S"]


E = TypeVar("E", bound=Episodes)


def tempered(batch: E, beta: Float[Tensor, ""]) -> E:
    """The same batch with its reward raised to a power."""
    return replace(batch, log_reward=beta * batch.log_reward)


def concatenate(*batches: Trajectories) -> Trajectories:
    """Batches as one."""
    names = [field.name for field in fields(Trajectories)]
    return Trajectories(**{name: torch.cat([getattr(batch, name) for batch in batches]) for name in names})


def first_of(batch: Trajectories, count: int) -> Trajectories:
    """The first trajectories of a batch, as a copy that does not keep the others."""
    return Trajectories(**{field.name: getattr(batch, field.name)[:count].clone() for field in fields(Trajectories)})


@dataclass(frozen=True, kw_only=True)
class Samples:
    """Finished objects with what was intended, step by step (-1 on padded steps)."""

    objects: Int[Tensor, "N O"]
    scores: Float[Tensor, " N"]
    intended: Int[Tensor, "N T"]


def gathered(parts: list[Samples]) -> Samples:
    """Samples one after the other."""
    names = [field.name for field in fields(Samples)]
    return Samples(**{name: torch.cat([getattr(part, name) for part in parts]) for name in names})


def finished(env: Env, batch: Trajectories) -> Samples:
    """The objects that rollouts scored by the landscape's scores ended in, on the host."""
    return Samples(
        objects=env.objects(batch.states[:, -1]).cpu(),
        scores=batch.log_reward.cpu(),
        intended=torch.where(batch.valid, batch.intended, -1).cpu(),
    )
