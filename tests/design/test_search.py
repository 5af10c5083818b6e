"""Search: edits, values under noise against enumeration, exact ranking, and a search that finds the best."""

import itertools
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sgfn.design.acquisition import Request, acquire
from sgfn.design.distances import edit_distances
from sgfn.design.edits import children, deleted, inserted, recombined, substituted
from sgfn.design.proposal import choose
from sgfn.design.sampler import SamplerConfig, draw_orders
from sgfn.design.search import SearchConfig, Start, climb, deserved_reach, rank_all
from sgfn.design.settings import DesignConfig
from sgfn.design.space import OrderSpace
from sgfn.design.values import OrderValues, SampledChannel, exact_values
from sgfn.envs.constraints import Constraints
from sgfn.noise import ConfusionMatrix, HiddenRate, Noise, UniformSlip

MATRIX = torch.tensor([[0.8, 0.15, 0.05], [0.1, 0.85, 0.05], [0.0, 0.2, 0.8]], dtype=torch.float64)
NOISES = [UniformSlip(alpha=0.2), ConfusionMatrix(matrix=MATRIX), HiddenRate(mean=0.2, concentration=3.0)]


def predict(tokens: torch.Tensor) -> torch.Tensor:
    """Two members with interactions between neighbours."""
    pairs = (tokens[:, :-1] * 2 + tokens[:, 1:]) % 5
    return torch.stack([pairs.sum(1) + 0.3 * tokens[:, 0], pairs.prod(1).clamp(max=9) + tokens[:, -1]]).float()


def letter_law(noise: Noise, order: tuple[int, ...], outcome: tuple[int, ...]) -> float:
    env = OrderSpace(alphabet="ABC", min_length=3, max_length=3, noise=noise).env
    total = 0.0
    for rate, weight in noise.rates(3):
        kernel = env.operator(env.initial(1), torch.float64, rate).matrix()[0]
        part = weight
        for intended, realised in zip(order, outcome, strict=True):
            part *= float(kernel[intended, realised])
        total += part
    return total


@pytest.mark.parametrize("noise", NOISES)
def test_exact_values_are_sums_over_all_outcomes(noise: Noise) -> None:
    space = OrderSpace(alphabet="ABC", min_length=3, max_length=3, noise=noise)
    everything = space.env.all_objects()
    scores = predict(everything)
    found = exact_values(space, scores)
    words = list(itertools.product(range(3), repeat=3))
    for place in (0, 5, 26):
        law = torch.tensor([letter_law(noise, words[place], outcome) for outcome in words])
        assert torch.allclose(found[:, place], (scores * law).sum(1), atol=1e-5)
        assert not torch.allclose(found[:, place], scores[:, place])
    sampled = OrderValues(space, predict, draws=1000)(everything)
    assert float((sampled - found).abs().max()) < 0.5


