"""Exact answers on enumerable tasks: the law of a policy under the noise, the target, and the best reachable law.

Everything here is dynamic programming over the state graph, in float64, batched per depth.
"""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.envs.base import Enumerable, Env
from sgfn.envs.laws import MAX_STATES, PolicyProbabilities, check_size, children, law, table_policy, uniform_policy
from sgfn.noise import HiddenRate, slip_project

MAX_PROGRAMME = 1_100  # states up to which the linear programme is solved; a grid of 32 x 32 fits


def flows(env: Enumerable, reward: Float[Tensor, " N"]) -> tuple[Float[Tensor, " M"], dict[int, Float[Tensor, "n K"]]]:
    r"""State flows and target conditionals per depth, with the uniform backward policy (on a tree: the only one).

    .. math:: F(s) = \sum_k F(s')\,P_B(s|s'), \qquad c(k|s) = F(s')\,P_B(s|s')/F(s), \qquad F(x) = R(x)^\beta
    """
    flow = torch.zeros(env.num_states, dtype=torch.float64)
    conditionals = {}
    for depth, states in reversed(list(enumerate(env.levels()))):
        out = torch.zeros(states.shape[0], env.outcomes, dtype=torch.float64)
        for rows, k, target, finished in children(env, states):
            if finished:
                out[rows, k] = reward[target]
            else:
                reached = env.apply(states[rows], torch.full_like(rows, k))
                out[rows, k] = flow[target] / env.parents(reached).sum(-1)
        total = out.sum(-1)
        flow[env.index(states)] = total
        possible = env.possible(states).double()  # where a flow underflows to zero any conditional will do
        uniform = possible / possible.sum(-1, keepdim=True)
        conditionals[depth] = torch.where(total[:, None] > 0, out / total[:, None], uniform)
    return flow, conditionals


def target(log_reward: Float[Tensor, " N"], beta: float) -> Float[Tensor, " N"]:
    r"""Target law over all objects, $p^*(x) = R(x)^\beta / Z$."""
    return torch.softmax(beta * log_reward.double(), 0)


def best_policy(env: Enumerable, conditionals: dict[int, Float[Tensor, "n K"]]) -> PolicyProbabilities:
    """Policy whose law under the noise is nearest to the target in forward KL, on a tree.

    KL to the target is a sum over nodes, so projecting each node's conditional on what the noise allows gives the
    global optimum. Under a hidden rate this is the optimum for a rate fixed at its mean only.
    """
    best = {}
    for depth, states in enumerate(env.levels()):
        best[depth] = env.operator(states, torch.float64).project(conditionals[depth])[0]
    return table_policy(env, best)


def eflow_policy(env: Enumerable, conditionals: dict[int, Float[Tensor, "n K"]]) -> PolicyProbabilities:
    r"""Policy that solves expected-flow balance on a tree, $\pi(a|s) = \sum_k P(k|s,a)\,c(k|s)$ normalised.

    With uniform slip it is $(1-\alpha) c + \alpha/V$.
    Reference: Jiralerspong et al. (2024), Expected flow networks, ICLR.
    """
    expected = {}
    for depth, states in enumerate(env.levels()):
        weight = env.operator(states, torch.float64).expected(conditionals[depth]) * env.legal(states)
        expected[depth] = weight / weight.sum(-1, keepdim=True)
    return table_policy(env, expected)


def soft_policy(
    env: Enumerable, log_reward: Float[Tensor, " N"], temperature: float
) -> dict[int, Float[Tensor, "n A"]]:
    r"""Probabilities by depth of the policy that maximises reward plus entropy, where an object earns its log-reward.

    .. math:: Q(s,a) = \sum_k P(k|s,a)\,V(s'), \qquad V(s) = \tau\log\sum_a e^{Q(s,a)/\tau}, \qquad
              \pi(a|s) = e^{(Q(s,a) - V(s))/\tau}, \qquad V(x) = \beta\log R(x)

    On a tree without noise its law at temperature 1 is the target. Temperature 0 is the limit: only best actions, and
    ties between them are broken by the entropy still to come. Under a hidden rate this is the optimum for a rate fixed
    at its mean only.

    References: Haarnoja et al. (2017), Reinforcement learning with deep energy-based policies, ICML; (2018), Soft
    actor-critic, ICML.
    """
    value, spread = torch.zeros(2, env.num_states, dtype=torch.float64)  # at temperature 0, V(s) = value + 0 * spread
    reward, policy = log_reward.double(), {}
    for depth, states in reversed(list(enumerate(env.levels()))):
        number, legal = env.index(states), env.legal(states)
        q = _expected(env, states, value, reward).masked_fill(~legal, -torch.inf)
        if temperature > 0:
            logits = q / temperature
            value[number] = temperature * torch.logsumexp(logits, -1)
        else:
            value[number] = best = q.amax(-1)
            tied = q >= (best - 1e-12 * (1 + best.abs()))[:, None]
            logits = _expected(env, states, spread, torch.zeros_like(reward)).masked_fill(~tied, -torch.inf)
            spread[number] = torch.logsumexp(logits, -1)
        policy[depth] = torch.softmax(logits, -1)
    return policy


