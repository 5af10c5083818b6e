"""A task: an environment, a landscape and the exponent they are usually run with; and the parts that builders share."""

import math
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.config import TrainConfig
from sgfn.config.tasks import ConstraintsConfig, charge_range, gc_range
from sgfn.envs import Constraints, Env, IndelEnv, SequenceEnv
from sgfn.landscapes.base import Landscape
from sgfn.landscapes.read_out import ReadOut
from sgfn.noise import make_noise
from sgfn.noise.indel import Indel


@dataclass(frozen=True, kw_only=True)
class Task:
    """What to build and what it is worth."""

    name: str
    summary: str
    env: Env
    landscape: Landscape
    beta: float
    config: TrainConfig
    series: Any = None
    """What there is to learn from, where the objects are forecasts."""

    def log_reward(self, objects: Int[Tensor, "*batch O"]) -> Float[Tensor, "*batch"]:
        """log R before the exponent (mission M7); under constraints at most its floor where an object breaks one, so
        that noise which breaks them is learned from, with finite losses."""
        found, fits = self.landscape.log_reward(objects, self.config.reward), self.env.admissible(objects)
        if fits is None:
            return found
        floor = math.log(self.config.reward.minimum) - math.log(self.config.reward.norm)
        return torch.where(fits, found, found.clamp(max=floor))

    def log_target(self, objects: Int[Tensor, "*batch O"]) -> Float[Tensor, "*batch"]:
        """log R of the target law: as `log_reward`, and minus infinity where an object breaks a constraint."""
        found, fits = self.landscape.log_reward(objects, self.config.reward), self.env.admissible(objects)
        return found if fits is None else torch.where(fits, found, -torch.inf)


def sequences(config: TrainConfig, *, length: int, alphabet: str, min_length: int | None = None) -> SequenceEnv:
    """Sequences under the configured noise: of one length, or with a stop action from a least length on."""
    noise = make_noise(config.noise, alphabet, length)
    rules = make_constraints(config.constraints)
    if isinstance(noise, Indel):
        if min_length not in (None, length):
            raise ValueError(
                "noise.kind 'indel' writes sequences of one length step by step, and this task has several: choose "
                "another kind, or `sgfn design propose`, which orders whole sequences"
            )
        return IndelEnv(length=length, alphabet=alphabet, noise=noise, constraints=rules)
    if min_length is None or min_length == length:
        return SequenceEnv(length=length, alphabet=alphabet, noise=noise, constraints=rules)
    varies: dict[str, Any] = {"stop": True, "min_length": min_length}
    return SequenceEnv(length=length, alphabet=alphabet, noise=noise, constraints=rules, **varies)


def make_constraints(config: ConstraintsConfig) -> Constraints | None:
    """The configured constraints; None where there are none."""
    given = constraint_values(config)
    return Constraints(**given) if given else None


def constraint_values(config: ConstraintsConfig) -> dict[str, Any]:
    """The constraints that are given, by the names and in the types of `Constraints`."""
    given = {name: value for name, value in vars(config).items() if value is not None}
    if "forbid" in given:
        given["forbid"] = tuple(motif for motif in given["forbid"].replace(",", " ").split())
    if "gc" in given:
        given["gc"] = gc_range(given["gc"])
    if "charge" in given:
        given["charge"] = charge_range(given["charge"])
    return given


def assemble(name: str, config: TrainConfig, env: Env, landscape: Landscape, beta: float, summary: str) -> Task:
    """A task with the configured exponent, or else the one given."""
    beta = beta if config.beta is None else config.beta
    landscape = ReadOut(landscape, env) if isinstance(env, IndelEnv) else landscape
    return Task(name=name, summary=summary, env=env, landscape=landscape, beta=beta, config=config)
