"""Exact answers against brute force and against the numbers known of TFBind8 and the grid."""

import math
from functools import cache

import numpy as np
import pytest
import torch
from exact_tables import ENVS, KINDS, PROPERTY, TINY, errors, every_trajectory, inner_states, look_up, random_table
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import nnls
from scipy.spatial.distance import jensenshannon
from scipy.special import rel_entr
from torch import Tensor
from torch.testing import assert_close

from sgfn.config import RewardConfig
from sgfn.envs import Env, GridEnv, SequenceEnv, laws
from sgfn.evaluation import exact
from sgfn.landscapes import tfbind8
from sgfn.landscapes.base import log_reward
from sgfn.landscapes.hypergrid import Hypergrid
from sgfn.noise import ConfusionMatrix, HiddenRate, UniformSlip

every_env = pytest.mark.parametrize("name", TINY)
every_alpha = pytest.mark.parametrize("alpha", [0.0, 0.25, 0.9])


def law_by_paths(env: Env, table: Tensor) -> Tensor:
    """Sum the probabilities of all (intention, outcome) paths, object by object."""
    batch, ends = every_trajectory(env), torch.zeros(env.num_objects, dtype=torch.float64)
    states = batch.states[:, :-1]
    policy, kernel = look_up(env, table)(states).tolist(), env.kernel(states, torch.float64).tolist()
    numbers = env.object_index(env.objects(batch.states[:, -1])).tolist()
    for b, (number, length) in enumerate(zip(numbers, batch.length.tolist(), strict=True)):
        steps = zip(batch.intended[b, :length].tolist(), batch.realised[b, :length].tolist(), strict=True)
        ends[number] += math.prod(policy[b][t][a] * kernel[b][t][a][k] for t, (a, k) in enumerate(steps))
    return ends


# Law


@every_alpha
@every_env
def test_law_equals_the_sum_over_paths(name: str, alpha: float) -> None:
    env = TINY[name](alpha)
    table = random_table(env, 0)
    law = laws.law(env, look_up(env, table))
    assert_close(law, law_by_paths(env, table), atol=1e-14, rtol=0)
    assert float(law.sum()) == pytest.approx(1.0, abs=1e-14)
    assert (law - laws.law(env, look_up(env, random_table(env, 1)))).abs().max() > 1e-3
    blind = laws.law(env, look_up(env, table), noisy=False)
    assert_close(blind, law_by_paths(TINY[name](0.0), table), atol=1e-14, rtol=0)
    assert torch.allclose(law, blind, atol=1e-6) == (alpha == 0.0 or name == "grid-1D-4")


@every_alpha
@pytest.mark.parametrize("name", [name for name in KINDS if "hidden" not in name])
def test_law_under_every_noise_equals_the_sum_over_paths(name: str, alpha: float) -> None:
    env = KINDS[name](alpha)
    table = random_table(env, 0)
    law = laws.law(env, look_up(env, table))
    assert_close(law, law_by_paths(env, table), atol=1e-14, rtol=0)
    if alpha > 0:
        assert (law - laws.law(env, look_up(env, table), noisy=False)).abs().max() > 1e-3


def moment(noise: HiddenRate, power: int) -> float:
    """E[alpha^power] of a Beta law."""
    a, c = noise.mean * noise.concentration, noise.concentration
    return math.prod((a + j) / (c + j) for j in range(power))


def hidden_law_by_paths(env: Env, noise: HiddenRate, table: Tensor) -> Tensor:
    """Each path has m hits and n misses among S: E[(1 - r alpha)^m (alpha/S)^n], r = 1 - 1/S, from Beta moments."""
    batch, ends = every_trajectory(env), torch.zeros(env.num_objects, dtype=torch.float64)
    states = batch.states[:, :-1]
    policy, sizes = look_up(env, table)(states), env.slippable(states).sum(-1)
    numbers = env.object_index(env.objects(batch.states[:, -1])).tolist()
    for b, (number, length) in enumerate(zip(numbers, batch.length.tolist(), strict=True)):
        chance, polynomial = 1.0, np.polynomial.Polynomial([1.0])
        for t in range(length):
            a, k, size = int(batch.intended[b, t]), int(batch.realised[b, t]), int(sizes[b, t])
            chance *= float(policy[b, t, a])
            if bool(env.slippable(states[b, t])[a]):
                polynomial *= np.polynomial.Polynomial([float(a == k), 1 / size - (a == k)])
        mean = sum(c * moment(noise, power) for power, c in enumerate(polynomial.coef))
        ends[number] += chance * mean
    return ends


