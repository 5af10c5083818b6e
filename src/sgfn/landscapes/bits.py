r"""Bit strings near a hidden set of modes: the bit-sequence task of the trajectory-balance paper.

A string of n bits is written k bits at a time, so that there are n/k tokens out of $2^k$. Each mode is a concatenation
of n/8 bytes drawn uniformly from five words; with n = 120 there are 60 modes.

What was checked, and where. Public code of QGFN (Lau et al. 2024, NeurIPS; repository yunglau/QGFN), said there to
follow Malkin et al.: the reward exp(1 - d/n) with d the Levenshtein distance of the *bit* strings, exponent 3, and a
mode counts as found when a sample lies within 28 of it (n = 120). GFNOrg/Chunk-GFN, after the authors' own script: the
same d and the five words. Later code is not comparable: d-tiapkin/gflownet-rl (Tiapkin et al. 2024, AISTATS), gfnx and
torchgfn use exp(-beta d) with the Hamming distance; there a mode is found within 30.

Modes lie near each other: of the 60 drawn with seed 0, two are 18 edits apart, and within 28 edits of a mode there are
2.2 modes on average, itself included. So a count of modes found is read beside the mean reward.

References: Malkin et al. (2022), Trajectory balance: improved credit assignment in GFlowNets, NeurIPS. Pan et al.
(2023), Stochastic generative flow networks, UAI (the same task under noise).
"""

import math
from collections.abc import Callable
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.config.checks import in_range, one_of, require
from sgfn.landscapes.base import Landscape

Distance = Literal["edit", "hamming"]

WORDS = ("00000000", "11111111", "11110000", "00001111", "00111100")
SYMBOLS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+/"
BRAILLE = "".join(chr(0x2800 + byte) for byte in range(256))
"""A printable sign for every byte: for k = 7 and 8 there are more tokens than letters."""


