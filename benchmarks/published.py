"""Published settings (Pan et al. 2023): flow networks and their peers on the same budget of environment calls.

    python -m benchmarks.published tfbind8 --device cuda
    python -m benchmarks.published grid --device cuda
    python -m benchmarks.published bits --device cuda
    python -m benchmarks.published tfbind8-equal --device cuda

Each writes results/published_STUDY.json. Runs that the file has already are not made again, so a study that was stopped
goes on, and `--methods` may be given in parts (chains are as fast on a CPU). Runs of one noise level, exponent and task
stand side by side on the device; each row says on which.
"""

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from benchmarks.common import (
    RESULTS,
    Measure,
    add_cluster,
    command,
    each_cell,
    machine,
    measure,
    rounded,
    spread,
    train_together,
    write_results,
)
from sgfn.compare.contestants import CONTESTANTS
from sgfn.config import TrainConfig
from sgfn.config.files import read_json
from sgfn.config.presets import PRESETS
from sgfn.envs import laws
from sgfn.evaluation import exact
from sgfn.evaluation.measure import sample_figures
from sgfn.landscapes.bits import Bits
from sgfn.landscapes.tasks import Task
from sgfn.learning.learner import Learner, NonFiniteError

LOOKS, SAMPLES = 20, 2048
REPLAY: dict[str, Any] = {
    "batch": 64,
    "steps": 1249,  # and one batch to guess log Z: 80,000 trajectories, as many as the others
    "explore": 0.1,
    "net__hidden": 512,
    "net__layers": 3,
    "optim__lr": 2e-3,
    "replay__updates": 10,
    "replay__batch": 1024,
    "replay__capacity": 80_000,
}
UPDATES = REPLAY["steps"] * (1 + REPLAY["replay__updates"])
"""Updates of the networks in a run of `kl-replay`: one on each new batch and ten on past trajectories."""
ON_POLICY: dict[str, Any] = {name: REPLAY[name] for name in ("net__hidden", "net__layers", "optim__lr")}
EQUAL: dict[str, dict[str, Any]] = {
    **{f"{name}-equal": {**CONTESTANTS[name], **REPLAY} for name in ("tb", "published-db", "blind-db")},
    # as many updates, of 64 trajectories each: PPO repeats a batch, which holds no past ones
    "ppo-equal": {**CONTESTANTS["ppo"], **ON_POLICY, "batch": 64, "steps": 1250, "rl__epochs": 11},
    "sac-equal": {
        **CONTESTANTS["sac"],
        **{name: value for name, value in REPLAY.items() if name != "replay__updates"},
        "steps": 1250,
        "rl__updates": 11,
    },
}
"""The others with the network, the replay and the number of updates of `kl-replay`, on the same 80,000 trajectories."""
METHODS: dict[str, dict[str, Any]] = {**CONTESTANTS, "kl-replay": {**CONTESTANTS["kl"], **REPLAY}, **EQUAL}
"""Everyone who may be compared, and ours with ten updates of 1,024 past trajectories for every 64 new ones."""


@dataclass(frozen=True, kw_only=True)
class Study:
    """A task with a published budget, under the noise levels and exponents that it is run at."""

    task: str
    preset: str
    alphas: tuple[float, ...]
    variants: tuple[dict[str, Any], ...] = ({},)
    """What else differs between cells."""
    methods: tuple[str, ...]

    def cells(
        self, steps: int | None, chosen: Sequence[int] | None = None
    ) -> Iterator[tuple[dict[str, Any], TrainConfig]]:
        """A description and a configuration for each cell, without method and seed."""
        base = PRESETS[self.preset]
        for variant in self.variants if chosen is None else [self.variants[i] for i in chosen]:
            for alpha in self.alphas:
                config = base.with_(**{"noise__alpha": alpha, **variant} | ({"steps": steps} if steps else {}))
                described = {"alpha": alpha, "steps": config.steps}
                told = {name.replace("__", "."): value for name, value in variant.items() if name != "steps"}
                yield {**described, **told}, config


