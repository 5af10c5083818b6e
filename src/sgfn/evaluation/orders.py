"""Orders: whole sequences fixed before anything is made, and what comes out of them under noise (method, 12).

The intentions of a stepwise policy are no order: they answer errors that were already seen. Here nothing is seen on the
way, and an order's value is the mean score of what comes out, $V(o) = E[f(x)|o]$.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor

from sgfn.envs import Automaton, Env, IndelEnv, SequenceEnv
from sgfn.envs.base import one_hot
from sgfn.envs.laws import law
from sgfn.envs.trajectories import Samples
from sgfn.envs.violations import violation_probabilities, violations_in_cycles
from sgfn.evaluation.likelihood import log_law
from sgfn.landscapes.base import Landscape
from sgfn.learning.rollout import LogPolicy, RolloutDraws, act, clocks, no_reward
from sgfn.noise.open_loop import MOST_ENTRIES, CycleDraws, cycle_draws, realise, table_entries
from sgfn.noise.operators import Identity
from sgfn.noise.pairs import log_probability

LARGEST_TABLE = 2_000_000
"""Sequences in a complete table of scores at most."""
LARGEST_CYCLES = 400_000_000
"""Probabilities of outcomes, orders times sequences, that are computed block by block where letters are skipped."""
LARGEST_LAWS = 20_000_000
"""Probabilities of outcomes, orders times sequences, that are computed one by one at most."""
SHORTLIST = 64
"""Number of orders whose expectation is estimated from draws: those that score best if they come out intact."""
BLOCK = 2_000_000
"""Letters that are realised at once."""

Score = Callable[[Int[Tensor, "N O"]], Float[Tensor, "N C"]]
"""Sequences as rows to C figures of each."""


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """Means of figures over what comes out of each order."""

    mean: Float64[Tensor, "N C"]
    error: Float64[Tensor, "N C"]
    """Standard error of the mean; zero where it is exact."""
    exact: bool


def as_orders(env: SequenceEnv, intended: Int[Tensor, "N T"]) -> Int[Tensor, "N O"]:
    """Rows of intentions as sequences that could be ordered, with blanks from the first stop or padded step on.

    Where a stop slipped into a token the policy went on intending; an order ends at that stop all the same. Of what was
    intended in spare cycles an order has the first letters.
    """
    return intended_letters(env, intended)[:, : env.length]


def intended_letters(env: SequenceEnv, intended: Int[Tensor, "N T"]) -> Int[Tensor, "N T"]:
    """Intended letters, blanks from the first intention on that is none."""
    ended = ((intended < 0) | (intended >= env.vocab)).cummax(-1).values
    return torch.where(ended, env.blank, intended)


# expectations


@torch.no_grad()
def expectation(
    env: SequenceEnv,
    orders: Int[Tensor, "N O"],
    score: Score,
    *,
    draws: int = 256,
    seed: int = 0,
    limit: int | None = None,
) -> Expectation:
    r"""$E[f(x)|o]$ of each order, for every figure f that `score` gives.

    Exact without noise, where all sequences of an order's length can be scored (`limit` of them at most: the kernel is
    applied to one position after the other), and where the laws of what comes out are small; else a mean over draws
    that are the same for all orders, so that orders are compared under the same errors.
    """
    limit = LARGEST_TABLE if limit is None else limit
    if isinstance(env, IndelEnv):
        return _in_cycles(env, orders, score, draws, seed, limit)
    if silent(env):
        return _exact(score(orders))
    if separate(env):
        lengths = env.written(orders)
        if all(env.vocab ** int(n) <= limit for n in lengths.unique()):
            return _exact(_by_length(env, orders, lengths, score))
    elif env.num_objects <= limit and env.num_objects * orders.shape[0] <= LARGEST_LAWS:
        return _exact(outcome_laws(env, orders) @ score(env.all_objects()).double())
    return _estimated(env, orders, score, draws, seed)


def _in_cycles(
    env: IndelEnv, orders: Int[Tensor, "N O"], score: Score, draws: int, seed: int, limit: int
) -> Expectation:
    """Expectations where letters are skipped or inserted: exact where all that may be read can be scored."""
    size = env.vocab**env.length
    if size <= limit and size * orders.shape[0] <= LARGEST_CYCLES:
        values = score(env.all_strings()).double()
        blocks = orders.split(max(1, LARGEST_LAWS // size))
        return _exact(torch.cat([torch.cat(env.laws(block), 1) @ values for block in blocks]))
    whole = bool((env.written(orders) == env.length).all())
    if whole and env.shortest == env.length and size <= limit and tabulable(env):
        strings = env.all_strings()
        values = score(strings[-size:])
        short = score(strings[:1])[0]  # what lacks letters scores alike, unless a flank makes it whole
        columns = [env.value_table(column, float(lost)) for column, lost in zip(values.T, short, strict=True)]
        return _exact(torch.stack(columns, 1)[env.number(orders)])
    return _estimated(env, orders, score, draws, seed)


def _exact(values: Float[Tensor, "N C"]) -> Expectation:
    return Expectation(mean=values.double(), error=torch.zeros_like(values, dtype=torch.float64), exact=True)


def silent(env: SequenceEnv) -> bool:
    """Whether what is ordered comes out."""
    return not env.noise_by_state and isinstance(env.operator(env.initial(1)), Identity) and not env.noise.by_position


def separate(env: SequenceEnv) -> bool:
    """Whether noise acts on each position by itself and leaves lengths alone."""
    return not env.noise_by_state and not env.noise.stop and not env.noise.changes_length


def tabulable(env: SequenceEnv) -> bool:
    """Whether the values of all orders can be computed from a complete table of scores."""
    if isinstance(env, IndelEnv):
        return env.vocab**env.length <= LARGEST_TABLE and table_entries(env.noise, env.length) <= MOST_ENTRIES
    return separate(env) and env.num_objects <= LARGEST_TABLE


def _of_length(env: SequenceEnv, length: int) -> SequenceEnv:
    """Sequences of one length under the same noise."""
    return SequenceEnv(length=length, alphabet=env.alphabet, noise=env.noise)


def _by_length(
    env: SequenceEnv, orders: Int[Tensor, "N O"], lengths: Int[Tensor, " N"], score: Score
) -> Float64[Tensor, "N C"]:
    """Expectations of orders, from a table of all sequences for each length among them."""
    found: Tensor | None = None
    for length in lengths.unique().tolist():
        chosen, own = lengths == length, _of_length(env, length)
        values = expectation_table(own, _padded_scores(env, own, score))
        found = torch.zeros(orders.shape[0], values.shape[1], dtype=torch.float64) if found is None else found
        found[chosen] = values[own.object_index(orders[chosen, :length])]
    assert found is not None
    return found


def _padded_scores(env: SequenceEnv, own: SequenceEnv, score: Score) -> Float[Tensor, "M C"]:
    """Figures of all sequences of one length, written as rows of an environment that may have longer ones."""
    objects = own.all_objects()
    blanks = torch.full((objects.shape[0], env.length - own.length), env.blank)
    return score(torch.cat([objects, blanks], 1))


def expectation_table(env: SequenceEnv, values: Float[Tensor, "M C"]) -> Float64[Tensor, "M C"]:
    """Expectations of all orders of one length from figures of all sequences, both in the order of `object_index`."""
    table = values.double().T.reshape(-1, *(env.vocab,) * env.length)  # C V .. V
    roots = [states[:1] for states in env.levels()]  # noise may depend on the position, not on the tokens
    total = torch.zeros_like(table)
    for rate, weight in env.noise.rates(env.horizon):
        expected = table
        for axis, root in enumerate(roots, start=1):
            kernel = env.operator(root, torch.float64, rate)
            expected = kernel.expected(expected.movedim(axis, -1)).movedim(-1, axis)
        total += weight * expected
    return total.reshape(values.shape[1], -1).T


def outcome_laws(env: SequenceEnv, orders: Int[Tensor, "N O"]) -> Float64[Tensor, "N M"]:
    """Probability of everything that may come out of each order, in the order of `all_objects`; for small spaces."""
    rows = [law(env, lambda states, one=one: order_policy(env, one.expand_as(states))(states).exp()) for one in orders]
    return torch.stack(rows)


def _estimated(env: SequenceEnv, orders: Int[Tensor, "N O"], score: Score, draws: int, seed: int) -> Expectation:
    count, total, squares = orders.shape[0], 0.0, 0.0
    for part in order_draws(env, draws, seed).split(max(1, BLOCK // max(1, count * env.length))):
        came, place = realised(env, orders, part).flatten(0, 1).unique(dim=0, return_inverse=True)
        values = score(came).double()[place].view(len(part), count, -1)
        total, squares = total + values.sum(0), squares + values.square().sum(0)
    mean = torch.as_tensor(total) / draws
    spread = (torch.as_tensor(squares) / draws - mean.square()).clamp(min=0.0) / max(1, draws - 1)
    return Expectation(mean=mean, error=spread.sqrt(), exact=False)


@dataclass(frozen=True)
class OrderDraws:
    """Random numbers of several draws of what comes out; all orders that are drawn with them meet the same errors."""

    clock: Float[Tensor, "D T K"]
    rate: Float[Tensor, " D"] | None
    """The hidden rate of each draw, where noise has one."""

    def __len__(self) -> int:
        return self.clock.shape[0]

    def split(self, size: int) -> "list[OrderDraws]":
        """The same draws, so many at a time."""
        clocks = self.clock.split(size)
        rates = [None] * len(clocks) if self.rate is None else self.rate.split(size)
        return [OrderDraws(clock, rate) for clock, rate in zip(clocks, rates, strict=True)]


def order_draws(env: SequenceEnv, count: int, seed: int) -> OrderDraws | CycleDraws:
    """Random numbers for so many draws."""
    generator = torch.Generator().manual_seed(seed)
    if isinstance(env, IndelEnv):
        return cycle_draws(count, env.length, generator)
    return OrderDraws(clocks((count, env.horizon, env.outcomes), generator), env.noise.draw_rates(count, generator))


def realised(env: SequenceEnv, orders: Int[Tensor, "N O"], draws: OrderDraws | CycleDraws) -> Int[Tensor, "D N O"]:
    """What comes out of each order in each draw."""
    if isinstance(draws, CycleDraws):
        assert isinstance(env, IndelEnv)
        return realise(env.noise, orders, draws, env.length)
    count, steps = orders.shape[0], draws.clock.transpose(0, 1)  # T D K
    times = torch.stack([torch.ones_like(steps), steps], 1)  # an order leaves no choice of intentions
    rolled = RolloutDraws(
        clock=times[:, :, :, None].expand(-1, -1, -1, count, -1).flatten(2, 3),
        rate=None if draws.rate is None else draws.rate.repeat_interleave(count),
        explore=0.0,
        temperature=1.0,
    )
    policy = order_policy(env, orders.repeat(len(draws), 1))
    return env.objects(act(env, policy, no_reward, rolled).states[:, -1]).view(len(draws), count, -1)


def order_policy(env: SequenceEnv, orders: Int[Tensor, "N O"]) -> LogPolicy:
    """The policy that intends the next token of its order, one order for each state of a batch, whatever came out."""
    intended = orders.clamp(max=env.actions - 1)  # a blank is the stop action by its very code

    def log_policy(state: Int[Tensor, "N S"]) -> Float[Tensor, "N A"]:
        place = env.written(state).clamp(max=env.horizon - 1)
        return one_hot(intended.gather(1, place[:, None])[:, 0], env.actions).log()

    return log_policy


def intact(env: SequenceEnv, orders: Int[Tensor, "N O"]) -> Float64[Tensor, " N"]:
    """Probability that each order comes out as it is, averaged over hidden rates."""
    if isinstance(env, IndelEnv):
        return log_probability(env.noise, orders, orders).exp()
    return log_law(env, order_policy(env, orders), orders).exp()


def violations(
    env: SequenceEnv, orders: Int[Tensor, "N O"], automaton: Automaton | None = None, draws: int = 1024
) -> Float64[Tensor, " N"]:
    """Probability that what comes out of each order breaks a constraint, by default of the environment's own; exact,
    but for noise that reads the state, where it is the share among draws."""
    automaton = env.automaton if automaton is None else automaton
    if automaton is None:
        return torch.zeros(orders.shape[0], dtype=torch.float64)
    if isinstance(env, IndelEnv):
        return violations_in_cycles(automaton, orders, env.noise)
    if not env.noise_by_state:
        return violation_probabilities(automaton, orders, env.noise)
    broken = _estimated(env, orders, lambda rows: (~automaton.feasible(rows))[:, None].double(), draws, 0)
    return broken.mean[:, 0]


# the best orders of a task


@dataclass(frozen=True, kw_only=True)
class Order:
    """A sequence to order, with its expected score and its probability of coming out unchanged."""

    order: str
    expected: float
    """Mean score of what is realised."""
    error: float
    """Standard error of that mean; zero where it is exact."""
    intact: float
    """Probability that it comes out as ordered."""
    violates: float
    """Probability that what comes out breaks a constraint."""
    score: float
    """Score if it comes out intact."""


def best_orders(env: Env, landscape: Landscape, samples: Samples, count: int = 10, seed: int = 0) -> list[Order]:
    """New sequences with the best expected scores, in the user's units; those measured beforehand are left out.

    Where all orders can be ranked exactly they are; else those are considered that came out of the policy or that it
    intended, and of them a shortlist by their scores if they come out intact, with fewer draws where scoring is slow.
    Empty where a task has no sequences to order (a grid).
    """
    if not isinstance(env, SequenceEnv) or not env.by_letter:
        return []
    orders = candidates(env, samples)
    orders = orders[is_new(landscape, orders)]
    if not orders.shape[0]:
        return []
    if not tabulable(env):
        orders = orders[landscape.scores(orders).argsort(descending=True, stable=True)[: max(count, SHORTLIST)]]
    found = expectation(env, orders, scored_by(landscape), draws=64 if landscape.on_host else 256, seed=seed)
    best = found.mean[:, 0].argsort(descending=True, stable=True)[:count]
    orders = orders[best]
    figures = (found.mean[best, -1], found.error[best, -1], intact(env, orders), violations(env, orders))
    rows = zip(env.decode(orders), *figures, landscape.told_of_orders(orders, landscape.scores(orders)), strict=True)
    names = ("expected", "error", "intact", "violates", "score")
    return [Order(order=text, **dict(zip(names, map(float, own), strict=True))) for text, *own in rows]


def scored_by(landscape: Landscape) -> Score:
    """What is maximised of each sequence, and last what is told of its score where that is something else."""

    def score(rows: Int[Tensor, "N O"]) -> Float[Tensor, "N C"]:
        values = landscape.scores(rows)
        shown = landscape.told_of_orders(rows, values)
        return values[:, None] if shown is values else torch.stack([values, shown], 1)

    return score


def candidates(env: SequenceEnv, samples: Samples) -> Int[Tensor, "N O"]:
    """Sequences that may be ordered: all of them where their values can be tabulated, else those of the samples."""
    known = [as_orders(env, samples.intended), samples.objects]
    found = env.all_objects() if tabulable(env) else torch.cat(known).unique(dim=0)
    found = found[env.written(found) >= (env.min_length if env.stop else env.length)]
    return found if env.automaton is None else found[env.automaton.feasible(found)]


def is_new(landscape: Landscape, orders: Int[Tensor, "N O"]) -> Bool[Tensor, " N"]:
    """Which orders were not measured beforehand."""
    known, count = landscape.offline_objects(), orders.shape[0]
    if known is None or not count:
        return torch.ones(count, dtype=torch.bool)
    _, place = torch.cat([orders, known.to(orders.device)]).unique(dim=0, return_inverse=True)
    return ~torch.isin(place[:count], place[count:])
