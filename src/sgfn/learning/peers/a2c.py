"""`a2c`, advantage actor-critic: one update per batch, from the policy's own rollouts."""

from jaxtyping import Bool, Float
from torch import Tensor

from sgfn.envs.trajectories import Trajectories
from sgfn.learning.peers.actor_critic import OnPolicy, chosen, entropy, settled, soft_advantage, step_mean, step_sum


def policy_loss(
    log_pi: Float[Tensor, "B T"], advantage: Float[Tensor, "B T"], valid: Bool[Tensor, "B T"]
) -> Float[Tensor, ""]:
    r"""$-\sum_t A_t \log\pi(a_t|s_t)$; its gradient is minus that of reward plus entropy, on average, at lambda = 1.

    Reference: Mnih et al. (2016), Asynchronous methods for deep reinforcement learning, ICML.
    """
    return -step_sum(advantage.detach() * log_pi, valid)


class A2C(OnPolicy):
    """All steps of a batch at once; policy and value learn together."""

    def learn(self, batch: Trajectories, beta: Tensor, rate: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """One update."""
        rl, states, valid = self.config.rl, batch.states[:, :-1], batch.valid
        log_policy = self.policy_net.log_policy(states)
        log_pi, value = chosen(log_policy, batch.intended), settled(self.value_net(batch.states), batch, beta)
        advantage = soft_advantage(log_pi.detach(), value.detach(), valid, rl.temperature, rl.trace)
        error = (value[:, :-1] - (value[:, :-1].detach() + advantage)).square()
        loss = policy_loss(log_pi, advantage, valid) + rl.value_weight * step_sum(error, valid)
        self.optimiser.step(loss, rate)
        return loss, step_mean(entropy(log_policy), valid), step_mean(error, valid)
