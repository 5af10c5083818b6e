"""Landscapes made up to choose settings of design on: four sites of a protein, few variants alive, and none measured.

A latent number is a sum of effects of letters, pairs and one triple of sites, partly by what residues are (hydropathy,
volume, charge, aromatic) and partly by chance; the score is its exponential, saturating in landscapes of odd number,
which have about as many variants above a tenth of the highest (4 %) as GB1 (2.5 %).
"""

from functools import partial

import numpy as np
import torch
from jaxtyping import Float64

from sgfn.config import TrainConfig
from sgfn.landscapes.measurements import ALPHABETS
from sgfn.landscapes.table import TableLandscape
from sgfn.landscapes.tasks import Task, assemble, sequences

ORDER = "ARNDCQEGHILKMFPSTWYV"
_KYTE = "1.8 -4.5 -3.5 -3.5 2.5 -3.5 -3.5 -0.4 -3.2 4.5 3.8 -3.9 1.9 2.8 -1.6 -0.8 -0.7 -0.9 -1.3 4.2"
HYDROPATHY = dict(zip(ORDER, map(float, _KYTE.split()), strict=True))
"""Kyte and Doolittle (1982), Journal of Molecular Biology 157:105."""
_SIZE = (
    "88.6 173.4 114.1 111.1 108.5 143.8 138.4 60.1 153.2 166.7 166.7 168.6 162.9 189.9 112.7 89.0 116.1 227.8 193.6 140"
)
VOLUME = dict(zip(ORDER, map(float, _SIZE.split()), strict=True))
"""Residue volumes in cubic angstrom. Zamyatnin (1972), Progress in Biophysics and Molecular Biology 24:107."""
CHARGE = {"K": 1.0, "R": 1.0, "D": -1.0, "E": -1.0, "H": 0.3}
SITES, LETTERS = 4, ALPHABETS["protein"]


def properties() -> Float64[np.ndarray, "20 4"]:
    """What residues are, in units of its standard deviation."""
    rows = [[HYDROPATHY[a], VOLUME[a], CHARGE.get(a, 0.0), float(a in "FWYH")] for a in LETTERS]
    table = np.array(rows)
    return (table - table.mean(0)) / table.std(0)


def latent(generator: np.random.Generator) -> Float64[np.ndarray, " 160000"]:
    """The number behind the score, of mean 0 and variance 1: effects of sites, pairs and a triple."""
    known, index = properties(), np.indices((20,) * SITES).reshape(SITES, -1)
    total = np.zeros(20**SITES)
    for site in range(SITES):
        effect = known @ generator.normal(size=4) - known**2 @ abs(generator.normal(size=4) * 0.5)
        effect = effect + generator.normal(size=20)
        total += (effect / effect.std())[index[site]]
    strength = generator.uniform(0.4, 0.9)
    for one in range(SITES):
        for other in range(one):
            pair = known @ generator.normal(size=(4, 4)) @ known.T
            pair = pair / pair.std() + 0.8 * generator.normal(size=(20, 20))
            total += strength * generator.choice([0.3, 1.3]) * (pair / pair.std())[index[one], index[other]]
    a, b, c = generator.permutation(SITES)[:3]
    total += 0.5 * generator.normal(size=(20, 20, 20))[index[a], index[b], index[c]]
    return (total - total.mean()) / total.std()


def scores(number: int) -> Float64[np.ndarray, " 160000"]:
    """Scores of all variants of a landscape by its number, the highest 1."""
    generator = np.random.default_rng(number)
    found = np.exp(latent(generator) * generator.uniform(1.6, 2.2))
    if number % 2:
        found = found / (found + np.quantile(found, 0.9995))
    found = found / found.max()
    found = np.maximum(found + 0.002 * generator.normal(size=len(found)) * (found < 0.05), 0.0)
    return found / found.max()


def coupled(texts: list[str]) -> list[float]:
    """Scores of proteins of 30 letters or fewer: effects of letters and of 45 pairs of places, through a sigmoid.

    A function for the task `callable`, to choose settings of searches on.
    """
    generator, known = np.random.default_rng(30), properties()
    single = 0.5 * (known @ generator.normal(size=(4, 30))).T + 0.5 * generator.normal(size=(30, 20))
    ends = generator.integers(30, size=(45, 2))
    pairs = generator.normal(size=(45, 20, 20))
    code = {letter: number for number, letter in enumerate(LETTERS)}
    found = []
    for text in texts:
        row = np.array([code[letter] for letter in text])
        total = single[np.arange(len(row)), row].sum()
        total += sum(pairs[k, row[i], row[j]] for k, (i, j) in enumerate(ends) if max(i, j) < len(row))
        found.append(float(1 / (1 + np.exp(4 - total / 6))))
    return found


def made(number: int, name: str, config: TrainConfig) -> Task:
    """four sites of a made-up protein"""
    env = sequences(config, length=SITES, alphabet=LETTERS)
    landscape = TableLandscape(torch.from_numpy(scores(number)), vocab=env.vocab, mode_level=0.5)
    return assemble(name, config, env, landscape, 3.0, f"four sites of a made-up protein, number {number}")


def task_of(number: int) -> Task:
    """The landscape of a number as a task."""
    return partial(made, number)(f"made{number}", TrainConfig())
