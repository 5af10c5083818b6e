"""Exact answers for a policy with a memory: every history of (intended, realised) pairs is followed, level by level.

A state alone does not tell what such a policy does next, so the state graph of `exact` does not suffice. Where the rate
of the noise is hidden, each history carries one weight for each node of the quadrature over rates:

.. math:: w_j(h, a, k) = w_j(h)\\,\\pi(a|s,h)\\,P_{\\alpha_j}(k|s,a), \\qquad p(x) = \\sum_{h \\to x} \\sum_j w_j(h)

A weight is a polynomial in the rate of degree at most T, so the sum over nodes is exact.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.envs.base import Enumerable, Env

Believe = Callable[
    [Int[Tensor, "N S"], Int[Tensor, "N t"], Int[Tensor, "N t"]], tuple[Float[Tensor, "N A"], Float[Tensor, "N A K"]]
]
"""States with the intentions and outcomes that led there -> pi(.|s,h), and log P^(.|s,a,h)."""

MAX_HISTORIES = 2_000_000


@dataclass(frozen=True, kw_only=True)
class Histories:
    """What following every history tells."""

    law: Float[Tensor, " N"]
    """Probability of each object."""
    nll: float
    """Mean over steps of -log P^, under the policy's own histories."""
    filter_nll: float
    """The same for the exact Bayes filter: no model can do better."""


def count(env: Env) -> int:
    """Histories there may be at most: (intention, outcome) pairs at each step."""
    return (env.actions * env.outcomes) ** env.horizon


def enumerable(env: Env, limit: int = MAX_HISTORIES) -> bool:
    """Whether all histories can be followed."""
    return isinstance(env, Enumerable) and count(env) <= limit


def follow(env: Env, believe: Believe, limit: int = MAX_HISTORIES) -> Histories:
    """The exact law of a policy with a memory, and how well its noise model predicts; refuses too many histories."""
    if not isinstance(env, Enumerable) or not enumerable(env, limit):
        raise ValueError(
            f"a policy with a memory has {count(env):,} histories here, the limit is {limit:,}: use samples"
        )
    law = torch.zeros(env.num_objects, dtype=torch.float64)
    total = torch.zeros(3, dtype=torch.float64)
    state, pairs = env.initial(1), env.initial(1).new_zeros(2, 1, 0)
    weight = torch.tensor([[w for _, w in env.noise.rates(env.horizon)]], dtype=torch.float64)  # N J
    for _ in range(env.horizon):
        policy, log_model = believe(state, pairs[0], pairs[1])
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
    """The kernel at each rate that the quadrature asks for; the kernel itself where no rate is hidden."""
    return torch.stack([env.kernel(state, torch.float64, rate) for rate, _ in env.noise.rates(env.horizon)], 1)


def _likelihoods(chance: Float[Tensor, "N A K"], log_model: Float[Tensor, "N A K"]) -> Float[Tensor, " 3"]:
    """Sums over histories of: steps made, -log P^ and -log of the Bayes filter, which the chances themselves are."""
    log_filter = chance.log() - chance.sum(-1, keepdim=True).log()
    terms = [torch.ones_like(chance), -log_model, -log_filter]
    return torch.stack([torch.where(chance > 0, chance * term, 0.0).sum() for term in terms])