FLOWS = ("kl", "tb", "published-db", "blind-db", "eflow")
PEERS = ("a2c", "ppo", "sac", "mh", "mars", "random")
STUDIES = {
    "tfbind8": Study(
        task="tfbind8",
        preset="published-tfbind8",
        alphas=(0.1, 0.3, 0.5),
        variants=({"beta": 3.0}, {"beta": 10.0}),
        methods=("kl-replay", *FLOWS, *PEERS),
    ),
    "tfbind8-equal": Study(
        task="tfbind8",
        preset="published-tfbind8",
        alphas=(0.1, 0.3, 0.5),
        variants=({"beta": 3.0}, {"beta": 10.0}),
        methods=("kl-replay", *EQUAL),
    ),
    "grid": Study(
        task="grid",
        preset="published-grid",
        alphas=(0.25, 0.5, 0.9),
        variants=({"grid__side": 8}, {"grid__side": 20}),
        methods=("kl", "tb", "published-db", "blind-db", "ppo", "mh"),
    ),
    "bits": Study(
        task="bits",
        preset="published-bits",
        alphas=(0.1, 0.3, 0.5),
        variants=tuple(
            {"bits__k": k, "beta": beta, "batch": 160, "steps": 1000} for k in (4, 2) for beta in (3.0, 100.0)
        ),
        methods=("tb", "random"),
    ),
}


class Discovering(Bits):
    """A landscape that remembers which modes some trajectory of the training came near to."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.found = torch.zeros(len(self.modes), dtype=torch.bool)

    def scores(self, objects: Int[Tensor, "*batch O"]) -> Float[Tensor, "*batch"]:
        """Scores of objects, which are recorded as visited."""
        distances = self.distances(objects)
        self.found |= (distances <= self.within).reshape(-1, len(self.modes)).any(0)
        return self.reward(distances)


def discovering(task: Task) -> Task:
    """A task of bits whose landscape remembers modes; any other task unchanged."""
    return replace(task, landscape=Discovering(**vars(task.config.bits))) if task.name == "bits" else task


def figures(learner: Learner, measure: Measure) -> dict[str, Any]:
    """Exact distances where there is a law, and what 2,048 samples show."""
    enumerable = laws.enumerable(learner.task.env)
    found: dict[str, Any] = {}
    if isinstance(learner.task.landscape, Discovering):
        found["modes_discovered"] = int(learner.task.landscape.found.sum())
    if enumerable:
        found |= exact.distances(learner.law() if learner.has_law else None, measure.of(learner))
    drawn = learner.draw(SAMPLES, learner.config.seed)
    learner.task.landscape.to(torch.device("cpu"))
    shown = sample_figures(learner.task, drawn)
    learner.task.landscape.to(learner.device)
    numbers = {name: value for name, value in shown.items() if isinstance(value, int | float)}
    return rounded(found | numbers | learner.calibrated(1024, 1))


def configured(config: TrainConfig, method: str, seed: int) -> TrainConfig:
    """The run of a method in a cell; a method with steps of its own has no more of them than the cell allows."""
    changes = dict(METHODS[method])
    if "steps" in changes:
        changes["steps"] = min(changes["steps"], config.steps)
    return config.with_(seed=seed, **changes)


def run_cell(task: str, config: TrainConfig, wanted: list[tuple[str, int]], device: str) -> list[dict[str, Any]]:
    """Methods and seeds that are still wanted in one cell, those of the same number of steps side by side."""
    rows = []
    configs = {(method, seed): configured(config, method, seed) for method, seed in wanted}
    for steps in sorted({c.steps for c in configs.values()}):
        together = {run: c for run, c in configs.items() if c.steps == steps}
        rows += run_together(task, together, torch.device(device), measure())
    return rows


def run_together(
    task: str, configs: dict[tuple[str, int], TrainConfig], device: torch.device, measure: Measure
) -> list[dict[str, Any]]:
    """Train and measure runs of equal length, side by side on the device."""
    curves: list[list[list[float]]] = [[] for _ in configs]
    reasons, steps = [""] * len(configs), next(iter(configs.values())).steps

    def look(step: int, learners: list[Learner]) -> None:
        for i, learner in enumerate(learners):
            reasons[i] = reasons[i] or failure(learner)
            if not reasons[i] and laws.enumerable(learner.task.env) and learner.has_law:
                tv = exact.total_variation(learner.law(), measure.of(learner).target)
                curves[i].append([learner.trajectories, round(tv, 5)])

    every, rows = max(1, steps // LOOKS), []
    chosen = list(configs.values())
    learners, seconds = train_together(task, chosen, device, look, every, discovering, strict=False)
    look(steps, learners)
    print(f"{len(configs)} runs in {seconds:.0f} s, {sum(map(bool, reasons))} failed", flush=True)
    for (method, seed), learner, curve, reason in zip(configs, learners, curves, reasons, strict=True):
        described = {"method": method, "seed": seed, "calls": learner.trajectories, "device": machine(device)["device"]}
        described |= {"failed": reason} if reason else figures(learner, measure)
        rows.append(described | ({"curve": curve} if curve else {}))
    return rows


def failure(learner: Learner) -> str:
    """Reason why a run cannot be measured, in one line; empty if it can."""
    try:
        learner.check_finite()
    except NonFiniteError as error:
        return str(error)
    return ""


def rows_of(out: Path) -> list[dict[str, Any]]:
    """Rows that a file has already; where a row has no command, that of the whole file."""
    there = read_json(out) if out.is_file() else {"rows": []}
    return [row if "command" in row else row | {"command": there["command"]} for row in there["rows"]]


Unit = tuple[dict[str, Any], TrainConfig, list[tuple[str, int]]]
"""A cell with some of its methods and seeds."""


def apart(units: list[Unit]) -> list[Unit]:
    """The same runs, each a part of its own."""
    return [(cell, config, [run]) for cell, config, wanted in units for run in wanted]


def seed_by_seed(units: list[Unit]) -> Iterator[Unit]:
    """The same runs in smaller parts, all cells of a seed before the next: a study that is cut has few whole seeds."""
    for seed in sorted({seed for _, _, wanted in units for _, seed in wanted}):
        for cell, config, wanted in units:
            part = [run for run in wanted if run[1] == seed]
            if part:
                yield cell, config, part


def until(deadline: float, units: Iterator[Unit]) -> Iterator[Unit]:
    """Units for as long as there is time."""
    for unit in units:
        if time.monotonic() >= deadline:
            return
        yield unit


def same(row: dict[str, Any], cell: dict[str, Any]) -> bool:
    """Whether a row belongs to a cell."""
    return cell.items() <= row.items()


def parse() -> argparse.Namespace:
    """Parse the flags of the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", choices=STUDIES)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=None, help="only these")
    parser.add_argument("--variants", nargs="+", type=int, default=None, help="only these, by their number")
    parser.add_argument("--alphas", nargs="+", type=float, default=None, help="only these noise levels")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=None, help="fewer steps, to try the script out")
    parser.add_argument("--jobs", type=int, default=0, help="on the CPU: so many runs at a time, each a process")
    parser.add_argument(
        "--minutes", type=float, default=None, help="alone or on one device: go seed by seed, and begin none after it"
    )
    parser.add_argument("--out", type=Path, default=None)
    add_cluster(parser)
    return parser.parse_args()


