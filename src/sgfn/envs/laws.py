"""Exact laws of policies on enumerable environments: dynamic programming over the state graph, in float64."""

from collections.abc import Callable
from typing import TypeGuard

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.envs.base import Enumerable, Env

PolicyProbabilities = Callable[[Int[Tensor, "N S"]], Float[Tensor, "N A"]]
"""A policy as a function from states to probabilities of intentions."""

MAX_STATES = 2_000_000


def check_size(env: Env, max_states: int = MAX_STATES) -> Enumerable:
    """Raise where there are more states and objects than `max_states`, with their number."""
    if not isinstance(env, Enumerable):
        raise ValueError(
            f"the exact answer needs every state, and {type(env).__name__} cannot list them: rely on samples"
        )
    if not enumerable(env, max_states):
        raise ValueError(
            f"the exact answer needs {env.num_states + env.num_objects:,} states and objects, "
            f"the limit is {max_states:,}: raise --max-states (in Python max_states) or rely on samples"
        )
    return env


def enumerable(env: Env, max_states: int = MAX_STATES) -> TypeGuard[Enumerable]:
    """Whether there are at most `max_states` states and objects."""
    return isinstance(env, Enumerable) and env.num_states + env.num_objects <= max_states


def law(env: Enumerable, policy: PolicyProbabilities, *, noisy: bool = True) -> Float[Tensor, " N"]:
    r"""Probability of each object under a policy and the true kernel.

    .. math:: p(s') = \sum_s p(s)\,\bar P(k|s), \qquad \bar P(k|s) = \sum_a \pi(a|s)\,P(k|s,a)

    Under a hidden rate, the mean over rates of the law at each: exact for a policy without memory.
    """
    return reach(env, policy, noisy=noisy)[1]


def reach(
    env: Enumerable, policy: PolicyProbabilities, *, noisy: bool = True
) -> tuple[Float[Tensor, " M"], Float[Tensor, " N"]]:
    """Probability of passing through each state, and of ending in each object."""
    rates = env.noise.rates(env.horizon) if noisy else [(None, 1.0)]
    masses = [(weight, *_reach(env, policy, rate, noisy)) for rate, weight in rates]
    states, objects = (sum(m[0] * m[part] for m in masses) for part in (1, 2))
    return torch.as_tensor(states), torch.as_tensor(objects)


def _reach(
    env: Enumerable, policy: PolicyProbabilities, rate: float | None, noisy: bool
) -> tuple[Float[Tensor, " M"], Float[Tensor, " N"]]:
    states_mass = torch.zeros(env.num_states, dtype=torch.float64)
    objects_mass = torch.zeros(env.num_objects, dtype=torch.float64)
    states_mass[env.index(env.initial(1))] = 1.0
    for states in env.levels():
        moved = outcome_law(env, states, policy(states).double(), noisy, rate) * states_mass[env.index(states)][:, None]
        for rows, k, target, finished in children(env, states):
            (objects_mass if finished else states_mass).index_add_(0, target, moved[rows, k])
    return states_mass, objects_mass


def outcome_law(
    env: Env,
    states: Int[Tensor, "N S"],
    policy: Float[Tensor, "N A"],
    noisy: bool = True,
    rate: float | None = None,
) -> Float[Tensor, "N K"]:
    """Law of the outcome at each state under a policy; without noise it is the policy itself."""
    if not noisy:
        return policy
    return env.operator(states, torch.float64, rate).outcome_probabilities(policy)


def children(env: Enumerable, states: Int[Tensor, "N S"]) -> list[tuple[Tensor, int, Tensor, bool]]:
    """Moves out of a level as (rows, outcome, number of the state or object reached, whether it is an object)."""
    moves, possible = [], env.possible(states)
    for k in range(env.outcomes):
        rows = possible[:, k].nonzero()[:, 0]
        if not rows.shape[0]:
            continue
        reached = env.apply(states[rows], torch.full_like(rows, k))
        done = env.done(reached)
        if (~done).any():
            moves.append((rows[~done], k, env.index(reached[~done]), False))
        if done.any():
            moves.append((rows[done], k, env.object_index(env.objects(reached[done])), True))
    return moves


def table_policy(env: Enumerable, conditionals: dict[int, Float[Tensor, "n K"]]) -> PolicyProbabilities:
    """A policy that looks its probabilities up in a table by state number."""
    table = torch.zeros(env.num_states, env.actions, dtype=torch.float64)
    for depth, states in enumerate(env.levels()):
        table[env.index(states)] = conditionals[depth]
    return lambda states: table[env.index(states)]


def uniform_policy(env: Env) -> PolicyProbabilities:
    """The policy that gives every legal intention the same probability."""

    def policy(states: Int[Tensor, "N S"]) -> Float[Tensor, "N A"]:
        legal = env.legal(states).double()
        return legal / legal.sum(-1, keepdim=True)

    return policy
