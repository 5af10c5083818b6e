"""Motifs by hand and by enumeration: scores, additivity, and every exact answer against sums over all sequences."""

import math
from itertools import product

import numpy as np
import pytest
import torch
from exact_tables import PROPERTY, chi_square
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from sgfn.config import RewardConfig
from sgfn.envs import SequenceEnv
from sgfn.evaluation import exact
from sgfn.landscapes import jaspar
from sgfn.landscapes.motif import ALPHABET, MODE_SHARE, SCORES, Motif, log_odds
from sgfn.noise import UniformSlip

SHAPES = [(2, 5), (3, 5), (5, 5), (3, 6), (4, 7)]
"""Positions of the motif, length of the sequence."""


def random_motif(width: int, length: int, score: str = "sum", seed: int = 0) -> Motif:
    counts = np.random.default_rng(seed).integers(0, 30, (width, 4)) + 1.0
    return Motif(log_odds(counts), length=length, score=score)


def tokens(text: str) -> torch.Tensor:
    return torch.tensor([ALPHABET.index(letter) for letter in text])


def all_sequences(length: int) -> torch.Tensor:
    return torch.tensor(list(product(range(4), repeat=length)))


def places_by_hand(motif: Motif, rows: torch.Tensor) -> list[list[float]]:
    """Score of each row at each place, cell by cell."""
    matrix, starts = motif.matrix.tolist(), range(motif.places)
    return [[sum(w[row[start + i]] for i, w in enumerate(matrix)) for start in starts] for row in rows.tolist()]


# The weight matrix and the score


def test_arnt_by_hand() -> None:
    """MA0004.1 counts 20 sites: A 4, C 16 at the first position, A 19, G 1 at the second, then C, G, T, G alone."""
    motif, pseudo = Motif.named("MA0004.1", length=6), math.sqrt(20) / 4

    def weight(count: int) -> float:
        return math.log((count + pseudo) / (20 + 4 * pseudo) / 0.25)

    consensus = weight(16) + weight(19) + 4 * weight(20)
    assert consensus == pytest.approx(1.02889 + 1.19038 + 4 * 1.23889, abs=1e-4)
    assert float(motif.scores(tokens("CACGTG"))) == motif.maximum == pytest.approx(consensus, rel=1e-6)
    assert float(motif.scores(tokens("AGCGTG"))) == pytest.approx(weight(4) + weight(1) + 4 * weight(20), rel=1e-5)
    assert float(motif.scores(tokens("TTTTTT"))) == pytest.approx(5 * weight(0) + weight(20), rel=1e-5)
    assert float(motif.scores(tokens("GTGCAC"))) != pytest.approx(consensus, abs=1.0)  # one strand only


def test_log_odds_are_those_of_a_law() -> None:
    """exp(W)/4 sums to one at each position, follows the counts, and is uniform where the counts are."""
    law = log_odds(jaspar.find("CTCF").counts).exp() / 4
    assert_close(law.sum(-1), torch.ones(15, dtype=torch.float64))
    assert torch.equal(law.argmax(-1), torch.from_numpy(jaspar.find("CTCF").counts.argmax(-1)))
    assert_close(log_odds(np.full((2, 4), 7.0)), torch.zeros(2, 4, dtype=torch.float64))
    assert log_odds(np.array([[10.0, 0.0, 0.0, 0.0]])).isfinite().all()


@pytest.mark.parametrize(("width", "length"), SHAPES)
def test_scores_are_the_mean_and_the_best_place(width: int, length: int) -> None:
    rows = all_sequences(length)
    places = places_by_hand(random_motif(width, length), rows)
    mean, best = torch.tensor([sum(p) / len(p) for p in places]), torch.tensor([max(p) for p in places])
    for score, wanted in (("sum", mean), ("best", best)):
        motif = random_motif(width, length, score)
        found = motif.scores(rows)
        assert_close(found, wanted, atol=1e-5, rtol=0)
        assert torch.equal(motif.scores(rows[:64].reshape(4, 16, length)), found[:64].reshape(4, 16))
        assert found.dtype == torch.float32
        assert float(found.max()) == motif.maximum
        assert not torch.allclose(motif.scores(rows.flip(-1)), wanted, atol=1e-3)
    assert (mean <= best + 1e-6).all()
    assert torch.allclose(mean, best, atol=1e-5) == (width == length)
    assert float(mean.min()) == pytest.approx(random_motif(width, length).minimum, abs=1e-5)


