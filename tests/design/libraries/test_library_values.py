"""Values of libraries: known facts of GB1, enumeration by hand, draws against exact figures."""

from functools import cache
from itertools import product

import numpy as np
import pandas as pd
import pytest

from sgfn.design.libraries.codons import STOP, Supply
from sgfn.design.libraries.library import make_library, parse_library
from sgfn.design.libraries.scores import DrawnScore, PairScore, TableScore, joint
from sgfn.design.libraries.sources import pair_score, table_source
from sgfn.design.libraries.template import Template
from sgfn.design.libraries.values import drawn_maximum, expected_maximum, pool_law, screening, value_library, value_pool
from sgfn.landscapes.complete_tables import gb1_fitness
from sgfn.landscapes.proxies import fit_proxy
from sgfn.landscapes.proxies.ridge import Ridge


@cache
def gb1(unmeasured: float = 0.0, stop: float = 0.0) -> TableScore:
    fitness = np.nan_to_num(gb1_fitness(), nan=unmeasured)
    return TableScore((fitness / fitness.max()).reshape([20] * 4), stop=stop)


@pytest.mark.parametrize(
    ("text", "expected", "no_stop", "best"),
    [("NNK", 0.0089, 0.881, 0.310), ("NDT", 0.0124, 1.0, 0.336), ("NTN,WDB,TGC,GSA", 0.3847, 0.944, 0.796)],
)
def test_facts_of_gb1(text: str, expected: float, no_stop: float, best: float) -> None:
    value = value_library(parse_library(text, 4), gb1(), clones=96)
    assert value.exact
    assert value.expected == pytest.approx(expected, abs=5e-5)
    assert value.no_stop == pytest.approx(no_stop, abs=5e-4)
    assert value.best == pytest.approx(best, abs=5e-4)
    wrong = value_library(parse_library(text, 4), gb1(unmeasured=1.0, stop=0.5), clones=96)  # and the test can fail
    assert wrong.expected != pytest.approx(expected, abs=5e-5)


def test_sizes_of_known_libraries() -> None:
    value = value_library(parse_library("NTN,WDB,TGC,GSA", 4), gb1())
    assert value.size == pytest.approx(97.797, abs=1e-3)
    assert value.variants == 5 * 11 * 1 * 2
    uniform = value_library(parse_library("NDT", 4), gb1())
    assert uniform.size == pytest.approx(12**4)
    assert uniform.screened == pytest.approx(np.log(0.05) / np.log1p(-(12.0**-4)))


def small(sites: int = 2, seed: int = 0) -> TableScore:
    return TableScore(np.random.default_rng(seed).normal(size=[20] * sites), stop=-2.0)


def by_hand(score: TableScore, laws: np.ndarray, clones: int) -> tuple[float, float]:
    """E[f] and E[best of n] by listing all outcomes, the second as a sum over who is best."""
    rows = list(product(range(21), repeat=len(laws)))
    p = np.array([np.prod([law[k] for law, k in zip(laws, row, strict=True)]) for row in rows])
    f = np.array([-2.0 if STOP in row else score.table[row] for row in rows])
    levels = np.unique(f)
    at_most = np.array([p[f <= level].sum() for level in levels])
    below = np.array([p[f < level].sum() for level in levels])
    return float(p @ f), float(levels @ (at_most**clones - below**clones))


@pytest.mark.parametrize("text", ["NNK,NDT", "TAA,NNN", "TGG,TGG", "NRT,WDB"])
def test_values_are_those_of_all_outcomes(text: str) -> None:
    score, library = small(), parse_library(text, 2)
    value = value_library(library, score, clones=7)
    assert (value.expected, value.best) == pytest.approx(by_hand(score, library.laws, 7))
    other = by_hand(score, parse_library("NNS,VHG", 2).laws, 7)
    assert (value.expected, value.best) != pytest.approx(other)


def test_a_library_of_stops_has_no_variants() -> None:
    value = value_library(parse_library("TAA", 2), small())
    assert (value.no_stop, value.variants, value.expected, value.best) == (0.0, 0.0, -2.0, -2.0)
    assert np.isnan(value.screened)


def test_the_best_of_draws_is_unbiased() -> None:
    values, p = np.arange(6.0), np.array([0.4, 0.2, 0.2, 0.1, 0.05, 0.05])
    exact = expected_maximum(values, p, 5)
    generator = np.random.default_rng(0)
    found = [drawn_maximum(generator.choice(values, 20, p=p), 5) for _ in range(3000)]
    assert abs(np.mean(found) - exact) < 4 * np.std(found) / 3000**0.5
    plain = [max(generator.choice(values, 20, p=p)) for _ in range(3000)]  # the best of all draws is another thing
    assert abs(np.mean(plain) - exact) > 20 * np.std(found) / 3000**0.5
    with pytest.raises(ValueError, match="clones must be at most 20"):
        drawn_maximum(values[[0] * 20], 21)