def _expected(
    env: Enumerable, states: Int[Tensor, "n S"], inner: Float[Tensor, " M"], final: Float[Tensor, " N"]
) -> Float[Tensor, "n A"]:
    """Expectation after each intention of a table over states, or over objects where the next state is final."""
    reached = torch.zeros(states.shape[0], env.outcomes, dtype=torch.float64)
    for rows, k, target, finished in children(env, states):
        reached[rows, k] = (final if finished else inner)[target]
    return env.operator(states, torch.float64).expected(reached)


def grid_floor(env: Enumerable, wanted: Float[Tensor, " N"]) -> Float[Tensor, " N"]:
    r"""Reachable law of least total variation on any graph, by a linear programme over state-action flows.

    .. math:: \min \sum_x |p(x) - p^*(x)| \quad\text{s.t.}\quad \sum_a u(s,a) = 1[s=s_0] +
              \sum_{s^-,a} u(s^-,a) P(s|s^-,a),\ u \ge 0
    """
    import numpy as np
    from scipy.optimize import linprog
    from scipy.sparse import coo_array, hstack, identity, vstack

    balance, ends, count = _flow_matrices(env)
    slack = env.num_objects
    source = np.zeros(env.num_states)
    source[int(env.index(env.initial(1)))] = 1.0
    eye = identity(slack)
    empty = coo_array((env.num_states, slack))
    upper = vstack([hstack([ends, -eye]), hstack([-ends, -eye])])
    bound = np.concatenate([wanted.numpy(), -wanted.numpy()])
    cost = np.concatenate([np.zeros(count), np.ones(slack)])
    solution = linprog(
        cost, A_ub=upper.tocsr(), b_ub=bound, A_eq=hstack([balance, empty]).tocsr(), b_eq=source, method="highs"
    )
    if not solution.success:
        raise RuntimeError(f"the linear programme for the best reachable law failed: {solution.message}")
    return torch.from_numpy(ends @ solution.x[:count])


def _flow_matrices(env: Enumerable) -> tuple:
    """Sparse matrices from flows u(s, a) of legal pairs to each state's balance and each object's arrivals."""
    import numpy as np
    from scipy.sparse import coo_array, csr_array

    states = torch.cat(list(env.levels()))
    number, legal = env.index(states), env.legal(states)
    kernel = env.operator(states, torch.float64)
    chances = [kernel.row(torch.full_like(number, a)) for a in range(env.actions)]  # each n K
    variable = torch.full(legal.shape, -1)
    variable[legal] = torch.arange(int(legal.sum()))
    count = int(legal.sum())
    out_rows = number[:, None].expand_as(variable)[legal]
    inner = [(out_rows, variable[legal], torch.ones(count, dtype=torch.float64))]
    outer: list[tuple[Tensor, Tensor, Tensor]] = []
    for rows, k, reached, finished in children(env, states):
        for a in range(env.actions):
            chance = chances[a][rows, k]
            used = legal[rows, a] & (chance > 0)
            entry = (reached[used], variable[rows[used], a], chance[used] if finished else -chance[used])
            (outer if finished else inner).append(entry)

    def matrix(entries: list[tuple[Tensor, Tensor, Tensor]], height: int) -> csr_array:
        i, j, v = (np.concatenate([e[n].numpy() for e in entries]) for n in range(3))
        return coo_array((v, (i, j)), shape=(height, count)).tocsr()

    return matrix(inner, env.num_states), matrix(outer, env.num_objects), count


@dataclass(frozen=True, kw_only=True)
class ReferenceLaws:
    """Laws of a task that are known before training, over all objects in the order of `object_index`."""

    scores: Float[Tensor, " N"]
    target: Float[Tensor, " N"]
    floor: Float[Tensor, " N"] | None
    """Best reachable law: on a tree the forward-KL optimum, on a graph the least total variation (up to a size)."""
    blind: Float[Tensor, " N"] | None
    """Law of the policy that would be exact without noise; None where intentions are no outcomes."""
    uniform: Float[Tensor, " N"]
    floor_kind: str


