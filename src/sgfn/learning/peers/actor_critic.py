r"""What `a2c`, `ppo` and `sac` share: what they maximise, how they step, and what they refuse.

An episode earns $\beta\log R(x)$ at its end and $\tau\,H(\pi(.|s))$ at each step; the exact optimum is
`exact.soft_policy`.
"""

from abc import abstractmethod

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from sgfn.config import NetConfig, TrainConfig
from sgfn.envs.base import Env
from sgfn.envs.trajectories import Trajectories
from sgfn.landscapes.base import beta_at
from sgfn.landscapes.tasks import Task
from sgfn.learning.kernels.layered import MLPActor
from sgfn.learning.learner import Learner, seeded
from sgfn.learning.optimisation import Optimiser, schedule
from sgfn.learning.rollout import LogPolicy, rollout
from sgfn.nets.encoders import MLP, masked_log_softmax
from sgfn.nets.heads import small

METERS = ("loss", "log_reward", "length", "reward", "entropy", "value_error")


# Pure functions


def soft_advantage(
    log_pi: Float[Tensor, "B T"],
    value: Float[Tensor, "B T+1"],
    valid: Bool[Tensor, "B T"],
    temperature: float,
    trace: float,
) -> Float[Tensor, "B T"]:
    r"""Generalised advantage of what was intended, where each step is paid for its surprise.

    .. math:: A_t = \sum_{u \ge t} \lambda^{u-t} \delta_u, \qquad
              \delta_t = -\tau\log\pi(a_t|s_t) + V(s_{t+1}) - V(s_t)

    `value` ends in beta log R. The mean of the payment is tau times the entropy; paid for the action instead, every
    advantage vanishes at the optimum without noise, not only their mean.
    Reference: Schulman et al. (2016), High-dimensional continuous control using generalized advantage estimation, ICLR.
    """
    delta = torch.where(valid, value[:, 1:] - value[:, :-1] - temperature * log_pi, 0.0)
    step = torch.arange(delta.shape[1], device=delta.device)
    weight = torch.tril(trace ** (step[:, None] - step).clamp(min=0).to(delta.dtype))  # from u to t
    return delta @ weight


def step_sum(values: Float[Tensor, "B T"], valid: Bool[Tensor, "B T"]) -> Float[Tensor, ""]:
    """Sum over the steps of a trajectory, mean over trajectories."""
    return torch.where(valid, values, 0.0).sum(1).mean()


def step_mean(values: Float[Tensor, "B T"], valid: Bool[Tensor, "B T"]) -> Float[Tensor, ""]:
    """Mean over all steps of a batch: for figures, not for gradients."""
    return torch.where(valid, values.detach(), 0.0).sum() / valid.sum()


