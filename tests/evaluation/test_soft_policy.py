"""The soft-optimal policy against the target, against recursion by hand, and against every rival."""

import math
from functools import cache
from itertools import product

import pytest
import torch
from exact_tables import ENVS, KINDS, TINY, inner_states, look_up, random_table
from soft_tables import everything
from torch import Tensor
from torch.testing import assert_close

from sgfn.config import RewardConfig
from sgfn.envs import Env, SequenceEnv, laws
from sgfn.evaluation import exact
from sgfn.landscapes import base, tfbind8
from sgfn.noise import UniformSlip

TREES = [name for name in ENVS if "grid" not in name]
MEMORYLESS = {name: make for name, make in (TINY | KINDS).items() if "hidden" not in name}


def rewards(env: Env, seed: int = 0) -> Tensor:
    """Log-rewards of all objects, far from flat."""
    return 2.0 * torch.randn(env.num_objects, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def soft(env: Env, log_reward: Tensor, temperature: float) -> laws.Policy:
    return laws.table_policy(env, exact.soft_policy(env, log_reward, temperature))


def value_by_hand(env: Env, log_reward: Tensor, temperature: float) -> float:
    """V of the root by recursion, a state at a time."""

    @cache
    def value(*state: int) -> float:
        here = torch.tensor(state)
        if bool(env.done(here)):
            return float(log_reward[env.object_index(env.objects(here))])
        legal, kernel, q = env.legal(here).tolist(), env.kernel(here, torch.float64).tolist(), []
        after = [value(*env.apply(here, torch.tensor(k)).tolist()) if legal[k] else 0.0 for k in range(env.actions)]
        for a in range(env.actions):
            if legal[a]:
                q.append(sum(kernel[a][k] * after[k] for k in range(env.actions)))
        return max(q) + temperature * math.log(sum(math.exp((x - max(q)) / temperature) for x in q))

    return value(*env.initial(1)[0].tolist())


@pytest.mark.parametrize("beta", [1.0, 3.0])
@pytest.mark.parametrize("name", TREES)
def test_on_a_quiet_tree_the_law_is_the_target(name: str, beta: float) -> None:
    env = ENVS[name](0.0)
    log_reward = rewards(env)
    wanted = exact.target(log_reward, beta)
    law = laws.law(env, soft(env, beta * log_reward, 1.0))
    assert_close(law, wanted, atol=1e-12, rtol=0)
    assert exact.total_variation(laws.law(env, soft(env, beta * log_reward, 0.5)), wanted) > 0.01
    noisy = ENVS[name](0.25)  # the optimum of reward plus entropy is another law once actions slip
    assert exact.total_variation(laws.law(noisy, soft(noisy, beta * log_reward, 1.0)), wanted) > 0.01


def test_on_a_quiet_graph_an_object_counts_once_for_each_path() -> None:
    env = ENVS["grid-2D-4"](0.0)
    log_reward = rewards(env)
    paths = torch.tensor([math.comb(x + y, x) for x, y in env.all_objects().tolist()], dtype=torch.float64)
    law = laws.law(env, soft(env, log_reward, 1.0))
    assert_close(law, exact.target(log_reward + paths.log(), 1.0), atol=1e-12, rtol=0)
    assert exact.total_variation(law, exact.target(log_reward, 1.0)) > 0.01


@pytest.mark.parametrize("temperature", [0.1, 2.0])
@pytest.mark.parametrize("name", MEMORYLESS)
def test_the_policy_earns_what_recursion_by_hand_promises_and_no_rival_as_much(name: str, temperature: float) -> None:
    env = MEMORYLESS[name](0.25)
    log_reward = rewards(env)
    all_ = everything(env, log_reward)
    table = torch.zeros(env.num_states, env.actions, dtype=torch.float64)
    states = inner_states(env)
    table[env.index(states)] = soft(env, log_reward, temperature)(states)

    def worth(policy: Tensor) -> float:
        return float(all_.worth(policy.log(), temperature))

    best = worth(table)
    assert best == pytest.approx(value_by_hand(env, log_reward, temperature), abs=1e-10)
    assert (table[env.index(states)][~env.legal(states)] == 0).all()
    for seed in range(5):
        rival = random_table(env, seed)
        assert worth(rival) < best
        assert worth(0.99 * table + 0.01 * rival) < best


def test_two_steps_by_hand() -> None:
    """Two letters twice, a fifth of them come out as the other: rewards 0, 1, 2, 5 at AA, AB, BA, BB."""
    env = SequenceEnv(length=2, alphabet="AB", noise=UniformSlip(alpha=0.4))
    table = exact.soft_policy(env, torch.tensor([0.0, 1.0, 2.0, 5.0]), 2.0)
    q = {"A": (0.2, 0.8), "B": (2.6, 4.4)}  # .8 x the reward meant + .2 x the other
    v = {s: 2 * math.log(sum(math.exp(x / 2) for x in q[s])) for s in q}
    root = 0.8 * v["A"] + 0.2 * v["B"], 0.2 * v["A"] + 0.8 * v["B"]
    share = 1 / (1 + math.exp((root[0] - root[1]) / 2))
    assert_close(table[0], torch.tensor([[1 - share, share]], dtype=torch.float64))
    seconds = [1 / (1 + math.exp((low - high) / 2)) for low, high in q.values()]
    assert_close(table[1][:, 1], torch.tensor(seconds, dtype=torch.float64))
    assert table[0][0, 1] != table[1][0, 1]


@pytest.mark.parametrize("alpha", [0.0, 0.4])
def test_at_temperature_zero_no_policy_earns_more(alpha: float) -> None:
    env = SequenceEnv(length=2, alphabet="AB", noise=UniformSlip(alpha=alpha))
    log_reward = rewards(env)
    earned = [float((laws.law(env, p) * log_reward).sum()) for p in (soft(env, log_reward, t) for t in (0.0, 1.0))]
    eye = torch.eye(2, dtype=torch.float64)
    every = [look_up(env, eye[list(choice)]) for choice in product(range(2), repeat=3)]  # all that are deterministic
    best = max(float((laws.law(env, policy) * log_reward).sum()) for policy in every)
    assert earned[0] == pytest.approx(best, abs=1e-12)
    assert earned[1] < best - 0.01


@pytest.mark.parametrize("alpha", [0.0, 0.25])
@pytest.mark.parametrize("name", ["fixed-L3-V2", "stop-L3-V2-min2", "grid-2D-3"])
def test_temperature_zero_is_the_limit_with_ties_too(name: str, alpha: float) -> None:
    env = TINY[name](alpha)
    for log_reward in (rewards(env), rewards(env).clamp(min=-0.1, max=0.3), torch.zeros(env.num_objects)):
        states = inner_states(env)
        limit, near = (soft(env, log_reward, t)(states) for t in (0.0, 1e-6))
        assert_close(limit, near, atol=1e-6, rtol=0)


def test_ties_by_hand() -> None:
    """AAA, AAB and BBB are best: each is drawn as often, so the first letter is A in two cases of three."""
    env = TINY["fixed-L3-V2"](0.0)
    log_reward = torch.tensor([1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    policy = exact.soft_policy(env, log_reward, 0.0)
    assert_close(policy[0], torch.tensor([[2 / 3, 1 / 3]], dtype=torch.float64))
    law = laws.law(env, laws.table_policy(env, policy))
    assert_close(law, log_reward.double() / 3)


@pytest.mark.parametrize(
    ("alpha", "plain", "tuned", "temperature"),
    [(0.0, 0.0, 0.0, 1.0), (0.1, 0.0738, 0.0115, 0.8), (0.25, 0.1721, 0.0403, 0.6), (0.5, 0.2996, 0.1009, 0.3)],
)
def test_tfbind8_has_its_known_limits(alpha: float, plain: float, tuned: float, temperature: float) -> None:
    """Total variation of the best that entropy-regularised learning can do; noise asks for a lower temperature."""
    env = SequenceEnv(length=tfbind8.LENGTH, alphabet=tfbind8.ALPHABET, noise=UniformSlip(alpha=alpha))
    earned = 3.0 * base.log_reward(torch.from_numpy(tfbind8.load_scores()), RewardConfig()).double()
    wanted = exact.target(earned, 1.0)
    found = [laws.law(env, soft(env, earned, t)) for t in (1.0, temperature)]
    assert [exact.total_variation(law, wanted) for law in found] == pytest.approx([plain, tuned], abs=6e-5)
