"""Orders: what comes out when a whole sequence is ordered at once under noise that nobody watches."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.envs import Env, SequenceEnv
from sgfn.envs.trajectories import Samples
from sgfn.landscapes.base import Landscape
from sgfn.learning.rollout import clocks

LARGEST_TABLE = 2_000_000
SHORTLIST = 64
"""Orders whose expectation is estimated from draws: those that score best if they come out intact."""


def as_orders(env: SequenceEnv, intended: Int[Tensor, "N T"]) -> Int[Tensor, "N O"]:
    """Intentions as sequences to order: from the first stop on there are blanks, as there are for padding.

    A stop that slipped into a token is followed by more intentions; an order ends at the stop all the same.
    """
    ended = ((intended < 0) | (intended >= env.vocab)).cummax(-1).values
    return torch.where(ended, env.blank, intended)


@torch.no_grad()
def expected_scores(
    env: SequenceEnv, landscape: Landscape, orders: Int[Tensor, "N O"], generator: torch.Generator, draws: int = 256
) -> Float[Tensor, " N"]:
    r"""Mean score of what comes out when a whole sequence is ordered at once, $E[R(x)\,|\,a_1 \dots a_L]$.

    Exact where the score table is small (the kernel acts on one position after the other), else a mean over draws.
    """
    if tabulable(env):
        return _exact_expectation(env, landscape)[env.object_index(orders)].float()
    total = torch.zeros(orders.shape[0])
    for start in range(0, draws, 16):  # a few at a time: fewer calls, and memory stays flat
        copies = min(16, draws - start)
        total += landscape.scores(_garble(env, orders.repeat(copies, 1), generator)).view(copies, -1).sum(0)
    return total / draws


def tabulable(env: SequenceEnv) -> bool:
    """Whether expectations come from a complete table of scores: noise that reads the letters before needs draws."""
    return not env.stop and not env.noise_by_state and env.num_objects <= LARGEST_TABLE


def _exact_expectation(env: SequenceEnv, landscape: Landscape) -> Float[Tensor, " N"]:
    scores = landscape.scores(env.all_objects()).double().reshape((env.vocab,) * env.length)
    roots = [states[:1] for states in env.levels()]  # noise may depend on the position, not on the tokens
    total = torch.zeros_like(scores)
    for rate, weight in env.noise.rates(env.horizon):
        table = scores
        for axis, root in enumerate(roots):
            kernel = env.kernel(root, torch.float64, rate)[0]
            table = torch.tensordot(kernel, table.movedim(axis, 0), 1).movedim(0, axis)
        total += weight * table
    return total.reshape(-1)


def _garble(env: SequenceEnv, orders: Int[Tensor, "N O"], generator: torch.Generator) -> Int[Tensor, "N O"]:
    state, rate = env.initial(orders.shape[0]), env.noise.draw_rates(orders.shape[0], generator)
    for t in range(env.horizon):
        action = orders[:, t].clamp(max=env.actions - 1)  # a blank is the stop action by its very code
        clock = clocks((orders.shape[0], env.outcomes), generator)
        outcome = env.operator(state, rate=rate).sample(action, clock)
        state = env.apply(state, outcome)
    return env.objects(state)


@dataclass(frozen=True, kw_only=True)
class Order:
    """A sequence to order, and what to expect of it."""

    order: str
    expected: float
    """Mean score of what is realised."""
    intact: float
    """Probability that it comes out as ordered."""
    score: float
    """Score if it does."""


def best_orders(env: Env, landscape: Landscape, samples: Samples, count: int = 10, seed: int = 0) -> list[Order]:
    """The distinct sequences the policy intended, best expectation first; empty where orders make no sense (a grid).

    What was measured beforehand stands for choice too.
    Where expectations must be drawn, only a shortlist is looked at, and with fewer draws where scores are dear.
    """
    if not isinstance(env, SequenceEnv) or env.actions != env.outcomes:
        return []
    orders, known = as_orders(env, samples.intended), landscape.offline_objects()
    orders = (orders if known is None else torch.cat([orders, known.to(orders.device)])).unique(dim=0)
    lengths = env.written(orders)
    orders = orders[lengths >= (env.min_length if env.stop else env.length)]
    if not tabulable(env):
        orders = orders[landscape.scores(orders).argsort(descending=True, stable=True)[: max(count, SHORTLIST)]]
    generator, draws = torch.Generator().manual_seed(seed), 64 if landscape.on_host else 256
    expected = expected_scores(env, landscape, orders, generator, draws)
    best = expected.argsort(descending=True, stable=True)[:count]
    orders = orders[best]
    figures = (expected[best], _intact(env, orders), landscape.scores(orders))
    return [
        Order(order=text, expected=float(e), intact=float(i), score=float(s))
        for text, e, i, s in zip(env.decode(orders), *figures, strict=True)
    ]


def _intact(env: SequenceEnv, orders: Int[Tensor, "N O"]) -> Float[Tensor, " N"]:
    """Probability that every token comes out as ordered."""
    rates = env.noise.rates(env.horizon)
    return torch.stack([weight * _intact_at(env, orders, rate) for rate, weight in rates]).sum(0)


def _intact_at(env: SequenceEnv, orders: Int[Tensor, "N O"], rate: float | None) -> Float[Tensor, " N"]:
    chance, state = torch.ones(orders.shape[0], dtype=torch.float64), env.initial(orders.shape[0])
    for t in range(env.horizon):
        action = orders[:, t].clamp(max=env.actions - 1)
        here = env.operator(state, torch.float64, rate).log_prob(action, action).exp()
        chance = torch.where(env.done(state), chance, chance * here)
        state = env.apply(state, action)
    return chance
