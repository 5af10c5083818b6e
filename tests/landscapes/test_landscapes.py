"""Landscapes by hand: hypergrid, words, tables; and the way from score to reward."""

import math
from fractions import Fraction
from functools import cache

import pytest
import torch
from exact_tables import ENVS, PROPERTY, grid
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from sgfn.config import RewardConfig, TrainConfig
from sgfn.envs import SequenceEnv
from sgfn.landscapes.base import beta_at, log_reward
from sgfn.landscapes.hypergrid import DeceptiveHypergrid, Hypergrid
from sgfn.landscapes.table import TableLandscape
from sgfn.landscapes.tasks import make_task
from sgfn.landscapes.words import WORDS, Words, edit_distance
from sgfn.noise import UniformSlip

# Hypergrid


def grid_reward(cell: tuple[int, ...], side: int) -> float:
    """The published formula in exact fractions."""
    away = [abs(Fraction(x, side - 1) - Fraction(1, 2)) for x in cell]
    ring = all(Fraction(1, 4) < a for a in away)
    peak = all(Fraction(3, 10) < a < Fraction(2, 5) for a in away)
    return 1e-3 + 0.5 * ring + 2.0 * peak


@pytest.mark.parametrize("ndim", [1, 2, 3])
@pytest.mark.parametrize("side", [2, 3, 6, 8, 11, 16])
def test_hypergrid_equals_the_formula(side: int, ndim: int) -> None:
    """Sides with x/(H-1) = .2 and .8 lie on the edge of a peak: rounding must not decide."""
    cells = grid(ndim, side)(0.0).all_objects()
    scores = Hypergrid(side=side).scores(cells)
    wanted = [grid_reward(tuple(cell), side) for cell in cells.tolist()]
    assert_close(scores, torch.tensor(wanted), atol=1e-6, rtol=0)
    assert torch.equal(scores, Hypergrid(side=side).scores(side - 1 - cells))  # all corners alike
    assert float(scores.max()) == pytest.approx(Hypergrid(side=side).maximum, abs=1e-6)
    assert not torch.equal(scores, Hypergrid(side=side, r1=0.6).scores(cells))


def test_hypergrid_8x8_by_hand() -> None:
    env, landscape = grid(2, 8)(0.0), Hypergrid(side=8)
    found = dict(zip(env.decode(env.all_objects()), landscape.scores(env.all_objects()).tolist(), strict=True))
    peaks = {cell for cell, score in found.items() if score == pytest.approx(2.501, abs=1e-6)}
    assert peaks == {"1,1", "1,6", "6,1", "6,6"}
    ring = {cell for cell, score in found.items() if score == pytest.approx(0.501, abs=1e-6)}
    assert len(ring) == 12  # four corners of 2x2, less their peaks
    assert {"0,0", "0,1", "7,6"} < ring
    assert found["3,3"] == found["0,3"] == pytest.approx(0.001, abs=1e-6)
    assert sum(found.values()) == pytest.approx(4 * 2.501 + 12 * 0.501 + 48 * 0.001, abs=1e-4)
    assert landscape.maximum == landscape.mode_level == pytest.approx(2.501)


@pytest.mark.parametrize(("ndim", "side"), [(1, 11), (2, 8), (2, 16), (3, 6)])
def test_the_deceptive_hypergrid_equals_the_formula(ndim: int, side: int) -> None:
    env, landscape = grid(ndim, side)(0.0), DeceptiveHypergrid(side=side, r0=1e-5, r1=0.1)
    wanted = []
    for cell in env.all_objects().tolist():
        away = [abs(Fraction(x, side - 1) - Fraction(1, 2)) for x in cell]
        peak = all(Fraction(3, 10) < a < Fraction(2, 5) for a in away)
        wanted.append(1e-5 + 0.1 * (1 - all(Fraction(1, 10) < a for a in away)) + 2.0 * peak)
    scores = landscape.scores(env.all_objects())
    assert_close(scores, torch.tensor(wanted), atol=1e-7, rtol=0)
    assert landscape.maximum == pytest.approx(max(wanted))
    assert not torch.equal(scores, Hypergrid(side=side, r0=1e-5, r1=0.1).scores(env.all_objects()))


def test_a_plain_below_the_least_reward_is_refused() -> None:
    low = TrainConfig().with_(grid__r0=1e-5, reward__minimum=1e-5)
    assert make_task("grid", low).landscape.scores(torch.tensor([[3, 3]])).item() == pytest.approx(1e-5)
    assert "lure" in make_task("grid", low.with_(grid__shape="deceptive")).summary
    with pytest.raises(ValueError, match=r"^grid\.r0 1e-05 lies below reward\.minimum 0\.001"):
        make_task("grid", TrainConfig().with_(grid__r0=1e-5))


