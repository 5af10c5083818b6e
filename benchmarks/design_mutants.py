"""Libraries of mutants of one parent: what two plates of 48 bring, beside two rivals that anybody writes in an hour.

Landscapes are made up anew with every seed: effects of letters and pairs of places, that sum through a sigmoid, above a
floor, and rugged ones (NK); proteins and DNA of 8 to 60 letters. Libraries have one to four changes of one parent,
except for the controls, which are random. What is measured has an error. Rules were chosen on seeds below 100.

The rivals fit to one-hot letters, an ensemble of five small networks or a ridge regression, and climb from the 16 best
measured sequences by all single changes, the best 16 at each step (4 of long ones); their plate is the best that they
met by the mean.
"""

import time
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations, pairwise, zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from benchmarks.cells import Cell, Study
from benchmarks.common import command
from benchmarks.design_landscapes import LETTERS
from benchmarks.design_peptides import moments
from sgfn.design.acquisition import Request, thompson
from sgfn.design.designer import Designer
from sgfn.design.search import grown_reach
from sgfn.landscapes.proxies import Proxy

Truth = Callable[[list[str]], Sequence[float]]
WELLS, PLATES = 48, 2
BEAM, SHORT = 16, 30
"""Sequences that a rival climbs from at once; a quarter of them where they have more letters than that."""
DEVELOPMENT = range(100)
"""Seeds that rules were chosen on, by one plate; on others the chosen one is confirmed, by two."""


# Landscapes: rows of letters to scores


@dataclass(frozen=True, eq=False)
class Effects:
    """Effects of letters by place, and of pairs of places."""

    single: np.ndarray
    ends: np.ndarray
    pairs: np.ndarray

    @classmethod
    def draw(cls, length: int, vocab: int, generator: np.random.Generator, strength: float = 0.6) -> "Effects":
        """As many pairs as places; together they have `strength` of the standard deviation of the single effects."""
        ends = np.stack([generator.choice(length, 2, replace=False) for _ in range(length)])
        pairs = strength * generator.normal(size=(length, vocab, vocab))
        return cls(generator.normal(size=(length, vocab)), ends, pairs)

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Scores of rows of letters."""
        total = self.single[np.arange(rows.shape[1]), rows].sum(1)
        return total + sum(pair[rows[:, i], rows[:, j]] for pair, (i, j) in zip(self.pairs, self.ends, strict=True))


@dataclass(frozen=True, eq=False)
class Rugged:
    """NK: the effect of each place depends on that of `neighbours` other ones too. Kauffman and Weinberger (1989)."""

    tables: np.ndarray
    places: np.ndarray
    vocab: int

    @classmethod
    def draw(cls, length: int, vocab: int, generator: np.random.Generator, neighbours: int = 1) -> "Rugged":
        """Places and effects at random."""
        drawn = [generator.choice(np.delete(np.arange(length), i), neighbours, replace=False) for i in range(length)]
        places = np.concatenate([np.arange(length)[:, None], np.stack(drawn)], 1)
        return cls(generator.normal(size=(length, vocab ** (neighbours + 1))), places, vocab)

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Scores of rows of letters."""
        found = np.zeros(len(rows))
        for table, places in zip(self.tables, self.places, strict=True):
            found += table[(rows[:, places] * self.vocab ** np.arange(len(places))).sum(1)]
        return found


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A landscape and a library of it."""

    letters: str
    length: int
    rows: int
    shape: str = "sum"
    """sum; sigmoid, whose half lies above the parent; floor, below which half of the mutants score the same; rugged."""
    error: float = 0.2
    """Standard deviation of measurements, relative to that of the library's true scores."""
    mutants: bool = True
    """Whether the library has one to four mutations of one parent; else it is random."""
    fit: int = 1
    """Random sequences of which the best is the parent."""


