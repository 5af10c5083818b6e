"""An ensemble and a ridge regression, weighed by errors out of fold: as good as the better one, saved, drawn from."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from safetensors.torch import load, save
from torch.testing import assert_close

from sgfn.landscapes.proxies import Proxy, fit_proxy
from sgfn.landscapes.proxies.calibration import rank_correlation
from sgfn.landscapes.proxies.stacked import Stacked, share_of

LETTERS = "ACDEFGHIKLMNPQRSTVWY"
Score = Callable[[np.ndarray], np.ndarray]


def additive(alphabet: str, length: int) -> Score:
    effects = np.random.default_rng(1).normal(size=(length, len(alphabet)))
    return lambda rows: effects[np.arange(length), rows].sum(1)


def epistatic(alphabet: str, length: int) -> Score:
    """Effects of a letter depend on that of the next place but three."""
    effects = np.random.default_rng(2).normal(size=(length, len(alphabet), len(alphabet)))
    return lambda rows: effects[np.arange(length), rows, np.roll(rows, 4, 1)].sum(1)


def mutants(parent: np.ndarray, count: int, changes: int, vocab: int, generator: np.random.Generator) -> np.ndarray:
    rows = np.repeat(parent[None], count, 0)
    for row in rows:
        places = generator.choice(len(parent), changes, replace=False)
        row[places] = (row[places] + generator.integers(1, vocab, size=changes)) % vocab
    return rows


def spelled(rows: np.ndarray, alphabet: str) -> list[str]:
    return ["".join(alphabet[place] for place in row) for row in rows]


def ranked(kind: str, rows: np.ndarray, unseen: np.ndarray, truth: Score, alphabet: str) -> float:
    scores = truth(rows)
    noisy = scores + 0.2 * scores.std() * np.random.default_rng(0).normal(size=len(rows))
    proxy = fit_proxy(spelled(rows, alphabet), noisy, alphabet=alphabet, kind=kind)
    return rank_correlation(proxy.predict(spelled(unseen, alphabet)).mean, truth(unseen))


@pytest.mark.parametrize(("alphabet", "length"), [("ACGT", 40), (LETTERS, 40)])
def test_unseen_mutants_of_an_additive_landscape_are_ranked_as_by_a_ridge(alphabet: str, length: int) -> None:
    generator, truth = np.random.default_rng(0), additive(alphabet, length)
    parent = generator.integers(len(alphabet), size=length)
    rows = np.concatenate([mutants(parent, 50, n, len(alphabet), generator) for n in (1, 2, 3)])
    unseen = mutants(parent, 400, 2, len(alphabet), generator)
    both, linear, networks = (ranked(k, rows, unseen, truth, alphabet) for k in ("stacked", "ridge", "ensemble"))
    assert both >= linear - 0.02
    assert networks < linear - 0.02  # so that the test can fail


def test_an_epistatic_landscape_is_ranked_as_by_the_ensemble() -> None:
    generator, truth = np.random.default_rng(0), epistatic("ACGT", 12)
    rows, unseen = (generator.integers(4, size=(count, 12)) for count in (600, 1_000))
    both, networks = (ranked(kind, rows, unseen, truth, "ACGT") for kind in ("stacked", "ensemble"))
    assert both >= networks - 0.02


def test_the_share_is_that_of_the_smaller_errors_less_what_chance_explains() -> None:
    generator = torch.Generator().manual_seed(0)
    truth, one, other = torch.randn(3, 4_000, generator=generator, dtype=torch.float64)
    weights = torch.ones_like(truth)
    assert share_of(truth + 0.5 * one, truth, truth, weights) == 1.0
    assert share_of(truth, truth + 0.5 * one, truth, weights) == 0.0
    half = share_of(truth + 0.5 * one, truth + 0.5 * other, truth, weights)
    assert 0.47 < half < 0.5  # errors of equal size: a half, less a standard error of about .01
    few = slice(0, 12)
    assert share_of(truth[few] + one[few], truth[few] + 0.9 * other[few], truth[few], weights[few]) < half
    assert share_of(truth, truth, truth, weights) == 0.0


@pytest.fixture(scope="module")
def proxy() -> Proxy:
    generator = np.random.default_rng(0)
    rows = generator.integers(4, size=(80, 12))
    return fit_proxy(spelled(rows, "ACGT"), additive("ACGT", 12)(rows), alphabet="ACGT", kind="stacked")


def test_moments_are_those_of_draws_of_functions(proxy: Proxy) -> None:
    assert isinstance(proxy.model, Stacked)
    assert 0 < proxy.model.share <= 1
    tokens, share = torch.randint(4, (300, 12), generator=torch.Generator().manual_seed(1)), proxy.model.share
    with torch.no_grad():
        mean, sd = proxy.model.moments(tokens)
        members, drawn = proxy.model.networks.draws(tokens), proxy.model.linear.draws(tokens)
        found = proxy.model.draws(tokens)
        assert_close(found, (1 - share) * members + share * drawn)
        assert_close(proxy.model.draws(tokens[:7]), found[:, :7], rtol=1e-4, atol=1e-5)  # the same functions
        assert_close(proxy.model.mean(tokens), mean, rtol=1e-5, atol=1e-5)
        assert 0.6 < float((found - mean).square().mean().sqrt() / sd.square().mean().sqrt()) < 1.6


def test_it_is_saved_as_tensors(proxy: Proxy) -> None:
    again = Proxy.from_tensors(load(save(proxy.to_tensors())))
    texts = proxy.report.sequences
    assert np.array_equal(again.predict(texts).mean, proxy.predict(texts).mean)
    assert np.array_equal(again.members(texts), proxy.members(texts))