@every_alpha
@pytest.mark.parametrize("name", [name for name in KINDS if "hidden" in name])
def test_law_under_a_hidden_rate_has_the_moments_of_the_beta_law(name: str, alpha: float) -> None:
    env = KINDS[name](alpha)
    assert isinstance(env.noise, HiddenRate)
    table = random_table(env, 0) ** 4
    table = table / table.sum(-1, keepdim=True)
    law = laws.law(env, look_up(env, table))
    assert_close(law, hidden_law_by_paths(env, env.noise, table), atol=1e-13, rtol=0)
    plain = law_by_paths(env, table)  # as if each step had a rate of its own: the kernel of the mean
    assert torch.allclose(law, plain, atol=1e-5) == (alpha == 0.0)
    states, objects = laws.reach(env, look_up(env, table))
    assert float(states[0]) == pytest.approx(1.0)
    assert torch.equal(objects, law)


def test_the_floor_under_a_hidden_rate_is_told_only_where_it_is_known() -> None:
    """All slips so far: the rate is expected at (m c + t)/(c + t), and half of it goes to each letter at least."""
    env = KINDS["hidden-L3-V2"](0.2)  # c = 3: at most .6, .6/2, ... -> (.6 + 2)/(3 + 2) = .52 at the last letter
    scores = torch.ones(8, dtype=torch.float64)
    flat = exact.reference(env, scores, torch.zeros(8), 1.0)
    assert flat.floor_kind == "the target, by a policy with memory"
    assert torch.equal(flat.floor, flat.target)
    assert exact.distances(flat.uniform, flat)["tv_floor"] == 0.0
    for share, known in ((0.261, True), (0.259, False)):  # conditionals at the last letter against .52/2
        law = torch.tensor([share, 1 - share] * 4, dtype=torch.float64) / 4
        found = exact.reference(env, scores, law.log(), 1.0)
        assert (found.floor is not None) == known
        assert ("not known" in found.floor_kind) != known
    assert exact.reference(KINDS["hidden-grid-2D-3"](0.2), torch.ones(9), torch.zeros(9), 1.0).floor is None


@pytest.mark.parametrize("name", ENVS)
def test_law_of_the_solved_flows_is_the_target(name: str) -> None:
    """Without noise the conditionals of `flows` sample in proportion to the reward; with noise they do not."""
    env = ENVS[name](0.5)
    reward = torch.rand(env.num_objects, generator=torch.Generator().manual_seed(0), dtype=torch.float64) + 0.01
    flow, conditionals = exact.flows(env, reward)
    policy = laws.table_policy(env, conditionals)
    wanted = reward / reward.sum()
    assert_close(laws.law(env, policy, noisy=False), wanted, atol=1e-14, rtol=0)
    assert float(flow[env.index(env.initial(1))]) == pytest.approx(float(reward.sum()))
    noisy = laws.law(env, policy)
    assert torch.allclose(noisy, wanted, atol=1e-3) == (name == "grid-1D-4")


def test_rewards_that_underflow_leave_the_law_finite() -> None:
    """A large beta makes whole branches worthless: F = 0 there, and any conditional will do."""
    env = TINY["fixed-L3-V2"](0.3)
    scores = torch.tensor([1.0, 0.9] + [1e-3] * 6, dtype=torch.float64)
    known = exact.reference(env, scores, scores.log(), beta=1000.0)
    assert (known.target == 0).sum() == 6
    for law in (known.floor, known.blind, known.uniform):
        assert float(law.sum()) == pytest.approx(1.0, abs=1e-12)
    assert exact.total_variation(known.floor, known.target) < exact.total_variation(known.uniform, known.target)


def test_uniform_policy_by_hand() -> None:
    env = TINY["stop-L3-V2-min2"](0.0)
    states = env.parse(["AB"])
    assert_close(laws.uniform_policy(env)(states)[0].tolist(), [1 / 3] * 3)
    assert laws.uniform_policy(env)(env.initial(1))[0].tolist() == [0.5, 0.5, 0.0]
    law = laws.law(env, laws.uniform_policy(env))
    assert_close(law, torch.tensor([1 / 12] * 4 + [1 / 12] * 8, dtype=torch.float64))


