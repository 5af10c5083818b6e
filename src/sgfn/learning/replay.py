"""A ring buffer of trajectories, in tensors of fixed size on the device."""

import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor

from sgfn.envs.base import Env
from sgfn.envs.trajectories import Episodes, Trajectories


class Replay:
    """Keeps (intended, realised) and the log-reward; states are rebuilt by `apply`, so a trajectory costs 2T shorts."""

    intended: Int[Tensor, "N T"]
    realised: Int[Tensor, "N T"]
    log_reward: Float[Tensor, " N"]
    added: Int[Tensor, ""]

    def __init__(self, env: Env, capacity: int, device: torch.device) -> None:
        self.env, self.capacity = env, capacity
        self.intended = torch.zeros(capacity, env.horizon, dtype=torch.int16, device=device)
        self.realised = torch.zeros_like(self.intended)
        self.log_reward = torch.zeros(capacity, device=device)
        self.added = torch.zeros((), dtype=torch.int64, device=device)

    def add(self, batch: Episodes) -> None:
        """Overwrite the oldest; of a batch larger than the buffer only the last part stays."""
        kept = slice(max(0, batch.realised.shape[0] - self.capacity), None)
        rows = (self.added + torch.arange(batch.realised[kept].shape[0], device=self.added.device)) % self.capacity
        self.intended[rows] = batch.intended[kept].to(torch.int16)
        self.realised[rows] = batch.realised[kept].to(torch.int16)
        self.log_reward[rows] = batch.log_reward[kept]
        self.added += rows.shape[0]

    def sample(self, batch: int, generator: torch.Generator) -> Trajectories:
        """Uniform draws, with replacement, from what has been added."""
        return rebuild(self.env, *self.pick(uniform_draws(batch, generator)))

    def pick(self, uniform: Float64[Tensor, " B"]) -> tuple[Tensor, Tensor, Tensor]:
        """Intentions, outcomes and log-rewards where uniform numbers point to."""
        rows = (uniform * self.added.clamp(max=self.capacity)).long()
        return self.intended[rows].long(), self.realised[rows].long(), self.log_reward[rows]

    def state(self) -> dict[str, Tensor]:
        """Tensors that a checkpoint keeps."""
        return {name: getattr(self, name) for name in ("intended", "realised", "log_reward", "added")}


def uniform_draws(count: int, generator: torch.Generator) -> Float64[Tensor, " N"]:
    """Uniform numbers for `Replay.pick`, fine enough for any buffer."""
    return torch.rand(count, generator=generator, device=generator.device, dtype=torch.float64)


def rebuild(
    env: Env, intended: Int[Tensor, "B T"], realised: Int[Tensor, "B T"], log_reward: Float[Tensor, " B"]
) -> Trajectories:
    """Trajectories with the states they pass through, from intentions, outcomes and log-rewards."""
    states, valid = env.unrolled(realised)
    return Trajectories(intended=intended, realised=realised, valid=valid, states=states, log_reward=log_reward)
