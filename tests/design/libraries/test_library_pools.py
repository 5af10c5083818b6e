"""Pools of libraries: divergences of all codons against direct sums, descent, shares, and the stepwise network."""

from functools import cache
from itertools import product

import numpy as np
import pytest

from sgfn.design.libraries.codons import Menu
from sgfn.design.libraries.flow import FlowConfig, stepwise_law
from sgfn.design.libraries.mixture import (
    Levels,
    best_weights,
    choose_pool,
    codon_divergences,
    descend,
    divergence,
    log_target,
    pool,
    variation,
)
from sgfn.design.libraries.scores import TableScore

CODONS = ["NNK", "NDT", "TGG", "GCA", "VHG", "TAA", "NRT", "WDB", "GSA", "TGC", "NTN", "RAC"]


@cache
def tiny() -> tuple[TableScore, Menu, np.ndarray]:
    score = TableScore(np.random.default_rng(2).exponential(size=(20, 20)), stop=0.0)
    return score, Menu.of(CODONS), log_target(score, 2.0)


def test_the_target_is_a_law_with_stops_at_the_least_reward() -> None:
    score, _, target = tiny()
    assert np.exp(target).sum() == pytest.approx(1.0)
    ratio = target[0, 20] - target[np.unravel_index(score.table.argmax(), target.shape)]
    assert ratio == pytest.approx(2.0 * np.log(1e-3))
    best, other = np.sort(score.table.ravel())[[-1, -2]]
    ordered = np.sort(target.ravel())
    assert ordered[-1] - ordered[-2] == pytest.approx(2.0 * np.log(best / other))


def test_divergences_of_all_codons_at_once() -> None:
    _, menu, target = tiny()
    chosen, weights = np.array([[0, 1], [6, 3]]), np.array([0.3, 0.7])
    rest = pool(menu, chosen[1:], weights[1:])
    found = codon_divergences(menu, Levels(menu), target, rest, 0.3, chosen[0], 1)
    direct = []
    for codon in range(len(menu.codons)):
        changed = chosen.copy()
        changed[0, 1] = codon
        direct.append(divergence(pool(menu, changed, weights), target))
    np.testing.assert_allclose(found - found[0], np.array(direct) - direct[0], atol=1e-9)
    assert not np.allclose(found - found[0], direct[0] - np.array(direct))


def test_descent_never_rises_and_one_library_is_the_best_of_all() -> None:
    score, menu, target = tiny()
    levels = Levels(menu)
    every = [np.array([pair]) for pair in product(range(len(menu.codons)), repeat=2)]
    best = min(divergence(pool(menu, chosen, np.ones(1)), target) for chosen in every)
    for chosen in every[::17]:
        before = divergence(pool(menu, chosen, np.ones(1)), target)
        _, _, after = descend(menu, levels, target, chosen, np.ones(1))
        assert best - 1e-9 <= after <= before + 1e-9
    found = choose_pool(score, menu, 1, 2.0, starts=6)
    assert found.kl == pytest.approx(best)
    more = choose_pool(score, menu, 3, 2.0, starts=3)
    assert more.kl < found.kl
    assert more.weights.sum() == pytest.approx(1.0)
    assert 0 < more.tv < 1


def test_shares_are_the_best() -> None:
    _, menu, target = tiny()
    chosen = np.array([[0, 1], [6, 3]])
    found = best_weights(menu, target, chosen, np.full(2, 0.5), rounds=300)
    reached = divergence(pool(menu, chosen, found), target)
    grid = [divergence(pool(menu, chosen, np.array([w, 1 - w])), target) for w in np.linspace(0.001, 0.999, 500)]
    assert reached <= min(grid) + 1e-4
    assert max(grid) > reached + 0.01


def test_equal_scores_make_no_target() -> None:
    with pytest.raises(ValueError, match="every score is 1"):
        log_target(TableScore(np.ones((20, 20)), stop=1.0), 1.0)


@pytest.mark.slow
def test_the_stochastic_network_comes_nearer_than_one_library() -> None:
    score, menu, target = tiny()
    certain = Menu.of([*CODONS, "ATG", "AAA", "CAC", "CCC", "GAC", "TTC"])
    network = stepwise_law(certain, target, FlowConfig(steps=150, batch=64, draws=64), seed=0)
    assert network.law.sum() == pytest.approx(1.0)
    assert network.intentions.shape[1] == 2
    assert network.intentions.max() < len(certain.codons)
    untrained = stepwise_law(certain, target, FlowConfig(steps=1, batch=64, draws=8), seed=0)
    assert divergence(network.law, target) < 0.7 * divergence(untrained.law, target)
    assert variation(network.law, target) < variation(untrained.law, target)
    assert divergence(network.law, target) < choose_pool(score, menu, 1, 2.0, starts=2).kl
