"""Channels that delete and insert: intervals of fitted rates, and what knowing the channel gains.

OMP_NUM_THREADS=1 python -m benchmarks.channels rates                how often 90 % intervals hold the true rates
OMP_NUM_THREADS=1 python -m benchmarks.channels exact                all orders of MPSA and TFBind8, aware and unaware,
                                                                     and the best stepwise policy: exact, no chance
OMP_NUM_THREADS=1 python -m benchmarks.channels orders --seeds 5     plates from a proxy, aware and unaware
OMP_NUM_THREADS=1 python -m benchmarks.channels steps --seeds 3      a trained stepwise sampler, and its designs ordered

Each cell is written as soon as it is done, and what a file has is not done again: a study that was stopped goes on.
"""

import argparse
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float64
from torch import Tensor

from benchmarks import cells as pool
from benchmarks.common import RESULTS, add_cluster, command, positive
from sgfn.config import NoiseConfig, TrainConfig
from sgfn.design.simulate import Truth, play
from sgfn.envs import IndelEnv, laws
from sgfn.landscapes.tasks import Task, make_task
from sgfn.learning.methods import make_learner
from sgfn.noise.fitting import ChannelModel, PairRows, fit_model, intervals
from sgfn.noise.indel import Indel
from sgfn.noise.making import preset_noise
from sgfn.noise.open_loop import plain_draws, realise_once

REPEATS, PAIRS, LENGTH = 100, 500, 25
BY_LETTER = {"deletion": [0.005, 0.01, 0.02, 0.03], "insertion": [0.002, 0.004, 0.006, 0.008]}
INSERTED = [0.4, 0.3, 0.2, 0.1]
PLATES = {"mpsa": 96, "tfbind8": 128}
PATTERNS = {"mpsa": "NNNGYNNNN", "tfbind8": None}
"""Which sequences may be ordered; what noise makes of splice sites outside of NNNGYNNNN scores 0."""
FLANKS = {"mpsa": "ACUGACUGA", "tfbind8": "ACTGACTG"}
"""Letters behind the sequence, where there are some: an arbitrary choice."""
CHANNELS = {
    "deletions 0.01": {"kind": "indel", "deletion": 0.01},
    "deletions 0.05": {"kind": "indel", "deletion": 0.05},
    "error-prone PCR 0.1": {"preset": "epcr-taq", "scale": 10.0},
}
PROXY, START = "ridge", 2000
STEPS, BATCH = 1500, 256
"""Training of the stepwise sampler."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A landscape under a channel, with letters behind the sequence or none."""

    task: str
    channel: str
    flank: bool

    @property
    def name(self) -> str:
        """What rows call it."""
        return f"{self.task}, {self.channel}, {'flank' if self.flank else 'no flank'}"

    def make(self, spare: int = 2) -> Task:
        """The task under the channel, with so many spare cycles for a stepwise policy."""
        noise = NoiseConfig(**CHANNELS[self.channel], spare=spare, flank=FLANKS[self.task] if self.flank else None)
        return make_task(self.task, TrainConfig().with_(noise=noise, constraints__pattern=PATTERNS[self.task]))


def cells() -> Iterator[Cell]:
    """All settings."""
    for task in PLATES:
        for channel in CHANNELS:
            for flank in (False, True):
                yield Cell(task=task, channel=channel, flank=flank)


# rates


def channels() -> dict[ChannelModel, Indel]:
    """The true channel for each kind that is fitted: storage pools on average, and one that differs by letter."""
    taq = preset_noise("epcr-taq", scale=5.0)
    rates = {name: torch.tensor(values, dtype=torch.float64) for name, values in BY_LETTER.items()}
    inserted = torch.tensor(INSERTED, dtype=torch.float64)
    return {"uniform": preset_noise("storage-average"), "letter": replace(taq, **rates, inserted=inserted)}


