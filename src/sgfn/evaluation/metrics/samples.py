r"""Metrics of a set of samples: best scores, diversity, novelty, modes.

Objects are rows of an integer array, tokens of a sequence or coordinates of a grid cell. Sequences of different lengths
are padded with a pad id that counts as one more symbol, so that every Hamming distance here is the one between padded
rows: two sequences that differ only by a missing last token are at distance one.

References: Jain et al. (2022), Biological Sequence Design with GFlowNets, ICML (top-k performance, diversity, novelty);
Bengio et al. (2021), Flow Network based Generative Models, NeurIPS (modes counted when separated from each other).
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations, product
from math import ceil, comb
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Integer, Real
from scipy.spatial.distance import cdist

Distance = Callable[[np.ndarray, np.ndarray], np.ndarray]

BLOCK = 2048
"""Rows compared at once: a tile of BLOCK x BLOCK float32 distances takes 16 MiB, whatever the number of rows."""

ONE_HOT_TOKENS = 64
"""Most distinct tokens for which Hamming distances are products of one-hot rows; above it positions are compared."""

LOOKUP_COST = 16
"""Time to look up one neighbour of a mode, in distances computed: it decides which way is taken, never the answer."""

LOOKUP_ROWS = 2**20
"""Number of neighbours looked up at once: 8 MiB of keys."""


@dataclass(frozen=True)
class TopK:
    """Mean and median score of the best `count` unique objects; `count` is below k when there were fewer."""

    mean: float
    median: float
    count: int


def unique_objects(
    objects: Integer[np.ndarray, "N L"], scores: Real[np.ndarray, " N"]
) -> tuple[Integer[np.ndarray, "U L"], Real[np.ndarray, " U"]]:
    """Distinct objects with the score of their first occurrence, best first and ties in lexicographic order."""
    _check_scored(objects, scores)
    order = _ranking(objects, scores)
    return objects[order], scores[order]


def top_k(objects: Integer[np.ndarray, "N L"], scores: Real[np.ndarray, " N"], k: int = 100) -> TopK:
    r"""Score of the best k unique objects, $\frac1k \sum_{i \le k} r_{(i)}$, and its median (Jain et al., 2022)."""
    _check_scored(objects, scores)
    _check_positive(k=k)
    if len(objects) == 0:
        raise ValueError("objects must hold at least one row: the mean of no score is undefined")
    best = scores[_ranking(objects, scores)[:k]].astype(np.float64)
    return TopK(mean=float(best.mean()), median=float(np.median(best)), count=len(best))


def diversity(objects: Integer[np.ndarray, "N L"]) -> float:
    r"""Mean Hamming distance over all unordered pairs of rows, 0 for fewer than two rows (Jain et al., 2022).

    .. math:: \binom{N}{2}^{-1} \sum_{i<j} d(x_i, x_j) = \frac{\sum_l \big(N^2 - \sum_v c_{lv}^2\big)}{N (N - 1)}

    with $c_{lv}$ the number of rows that hold token v at position l. Repeated rows are pairs at distance zero.
    """
    _check_objects(objects)
    n = len(objects)
    if n < 2:
        return 0.0
    same = sum(int(np.square(np.unique(column, return_counts=True)[1]).sum()) for column in objects.T)
    return (objects.shape[1] * n * n - same) / (n * (n - 1))


def novelty(
    objects: Integer[np.ndarray, "N L"], known: Integer[np.ndarray, "M K"], *, block: int = BLOCK
) -> Float[np.ndarray, " N"]:
    r"""Hamming distance of each object to the nearest known one, $\min_j d(x_i, s_j)$ (Jain et al., 2022)."""
    _check_pair(objects, known, "known")
    _check_positive(block=block)
    objects, known = _narrow(objects), _narrow(known)
    nearest = np.full(len(objects), np.inf)
    for rows in _slices(len(objects), block):
        for others in _slices(len(known), block):
            gaps = hamming(objects[rows], known[others]).min(axis=1)
            np.minimum(nearest[rows], gaps, out=nearest[rows])
    return nearest


def greedy_modes(
    objects: Integer[np.ndarray, "N L"],
    scores: Real[np.ndarray, " N"],
    *,
    level: int | float,
    threshold: int | float = 2,
    distance: Literal["hamming", "l1"] = "hamming",
    block: int = BLOCK,
) -> Integer[np.ndarray, " M"]:
    r"""Indices of separated high-scoring objects, in the order found (in the manner of Bengio et al., 2021).

    Unique objects with $r \ge$ `level` are visited best first; x starts a mode when $d(x, m) >$ `threshold` for every
    mode m so far. The block size changes time and memory, never the answer.
    """
    _check_scored(objects, scores)
    _check_modes(level, threshold, distance, block)
    order = _ranking(objects, scores)
    order = order[scores[order] >= level]
    candidates, between = _narrow(objects[order]), DISTANCES[distance]
    modes, found = _mode_set(candidates, threshold, distance, block), np.zeros(len(order), dtype=bool)
    for rows in _slices(len(order), block):
        far = modes.far(rows)
        new = far[_separate(between(candidates[far], candidates[far]) <= threshold)]
        modes.add(new)
        found[new] = True
    return order[found]


def local_maxima(
    table: Real[np.ndarray, " S"], vocab: int, length: int, *, radius: int = 1, top: int | float = 0.01
) -> Integer[np.ndarray, "M L"]:
    r"""Sequences in the top fraction with no strictly better one within Hamming distance `radius`, best first.

    .. math:: \{x : r(x) \ge r_{(k)}, \; r(x) \ge r(y) \; \forall y : d(x, y) \le \text{radius}\}, \quad
        k = \lceil \text{top} \, V^L \rceil

    `table` holds every score, indexed by the sequence read as a base-V number with its first token most significant.
    """
    _check_table(table, vocab, length, radius, top)
    grid = table.reshape([vocab] * length)
    best = grid.copy()
    for axes in combinations(range(length), min(radius, length)):  # varying `radius` positions spans the whole ball
        np.maximum(best, grid.max(axis=axes, keepdims=True), out=best)
    kept = max(1, ceil(top * table.size - 1e-9))  # the slack absorbs products such as 0.07 * 100 > 7
    level = np.partition(table, -kept)[-kept]
    index = np.flatnonzero((table >= level) & (grid >= best).ravel())
    index = index[_descending(table[index])]
    return np.stack(np.unravel_index(index, grid.shape), axis=1)


def reference_modes(
    objects: Integer[np.ndarray, "N L"],
    maxima: Integer[np.ndarray, "M K"],
    *,
    within: int | float = 1,
    block: int = BLOCK,
) -> int:
    r"""Number of known maxima with an object nearby, $\sum_m 1[\min_i d(x_i, m) \le \text{within}]$ (Hamming)."""
    _check_pair(objects, maxima, "maxima")
    _check_positive(block=block)
    if not within >= 0:
        raise ValueError(f"within must be at least 0, got {within}")
    objects, maxima = _narrow(objects), _narrow(maxima)
    missed = (len(_far_from_all(maxima[rows], objects, within, hamming, block)) for rows in _slices(len(maxima), block))
    return len(maxima) - sum(missed)


def hamming(left: Integer[np.ndarray, "N L"], right: Integer[np.ndarray, "M L"]) -> Float[np.ndarray, "N M"]:
    r"""Number of positions that differ: $d(x, y) = L - \langle \text{onehot}(x), \text{onehot}(y) \rangle$."""
    tokens = np.unique(right)  # a token that is absent on the right matches nothing there
    if len(tokens) <= ONE_HOT_TOKENS:
        matches = _one_hot(left, tokens) @ _one_hot(right, tokens).T  # small integers: exact in float32
        return np.subtract(left.shape[1], matches, out=matches)
    gaps = np.zeros((len(left), len(right)), dtype=np.float32)
    for x, y in zip(left.T, right.T, strict=True):
        gaps += x[:, None] != y[None, :]
    return gaps


def l1(left: Integer[np.ndarray, "N L"], right: Integer[np.ndarray, "M L"]) -> Float[np.ndarray, "N M"]:
    r"""Number of unit steps between grid cells, $d(x, y) = \sum_l |x_l - y_l|$; exact below $2^{53}$."""
    return cdist(left.astype(np.float64), right.astype(np.float64), metric="cityblock")


DISTANCES: dict[str, Distance] = {"hamming": hamming, "l1": l1}


def _one_hot(rows: np.ndarray, tokens: np.ndarray) -> np.ndarray:
    return (rows[:, :, None] == tokens).reshape(len(rows), rows.shape[1] * len(tokens)).astype(np.float32)


class _ModesByDistance:
    """The modes found so far; new candidates are compared with all of them, tile by tile."""

    def __init__(self, candidates: np.ndarray, threshold: int | float, distance: Distance, block: int) -> None:
        self.candidates, self.modes = candidates, candidates[:0]
        self.threshold, self.distance, self.block = threshold, distance, block

    def far(self, rows: slice) -> np.ndarray:
        members = self.candidates[rows]
        return rows.start + _far_from_all(members, self.modes, self.threshold, self.distance, self.block)

    def add(self, new: np.ndarray) -> None:
        self.modes = np.concatenate([self.modes, self.candidates[new]])


class _ModesByLookup:
    r"""The candidates not yet within reach of a mode, found by listing each new mode's neighbours.

    A mode's Hamming ball has at most $\binom{L}{r} V^r$ sequences; as base-V numbers they are searched among the
    candidates.
    """

    def __init__(self, candidates: np.ndarray, radius: int, vocab: int) -> None:
        length = candidates.shape[1]
        self.candidates, self.low = candidates, int(candidates.min())
        self.weights = vocab ** np.arange(length)[::-1]
        self.changed = np.array(list(combinations(range(length), radius)), dtype=np.int64)  # C r
        written = np.array(list(product(range(vocab), repeat=radius)), dtype=np.int64)  # V^r r
        self.written = self.weights[self.changed] @ written.T  # C V^r
        keys = (candidates.astype(np.int64) - self.low) @ self.weights
        self.owner = np.argsort(keys)
        self.keys = keys[self.owner]
        self.struck = np.zeros(len(keys), dtype=bool)

    def far(self, rows: slice) -> np.ndarray:
        return rows.start + np.flatnonzero(~self.struck[rows])

    def add(self, new: np.ndarray) -> None:
        for part in _slices(len(new), max(1, LOOKUP_ROWS // self.written.size)):
            ball = np.sort(self._ball(new[part]))  # sorted queries stay in cache
            place = np.searchsorted(self.keys, ball).clip(max=len(self.keys) - 1)
            self.struck[self.owner[place[self.keys[place] == ball]]] = True

    def _ball(self, new: np.ndarray) -> np.ndarray:
        """All ways to rewrite `radius` positions; writing the old token back reaches the smaller distances."""
        digits = self.candidates[new].astype(np.int64) - self.low
        erased = (digits[:, self.changed] * self.weights[self.changed]).sum(axis=2)  # N C
        kept = (digits @ self.weights)[:, None] - erased
        return (kept[:, :, None] + self.written).ravel()


def _mode_set(
    candidates: np.ndarray, threshold: int | float, distance: str, block: int
) -> _ModesByDistance | _ModesByLookup:
    """The faster of two ways: lookups where a mode has few neighbours and there are many candidates, else distances."""
    if distance == "hamming" and len(candidates) and threshold < (length := candidates.shape[1]):
        radius, vocab = int(threshold), int(candidates.max()) - int(candidates.min()) + 1
        lookups = comb(length, radius) * vocab**radius
        if vocab**length < 2**62 and lookups * LOOKUP_COST <= len(candidates):
            return _ModesByLookup(candidates, radius, vocab)
    return _ModesByDistance(candidates, threshold, DISTANCES[distance], block)


def _far_from_all(
    rows: np.ndarray, others: np.ndarray, threshold: int | float, distance: Distance, block: int
) -> Integer[np.ndarray, " F"]:
    """Positions of the rows farther than `threshold` from all others; a row is dropped at its first close neighbour."""
    far = np.arange(len(rows))
    for tile in _slices(len(others), block):
        if len(far) == 0:
            break
        far = far[distance(rows[far], others[tile]).min(axis=1) > threshold]
    return far


def _separate(near: Bool[np.ndarray, "N N"]) -> list[int]:
    """Rows kept in order of appearance, each unless it is near one that was kept before."""
    kept, ruled_out = [], np.zeros(len(near), dtype=bool)
    for i, neighbours in enumerate(near):
        if not ruled_out[i]:
            kept.append(i)
            ruled_out |= neighbours
    return kept


def _ranking(objects: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """First index of each distinct row, by score descending, then by row."""
    first = np.unique(_row_keys(objects), return_index=True)[1]
    return first[_descending(scores[first])]


def _descending(scores: np.ndarray) -> np.ndarray:
    """Stable order from high to low, through ranks: they can be negated where unsigned scores cannot."""
    ranks = np.unique(scores, return_inverse=True)[1]
    return np.argsort(-ranks, kind="stable")


def _row_keys(objects: np.ndarray) -> np.ndarray:
    """One integer per row, equal for equal rows and in the same order: its digits are the columns.

    When the next digit would overflow, keys are replaced by their ranks, which is exact for any width; a hash is not.
    """
    keys, span = np.zeros(len(objects), dtype=np.int64), 1
    for column in objects.T if len(objects) else []:
        digit, base = _digits(column)
        if span * base > 2**62:
            keys = np.unique(keys, return_inverse=True)[1]
            span = int(keys.max()) + 1
        keys, span = keys * base + digit, span * base
    return keys


def _digits(column: np.ndarray) -> tuple[np.ndarray, int]:
    low, high = int(column.min()), int(column.max())
    if low >= -(2**30) and high < 2**30:
        return column.astype(np.int64) - low, high - low + 1
    ranks = np.unique(column, return_inverse=True)[1]
    return ranks, int(ranks.max()) + 1


def _narrow(objects: np.ndarray) -> np.ndarray:
    """The same values in the smallest integer dtype that holds them, which makes comparisons read less memory."""
    low, high = (int(objects.min()), int(objects.max())) if objects.size else (0, 0)
    for dtype in (np.uint8, np.int8, np.int16, np.int32):
        if np.iinfo(dtype).min <= low and high <= np.iinfo(dtype).max:
            return objects.astype(dtype, copy=False)
    return objects


def _slices(n: int, block: int) -> list[slice]:
    return [slice(start, min(start + block, n)) for start in range(0, n, block)]


def _check_objects(objects: np.ndarray, name: str = "objects") -> None:
    if objects.ndim != 2 or objects.shape[1] == 0 or objects.dtype.kind not in "iu":
        raise ValueError(f"{name} must be integers [N, L] with L >= 1, got {objects.dtype} {list(objects.shape)}")


def _check_scored(objects: np.ndarray, scores: np.ndarray) -> None:
    _check_objects(objects)
    if scores.shape != (len(objects),):
        raise ValueError(f"scores must hold one value per object, got {list(scores.shape)} for {len(objects)} objects")
    if np.isnan(scores).any():
        raise ValueError(f"scores must not be NaN, got {int(np.isnan(scores).sum())} NaN of {len(scores)}")


def _check_pair(objects: np.ndarray, others: np.ndarray, name: str) -> None:
    _check_objects(objects)
    _check_objects(others, name)
    if len(others) == 0:
        raise ValueError(f"{name} must hold at least one row")
    if objects.shape[1] != others.shape[1]:
        raise ValueError(f"{name} must be as wide as objects, got {others.shape[1]} and {objects.shape[1]}")


def _check_positive(**values: int) -> None:
    for name, value in values.items():
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")


def _check_modes(level: int | float, threshold: int | float, distance: str, block: int) -> None:
    _check_positive(block=block)
    if np.isnan(level):
        raise ValueError("level must not be NaN")
    if not threshold >= 0:
        raise ValueError(f"threshold must be at least 0, got {threshold}")
    if distance not in DISTANCES:
        raise ValueError(f"distance must be one of {sorted(DISTANCES)}, got {distance!r}")


def _check_table(table: np.ndarray, vocab: int, length: int, radius: int, top: int | float) -> None:
    _check_positive(vocab=vocab, length=length)
    if table.shape != (vocab**length,):
        raise ValueError(f"table must hold vocab**length = {vocab**length} scores, got {list(table.shape)}")
    if np.isnan(table).any():
        raise ValueError(f"table must not be NaN, got {int(np.isnan(table).sum())} NaN of {table.size}")
    if radius not in (1, 2):
        raise ValueError(f"radius must be 1 or 2, got {radius}")
    if not 0 < top <= 1:
        raise ValueError(f"top must lie in (0, 1], got {top}")
