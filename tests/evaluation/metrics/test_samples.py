"""Every metric against a definition written out in plain Python."""

import inspect
import tracemalloc
from itertools import combinations, product
from math import ceil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sgfn.evaluation.metrics import samples
from sgfn.evaluation.metrics.samples import (
    TopK,
    diversity,
    greedy_modes,
    local_maxima,
    novelty,
    reference_modes,
    top_k,
    unique_objects,
)

BLOCKS = st.sampled_from([1, 2, 3, 7, 2048])
quick = settings(max_examples=60, deadline=None)


@st.composite
def rows(draw, width: int | None = None, min_rows: int = 0) -> np.ndarray:
    """Few tokens and short rows, so that duplicates and ties are common; some hold a pad id of -1 or wide values."""
    width = draw(st.integers(1, 5)) if width is None else width
    low, high = draw(st.sampled_from([(0, 1), (0, 3), (-1, 2), (-200, 200), (-(2**50), 2**50)]))
    dtype = draw(st.sampled_from([np.int64, np.int32])) if high < 2**31 else np.int64
    return draw(arrays(dtype, (draw(st.integers(min_rows, 25)), width), elements=st.integers(low, high)))


@st.composite
def scored(draw, min_rows: int = 0) -> tuple[np.ndarray, np.ndarray]:
    objects = draw(rows(min_rows=min_rows))
    values = st.sampled_from([-np.inf, -1.0, -0.0, 0.0, 0.5, 2.0])
    return objects, draw(arrays(np.float64, len(objects), elements=values))


@st.composite
def pairs(draw, min_rows: int = 0) -> tuple[np.ndarray, np.ndarray]:
    width = draw(st.integers(1, 5))
    return draw(rows(width, min_rows)), draw(rows(width, 1))


def naive_distance(x: np.ndarray, y: np.ndarray, name: str = "hamming") -> int:
    return sum(int(a != b) if name == "hamming" else abs(int(a) - int(b)) for a, b in zip(x, y, strict=True))


def naive_ranking(objects: np.ndarray, scores: np.ndarray) -> list[int]:
    first = {}
    for i, row in enumerate(objects.tolist()):
        first.setdefault(tuple(row), i)
    return sorted(first.values(), key=lambda i: (-scores[i], objects[i].tolist()))


def naive_modes(objects: np.ndarray, scores: np.ndarray, threshold: float, level: float, name: str) -> list[int]:
    modes = []
    for i in naive_ranking(objects, scores):
        if scores[i] >= level and all(naive_distance(objects[i], objects[m], name) > threshold for m in modes):
            modes.append(i)
    return modes


def naive_maxima(table: np.ndarray, vocab: int, length: int, radius: int, top: float) -> list[tuple[int, ...]]:
    score = dict(zip(product(range(vocab), repeat=length), table.tolist(), strict=True))
    level = sorted(score.values(), reverse=True)[max(1, ceil(top * len(score))) - 1]
    peaks = [x for x in score if all(score[y] <= score[x] for y in score if naive_distance(x, y) <= radius)]
    return sorted((x for x in peaks if score[x] >= level), key=lambda x: (-score[x], x))


def refuses(name: str, function, *args, **kwargs) -> None:
    """The function itself answers in one line: run-time shape checks, when on, would speak first."""
    with pytest.raises(ValueError, match=rf"\A{name} [^\n]*\Z"):
        inspect.unwrap(function)(*args, **kwargs)


# unique_objects, top_k


def test_unique_objects_by_hand() -> None:
    objects = np.array([[1, 0], [0, 2], [1, 0], [0, 1], [2, 2]])
    scores = np.array([1.0, 3.0, 9.0, 3.0, 5.0])
    rows, values = unique_objects(objects, scores)
    assert rows.tolist() == [[2, 2], [0, 1], [0, 2], [1, 0]]
    assert values.tolist() == [5.0, 3.0, 3.0, 1.0]  # the second [1, 0], with 9.0, came too late
    assert unique_objects(objects[::-1], scores[::-1])[1].tolist() == [9.0, 5.0, 3.0, 3.0]  # and order matters


@quick
@given(scored())
def test_unique_objects_is_the_first_of_each(sample) -> None:
    objects, scores = sample
    order = naive_ranking(objects, scores)
    rows, values = unique_objects(objects, scores)
    np.testing.assert_array_equal(rows, objects[order])
    np.testing.assert_array_equal(values, scores[order])


def test_unique_objects_in_rows_too_wide_for_one_integer() -> None:
    """Fifty tokens out of twenty exceed 64 bits: keys are ranked on the way, and no two rows collide."""
    rng = np.random.default_rng(0)
    objects = rng.integers(0, 20, (300, 50))
    objects[100:200, :-1] = objects[:100, :-1]  # differ in the last token only
    objects[200:] = objects[:100]
    scores = np.zeros(300, dtype=np.float32)
    order = naive_ranking(objects, scores)
    assert 190 < len(order) <= 200
    np.testing.assert_array_equal(unique_objects(objects, scores)[0], objects[order])


