"""Orders: whole sequences intended at once, under noise that is not observed on the way, and what they give."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.envs import Env, SequenceEnv
from sgfn.envs.base import one_hot
from sgfn.envs.trajectories import Samples
from sgfn.evaluation.likelihood import log_law
from sgfn.landscapes.base import Landscape
from sgfn.learning.rollout import LogPolicy, RolloutDraws, act, clocks, no_reward

LARGEST_TABLE = 2_000_000
SHORTLIST = 64
"""Number of orders whose expectation is estimated from draws: those that score best if they come out intact."""


def as_orders(env: SequenceEnv, intended: Int[Tensor, "N T"]) -> Int[Tensor, "N O"]:
    """Rows of intentions as sequences to order, with blanks from the first stop or padded step on.

    Where a stop slipped into a token the policy went on intending; an order ends at that stop all the same.
    """
    ended = ((intended < 0) | (intended >= env.vocab)).cummax(-1).values
    return torch.where(ended, env.blank, intended)


@torch.no_grad()
def expected_scores(
    env: SequenceEnv, landscape: Landscape, orders: Int[Tensor, "N O"], generator: torch.Generator, draws: int = 256
) -> Float[Tensor, " N"]:
    r"""Mean score of what comes out when a whole sequence is ordered at once, $E[R(x)\,|\,a_1 \dots a_L]$.

    Exact where the score table is small (the kernel is applied to one position after the other), else a mean over
    draws.
    """
    if tabulable(env):
        return _exact_expectation(env, landscape)[env.object_index(orders)].float()
    total = torch.zeros(orders.shape[0])
    for start in range(0, draws, 16):  # a few at a time: fewer calls, and memory stays flat
        copies = min(16, draws - start)
        total += landscape.scores(_realise(env, orders.repeat(copies, 1), generator)).view(copies, -1).sum(0)
    return total / draws


def tabulable(env: SequenceEnv) -> bool:
    """Whether expectations are computed from a complete table of scores."""
    return not env.stop and not env.noise_by_state and env.num_objects <= LARGEST_TABLE


def _exact_expectation(env: SequenceEnv, landscape: Landscape) -> Float[Tensor, " N"]:
    scores = landscape.scores(env.all_objects()).double().reshape((env.vocab,) * env.length)
    roots = [states[:1] for states in env.levels()]  # noise may depend on the position, not on the tokens
    total = torch.zeros_like(scores)
    for rate, weight in env.noise.rates(env.horizon):
        table = scores
        for axis, root in enumerate(roots):
            kernel = env.operator(root, torch.float64, rate)
            table = kernel.expected(table.movedim(axis, -1)).movedim(-1, axis)
        total += weight * table
    return total.reshape(-1)


def _realise(env: SequenceEnv, orders: Int[Tensor, "N O"], generator: torch.Generator) -> Int[Tensor, "N O"]:
    """What comes out of each order, drawn once."""
    count, rate = orders.shape[0], env.noise.draw_rates(orders.shape[0], generator)
    clock = torch.ones(env.horizon, 2, count, max(env.actions, env.outcomes))  # an order leaves no choice of intentions
    for times in clock[:, 1, :, : env.outcomes]:
        times.copy_(clocks((count, env.outcomes), generator))
    draws = RolloutDraws(clock=clock, rate=rate, explore=0.0, temperature=1.0)
    return env.objects(act(env, order_policy(env, orders), no_reward, draws).states[:, -1])


def order_policy(env: SequenceEnv, orders: Int[Tensor, "N O"]) -> LogPolicy:
    """The policy that intends the next token of its order, one order for each state of a batch, whatever came out."""
    intended = orders.clamp(max=env.actions - 1)  # a blank is the stop action by its very code

    def log_policy(state: Int[Tensor, "N S"]) -> Float[Tensor, "N A"]:
        place = env.written(state).clamp(max=env.horizon - 1)
        return one_hot(intended.gather(1, place[:, None])[:, 0], env.actions).log()

    return log_policy


@dataclass(frozen=True, kw_only=True)
class Order:
    """A sequence to order, with its expected score and its probability of coming out unchanged."""

    order: str
    expected: float
    """Mean score of what is realised."""
    intact: float
    """Probability that it comes out as ordered."""
    score: float
    """Score if it does."""


def best_orders(env: Env, landscape: Landscape, samples: Samples, count: int = 10, seed: int = 0) -> list[Order]:
    """The distinct sequences the policy intended and those measured beforehand, best expected score first.

    Empty where a task has no sequences to order (a grid). Where expectations must be estimated from draws, only a
    shortlist is considered, and fewer draws are made where scoring is slow.
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
    """Probability that every token comes out as ordered, averaged over hidden rates."""
    return log_law(env, order_policy(env, orders), orders).exp()
