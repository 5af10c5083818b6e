"""Design in rounds on measured landscapes: ours beside rivals, all in one run on one kind of proxy.

OMP_NUM_THREADS=1 python -m benchmarks.design p1 --seeds 20        GB1, 96 random + 4 x 96, no noise: best fitness found
OMP_NUM_THREADS=1 python -m benchmarks.design p2 --seeds 5         MPSA and TFBind8 under noise, aware and unaware of it
OMP_NUM_THREADS=1 python -m benchmarks.design p4 --seeds 5         RNA, Ehrlich, constrained peptides: 128 + 10 x 128
OMP_NUM_THREADS=1 python -m benchmarks.design searches --seeds 5   the same spaces, all searches on one fixed proxy
OMP_NUM_THREADS=1 python -m benchmarks.design development --first 200   made-up landscapes to choose settings on
OMP_NUM_THREADS=1 python -m benchmarks.design wide --first 200 --seeds 3   smaller spaces that nobody can list, likewise
OMP_NUM_THREADS=1 python -m benchmarks.design peptides --proxy auto --seeds 5   2,177 peptides, one plate
OMP_NUM_THREADS=1 python -m benchmarks.design honest --first 200 --seeds 8   what is told of a plate, and the truth
OMP_NUM_THREADS=1 python -m benchmarks.design mutants --seeds 1     libraries of mutants of one parent, two plates
OMP_NUM_THREADS=1 python -m benchmarks.design why --seeds 3       when knowing the noise gains, and why not from proxies
python -m benchmarks.design gain                                   what ranking by the value under noise gains, exact

Methods `benchmarks.design_rivals:...` are other people's code and need an environment that has it; `--methods` chooses.
Each game is written as soon as it is played, and what a file has is not played again: a study that was stopped goes on.
`--jobs 16` plays as many at once.
"""

import argparse
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from benchmarks.cells import perform
from benchmarks.common import RESULTS, add_cluster, positive
from benchmarks.design_games import Cell, config_of, games_of, write_results
from benchmarks.design_honest import run_honest
from benchmarks.design_mutants import mutants_study
from benchmarks.design_peptides import run_peptides
from benchmarks.design_searches import METHODS as SEARCHERS
from benchmarks.design_searches import searches_study
from benchmarks.design_why import why_study
from sgfn.design.simulate import Truth
from sgfn.landscapes.tasks import make_task

STUDIES = ("p1", "p2", "p4", "searches", "development", "wide", "peptides", "gain", "why", "honest", "mutants")
RIVALS, RECIPES = "benchmarks.design_rivals:", "benchmarks.design_recipes:"
STILL = f"{RECIPES}ucb_still"
METHODS = {
    "p1": (
        *(
            "cross-validated",
            "pooled-mixed",
            "mixed",
            "ucb",
            "thompson",
            "greedy",
            "members",
            "genetic",
            "adalead",
            "random",
        ),
        *(f"{RIVALS}flexs_adalead", f"{RIVALS}cma_package", f"{RIVALS}botorch_thompson"),
    ),
    "p2": ("greedy", "greedy-unaware"),
    "p4": ("thompson", STILL, "adalead", "genetic", "cma-es", "evolution", "random"),
    "development": ("cross-validated", "mixed", "ucb", "thompson", "adalead"),
    "wide": (
        *(f"{RECIPES}{name}" for name in ("tempered", "thompson", "ucb_still", "thompson_still", "thompson_free")),
        "cma-es",
    ),
}
PROXY = dict.fromkeys(METHODS, "ensemble") | {"peptides": "auto"}
LETTERS = {"gb1": 20, "mpsa": 4, "tfbind8": 4}
RATES = (0.01, 0.1, 0.2, 0.3)


def gains() -> list[dict[str, Any]]:
    """Mean value under noise of the best K orders ranked by that value, over that of the best K by score: exact."""
    rows = []
    for task, count in (("gb1", 96), ("mpsa", 96), ("tfbind8", 128)):
        for rate in RATES:
            slip = rate * LETTERS[task] / (LETTERS[task] - 1)  # a slip may write the letter that was meant
            truth = Truth(make_task(task, config_of(Cell(task=task, noise=str(slip)), Path())))
            everything = truth.space.env.all_objects()
            everything = everything[truth.space.allowed(everything)]
            found = gain(truth.expected(everything).double(), truth.scores(everything), count)
            rows.append({"task": task, "orders": count, "rate": rate, "gain": found})
    return rows + [{"task": "mpsa-within", "orders": 96, "rate": rate, "gain": gain_within(rate)} for rate in RATES]


def gain(value: Float[Tensor, " N"], score: Float[Tensor, " N"], count: int) -> float:
    """Mean value of the best orders by value over that of the best by score, less 1."""
    return float(value.topk(count).values.mean() / value[score.topk(count).indices].mean() - 1)


def gain_within(rate: float, count: int = 96) -> float:
    """The gain on splice sites if errors wrote only letters that the table has at a place: G never errs, C and U swap.

    What was not measured has the median. That is how the percentages of the method's page were made; a synthesis errs
    at the fourth and fifth place too, and what it makes there is no splice site.
    """
    truth = Truth(make_task("mpsa", config_of(Cell(task="mpsa"), Path())))
    everything = truth.space.everything()  # in the order of the alphabet: 4 x 4 x 4 x 1 x 2 x 4 x 4 x 4 x 4
    known = truth.scores(everything).double()
    scores = torch.where(known > 0, known, known[known > 0].median())
    part = scores.view(4, 4, 4, 1, 2, 4, 4, 4, 4)
    for axis, letters in enumerate(part.shape):
        if letters > 1:
            part = (1 - rate - rate / (letters - 1)) * part + rate / (letters - 1) * part.sum(axis, keepdim=True)
    return gain(part.reshape(-1), scores, count)


def main() -> None:
    """Play one study."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", choices=STUDIES)
    parser.add_argument("--seeds", type=positive, default=20)
    parser.add_argument("--first", type=int, default=0, help="the first seed; development had 100 and more")
    parser.add_argument("--proxy", default=None, help="kind of the proxy of all methods")
    parser.add_argument("--methods", nargs="+", default=None)
    parser.add_argument("--only", default=None, help="settings alone whose name holds this")
    parser.add_argument("--jobs", type=positive, default=1, help="games at once, a process each")
    parser.add_argument("--device", default="cpu", help="where our players fit their proxies in games, cpu or cuda")
    add_cluster(parser)
    parser.add_argument("--out", type=Path, default=None)
    given = parser.parse_args()
    out = given.out or RESULTS / f"design_{given.study}.json"
    if given.study == "gain" and given.cluster:
        parser.error("gain has no cells: leave --cluster out")
    if given.study == "gain":
        return write_results(out, {"rows": gains()})
    kind = given.proxy or PROXY.get(given.study, "")
    if given.study == "peptides":
        return run_peptides(given.seeds, kind, out, given.cluster)
    seeds = range(given.first, given.first + given.seeds)
    if given.study == "honest":
        return run_honest(seeds, out, given.cluster, given.only, given.jobs)
    if given.study == "why":
        study = why_study(seeds, out)
    elif given.study == "mutants":
        study = mutants_study(seeds, out, given.methods, given.only)
    elif given.study == "searches":
        study = searches_study(seeds, out, given.methods or SEARCHERS, given.only)
    else:
        study = games_of(
            given.study, seeds, kind, tuple(given.methods or METHODS[given.study]), out, given.only, given.device
        )
    return perform([study], given.jobs, cluster=given.cluster)


if __name__ == "__main__":
    main()
