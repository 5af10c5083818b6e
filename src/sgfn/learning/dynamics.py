"""Learning the kernel: maximum likelihood on realised outcomes, and how well it is calibrated."""

import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor

from sgfn.envs.base import Env
from sgfn.envs.trajectories import Episodes, Trajectories
from sgfn.learning.rollout import LogKernel


def log_known(env: Env, states: Int[Tensor, "*batch S"]) -> Float[Tensor, "*batch A K"]:
    """The true kernel, as logs; minus infinity where an outcome cannot happen."""
    return env.kernel(states).log()


def negative_log_likelihood(log_kernel: Float[Tensor, "B T A K"], batch: Episodes) -> Float[Tensor, ""]:
    r"""$-\mathrm{mean}\,\log\hat P(k_t|s_t,a_t)$ over valid steps."""
    index = batch.intended * log_kernel.shape[-1] + batch.realised
    chosen = log_kernel.flatten(-2).gather(-1, index[..., None])[..., 0]
    return -torch.where(batch.valid, chosen, 0.0).sum() / batch.valid.sum()


@torch.no_grad()
def calibration(env: Env, log_kernel: LogKernel, batch: Trajectories) -> dict[str, float]:
    r"""How good P^ is at the visited (s, a): NLL beside the kernel's entropy, and mean total variation.

    Both averages are exact over outcomes (no sampling noise from k); NLL - entropy is the mean KL(P || P^).
    Under a hidden rate, P is what the history tells (the Bayes filter), which no model can better.
    """
    states = batch.states[:, :-1]
    rate = env.noise.posterior_rates(env.slippable(states), batch.intended, batch.realised)
    index = batch.intended[..., None, None].expand(*batch.intended.shape, 1, env.actions)
    truth = env.kernel(states, torch.float64, rate).gather(-2, index)[..., 0, :]  # B T K
    log_model = log_kernel(states).double().gather(-2, index)[..., 0, :]

    def mean(values: Tensor) -> float:
        return float(values[batch.valid].mean())

    return {
        "dynamics_nll": mean(-torch.where(truth > 0, truth * log_model, 0.0).sum(-1)),
        "dynamics_entropy": mean(-torch.where(truth > 0, truth * truth.log(), 0.0).sum(-1)),
        "dynamics_tv": mean((truth - log_model.exp()).abs().sum(-1) / 2),
    }


def count_estimate(env: Env, batch: Trajectories) -> Float64[Tensor, "A K"]:
    r"""The kernel as counts tell it, pooled over all states where the intention can slip: $\hat P(k|a) = n_{ak}/n_a$.

    Right where noise is the same in all of them. Intentions that never could slip, or were never seen, get certainty.
    """
    can_slip = env.slippable(batch.states[:, :-1]).gather(-1, batch.intended[..., None])[..., 0]
    pair = (batch.intended * env.actions + batch.realised)[batch.valid & can_slip]
    counts = pair.bincount(minlength=env.actions**2).double().view(env.actions, env.actions)
    seen = counts.sum(-1, keepdim=True)
    certain = torch.eye(env.actions, dtype=torch.float64, device=counts.device)
    return torch.where(seen > 0, counts / seen.clamp(min=1.0), certain)