def main() -> None:
    """Run the cells that a study's file does not have yet."""
    args = parse()
    study, device = STUDIES[args.study], torch.device(args.device)
    out = args.out or RESULTS / f"published_{args.study}.json"
    rows, names = rows_of(out), args.methods or study.methods
    units: list[Unit] = []
    for cell, config in study.cells(args.steps, args.variants):
        there = {(row["method"], row["seed"]) for row in rows if same(row, cell)}
        wanted = [(m, s) for m in names for s in range(args.seeds) if (m, s) not in there]
        if wanted and (not args.alphas or cell["alpha"] in args.alphas):
            units.append((cell, config, wanted))

    def keep(cell: dict[str, Any], found: list[dict[str, Any]]) -> None:
        new: list[dict[str, Any]] = [cell | row | {"command": command("published")} for row in found]
        rows.extend(new)
        write_results(out, "published", device, rows)
        print(cell, flush=True)
        for name in names:
            for key in ("tv", "l1_mean", "top100_mean", "modes_greedy", "modes_reference", "modes_discovered"):
                values = [row[key] for row in new if row["method"] == name and row.get(key) is not None]
                if values:
                    print(f"  {name}: {key} %.4f [%.4f, %.4f]" % spread(values), flush=True)

    if args.jobs or args.cluster:
        where = args.device if args.cluster else "cpu"
        parts = {f"{cell}, {runs[0]}": (cell, (study.task, config, runs, where)) for cell, config, runs in apart(units)}
        given = {name: part[1] for name, part in parts.items()}
        each_cell(given, run_cell, lambda n, r: keep(parts[n][0], r), args.cluster, jobs=args.jobs, device=where)
        return
    in_turn = iter(units)
    if args.minutes is not None:
        in_turn = until(time.monotonic() + 60 * args.minutes, seed_by_seed(units))
    for cell, config, wanted in in_turn:
        keep(cell, run_cell(study.task, config, wanted, args.device))


if __name__ == "__main__":
    main()
