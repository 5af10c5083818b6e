"""Rollouts: what acts, what is drawn, what is recorded, and replaying known objects."""

from dataclasses import replace

import pytest
import torch
from exact_tables import (
    DRIFT,
    ENVS,
    PROPERTY,
    TINY,
    chi_square,
    inner_states,
    log_of,
    look_up,
    no_reward,
    random_table,
)
from hypothesis import example, given
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from sgfn.envs import laws
from sgfn.envs.base import Enumerable
from sgfn.envs.trajectories import Trajectories
from sgfn.learning.rollout import behaviour, clocks, draw, retrace, rollout
from sgfn.noise.operators import DenseKernel, Kernel

every_env = pytest.mark.parametrize("name", ENVS)
ALL = ENVS | DRIFT
noisy_env = pytest.mark.parametrize("name", [name for name in ALL if name != "grid-1D-4"])  # there slips are void


def play(env: Enumerable, table: Tensor, n: int, seed: int = 0, **options: float) -> Trajectories:
    generator = torch.Generator().manual_seed(seed)
    return rollout(env, log_of(look_up(env, table)), no_reward, batch=n, generator=generator, **options)


def replay_goals(env: Enumerable, table: Tensor, copies: int) -> Trajectories:
    goals = env.all_objects().repeat_interleave(copies, 0)
    return retrace(env, goals, log_of(look_up(env, table)), env.operator, no_reward, times(env, len(goals)))


def times(env: Enumerable, batch: int) -> Tensor:
    """Waiting times for a batch of steps, as `retrace` reads them."""
    return clocks((env.horizon, 2, batch, max(env.actions, env.outcomes)), torch.Generator().manual_seed(0))


def count_triples(env: Enumerable, batch: Trajectories) -> Tensor:
    """How often each (state, intention, outcome) happened in valid steps."""
    states = env.index(batch.states[:, :-1])[batch.valid]
    counts = torch.zeros(env.num_states, env.actions, env.actions, dtype=torch.float64)
    where = (states, batch.intended[batch.valid], batch.realised[batch.valid])
    return counts.index_put(where, torch.ones(states.shape[0], dtype=torch.float64), accumulate=True)


def kernel_table(env: Enumerable) -> Tensor:
    states = inner_states(env)
    table = torch.zeros(env.num_states, env.actions, env.actions, dtype=torch.float64)
    return table.index_copy(0, env.index(states), env.kernel(states, torch.float64))


def count_objects(env: Enumerable, batch: Trajectories) -> Tensor:
    return torch.bincount(env.object_index(env.objects(batch.states[:, -1])), minlength=env.num_objects)


# What acts


def test_behaviour_is_the_mixture_written_by_hand() -> None:
    log_policy = torch.tensor([[0.64, 0.36, 0.0]], dtype=torch.float64).log()
    legal = torch.tensor([[True, True, False]])
    plain = behaviour(log_policy, legal, 0.0, 1.0)
    assert_close(plain, torch.tensor([[0.64, 0.36, 0.0]], dtype=torch.float64))
    mixed = torch.tensor([[0.9 * 8 / 14 + 0.05, 0.9 * 6 / 14 + 0.05, 0.0]], dtype=torch.float64)  # square roots: T = 2
    assert_close(behaviour(log_policy, legal, 0.1, 2.0), mixed, atol=1e-15, rtol=0)
    for wrong in [behaviour(log_policy, legal, 0.1, 1.0), behaviour(log_policy, legal, 0.0, 2.0)]:
        assert (wrong - mixed).abs().max() > 0.005
    with_illegal = behaviour(log_policy, torch.ones_like(legal), 0.1, 2.0)
    assert with_illegal[0, 2] > 0.03  # the mask is what kept the illegal action out


# What is drawn

WEIGHTS = st.lists(st.just(0.0) | st.floats(2**-100, 1.0, width=32), min_size=1, max_size=6).filter(any)


@PROPERTY
@given(weights=WEIGHTS, times=st.lists(st.just(0.0) | st.floats(0.0, 100.0, width=32), min_size=6, max_size=6))
@example(weights=[0.0, 1.0, 0.0], times=[0.0] * 6)
@example(weights=[1.0, 2**-100, 0.0], times=[100.0, 0.0, 0.0, 1.0, 1.0, 1.0])
def test_draw_never_takes_an_impossible_entry(weights: list[float], times: list[float]) -> None:
    law = torch.tensor([weights]) / sum(weights)
    clock = torch.tensor([times[: len(weights)]]).clamp(min=1e-30)  # as `clocks` hands them out
    assert law[0, draw(law, clock)] > 0