def reference(
    env: Env, scores: Float[Tensor, " N"], log_reward: Float[Tensor, " N"], beta: float, max_states: int = MAX_STATES
) -> ReferenceLaws:
    """Compute a task's target, best reachable law, and the laws of the noise-ignoring and of the uniform policy."""
    env = check_size(env, max_states)
    wanted = target(log_reward, beta)
    _, conditionals = flows(env, wanted)
    best, kind = _floor(env, wanted, conditionals)
    return ReferenceLaws(
        scores=scores.double(),
        target=wanted,
        floor=best,
        blind=law(env, table_policy(env, conditionals)) if env.intends_outcomes else None,
        uniform=law(env, uniform_policy(env)),
        floor_kind=kind,
    )


UNKNOWN_HIDDEN = "not known under a hidden rate"


def _floor(
    env: Enumerable, wanted: Float[Tensor, " N"], conditionals: dict[int, Float[Tensor, "n K"]]
) -> tuple[Float[Tensor, " N"] | None, str]:
    """The best reachable law, or None, and in which sense it is best or why it is not known."""
    if isinstance(env.noise, HiddenRate) and not env.noise_by_state:
        return _hidden_floor(env, env.noise, wanted, conditionals)
    if env.noise.has_hidden_rate and not env.noise_by_state:
        return None, UNKNOWN_HIDDEN
    if env.tree:
        return law(env, best_policy(env, conditionals)), "forward-KL optimum"
    if env.num_states > MAX_PROGRAMME:
        return None, f"not computed: the linear programme is limited to {MAX_PROGRAMME:,} states"
    return grid_floor(env, wanted), "least total variation (linear programme)"


def _hidden_floor(
    env: Enumerable, noise: HiddenRate, wanted: Float[Tensor, " N"], conditionals: dict[int, Float[Tensor, "n K"]]
) -> tuple[Float[Tensor, " N"] | None, str]:
    """The target itself where a policy with memory can reach it under a hidden rate; else None: not known.

    It can where every conditional is within reach after the history with the highest expected rate, which is the one in
    which all steps slipped. Where that history puts a node out of reach, other histories of the same prefix may or may
    not make up for it, and projecting node by node gives only a bound.
    """
    if not env.tree:
        return None, UNKNOWN_HIDDEN
    for depth, states in enumerate(env.levels()):
        reached = slip_project(conditionals[depth], env.slippable(states), noise.highest(depth))[1]
        if float((reached - conditionals[depth]).abs().max()) > 1e-12:
            return None, UNKNOWN_HIDDEN
    return wanted, "the target, by a policy with memory"


def total_variation(p: Float[Tensor, " N"], q: Float[Tensor, " N"]) -> float:
    r"""Total variation distance $\tfrac12 \sum_x |p(x) - q(x)|$.

    >>> total_variation(torch.tensor([0.5, 0.5]), torch.tensor([1.0, 0.0]))
    0.5
    """
    return 0.5 * float((p - q).abs().sum())


def kl(p: Float[Tensor, " N"], q: Float[Tensor, " N"]) -> float:
    r"""Kullback-Leibler divergence $\sum_x p(x) \log(p(x)/q(x))$; infinite where p has mass and q none."""
    return float(torch.where(p > 0, p * (p.log() - q.log()), 0.0).sum())


def jensen_shannon(p: Float[Tensor, " N"], q: Float[Tensor, " N"]) -> float:
    """Jensen-Shannon divergence in nats: the mean KL of both laws to their mixture."""
    mixture = (p + q) / 2
    return (kl(p, mixture) + kl(q, mixture)) / 2


def distances(p: Float[Tensor, " N"] | None, known: ReferenceLaws) -> dict[str, Any]:
    """Distances of a law to the target and expected scores, for JSON; None where a law or floor is not known."""
    floor, tv = known.floor, None if p is None else total_variation(p, known.target)
    return {
        "tv": tv,
        "tv_floor": None if floor is None else total_variation(floor, known.target),
        "tv_blind": None if known.blind is None else total_variation(known.blind, known.target),
        "tv_uniform": total_variation(known.uniform, known.target),
        "l1_mean": None if tv is None else 2 * tv / known.target.shape[0],
        "js": None if p is None else jensen_shannon(p, known.target),
        "kl": None if p is None else kl(known.target, p),
        "expected_reward": None if p is None else float((p * known.scores).sum()),
        "target_expected_reward": float((known.target * known.scores).sum()),
        "floor_expected_reward": None if floor is None else float((floor * known.scores).sum()),
    }
