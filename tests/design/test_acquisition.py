"""Acquisitions against their formulas, and turns of wells against a brute-force choice."""

from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sgfn.design.acquisition import ACQUISITIONS, Request, acquire, normal_weights
from sgfn.design.batch import expected_best, take_turns
from sgfn.design.proposal import choose
from sgfn.design.search import SearchConfig
from sgfn.design.settings import DesignConfig
from sgfn.design.space import OrderSpace


def members(count: int = 6, orders: int = 9) -> torch.Tensor:
    return torch.randn(count, orders, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def test_greedy_and_ucb_are_their_formulas() -> None:
    values = members()
    assert torch.equal(acquire("greedy", values, Request(wells=3)), values.mean(0)[None])
    bound = values.mean(0) + 2.0 * values.std(0, correction=0)
    found = acquire("ucb", values, Request(wells=3, kappa=2.0))
    assert torch.allclose(found, bound[None])
    assert not torch.allclose(acquire("ucb", values, Request(wells=3, kappa=1.0)), bound[None])


def test_thompson_draws_have_the_members_mean_and_covariance() -> None:
    values = members(5, 3)
    drawn = normal_weights(200_000, 5, 0).double() @ values
    assert torch.allclose(drawn.mean(0), values.mean(0), atol=0.02)
    assert torch.allclose(torch.cov(drawn.T), torch.cov(values.T), atol=0.03)
    assert not torch.allclose(torch.cov(drawn.T), torch.cov(values.T, correction=0), atol=0.03)


def test_mixed_takes_turns_between_rising_bounds_and_draws() -> None:
    values = members()
    found = acquire("mixed", values, Request(wells=6, seed=2, kappa=3.0))
    drawn = acquire("thompson", values, Request(wells=6, seed=2))
    mean, spread = values.mean(0), values.std(0, correction=0)
    assert torch.allclose(found[::2], torch.stack([mean + kappa * spread for kappa in (2.0, 2.5, 3.0)]))
    assert torch.equal(found[1::2], drawn[1::2])
    assert not torch.allclose(found[0], drawn[0])
    assert len(acquire("mixed", values, Request(wells=10_000))) == 96  # memory is bounded


@pytest.mark.parametrize(("largest", "name"), [(300_000, "ucb"), (0, "tempered")])
def test_by_default_ranked_orders_follow_ucb_and_a_search_follows_draws(largest: int, name: str) -> None:
    space, known = OrderSpace(alphabet="ACGT", min_length=5, max_length=5), torch.zeros(1, 5, dtype=torch.int64)
    letters = torch.randn(4, 5, 4, generator=torch.Generator().manual_seed(0))

    def predict(tokens: torch.Tensor) -> torch.Tensor:
        return letters[:, torch.arange(5), tokens].sum(-1)

    search = SearchConfig(largest_exact=largest, scored=500, children=64, elite=8)
    plates = {
        one: choose(space, predict, DesignConfig(acquisition=one, search=search), 6, known, known).tokens
        for one in ("auto", "ucb", "tempered", "thompson")
    }
    assert torch.equal(plates["auto"], plates[name])
    assert not torch.equal(plates["ucb"], plates["thompson"])
    assert not torch.equal(plates["tempered"], plates["thompson"])


def test_tempered_draws_lead_from_the_mean_to_draws_in_full() -> None:
    values, request = members(), Request(wells=5, seed=2)
    found, drawn, mean = acquire("tempered", values, request), acquire("thompson", values, request), values.mean(0)
    for share, row, full in zip((0.0, 0.25, 0.5, 0.75, 1.0), found, drawn, strict=True):
        assert torch.allclose(row, mean + share * (full - mean))
    assert torch.allclose(acquire("tempered", values, Request(wells=1)), mean)
    assert len(acquire("tempered", values, Request(wells=10_000))) == 96  # memory is bounded


@pytest.mark.parametrize("name", list(ACQUISITIONS))
def test_a_row_means_the_same_in_every_block(name: str) -> None:
    values, request = members(), Request(wells=4, seed=3)
    blocks = torch.cat([acquire(name, part, request) for part in values.split(4, 1)], 1)
    assert torch.allclose(acquire(name, values, request), blocks)


def test_an_acquisition_of_ones_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code = "def worst(values, request): return -values.mean(0, keepdim=True)\n"
    code += "def flat(values, request): return values.mean(0)\n"
    (tmp_path / "mine_acquisition.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    values, request = members(), Request(wells=2)
    assert torch.equal(acquire("mine_acquisition:worst", values, request), -values.mean(0)[None])
    with pytest.raises(ValueError, match=r"must return rows \[K, 9\], got \[9\]"):
        acquire("mine_acquisition:flat", values, request)
    with pytest.raises(ValueError, match="did you mean 'greedy'"):
        acquire("greddy", values, request)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 3), st.integers(1, 8))
def test_turns_are_those_of_a_plain_loop(seed: int, rows: int, count: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    attraction = torch.rand(rows, 12, generator=generator)
    tokens = torch.randint(3, (12, 4), generator=generator)
    free = torch.rand(12, generator=generator) < 0.8
    found = take_turns(attraction, count, free, tokens, distance=2).tolist()
    left, expected = list(range(rows)), list[int]()
    while left and len(expected) < count:
        row = left.pop(0)
        ranked = sorted((p for p in range(12) if free[p]), key=lambda place: -float(attraction[row, place]))
        far = [p for p in ranked if all(int((tokens[p] != tokens[q]).sum()) >= 2 for q in expected)]
        if far:
            expected.append(far[0])
            left.append(row)
    assert found == expected


def test_expected_best_is_the_mean_of_maxima() -> None:
    known, plate = members(4, 3), members(4, 5)
    draws = 4000
    found = expected_best(known, plate[:, None].expand(-1, draws, -1), seed=2)
    weights = normal_weights(draws, 4, 2).double()
    direct = [
        torch.cat([weights @ known, weights @ plate[:, :k]], 1).max(1).values.mean() for k in range(plate.shape[1] + 1)
    ]
    assert torch.allclose(found, torch.stack(direct))
    assert float(found[-1]) > float(found[0])
