"""`random`, the uniform policy: what the noise and the space give when nothing is learned."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.envs.base import Env
from sgfn.landscapes.tasks import Task
from sgfn.learning.learner import Learner
from sgfn.learning.rollout import LogPolicy, rollout

METERS = ("log_reward", "length", "reward")


def uniform_intentions(env: Env) -> LogPolicy:
    """Log-policy that gives every legal intention the same probability."""

    def log_policy(state: Int[Tensor, "*batch S"]) -> Float[Tensor, "*batch A"]:
        legal = env.legal(state).float()
        return (legal / legal.sum(-1, keepdim=True)).log()

    return log_policy


class UniformPolicy(Learner):
    """A learner that learns nothing: a step draws a batch with the uniform policy and records its rewards."""

    def __init__(self, task: Task, device: torch.device) -> None:
        super().__init__(task, device, METERS)
        self.log_policy = uniform_intentions(self.env)

    def step(self) -> None:
        """Draw one batch of rollouts and record the meters."""
        batch = rollout(
            self.env, self.log_policy, self.task.log_reward, batch=self.config.batch, generator=self.generator
        )
        self.record(batch.log_reward.mean(), batch.length.float().mean(), batch.log_reward.exp().mean())
        self.index += 1.0

    def state_policy(self) -> LogPolicy:
        """The uniform policy as a function of the state."""
        return self.log_policy
