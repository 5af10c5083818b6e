"""Spreads from normal scores: against closed forms, and against laws that are right, too narrow or too wide."""

import math

import numpy as np
import pytest
import torch
from exact_tables import PROPERTY
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from sgfn.series.calibration import NormalScores, widened

EDGES = torch.linspace(-3, 3, 25, dtype=torch.float64)


def normal_law(deviation: float = 1.0) -> torch.Tensor:
    """A normal law over bins between the edges: one window, one step."""
    ends = torch.zeros(1, dtype=torch.float64)
    return torch.diff(torch.special.ndtr(EDGES / deviation), prepend=ends, append=ends + 1)[None, None]


def scores_of(size: np.ndarray, per_horizon: int = 10) -> NormalScores:
    """One score a unit of time, so many of which count for one horizon."""
    count = len(size)
    return NormalScores(size=np.abs(size), time=np.arange(count), weight=np.full(count, 1 / per_horizon))


@pytest.mark.parametrize("spread", [0.5, 0.8, 1.25, 2.0])
def test_a_normal_law_of_another_spread_is_found(spread: float) -> None:
    found = widened(normal_law(), torch.tensor([spread], dtype=torch.float64))
    assert_close(found, normal_law(spread), atol=1e-9, rtol=0.0)
    assert float((found - normal_law()).abs().sum()) > 0.1


@given(st.lists(st.floats(0.0, 1.0), min_size=2, max_size=9), st.floats(0.5, 2.0))
@PROPERTY
def test_widened_laws_are_laws_with_the_same_median(masses: list[float], spread: float) -> None:
    law = torch.tensor(masses, dtype=torch.float64)[None, None] + 1e-3
    law = law / law.sum()
    found = widened(law, torch.tensor([spread], dtype=torch.float64))
    assert float(found.min()) >= 0.0
    assert float(found.sum()) == pytest.approx(1.0)
    assert torch.equal(found.cumsum(-1)[..., :-1] > 0.5 + 1e-9, law.cumsum(-1)[..., :-1] > 0.5 + 1e-9)
    assert_close(widened(law, torch.ones(1, dtype=torch.float64)), law, atol=1e-12, rtol=0.0)


@pytest.mark.parametrize("truth", [0.6, 1.0, 1.6])
def test_the_spread_of_the_scores_is_found(truth: float) -> None:
    """A memory of 2,000 scores: the standard error of the spread is about 1/sqrt(2 * 1000), and little is prior."""
    scores = scores_of(truth * np.random.default_rng(0).normal(size=20_000))
    found = float(scores.spreads(np.array([20_000]), 2_000.0)[0])
    assert found == pytest.approx(truth, rel=4 / math.sqrt(2_000) + 2 / 200)
    assert abs(found / (1.3 * truth) - 1) > 4 / math.sqrt(2_000) + 2 / 200  # and the test can fail


def test_few_scores_hardly_count_and_none_not_at_all() -> None:
    wild = np.full(5, 8.0)
    assert float(scores_of(wild[:1]).spreads(np.array([5]), 100.0)[0]) == pytest.approx(1.0, abs=0.2)
    assert float(scores_of(np.tile(wild, 200)).spreads(np.array([1000]), 100.0)[0]) == 2.0  # the limit
    assert scores_of(wild).spreads(np.array([-1]), 100.0).tolist() == [1.0]
    assert scores_of(np.empty(0)).spreads(np.array([3, 4]), 100.0).tolist() == [1.0, 1.0]


def test_what_is_recent_counts_and_what_comes_later_does_not() -> None:
    size = np.random.default_rng(1).normal(size=8000)
    size[4000:] *= 1.8
    early, late = scores_of(size).spreads(np.array([3999, 7999]), 500.0)
    assert early == pytest.approx(1.0, abs=4 / math.sqrt(500) + 0.02)
    assert late == pytest.approx(1.8, rel=4 / math.sqrt(500) + 0.04)
    size[4000:] = 100.0
    assert scores_of(size).spreads(np.array([3999]), 500.0)[0] == early
