"""Design in rounds on measured landscapes: ours beside rivals, all in one run on one kind of proxy.

OMP_NUM_THREADS=1 python -m benchmarks.design p1 --seeds 20        GB1, 96 random + 4 x 96, no noise: best fitness found
OMP_NUM_THREADS=1 python -m benchmarks.design p2 --seeds 5         MPSA and TFBind8 under noise, aware and unaware of it
OMP_NUM_THREADS=1 python -m benchmarks.design peptides --proxy ridge --seeds 5   2,177 peptides, one plate

AdaLead, the genetic algorithm and sep-CMA-ES are ours, written after their papers (`sgfn.design.rivals`). Seeds are
played one after the other by all methods, and the file is written after each: a run that is stopped has whole seeds.
"""

import argparse
import math
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from benchmarks.common import RESULTS, machine, positive
from sgfn.config import NoiseConfig, TrainConfig
from sgfn.config.files import write_json
from sgfn.design.designer import Designer
from sgfn.design.simulate import Game, play
from sgfn.landscapes.tasks import make_task

STUDIES = ("p1", "p2", "peptides")
METHODS = {
    "p1": ("members", "thompson", "greedy", "ucb", "adalead", "genetic", "cma-es", "random"),
    "p2": ("greedy", "greedy-unaware", "members", "members-unaware"),
}
OURS = {"p1": "members", "p2": "greedy"}
"""The method that others are compared with."""
RATES = (0.05, 0.1, 0.2)
TIE = 1e-3
"""Differences below this are ties."""
_SCALE = "0.62 -2.53 -0.78 -0.90 0.29 -0.85 -0.74 0.48 -0.40 1.38 1.06 -1.50 0.64 1.19 0.12 -0.18 -0.05 0.81 0.26 1.08"
HYDROPHOBICITY = dict(zip("ARNDCQEGHILKMFPSTWYV", map(float, _SCALE.split()), strict=True))
"""Consensus scale. Eisenberg et al. (1984), Journal of Molecular Biology 179:125."""


def settings(study: str) -> Iterator[tuple[str, TrainConfig, dict[str, int]]]:
    """Task, configuration and sizes of each setting of a study.

    Of GB1 what was never measured scores 0; splice sites are NNNGYNNNN, and what noise makes of them outside scores 0.
    """
    silent = TrainConfig().with_(noise=NoiseConfig(alpha=0.0))
    if study == "p1":
        yield "gb1", silent, {"rounds": 4, "orders": 96, "start": 96}
        return
    for task, pattern in (("mpsa", "NNNGYNNNN"), ("tfbind8", None)):
        for rate in RATES:
            noisy = silent.with_(noise=NoiseConfig(alpha=rate), constraints__pattern=pattern)
            yield task, noisy, {"rounds": 4, "orders": 96, "start": 5000}


def win_tie_loss(ours: list[float], theirs: list[float]) -> dict[str, Any]:
    """How often ours is better over seeds, and the mean difference with its interval of 95 %, by Student's law."""
    from scipy.stats import t

    gap = np.array(ours) - np.array(theirs)
    width = float(t.ppf(0.975, len(gap) - 1) * gap.std(ddof=1) / math.sqrt(len(gap))) if len(gap) > 1 else math.inf
    found = {"win": int((gap > TIE).sum()), "tie": int((abs(gap) <= TIE).sum()), "loss": int((gap < -TIE).sum())}
    return found | {"difference": float(gap.mean()), "interval": [float(gap.mean()) - width, float(gap.mean()) + width]}


def figure_of(study: str, game: Game) -> float:
    """What a game is judged by: the best score found, or under noise the mean expected score of its plates."""
    if study == "p1":
        return game.rounds[-1].best
    return sum(one.expected for one in game.rounds) / len(game.rounds)


def summary(study: str, games: list[Game]) -> list[dict[str, Any]]:
    """Means over seeds of each method in each setting, and ours beside it, over the seeds that all have played."""
    found = []
    for setting in dict.fromkeys((game.task, game.noise) for game in games):
        here = [game for game in games if (game.task, game.noise) == setting]
        methods = list(dict.fromkeys(game.method for game in here))
        shared = set.intersection(*({game.seed for game in here if game.method == name} for name in methods))
        by_method = {name: [g for g in here if g.method == name and g.seed in shared] for name in methods}
        values = {name: [figure_of(study, game) for game in own] for name, own in by_method.items()}
        found += [_row(study, setting, name, by_method[name], values) for name in methods if shared]
    return found