def test_common_numbers_err_at_the_same_places() -> None:
    space = OrderSpace(alphabet="ABCD", min_length=6, max_length=6, noise=UniformSlip(alpha=0.3))
    orders = torch.stack([torch.zeros(6, dtype=torch.int64), torch.full((6,), 3)])
    outcomes = SampledChannel(space, 64, 0).realise(orders)
    wrong = outcomes != orders
    assert torch.equal(wrong[:, 0], wrong[:, 1])
    assert 0.1 < float(wrong.float().mean()) < 0.4


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_edits_are_what_they_say(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    space = OrderSpace(alphabet="ABC", min_length=2, max_length=7)
    rows, others = space.random(40, generator), space.random(40, generator)
    size = (rows < 3).sum(1)
    changed = substituted(rows, 3, generator)
    assert bool(((changed != rows).sum(1) >= 1).all())
    assert torch.equal((changed < 3).sum(1), size)
    longer, shorter = inserted(rows, 3, generator), deleted(rows, 3, generator)
    assert torch.equal((longer < 3).sum(1), (size + 1).clamp(max=7))
    assert torch.equal((shorter < 3).sum(1), size - 1)
    for made in (changed, longer, shorter, recombined(rows, others, 3, generator)):
        blanks = made == 3
        assert bool((blanks.long().diff(dim=1) >= 0).all())  # blanks stand at the end alone
    born = children(rows, torch.zeros(40, dtype=torch.int64), 200, 3, generator, varies=True)
    apart = torch.stack([edit_distances(born.tokens, row[row < 3], 3) for row in rows]).amin(0)
    assert bool((apart <= born.edits).all())


def rows_of(name: str, wells: int = 8):
    return lambda values: acquire(name, values, Request(wells=wells, seed=5))


def test_all_orders_are_ranked_under_constraints_and_noise() -> None:
    rules = Constraints(max_run=1)
    space = OrderSpace(alphabet="ABC", min_length=4, max_length=4, noise=UniformSlip(alpha=0.1), constraints=rules)
    found = rank_all(space, predict, SearchConfig())
    assert found.how == "exact"
    assert len(found.tokens) == 3 * 2**3
    free = replace(space, constraints=None)
    values = exact_values(free, predict(free.env.all_objects()))
    assert torch.allclose(found.values, values[:, free.env.object_index(found.tokens)])


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_a_search_finds_what_ranking_finds(noise: float) -> None:
    space = OrderSpace(alphabet="ABC", min_length=3, max_length=7, noise=UniformSlip(alpha=noise))
    config = SearchConfig(scored=60_000, children=256, draws=64)
    start = space.random(20, torch.Generator().manual_seed(0))
    begun = Start(tokens=start, edits=torch.zeros(20, dtype=torch.int64))
    value, generator = OrderValues(space, predict, 64), torch.Generator().manual_seed(1)
    found, edits = climb(space, value, rows_of("greedy"), begun, generator, config)
    best = rank_all(space, predict, replace(config, draws=64)).values.mean(0).max()
    assert float(found.values.mean(0).max()) == pytest.approx(float(best), abs=1e-6)
    assert found.how == "search"
    assert "may exist" in found.note
    assert len(edits) == len(found.tokens)


def test_a_search_stays_within_reach_and_constraints() -> None:
    space = OrderSpace(alphabet="ABC", min_length=9, max_length=9, constraints=Constraints(max_run=2))
    generator = torch.Generator().manual_seed(0)
    start = space.random(5, generator)
    begun, config = Start(tokens=start, edits=torch.zeros(5, dtype=torch.int64)), SearchConfig(children=256, reach=2)
    value = OrderValues(space, predict)
    found, _ = climb(space, value, rows_of("thompson"), begun, generator, config)
    apart = (found.tokens[:, None] != start[None]).sum(-1).amin(1)
    assert int(apart.max()) == 2
    assert bool(space.allowed(found.tokens).all())
    free = replace(config, reach=0, scored=3000)
    wide, _ = climb(space, value, rows_of("thompson"), begun, generator, free)
    assert int((wide.tokens[:, None] != start[None]).sum(-1).amin(1).max()) > 2


@pytest.mark.parametrize("lengths", [(8, 8), (5, 8)])
def test_a_search_climbs_any_value_and_begins_anew_where_no_start_is_allowed(lengths: tuple[int, int]) -> None:
    rules = Constraints(forbid=("AA",), max_run=2)
    space = OrderSpace(alphabet="ACGT", min_length=lengths[0], max_length=lengths[1], constraints=rules)

    class Count:
        cost = 1

        def __call__(self, orders: torch.Tensor) -> torch.Tensor:
            return (orders == 0).sum(-1).double()[None]

    for text in ("CCGTCCGT", "AAAAAAAA"):  # the second may not be ordered
        start = Start(tokens=space.parse([text]), edits=torch.zeros(1, dtype=torch.int64))
        config = SearchConfig(elite=32, children=256)
        found, _ = climb(space, Count(), lambda values: values, start, torch.Generator().manual_seed(0), config)
        assert float(found.values.max()) == 4.0  # the most that fit without two in a row
        assert bool(space.allowed(found.tokens).all())
        assert len(found.tokens.unique(dim=0)) == len(found.tokens)


def test_the_flow_network_learns_what_attracts_and_goes_on_from_its_weights() -> None:
    space = OrderSpace(alphabet="ABC", min_length=4, max_length=6, constraints=Constraints(max_run=3))
    generator, config = torch.Generator().manual_seed(0), SamplerConfig(steps=25, batch=32, draws=300)
    known, rows = space.random(64, generator), rows_of("greedy")
    drawn, weights = draw_orders(space, predict, rows, known, config, seed=1)
    assert bool(space.allowed(drawn).all())
    assert len(drawn.unique(dim=0)) > 20
    random = rows(predict(space.random(300, generator))).mean()
    assert float(rows(predict(drawn)).mean()) > float(random)
    same, _ = draw_orders(space, predict, rows, known, replace(config, steps=0), 1, weights)
    fresh, _ = draw_orders(space, predict, rows, known, replace(config, steps=0), 1)
    assert float(rows(predict(same)).mean()) > float(rows(predict(fresh)).mean())


def test_the_note_says_where_a_search_began() -> None:
    rules = Constraints(parent="AAAAAAAAAA", max_mutations=3)
    space = OrderSpace(alphabet="ABC", min_length=10, max_length=10, constraints=rules)
    config = SearchConfig(children=64, elite=16, scored=300, reach=2)
    notes = []
    for text in ("AABAAAAAAA", "BBBBBBBBBB"):  # the second is no mutant of the parent
        start = Start(tokens=space.parse([text]), edits=torch.zeros(1, dtype=torch.int64))
        generator = torch.Generator().manual_seed(0)
        found, edits = climb(space, OrderValues(space, predict), rows_of("greedy"), start, generator, config)
        again = Start(tokens=found.tokens, edits=edits, measured=found.measured)
        second, _ = climb(space, OrderValues(space, predict), rows_of("greedy"), again, generator, config)
        notes += [found.note, second.note]
    assert all("that satisfy the constraints were tried" in note for note in notes)
    assert ["within 2 edits of what was measured" in note for note in notes] == [True, True, False, False]
    assert ["within 2 edits of random ones" in note for note in notes] == [False, False, True, True]


def test_a_proxy_of_sequences_of_one_length_is_trusted_further() -> None:
    """Twelve letters at a rank correlation of .9 allowed 2 edits, too few for libraries of mutants."""
    assert [deserved_reach(12, rho) for rho in (-0.1, 0.5, 0.9)] == [2, 4, 7]
    assert [deserved_reach(60, rho) for rho in (0.05, 0.9)] == [2, 18]
    assert [deserved_reach(30, rho, varies=True) for rho in (0.4, 0.9)] == [2, 6]  # as before


@pytest.mark.parametrize(
    ("reach", "improved", "edits"), [(None, [], 4), (None, [True], 8), (None, [True, False], 4), (5, [True], 5)]
)
def test_a_search_goes_further_after_plates_that_brought_a_new_best(
    reach: int | None, improved: list[bool], edits: int
) -> None:
    """Cross-validation alone deserves 4 edits; a reach that is set stays as it is."""
    space, known = OrderSpace(alphabet="AC", min_length=24, max_length=24), torch.zeros(1, 24, dtype=torch.int64)
    small = SearchConfig(largest_exact=0, scored=2048, children=512, elite=8, patience=30)
    config = DesignConfig(alphabet="AC", reach=reach, acquisition="greedy", search=small)
    chosen = choose(space, lambda x: x.sum(1)[None].double(), config, 2, known, known, 0, None, 0.5, improved)
    assert f"within {edits} edits" in chosen.found.note
    assert int(chosen.found.tokens.sum(1).max()) == edits
