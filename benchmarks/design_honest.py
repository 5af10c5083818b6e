"""How honest expected scores of first plates are: what is told of 96 orders beside the truth of made-up landscapes.

The plate is that of `sgfn design propose` by its defaults; `before` is what the proxy predicts of it, with its
calibrated standard deviation, `after` what `sgfn.landscapes.proxies.honesty` makes of that. Its settings were chosen on
plates of seeds 30 to 32 of the same landscapes but `saddle`, with 96 or 200 measured sequences, and on no others.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float64

from benchmarks.common import each_cell
from benchmarks.design_games import write_results
from benchmarks.design_landscapes import LETTERS, coupled, scores
from benchmarks.design_peptides import HYDROPHOBICITY, moments
from sgfn.design.designer import Designer
from sgfn.landscapes.proxies.calibration import Z80

Truth = Callable[[list[str]], Sequence[float]]
WELLS = 96


def active(texts: list[str]) -> list[float]:
    """Peptides that act on membranes: amphipathic, charged up to +5, neither too hydrophobic nor too long."""
    return [_activity(text, moment) for text, moment in zip(texts, moments(texts), strict=True)]


def _activity(text: str, moment: float) -> float:
    charge = sum(letter in "KR" for letter in text) - sum(letter in "DE" for letter in text)
    water = float(np.mean([HYDROPHOBICITY[letter] for letter in text]))
    found = 1.5 * moment + 0.25 * min(charge, 5) - 0.25 * max(charge - 5, 0) - 2.0 * water**2
    return found - 0.02 * abs(len(text) - 20) - 0.3 * ("P" in text)


def saturating(texts: list[str]) -> list[float]:
    """A sum of effects of letters wherever they stand, through a sigmoid."""
    effect = dict(zip(LETTERS, np.random.default_rng(7).normal(size=20), strict=True))
    total = np.array([sum(effect[letter] for letter in text) for text in texts]) / np.sqrt(20)
    return (2 / (1 + np.exp(1 - total))).tolist()


def paired(texts: list[str]) -> list[float]:
    """DNA of 20 letters: effects of letters by position and of 30 pairs of positions."""
    generator = np.random.default_rng(11)
    single, pairs = generator.normal(size=(20, 4)), generator.normal(size=(30, 4, 4))
    ends = generator.integers(20, size=(30, 2))
    rows = np.array([["ACGT".index(letter) for letter in text] for text in texts])
    total = single[np.arange(20), rows].sum(1)
    total = total + sum(pairs[k, rows[:, i], rows[:, j]] for k, (i, j) in enumerate(ends))
    return (total / 7).tolist()


def saddle(texts: list[str]) -> list[float]:
    """RNA of 15 letters: best at 9 of G and C, and worse by the square of what is more or less; stems add to it."""
    paired_ends = [sum(a + b in ("AU", "UA", "GC", "CG") for a, b in zip(t[:6], t[:-7:-1], strict=True)) for t in texts]
    strong = [text.count("G") + text.count("C") for text in texts]
    return [0.5 * ends - 0.1 * (gc - 9) ** 2 for ends, gc in zip(paired_ends, strong, strict=True)]


def four_sites(number: int) -> Truth:
    """Variants of four sites of a made-up protein."""
    table, code = scores(number), {letter: place for place, letter in enumerate(LETTERS)}
    return lambda texts: [float(table[np.polyval([code[letter] for letter in text], 20)]) for text in texts]


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A landscape and a library of it."""

    truth: Truth | None
    """None for one of its own for each seed."""
    letters: str
    lengths: tuple[int, int]
    rows: int
    error: float
    """Standard deviation of measurements, relative to that of the library's true scores."""
    mutants: bool = False
    """Whether the library has one to four mutations of one parent; else it is random."""