def _row(
    study: str, setting: tuple[str, str], name: str, games: list[Game], values: dict[str, list[float]]
) -> dict[str, Any]:
    own, last = np.array(values[name]), [game.rounds[-1] for game in games]
    row: dict[str, Any] = {"task": setting[0], "noise": setting[1], "method": name, "seeds": len(own)}
    row |= {
        "mean": float(own.mean()),
        "median": float(np.median(own)),
        "low": float(own.min()),
        "high": float(own.max()),
    }
    row["error"] = float(own.std(ddof=1) / math.sqrt(len(own))) if len(own) > 1 else None
    regrets = [one.regret for one in last if one.regret is not None]
    row["regret_of_last_plate"] = float(np.mean(regrets)) if regrets else None
    row["expected_of_last_plate"] = float(np.mean([one.expected for one in last]))
    row["cpu_seconds"] = float(np.mean([sum(one.seconds for one in game.rounds) for game in games]))
    if name != OURS[study]:
        row[f"{OURS[study]}_against_it"] = win_tie_loss(values[OURS[study]], values[name])
    return row


def run_games(study: str, seeds: int, proxy: str, methods: tuple[str, ...], out: Path) -> None:
    """Play all settings, seed by seed, and write what there is after each."""
    games: list[Game] = []
    for seed in range(seeds):
        for name, config, sizes in settings(study):
            task = make_task(name, config)
            for method in methods:
                games.append(play(task, method, **sizes, seed=seed, proxy=proxy))
                print(f"{name} {games[-1].noise} {method} seed {seed}: {figure_of(study, games[-1]):.4f}", flush=True)
        write_results(out, {"summary": summary(study, games), "games": [game.to_json() for game in games]})


def moment(text: str) -> float:
    """Hydrophobic moment of a helix, 100 degrees a residue, mean over residues (Eisenberg et al. 1982, Nature 299)."""
    angle = np.deg2rad(100.0) * np.arange(len(text))
    height = np.array([HYDROPHOBICITY[letter] for letter in text])
    return float(abs((height * np.exp(1j * angle)).sum()) / len(text))


def peptides(seed: int, count: int = 2177) -> pd.DataFrame:
    """Random peptides of 10 to 30 residues with measured moments, 0.02 of error."""
    generator, found = np.random.default_rng(seed), set[str]()
    while len(found) < count:
        found.add("".join(generator.choice(list(HYDROPHOBICITY), generator.integers(10, 31))))
    texts = sorted(found)
    return pd.DataFrame({"sequence": texts, "score": [moment(text) + 0.02 * generator.normal() for text in texts]})


def run_peptides(seeds: int, kind: str, out: Path) -> None:
    """One plate of 96 from a library of peptides: true moments of what is proposed beside those of the library."""
    rows = []
    for seed in range(seeds):
        table = peptides(seed)
        limit = float(np.quantile([moment(text) for text in table.sequence], 0.9))
        fitted = Designer("protein", seed=seed, proxy=kind).fit(table)
        began = time.process_time()
        proxy = fitted.fitted()
        fit_seconds = time.process_time() - began
        for acquisition, reach in (("thompson", None), ("ucb", None), ("thompson", 0)):
            designer = Designer(
                "protein", seed=seed, proxy=kind, acquisition=acquisition, reach=reach, sampler="off"
            ).fit(table)
            designer.proxy, began = proxy, time.process_time()
            plate = designer.propose(96)
            true = np.array([moment(order) for order in plate.orders.order])
            row = {"seed": seed, "acquisition": acquisition, "reach": reach, "orders": len(plate), "proxy": plate.proxy}
            row |= {"percentile_90": limit, "mean": float(true.mean()), "best": float(true.max())}
            row |= {"share_above": float((true > limit).mean()), "fit_cpu_seconds": fit_seconds}
            rows.append(row | {"cpu_seconds": time.process_time() - began, "scored": plate.scored})
            print(rows[-1], flush=True)
        write_results(out, {"rows": rows})


def write_results(out: Path, found: dict[str, Any]) -> None:
    """Write figures with the command and the machine that they come from."""
    command = " ".join(["python -m benchmarks.design", *sys.argv[1:]])
    write_json(out, {"command": command, "machine": machine(torch.device("cpu"))} | found)


def main() -> None:
    """Play one study."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", choices=STUDIES)
    parser.add_argument("--seeds", type=positive, default=20)
    parser.add_argument("--proxy", default="ensemble", help="kind of the proxy of all methods")
    parser.add_argument("--methods", nargs="+", default=None)
    parser.add_argument("--out", type=Path, default=None)
    given = parser.parse_args()
    out = given.out or RESULTS / f"design_{given.study}.json"
    if given.study == "peptides":
        run_peptides(given.seeds, given.proxy, out)
    else:
        run_games(given.study, given.seeds, given.proxy, tuple(given.methods or METHODS[given.study]), out)


if __name__ == "__main__":
    main()