def chosen(table: Float[Tensor, "*batch A"], action: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    """Each row's entry of its action."""
    return table.gather(-1, action[..., None])[..., 0]


def soft_value(
    log_policy: Float[Tensor, "*batch A"], q: Float[Tensor, "*batch A"], temperature: float
) -> Float[Tensor, "*batch"]:
    r"""$V(s) = \sum_a \pi(a|s)\,(Q(s,a) - \tau\log\pi(a|s))$, over legal actions."""
    gain = (q - temperature * log_policy).masked_fill(log_policy.isneginf(), 0.0)
    return (log_policy.exp() * gain).sum(-1)


def entropy(log_policy: Float[Tensor, "*batch A"]) -> Float[Tensor, "*batch"]:
    r"""$-\sum_a \pi(a|s)\log\pi(a|s)$."""
    return soft_value(log_policy, torch.zeros_like(log_policy), 1.0)


def settled(value: Float[Tensor, "B N"], batch: Trajectories, beta: Float[Tensor, ""]) -> Float[Tensor, "B N"]:
    """Values along a batch, with beta log R in the place of finished states."""
    return torch.where(batch.final, (beta * batch.log_reward)[:, None].to(value.dtype), value)


# Networks


def plain_layers(env: Env, config: NetConfig) -> MLP:
    """What reads states one by one."""
    return MLP(env.features, config.hidden, config.layers, config.activation)


class ActionNet(nn.Module):
    """One number for each action: a policy's logits, or a critic."""

    def __init__(self, env: Env, config: NetConfig) -> None:
        super().__init__()
        self.env, self.encoder = env, plain_layers(env, config)
        self.head = small(nn.Linear(self.encoder.width, env.actions))

    def forward(self, state: Int[Tensor, "*batch S"]) -> Float[Tensor, "*batch A"]:
        """Any states, each by itself."""
        return self.head(self.encoder(self.env.encode(state)))

    def log_policy(self, state: Int[Tensor, "*batch S"]) -> Float[Tensor, "*batch A"]:
        """log pi(.|s), minus infinity where illegal."""
        return masked_log_softmax(self(state), self.env.legal(state))

    def actor(self) -> MLPActor:
        """Who acts in a rollout, as a policy."""
        return MLPActor(self.env, self.encoder, self.head)


class ValueNet(nn.Module):
    """V(s), entropy to come included."""

    def __init__(self, env: Env, config: NetConfig) -> None:
        super().__init__()
        self.env, self.encoder = env, plain_layers(env, config)
        self.head = small(nn.Linear(self.encoder.width, 1))

    def forward(self, state: Int[Tensor, "*batch S"]) -> Float[Tensor, "*batch"]:
        """Any states, each by itself."""
        return self.head(self.encoder(self.env.encode(state)))[..., 0]


def check_encoder(config: TrainConfig) -> None:
    """Refuse a network that reads whole trajectories."""
    if config.net.encoder != "mlp":
        raise ValueError(f"method {config.method!r} reads states one by one: use --net.encoder mlp")


# Learners


class SoftLearner(Learner):
    """A network that acts, and a batch of rollouts per step to learn from."""

    def __init__(self, task: Task, device: torch.device) -> None:
        check_encoder(task.config)
        super().__init__(task, device, METERS)
        with seeded(self.config.seed):
            self.policy_net = ActionNet(self.env, self.config.net).to(device)

    @abstractmethod
    def collect(self) -> Trajectories:
        """A batch of rollouts."""

    @abstractmethod
    def learn(self, batch: Trajectories, beta: Tensor, rate: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Updates that follow from a batch: loss, mean entropy of the policy, mean squared error of the critic."""

    def step(self) -> None:
        """One batch of rollouts, the updates that follow from it, and the meters."""
        config = self.config
        beta = beta_at(self.index, self.task.beta, config.reward.ramp)
        rate = schedule(self.index, config.steps, config.optim)
        batch = self.collect()
        figures = self.learn(batch, beta, rate)
        log_reward, length = batch.log_reward, batch.length.float().mean()
        self.record(figures[0], log_reward.mean(), length, log_reward.exp().mean(), *figures[1:])
        self.index += 1.0

    @torch.no_grad()
    def start(self, *critics: ActionNet | ValueNet) -> None:
        """Let critics begin at what the first policy earns on average, instead of spending hundreds of steps on it."""
        batch, rl = self.collect(), self.config.rl
        beta = beta_at(self.index, self.task.beta, self.config.reward.ramp)
        log_pi = chosen(self.policy_net.log_policy(batch.states[:, :-1]), batch.intended)
        nothing = settled(torch.zeros_like(batch.final, dtype=log_pi.dtype), batch, beta)
        earned = step_mean(soft_advantage(log_pi, nothing, batch.valid, rl.temperature, 1.0), batch.valid)
        for critic in critics:
            critic.head.bias.copy_(earned.expand_as(critic.head.bias))

    def actor(self) -> MLPActor:
        """The policy network at work."""
        return self.policy_net.actor()

    def memoryless(self) -> LogPolicy:
        """The policy network."""
        return self.policy_net.log_policy

    @property
    def trajectories(self) -> int:
        """A batch more than the steps had was drawn, to start the critics."""
        return (self.done + 1) * self.config.batch


class OnPolicy(SoftLearner):
    """Acts by the policy alone, as its gradient asks (`explore` and `temperature` are for off-policy methods)."""

    def __init__(self, task: Task, device: torch.device) -> None:
        super().__init__(task, device)
        with seeded(self.config.seed + 1):
            self.value_net = ValueNet(self.env, self.config.net).to(device)
        self.start(self.value_net)
        optim, parameters = self.config.optim, [*self.policy_net.parameters(), *self.value_net.parameters()]
        self.optimiser = Optimiser([(parameters, optim.lr)], optim.clip, device)

    def collect(self) -> Trajectories:
        """A batch of rollouts."""
        act, reward = self.policy_net.actor(), self.task.log_reward
        return rollout(self.env, act, reward, batch=self.config.batch, generator=self.generator)

    def modules(self) -> dict[str, nn.Module]:
        """Networks by name."""
        return {"policy": self.policy_net, "value": self.value_net}

    def optimisers(self) -> dict[str, Optimiser]:
        """One for both networks."""
        return {"optimiser": self.optimiser}
