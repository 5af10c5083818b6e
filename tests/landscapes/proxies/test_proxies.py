"""Proxies: exact leave-out predictions, posteriors against dense formulas, calibration, and what is saved."""

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
import torch
from safetensors.torch import load, save
from torch.testing import assert_close

from sgfn.landscapes.proxies import PROXIES, Proxy, fit_proxy
from sgfn.landscapes.proxies.base import FittedModel, TrainingSet
from sgfn.landscapes.proxies.calibration import calibrate, coverage, rank_correlation
from sgfn.landscapes.proxies.ensemble import fit_letters
from sgfn.landscapes.proxies.fitting import fold_numbers, training_set
from sgfn.landscapes.proxies.gp import GaussianProcess
from sgfn.landscapes.proxies.letters import composition, letter_codes
from sgfn.landscapes.proxies.ridge import Ridge

ALL = ["".join(letters) for letters in product("ACGT", repeat=4)]
EFFECT = {letter: value for value, letter in enumerate("ACGT")}


def additive(text: str) -> float:
    """Exactly linear in letters by position."""
    return sum((place + 1) * EFFECT[letter] for place, letter in enumerate(text)) + 5.0


@pytest.fixture(scope="module")
def data() -> TrainingSet:
    chosen = [ALL[i] for i in np.random.default_rng(0).permutation(len(ALL))[:40]]
    scores = np.array([additive(text) + (text[0] == text[1]) for text in chosen])
    found, _ = training_set(chosen, scores, None, np.ones(40), "ACGT", None)
    return TrainingSet(**{**vars(found), "fold": fold_numbers(40, 5, 0)})


def without(data: TrainingSet, fold: int) -> TrainingSet:
    """The rows outside of one fold."""
    kept = data.fold != fold
    rows = {name: getattr(data, name)[kept] for name in ("tokens", "targets", "noise", "weights", "fold")}
    return TrainingSet(**rows, alphabet=data.alphabet, seed=data.seed)


# Exact answers


def test_ridge_leaves_folds_out_exactly_and_draws_its_posterior(data: TrainingSet) -> None:
    fitted = PROXIES["ridge"].fit(data)
    model = fitted.model
    assert isinstance(model, Ridge)
    columns = (model.features(data.tokens) - model.centre).double()
    shrink, prior = model.shrink.double(), float(model.prior)
    values = torch.linalg.svdvals(columns)[: shrink.shape[0]].flip(0)
    ridge = float((values.square() * (1 / shrink - 1)).median())
    eye = torch.eye(columns.shape[1], dtype=torch.float64)
    for fold in range(data.folds):
        kept = data.fold != fold
        precision = columns[kept].T @ columns[kept] + ridge * eye
        weights = torch.linalg.solve(precision, columns[kept].T @ (data.targets[kept] - model.offset))
        assert_close(model.offset + columns[~kept] @ weights, fitted.mean[~kept], atol=1e-4, rtol=1e-4)
    covariance = prior * ridge * torch.linalg.inv(columns.T @ columns + ridge * eye)
    mean, sd = model.moments(data.tokens)
    assert_close(sd, (columns @ covariance @ columns.T).diagonal().sqrt(), atol=1e-3, rtol=1e-2)
    assert_close(model.mean(data.tokens), mean)
    far = columns @ torch.linalg.solve(columns.T @ columns + 100 * eye, columns.T @ data.targets)
    assert not torch.allclose(far, mean, atol=1e-2)  # and the test can fail