SETTINGS: dict[str, Setting] = {
    "protein 12, sum": Setting(letters=LETTERS, length=12, rows=200),
    "protein 12, floor": Setting(letters=LETTERS, length=12, rows=200, shape="floor", fit=20),
    "protein 10, rugged": Setting(letters=LETTERS, length=10, rows=200, shape="rugged"),
    "protein 30, sigmoid": Setting(letters=LETTERS, length=30, rows=300, shape="sigmoid", fit=100, error=0.3),
    "protein 60, sum": Setting(letters=LETTERS, length=60, rows=400, fit=100, error=0.4),
    "protein 8, sigmoid": Setting(letters=LETTERS, length=8, rows=60, shape="sigmoid"),
    "DNA 15, sum": Setting(letters="ACGT", length=15, rows=100),
    "DNA 20, rugged": Setting(letters="ACGT", length=20, rows=150, shape="rugged", error=0.3),
    "DNA 40, floor": Setting(letters="ACGT", length=40, rows=200, shape="floor", fit=20),
    "DNA 15, random": Setting(letters="ACGT", length=15, rows=150, mutants=False),
    "protein 20, random": Setting(letters=LETTERS, length=20, rows=300, mutants=False, shape="sigmoid"),
    "peptides, random": Setting(letters=LETTERS, length=30, rows=400, mutants=False, shape="peptides"),
}


@dataclass(frozen=True, kw_only=True)
class Game:
    """A setting of one seed: the truth, and what is measured before the first plate."""

    truth: Truth
    texts: list[str]
    alphabet: str
    error: float
    unit: float
    """Standard deviation of the library's true scores."""
    base: float
    """Their mean."""

    def measured(self, texts: list[str], generator: np.random.Generator) -> pd.DataFrame:
        """A table of measurements."""
        scores = np.array(self.truth(texts)) + self.error * generator.normal(size=len(texts))
        return pd.DataFrame({"sequence": texts, "score": scores})

    def figures(self, plates: Sequence[list[str]]) -> dict[str, Any]:
        """True means of plates and the best so far, in standard deviations above the mean of the library."""
        true = [(np.array(self.truth(plate)) - self.base) / self.unit for plate in plates]
        known = (np.array(self.truth(self.texts)).max() - self.base) / self.unit
        best = np.maximum.accumulate([known, *(float(one.max()) for one in true)])
        means, apart = [float(one.mean()) for one in true], [differences(plate) for plate in plates]
        return {"mean": means, "best": best.tolist(), "apart": apart}


def differences(texts: list[str]) -> float:
    """Letters in which two of some sequences differ on average, and those by which one is longer.

    >>> differences(["AC", "AG", "A"])
    1.0
    """
    pairs = combinations(texts, 2)
    return float(np.mean([sum(a != b for a, b in zip_longest(one, other)) for one, other in pairs]))


def game_of(setting: Setting, seed: int) -> Game:
    """The game of a seed."""
    generator = np.random.default_rng(seed)
    if setting.shape == "peptides":
        texts = ["".join(generator.choice(list(LETTERS), generator.integers(10, 31))) for _ in range(setting.rows)]
        return _game(setting, moments, sorted({*texts}))
    vocab, code = len(setting.letters), {letter: place for place, letter in enumerate(setting.letters)}
    made = Rugged if setting.shape == "rugged" else Effects
    inner = made.draw(setting.length, vocab, generator)
    drawn = generator.integers(vocab, size=(setting.fit, setting.length))
    parent = drawn[inner(drawn).argmax()]
    rows: dict[bytes, np.ndarray] = {}
    while len(rows) < setting.rows:
        row = generator.integers(vocab, size=setting.length)
        if setting.mutants:
            places = generator.choice(setting.length, generator.integers(1, 5), replace=False)
            row = np.where(np.isin(np.arange(setting.length), places), row, parent)
        rows[row.tobytes()] = row
    library = np.stack([*rows.values()])
    values = inner(library)
    middle, spread = float(np.median(values)), float(values.std())

    def truth(texts: list[str]) -> Sequence[float]:
        value = (inner(np.array([[code[letter] for letter in text] for text in texts])) - middle) / spread
        if setting.shape == "floor":
            return np.maximum(value, 0.0).tolist()
        return (1 / (1 + np.exp(2 - value))).tolist() if setting.shape == "sigmoid" else value.tolist()

    return _game(setting, truth, ["".join(setting.letters[place] for place in row) for row in library])


def _game(setting: Setting, truth: Truth, texts: list[str]) -> Game:
    exact = np.array(truth(texts))
    alphabet, unit = "dna" if len(setting.letters) == 4 else "protein", float(exact.std())
    about = {"error": setting.error * unit, "unit": unit, "base": float(exact.mean())}
    return Game(truth=truth, texts=texts, alphabet=alphabet, **about)


