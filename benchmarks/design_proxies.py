"""How well proxies predict what was not measured, and what a flow network adds to a search: small studies.

OMP_NUM_THREADS=1 python -m benchmarks.design_proxies proxies --seeds 2      kinds on four tables, beside nearest-decay
OMP_NUM_THREADS=1 python -m benchmarks.design_proxies sampler --seeds 3      plates with and without the flow network

A row is written as soon as it is there, and what a file has is not done again.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from benchmarks.cells import Study, perform, study_by_keys
from benchmarks.common import RESULTS, add_cluster, positive
from benchmarks.design_peptides import moment, peptides
from sgfn.config import NoiseConfig, TrainConfig
from sgfn.design.designer import Designer
from sgfn.design.simulate import Truth
from sgfn.landscapes.measured import MeasuredLandscape
from sgfn.landscapes.measurements import ALPHABETS, Measurements
from sgfn.landscapes.proxies import fit_proxy
from sgfn.landscapes.proxies.calibration import Z80, rank_correlation
from sgfn.landscapes.tasks import make_task

TABLES = ("gb1", "mpsa", "tfbind8", "peptides")
KINDS = ("nearest", "ridge", "ensemble", "convolution", "gp")
MEASURED, HELD_OUT = 1000, 2000
Split = tuple[list[str], np.ndarray, list[str], np.ndarray, str]
"""Measured sequences and scores, those held out, and the alphabet."""


def split(table: str, seed: int) -> Split:
    """Random measured sequences of a table, and others on which predictions are judged."""
    if table == "peptides":
        frame = peptides(1000 + seed, MEASURED + HELD_OUT).sample(frac=1.0, random_state=seed)
        texts, scores, letters = frame.sequence.tolist(), frame.score.to_numpy(), ALPHABETS["protein"]
    else:
        truth = Truth(make_task(table, TrainConfig().with_(noise=NoiseConfig(alpha=0.0))))
        everything, generator = truth.space.env.all_objects(), torch.Generator().manual_seed(1000 + seed)
        known = everything[truth.scores(everything) > 0] if table in ("gb1", "mpsa") else everything
        rows = known[torch.randperm(len(known), generator=generator)[: MEASURED + HELD_OUT]]
        texts, scores, letters = truth.space.decode(rows), truth.scores(rows).double().numpy(), truth.space.alphabet
    return texts[:MEASURED], scores[:MEASURED], texts[MEASURED:], scores[MEASURED:], letters


def judge(kind: str, data: Split, seed: int) -> dict[str, Any]:
    """Rank correlation, coverage of 80 % intervals and CPU seconds of one kind on what was held out."""
    texts, scores, others, true, letters = data
    began, covered = time.process_time(), None
    longest = max(map(len, [*texts, *others]))
    if kind == "nearest":
        low = scores - scores.min()  # rewards are zero or above
        table = Measurements(file=Path("measured"), alphabet=letters, sequences=texts, scores=low)
        landscape = MeasuredLandscape(table, length=longest, unseen="nearest")
        code = {letter: number for number, letter in enumerate(letters)}
        rows = [[*map(code.__getitem__, text), *[len(letters)] * (longest - len(text))] for text in others]
        mean = landscape.scores(torch.tensor(rows)).double().numpy()
    else:
        proxy = fit_proxy(texts, scores, alphabet=letters, kind=kind, seed=seed, max_length=longest)
        found = proxy.predict(others)
        mean, covered = found.mean, float((np.abs(true - found.mean) <= Z80 * found.sd).mean())
    seconds = time.process_time() - began
    return {"spearman": rank_correlation(mean, true), "coverage": covered, "cpu_seconds": round(seconds, 2)}


def proxy_row(table: str, kind: str, seed: int) -> dict[str, Any]:
    """Figures of a kind on a table."""
    return judge(kind, split(table, seed), seed)


def proxies_study(seeds: int, tables: list[str], out: Path) -> Study:
    """Every kind on every table."""
    keys = [{"table": t, "kind": kind, "seed": seed} for seed in range(seeds) for t in tables for kind in KINDS]
    return study_by_keys(out, "design_proxies", keys, proxy_row)


def sampler_row(seed: int, reach: int | None, sampler: str) -> dict[str, Any]:
    """Figures of one plate from 500 peptides."""
    table = peptides(2000 + seed, 500)
    proxy = Designer("protein", seed=seed, proxy="ridge").fit(table).fitted()
    return plate(table, proxy, seed, reach, sampler)


def sampler_study(seeds: int, out: Path) -> Study:
    """One plate from 500 peptides with and without the flow network, near and far from what was measured."""
    keys = [
        {"seed": seed, "reach": reach, "sampler": sampler}
        for seed in range(seeds)
        for reach in (None, 0)
        for sampler in ("off", "on")
    ]
    return study_by_keys(out, "design_proxies", keys, sampler_row)


def plate(table: pd.DataFrame, proxy: Any, seed: int, reach: int | None, sampler: str) -> dict[str, Any]:
    """True moments of a plate's orders, what the proxy makes of them, and how different they are."""
    designer = Designer("protein", seed=seed, proxy="ridge", reach=reach, sampler=sampler).fit(table)
    designer.proxy, began = proxy, time.process_time()
    made = designer.propose(96)
    seconds, orders = time.process_time() - began, made.orders.order.tolist()
    true = np.array([moment(order) for order in orders])
    limit = float(np.quantile([moment(text) for text in table.sequence], 0.9))
    apart = [sum(a != b for a, b in zip(x, y, strict=False)) + abs(len(x) - len(y)) for x in orders for y in orders]
    figures = {"mean": true.mean(), "best": true.max(), "percentile_90": limit, "differences": np.mean(apart)}
    figures |= {"predicted": made.orders.expected.mean(), "cpu_seconds": seconds}
    return {name: float(f"{value:.4g}") for name, value in figures.items()}


def main() -> None:
    """Run one study."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", choices=("proxies", "sampler"))
    parser.add_argument("--seeds", type=positive, default=2)
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--jobs", type=positive, default=1, help="cells at once, a process each")
    parser.add_argument("--out", type=Path, default=None)
    add_cluster(parser)
    given = parser.parse_args()
    out = given.out or RESULTS / f"design_{given.study}.json"
    whole = given.study == "proxies"
    study = proxies_study(given.seeds, given.tables, out) if whole else sampler_study(given.seeds, out)
    perform([study], given.jobs, cluster=given.cluster)


if __name__ == "__main__":
    main()