def test_neighbouring_large_tokens_stay_apart() -> None:
    """One float64 on the way would merge them."""
    objects = np.array([[2**60], [2**60 + 1], [-1]])
    assert len(unique_objects(objects, np.zeros(3))[0]) == 3
    assert novelty(objects, objects[1:]).tolist() == [1, 0, 0]


def test_unique_objects_orders_unsigned_scores() -> None:
    rows, scores = unique_objects(np.array([[0], [1], [2]]), np.array([1, 0, 2], dtype=np.uint8))
    assert rows.tolist() == [[2], [0], [1]]
    assert scores.tolist() == [2, 1, 0]


def test_top_k_by_hand() -> None:
    objects, scores = np.array([[0], [1], [1], [2], [3]]), np.array([4.0, 7.0, 7.0, 1.0, 0.0])
    assert top_k(objects, scores, k=3) == TopK(mean=4.0, median=4.0, count=3)
    assert top_k(objects, scores, k=2) == TopK(mean=5.5, median=5.5, count=2)  # 7 counts once
    assert top_k(objects, scores) == TopK(mean=3.0, median=2.5, count=4)
    assert top_k(np.arange(5)[:, None], scores, k=2).mean == 7.0  # were the repeat another object


@quick
@given(scored(min_rows=1), st.integers(1, 30))
def test_top_k_is_the_head_of_the_ranking(sample, k: int) -> None:
    objects, scores = sample
    best = sorted((scores[i] for i in naive_ranking(objects, scores)), reverse=True)[:k]
    assert top_k(objects, scores, k) == TopK(float(np.mean(best)), float(np.median(best)), len(best))


# diversity, novelty


def test_diversity_by_hand() -> None:
    objects = np.array([[0, 0], [0, 1], [1, 1]])
    assert diversity(objects) == pytest.approx((1 + 2 + 1) / 3)
    assert diversity(objects[[0, 1, 1]]) == pytest.approx((1 + 1 + 0) / 3)  # a repeat is a pair at distance zero
    assert diversity(objects[:1]) == diversity(objects[:0]) == 0.0


@quick
@given(rows(min_rows=2))
def test_diversity_is_the_mean_over_pairs(objects) -> None:
    assert diversity(objects) == pytest.approx(np.mean([naive_distance(x, y) for x, y in combinations(objects, 2)]))


def test_novelty_by_hand() -> None:
    objects, known = np.array([[0, 0, 0], [2, 2, 2], [0, 1, 9]]), np.array([[0, 0, 0], [0, 1, 1]])
    assert novelty(objects, known).tolist() == [0, 3, 1]
    assert novelty(objects, known[:1]).tolist() == [0, 3, 2]  # the second known object was the nearest of the last


def test_padding_counts_as_a_symbol() -> None:
    pad = -1
    assert novelty(np.array([[0, 1, pad]]), np.array([[0, 1, 2]])).tolist() == [1]
    assert novelty(np.array([[1, pad, pad]]), np.array([[0, 1, 2]])).tolist() == [3]  # an edit distance would be 2


@quick
@given(pairs(), BLOCKS)
def test_novelty_is_the_least_distance(pair, block: int) -> None:
    objects, known = pair
    expected = [min(naive_distance(x, y) for y in known) for x in objects]
    assert novelty(objects, known, block=block).tolist() == expected


def test_hamming_with_more_tokens_than_one_hots_take() -> None:
    """Both ways of counting agree on either side of the limit."""
    rng = np.random.default_rng(0)
    for vocab in (samples.ONE_HOT_TOKENS, 5 * samples.ONE_HOT_TOKENS):
        left, right = rng.integers(0, vocab, (40, 3)), rng.integers(0, vocab, (300, 3))
        assert (len(np.unique(right)) > samples.ONE_HOT_TOKENS) == (vocab > samples.ONE_HOT_TOKENS)
        gaps = samples.hamming(left, right)
        np.testing.assert_array_equal(gaps, (left[:, None] != right[None]).sum(axis=2))
        assert gaps.min() < 3


# greedy_modes