def simulated(noise: Indel, pairs: int, length: int, seed: int) -> PairRows:
    """Random orders, and what came out of each."""
    generator = torch.Generator().manual_seed(seed)
    orders = torch.randint(noise.vocab, (pairs, length), generator=generator)
    found = realise_once(noise, orders, plain_draws(pairs, length, generator), 2 * length)
    longest = int((found < noise.vocab).sum(-1).max())
    return PairRows(orders=orders, found=found[:, :longest], counts=torch.ones(pairs).double(), vocab=noise.vocab)


def true_rate(noise: Indel, kind: str, of: str) -> float:
    """The rate that an interval is of; of all letters alike where `of` is empty."""
    law, lost, added = (part[0] for part in noise.tables())
    if kind == "substitution":
        if of:
            return float(law["ACGT".index(of[0]), "ACGT".index(of[-1])])
        kept = 1.0 - lost
        return float((kept * (1.0 - law.diagonal())).sum() / kept.sum())
    rate = lost if kind == "deletion" else added
    return float(rate["ACGT".index(of)] if of else rate.mean())


def rates_row(model: ChannelModel, seed: int) -> dict[str, Any]:
    """Each rate with its estimate and interval of 90 %, from simulated pairs."""
    noise, found = channels()[model], {}
    for one in intervals(fit_model(simulated(noise, PAIRS, LENGTH, seed), model), "ACGT"):
        truth = true_rate(noise, one.kind, one.of)
        found[f"{one.kind} {one.of}".strip()] = [truth, one.rate, one.low, one.high]
    return {"rates": {name: [float(f"{value:.5g}") for value in values] for name, values in found.items()}}


def rates_study(seeds: Iterable[int], out: Path) -> pool.Study:
    """How often each rate lies in its interval of 90 %."""
    keys = [{"model": model, "seed": seed} for seed in seeds for model in channels()]
    return pool.study_by_keys(out, "channels", keys, rates_row, pairs=PAIRS, length=LENGTH, level=0.9)


# whole orders, exact


def best_stepwise(task: Task) -> float:
    """Highest mean score of what comes out of a policy that sees what was written: exact, from the last cycle back."""
    env, landscape = task.env, task.landscape
    assert isinstance(env, IndelEnv)
    ends = landscape.scores(env.all_objects()).double()
    value = torch.zeros(env.num_states, dtype=torch.float64)
    for states in reversed(list(env.levels())):
        after = torch.zeros(len(states), env.outcomes, dtype=torch.float64)
        for rows, k, reached, finished in laws.children(env, states):
            after[rows, k] = (ends if finished else value)[reached]
        worth = env.operator(states, torch.float64).expected(after)
        value[env.index(states)] = worth.masked_fill(~env.legal(states), -torch.inf).amax(-1)
    return float(value[env.index(env.initial(1))])


def exact_row(cell: Cell) -> dict[str, Any]:
    """Mean values of the best plates by value and by score if intact, and the best single order and policies."""
    began, count, truth = time.process_time(), PLATES[cell.task], Truth(cell.make())
    everything = truth.space.env.all_objects()
    everything = everything[truth.space.allowed(everything)]
    value, score = truth.expected(everything).double(), truth.scores(everything)
    aware, blind = value.topk(count).values.mean(), value[score.topk(count).indices].mean()
    found = {"cell": cell.name, "orders": count, "aware": float(aware), "unaware": float(blind)}
    found |= {"best_order": float(value.max()), "best_score": float(score.max())}
    for spare in (0, 2):
        found[f"stepwise_{spare}"] = best_stepwise(cell.make(spare))
    return rounded(found) | {"cpu_seconds": round(time.process_time() - began, 1)}


def exact_study(seeds: Iterable[int], out: Path) -> pool.Study:
    """All cells, without chance."""
    wanted = [pool.Cell(key={"cell": cell.name}, function=exact_row, arguments=(cell,)) for cell in cells()]
    return pool.Study(out=out, command=command("channels"), cells=wanted, about=lambda rows: {"flanks": FLANKS})


# whole orders, from a proxy


def orders_row(cell: Cell, method: str, seed: int) -> dict[str, Any]:
    """One plate after random measurements, aware of the channel or not."""
    sizes: dict[str, Any] = {"rounds": 1, "orders": PLATES[cell.task], "start": START}
    (last,) = play(cell.make(), method, **sizes, seed=seed, proxy=PROXY).rounds
    return rounded({"expected": last.expected, "regret": last.regret, "seconds": last.seconds})