def test_gaussian_process_leaves_folds_out_exactly(data: TrainingSet) -> None:
    fitted = PROXIES["gp"].fit(data)
    model = fitted.model
    assert isinstance(model, GaussianProcess)
    codes = model.both(data.tokens)
    matrix = model.kernel(codes, codes)
    noisy = matrix + model.spread() * torch.eye(40, dtype=torch.float64)
    assert torch.linalg.eigvalsh(matrix).min() > -1e-9
    for fold in range(data.folds):
        out = data.fold == fold
        solved = torch.linalg.solve(
            noisy[~out][:, ~out], torch.cat([data.targets[~out, None], matrix[~out][:, out]], 1)
        )
        assert_close(matrix[out][:, ~out] @ solved[:, 0], fitted.mean[out])
        variance = (matrix[out][:, out] - matrix[out][:, ~out] @ solved[:, 1:]).diagonal()
        assert_close(variance.sqrt(), fitted.sd[out])
    mean, _ = model.moments(data.tokens)
    assert not torch.allclose(mean, fitted.mean, atol=1e-3)  # seen rows are predicted better than left-out ones


@pytest.mark.parametrize("kind", ["ridge", "gp"])
def test_draws_have_the_moments_of_the_posterior(data: TrainingSet, kind: str) -> None:
    model = PROXIES[kind].fit(data).model
    everything = torch.tensor([[EFFECT[letter] for letter in text] for text in ALL])
    mean, sd = model.moments(everything)
    scaled = (model.draws(everything) - mean) / sd
    assert abs(float(scaled.mean())) < 0.3
    assert 0.7 < float(scaled.std()) < 1.3
    assert_close(model.draws(everything[:3]), model.draws(everything)[:, :3])  # the same functions in every call


def test_members_do_not_see_the_fold_they_leave_out(data: TrainingSet) -> None:
    other = TrainingSet(**{**vars(data), "targets": torch.where(data.fold == 2, -data.targets, data.targets)})
    one, two = fit_letters(data), fit_letters(other)
    out = data.fold == 2
    assert_close(one.mean[out], two.mean[out])
    assert (one.mean[~out] - two.mean[~out]).abs().max() > 0.01  # and the test can fail


# Fitting


@pytest.mark.parametrize("kind", ["ridge", "gp", "ensemble"])
def test_predictions_in_the_users_units(kind: str) -> None:
    order = np.random.default_rng(0).permutation(len(ALL))
    chosen, rest = [ALL[i] for i in order[::2]], [ALL[i] for i in order[1::2]]
    scores = np.array([additive(text) for text in chosen])
    truth = np.array([additive(text) for text in rest])
    found = fit_proxy(chosen, scores, alphabet="ACGT", kind=kind)
    answer = found.predict(rest)
    assert np.corrcoef(answer.mean, truth)[0, 1] > 0.97
    assert np.sqrt(np.mean((answer.mean - truth) ** 2)) < 1.5
    larger = fit_proxy(chosen, 100 * scores + 7, alphabet="ACGT", kind=kind).predict(rest)
    np.testing.assert_allclose(larger.mean, 100 * answer.mean + 7, rtol=1e-3)
    np.testing.assert_allclose(larger.sd, 100 * answer.sd, rtol=1e-2)
    assert found.members(rest).shape == (15, len(rest))
    mean, _ = found.predict_tokens(found.tokens(rest))
    np.testing.assert_allclose(mean.numpy(), answer.mean)
    np.testing.assert_allclose(found.mean_tokens(found.tokens(rest)).numpy(), answer.mean, rtol=1e-5)


def test_auto_takes_the_kind_with_the_smallest_error() -> None:
    chosen = ALL[::4]
    found = fit_proxy(chosen, np.array([additive(text) for text in chosen]), alphabet="ACGT")
    report = found.report
    assert report.candidates[0].kind == found.kind == report.kind
    assert {one.kind for one in report.candidates} == {"ensemble", "ridge", "gp", "pool"}  # too short for convolutions
    errors = [one.rmse for one in report.candidates]
    assert errors == sorted(errors)
    assert np.isclose(report.rmse, np.sqrt(np.mean((report.measured - report.predicted) ** 2)))
    assert np.isclose(report.spearman, rank_correlation(report.predicted, report.measured))
    assert report.rows == len(chosen) == len(report.sequences)


