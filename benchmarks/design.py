"""Design in rounds on measured landscapes: ours beside rivals, all in one run on one kind of proxy.

OMP_NUM_THREADS=1 python -m benchmarks.design p1 --seeds 20        GB1, 96 random + 4 x 96, no noise: best fitness found
OMP_NUM_THREADS=1 python -m benchmarks.design p2 --seeds 5         MPSA and TFBind8 under noise, aware and unaware of it
OMP_NUM_THREADS=1 python -m benchmarks.design peptides --proxy ridge --seeds 5   2,177 peptides, one plate
python -m benchmarks.design gain                                   what ranking by the value under noise gains, exact

Methods `benchmarks.design_rivals:...` are other people's code and need an environment that has it; `--methods` chooses.
Each game is written as soon as it is played, and what a file has is not played again: a study that was stopped goes on.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from benchmarks.common import RESULTS, each_cell, machine, positive
from sgfn.config import NoiseConfig, TrainConfig
from sgfn.config.cluster_jobs import Report
from sgfn.config.files import read_json, write_json
from sgfn.design.designer import Designer
from sgfn.design.simulate import Truth, play
from sgfn.landscapes.tasks import Task, make_task

STUDIES = ("p1", "p2", "peptides", "gain")
RIVALS = "benchmarks.design_rivals:"
METHODS = {
    "p1": (
        *("ucb", "thompson", "greedy", "members", "genetic", "random"),
        *(f"{RIVALS}flexs_adalead", f"{RIVALS}cma_package", f"{RIVALS}botorch_thompson"),
    ),
    "p2": ("greedy", "greedy-unaware"),
}
PROXY = {"p1": "ensemble", "p2": "ensemble", "peptides": "ridge"}
SIZES = {"4 x 96": {"rounds": 4, "orders": 96}, "10 x 128": {"rounds": 10, "orders": 128}}
TASKS = {"mpsa": "NNNGYNNNN", "tfbind8": None, "tfbind8-CRX_REF_R1": None}
"""Landscapes of the study under noise, and which sequences may be ordered; what noise makes of splice sites outside of
NNNGYNNNN scores 0."""
NOISES = ("0.05", "0.1", "0.2", "taq")
TAQ = {"AG": 0.642, "TC": 0.642, "AT": 0.194, "TA": 0.194, "GA": 0.045, "CT": 0.045, "AC": 0.015, "TG": 0.015}
TAQ |= {"GT": 0.015, "CA": 0.015}
"""Share of all mutations of error-prone PCR with Taq (BMC Biol 5:29), complements together; frameshifts left out."""
TAQ_RATE = 0.1
LETTERS = {"gb1": 20, "mpsa": 4, "tfbind8": 4}
_SCALE = "0.62 -2.53 -0.78 -0.90 0.29 -0.85 -0.74 0.48 -0.40 1.38 1.06 -1.50 0.64 1.19 0.12 -0.18 -0.05 0.81 0.26 1.08"
HYDROPHOBICITY = dict(zip("ARNDCQEGHILKMFPSTWYV", map(float, _SCALE.split()), strict=True))
"""Consensus scale. Eisenberg et al. (1984), Journal of Molecular Biology 179:125."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A setting that all methods play, seed by seed."""

    task: str
    noise: str
    size: str
    start: int


def cells(study: str) -> Iterator[Cell]:
    """Settings of a study; of GB1 what was never measured scores 0."""
    if study == "p1":
        yield Cell(task="gb1", noise="0", size="4 x 96", start=96)
        return
    for size in SIZES:
        for task in TASKS:
            for noise in NOISES:
                yield Cell(task=task, noise=noise, size=size, start=5000)


def config_of(cell: Cell, folder: Path) -> TrainConfig:
    """The configuration of a cell's task; a confusion matrix is written to the folder."""
    if cell.noise != "taq":
        noise = NoiseConfig(alpha=float(cell.noise))
    else:
        letters = "ACGU" if cell.task == "mpsa" else "ACGT"
        noise = NoiseConfig(kind="confusion", file=write_taq(folder / f"{letters}.csv", letters))
    return TrainConfig().with_(noise=noise, constraints__pattern=TASKS.get(cell.task))


