"""Landscapes from a user's measurements: the measured score where there is one, a stated rule elsewhere."""

import math
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Float32, Float64, Int
from torch import Tensor

from sgfn.landscapes.base import Landscape
from sgfn.landscapes.measurements import Measurements, columns_not_read
from sgfn.landscapes.proxies import Proxy
from sgfn.landscapes.proxies.files import FIELD as PROXY_FIELD
from sgfn.landscapes.proxies.files import write_proxy
from sgfn.landscapes.proxies.honesty import ToldLaw
from sgfn.landscapes.transforms import ScoreTransform

MULTIPLIERS = (0x9E3779B97F4A7C15, 6364136223846793005, 0xBF58476D1CE4E5B9)
"""Odd 64-bit numbers that mix well: the golden ratio's bits, and those of MMIX (Knuth, 1997, The Art of Computer
Programming 2) and of SplitMix (Steele et al., 2014, OOPSLA)."""
CELLS = 2**22
"""Most numbers in one block of comparisons, which bounds memory."""
MODE_QUANTILE = 0.9
Rule = Literal["proxy", "nearest", "lowest"]


class MeasuredLandscape(Landscape):
    r"""The measured score $y_i$ of a measured row $x_i$; for every other row x the rule named by `unseen`.

    `proxy`: what a fitted proxy expects, zero where that is below; its maximum is not known. `lowest`: $\min_i y_i$.
    `nearest`: $\gamma^{d} \max_{i: d(x, x_i) = d} y_i$, where $d = \min_i d(x, x_i)$ is the Hamming distance of padded
    rows (blanks count as letters) and $\gamma$ is `decay`. So no unseen row beats the best measured one, and scores
    fall to zero far from all of them.

    >>> from pathlib import Path
    >>> table = Measurements(file=Path("a.csv"), alphabet="AC", sequences=["A", "CA"], scores=np.array([0.5, 2.0]))
    >>> rows = torch.tensor([[0, 2], [1, 0], [1, 1]])  # A, CA, CC
    >>> MeasuredLandscape(table, length=2, unseen="nearest").scores(rows).tolist()
    [0.5, 2.0, 1.0]
    """

    def __init__(
        self,
        measurements: Measurements,
        *,
        length: int,
        unseen: Rule,
        decay: float = 0.5,
        proxy: Proxy | None = None,
    ) -> None:
        if not 0.0 <= decay <= 1.0:
            raise ValueError(f"table.decay must lie in [0, 1], got {decay}")
        if unseen == "proxy" and proxy is None:
            raise ValueError("unseen 'proxy' needs a proxy: fit one with sgfn.landscapes.proxies.fit_proxy")
        self.proxy = proxy if unseen == "proxy" else None
        own = self.proxy is not None and ":" in self.proxy.kind  # somebody's function of strings
        self.on_host = own or (self.proxy is not None and self.proxy.model.on_host)
        self.vocab = self.blank = len(measurements.alphabet)
        self.unseen, self.decay = UNSEEN[unseen], decay
        self.rows = tokens(measurements, length)
        self.table: Float32[Tensor, " N"] = torch.from_numpy(measurements.values).float()
        self.weights = distinct_weights(self.rows)
        self.hashes, self.order = row_hash(self.rows, self.weights).sort()
        self.lowest, self.highest = float(self.table.min()), float(self.table.max())
        self.maximum = self.highest if self.proxy is None else math.inf
        self.mode_level = mode_level(measurements.values)
        self.measured_scores: Float32[Tensor, " N"] = torch.from_numpy(measurements.scores).float()
        self.score_transform = measurements.transform
        ignored = columns_not_read(
            measurements.file, measurements.ignored, "--table.sd-column" if measurements.sd is None else None
        )
        notice = "; ".join(filter(None, (measurements.notice, ignored)))
        self.data_notice = f"{measurements.file}: {notice}" if notice else ""

    def scores(self, objects: Int[Tensor, "*batch O"]) -> Float[Tensor, "*batch"]:
        """Score of each object: measured, or by the rule for objects that were not."""
        rows = objects.reshape(-1, self.rows.shape[1])
        number, known = self.find(rows)
        return torch.where(known, self.table[number], self.unseen(self, rows)).reshape(objects.shape[:-1])

    def told(self, objects: Int[Tensor, "*batch O"], scores: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """Scores in the units of the table; what was measured as it was measured, to the last digit."""
        if self.score_transform == ScoreTransform():
            return scores
        number, known = self.find(objects.reshape(-1, self.rows.shape[1]))
        shown = torch.where(
            known, self.measured_scores[number], super().told(objects, scores).reshape(-1).to(known.device)
        )
        return shown.reshape(scores.shape).to(scores)

    def told_of_orders(
        self, objects: Int[Tensor, "*batch O"], scores: Float[Tensor, "*batch"]
    ) -> Float[Tensor, "*batch"]:
        """As `told`, and half of what the proxy predicts beyond its highest prediction of a measured row."""
        if self.law is None:
            return self.told(objects, scores)
        known = self.measured(objects).to(scores.device)
        return self.told(objects, torch.where(known, scores, self.law.mean(scores)))

    def uncertainty(self, objects: Int[Tensor, "*batch O"]) -> Float[Tensor, "*batch"]:
        """Standard deviation of what the proxy predicts; zero of what was measured, and by the other rules."""
        if self.proxy is None:
            return super().uncertainty(objects)
        rows = objects.reshape(-1, self.rows.shape[1])
        sd = self.proxy.predict_tokens(rows)[1].float()
        return sd.masked_fill(self.find(rows)[1], 0.0).reshape(objects.shape[:-1])

    def measured(self, objects: Int[Tensor, "*batch O"]) -> Bool[Tensor, "*batch"]:
        """Which objects were measured."""
        return self.find(objects.reshape(-1, self.rows.shape[1]))[1].reshape(objects.shape[:-1])

    def to(self, device: torch.device) -> None:
        """Move the measurements and the proxy to a device."""
        super().to(device)
        if self.proxy is not None:
            self.proxy.to(device)

    def fitted_files(self, folder: Path) -> dict[str, Path]:
        """Write the proxy, so that a run need not fit it again; one of somebody's code is fitted again."""
        if self.proxy is None or ":" in self.proxy.kind:
            return {}
        write_proxy(self.proxy, path := folder / "proxy.safetensors")
        return {PROXY_FIELD: path}

    @cached_property
    def law(self) -> ToldLaw | None:
        """How the proxy's predictions of orders are told; None without one."""
        return None if self.proxy is None else ToldLaw.of(self.proxy)

    def offline_objects(self) -> Int[Tensor, "N O"]:
        """The measured rows, in the order of the file."""
        return self.rows

    def find(self, rows: Int[Tensor, "B L"]) -> tuple[Int[Tensor, " B"], Bool[Tensor, " B"]]:
        """Number of the measured row with each row's hash, and whether the two rows are equal; where the table lies."""
        rows = rows.to(self.rows.device)
        place = torch.searchsorted(self.hashes, row_hash(rows, self.weights)).clamp(max=self.hashes.shape[0] - 1)
        number = self.order[place]
        return number, (self.rows[number] == rows).all(-1)


def lowest(landscape: MeasuredLandscape, rows: Int[Tensor, "B L"]) -> Float32[Tensor, " B"]:
    """The lowest measured score, for every row."""
    return torch.full(rows.shape[:1], landscape.lowest, device=rows.device)


def nearest(landscape: MeasuredLandscape, rows: Int[Tensor, "B L"]) -> Float32[Tensor, " B"]:
    """Score of the nearest measured row, times `decay` for each letter that differs; in blocks, to bound memory."""
    length, symbols = rows.shape[1], landscape.vocab + 1
    block = max(1, min(int(CELLS**0.5), CELLS // (length * symbols)))
    known = list(zip(landscape.rows.split(block), landscape.table.split(block), strict=True))
    found = [best_agreement(part, known, symbols) for part in rows.split(block)]
    agreement, score = (torch.cat(parts) for parts in zip(*found, strict=True))
    return score * landscape.decay ** (length - agreement)


def predicted(landscape: MeasuredLandscape, rows: Int[Tensor, "B L"]) -> Float32[Tensor, " B"]:
    """What the proxy expects, and zero where that is below."""
    assert landscape.proxy is not None
    return landscape.proxy.mean_tokens(rows).clamp(min=0.0).float()


UNSEEN: dict[Rule, Callable[[MeasuredLandscape, Tensor], Tensor]] = {
    "lowest": lowest,
    "nearest": nearest,
    "proxy": predicted,
}


def best_agreement(
    rows: Int[Tensor, "B L"], known: list[tuple[Tensor, Tensor]], symbols: int
) -> tuple[Float32[Tensor, " B"], Float32[Tensor, " B"]]:
    """Most letters shared with any known row, and the highest score among the known rows that share so many."""
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
    """One-hot codes of rows, position after position."""
    return (rows[..., None] == torch.arange(symbols, device=rows.device)).flatten(1).float()


def row_hash(rows: Int[Tensor, "B L"], weights: Int[Tensor, " L"]) -> Int[Tensor, " B"]:
    r"""Polynomial hash $\sum_i x_i m^i \bmod 2^{64}$ of each row; 64-bit integers overflow as intended."""
    return (rows * weights).sum(-1)


def distinct_weights(rows: Int[Tensor, "N L"]) -> Int[Tensor, " L"]:
    """Powers of the first multiplier under which all rows have different hashes."""
    for multiplier in MULTIPLIERS:
        powers = [pow(multiplier, i, 2**64) for i in range(1, rows.shape[1] + 1)]
        weights = torch.tensor([p - 2**64 * (p >= 2**63) for p in powers])  # as signed integers
        if row_hash(rows, weights).unique().shape[0] == rows.shape[0]:
            return weights
    raise ValueError("the measurements hold a sequence twice; merge them with --table.duplicates mean")


def tokens(measurements: Measurements, length: int) -> Int[Tensor, "N {length}"]:
    """Token rows of the measured sequences, padded with blanks to a length."""
    if length < measurements.max_length:
        longest = measurements.max_length
        raise ValueError(f"{measurements.file}: the longest sequence has {longest} letters, the task only {length}")
    code = {letter: i for i, letter in enumerate(measurements.alphabet)}
    padding = [len(code)] * length
    rows = [([code[letter] for letter in sequence] + padding)[:length] for sequence in measurements.sequences]
    return torch.tensor(rows)


def mode_level(values: Float64[np.ndarray, " N"]) -> float:
    """Score reached by the best tenth of the table, and always above the lowest score.

    Unseen rows may have the lowest score; they must not all count as modes.
    """
    above = values[values > values.min()]
    level = np.quantile(values, MODE_QUANTILE, method="higher")
    return float(max(level, above.min()) if above.size else level)
