"""Uniform intentions: what the noise and the space alone give, with nothing learned."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.envs.base import Env
from sgfn.landscapes.tasks import Task
from sgfn.learning.learner import Learner
from sgfn.learning.rollout import LogPolicy, rollout

METERS = ("log_reward", "length", "reward")


def uniform_intentions(env: Env) -> LogPolicy:
    """Every legal intention alike, as logarithms."""

    def log_policy(state: Int[Tensor, "*batch S"]) -> Float[Tensor, "*batch A"]:
        legal = env.legal(state).float()
        return (legal / legal.sum(-1, keepdim=True)).log()

    return log_policy


class UniformPolicy(Learner):
    """Nothing is learned: a step draws a batch and reads its rewards."""

    def __init__(self, task: Task, device: torch.device) -> None:
        super().__init__(task, device, METERS)
        self.log_policy = uniform_intentions(self.env)

    def step(self) -> None:
        """One batch of rollouts, and the meters."""
        batch = rollout(
            self.env, self.log_policy, self.task.log_reward, batch=self.config.batch, generator=self.generator
        )
        self.record(batch.log_reward.mean(), batch.length.float().mean(), batch.log_reward.exp().mean())
        self.index += 1.0

    def memoryless(self) -> LogPolicy:
        """The uniform policy."""
        return self.log_policy
