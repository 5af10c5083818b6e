"""Rows of states that a GPU evaluates, and choices of one entry of a column."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from sgfn.envs.sequence import SequenceEnv
from sgfn.learning.kernels.fixed_length import picked
from sgfn.learning.kernels.fixed_length_net import MIN_LEVEL_ROWS, SpreadRows
from sgfn.noise import UniformSlip


def random_states(env: SequenceEnv, batch: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Random sequences: their states, and the states' numbers."""
    tokens = torch.randint(env.vocab, (batch, env.length), generator=torch.Generator().manual_seed(seed))
    states = [env.initial(batch, "cpu")]
    for token in tokens.t():
        states.append(env.apply(states[-1], token))
    found = torch.stack(states, 1)  # B T+1 S
    return found, env.index(found)


def codes_of(env: SequenceEnv) -> torch.Tensor:
    return torch.cat([env.encode(level) for level in env.levels()])


@settings(max_examples=30, deadline=None)
@given(
    length=st.integers(1, 5),
    letters=st.sampled_from(["AB", "ABC", "ABCD"]),
    batch=st.integers(1, 600),
    levels=st.integers(0, 5),
    seed=st.integers(0, 9),
)
def test_every_visited_state_has_its_row(length: int, letters: str, batch: int, levels: int, seed: int) -> None:
    env = SequenceEnv(length=length, alphabet=letters, noise=UniformSlip(alpha=0.1))
    levels = min(levels, length)
    states, numbers = random_states(env, batch, seed)
    rows, index = SpreadRows(env, levels, batch, torch.device("cpu")).rows(codes_of(env), numbers)
    index = torch.arange(rows.codes.shape[0]) if index is None else index
    visited = states[:, :-1].transpose(0, 1).flatten(0, 1)  # T B, flat
    assert_close(rows.codes[index], env.encode(visited))
    assert_close(rows.depth[index], torch.arange(length).repeat_interleave(batch))
    assert rows.depth.shape[0] == rows.codes.shape[0]
    if batch > 1 and length > 1:
        assert not torch.equal(rows.codes[index.roll(batch)], env.encode(visited))  # rows of another step


def test_no_row_of_a_shared_level_is_crowded() -> None:
    env, batch = SequenceEnv(length=6, alphabet="ABCD", noise=UniformSlip(alpha=0.1)), 4096
    _, numbers = random_states(env, batch, 0)
    _, index = SpreadRows(env, 5, batch, torch.device("cpu")).rows(codes_of(env), numbers)
    assert index is not None
    assert int(index.bincount().max()) <= 3 * batch // MIN_LEVEL_ROWS
    assert int(numbers[:, :-1].flatten().bincount().max()) == batch  # all of them pass through the root


@pytest.mark.parametrize("shape", [(3, 7), (2, 3, 7)])
def test_to_compare_is_to_look_up(shape: tuple[int, ...]) -> None:
    generator = torch.Generator().manual_seed(0)
    table = torch.randn(shape, generator=generator).requires_grad_()
    row, weight = torch.randint(3, (7,), generator=generator), torch.randn((*shape[:-2], 7), generator=generator)
    found = [picked(table, row, compare) for compare in (True, False)]
    assert_close(found[0], found[1])
    slopes = [torch.autograd.grad((values * weight).sum(), table)[0] for values in found]
    assert_close(slopes[0], slopes[1])
    assert not torch.equal(found[0], picked(table, (row + 1) % 3, True))
