"""`a2c`, advantage actor-critic: one update per batch, from the policy's own rollouts."""

from jaxtyping import Bool, Float
from torch import Tensor

from sgfn.envs.trajectories import Trajectories
from sgfn.learning.peers.actor_critic import (
    OnPolicyLearner,
    action_entries,
    entropy,
    soft_advantage,
    step_mean,
    step_sum,
    with_final_rewards,
)


def policy_loss(
    log_pi: Float[Tensor, "B T"], advantage: Float[Tensor, "B T"], valid: Bool[Tensor, "B T"]
) -> Float[Tensor, ""]:
    r"""Policy-gradient loss $-\sum_t A_t \log\pi(a_t|s_t)$ with the advantages held constant.

    At trace lambda = 1 its mean gradient is minus the gradient of expected reward plus entropy.

    Reference: Mnih et al. (2016), Asynchronous methods for deep reinforcement learning, ICML.
    """
    return -step_sum(advantage.detach() * log_pi, valid)


class A2C(OnPolicyLearner):
    """Advantage actor-critic: policy and value network take one joint update from all steps of a batch."""

    def learn(self, batch: Trajectories, beta: Tensor, rate: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Take one update from a batch; returns loss, mean policy entropy and mean squared value error."""
        rl, states, valid = self.config.rl, batch.states[:, :-1], batch.valid
        log_policy = self.policy_net.log_policy(states)
        log_pi = action_entries(log_policy, batch.intended)
        value = with_final_rewards(self.value_net(batch.states), batch, beta)
        advantage = soft_advantage(log_pi.detach(), value.detach(), valid, rl.temperature, rl.trace)
        error = (value[:, :-1] - (value[:, :-1].detach() + advantage)).square()
        loss = policy_loss(log_pi, advantage, valid) + rl.value_weight * step_sum(error, valid)
        self.optimiser.step(loss, rate)
        return loss, step_mean(entropy(log_policy), valid), step_mean(error, valid)
