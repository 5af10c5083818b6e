"""A policy and a value as tables over every trajectory of a small environment, for exact gradients."""

from dataclasses import dataclass, replace

import torch
from exact_tables import every_trajectory
from torch import Tensor

from sgfn.envs.base import Enumerable
from sgfn.envs.trajectories import Trajectories
from sgfn.nets.encoders import masked_log_softmax


@dataclass(frozen=True, kw_only=True)
class Everything:
    """All trajectories with the log-kernel along them; `logits` and `value` belong to state numbers."""

    env: Enumerable
    batch: Trajectories
    log_kernel: Tensor

    def log_policy(self, logits: Tensor) -> Tensor:
        """At every state before a step, B T A; done states read the root's row."""
        states = self.batch.states[:, :-1]
        rows = torch.where(self.env.done(states), 0, self.env.index(states))
        return masked_log_softmax(logits[rows], self.env.legal(states))

    def log_pi(self, logits: Tensor) -> Tensor:
        """Of what was intended; zero on padded steps."""
        found = self.log_policy(logits).gather(-1, self.batch.intended[..., None])[..., 0]
        return torch.where(self.batch.valid, found, 0.0)

    def chance(self, logits: Tensor) -> Tensor:
        """Probability of each trajectory; they sum to one."""
        return (self.log_pi(logits) + self.log_kernel).sum(1).exp()

    def values(self, value: Tensor) -> Tensor:
        """Along each trajectory, with the log-reward at the end."""
        done = self.env.done(self.batch.states)
        inner = value[torch.where(done, 0, self.env.index(self.batch.states))]
        return torch.where(done, self.batch.log_reward[:, None], inner)

    def worth(self, logits: Tensor, temperature: float) -> Tensor:
        """Reward plus temperature times entropy: what is maximised, as a function of the logits."""
        surprise = -self.log_pi(logits).sum(1)
        return (self.chance(logits) * (self.batch.log_reward + temperature * surprise)).sum()


def everything(env: Enumerable, log_reward: Tensor) -> Everything:
    batch = every_trajectory(env)
    numbers = env.object_index(env.objects(batch.states[:, -1]))
    kernel = env.kernel(batch.states[:, :-1], torch.float64)
    rows, steps = torch.arange(batch.valid.shape[0])[:, None], torch.arange(env.horizon)
    log_kernel = torch.where(batch.valid, kernel[rows, steps, batch.intended, batch.realised].log(), 0.0)
    return Everything(env=env, batch=replace(batch, log_reward=log_reward[numbers]), log_kernel=log_kernel)


def random_tables(env: Enumerable, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Logits of a policy, values of states, and log-rewards of objects."""
    generator = torch.Generator().manual_seed(seed)
    shapes = [(env.num_states, env.actions), (env.num_states,), (env.num_objects,)]
    return tuple(torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes)  # type: ignore[return-value]