def test_screening_counts_all_variants() -> None:
    laws = parse_library("NNK,WDB", 2).laws
    variants, clones = screening(laws)
    p = joint([law[:STOP] for law in laws]).ravel()
    p = p[p > 0]
    assert variants == len(p)
    assert np.mean(1 - (1 - p) ** clones) == pytest.approx(0.95, abs=1e-6)


def test_draws_agree_with_all_outcomes() -> None:
    table = small()
    drawn = DrawnScore(lambda rows: table.table[tuple(rows.T)][None], 2, stop=-2.0, draws=4000)
    library = parse_library("NNK,NRT", 2)
    exact, found = value_library(library, table, 12), value_library(library, drawn, 12)
    assert not found.exact
    assert abs(found.expected - exact.expected) < 4 * found.expected_error
    assert abs(found.best - exact.best) < 4 * found.best_error
    assert found.best_error > 0
    np.testing.assert_allclose(drawn.given_one(library.laws, 0), table.given_one(library.laws, 0), atol=0.15)


def pairwise(sites: int, seed: int = 1) -> PairScore:
    generator = np.random.default_rng(seed)
    pair = generator.normal(size=(sites, sites, 20, 20))
    return PairScore(single=generator.normal(size=(sites, 20)), pair=pair, constant=0.7, stop=-3.0)


def test_sums_over_pairs_are_exact_without_a_table() -> None:
    score = pairwise(3)
    rows = np.array(list(product(range(20), repeat=3)))
    table = TableScore(score.predict(rows)[0].reshape(20, 20, 20), stop=-3.0)
    np.testing.assert_allclose(score.table(), table.table[:20, :20, :20])
    laws = parse_library("NNK,WDB,NNN", 3).laws
    assert score.expected(laws[None])[0] == pytest.approx(table.expected(laws[None])[0])
    np.testing.assert_allclose(score.given_one(laws, 1), table.given_one(laws, 1))
    np.testing.assert_allclose(score.given_two(laws, 2, 0), table.given_two(laws, 2, 0))
    long = pairwise(9)
    value = value_library(parse_library("NNK", 9), long, 10)
    assert value.expected_error == 0.0
    assert value.best_error > 0
    assert not value.exact


def test_a_ridge_proxy_is_a_sum_over_pairs() -> None:
    generator = np.random.default_rng(3)
    letters = "ACDEFGHIKLMNPQRSTVWY"
    texts = ["".join(generator.choice(list(letters), 8)) for _ in range(80)]
    proxy = fit_proxy(
        texts, np.array([t.count("A") - t.count("W") for t in texts], dtype=float), alphabet=letters, kind="ridge"
    )
    assert isinstance(proxy.model, Ridge)
    base, places = proxy.tokens([texts[0]])[0].numpy(), np.array([1, 2, 5, 6, 7, 0])
    found = pair_score(proxy.model, base, places, (proxy.shift, proxy.scale, -9.0))
    rows = generator.integers(20, size=(12, 6))
    whole = [list(texts[0]) for _ in rows]
    for text, row in zip(whole, rows, strict=True):
        for place, k in zip(places, row, strict=True):
            text[place] = letters[k]
    predicted = proxy.predict(["".join(text) for text in whole]).mean
    np.testing.assert_allclose(found.predict(rows)[0], predicted, atol=1e-4)
    assert np.abs(found.predict(rows[::-1])[0] - predicted).max() > 1e-2
    drawn = pair_score(proxy.model, base, places, (proxy.shift, proxy.scale, -9.0), 3)
    members = proxy.members(["".join(text) for text in whole])
    np.testing.assert_allclose(drawn.predict(rows)[0], members[2], atol=1e-4)


def test_whole_proteins_are_read_at_their_positions() -> None:
    template = Template.of("ATGGCTTGTGAT", (2, 3))  # MACD
    table = pd.DataFrame({"sequence": ["MACD", "MWCD", "MACE"], "score": [3.0, 2.0, 9.0]})
    found = table_source(table, template, None, "lowest", {})
    score = found.score
    assert isinstance(score, TableScore)
    assert score.table[0, 1] == 3.0
    assert score.table[18, 1] == 2.0
    assert score.table.max() == 3.0  # E at the end is no outcome of this library
    low = table_source(table, template, None, "lowest", {"minimise": True}).score
    assert isinstance(low, TableScore)
    assert low.table[0, 1] == -3.0
    assert low.stop == -9.0


def test_pools_are_means_of_laws() -> None:
    score = small()
    libraries = [make_library(["TGG", "NNK"]), make_library(["NDT", "TAA"], Supply())]
    law = pool_law(libraries, np.array([0.25, 0.75]))
    value = value_pool(libraries, np.array([0.25, 0.75]), score, 3)
    each = [value_library(one, score, 3) for one in libraries]
    assert law.sum() == pytest.approx(1.0)
    assert value.expected == pytest.approx(0.25 * each[0].expected + 0.75 * each[1].expected)
    assert value.no_stop == pytest.approx(0.25 * each[0].no_stop)
    assert value.best < 0.25 * each[0].best + 0.75 * each[1].best or value.best > min(one.best for one in each)