# Words

LETTERS = st.text("AC", max_size=5)


@cache
def distance_by_recursion(x: str, y: str) -> int:
    if not x or not y:
        return len(x) + len(y)
    changed = distance_by_recursion(x[1:], y[1:]) + (x[0] != y[0])
    return min(changed, 1 + distance_by_recursion(x[1:], y), 1 + distance_by_recursion(x, y[1:]))


@PROPERTY
@given(texts=st.lists(LETTERS, min_size=1, max_size=8), word=LETTERS.filter(bool))
def test_edit_distance_equals_the_recursion(texts: list[str], word: str) -> None:
    rows = torch.tensor([["AC".index(c) for c in text] + [2] * (6 - len(text)) for text in texts])
    found = edit_distance(rows, torch.tensor(["AC".index(c) for c in word]), blank=2)
    assert found.tolist() == [distance_by_recursion(text, word) for text in texts]
    assert found.tolist() != [distance_by_recursion(text, word) + 1 for text in texts]


@pytest.mark.parametrize(
    ("text", "word", "distance"),
    [("CAT", "CAT", 0), ("CT", "CAT", 1), ("TAC", "CAT", 2), ("GATTACA", "CAT", 5), ("A", "TAGA", 3)],
)
def test_edit_distance_by_hand(text: str, word: str, distance: int) -> None:
    row = torch.tensor([["ACGT".index(c) for c in text] + [4] * (7 - len(text))])
    assert edit_distance(row, torch.tensor(["ACGT".index(c) for c in word]), blank=4).item() == distance


def test_words_score_one_exactly_at_the_words() -> None:
    env = SequenceEnv(length=7, alphabet="ACGT", stop=True, noise=UniformSlip(alpha=0.0))
    objects = env.all_objects()
    scores = Words(alphabet="ACGT").scores(objects)
    best = objects[scores == 1.0]
    assert set(env.decode(best)) == set(WORDS)
    assert float(scores.max()) == Words(alphabet="ACGT").maximum == 1.0
    assert float(scores[scores < 1.0].max()) == pytest.approx(math.exp(-1))
    near = env.parse(["CATA", "GATTACC", "TCGA"])
    assert_close(Words(alphabet="ACGT").scores(near), torch.full((3,), math.exp(-1)))
    shaped = Words(alphabet="ACGT").scores(objects[:6].reshape(2, 3, 7))
    assert torch.equal(shaped, scores[:6].reshape(2, 3))


# Tables


@pytest.mark.parametrize("name", ["fixed-L4-V2", "fixed-L3-V3", "fixed-L2-V4"])
def test_table_lookup_is_the_object_number(name: str) -> None:
    env = ENVS[name](0.0)
    assert isinstance(env, SequenceEnv)
    table = torch.rand(env.num_objects, generator=torch.Generator().manual_seed(0))
    landscape = TableLandscape(table, vocab=env.vocab, mode_level=0.9)
    objects = env.all_objects()
    assert torch.equal(landscape.scores(objects), table)
    assert torch.equal(landscape.scores(objects), table[env.object_index(objects)])
    assert not torch.equal(landscape.scores(objects.flip(-1)), table)  # the first token is the most significant
    assert torch.equal(landscape.scores(objects.reshape(-1, 1, env.length))[:, 0], table)
    assert landscape.maximum == float(table.max())


# From score to reward


def test_log_reward_clips_and_divides() -> None:
    scores = torch.tensor([0.0, 0.01, 0.5, 2.0], dtype=torch.float64)
    found = log_reward(scores, RewardConfig(minimum=0.02, norm=0.5))
    wanted = [math.log(0.04), math.log(0.04), 0.0, math.log(4.0)]
    assert found.tolist() == pytest.approx(wanted, abs=1e-12)
    assert log_reward(scores, RewardConfig(minimum=0.01, norm=0.5)).tolist() != pytest.approx(wanted, abs=1e-3)
    assert found.isfinite().all()


@pytest.mark.parametrize(("beta", "ramp"), [(3.0, 100.0), (10.0, 1.0), (0.5, 20.0)])
def test_beta_ramp_equals_the_formula(beta: float, ramp: float) -> None:
    for t in (0.0, 1.0, 50.0, 1000.0):
        wanted = 1 + (beta - 1) * (1 - 1 / (1 + t / ramp))
        assert float(beta_at(torch.tensor(t), beta, ramp)) == pytest.approx(wanted, rel=1e-6)
        assert float(beta_at(torch.tensor(t), beta, 0.0)) == beta
    assert float(beta_at(torch.tensor(0.0), beta, ramp)) == 1.0
    assert float(beta_at(torch.tensor(1e9), beta, ramp)) == pytest.approx(beta, rel=1e-5)