def _settings() -> dict[str, Setting]:
    peptide: dict[str, Any] = {"letters": LETTERS, "lengths": (10, 30), "rows": 120}
    dna: dict[str, Any] = {"truth": paired, "letters": "ACGT", "lengths": (20, 20), "rows": 200}
    return {
        "peptides, moment": Setting(truth=moments, **peptide, error=0.2),
        "peptides, activity": Setting(truth=active, **peptide, error=0.1),
        "peptides, activity, noisy": Setting(truth=active, **peptide, error=1.0),
        "peptides, saturating": Setting(truth=saturating, **peptide, error=0.5),
        "DNA, random": Setting(**dna, error=0.1),
        "DNA, random, noisy": Setting(**dna, error=1.0),
        "DNA, mutants": Setting(**dna, error=0.1, mutants=True),
        "DNA, mutants, noisy": Setting(**dna, error=1.0, mutants=True),
        "protein, 45 pairs": Setting(truth=coupled, letters=LETTERS, lengths=(30, 30), rows=200, error=0.1),
        "protein, four sites": Setting(truth=None, letters=LETTERS, lengths=(4, 4), rows=96, error=0.1),
        "RNA, saddle": Setting(truth=saddle, letters="ACGU", lengths=(15, 15), rows=96, error=0.3),
    }


SETTINGS = _settings()


def library(setting: Setting, generator: np.random.Generator) -> list[str]:
    """Sequences that are measured, each once."""
    letters, (least, most) = list(setting.letters), setting.lengths
    parent, found = generator.choice(letters, most), dict[str, None]()
    while len(found) < setting.rows:
        row = generator.choice(letters, generator.integers(least, most + 1))
        if setting.mutants:
            places = generator.choice(most, generator.integers(1, 5), replace=False)
            row = np.where(np.isin(np.arange(most), places), row, parent)
        found["".join(row)] = None
    return list(found)


def honest_row(name: str, seed: int) -> dict[str, Any]:
    """One plate: means and coverage before and after, in standard deviations of what was measured."""
    setting, generator = SETTINGS[name], np.random.default_rng(seed)
    truth = setting.truth or four_sites(seed)
    texts = library(setting, generator)
    exact = np.array(truth(texts))
    measured = exact + setting.error * exact.std() * generator.normal(size=len(texts))
    alphabet = {4: "dna", 20: "protein"}[len(setting.letters)] if "U" not in setting.letters else "rna"
    designer = Designer(alphabet, seed=seed).fit(pd.DataFrame({"sequence": texts, "score": measured}))
    proxy = designer.fitted()
    plate = designer.propose(WELLS)
    orders, plain = plate.orders.order.tolist(), proxy.predict(plate.orders.order.tolist())
    true, unit = np.array(truth(orders)), float(measured.std())
    found = {"landscape": name, "seed": seed, "kind": proxy.kind, "spearman": proxy.report.spearman}
    found |= {"true": float((true.mean() - measured.mean()) / unit), "unit": unit}
    told = (plate.orders.expected.to_numpy(float), plate.orders.sd.to_numpy(float))
    laws = {"before": (plain.mean, plain.sd), "after": told}
    return found | {when: figures(mean, sd, true, float(measured.mean()), unit) for when, (mean, sd) in laws.items()}


def figures(
    mean: Float64[np.ndarray, " W"],
    sd: Float64[np.ndarray, " W"],
    true: Float64[np.ndarray, " W"],
    base: float,
    unit: float,
) -> dict[str, float]:
    """Told mean and standard deviation of a plate's wells, and the share of wells in their 80 % intervals."""
    inside = np.abs(true - mean) <= Z80 * sd
    return {"mean": float((mean.mean() - base) / unit), "sd": float(sd.mean() / unit), "inside": float(inside.mean())}


def run_honest(
    seeds: Sequence[int], out: Path, cluster: str | None = None, only: str | None = None, jobs: int = 1
) -> None:
    """Play the study, seed by seed, and write each plate as soon as it is there; those that a file has stay."""
    names = [name for name in SETTINGS if only is None or only in name]
    rows = json.loads(out.read_text())["rows"] if out.is_file() else []
    found = {(row["landscape"], row["seed"]): row for row in rows}
    cells = {f"{name}, seed {seed}": (name, seed) for seed in seeds for name in names if (name, seed) not in found}

    def keep(name: str, new: dict[str, Any]) -> None:
        found[cells[name]] = new
        print(new, flush=True)
        write_results(out, {"rows": [found[key] for key in sorted(found)]})

    each_cell(cells, honest_row, keep, cluster, jobs=jobs)
