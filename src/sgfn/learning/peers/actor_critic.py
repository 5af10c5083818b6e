r"""Shared parts of `a2c`, `ppo` and `sac`: the objective's terms, the networks, and the training step.

An episode earns $\beta\log R(x)$ at its end and $\tau\,H(\pi(.|s))$ at each step; the exact optimum is
`exact.soft_policy`.
"""

from abc import abstractmethod

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from sgfn.config import NetConfig
from sgfn.envs.base import Env
from sgfn.envs.trajectories import Trajectories
from sgfn.landscapes.base import beta_at
from sgfn.landscapes.tasks import Task
from sgfn.learning.kernels.mlp_actor import MLPActor
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
    r"""Generalised advantage of each intended action, where a step earns $-\tau\log\pi(a_t|s_t)$.

    .. math:: A_t = \sum_{u \ge t} \lambda^{u-t} \delta_u, \qquad
              \delta_t = -\tau\log\pi(a_t|s_t) + V(s_{t+1}) - V(s_t)

    `value` holds beta log R at finished states (`with_final_rewards`). A step's earning has mean tau times the entropy
    of the policy. Because it is earned by the action taken and not by the state, every advantage, not only their mean,
    vanishes at the optimum without noise.

    Reference: Schulman et al. (2016), High-dimensional continuous control using generalized advantage estimation, ICLR.
    """
    delta = torch.where(valid, value[:, 1:] - value[:, :-1] - temperature * log_pi, 0.0)
    step = torch.arange(delta.shape[1], device=delta.device)
    weight = torch.tril(trace ** (step[:, None] - step).clamp(min=0).to(delta.dtype))  # from u to t
    return delta @ weight


def step_sum(values: Float[Tensor, "B T"], valid: Bool[Tensor, "B T"]) -> Float[Tensor, ""]:
    """Sum over the valid steps of each trajectory, averaged over trajectories."""
    return torch.where(valid, values, 0.0).sum(1).mean()


def step_mean(values: Float[Tensor, "B T"], valid: Bool[Tensor, "B T"]) -> Float[Tensor, ""]:
    """Mean over all valid steps of a batch, detached: for the training log, not for gradients."""
    return torch.where(valid, values.detach(), 0.0).sum() / valid.sum()