class Bits(Landscape):
    r"""Reward by the distance to the nearest mode; the maximum e is reached exactly at the modes.

    .. math:: R(x) = \exp\big(1 - \min_{y \in M} d(x, y) / n\big)

    Reference: Malkin et al. (2022), Trajectory balance, NeurIPS.

    >>> bits = Bits(k=4)
    >>> bits.tokens, bits.vocab, [round(score, 4) for score in bits.scores(bits.modes[:2]).tolist()]
    (30, 16, [2.7183, 2.7183])
    """

    traceable = True
    modes: Int[Tensor, "M O"]
    """The hidden modes, as tokens."""
    distance: Distance
    within: int
    """A mode counts as found when an object lies within this distance: 28 of 120 bits by edits, 30 by flips."""

    def __init__(
        self, *, length: int = 120, k: int = 4, modes: int = 60, seed: int = 0, distance: Distance = "edit"
    ) -> None:
        check(length, k, modes, distance)
        self.length, self.k, self.distance = length, k, distance
        self.tokens, self.vocab = length // k, 2**k
        self.alphabet = (SYMBOLS if k <= 6 else BRAILLE)[: self.vocab]
        self.mode_bits = draw_modes(length // 8, modes, seed)
        self.modes = self.tokens_of(self.mode_bits)
        self.within = 28 * length // 120 if distance == "edit" else 30 * length // 120
        # Between two possible scores, so that rounding cannot decide whether a mode counts.
        self.maximum, self.mode_level = math.e, math.exp(1 - (self.within + 0.5) / length)

    def scores(self, objects: Int[Tensor, "*batch O"]) -> Float[Tensor, "*batch"]:
        """The published reward of each object."""
        return self.reward(self.distances(objects))

    def reward(self, distances: Int[Tensor, "*batch M"]) -> Float[Tensor, "*batch"]:
        """Reward of objects with given distances to the modes."""
        return torch.exp(1 - distances.amin(-1) / self.length)

    def distances(self, objects: Int[Tensor, "*batch O"]) -> Int[Tensor, "*batch M"]:
        """Distance of each object to each mode, in bits."""
        *batch, written = objects.shape
        require(written == self.tokens, "objects", f"hold {self.tokens} tokens of {self.k} bits", written)
        flat = self.bits_of(objects).reshape(math.prod(batch), self.length)
        return DISTANCES[self.distance](flat, self.mode_bits).reshape(*batch, len(self.modes))

    def modes_found(self, objects: Int[Tensor, "*batch O"], within: int | None = None) -> Int[Tensor, ""]:
        """Number of modes that have an object within a distance, by default `self.within`."""
        near = self.distances(objects) <= (self.within if within is None else within)
        return near.reshape(math.prod(near.shape[:-1]), len(self.modes)).any(0).sum()

    def modes_known(self, objects: Int[Tensor, "N O"]) -> tuple[int, int] | None:
        """Number of modes found by the objects, and number of modes in all."""
        return int(self.modes_found(objects)), len(self.modes)

    def bits_of(self, objects: Int[Tensor, "*batch O"]) -> Int[Tensor, "*batch N"]:
        """Bits of each object: each token as k bits, most significant first."""
        shift = torch.arange(self.k - 1, -1, -1, device=objects.device)
        return ((objects[..., None] >> shift) & 1).flatten(-2)

    def tokens_of(self, bits: Int[Tensor, "*batch N"]) -> Int[Tensor, "*batch O"]:
        """Tokens of bit strings: every k bits as one token."""
        shift = torch.arange(self.k - 1, -1, -1, device=bits.device)
        return (bits.unflatten(-1, (-1, self.k)) << shift).sum(-1)

    def bit_strings(self, objects: Int[Tensor, "B O"]) -> list[str]:
        """Objects as text of zeros and ones, whatever k is."""
        return ["".join(map(str, row)) for row in self.bits_of(objects).tolist()]


def check(length: int, k: int, modes: int, distance: str) -> None:
    """Raise unless tokens, words and modes fit together."""
    in_range("length", length, 8)
    require(length % 8 == 0, "length", "be a multiple of 8 (modes are built of bytes)", length)
    in_range("k", k, 1, 8)
    require(length % k == 0, "k", f"divide length ({length})", k)
    in_range("modes", modes, 1)
    most = len(WORDS) ** (length // 8)
    require(modes <= most, "modes", f"be at most {most} ({len(WORDS)} words, {length // 8} per string)", modes)
    one_of("distance", distance, DISTANCES)


def draw_modes(words: int, count: int, seed: int) -> Int[Tensor, "M N"]:
    """Distinct bit strings, each a concatenation of uniformly drawn words."""
    generator = torch.Generator().manual_seed(seed)
    drawn: dict[tuple[int, ...], None] = {}
    while len(drawn) < count:
        drawn[tuple(torch.randint(len(WORDS), (words,), generator=generator).tolist())] = None
    table = torch.tensor([[int(bit) for bit in word] for word in WORDS])
    return table[torch.tensor(list(drawn))].flatten(1)


def hamming_distances(texts: Int[Tensor, "B N"], patterns: Int[Tensor, "M N"]) -> Int[Tensor, "B M"]:
    """Number of bits in which each text differs from each pattern."""
    return (texts[:, None] != patterns).sum(-1)


PACKED = 60
"""Bits of a pattern in each 64-bit word: few enough that a sum of two words with carry stays positive."""
FULL = (1 << PACKED) - 1


def edit_distances(texts: Int[Tensor, "B N"], patterns: Int[Tensor, "M K"]) -> Int[Tensor, "B M"]:
    r"""Levenshtein distance of every text to every pattern, one bit of a machine word per cell of the table.

    Neighbours in a column of the table D differ by -1, 0 or 1; two bit vectors hold where it rises and where it falls,
    and a whole column follows from the one before in a fixed number of word operations. At the end
    $D(K, N) = N + \#rises - \#falls$. Exact, and without a loop over texts or patterns.

    References: Myers (1999), A fast bit-vector algorithm for approximate string matching, J. ACM 46:395; the form for
    whole strings: Hyyrö (2003), A bit-vector algorithm for computing Levenshtein and Damerau edit distances, NJC 10:29.

    >>> edit_distances(torch.tensor([[0, 1, 0, 1]]), torch.tensor([[1, 0, 1, 0], [0, 0, 0, 0]])).tolist()
    [[2, 2]]
    """
    words, used = pack(patterns)[:, None], pack(torch.ones_like(patterns[:1]))[:, None]  # W 1 M, W 1 1
    rises = torch.full((words.shape[0], texts.shape[0], patterns.shape[0]), FULL, device=texts.device)  # W B M
    falls = torch.zeros_like(rises)
    for column in (texts - 1).unbind(-1):  # 0 for a one, all bits set for a zero
        rises, falls = _next_column(words ^ column[:, None], rises, falls)
    return texts.shape[-1] + (ones(rises & used) - ones(falls & used)).sum(0)


def _next_column(equal: Tensor, rises: Tensor, falls: Tensor) -> tuple[Tensor, Tensor]:
    """One step of Hyyrö's recurrence; `equal` marks where the pattern has the text's bit."""
    total = (equal & rises).add_(rises)
    for word in range(1, total.shape[0]):
        total[word] += total[word - 1] >> PACKED  # the carry of a sum longer than a word
    diagonal = total.bitwise_xor_(rises).bitwise_or_(equal).bitwise_or_(falls)  # D(i, j) = D(i-1, j-1)
    right = _shift_in((diagonal | rises).bitwise_not_().bitwise_or_(falls), 1)  # D(i, j) = D(i, j-1) + 1
    left = _shift_in(diagonal & rises, 0)  # D(i, j) = D(i, j-1) - 1
    return (diagonal | right).bitwise_not_().bitwise_or_(left).bitwise_and_(FULL), diagonal.bitwise_and_(right)


def _shift_in(words: Tensor, first: int) -> Tensor:
    """Words with all bits one place up, across the borders of words; `first` enters as the lowest bit."""
    shifted = words << 1
    shifted[1:] |= (words[:-1] >> (PACKED - 1)) & 1
    shifted[0] |= first
    return shifted


def pack(bits: Int[Tensor, "M K"]) -> Int[Tensor, "W M"]:
    """Bits as integers of `PACKED` bits each, lowest first."""
    padded = F.pad(bits, (0, -bits.shape[1] % PACKED)).unflatten(1, (-1, PACKED))  # M W 60
    return (padded << torch.arange(PACKED, device=bits.device)).sum(-1).T


def ones(words: Int[Tensor, "*shape"]) -> Int[Tensor, "*shape"]:
    """Number of set bits in each word, by adding neighbouring bits in parallel."""
    words = words - ((words >> 1) & 0x5555555555555555)
    words = (words & 0x3333333333333333) + ((words >> 2) & 0x3333333333333333)
    words = (words + (words >> 4)) & 0x0F0F0F0F0F0F0F0F
    return (words * 0x0101010101010101 >> 56) & 0xFF


DISTANCES: dict[Distance, Callable[[Tensor, Tensor], Tensor]] = {"edit": edit_distances, "hamming": hamming_distances}
