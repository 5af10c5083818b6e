"""`sac`, soft actor-critic for discrete actions: learns from replayed trajectories, with exact sums over actions."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from sgfn.config import NetConfig
from sgfn.envs.base import Env
from sgfn.envs.trajectories import Trajectories
from sgfn.landscapes.tasks import Task
from sgfn.learning.learner import seeded
from sgfn.learning.optimisation import Optimiser
from sgfn.learning.peers.actor_critic import (
    ActionNet,
    SoftLearner,
    action_entries,
    entropy,
    soft_value,
    step_mean,
    step_sum,
    with_final_rewards,
)
from sgfn.learning.replay import Replay
from sgfn.learning.rollout import rollout


def critic_errors(
    q: Float[Tensor, "2 B T A"], action: Int[Tensor, "B T"], following: Float[Tensor, "B T"]
) -> Float[Tensor, "B T"]:
    r"""Mean squared error of both critics against the soft value of the next state.

    .. math:: \tfrac12 \sum_i (Q_i(s_t,a_t) - V(s_{t+1}))^2

    No reward is earned along the way but entropy, which is part of V; a finished state has V = beta log R.

    Reference: Haarnoja et al. (2018), Soft actor-critic, ICML; Christodoulou (2019), Soft actor-critic for discrete
    action settings, arXiv:1910.07207.
    """
    return (action_entries(q, action.expand(q.shape[:-1])) - following).square().mean(0)


def actor_loss(
    log_policy: Float[Tensor, "B T A"], q: Float[Tensor, "B T A"], valid: Bool[Tensor, "B T"], temperature: float
) -> Float[Tensor, ""]:
    r"""Minus the policy's soft value under the critics, $-\sum_t \sum_a \pi(a|s_t)\,(Q(s_t,a) - \tau\log\pi(a|s_t))$.

    It is least where $\pi \propto e^{Q/\tau}$.
    """
    return -step_sum(soft_value(log_policy, q.detach(), temperature), valid)


class TwinCritics(nn.Module):
    """Two critics with different initial weights; the lower of their Q values is used, against overestimation."""

    def __init__(self, env: Env, config: NetConfig) -> None:
        super().__init__()
        self.first, self.second = ActionNet(env, config), ActionNet(env, config)

    def forward(self, state: Int[Tensor, "*batch S"]) -> Float[Tensor, "2 *batch A"]:
        """Q values of both critics, stacked."""
        return torch.stack([self.first(state), self.second(state)])

    @torch.no_grad()
    def move_towards(self, other: "TwinCritics", share: float) -> None:
        """Move all weights a share of the way to those of other critics: an exponential moving average."""
        for mine, theirs in zip(self.parameters(), other.parameters(), strict=True):
            mine.lerp_(theirs, share)


class SAC(SoftLearner):
    """Soft actor-critic: twin critics, slowly averaged copies as their targets, and a buffer of trajectories."""

    def __init__(self, task: Task, device: torch.device) -> None:
        super().__init__(task, device)
        config, optim = self.config, self.config.optim
        with seeded(config.seed + 1):
            self.critics, self.slow = (TwinCritics(self.env, config.net).to(device) for _ in range(2))
        self.initialise_critics(self.critics.first, self.critics.second)
        self.slow.requires_grad_(False).load_state_dict(self.critics.state_dict())
        self.optimiser = Optimiser([(list(self.policy_net.parameters()), optim.lr)], optim.clip, device)
        self.critic_optimiser = Optimiser([(list(self.critics.parameters()), optim.lr)], optim.clip, device)
        self.buffer = Replay(self.env, config.replay.capacity, device)

    def collect(self) -> Trajectories:
        """Draw a batch of rollouts, with the configured exploration."""
        config = self.config
        return rollout(
            self.env,
            self.policy_net.actor(),
            self.task.log_reward,
            batch=config.batch,
            generator=self.generator,
            explore=config.explore,
            temperature=config.temperature,
        )

    def learn(self, batch: Trajectories, beta: Tensor, rate: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Add a batch to the buffer and take the configured number of updates from it; returns the last figures."""
        self.buffer.add(batch)
        size, updates = self.config.replay.batch or self.config.batch, self.config.rl.updates
        return [self.update(self.buffer.sample(size, self.generator), beta, rate) for _ in range(updates)][-1]

    def update(self, batch: Trajectories, beta: Tensor, rate: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Update critics, policy and averaged critics from a batch; returns loss, mean entropy and critic error."""
        rl, states, valid = self.config.rl, batch.states, batch.valid
        log_policy = self.policy_net.log_policy(states)
        with torch.no_grad():
            value = with_final_rewards(soft_value(log_policy, self.slow(states).amin(0), rl.temperature), batch, beta)
        q = self.critics(states[:, :-1])
        errors = critic_errors(q, batch.intended, value[:, 1:])
        critic = step_sum(errors, valid)
        actor = actor_loss(log_policy[:, :-1], q.amin(0), valid, rl.temperature)
        self.critic_optimiser.step(critic, rate)
        self.optimiser.step(actor, rate)
        self.slow.move_towards(self.critics, rl.average)
        return (actor + critic).detach(), step_mean(entropy(log_policy[:, :-1]), valid), step_mean(errors, valid)

    def modules(self) -> dict[str, nn.Module]:
        """Policy, critics and averaged critics by name, for checkpoints."""
        return {"policy": self.policy_net, "critics": self.critics, "slow": self.slow}

    def optimisers(self) -> dict[str, Optimiser]:
        """The optimisers of policy and critics by name, for checkpoints."""
        return {"optimiser": self.optimiser, "critic_optimiser": self.critic_optimiser}

    def memory(self) -> dict[str, dict[str, Tensor]]:
        """The replay buffer's tensors, for checkpoints."""
        return {"buffer": self.buffer.state()}