def action_entries(table: Float[Tensor, "*batch A"], action: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    """Entry of each row of a table at that row's action."""
    return table.gather(-1, action[..., None])[..., 0]


def soft_value(
    log_policy: Float[Tensor, "*batch A"], q: Float[Tensor, "*batch A"], temperature: float
) -> Float[Tensor, "*batch"]:
    r"""Soft value of a state, $V(s) = \sum_a \pi(a|s)\,(Q(s,a) - \tau\log\pi(a|s))$, summed over legal actions."""
    gain = (q - temperature * log_policy).masked_fill(log_policy.isneginf(), 0.0)
    return (log_policy.exp() * gain).sum(-1)


def entropy(log_policy: Float[Tensor, "*batch A"]) -> Float[Tensor, "*batch"]:
    r"""Entropy of the policy in nats, $-\sum_a \pi(a|s)\log\pi(a|s)$."""
    return soft_value(log_policy, torch.zeros_like(log_policy), 1.0)


def with_final_rewards(
    value: Float[Tensor, "B N"], batch: Trajectories, beta: Float[Tensor, ""]
) -> Float[Tensor, "B N"]:
    """Values of the states along a batch, replaced by beta log R where a state is finished."""
    return torch.where(batch.final, (beta * batch.log_reward)[:, None].to(value.dtype), value)


# Networks


def state_encoder(env: Env, config: NetConfig) -> MLP:
    """A multilayer perceptron that reads each state by itself, not the path that led to it."""
    return MLP(env.features, config.hidden, config.layers, config.activation)


class ActionNet(nn.Module):
    """A network that gives one number for each action of a state: a policy's logits, or a critic's Q values."""

    def __init__(self, env: Env, config: NetConfig) -> None:
        super().__init__()
        self.env, self.encoder = env, state_encoder(env, config)
        self.head = small(nn.Linear(self.encoder.width, env.actions))

    def forward(self, state: Int[Tensor, "*batch S"]) -> Float[Tensor, "*batch A"]:
        """Logits or Q values of each state."""
        return self.head(self.encoder(self.env.encode(state)))

    def log_policy(self, state: Int[Tensor, "*batch S"]) -> Float[Tensor, "*batch A"]:
        """log pi(.|s) from the logits, minus infinity where an action is illegal."""
        return masked_log_softmax(self(state), self.env.legal(state))

    def actor(self) -> MLPActor:
        """The policy in the form that `rollout` runs fastest, layer by layer."""
        return MLPActor(self.env, self.encoder, self.head)


class ValueNet(nn.Module):
    """A network for the soft value V(s): expected final reward plus the entropy still to be earned."""

    def __init__(self, env: Env, config: NetConfig) -> None:
        super().__init__()
        self.env, self.encoder = env, state_encoder(env, config)
        self.head = small(nn.Linear(self.encoder.width, 1))

    def forward(self, state: Int[Tensor, "*batch S"]) -> Float[Tensor, "*batch"]:
        """V(s) of each state."""
        return self.head(self.encoder(self.env.encode(state)))[..., 0]


def check_encoder(task: Task) -> None:
    """Raise where the configured encoder reads whole trajectories: these methods read single states."""
    if task.config.net.encoder != "mlp":
        raise ValueError(f"method {task.config.method!r} reads states one by one: use --net.encoder mlp")


# Learners


class SoftLearner(Learner):
    """Base of the three methods: a policy network, and a step that draws a batch of rollouts and learns from it."""

    def __init__(self, task: Task, device: torch.device) -> None:
        check_encoder(task)
        super().__init__(task, device, METERS)
        with seeded(self.config.seed):
            self.policy_net = ActionNet(self.env, self.config.net).to(device)

    @abstractmethod
    def collect(self) -> Trajectories:
        """Draw a batch of rollouts."""

    @abstractmethod
    def learn(self, batch: Trajectories, beta: Tensor, rate: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Learn from a batch; returns loss, mean entropy of the policy and mean squared error of the critic."""

    def step(self) -> None:
        """Draw a batch of rollouts, learn from it, and record the meters."""
        config = self.config
        beta = beta_at(self.index, self.task.beta, config.reward.ramp)
        rate = schedule(self.index, config.steps, config.optim)
        batch = self.collect()
        figures = self.learn(batch, beta, rate)
        log_reward, length = batch.log_reward, batch.length.float().mean()
        self.record(figures[0], log_reward.mean(), length, log_reward.exp().mean(), *figures[1:])
        self.index += 1.0

    @torch.no_grad()
    def initialise_critics(self, *critics: ActionNet | ValueNet) -> None:
        """Set the critics' output biases to the mean return of the first policy, estimated from one batch.

        Without this the critics would spend hundreds of steps on learning that constant.
        """
        batch, rl = self.collect(), self.config.rl
        beta = beta_at(self.index, self.task.beta, self.config.reward.ramp)
        log_pi = action_entries(self.policy_net.log_policy(batch.states[:, :-1]), batch.intended)
        nothing = with_final_rewards(torch.zeros_like(batch.final, dtype=log_pi.dtype), batch, beta)
        earned = step_mean(soft_advantage(log_pi, nothing, batch.valid, rl.temperature, 1.0), batch.valid)
        for critic in critics:
            critic.head.bias.copy_(earned.expand_as(critic.head.bias))

    def actor(self) -> MLPActor:
        """The policy network as an actor in rollouts."""
        return self.policy_net.actor()

    def state_policy(self) -> LogPolicy:
        """The policy as a function of the state: these policies have no memory."""
        return self.policy_net.log_policy

    @property
    def trajectories(self) -> int:
        """Number of trajectories drawn so far, with the one batch that initialised the critics."""
        return (self.done + 1) * self.config.batch


class OnPolicyLearner(SoftLearner):
    """Base of `a2c` and `ppo`: rollouts by the policy alone, and one optimiser for policy and value network.

    Their gradients hold for the policy's own trajectories only, so `explore` and `temperature` are not used.
    """

    def __init__(self, task: Task, device: torch.device) -> None:
        super().__init__(task, device)
        with seeded(self.config.seed + 1):
            self.value_net = ValueNet(self.env, self.config.net).to(device)
        self.initialise_critics(self.value_net)
        optim, parameters = self.config.optim, [*self.policy_net.parameters(), *self.value_net.parameters()]
        self.optimiser = Optimiser([(parameters, optim.lr)], optim.clip, device)

    def collect(self) -> Trajectories:
        """Draw a batch of rollouts with the policy itself."""
        act, reward = self.policy_net.actor(), self.task.log_reward
        return rollout(self.env, act, reward, batch=self.config.batch, generator=self.generator)

    def modules(self) -> dict[str, nn.Module]:
        """Policy and value network by name, for checkpoints."""
        return {"policy": self.policy_net, "value": self.value_net}

    def optimisers(self) -> dict[str, Optimiser]:
        """The one optimiser of both networks by name, for checkpoints."""
        return {"optimiser": self.optimiser}