@pytest.mark.parametrize("limit", [30, 31])
def test_too_large_a_space_is_refused_with_its_count(limit: int) -> None:
    env = ENVS["fixed-L4-V2"](0.1)  # 15 states and 16 objects
    assert laws.enumerable(env, limit) == (limit == 31)
    zeros = torch.zeros(16, dtype=torch.float64)
    if limit == 31:
        assert exact.reference(env, zeros, zeros, 1.0, max_states=limit).target.shape == (16,)
    else:
        with pytest.raises(ValueError, match=r"needs 31 states and objects, the limit is 30"):
            exact.reference(env, zeros, zeros, 1.0, max_states=limit)


def test_a_huge_space_is_refused_before_anything_is_built() -> None:
    env = SequenceEnv(length=40, alphabet="ACGT", noise=UniformSlip(alpha=0.1))
    with pytest.raises(ValueError, match=f"{(4**40 - 1) // 3 + 4**40:,}"):
        laws.check_size(env)


# Best reachable laws on trees

PROJECTED = [name for name in KINDS if "grid" not in name and "hidden" not in name]


@pytest.mark.parametrize("alpha", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("name", ["fixed-L3-V2", "fixed-L2-V3", "stop-L3-V2", "stop-L3-V2-min2", *PROJECTED])
def test_no_policy_is_nearer_in_kl_than_the_best_one(name: str, alpha: float) -> None:
    env = (TINY | KINDS)[name](alpha)
    generator = torch.Generator().manual_seed(0)
    wanted = torch.softmax(2 * torch.randn(env.num_objects, generator=generator, dtype=torch.float64), 0)
    _, conditionals = exact.flows(env, wanted)
    best = exact.best_policy(env, conditionals)
    least = exact.kl(wanted, laws.law(env, best))
    for seed in range(5):
        rival = random_table(env, seed)
        for mix in (1e-3, 0.1):  # towards a random policy: never better
            mixed = laws.law(env, lambda s, m=mix, r=rival: (1 - m) * best(s) + m * r[env.index(s)])
            assert exact.kl(wanted, mixed) > least - 1e-9
        assert exact.kl(wanted, laws.law(env, look_up(env, rival))) > least + 1e-3
    states = inner_states(env)
    assert best(states).min() >= 0
    assert_close(best(states).sum(-1), torch.ones(env.num_states, dtype=torch.float64))


@pytest.mark.parametrize("alpha", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("name", ["fixed-L3-V2", "stop-L3-V2-min2", "drift-L2-V3"])
def test_eflow_solves_its_equation(name: str, alpha: float) -> None:
    """F(s) pi(a|s) = E_k F(s'): and with uniform slip over tokens pi = (1-alpha) c + alpha/V."""
    env = TINY[name](alpha)
    reward = torch.rand(env.num_objects, generator=torch.Generator().manual_seed(0), dtype=torch.float64) + 0.1
    flow, conditionals = exact.flows(env, reward)
    states = inner_states(env)
    policy, table = exact.eflow_policy(env, conditionals)(states), laws.table_policy(env, conditionals)(states)
    children = flow[env.index(states)][:, None] * table  # F(s')
    expected = torch.einsum("nak,nk->na", env.kernel(states, torch.float64), children)
    assert_close(flow[env.index(states)][:, None] * policy, expected, atol=1e-12, rtol=0)
    if not name.startswith("drift"):
        tokens = table[:, :2].sum(-1, keepdim=True)
        assert_close(policy[:, :2], (1 - alpha) * table[:, :2] + alpha / 2 * tokens, atol=1e-12, rtol=0)
    assert (policy - table).abs().max() > 1e-3


# TFBind8 (method, section 8)


@cache
def binding() -> tuple[Tensor, Tensor, Tensor, dict[int, Tensor]]:
    """Scores, target at beta 3, flows and conditionals: none of them depends on the noise."""
    scores = torch.from_numpy(tfbind8.load_scores())
    wanted = exact.target(log_reward(scores, RewardConfig()), 3.0)
    return scores, wanted, *exact.flows(binding_env(0.0), wanted)


def binding_env(alpha: float) -> SequenceEnv:
    return SequenceEnv(length=tfbind8.LENGTH, alphabet=tfbind8.ALPHABET, noise=UniformSlip(alpha=alpha))


@pytest.mark.parametrize(
    ("alpha", "best", "blind", "eflow", "reward", "impossible"),
    [
        (0.1, 0.0004, 0.042, 0.079, 0.647, 0.055),
        (0.25, 0.005, 0.104, 0.180, 0.645, 0.22),
        (0.5, 0.046, 0.206, 0.306, 0.632, 0.58),
        (0.75, 0.164, 0.306, 0.379, 0.582, 0.88),  # reward .5823 also by bisection on nu, apart from this code
    ],
)
def test_tfbind8_has_its_known_numbers(
    alpha: float, best: float, blind: float, eflow: float, reward: float, impossible: float
) -> None:
    scores, wanted, _, conditionals = binding()
    env = binding_env(alpha)
    makers = (exact.best_policy, laws.table_policy, exact.eflow_policy)
    reached = [laws.law(env, make(env, conditionals)) for make in makers]
    distances = [exact.total_variation(law, wanted) for law in reached]
    assert distances == pytest.approx([best, blind, eflow], abs=6e-4)
    assert best > 0.001 or distances[0] == pytest.approx(best, abs=5e-5)
    assert distances != pytest.approx([blind, eflow, best], abs=6e-4)
    assert float((reached[0] * scores).sum()) == pytest.approx(reward, abs=6e-4)
    lacking = torch.cat([(c < alpha / 4).any(-1) for c in conditionals.values()])
    assert lacking.shape == (env.num_states,)
    assert float(lacking.double().mean()) == pytest.approx(impossible, abs=0.005)


def test_tfbind8_under_a_confusion_matrix() -> None:
    """A quarter of the letters wrong, in a lopsided way: the floor stays low, and ignoring the noise does not."""
    _, wanted, _, conditionals = binding()
    noise = ConfusionMatrix(matrix=errors(4, 0.25))
    env = SequenceEnv(length=tfbind8.LENGTH, alphabet=tfbind8.ALPHABET, noise=noise)
    best, blind = (laws.law(env, make(env, conditionals)) for make in (exact.best_policy, laws.table_policy))
    assert float(best.sum()) == pytest.approx(1.0, abs=1e-12)
    assert exact.total_variation(best, wanted) < 0.03
    assert exact.total_variation(blind, wanted) > 0.15


def test_tfbind8_uniform_and_noiseless() -> None:
    scores, wanted, flow, conditionals = binding()
    env = binding_env(0.0)
    assert (env.num_states + env.num_objects, scores.shape[0]) == (87381, 65536)
    uniform = laws.law(env, laws.uniform_policy(env))
    assert exact.total_variation(uniform, wanted) == pytest.approx(0.403, abs=6e-4)
    assert_close(uniform, torch.full_like(uniform, 4**-8))
    for make in (exact.best_policy, laws.table_policy, exact.eflow_policy):
        assert exact.total_variation(laws.law(env, make(env, conditionals)), wanted) < 1e-12
    assert float(flow[0]) == pytest.approx(1.0)


# Grid


def grid_target(side: int, alpha: float) -> tuple[GridEnv, Tensor]:
    env = GridEnv(ndim=2, side=side, noise=UniformSlip(alpha=alpha))
    scores = Hypergrid(side=side).scores(env.all_objects())
    return env, exact.target(log_reward(scores, RewardConfig()), 1.0)


@pytest.mark.parametrize(("alpha", "mean_l1"), [(0.25, 0.0), (0.5, 0.00145), (0.9, 0.01088)])
def test_grid_floor_has_its_known_numbers(alpha: float, mean_l1: float) -> None:
    env, wanted = grid_target(8, alpha)
    floor = exact.grid_floor(env, wanted)
    assert float((floor - wanted).abs().mean()) == pytest.approx(mean_l1, abs=1e-9 if mean_l1 == 0 else 5e-6)
    assert float(floor.sum()) == pytest.approx(1.0, abs=1e-9)
    assert floor.min() > -1e-12
    known = exact.reference(env, wanted, wanted.log(), 1.0)
    assert exact.total_variation(floor, wanted) < exact.total_variation(known.blind, wanted) - 0.01


def policy_with_law(env: Env, wanted: Tensor) -> tuple[laws.Policy, float]:
    """The policy whose state-action flows come nearest to a law, and by how much they miss it (least squares)."""
    balance, ends, _ = exact._flow_matrices(env)
    source = np.zeros(env.num_states)
    source[int(env.index(env.initial(1)))] = 1.0
    matrix = np.vstack([balance.toarray(), ends.toarray()])
    flow, missed = nnls(matrix, np.concatenate([source, wanted.numpy()]))
    states = inner_states(env)
    used = torch.zeros(env.num_states, env.actions, dtype=torch.float64)
    used[env.legal(states)] = torch.from_numpy(flow)
    used = used + 1e-15 * env.legal(states)  # states that are never reached
    table = torch.zeros_like(used).index_copy(0, env.index(states), used / used.sum(-1, keepdim=True))
    return look_up(env, table), float(missed)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("name", ["grid-2D-4", "grid-3D-3"])
def test_grid_floor_is_the_law_of_a_policy_and_no_policy_is_nearer(name: str, alpha: float) -> None:
    env = ENVS[name](alpha)
    generator = torch.Generator().manual_seed(0)
    wanted = torch.softmax(3 * torch.randn(env.num_objects, generator=generator, dtype=torch.float64), 0)
    floor = exact.grid_floor(env, wanted)
    policy, missed = policy_with_law(env, floor)
    assert missed < 1e-7
    assert_close(laws.law(env, policy), floor, atol=1e-6, rtol=0)
    distance = exact.total_variation(floor, wanted)
    for seed in range(20):
        rival = laws.law(env, look_up(env, random_table(env, seed)))
        assert exact.total_variation(rival, wanted) > distance + 1e-3
        assert (
            exact.total_variation(exact.grid_floor(env, rival), rival) < 1e-9 or seed > 1
        )  # reachable laws are reached
    assert (distance < 1e-8) == (policy_with_law(env, wanted)[1] < 1e-7)  # what is out of reach is missed
    assert distance < 1e-8 if alpha == 0.0 else distance > 1e-3 or alpha < 0.9


def test_grid_floor_scales() -> None:
    env, wanted = grid_target(32, 0.5)
    floor = exact.grid_floor(env, wanted)
    assert float(floor.sum()) == pytest.approx(1.0, abs=1e-8)
    blind = laws.law(env, laws.table_policy(env, exact.flows(env, wanted)[1]))
    assert exact.total_variation(floor, wanted) < exact.total_variation(blind, wanted)


# Distances

LAWS = st.lists(st.tuples(*[st.just(0.0) | st.floats(1e-6, 1.0)] * 2), min_size=2, max_size=8).filter(
    lambda rows: all(any(column) for column in zip(*rows, strict=True))
)


@PROPERTY
@given(rows=LAWS)
def test_distances_equal_scipy(rows: list[tuple[float, float]]) -> None:
    p, q = (torch.tensor(w, dtype=torch.float64) / sum(w) for w in zip(*rows, strict=True))
    assert exact.jensen_shannon(p, q) == pytest.approx(jensenshannon(p.numpy(), q.numpy()) ** 2, abs=1e-9)
    wanted = float(rel_entr(p.numpy(), q.numpy()).sum())
    assert exact.kl(p, q) == (math.inf if math.isinf(wanted) else pytest.approx(wanted, abs=1e-9))
    assert exact.total_variation(p, q) == pytest.approx(float((p - torch.minimum(p, q)).sum()), abs=1e-12)
    assert exact.total_variation(p, p) == 0.0


def test_distances_by_hand() -> None:
    env = TINY["fixed-L2-V3"](0.3)
    scores = torch.arange(1.0, 10.0, dtype=torch.float64)
    known = exact.reference(env, scores, scores.log(), 1.0)
    assert_close(known.target, scores / 45)
    p = torch.full((9,), 1 / 9, dtype=torch.float64)
    found = exact.distances(p, known)
    tv = sum(abs(k / 45 - 1 / 9) for k in range(1, 10)) / 2
    assert (found["tv"], found["l1_mean"]) == pytest.approx((tv, 2 * tv / 9))
    assert found["tv_uniform"] == pytest.approx(tv)
    assert found["expected_reward"] == pytest.approx(5.0)
    assert found["target_expected_reward"] == pytest.approx(sum(k * k for k in range(1, 10)) / 45)
    assert found["kl"] == pytest.approx(sum(k / 45 * math.log(k / 5) for k in range(1, 10)))
    assert found["tv_floor"] < found["tv_blind"] < found["tv"]
    assert exact.distances(known.target, known)["tv"] == 0.0
    assert known.floor_kind == "forward-KL optimum"
    assert "linear programme" in exact.reference(*flat_grid(), 1.0).floor_kind


def flat_grid() -> tuple[Env, Tensor, Tensor]:
    env = TINY["grid-2D-3"](0.1)
    return env, torch.ones(9, dtype=torch.float64), torch.zeros(9, dtype=torch.float64)