@PROPERTY
@given(data=st.data(), width=st.integers(1, 8), extra=st.integers(1, 12), seed=st.integers(0, 99))
def test_sum_is_additive(data: st.DataObject, width: int, extra: int, seed: int) -> None:
    """Sequences that swap their tails keep their total, wherever the cut."""
    length = width + extra
    pair = data.draw(st.lists(st.lists(st.integers(0, 3), min_size=length, max_size=length), min_size=2, max_size=2))
    cut = data.draw(st.integers(1, length - 1))
    x, y = torch.tensor(pair)
    crossed = torch.stack([torch.cat([x[:cut], y[cut:]]), torch.cat([y[:cut], x[cut:]])])
    scores = random_motif(width, length, seed=seed).scores
    assert float(scores(crossed).sum()) == pytest.approx(float(scores(torch.stack([x, y])).sum()), abs=1e-4)


def test_best_is_not_additive() -> None:
    """Two sites in one sequence count once."""
    motif = Motif.named("Arnt", length=12, score="best")
    x, y = tokens("CACGTGTTTTTT"), tokens("TTTTTTCACGTG")
    crossed = torch.stack([torch.cat([x[:6], y[6:]]), torch.cat([y[:6], x[6:]])])
    assert float(motif.scores(torch.stack([x, y])).sum() - motif.scores(crossed).sum()) > 5.0


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("length", [20, 37, 100])
def test_known_maximum_at_any_length(score: str, length: int) -> None:
    """`best` peaks wherever the consensus stands, `sum` at one sequence; modes are rare."""
    motif = Motif.named("CTCF", length=length, score=score)
    if score == "sum":
        peaks = motif.weights.argmax(-1)[None]
    else:
        site = tokens("GCCACCAGGGGGCGC")
        peaks = torch.zeros(3, length, dtype=torch.int64)
        for row, start in zip(peaks, (0, length // 6, length - 15), strict=True):
            row[start : start + 15] = site
    assert_close(motif.scores(peaks), torch.full((peaks.shape[0],), motif.maximum), atol=1e-5, rtol=0)
    random = torch.randint(4, (4096, length), generator=torch.Generator().manual_seed(0))
    assert float((motif.scores(random) >= motif.mode_level).float().mean()) < 0.01
    assert float(motif.scores(random).max()) < motif.maximum
    assert motif.mode_level == pytest.approx(motif.minimum + MODE_SHARE * (motif.maximum - motif.minimum), abs=1e-4)


def test_log_reward_is_the_score() -> None:
    """R = exp(score) / norm; negative scores are not clipped, unlike elsewhere."""
    motif, rows = random_motif(3, 5), all_sequences(5)
    found = motif.log_reward(rows, RewardConfig(norm=2.0, minimum=1.0))
    assert_close(found, motif.scores(rows) - math.log(2.0))
    assert float(found.min()) < -1.0


# Exact answers against sums over all sequences


@pytest.mark.parametrize(("width", "length"), SHAPES)
@pytest.mark.parametrize("beta", [0.5, 3.0])
def test_partition_law_and_mean_equal_the_enumeration(width: int, length: int, beta: float) -> None:
    motif, rows = random_motif(width, length), all_sequences(length)
    scores = torch.tensor(places_by_hand(motif, rows), dtype=torch.float64).mean(-1)
    law = torch.softmax(beta * scores, 0)
    assert motif.log_partition(beta) == pytest.approx(float((beta * scores).logsumexp(0)), abs=1e-10)
    assert_close(motif.log_prob(rows, beta), law.log(), atol=1e-10, rtol=0)
    assert motif.expected_score(beta) == pytest.approx(float(law @ scores), abs=1e-10)
    marginal = torch.stack([law @ (rows == base).double() for base in range(4)], -1)
    assert_close(motif.target_conditional(beta), marginal, atol=1e-10, rtol=0)
    assert motif.log_partition(beta + 0.1) != pytest.approx(motif.log_partition(beta), abs=1e-3)
    assert motif.kl_to(torch.full((length, 4), 0.25).double(), beta) == pytest.approx(
        float(law @ law.log()) + length * math.log(4), abs=1e-10
    )


@pytest.mark.parametrize(("width", "length"), SHAPES)
@pytest.mark.parametrize("alpha", [0.0, 0.1, 0.5])
def test_floor_equals_the_dynamic_programme(width: int, length: int, alpha: float) -> None:
    """One projection per position is the whole tree's optimum, as `exact` finds it node by node."""
    beta, motif, noise = 4.0, random_motif(width, length), UniformSlip(alpha=alpha)
    env = SequenceEnv(length=length, alphabet=ALPHABET, noise=noise)
    rows = env.all_objects()
    scores = motif.log_prob(rows, 1.0) + motif.log_partition(1.0)  # in float64
    known = exact.reference(env, scores, scores, beta)
    assert known.floor is not None
    assert_close(known.target, motif.log_prob(rows, beta).exp(), atol=1e-12, rtol=0)
    best = motif.best_law(beta, noise).log()
    assert_close(known.floor, best[torch.arange(length), rows].sum(-1).exp(), atol=1e-12, rtol=0)
    assert motif.floor_kl(beta, noise) == pytest.approx(exact.kl(known.target, known.floor), abs=1e-9)
    assert motif.floor_expected_score(beta, noise) == pytest.approx(float(known.floor @ scores), abs=1e-9)
    blind = (1 - alpha) * motif.target_conditional(beta) + alpha / 4
    assert motif.kl_to(blind, beta) == pytest.approx(exact.kl(known.target, known.blind), abs=1e-9)
    if alpha == 0.5:
        assert motif.kl_to(blind, beta) > motif.floor_kl(beta, noise) + 1e-3 > 2e-3


def test_exact_samples_follow_the_law() -> None:
    """Chi-square over all 1,024 sequences; a law of another exponent is refused."""
    motif, env = random_motif(3, 5), SequenceEnv(length=5, alphabet=ALPHABET, noise=UniformSlip(alpha=0.0))
    drawn = motif.exact_sample(200_000, 1.0, torch.Generator().manual_seed(0))
    assert (drawn.shape, drawn.dtype) == ((200_000, 5), torch.int64)
    counts = torch.bincount(env.object_index(drawn), minlength=1024)
    law, other = (motif.log_prob(env.all_objects(), beta).exp() for beta in (1.0, 1.1))
    assert chi_square(counts, law) > 1e-3
    assert chi_square(counts, other) < 1e-6
    again = motif.exact_sample(200_000, 1.0, torch.Generator().manual_seed(0))
    assert torch.equal(drawn, again)
    assert not torch.equal(drawn, motif.exact_sample(200_000, 1.0, torch.Generator().manual_seed(1)))


@pytest.mark.parametrize("length", [20, 30, 100])
def test_long_sequences_agree_with_calculus_and_samples(length: int) -> None:
    """Where nothing can be enumerated: d log Z / d beta is the mean score, and samples have that mean."""
    motif, beta, step = Motif.named("CTCF", length=length), 4.0, 1e-4
    slope = (motif.log_partition(beta + step) - motif.log_partition(beta - step)) / (2 * step)
    assert motif.expected_score(beta) == pytest.approx(slope, abs=1e-6)
    assert motif.log_partition(0.0) == pytest.approx(length * math.log(4), rel=1e-12)
    drawn = motif.exact_sample(50_000, beta, torch.Generator().manual_seed(0))
    scores = motif.scores(drawn).double()
    error = float(scores.std()) / math.sqrt(50_000)
    assert abs(float(scores.mean()) - motif.expected_score(beta)) < 4 * error
    assert abs(float(scores.mean()) - motif.expected_score(beta + 0.5)) > 4 * error
    assert_close(motif.log_prob(drawn, beta), beta * scores - motif.log_partition(beta), atol=1e-4, rtol=0)


def test_floor_grows_with_the_noise() -> None:
    """Nothing is lost without noise; at length 30 the floor lies below what ignoring the noise would cost."""
    motif = Motif.named("CTCF", length=30)
    floors = [motif.floor_kl(5.0, UniformSlip(alpha=alpha)) for alpha in (0.0, 0.1, 0.25, 0.5)]
    assert floors[0] == pytest.approx(0.0, abs=1e-12)
    assert floors == sorted(floors)
    assert floors[1] == pytest.approx(0.3075, abs=1e-4)
    assert motif.kl_to(0.9 * motif.target_conditional(5.0) + 0.025, 5.0) > floors[1] + 0.2
    reached = motif.floor_expected_score(5.0, UniformSlip(alpha=0.1))
    assert motif.expected_score(0.0) < reached < motif.expected_score(5.0)


# Wrong input


def test_wrong_input_is_named() -> None:
    with pytest.raises(
        ValueError, match=r"^length 14 is too short for CTCF \(MA0139\.2\) of 15 positions: choose 15 or"
    ):
        Motif.named("CTCF", length=14)
    assert Motif.named("CTCF", length=15).places == 1
    with pytest.raises(ValueError, match=r"^score 'summ' is unknown: choose from sum, best; did you mean 'sum'\?$"):
        Motif.named("CTCF", length=20, score="summ")
    with pytest.raises(ValueError, match="unknown JASPAR factor"):
        Motif.named("CTFC", length=20)


def test_best_has_no_exact_answers() -> None:
    """It says so instead of answering for `sum`."""
    motif, noise = Motif.named("CTCF", length=20, score="best"), UniformSlip(alpha=0.1)
    asked = (
        lambda: motif.log_partition(1.0),
        lambda: motif.expected_score(1.0),
        lambda: motif.exact_sample(1, 1.0, torch.Generator()),
        lambda: motif.log_prob(torch.zeros(1, 20, dtype=torch.int64), 1.0),
        lambda: motif.floor_kl(1.0, noise),
        lambda: motif.mean_under(torch.full((20, 4), 0.25, dtype=torch.float64)),
    )
    for question in asked:
        with pytest.raises(ValueError, match="choose score 'sum', got 'best'"):
            question()
