"""The ring buffer against a Python list, and the trajectories it rebuilds."""

from collections import deque

import pytest
import torch
from exact_tables import ENVS, PROPERTY, log_of, look_up, random_table
from hypothesis import given
from hypothesis import strategies as st

from sgfn.envs.base import Enumerable
from sgfn.envs.trajectories import Trajectories
from sgfn.learning.replay import Replay
from sgfn.learning.rollout import rollout

CPU = torch.device("cpu")


def play(env: Enumerable, batch: int, seed: int = 0) -> Trajectories:
    """Rollouts whose log-reward is their number: each can be told from all others."""
    generator = torch.Generator().manual_seed(seed)
    numbers = torch.arange(batch) + 1000.0 * seed
    return rollout(env, log_of(look_up(env, random_table(env, 0))), lambda _: numbers, batch=batch, generator=generator)


def draws(buffer: Replay, count: int = 2000, seed: int = 0) -> Trajectories:
    return buffer.sample(count, torch.Generator().manual_seed(seed))


@PROPERTY
@given(capacity=st.integers(1, 7), sizes=st.lists(st.integers(1, 12), min_size=1, max_size=6))
def test_ring_keeps_what_a_list_would_keep(capacity: int, sizes: list[int]) -> None:
    env = ENVS["fixed-L2-V4"](0.3)
    buffer, model, everything = Replay(env, capacity, CPU), deque(maxlen=capacity), []
    for seed, size in enumerate(sizes):
        batch = play(env, size, seed)
        buffer.add(batch)
        rows = zip(batch.log_reward.tolist(), batch.intended.tolist(), batch.realised.tolist(), strict=True)
        rows = [(r, tuple(a), tuple(k)) for r, a, k in rows]
        model.extend(rows)
        everything.extend(rows)
    drawn = draws(buffer, 60 * capacity)
    rows = zip(drawn.log_reward.tolist(), drawn.intended.tolist(), drawn.realised.tolist(), strict=True)
    found = {(r, tuple(a), tuple(k)) for r, a, k in rows}
    assert found == set(model)  # all that is kept, nothing older, no empty row
    assert (found == set(everything)) == (sum(sizes) <= capacity)


def test_draws_are_uniform_and_follow_the_generator() -> None:
    env = ENVS["fixed-L2-V4"](0.3)
    buffer = Replay(env, 10, CPU)
    buffer.add(play(env, 4))
    counts = torch.bincount(draws(buffer, 8000).log_reward.long(), minlength=10)
    assert counts[4:].sum() == 0
    assert (counts[:4] - 2000).abs().max() < 200  # five standard deviations
    assert torch.equal(draws(buffer, seed=1).log_reward, draws(buffer, seed=1).log_reward)
    assert not torch.equal(draws(buffer, seed=1).log_reward, draws(buffer, seed=2).log_reward)


@pytest.mark.parametrize("name", ENVS)
def test_trajectories_come_back_identical(name: str) -> None:
    env = ENVS[name](0.4)
    batch, buffer = play(env, 50), Replay(env, 64, CPU)
    buffer.add(batch)
    drawn = draws(buffer, 300)
    rows = drawn.log_reward.long()  # the reward is the row's number
    for field in ("intended", "realised", "valid", "states", "log_reward"):
        original, back = getattr(batch, field)[rows], getattr(drawn, field)
        assert back.dtype == original.dtype
        assert torch.equal(back, original)
    assert not torch.equal(drawn.states, batch.states[rows.flip(0)])


def test_state_restores_a_buffer() -> None:
    env = ENVS["fixed-L2-V4"](0.3)
    first, second, empty = Replay(env, 5, CPU), Replay(env, 5, CPU), Replay(env, 5, CPU)
    first.add(play(env, 7))
    for name, value in first.state().items():
        getattr(second, name).copy_(value)
    later = play(env, 3, seed=1)
    for buffer in (first, second, empty):
        buffer.add(later)
    assert torch.equal(draws(first).log_reward, draws(second).log_reward)
    assert not torch.equal(draws(first).log_reward, draws(empty).log_reward)
