"""Searches for one library against all libraries of a small menu, and the bar of GB1."""

from functools import cache
from itertools import product

import numpy as np
import pytest

from sgfn.design.libraries.codons import Menu, Supply, standard_menu
from sgfn.design.libraries.flow import FlowConfig, LibraryLandscape, draw_libraries
from sgfn.design.libraries.library import make_library, parse_library
from sgfn.design.libraries.percent import improve_in_percent, share_grid
from sgfn.design.libraries.scores import DrawnScore, TableScore
from sgfn.design.libraries.search import (
    Goal,
    choose_library,
    feasible,
    goal_value,
    pair_ascent,
    places_of,
    row_values,
    search,
    whole_power,
)
from sgfn.landscapes.complete_tables import gb1_fitness

CODONS = ["NNK", "NDT", "TGG", "GCA", "VHG", "TAA", "NRT", "WDB", "GSA", "TGC", "NTN", "RAC"]


@cache
def tiny() -> tuple[TableScore, Menu]:
    scores = np.random.default_rng(5).exponential(size=(20, 20)) ** 2
    return TableScore(scores, stop=0.0), Menu.of(CODONS)


def best_of_all(goal: Goal) -> float:
    score, menu = tiny()
    pairs = (menu.laws[list(pair)] for pair in product(range(len(menu.codons)), repeat=2))
    return max(goal_value(score, laws, goal) for laws in pairs if feasible(laws, goal))


@pytest.mark.parametrize(("size", "no_stop"), [(1.0, 0.0), (12.0, 0.0), (60.0, 0.9), (100.0, 1.0)])
def test_two_sites_at_once_find_the_best_of_all_pairs(size: float, no_stop: float) -> None:
    score, menu = tiny()
    goal = Goal(kind="mean", size=size, no_stop=no_stop)
    found = search(score, menu, goal, "pairs", starts=2)
    assert found.value == pytest.approx(best_of_all(goal))
    assert feasible(found.library.laws, goal)
    assert found.library.size >= size - 1e-6
    assert found.library.no_stop >= no_stop - 1e-9


@pytest.mark.parametrize("size", [1.0, 30.0])
def test_the_best_of_clones_is_found_on_a_small_menu(size: float) -> None:
    score, menu = tiny()
    goal = Goal(kind="best", clones=10, size=size)
    found = choose_library(score, menu, goal, starts=8)
    assert found.value == pytest.approx(best_of_all(goal), rel=0.01)  # levels in the search, exact in the end
    assert found.value == pytest.approx(goal_value(score, found.library.laws, goal))


def test_levels_rank_rows_as_exact_values_do() -> None:
    score, menu = tiny()
    goal, laws = Goal(kind="best", clones=20), parse_library("NNK,WDB", 2).laws
    near = row_values(score, goal, laws, 0, menu.laws)
    exact = [goal_value(score, np.stack([row, laws[1]]), goal) for row in menu.laws]
    np.testing.assert_allclose(near, exact, atol=float(score.table.max()) / 100)
    assert np.abs(near - exact[::-1]).max() > 0.1
    drawn = DrawnScore(lambda rows: score.table[tuple(rows.T)][None], 2, stop=0.0)
    np.testing.assert_allclose(row_values(drawn, goal, laws, 0, menu.laws), exact, rtol=0.1, atol=0.2)
    assert whole_power(np.full(2, 0.9, dtype=np.float32), 96) == pytest.approx(0.9**96, rel=1e-4)


def test_what_no_library_can_be_is_told() -> None:
    score, menu = tiny()
    with pytest.raises(ValueError, match=r"no library of 2 sites.*largest size"):
        search(score, menu, Goal(kind="mean", size=1e6), "pairs", starts=2)


def test_coordinate_ascent_stops_where_no_site_is_better() -> None:
    score, menu = tiny()
    goal = Goal(kind="mean", size=5.0)
    found = search(score, menu, goal, "coordinate", starts=12)
    assert found.value <= best_of_all(goal) + 1e-9
    places = places_of(menu, found.library)
    for site in range(2):
        for other in range(len(menu.codons)):
            changed = places.copy()
            changed[site] = other
            laws = menu.laws[changed]
            assert not feasible(laws, goal) or goal_value(score, laws, goal) <= found.value + 1e-9


def test_percentages_are_at_least_as_good_as_letters() -> None:
    score, menu = tiny()
    goal = Goal(kind="mean", size=20.0)
    letters = search(score, menu, goal, "pairs", starts=2)
    found = improve_in_percent(score, Supply(), goal, [letters.library], step=25)
    assert found.value >= letters.value - 1e-12
    assert found.library.size >= 20 - 1e-6
    assert found.value == pytest.approx(goal_value(score, make_library(found.library.codons).laws, goal))
    with pytest.raises(ValueError, match="step must divide 100"):
        share_grid(30)


@pytest.mark.slow
def test_two_sites_at_once_pass_the_bar_of_gb1() -> None:
    fitness = np.nan_to_num(gb1_fitness())
    score = TableScore((fitness / fitness.max()).reshape([20] * 4), stop=0.0)
    goal, menu = Goal(kind="mean", size=96.0), standard_menu()
    start = [int(np.abs(menu.laws - law).sum(1).argmin()) for law in parse_library("NTN,WDB,TGC,GSA", 4).laws]
    begun = menu.laws[start]
    assert goal_value(score, begun, goal) == pytest.approx(0.3847, abs=5e-5)
    found = menu.laws[pair_ascent(score, menu, goal, np.array(start))]
    assert feasible(found, goal)
    assert goal_value(score, found, goal) > 0.385


@pytest.mark.slow
def test_a_flow_network_draws_better_libraries_than_chance() -> None:
    score, _ = tiny()
    goal = Goal(kind="mean", size=12.0)
    landscape = LibraryLandscape(score, Supply(), goal, 0)
    drawn = draw_libraries(score, Supply(), goal, FlowConfig(steps=60, batch=16, draws=200, hidden=32), seed=0)
    assert all(len(codons) == 2 for codons in drawn)
    letters = np.random.default_rng(0).integers(15, size=(200, 6))
    attraction = [float(goal_value(score, make_library(codons).laws, goal)) for codons in drawn[:20]]
    assert np.mean(attraction) > 1.5 * landscape.worth(landscape.codons(letters)).mean()