def test_greedy_modes_by_hand() -> None:
    objects = np.array([[0, 0, 0, 0], [0, 0, 0, 1], [1, 1, 1, 0], [0, 1, 1, 1], [2, 2, 2, 2], [0, 0, 0, 0]])
    scores = np.array([5.0, 6.0, 4.0, 3.0, 1.0, 9.0])
    # Best first: 1 opens; 0 is at 1; 2 is at 4 from 1, opens; 3 is at 2 from both; 4 lies below the level.
    assert greedy_modes(objects, scores, level=2.0).tolist() == [1, 2]
    assert greedy_modes(objects, scores, level=0.0).tolist() == [1, 2, 4]
    assert greedy_modes(objects, scores, level=2.0, threshold=1).tolist() == [1, 2, 3]
    assert greedy_modes(objects, scores, level=2.0, threshold=0).tolist() == [1, 0, 2, 3]
    assert greedy_modes(objects, scores, level=2.0, threshold=4).tolist() == [1]
    assert greedy_modes(objects, scores, level=7.0).tolist() == []  # the repeat's 9.0 does not count


def test_greedy_modes_on_a_grid_by_hand() -> None:
    cells, scores = np.array([[0, 0], [0, 3], [1, 1], [7, 7]]), np.array([4.0, 3.0, 2.0, 1.0])
    assert greedy_modes(cells, scores, level=0, distance="l1").tolist() == [0, 1, 3]
    assert greedy_modes(cells, scores, level=0, distance="l1", threshold=3).tolist() == [0, 3]
    assert greedy_modes(cells, scores, level=0).tolist() == [0]  # no two cells differ in more than two coordinates


@pytest.mark.parametrize("distance", ["hamming", "l1"])
@pytest.mark.parametrize("lookup_cost", [samples.LOOKUP_COST, 0])  # zero: lookups wherever they are possible
@settings(max_examples=100, deadline=None)
@given(scored(), BLOCKS, st.sampled_from([0, 1, 1.5, 2, 3]), st.sampled_from([-np.inf, 0.0, 0.5, 3.0]))
def test_greedy_modes_match_the_plain_loop(distance, lookup_cost, sample, block, threshold, level) -> None:
    objects, scores = sample
    small = objects[(np.abs(objects) < 4).all(axis=1)] if lookup_cost == 0 else objects  # balls stay small
    scores = scores[: len(small)]
    expected = naive_modes(small, scores, threshold, level, distance)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(samples, "LOOKUP_COST", lookup_cost)
        found = greedy_modes(small, scores, level=level, threshold=threshold, distance=distance, block=block)
    assert found.tolist() == expected


@pytest.mark.parametrize("threshold", [0, 1, 2, 3])
@pytest.mark.parametrize("block", [50, 4096])
def test_greedy_modes_by_lookup_and_by_distance_agree(threshold: int, block: int, monkeypatch) -> None:
    """Large enough that both ways are taken, with several lookups per block."""
    rng = np.random.default_rng(threshold)
    objects, scores = rng.integers(-1, 3, (3000, 6)), rng.integers(0, 50, 3000)
    monkeypatch.setattr(samples, "LOOKUP_ROWS", 1000)
    found = {}
    for cost, kind in [(0, samples._ModesByLookup), (10**9, samples._ModesByDistance)]:
        monkeypatch.setattr(samples, "LOOKUP_COST", cost)
        assert isinstance(samples._mode_set(objects, threshold, "hamming", block), kind)
        found[cost] = greedy_modes(objects, scores, level=5, threshold=threshold, block=block).tolist()
    assert found[0] == found[10**9]
    assert found[0] != greedy_modes(objects, scores, level=5, threshold=threshold + 1).tolist()


def test_greedy_modes_of_a_million_in_flat_memory() -> None:
    """65,536 distinct 8-mers among a million; one unblocked distance matrix of those alone would take 17 GB."""
    rng = np.random.default_rng(0)
    objects, scores = rng.integers(0, 4, (1_000_000, 8)), rng.random(1_000_000)
    tracemalloc.start()
    try:
        modes = greedy_modes(objects, scores, level=0.0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 400e6
    gaps = samples.hamming(objects[modes], objects[modes])
    assert gaps[~np.eye(len(modes), dtype=bool)].min() == 3  # separated, and no farther than asked
    assert novelty(objects[:5000], objects[modes]).max() <= 2  # nothing left uncovered
    assert novelty(objects[:5000], objects[modes[:-100]]).max() > 2


# local_maxima, reference_modes


def test_local_maxima_by_hand() -> None:
    #                 00   01   10   11
    table = np.array([3.0, 1.0, 0.0, 2.0])
    assert local_maxima(table, 2, 2, top=1.0).tolist() == [[0, 0], [1, 1]]
    assert local_maxima(table, 2, 2, top=1.0, radius=2).tolist() == [[0, 0]]  # 11 sees 00 from two steps away
    assert local_maxima(table, 2, 2, top=0.25).tolist() == [[0, 0]]
    assert local_maxima(np.array([3.0, 1.0, 2.5, 2.0]), 2, 2, top=1.0).tolist() == [[0, 0]]  # now 10 beats 11
    assert local_maxima(np.ones(4), 2, 2, top=1e-12).tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]  # none is better


