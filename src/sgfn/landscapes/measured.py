"""A user's measurements as a landscape: exact where measured, a stated rule elsewhere."""

from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Bool, Float, Float32, Int
from torch import Tensor

from sgfn.config.tasks import TableUnseen
from sgfn.landscapes.base import Landscape
from sgfn.landscapes.measurements import Measurements

MULTIPLIERS = (0x9E3779B97F4A7C15, 6364136223846793005, 0xBF58476D1CE4E5B9)
"""Odd 64-bit numbers that mix well: the golden ratio's bits, and those of MMIX (Knuth, 1997, The Art of Computer
Programming 2) and of SplitMix (Steele et al., 2014, OOPSLA)."""
CELLS = 2**22
"""Numbers that one block of comparisons may hold."""
MODE_QUANTILE = 0.9


class Measured(Landscape):
    r"""The measured score $y_i$ of a measured row $x_i$; the rule named by `unseen` for every other row x.

    `lowest`: $\min_i y_i$. `nearest`: $\gamma^{d} \max_{i: d(x, x_i) = d} y_i$, where $d = \min_i d(x, x_i)$ is the
    Hamming distance of padded rows (blanks count as letters) and $\gamma$ is `decay`. Thus no unseen row beats the best
    measured one, and far from all of them there is nothing.

    >>> from pathlib import Path
    >>> table = Measurements(file=Path("a.csv"), alphabet="AC", sequences=["A", "CA"], scores=np.array([0.5, 2.0]))
    >>> rows = torch.tensor([[0, 2], [1, 0], [1, 1]])  # A, CA, CC
    >>> Measured(table, length=2, unseen="nearest").scores(rows).tolist()
    [0.5, 2.0, 1.0]
    """

    def __init__(self, measurements: Measurements, *, length: int, unseen: TableUnseen, decay: float = 0.5) -> None:
        if not 0.0 <= decay <= 1.0:
            raise ValueError(f"table.decay must lie in [0, 1], got {decay}")
        self.vocab = self.blank = len(measurements.alphabet)
        self.unseen, self.decay = UNSEEN[unseen], decay
        self.rows = tokens(measurements, length)
        self.table: Float32[Tensor, " N"] = torch.from_numpy(measurements.scores).float()
        self.weights = distinct_weights(self.rows)
        self.hashes, self.order = row_hash(self.rows, self.weights).sort()
        self.lowest, self.maximum = float(self.table.min()), float(self.table.max())
        self.mode_level = mode_level(self.table)

    def scores(self, objects: Int[Tensor, "*batch O"]) -> Float[Tensor, "*batch"]:
        """Look up, then fill in what was never measured."""
        rows = objects.reshape(-1, self.rows.shape[1])
        number, known = self.find(rows)
        return torch.where(known, self.table[number], self.unseen(self, rows)).reshape(objects.shape[:-1])

    def measured(self, objects: Int[Tensor, "*batch O"]) -> Bool[Tensor, "*batch"]:
        """Which objects are in the table."""
        return self.find(objects.reshape(-1, self.rows.shape[1]))[1].reshape(objects.shape[:-1])

    def offline_objects(self) -> Int[Tensor, "N O"]:
        """The measured rows, in the order of the file."""
        return self.rows

    def find(self, rows: Int[Tensor, "B L"]) -> tuple[Int[Tensor, " B"], Bool[Tensor, " B"]]:
        """Number of the one measured row that may equal each row, and whether it does: equal hashes prove nothing."""
        place = torch.searchsorted(self.hashes, row_hash(rows, self.weights)).clamp(max=self.hashes.shape[0] - 1)
        number = self.order[place]
        return number, (self.rows[number] == rows).all(-1)


def lowest(landscape: Measured, rows: Int[Tensor, "B L"]) -> Float32[Tensor, " B"]:
    """The worst that was measured."""
    return torch.full(rows.shape[:1], landscape.lowest, device=rows.device)


def nearest(landscape: Measured, rows: Int[Tensor, "B L"]) -> Float32[Tensor, " B"]:
    """The nearest measured score, less for each letter that differs; in blocks, so that memory stays flat."""
    length, symbols = rows.shape[1], landscape.vocab + 1
    block = max(1, min(int(CELLS**0.5), CELLS // (length * symbols)))
    known = list(zip(landscape.rows.split(block), landscape.table.split(block), strict=True))
    found = [best_agreement(part, known, symbols) for part in rows.split(block)]
    agreement, score = (torch.cat(parts) for parts in zip(*found, strict=True))
    return score * landscape.decay ** (length - agreement)


UNSEEN: dict[TableUnseen, Callable[[Measured, Tensor], Tensor]] = {"lowest": lowest, "nearest": nearest}


def best_agreement(
    rows: Int[Tensor, "B L"], known: list[tuple[Tensor, Tensor]], symbols: int
) -> tuple[Float32[Tensor, " B"], Float32[Tensor, " B"]]:
    """Most letters shared with a known row, and the highest score among the rows that share so many."""
    letters = one_hot(rows, symbols)
    most, score = torch.full_like(letters[:, 0], -1.0), torch.zeros_like(letters[:, 0])
    for others, values in known:
        shared = letters @ one_hot(others, symbols).T  # B N: sums of ones, exact in float32
        here = shared.amax(-1)
        top = torch.where(shared == here[:, None], values, -torch.inf).amax(-1)
        score = torch.where(here > most, top, torch.where(here == most, torch.maximum(score, top), score))
        most = torch.maximum(most, here)
    return most, score


def one_hot(rows: Int[Tensor, "B L"], symbols: int) -> Float32[Tensor, "B F"]:
    """Indicators of each letter at each position, side by side."""
    return (rows[..., None] == torch.arange(symbols, device=rows.device)).flatten(1).float()


def row_hash(rows: Int[Tensor, "B L"], weights: Int[Tensor, " L"]) -> Int[Tensor, " B"]:
    r"""Polynomial hash $\sum_i x_i m^i \bmod 2^{64}$; integers wrap around by themselves."""
    return (rows * weights).sum(-1)


def distinct_weights(rows: Int[Tensor, "N L"]) -> Int[Tensor, " L"]:
    """Powers of the first multiplier that gives each row a hash of its own."""
    for multiplier in MULTIPLIERS:
        powers = [pow(multiplier, i, 2**64) for i in range(1, rows.shape[1] + 1)]
        weights = torch.tensor([p - 2**64 * (p >= 2**63) for p in powers])  # as signed integers
        if row_hash(rows, weights).unique().shape[0] == rows.shape[0]:
            return weights
    raise ValueError("the measurements hold a sequence twice; merge them with --table.duplicates mean")


def tokens(measurements: Measurements, length: int) -> Int[Tensor, "N {length}"]:
    """Padded rows of the measured sequences."""
    if length < measurements.max_length:
        longest = measurements.max_length
        raise ValueError(f"{measurements.file}: the longest sequence has {longest} letters, the task only {length}")
    code = {letter: i for i, letter in enumerate(measurements.alphabet)}
    padding = [len(code)] * length
    rows = [([code[letter] for letter in sequence] + padding)[:length] for sequence in measurements.sequences]
    return torch.tensor(rows)


def mode_level(table: Float32[Tensor, " N"]) -> float:
    """A measured score that a tenth of the table reaches, above the lowest: else whatever is unseen were a mode."""
    values = table.numpy()
    above = values[values > values.min()]
    level = np.quantile(values, MODE_QUANTILE, method="higher")
    return float(max(level, above.min()) if above.size else level)