def test_lengths_may_differ() -> None:
    """The score depends on the composition, wherever letters stand."""
    rng = np.random.default_rng(1)
    chosen = list({"".join(rng.choice(list("ACGT"), rng.integers(4, 10))) for _ in range(150)})
    truth = np.array([text.count("G") / len(text) for text in chosen])
    for kind in ("ridge", "gp", "convolution"):
        found = fit_proxy(chosen[:110], truth[:110], alphabet="ACGT", kind=kind, max_length=12)
        assert np.corrcoef(found.predict(chosen[110:]).mean, truth[110:])[0, 1] > 0.8
        assert found.predict(["ACGTACGTACGT"]).mean.shape == (1,)
        with pytest.raises(ValueError, match=r"sequence 1 \('ACGTACGTACGTA'\) has 13 letters, not 1 to 12"):
            found.predict(["ACGTACGTACGTA"])


def test_noisy_rows_count_less() -> None:
    chosen = ALL[::3]
    truth = np.array([additive(text) for text in chosen])
    rng = np.random.default_rng(0)
    sd = np.where(np.arange(len(chosen)) % 2 == 0, 0.1, 15.0)
    seen = truth + sd * rng.standard_normal(len(chosen))
    for kind in ("ridge", "gp"):
        aware = fit_proxy(chosen, seen, alphabet="ACGT", sd=sd, kind=kind).predict(ALL).mean
        blind = fit_proxy(chosen, seen, alphabet="ACGT", kind=kind).predict(ALL).mean
        everything = np.array([additive(text) for text in ALL])
        assert np.abs(aware - everything).mean() < 0.7 * np.abs(blind - everything).mean()


def test_mistakes_get_one_line() -> None:
    scores = np.arange(5.0)
    with pytest.raises(ValueError, match=r"at least 4 different sequences, got 1"):
        fit_proxy(["A"] * 5, scores, alphabet="AC")
    with pytest.raises(ValueError, match=r"scores must have one number for each of 4 sequences, got 5"):
        fit_proxy(ALL[:4], scores, alphabet="ACGT")
    with pytest.raises(ValueError, match=r"scores must be finite"):
        fit_proxy(ALL[:5], np.array([1, 2, 3, 4, np.nan]), alphabet="ACGT")
    with pytest.raises(ValueError, match=r"proxy 'gpp' is unknown: .*did you mean 'gp'\?"):
        fit_proxy(ALL[:5], scores, alphabet="ACGT", kind="gpp")
    with pytest.raises(ValueError, match=r"sequence 1 \('AAAA'\) holds 'A', not in the alphabet CGT"):
        fit_proxy(ALL[:5], scores, alphabet="CGT")
    constant = fit_proxy(ALL[:8], np.ones(8), alphabet="ACGT").predict(ALL)
    np.testing.assert_allclose(constant.mean, 1.0, atol=1e-6)


# Calibration


def test_calibration_finds_the_size_of_errors() -> None:
    rng = torch.Generator().manual_seed(0)
    sd = torch.rand(4000, generator=rng, dtype=torch.float64) + 0.2
    error = 2.0 * sd * torch.randn(4000, generator=rng, dtype=torch.float64)
    nothing, fold = torch.zeros_like(sd), torch.arange(4000) % 5
    fitted = calibrate(error, sd, nothing)
    assert fitted.scale == 2.0
    assert fitted.floor < 0.2
    assert abs(coverage(error, sd, nothing, fold) - 0.8) < 0.02
    noisy = error + 3.0 * torch.randn(4000, generator=rng, dtype=torch.float64)
    known = calibrate(noisy, sd, torch.full_like(sd, 3.0))
    assert known.sd(sd).mean() < 2.5 * sd.mean()  # noise of the measurement is not the prediction's
    assert calibrate(noisy, sd, nothing).sd(sd).mean() > 2.5 * sd.mean()


def test_rank_correlation_against_scipy() -> None:
    from scipy.stats import spearmanr

    rng = np.random.default_rng(0)
    one, other = rng.integers(0, 5, 30).astype(float), rng.standard_normal(30)
    assert np.isclose(rank_correlation(one, other), float(spearmanr(one, other).statistic))  # pyright: ignore
    assert rank_correlation(np.ones(3), np.arange(3.0)) == 0.0


