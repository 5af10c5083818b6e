"""`ppo`, proximal policy optimisation: several updates per batch, clipped near the policy that drew it."""

import torch
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


def clipped_loss(
    log_pi: Float[Tensor, "B T"],
    log_old: Float[Tensor, "B T"],
    advantage: Float[Tensor, "B T"],
    valid: Bool[Tensor, "B T"],
    clip: float,
    temperature: float,
) -> Float[Tensor, ""]:
    r"""Clipped surrogate loss with $r_t = \pi(a_t|s_t)/\pi_{old}(a_t|s_t)$.

    .. math:: -\sum_t \min(r_t A_t,\ \mathrm{clip}(r_t, 1-c, 1+c)\,A_t)

    The entropy that a step earns is taken at the present policy, $A_t = A^{old}_t - \tau\log r_t$: with that of the old
    policy later passes would still push for entropy that has already been reached. At r = 1 the gradient is that of
    `a2c`.

    Reference: Schulman et al. (2017), Proximal policy optimization algorithms, arXiv:1707.06347.
    """
    log_ratio = log_pi - log_old
    ratio, present = log_ratio.exp(), advantage - temperature * log_ratio.detach()
    return -step_sum(torch.minimum(ratio * present, ratio.clamp(1 - clip, 1 + clip) * present), valid)


class PPO(OnPolicyLearner):
    """Proximal policy optimisation: a batch's advantages and value targets are computed once, for several updates."""

    def learn(self, batch: Trajectories, beta: Tensor, rate: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Take `epochs` updates from a batch; returns loss, entropy and squared value error before the first."""
        rl = self.config.rl
        with torch.no_grad():
            log_policy = self.policy_net.log_policy(batch.states[:, :-1])
            log_old = action_entries(log_policy, batch.intended)
            value = with_final_rewards(self.value_net(batch.states), batch, beta)
            advantage = soft_advantage(log_old, value, batch.valid, rl.temperature, rl.trace)
        wanted = value[:, :-1] + advantage
        losses = [self.update(batch, log_old, advantage, wanted, rate) for _ in range(rl.epochs)]
        return losses[0], step_mean(entropy(log_policy), batch.valid), step_mean(advantage.square(), batch.valid)

    def update(
        self,
        batch: Trajectories,
        log_old: Float[Tensor, "B T"],
        advantage: Float[Tensor, "B T"],
        wanted: Float[Tensor, "B T"],
        rate: Tensor,
    ) -> Float[Tensor, ""]:
        """Take one update from the whole batch; returns its loss."""
        rl, states, valid = self.config.rl, batch.states[:, :-1], batch.valid
        log_pi = action_entries(self.policy_net.log_policy(states), batch.intended)
        loss = clipped_loss(log_pi, log_old, advantage, valid, rl.clip, rl.temperature)
        loss = loss + rl.value_weight * step_sum((self.value_net(states) - wanted).square(), valid)
        self.optimiser.step(loss, rate)
        return loss.detach()
