"""Exact law of a policy with memory, by enumerating every history of (intended, realised) pairs, step by step.

Such a policy depends on more than the state, so dynamic programming over states (`laws`) does not suffice. Where the
rate of the noise is hidden, each history carries one weight for each node of the quadrature over rates:

.. math:: w_j(h, a, k) = w_j(h)\\,\\pi(a|s,h)\\,P_{\\alpha_j}(k|s,a), \\qquad p(x) = \\sum_{h \\to x} \\sum_j w_j(h)

A weight is a polynomial in the rate of degree at most T, so the sum over nodes is exact.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.envs.base import Enumerable, Env

HistoryPolicy = Callable[
    [Int[Tensor, "N S"], Int[Tensor, "N t"], Int[Tensor, "N t"]], tuple[Float[Tensor, "N A"], Float[Tensor, "N A K"]]
]
"""(states, past intentions, past outcomes) -> pi(.|s,h) and log P^(.|s,a,h) of a policy with memory."""

MAX_HISTORIES = 2_000_000


@dataclass(frozen=True, kw_only=True)
class Histories:
    """Exact figures of a policy with memory, from all of its histories."""

    law: Float[Tensor, " N"]
    """Probability of each object."""
    nll: float
    """Mean over steps of -log P^ of the noise model, under the policy's own histories."""
    filter_nll: float
    """The same for the exact Bayes filter, which no model can improve on."""


def count(env: Env) -> int:
    """Upper bound of the number of histories: one (intention, outcome) pair for each step."""
    return (env.actions * env.outcomes) ** env.horizon


def enumerable(env: Env, limit: int = MAX_HISTORIES) -> bool:
    """Whether there are few enough histories to enumerate."""
    return isinstance(env, Enumerable) and count(env) <= limit


def enumerate_histories(env: Env, history_policy: HistoryPolicy, limit: int = MAX_HISTORIES) -> Histories:
    """Law of a policy with memory and the likelihood of its noise model, by enumerating all of its histories."""
    if not isinstance(env, Enumerable) or not enumerable(env, limit):
        raise ValueError(
            f"a policy with a memory has {count(env):,} histories here, the limit is {limit:,}: use samples"
        )
    law = torch.zeros(env.num_objects, dtype=torch.float64)
    total = torch.zeros(3, dtype=torch.float64)
    state, pairs = env.initial(1), env.initial(1).new_zeros(2, 1, 0)
    weight = torch.tensor([[w for _, w in env.noise.rates(env.horizon)]], dtype=torch.float64)  # N J
    for _ in range(env.horizon):
        policy, log_model = history_policy(state, pairs[0], pairs[1])
        joint = (weight[:, :, None, None] * kernels(env, state)) * policy.double()[:, None, :, None]  # N J A K
        total += _likelihoods(joint.sum(1), log_model.double())
        row, a, k = (joint.sum(1) > 0).nonzero().unbind(1)
        reached, weight = env.apply(state[row], k), joint[row, :, a, k]
        done = env.done(reached)
        law.index_add_(0, env.object_index(env.objects(reached[done])), weight[done].sum(-1))
        pairs = torch.cat([pairs[:, row], torch.stack([a, k])[..., None]], -1)[:, ~done]
        state, weight = reached[~done], weight[~done]
    steps, nll, filter_nll = total.tolist()
    return Histories(law=law, nll=nll / steps, filter_nll=filter_nll / steps)


def kernels(env: Env, state: Int[Tensor, "N S"]) -> Float[Tensor, "N J A K"]:
    """Kernel at each node of the quadrature over rates; the one kernel where no rate is hidden."""
    return torch.stack([env.kernel(state, torch.float64, rate) for rate, _ in env.noise.rates(env.horizon)], 1)


def _likelihoods(chance: Float[Tensor, "N A K"], log_model: Float[Tensor, "N A K"]) -> Float[Tensor, " 3"]:
    """Sums over histories of the number of steps, of -log P^, and of -log of the Bayes filter.

    The filter's law of the outcome is `chance` itself, normalised.
    """
    log_filter = chance.log() - chance.sum(-1, keepdim=True).log()
    terms = [torch.ones_like(chance), -log_model, -log_filter]
    return torch.stack([torch.where(chance > 0, chance * term, 0.0).sum() for term in terms])
