"""Peptides with a property that can be computed: libraries of them, and plates from such a library."""

import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.common import each_cell
from benchmarks.design_games import write_results
from sgfn.design.designer import Designer

_SCALE = "0.62 -2.53 -0.78 -0.90 0.29 -0.85 -0.74 0.48 -0.40 1.38 1.06 -1.50 0.64 1.19 0.12 -0.18 -0.05 0.81 0.26 1.08"
HYDROPHOBICITY = dict(zip("ARNDCQEGHILKMFPSTWYV", map(float, _SCALE.split()), strict=True))
"""Consensus scale. Eisenberg et al. (1984), Journal of Molecular Biology 179:125."""


def moment(text: str) -> float:
    """Hydrophobic moment of a helix, 100 degrees a residue, mean over residues (Eisenberg et al. 1982, Nature 299)."""
    angle = np.deg2rad(100.0) * np.arange(len(text))
    height = np.array([HYDROPHOBICITY[letter] for letter in text])
    return float(abs((height * np.exp(1j * angle)).sum()) / len(text))


def moments(texts: list[str]) -> list[float]:
    """Hydrophobic moments of peptides: a function for the task `callable`."""
    return [moment(text) for text in texts]


def peptides(seed: int, count: int = 2177) -> pd.DataFrame:
    """Random peptides of 10 to 30 residues with measured moments, 0.02 of error."""
    generator, found = np.random.default_rng(seed), set[str]()
    while len(found) < count:
        found.add("".join(generator.choice(list(HYDROPHOBICITY), generator.integers(10, 31))))
    texts = sorted(found)
    return pd.DataFrame({"sequence": texts, "score": [moment(text) + 0.02 * generator.normal() for text in texts]})


def run_peptides(seeds: int, kind: str, out: Path, cluster: str | None = None) -> None:
    """One plate of 96 from a library of peptides: true moments of what is proposed beside those of the library."""
    found: dict[str, list[dict[str, Any]]] = {}
    cells = {f"seed {seed}": (seed, kind) for seed in range(seeds)}

    def keep(name: str, new: list[dict[str, Any]]) -> None:
        found[name] = new
        print(*new, sep="\n", flush=True)
        write_results(out, {"rows": [row for name in cells if name in found for row in found[name]]})

    each_cell(cells, peptide_rows, keep, cluster)


def peptide_rows(seed: int, kind: str) -> list[dict[str, Any]]:
    """Plates by four choices of acquisition and reach from one library; the first is the default."""
    table, rows = peptides(seed), []
    limit = float(np.quantile([moment(text) for text in table.sequence], 0.9))
    fitted = Designer("protein", seed=seed, proxy=kind).fit(table)
    began = time.process_time()
    proxy = fitted.fitted()
    fit_seconds = time.process_time() - began
    for acquisition, reach in (("tempered", None), ("ucb", None), ("thompson", None), ("ucb", 0)):
        chosen: dict[str, Any] = {"acquisition": acquisition, "reach": reach}
        designer = Designer("protein", seed=seed, proxy=kind, sampler="off", **chosen).fit(table)
        designer.proxy, began = proxy, time.process_time()
        plate = designer.propose(96)
        true = np.array(moments(plate.orders.order.tolist()))
        row = {"seed": seed, **chosen, "orders": len(plate)}
        row |= {"proxy": plate.proxy, "percentile_90": limit, "mean": float(true.mean()), "best": float(true.max())}
        row |= {"share_above": float((true > limit).mean()), "fit_cpu_seconds": fit_seconds}
        rows.append(row | {"cpu_seconds": time.process_time() - began, "scored": plate.scored})
    return rows
