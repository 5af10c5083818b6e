"""Ehrlich functions: the definition by hand and by enumeration, feasibility, and an optimum for every seed."""

import re
from itertools import pairwise, product

import pytest
import torch
from exact_tables import PROPERTY
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from sgfn.envs import SequenceEnv
from sgfn.landscapes.ehrlich import Ehrlich, best_match, draw_allowed
from sgfn.noise import UniformSlip


def small(length: int = 6, seed: int = 0, quantisation: int = 2, motif_length: int = 2, motifs: int = 2) -> Ehrlich:
    return Ehrlich(
        vocab=4, length=length, motifs=motifs, motif_length=motif_length, quantisation=quantisation, seed=seed
    )


def score_by_hand(landscape: Ehrlich, x: tuple[int, ...]) -> float:
    """The definition, place by place."""
    if any(not landscape.allowed[a, b] for a, b in pairwise(x)):
        return 0.0
    value, k, q = 1.0, landscape.motif_length, landscape.quantisation
    for motif, offsets in zip(landscape.motifs, landscape.offsets, strict=True):
        starts = [start for start in range(len(x)) if start + offsets[-1] < len(x)]
        hits = [sum(x[start + o] == letter for o, letter in zip(offsets, motif, strict=True)) for start in starts]
        value *= (max(hits) * q // k) / q
    return value


def optima_by_placement(landscape: Ehrlich) -> set[tuple[int, ...]]:
    """Write all motifs at all places that agree, fill the rest freely, keep what is feasible."""
    found, length = set(), landscape.length
    places = [range(length - offsets[-1]) for offsets in landscape.offsets]
    for starts in product(*places):
        written: dict[int, set[int]] = {}
        for start, motif, offsets in zip(starts, landscape.motifs, landscape.offsets, strict=True):
            for offset, letter in zip(offsets, motif, strict=True):
                written.setdefault(start + offset, set()).add(letter)
        if all(len(letters) == 1 for letters in written.values()):
            found |= set(product(*[sorted(written.get(i, range(landscape.vocab))) for i in range(length)]))
    return {x for x in found if all(landscape.allowed[a, b] for a, b in pairwise(x))}


def all_objects(landscape: Ehrlich) -> Tensor:
    noise = UniformSlip(alpha=0.0)
    return SequenceEnv(length=landscape.length, alphabet=landscape.alphabet, noise=noise).all_objects()


# The definition


def test_best_match_by_hand() -> None:
    """Motif 1 . 2 2 (offsets 0, 2, 3): the best place decides, and a motif may not hang over the end."""
    rows = torch.tensor(
        [
            [1, 0, 2, 2, 0, 0],  # all three at place 0
            [0, 0, 1, 3, 2, 2],  # all three at the last place
            [0, 1, 0, 2, 3, 0],  # two of three at place 1
            [0, 0, 0, 1, 0, 2],  # the motif would end outside: one of three
            [3, 3, 3, 3, 3, 3],
        ]
    )
    assert best_match(rows, (1, 2, 2), (0, 2, 3)).tolist() == [3, 3, 2, 1, 0]
    assert best_match(rows, (1, 2, 2), (0, 1, 2)).tolist() != [3, 3, 2, 1, 0]


def test_score_by_hand() -> None:
    landscape = small(motif_length=2)
    landscape.motifs, landscape.offsets = ((0, 1), (2, 3)), ((0, 1), (0, 2))
    landscape.allowed = torch.ones_like(landscape.allowed)
    rows = torch.tensor(
        [[0, 1, 2, 0, 3, 0], [0, 1, 2, 3, 0, 0], [0, 0, 2, 3, 0, 0], [3, 1, 0, 3, 3, 3], [1, 1, 1, 1, 1, 1]]
    )
    assert landscape.scores(rows).tolist() == [1.0, 0.5, 0.25, 0.25, 0.0]
    landscape.quantisation = 1
    assert landscape.scores(rows).tolist() == [1.0, 0.0, 0.0, 0.0, 0.0]
    landscape.allowed[2, 0] = False  # the step of the first row that no other row takes
    assert landscape.scores(rows).tolist() == [0.0, 0.0, 0.0, 0.0, 0.0]
    assert landscape.feasible(rows).tolist() == [False, True, True, True, True]


@pytest.mark.parametrize(("length", "seed"), [(6, 0), (6, 1), (7, 2), (8, 3)])
def test_every_sequence_of_a_small_instance(length: int, seed: int) -> None:
    landscape = small(length, seed)
    objects = all_objects(landscape)
    scores, feasible = landscape.scores(objects), landscape.feasible(objects)
    checked = slice(None, None, 1 if length < 8 else 16)
    wanted = [score_by_hand(landscape, tuple(row)) for row in objects[checked].tolist()]
    assert_close(scores[checked], torch.tensor(wanted), atol=0, rtol=0)
    assert {0.0, 1.0} < set(scores.tolist()) <= {0.0, 0.25, 0.5, 1.0}  # products of 0, 1/2 and 1
    assert float(scores.max()) == landscape.maximum == landscape.mode_level == 1.0
    optima = optima_by_placement(landscape)
    assert {tuple(row) for row in objects[scores == 1.0].tolist()} == optima
    assert tuple(landscape.optimum().tolist()) in optima
    assert not scores[~feasible].any()
    assert 0 < int(feasible.sum()) < len(objects)
    walks = torch.linalg.matrix_power(landscape.allowed[:4, :4].double(), length - 1).sum()
    assert int(feasible.sum()) == int(walks)  # walks of length - 1 steps along allowed transitions
    other = small(length, seed + 10)
    assert not torch.equal(other.scores(objects), scores)


@pytest.mark.parametrize("quantisation", [1, 2, 4])
def test_quantisation_sets_the_levels(quantisation: int) -> None:
    """The same instance at every q; coarser steps never score higher."""
    fine, coarse = (small(8, 0, q, motif_length=4, motifs=1) for q in (4, quantisation))
    assert (fine.motifs, fine.offsets) == (coarse.motifs, coarse.offsets)
    objects = all_objects(coarse)
    scores = coarse.scores(objects)
    assert set(scores.tolist()) == {j / quantisation for j in range(quantisation + 1)}
    assert (scores <= fine.scores(objects)).all()
    assert torch.equal(scores == 1.0, fine.scores(objects) == 1.0)


# What the construction promises

SHAPES = st.tuples(st.integers(3, 40), st.integers(1, 5), st.integers(1, 6), st.integers(0, 30), st.integers(0, 10_000))


@PROPERTY
@given(shape=SHAPES)
def test_every_seed_has_a_feasible_optimum(shape: tuple[int, int, int, int, int]) -> None:
    vocab, motifs, k, slack, seed = shape
    length = motifs * k + slack
    landscape = Ehrlich(vocab=vocab, length=length, motifs=motifs, motif_length=k, quantisation=k, seed=seed)
    best = landscape.optimum()
    assert best.shape == (length,)
    assert int(best.max()) < vocab
    assert bool(landscape.feasible(best))
    assert landscape.scores(best).item() == 1.0
    assert torch.equal(landscape.scores(best.expand(2, 3, length)), torch.ones(2, 3))
    chain = [letter for motif in landscape.motifs for letter in motif]
    assert all(landscape.allowed[a, b] and a != b for a, b in pairwise(chain))
    for offsets in landscape.offsets:
        assert offsets[0] == 0
        assert list(offsets) == sorted(set(offsets))
        assert offsets[-1] < length // motifs
    if length > 1:
        a, b = (~landscape.allowed[:vocab, :vocab]).nonzero()[0].tolist()
        broken = best.clone()
        broken[:2] = torch.tensor([a, b])
        assert not bool(landscape.feasible(broken))
        assert landscape.scores(broken).item() == 0.0


@pytest.mark.parametrize("vocab", [3, 4, 9, 10, 20, 62])
def test_transitions_are_ergodic_with_some_banned(vocab: int) -> None:
    for seed in range(20):
        allowed = draw_allowed(vocab, torch.Generator().manual_seed(seed))
        assert allowed.diagonal().all()
        assert ((~allowed).sum(-1) == max(1, vocab // 5)).all()
        reach = torch.linalg.matrix_power(allowed.double(), vocab)
        assert (reach > 0).all()  # any letter leads to any other, in any number of steps from here on


def test_spacings_use_the_room_there_is() -> None:
    """Over seeds, every spacing that fits is drawn: 3 letters in windows of 5 places, 6 ways to set the last two."""
    drawn = {small(10, seed, quantisation=3, motif_length=3).offsets[0] for seed in range(200)}
    assert drawn == {(0, a, b) for a in range(1, 4) for b in range(a + 1, 5)}
    tight = small(6, 0, quantisation=3, motif_length=3)
    assert tight.offsets == ((0, 1, 2), (0, 1, 2))


def test_an_instance_is_decided_by_its_seed() -> None:
    before = torch.get_rng_state()
    one, two, other = (
        Ehrlich(vocab=20, length=32, motifs=4, motif_length=4, quantisation=4, seed=s) for s in (7, 7, 8)
    )
    assert torch.equal(torch.get_rng_state(), before)
    assert (one.motifs, one.offsets) == (two.motifs, two.offsets)
    assert torch.equal(one.allowed, two.allowed)
    assert (one.motifs, one.offsets) != (other.motifs, other.offsets)
    assert not torch.equal(one.allowed, other.allowed)


# How it is used


def test_alphabet() -> None:
    letters = {
        v: Ehrlich(vocab=v, length=4, motifs=1, motif_length=2, quantisation=1).alphabet for v in (4, 20, 21, 62)
    }
    assert letters[4] == "ACDE"
    assert letters[20] == "ACDEFGHIKLMNPQRSTVWY"
    assert letters[21] == "ABCDEFGHIJKLMNOPQRSTU"
    assert len(set(letters[62])) == 62


def test_a_shorter_sequence_is_infeasible() -> None:
    landscape = small(length=8)
    best = landscape.optimum()
    short = best.clone()
    short[-1] = landscape.vocab
    assert landscape.scores(torch.stack([best, short])).tolist() == [1.0, 0.0]
    assert landscape.feasible(torch.full((8,), landscape.vocab)).item() is False


def test_scoring_never_asks_for_a_value() -> None:
    """On the meta device a tensor has a shape and no values: what works there can be captured in a CUDA graph."""
    landscape = Ehrlich(vocab=20, length=32, motifs=4, motif_length=4, quantisation=4)
    landscape.to(torch.device("meta"))
    objects = torch.zeros(16, 32, dtype=torch.int64, device="meta")
    assert landscape.scores(objects).shape == landscape.feasible(objects).shape == (16,)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"vocab": 2}, "vocab must lie in [3, 62], got 2"),
        ({"vocab": 63}, "vocab must lie in [3, 62], got 63"),
        ({"motifs": 0}, "motifs must lie in [1, inf), got 0"),
        ({"motif_length": 0}, "motif_length must lie in [1, inf), got 0"),
        ({"length": 7}, "length must be at least motifs * motif_length = 8, got 7"),
        ({"quantisation": 0}, "quantisation must lie in [1, 4], got 0"),
        ({"quantisation": 5}, "quantisation must lie in [1, 4], got 5"),
        ({"quantisation": 3}, "quantisation must divide motif_length (4), got 3"),
    ],
)
def test_wrong_settings_say_what_is_wrong(settings: dict[str, int], message: str) -> None:
    right = {"vocab": 20, "length": 8, "motifs": 2, "motif_length": 4, "quantisation": 4}
    Ehrlich(**right)
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Ehrlich(**(right | settings))


def test_objects_of_a_wrong_length_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^objects must hold 6 letters, got 5$"):
        small(6).scores(torch.zeros(2, 5, dtype=torch.int64))