def orders_study(seeds: Iterable[int], out: Path) -> pool.Study:
    """Plates aware of the channel and not, seed by seed."""
    some = [cell for cell in cells() if cell.flank or "PCR" in cell.channel]
    wanted = [
        pool.Cell(
            key={"cell": cell.name, "method": method, "seed": seed}, function=orders_row, arguments=(cell, method, seed)
        )
        for seed in seeds
        for cell in some
        for method in ("greedy", "greedy-unaware")
    ]
    about = {"proxy": PROXY, "start": START, "flanks": FLANKS}
    return pool.Study(out=out, command=command("channels"), cells=wanted, about=lambda rows: about)


# a stepwise sampler


def steps_study(seeds: Iterable[int], out: Path, steps: int = STEPS) -> pool.Study:
    """A flow network trained to write step by step, its mean score, and that of the same designs as whole orders."""
    wanted = [
        pool.Cell(
            key={"cell": cell.name, "spare": spare, "seed": seed},
            function=stepwise_row,
            arguments=(cell, spare, seed, steps),
        )
        for seed in seeds
        for cell in (Cell(task="tfbind8", channel=channel, flank=False) for channel in CHANNELS)
        for spare in (0, 2)
    ]
    about = {"steps": steps, "batch": BATCH}
    return pool.Study(out=out, command=command("channels"), cells=wanted, about=lambda rows: about)


def stepwise_row(cell: Cell, spare: int, seed: int, steps: int) -> dict[str, Any]:
    """Mean scores, exact law of the policy, and values of its designs as orders."""
    began, task = time.process_time(), cell.make(spare)
    settings = task.config.with_(seed=seed, steps=steps, batch=BATCH, dynamics__mode="known", log__exact_every=0)
    task = replace(task, config=settings)
    learner = make_learner(task, torch.device("cpu"))
    for _ in range(steps):
        learner.step()
    law, env = learner.law(), task.env
    assert isinstance(env, IndelEnv)
    objects = env.all_objects()
    scores, whole = task.landscape.scores(objects).double(), env.admissible(objects)
    ordered: Float64[Tensor, " N"] = env.value_table(scores[-(env.vocab**env.length) :], 0.0)
    kept = law[-(env.vocab**env.length) :]
    wanted = torch.softmax(task.beta * task.log_target(objects).double(), 0)
    found = {"stepwise": float(law @ scores), "whole": float(law[whole].sum())}
    found |= {"as_orders": float(kept @ ordered / kept.sum()), "intact_mean": float(kept @ scores[whole] / kept.sum())}
    found |= {"tv": 0.5 * float((law - wanted).abs().sum()), "target": float(wanted @ scores)}
    return rounded(found) | {"cpu_seconds": round(time.process_time() - began, 1)}


def rounded(found: dict[str, Any]) -> dict[str, Any]:
    """Figures with five digits."""
    return {name: float(f"{value:.5g}") if isinstance(value, float) else value for name, value in found.items()}


STUDIES = {"rates": rates_study, "exact": exact_study, "orders": orders_study, "steps": steps_study}
SEEDS = {"rates": REPEATS, "exact": 1, "orders": 5, "steps": 3}


def main() -> None:
    """Do one study."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", choices=STUDIES)
    parser.add_argument("--seeds", type=positive, default=None)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=positive, default=1, help="cells at once, a process each")
    parser.add_argument("--steps", type=positive, default=STEPS, help="training steps of the stepwise sampler")
    parser.add_argument("--out", type=Path, default=None)
    add_cluster(parser)
    given = parser.parse_args()
    out = given.out or RESULTS / f"channels_{given.study}.json"
    seeds = range(given.first, given.first + (given.seeds or SEEDS[given.study]))
    more = {"steps": given.steps} if given.study == "steps" else {}
    return pool.perform([STUDIES[given.study](seeds, out, **more)], given.jobs, cluster=given.cluster)


if __name__ == "__main__":
    main()