def test_local_maxima_read_the_first_token_as_most_significant() -> None:
    table = np.zeros(27)
    table[1 * 9 + 2 * 3 + 0] = 1.0
    assert local_maxima(table, 3, 3).tolist() == [[1, 2, 0]]


@quick
@given(st.data(), st.sampled_from([(2, 1), (2, 4), (3, 3), (4, 2), (1, 3)]), st.sampled_from([1, 2]))
def test_local_maxima_match_the_definition(data, shape: tuple[int, int], radius: int) -> None:
    vocab, length = shape
    table = data.draw(arrays(np.float64, vocab**length, elements=st.sampled_from([-np.inf, 0.0, 1.0, 2.0, 3.0])))
    top = data.draw(st.sampled_from([0.01, 0.25, 0.5, 1.0]))
    found = local_maxima(table, vocab, length, radius=radius, top=top)
    assert [tuple(x) for x in found.tolist()] == naive_maxima(table, vocab, length, radius, top)


def test_reference_modes_by_hand() -> None:
    maxima, objects = np.array([[0, 0, 0], [1, 1, 1], [2, 2, 2]]), np.array([[0, 0, 1], [0, 0, 1], [1, 0, 0]])
    assert reference_modes(objects, maxima) == 1
    assert reference_modes(objects, maxima, within=0) == 0
    assert reference_modes(objects, maxima, within=2) == 2
    assert reference_modes(objects, maxima, within=3) == 3
    assert reference_modes(objects[:0], maxima) == 0


@quick
@given(pairs(), BLOCKS, st.integers(0, 3))
def test_reference_modes_match_the_definition(pair, block: int, within: int) -> None:
    objects, maxima = pair
    expected = sum(any(naive_distance(x, m) <= within for x in objects) for m in maxima)
    assert reference_modes(objects, maxima, within=within, block=block) == expected


# arguments


@pytest.mark.parametrize("function", [unique_objects, top_k, lambda x, r: inspect.unwrap(greedy_modes)(x, r, level=0)])
def test_scored_objects_are_checked(function) -> None:
    objects, scores = np.array([[0, 1], [1, 0]]), np.array([1.0, 2.0])
    function(objects, scores)
    refuses("objects", function, objects.astype(float), scores)
    refuses("objects", function, objects[0], scores)
    refuses("objects", function, objects[:, :0], scores)
    refuses("scores", function, objects, scores[:1])
    refuses("scores", function, objects, scores[:, None])
    refuses("scores", function, objects, np.array([1.0, np.nan]))


def test_arguments_are_checked() -> None:
    objects, scores = np.array([[0, 1], [1, 0]]), np.array([1.0, 2.0])
    refuses("objects", top_k, objects[:0], scores[:0])
    refuses("k", top_k, objects, scores, k=0)
    refuses("objects", diversity, objects[0])
    for function, name in [(novelty, "known"), (reference_modes, "maxima")]:
        refuses(name, function, objects, objects[:0])
        refuses(name, function, objects, objects[:, :1])
        refuses("block", function, objects, objects, block=0)
    refuses("within", reference_modes, objects, objects, within=-1)


def test_arguments_of_greedy_modes_are_checked() -> None:
    objects, scores = np.array([[0, 1], [1, 0]]), np.array([1.0, 2.0])
    refuses("threshold", greedy_modes, objects, scores, level=0, threshold=-1)
    refuses("threshold", greedy_modes, objects, scores, level=0, threshold=float("nan"))
    refuses("level", greedy_modes, objects, scores, level=float("nan"))
    refuses("block", greedy_modes, objects, scores, level=0, block=0)
    refuses("distance", greedy_modes, objects, scores, level=0, distance="edit")


def test_arguments_of_local_maxima_are_checked() -> None:
    table = np.zeros(8)
    local_maxima(table, 2, 3)
    refuses("table", local_maxima, table, 3, 2)
    refuses("table", local_maxima, table.reshape(2, 4), 2, 3)
    refuses("table", local_maxima, np.full(8, np.nan), 2, 3)
    refuses("vocab", local_maxima, table, 0, 3)
    refuses("length", local_maxima, table, 2, 0)
    refuses("radius", local_maxima, table, 2, 3, radius=3)
    refuses("top", local_maxima, table, 2, 3, top=0)


def test_distances_have_the_names_the_signature_offers() -> None:
    choices = inspect.unwrap(greedy_modes).__annotations__["distance"].__args__
    assert set(samples.DISTANCES) == set(choices)


def test_empty_samples_have_empty_answers() -> None:
    objects, scores = np.zeros((0, 3), dtype=np.int64), np.zeros(0)
    assert unique_objects(objects, scores)[0].shape == (0, 3)
    assert novelty(objects, np.array([[0, 1, 2]])).shape == (0,)
    for distance in ("hamming", "l1"):
        assert greedy_modes(objects, scores, level=0, distance=distance).shape == (0,)
