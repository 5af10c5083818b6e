"""Exact log-probabilities of given objects under a policy and the true noise, object by object, at any length."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.envs.base import Env
from sgfn.learning.rollout import LogPolicy


@torch.no_grad()
def log_law(env: Env, log_policy: LogPolicy, objects: Int[Tensor, "N O"]) -> Float[Tensor, " N"]:
    r"""Log-probability of each object, along the one path of a tree that leads to it.

    .. math:: \log p(x) = \sum_t \log \sum_a \pi(a|s_t) P(k_t|s_t,a)

    Where the noise has a hidden rate, p is the mean over rates of that product, by exact quadrature.
    """
    if not env.tree:
        raise ValueError("the probability of one object needs a tree: on a graph many paths lead to it")
    state = env.initial(objects.shape[0], objects.device)
    rates = env.noise.rates(env.horizon)
    total = torch.zeros(len(rates), objects.shape[0], dtype=torch.float64, device=objects.device)
    for _ in range(env.horizon):
        done = env.done(state)
        outcome = torch.where(done, 0, env.toward(state, objects).argmax(-1))
        followed = log_policy(state).double()
        for node, (rate, _) in enumerate(rates):
            log_outcome, _ = env.operator(state, torch.float64, rate).posterior(followed, outcome)
            total[node] += torch.where(done, 0.0, log_outcome)
        state = env.apply(state, outcome)
    weights = torch.tensor([weight for _, weight in rates], dtype=torch.float64, device=objects.device)
    return torch.logsumexp(total + weights.log()[:, None], 0)


def mean_and_error(values: Float[Tensor, " N"]) -> tuple[float, float]:
    """Mean of the values, and its standard error."""
    return float(values.mean()), float(values.std()) / math.sqrt(values.shape[0])
