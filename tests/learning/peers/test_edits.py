"""Edits by hand, and what orders give: closed forms against dynamic programming against simulation."""

import pytest
import torch
from chain_tasks import SPACES, enough
from exact_tables import chi_square, no_reward
from torch import Tensor
from torch.testing import assert_close

from sgfn.envs import Env, GridEnv, SequenceEnv, TabulatedEnv
from sgfn.learning.peers.edits import check_edits, make_edits, outcome_table
from sgfn.learning.rollout import rollout
from sgfn.noise import HiddenRate, UniformSlip

CPU = torch.device("cpu")
every_space = pytest.mark.parametrize("name", SPACES)


def edits_by_hand(env: Env, row: tuple[int, ...]) -> set[tuple[int, ...]]:
    """What one edit may turn an object into, from the text of the rules."""
    if isinstance(env, GridEnv):
        moved = {(*row[:i], c + d, *row[i + 1 :]) for i, c in enumerate(row) for d in (-1, 1)}
        return {cell for cell in moved if all(0 <= c < env.side for c in cell)}
    assert isinstance(env, SequenceEnv)
    word = [token for token in row if token < env.vocab]
    found = [[*word[:i], v, *word[i + 1 :]] for i in range(len(word)) for v in range(env.vocab) if v != word[i]]
    if env.stop:
        found += [[*word, v] for v in range(env.vocab) if len(word) < env.length]
        found += [word[:-1]] if len(word) > env.min_length else []
    return {(*word, *[env.blank] * (env.length - len(word))) for word in found}


@every_space
def test_edits_are_the_neighbours_written_by_hand(name: str) -> None:
    env = SPACES[name](0.3)
    edits, objects = make_edits(env, CPU), env.all_objects()
    legal = edits.legal(objects)
    assert legal.shape == (env.num_objects, edits.count)
    for row, mask in zip(objects, legal, strict=True):
        edit = mask.nonzero()[:, 0]
        goals = edits.goals(row.expand(len(edit), -1), edit).tolist()
        assert len(goals) == len({tuple(goal) for goal in goals})
        assert {tuple(goal) for goal in goals} == edits_by_hand(env, tuple(row.tolist()))
    chance = edits.log_uniform(objects).exp()
    assert_close(chance.sum(-1), torch.ones(env.num_objects, dtype=torch.float64))
    assert torch.equal(chance > 0, legal)
    assert len(edits.encode(objects).unique(dim=0)) == env.num_objects
    assert edits.encode(objects).shape[-1] == edits.features


@pytest.mark.parametrize("alpha", [0.0, 0.3])
@every_space
def test_the_closed_form_equals_dynamic_programming(name: str, alpha: float) -> None:
    env = SPACES[name](alpha)
    edits, objects, table = make_edits(env, CPU), env.all_objects(), outcome_table(env)
    assert_close(table.sum(1), torch.ones(env.num_objects, dtype=torch.float64), atol=1e-12, rtol=0)
    assert table.min() >= 0
    assert_close(edits.outcomes(), table, atol=1e-12, rtol=0)
    edit = edits.legal(objects).double().multinomial(1, generator=torch.Generator().manual_seed(0))[:, 0]
    goals = env.object_index(edits.goals(objects, edit))
    found = torch.stack(
        [edits.log_outcomes(objects, y.expand_as(objects)).exp()[range(len(edit)), edit] for y in objects], 1
    )
    assert_close(found, table[goals], atol=1e-12, rtol=1e-12)
    assert not torch.allclose(found, table[goals.roll(1)])


def realised(env: Env, goal: Tensor, count: int) -> Tensor:
    """How often each object comes out when one is ordered."""
    policy = lambda state: env.toward(state, goal.expand(count, -1)).log()  # noqa: E731
    batch = rollout(env, policy, no_reward, batch=count, generator=torch.Generator().manual_seed(4))
    return env.object_index(env.objects(batch.states[:, -1])).bincount(minlength=env.num_objects)


@pytest.mark.parametrize("name", [name for name in SPACES if name != "grid-1D-4"])  # one move can slip to itself only
def test_simulated_orders_follow_the_table(name: str) -> None:
    env = SPACES[name](0.4)
    picked = torch.tensor([0, env.num_objects // 2, env.num_objects - 1])
    counts = torch.stack([realised(TabulatedEnv(env), env.all_objects()[goal], 6000) for goal in picked])
    assert chi_square(*enough(counts, outcome_table(env)[picked])) > 1e-3
    assert chi_square(*enough(counts, outcome_table(SPACES[name](0.2))[picked])) < 1e-6


def test_an_order_written_by_hand() -> None:
    env = SequenceEnv(length=2, alphabet="AB", noise=UniformSlip(alpha=0.2), stop=True)  # A B AA AB BA BB
    table = outcome_table(env)
    assert_close(table[0], torch.tensor([0.9, 0.1, 0, 0, 0, 0], dtype=torch.float64))  # A, then stop
    assert_close(table[3], torch.tensor([0, 0, 0.09, 0.81, 0.01, 0.09], dtype=torch.float64))  # AB
    cells = GridEnv(ndim=2, side=3, noise=UniformSlip(alpha=0.5))
    law = outcome_table(cells)[cells.object_index(torch.tensor([1, 0]))].reshape(3, 3)
    # Right at once; up, then right; or up twice to the border, where right is sure.
    assert_close(law[1], torch.tensor([3 / 4, 1 / 4 * 3 / 4, 1 / 16], dtype=torch.float64))
    assert law[[0, 2]].sum() == 0


def test_a_large_grid_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^chains on a grid .* 4,225 cells, more than 4,096: lower --grid\.side"):
        make_edits(GridEnv(ndim=2, side=65, noise=UniformSlip(alpha=0.1)), CPU)
    assert make_edits(GridEnv(ndim=2, side=5, noise=UniformSlip(alpha=0.1)), CPU).count == 4


def test_a_hidden_rate_counts_as_many_tables() -> None:
    noises = UniformSlip(alpha=0.1), HiddenRate(mean=0.1, concentration=4.0)
    plain, hidden = (GridEnv(ndim=2, side=32, noise=noise) for noise in noises)
    check_edits(plain)
    with pytest.raises(ValueError, match=r" 1,024 cells, more than 724 under 32 slip rates: lower --grid\.side"):
        check_edits(hidden)
    check_edits(GridEnv(ndim=2, side=20, noise=noises[1]))


def test_other_environments_are_refused() -> None:
    tables = TabulatedEnv(SPACES["fixed-L2-V4"](0.1))
    with pytest.raises(ValueError, match=r"are for sequences and grids, and TabulatedEnv is neither$"):
        make_edits(tables, CPU)
    assert make_edits(tables.env, CPU).count == 8