def test_a_clock_at_zero_would_ring_for_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Why `clocks` keeps away from zero: 0/0 wins every comparison."""
    law, times = torch.tensor([[0.0, 1.0]]), torch.tensor([[0.0, 1.0]])
    assert law[0, draw(law, times)] == 0
    monkeypatch.setattr(torch.Tensor, "exponential_", lambda self, **_: self.copy_(times))
    assert law[0, draw(law, clocks((1, 2), torch.Generator()))] == 1


@pytest.mark.parametrize("weights", [[0.55, 0.45], [0.1, 0.0, 0.6, 0.3], [0.05, 0.15, 0.8], [0.02, 0.02, 0.96]])
def test_draw_frequencies(weights: list[float]) -> None:
    law, n = torch.tensor(weights), 40_000
    index = draw(law.expand(n, -1), clocks((n, len(weights)), torch.Generator().manual_seed(0)))
    counts = torch.bincount(index, minlength=len(weights))
    assert chi_square(counts, torch.tensor(weights, dtype=torch.float64)) > 1e-4
    other = torch.tensor(weights, dtype=torch.float64).sqrt()  # a race of the wrong rates
    assert chi_square(counts, other / other.sum()) < 1e-4


# What is recorded


@noisy_env
@pytest.mark.parametrize("alpha", [0.25, 0.7])
def test_rollouts_carry_intention_and_outcome(name: str, alpha: float) -> None:
    env = ALL[name](alpha)
    table = random_table(env, 1)
    counts = count_triples(env, play(env, table, 4000))
    assert chi_square(counts.sum(-1), table) > 1e-4
    assert chi_square(counts.sum(-1), random_table(env, 2)) < 1e-4
    assert chi_square(counts, kernel_table(env)) > 1e-4
    assert chi_square(counts, kernel_table(ALL[name](alpha + 0.1))) < 1e-4


@every_env
def test_without_noise_outcomes_are_intentions(name: str) -> None:
    for alpha in (0.0, 0.7):
        env = ENVS[name](alpha)
        batch = play(env, random_table(env, 1), 500)
        same = torch.equal(batch.intended[batch.valid], batch.realised[batch.valid])
        assert same == (alpha == 0.0 or name == "grid-1D-4")


@noisy_env
def test_ends_follow_the_exact_law(name: str) -> None:
    env = ALL[name](0.4)
    table = random_table(env, 1)
    counts = count_objects(env, play(env, table, 20_000))
    assert chi_square(counts, laws.law(env, look_up(env, table))) > 1e-4
    assert chi_square(counts, laws.law(env, look_up(env, table), noisy=False)) < 1e-4


@pytest.mark.parametrize("name", ["fixed-L3-V3", "stop-L4-V2-min2", "grid-2D-4"])
def test_exploring_ends_follow_the_law_of_the_behaviour(name: str) -> None:
    env = ENVS[name](0.25)
    policy = look_up(env, random_table(env, 1))

    def acting(states: Tensor) -> Tensor:
        return behaviour(policy(states).log(), env.legal(states), 0.3, 2.0)

    counts = count_objects(env, play(env, random_table(env, 1), 20_000, explore=0.3, temperature=2.0))
    assert chi_square(counts, laws.law(env, acting)) > 1e-4
    assert chi_square(counts, laws.law(env, policy)) < 1e-4


def test_reward_is_read_at_the_finished_object() -> None:
    env = ENVS["grid-2D-4"](0.25)
    generator = torch.Generator().manual_seed(0)
    policy = log_of(laws.uniform_policy(env))
    batch = rollout(env, policy, lambda x: x.sum(-1).float(), batch=50, generator=generator)
    assert torch.equal(batch.log_reward, batch.states[:, -1, :2].sum(-1).float())
    assert not torch.equal(batch.log_reward, batch.states[:, 0, :2].sum(-1).float())


@every_env
def test_masks_mark_what_happened(name: str) -> None:
    env = ENVS[name](0.25)
    batch = play(env, random_table(env, 1), 500)
    assert torch.equal(batch.final, env.done(batch.states))
    moved = (batch.states[:, 1:] != batch.states[:, :-1]).any(-1)
    assert torch.equal(batch.valid, moved)
    assert torch.equal(batch.length, moved.sum(1))
    assert batch.length.max() == env.horizon
    assert bool((batch.length < env.horizon).any()) == (not name.startswith(("fixed", "forecast")))
    assert not torch.equal(replace(batch, valid=~batch.valid).final, env.done(batch.states))


def test_masks_of_one_short_trajectory_by_hand() -> None:
    env = TINY["stop-L3-V2"](0.0)
    states, valid = env.unrolled(torch.tensor([[1, 2, 0], [0, 0, 1]]))  # "B" and stop; "AAB"
    assert states[0].tolist() == [[2, 2, 2], [1, 2, 2], [1, 3, 2], [1, 3, 2]]
    assert states[1].tolist() == [[2, 2, 2], [0, 2, 2], [0, 0, 2], [0, 0, 1]]
    assert valid.tolist() == [[True, True, False], [True, True, True]]


@every_env
def test_unroll_rebuilds_states(name: str) -> None:
    env = ENVS[name](0.7)
    batch = play(env, random_table(env, 1), 200)
    states, valid = env.unrolled(batch.realised)
    assert torch.equal(states, batch.states)
    assert torch.equal(valid, batch.valid)
    if name != "grid-1D-4":
        assert not torch.equal(env.unrolled(batch.intended)[0], batch.states)  # outcomes matter, not intentions


# Known objects


@every_env
@pytest.mark.parametrize("alpha", [0.0, 0.4])
def test_retrace_reaches_its_goals(name: str, alpha: float) -> None:
    env = ENVS[name](alpha)
    batch = replay_goals(env, random_table(env, 1), 5)
    goals = env.all_objects().repeat_interleave(5, 0)
    assert torch.equal(env.objects(batch.states[:, -1]), goals)
    assert not torch.equal(env.objects(batch.states[:, -1]), goals.flip(0))
    assert torch.equal(batch.final, env.done(batch.states))
    states, valid = env.unrolled(batch.realised)
    assert torch.equal(states, batch.states)
    assert torch.equal(valid, batch.valid)
    same = torch.equal(batch.intended[batch.valid], batch.realised[batch.valid])
    assert same == (alpha == 0.0 or name == "grid-1D-4")


@noisy_env
def test_retraced_intentions_follow_the_posterior(name: str) -> None:
    env = ALL[name](0.6)
    table = random_table(env, 1)
    counts = count_triples(env, replay_goals(env, table, 800)).transpose(1, 2)  # state, outcome, intention
    joint = (table[:, :, None] * kernel_table(env)).transpose(1, 2)
    mass = joint.sum(-1, keepdim=True)
    posterior = torch.where(mass > 0, joint / mass.clamp(min=1e-12), torch.eye(env.actions, dtype=torch.float64))
    assert chi_square(counts, posterior) > 1e-4
    prior = torch.where(posterior > 0, table[:, None, :], 0.0)
    prior = torch.where(mass > 0, prior / prior.sum(-1, keepdim=True).clamp(min=1e-12), posterior)
    assert chi_square(counts, prior) < 1e-4


@pytest.mark.parametrize("name", TINY)
@pytest.mark.parametrize("alpha", [0.0, 0.4])
def test_retrace_means_only_what_the_noise_allows(name: str, alpha: float) -> None:
    """A learned P^ gives every pair some mass; a pair outside the support would have log pi_B = -inf, hence no loss."""
    env = TINY[name](alpha)

    def learned(states: Tensor) -> Kernel:
        return DenseKernel(torch.full((*states.shape[:-1], env.actions, env.actions), 1 / env.actions))

    goals = env.all_objects().repeat_interleave(50, 0)
    batch = retrace(env, goals, log_of(laws.uniform_policy(env)), learned, no_reward, times(env, len(goals)))

    rows, valid = env.support(batch.states[:, 1:]).flatten(-2), batch.valid
    allowed = rows.gather(-1, (batch.realised * env.actions + batch.intended)[..., None])[..., 0][valid]
    assert allowed.all()
    if alpha > 0 and name != "grid-1D-4":
        assert not torch.equal(batch.intended[valid], batch.realised[valid])


def test_no_trajectories_are_a_batch_too() -> None:
    env = ENVS["grid-1D-4"](0.1)
    assert play(env, random_table(env, 1), 0).intended.shape == (0, env.horizon)
