"""Learning the kernel: maximum likelihood on realised outcomes, and how well it is calibrated."""

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from sgfn.envs.base import Env
from sgfn.envs.trajectories import Episodes, Trajectories
from sgfn.learning.rollout import KernelOf
from sgfn.noise.operators import Kernel


def negative_log_likelihood(kernel: Kernel, batch: Episodes, first: int | None = None) -> Float[Tensor, ""]:
    r"""$-\mathrm{mean}\,\log\hat P(k_t|s_t,a_t)$ over valid steps, of the `first` trajectories or of all."""
    chosen, valid = kernel.log_prob(batch.intended, batch.realised)[:first], batch.valid[:first]
    return -torch.where(valid, chosen, 0.0).sum() / valid.sum()


@torch.no_grad()
def calibration(env: Env, kernel: KernelOf, batch: Trajectories) -> dict[str, float]:
    r"""How good P^ is at the visited (s, a): NLL beside the kernel's entropy, and mean total variation.

    Both averages are exact over outcomes (no sampling noise from k); NLL - entropy is the mean KL(P || P^).
    Under a hidden rate, P is what the history tells (the Bayes filter), which no model can better.
    """
    states = batch.states[:, :-1]
    rate = env.noise.posterior_rates(env.slippable(states), batch.intended, batch.realised)
    truth = env.operator(states, torch.float64, rate).row(batch.intended)  # B T K
    model = kernel(states).row(batch.intended).double()

    def mean(values: Tensor) -> float:
        return float(values[batch.valid].mean())

    return {
        "dynamics_nll": mean(-torch.where(truth > 0, truth * model.log(), 0.0).sum(-1)),
        "dynamics_entropy": mean(-torch.where(truth > 0, truth * truth.log(), 0.0).sum(-1)),
        "dynamics_tv": mean((truth - model).abs().sum(-1) / 2),
    }


@torch.no_grad()
def mean_kernels(env: Env, kernel: KernelOf, batch: Trajectories) -> dict[str, list[list[float | None]]]:
    """Mean law of the outcome for each intention over the visited steps, true and learned; None where never meant."""
    states = batch.states[:, :-1]
    rate = env.noise.posterior_rates(env.slippable(states), batch.intended, batch.realised)
    rows = {"true": env.operator(states, torch.float64, rate), "learned": kernel(states)}
    meant = batch.intended[batch.valid].cpu()
    found = {}
    for name, operator in rows.items():
        law = operator.row(batch.intended).double()[batch.valid].cpu()  # N K
        total = torch.zeros(env.actions, env.outcomes, dtype=torch.float64).index_add_(0, meant, law)
        seen = meant.bincount(minlength=env.actions)[:, None]
        means = torch.where(seen > 0, total / seen.clamp(min=1), torch.nan)
        found[name] = [[None if p != p else round(p, 6) for p in row] for row in means.tolist()]
    return found


def count_estimate(env: Env, batch: Trajectories) -> Float64[Tensor, "A K"]:
    r"""The kernel as counts tell it, pooled over all states where the intention can slip: $\hat P(k|a) = n_{ak}/n_a$.

    Right where noise is the same in all of them. Intentions that never could slip, or were never seen, get certainty.
    """
    counted = batch.valid
    if env.intends_outcomes:  # else intentions are another set, and noise acts on all of them
        counted = counted & env.slippable(batch.states[:, :-1]).gather(-1, batch.intended[..., None])[..., 0]
    pair = (batch.intended * env.outcomes + batch.realised)[counted]
    counts = pair.bincount(minlength=env.actions * env.outcomes).double().view(env.actions, env.outcomes)
    seen = counts.sum(-1, keepdim=True)
    certain = torch.eye(env.actions, env.outcomes, dtype=torch.float64, device=counts.device)
    return torch.where(seen > 0, counts / seen.clamp(min=1.0), certain)