# Letters


def test_similar_amino_acids_lie_together() -> None:
    alphabet = "ACDEFGHIKLMNPQRSTVWY"
    codes = letter_codes(alphabet)
    similar = codes[:, 21:]
    gap = torch.cdist(similar, similar).square()
    at = alphabet.index
    assert gap[at("I"), at("V")] < 0.5 < gap[at("W"), at("D")]
    off = gap[:20, :20].sum() / (20 * 19)
    assert_close(off, torch.tensor(1.0, dtype=torch.float64))
    assert letter_codes("ACGT").shape == (5, 5)


def test_composition_counts_letters_and_neighbours() -> None:
    found = composition(torch.tensor([[0, 1, 0, 2]]), 2)[0]  # ABA of at most 4
    assert_close(found, torch.tensor([2 / 3, 1 / 3, 0, 1 / 3, 1 / 3, 0, 3 / 4]))


# Saved


@pytest.fixture(scope="module")
def fits() -> dict[str, Proxy]:
    chosen = [text + text[:3] for text in ALL[::4]]
    scores = np.array([additive(text) for text in chosen])
    kinds = ("ensemble", "convolution", "ridge", "gp")
    return {kind: fit_proxy(chosen, scores, alphabet="ACGT", kind=kind) for kind in kinds}


@pytest.mark.parametrize("kind", ["ensemble", "convolution", "ridge", "gp"])
def test_saved_and_read_again(fits: dict[str, Proxy], kind: str) -> None:
    found = fits[kind]
    tensors = load(save(found.to_tensors()))
    again = Proxy.from_tensors(tensors)
    texts = ["ACGTACG", "TTTTTTT", "GATTACA"]
    for one, other in zip(vars(found.predict(texts)).values(), vars(again.predict(texts)).values(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    np.testing.assert_allclose(found.members(texts), again.members(texts), rtol=1e-6)
    assert again.report.candidates == found.report.candidates
    broken = {name: value for name, value in tensors.items() if not name.endswith(("weights", "weight0", "tokens"))}
    with pytest.raises(ValueError, match=r"^a saved proxy cannot be read"):
        Proxy.from_tensors(broken)


def nearest_letters(sequences: list[str], scores: np.ndarray, seed: int) -> Callable[[list[str]], np.ndarray]:
    """A proxy of somebody's own: the mean score of what begins with the same letter."""
    mean = {letter: scores[[text[0] == letter for text in sequences]].mean() for letter in {s[0] for s in sequences}}
    return lambda texts: np.array([mean.get(text[0], 0.0) for text in texts])


def test_a_proxy_of_somebodys_own() -> None:
    chosen = ALL[::3]
    scores = np.array([10.0 * EFFECT[text[0]] for text in chosen])
    name = f"{__name__}:nearest_letters"
    found = fit_proxy(chosen, scores, alphabet="ACGT", kind=name)
    np.testing.assert_allclose(found.predict(["AAAA", "TGCA"]).mean, [0.0, 30.0], atol=1e-9)
    assert found.report.spearman > 0.97
    assert found.members(["AAAA"]).shape == (15, 1)
    with pytest.raises(ValueError, match=r"names code that would be run"):
        Proxy.from_tensors(found.to_tensors())
    again = Proxy.from_tensors(found.to_tensors(), trust=True)
    np.testing.assert_array_equal(again.predict(ALL).mean, found.predict(ALL).mean)
    with pytest.raises(ValueError, match=r"must be a function \(sequences, scores, seed\)"):
        fit_proxy(chosen, scores, alphabet="ACGT", kind=f"{__name__}:additive")


def test_every_kind_fits_what_it_says(data: TrainingSet) -> None:
    for _, entry in PROXIES.items():
        assert entry.about
        if entry.name != "botorch":  # an extra: see test_botorch_gp.py
            assert isinstance(entry.fit(data), FittedModel)