def write_taq(file: Path, letters: str) -> Path:
    """Write the confusion matrix of error-prone PCR at one wrong base in ten, over bases that are equally frequent."""
    lines = [f"intended,{','.join(letters)}"]
    for one in letters.replace("U", "T"):
        row = {other: 4 * TAQ_RATE * TAQ.get(one + other, 0.0) / 2 for other in letters.replace("U", "T")}
        row[one] = 1.0 - sum(row.values())
        lines.append(",".join([one if one in letters else "U", *(f"{value:.6f}" for value in row.values())]))
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def run_games(
    study: str, seeds: list[int], proxy: str, methods: tuple[str, ...], out: Path, cluster: str | None = None
) -> None:
    """Play all cells, seed by seed, those alone that the file does not have yet."""
    games: list[dict[str, Any]] = read_json(out)["rows"] if out.is_file() else []
    done = {(g["cell"], g["method"], g["seed"]) for g in games}
    wanted = {
        f"{name_of(cell)}, {method}, seed {seed}": (cell, method, seed, proxy)
        for seed in seeds
        for cell in cells(study)
        for method in methods
        if (name_of(cell), method, seed) not in done
    }

    def keep(name: str, game: dict[str, Any]) -> None:
        games.append(game)
        write_results(out, {"rows": games})
        print(f"{name}: best {game['best'][-1]:.4f}", flush=True)

    each_cell(wanted, play_cell, keep, cluster)


def name_of(cell: Cell) -> str:
    """A cell as its rows call it."""
    return f"{cell.task}, noise {cell.noise}, {cell.size}"


def play_cell(given: tuple[Cell, str, int, str], shared: object, report: Report) -> dict[str, Any]:
    """The row of one game, wherever it is played."""
    cell, method, seed, proxy = given
    game = play(task_of(cell), method, **SIZES[cell.size], start=cell.start, seed=seed, proxy=proxy)
    return {"cell": name_of(cell), "method": method, "seed": seed, "proxy": proxy} | rounds_of(game)


@lru_cache(1)
def task_of(cell: Cell) -> Task:
    """The task of a cell, kept until another one is played."""
    with tempfile.TemporaryDirectory() as folder:
        return make_task(cell.task, config_of(cell, Path(folder)))


def rounds_of(game: Any) -> dict[str, list[float]]:
    """Figures of each round of a game, five digits each."""
    names = ("best", "expected", "regret", "seconds")
    return {name: [float(f"{getattr(one, name):.5g}") for one in game.rounds] for name in names}


def gains() -> list[dict[str, Any]]:
    """Mean value under noise of the best K orders ranked by that value, over that of the best K by score: exact."""
    rows = []
    for task, count in (("gb1", 96), ("mpsa", 96), ("tfbind8", 128)):
        for rate in (0.01, 0.1, 0.2, 0.3):
            slip = rate * LETTERS[task] / (LETTERS[task] - 1)  # a slip may write the letter that was meant
            truth = Truth(make_task(task, config_of(Cell(task=task, noise=str(slip), size="", start=0), Path())))
            everything = truth.space.env.all_objects()
            everything = everything[truth.space.allowed(everything)]
            value, score = truth.expected(everything).double(), truth.scores(everything)
            best, blind = value.topk(count).values.mean(), value[score.topk(count).indices].mean()
            rows.append({"task": task, "orders": count, "rate": rate, "gain": float(best / blind - 1)})
    return rows


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
    parser.add_argument("--first", type=int, default=0, help="the first seed; development had 100 and more")
    parser.add_argument("--proxy", default=None, help="kind of the proxy of all methods")
    parser.add_argument("--methods", nargs="+", default=None)
    parser.add_argument("--out", type=Path, default=None)
    parser.add_argument("--cluster", default=None, help="Ray cluster that plays: local, auto or HOST:PORT")
    given = parser.parse_args()
    out = given.out or RESULTS / f"design_{given.study}.json"
    if given.study == "gain":
        return write_results(out, {"rows": gains()})
    kind = given.proxy or PROXY[given.study]
    if given.study == "peptides":
        return run_peptides(given.seeds, kind, out)
    seeds = list(range(given.first, given.first + given.seeds))
    return run_games(given.study, seeds, kind, tuple(given.methods or METHODS[given.study]), out, given.cluster)


if __name__ == "__main__":
    main()