# Rivals


class Networks:
    """The mean of five networks of one hidden layer, fitted by Adam to all rows."""

    def __init__(self, inputs: Float[Tensor, "N F"], targets: Float[Tensor, " N"], seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        sizes = [(5, inputs.shape[1], 64), (5, 1, 64), (5, 64, 1), (5, 1, 1)]
        weights = [torch.randn(size, generator=generator) / size[1] ** 0.5 * (size[1] > 1) for size in sizes]
        self.weights = [weight.requires_grad_() for weight in weights]
        optimiser = torch.optim.AdamW(self.weights, lr=3e-3, weight_decay=0.1)
        for _ in range(300):
            optimiser.zero_grad()
            (self.answers(inputs) - targets).square().mean(1).sum().backward()
            optimiser.step()

    def answers(self, inputs: Float[Tensor, "N F"]) -> Float[Tensor, "5 N"]:
        """Each network's answer."""
        first, bias, last, shift = self.weights
        return ((inputs @ first + bias).relu() @ last + shift)[..., 0]

    def __call__(self, inputs: Float[Tensor, "N F"]) -> Float[Tensor, " N"]:
        """Mean answer."""
        with torch.no_grad():
            return self.answers(inputs).mean(0)


def ridge(inputs: Float[Tensor, "N F"], targets: Float[Tensor, " N"], seed: int) -> Callable[[Tensor], Tensor]:
    """Ridge regression; of five penalties the one with the smallest error of rows left out one by one."""
    left, size, right = torch.linalg.svd(inputs - inputs.mean(0), full_matrices=False)
    told, best = left.T @ targets, (float("inf"), torch.zeros(inputs.shape[1]))
    for penalty in (0.1, 0.3, 1.0, 3.0, 10.0):
        shrunk = size**2 / (size**2 + penalty)
        lever = 1 - 1 / len(inputs) - (left**2 * shrunk).sum(1)
        error = float(((targets - left @ (shrunk * told)) / lever.clamp(min=1e-3)).square().mean())
        best = min(best, (error, right.T @ (size / (size**2 + penalty) * told)), key=lambda one: one[0])
    return lambda rows: (rows - inputs.mean(0)) @ best[1]


RIVALS: dict[str, Callable[..., Callable[[Tensor], Tensor]]] = {"mlp": Networks, "ridge": ridge}


def rival_plate(game: Game, table: pd.DataFrame, method: str, seed: int) -> list[str]:
    """Orders of a rival: the best by the mean of all that a climb by single changes met."""
    letters = "ACGT" if game.alphabet == "dna" else LETTERS
    length, code = max(map(len, table.sequence)), {letter: place for place, letter in enumerate(letters)}
    rows = torch.tensor([[code[x] for x in text] + [len(letters)] * (length - len(text)) for text in table.sequence])
    scores = torch.tensor(table.score.to_numpy(), dtype=torch.float32)
    targets = (scores - scores.mean()) / scores.std()
    mean = RIVALS[method](_inputs(rows, len(letters)), targets, seed)
    beam = BEAM if length <= SHORT else BEAM // 4
    now, met, level = rows[scores.topk(beam).indices], dict[tuple[int, ...], float](), -torch.inf
    while True:
        found = _changed(now, len(letters)).unique(dim=0)
        value = mean(_inputs(found, len(letters)))
        best = value.topk(min(len(found), WELLS + len(rows)))
        met |= zip(map(tuple, found[best.indices].tolist()), best.values.tolist(), strict=True)
        now = found[best.indices[:beam]]
        if float(best.values[0]) <= level:
            break
        level = float(best.values[0])
    known, ranked = {*table.sequence}, sorted(met, key=lambda row: -met[row])
    texts = ["".join(letters[x] for x in row if x < len(letters)) for row in ranked]
    return [text for text in texts if text not in known][:WELLS]


def _inputs(rows: Int[Tensor, "N L"], vocab: int) -> Float[Tensor, "N F"]:
    return functional.one_hot(rows, vocab + 1)[..., :vocab].flatten(1).float()


def _changed(rows: Int[Tensor, "N L"], vocab: int) -> Int[Tensor, "M L"]:
    """All that differ from one of the rows by a letter."""
    parts = [rows]
    for place in range(rows.shape[1]):
        written = rows[rows[:, place] < vocab]
        for shift in range(1, vocab):
            other = written.clone()
            other[:, place] = (other[:, place] + shift) % vocab
            parts.append(other)
    return torch.cat(parts)


# Ours


def former_reach(length: int, correlation: float, varies: bool = False) -> int:
    """Edits that a proxy was trusted with before: rho^2 L / 4, at least 2."""
    return max(2, round(max(correlation, 0.0) ** 2 * length / 4))


def quarter(members: Any, request: Request) -> Any:
    """Rows of `thompson` at a quarter of their deviation from the mean: an acquisition."""
    mean = members.mean(0)
    return mean + 0.25 * (thompson(members, request) - mean)


OURS: dict[str, tuple[str, Callable[..., int] | int | None, str]] = {
    "default": ("auto", None, "design"),
    "stacked": ("auto", None, "stacked"),
    "former": ("thompson", former_reach, "ensemble"),
    "thompson": ("thompson", None, "ensemble"),
    "quarter": (f"{__name__}:quarter", None, "ensemble"),
    "greedy-free": ("greedy", 0, "ensemble"),
}
"""Acquisition, reach (a rule, a number, 0 for no limit, or None for the default rule) and proxy of each of ours."""
METHODS = (*OURS, *RIVALS)
CHECKED = ("default", "stacked", *RIVALS)
"""Methods that the validation seeds were asked about."""


def our_plate(designer: Designer, method: str) -> list[str]:
    """Orders of one of ours."""
    acquisition, rule, _ = OURS[method]
    reach = rule
    if callable(rule):
        length = designer.space.max_length
        best = designer.measured.groupby("round").score.max().cummax()
        reach = grown_reach(rule(length, designer.fitted().report.spearman), length, [a > b for b, a in pairwise(best)])
    designer.config = replace(designer.config, acquisition=acquisition, reach=reach, sampler="off")
    return designer.propose(WELLS).orders.order.tolist()


@lru_cache(maxsize=1)
def begun(name: str, seed: int, kind: str) -> tuple[Game, Designer, Proxy]:
    """A game with its first measurements, and the proxy of these; of peptides of many lengths `design` chooses."""
    game = game_of(SETTINGS[name], seed)
    kind = "design" if SETTINGS[name].shape == "peptides" else kind
    designer = Designer(game.alphabet, seed=seed, proxy=kind)
    designer.fit(game.measured(game.texts, np.random.default_rng(seed)))
    return game, designer, designer.fitted()


def play_mutants(name: str, seed: int, method: str) -> dict[str, Any]:
    """Plates of one method: their true means and the best so far, in standard deviations above the library's mean.

    `apart` is in how many letters two orders of a plate differ on average, `seconds` CPU time.
    """
    kind = OURS[method][2] if method in OURS else "ensemble"
    (game, first, proxy), began = begun(name, seed, kind), time.process_time()
    designer, generator, plates = copy(first), np.random.default_rng(seed + 10_000), list[list[str]]()
    table, designer.proxy, designer.pending = first.measured[["sequence", "score"]], proxy, {}
    for number in range(1 if seed in DEVELOPMENT else PLATES):
        ours = method in OURS
        plates.append(our_plate(designer, method) if ours else rival_plate(game, table, method, seed + number))
        new = game.measured(plates[-1], generator)
        table = pd.concat([table, new], ignore_index=True)
        if ours:
            designer.tell(new.rename(columns={"sequence": "order"}))
    found: dict[str, Any] = {key: [float(f"{x:.4g}") for x in values] for key, values in game.figures(plates).items()}
    return found | {"spearman": round(proxy.report.spearman, 3), "seconds": round(time.process_time() - began, 1)}


def mutants_study(seeds: Sequence[int], out: Path, methods: Sequence[str] | None, only: str | None) -> Study:
    """All games, seed by seed; of validation seeds those that were asked for."""
    cells = []
    for seed in seeds:
        asked = methods or (METHODS if seed in DEVELOPMENT else CHECKED)
        names = [name for name in SETTINGS if only is None or only in name]
        keys = [{"setting": name, "seed": seed, "method": method} for name in names for method in asked]
        cells += [Cell(key=key, function=play_mutants, arguments=tuple(key.values())) for key in keys]
    return Study(out=out, command=command("design"), cells=cells)
