"""Published settings (Pan et al. 2023): flow networks and their peers on the same budget of environment calls.

    python -m benchmarks.published tfbind8 --device cuda
    python -m benchmarks.published grid --device cuda
    python -m benchmarks.published bits --device cuda

Each writes results/published_STUDY.json. Runs that the file has already are not made again, so a study that was stopped
goes on, and `--methods` may be given in parts (chains are as fast on a CPU). Runs of one noise level, exponent and task
stand side by side on the device; each row says on which, and by which command. A run that leaves the finite numbers
costs no other: its row says `failed` and why, in the place of figures.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from benchmarks.common import RESULTS, Measure, command, machine, rounded, spread, train_together, write_results
from sgfn import exact
from sgfn.config import TrainConfig
from sgfn.contestants import CONTESTANTS
from sgfn.evaluate import sample_figures
from sgfn.files import read_json
from sgfn.landscapes.bits import Bits
from sgfn.learner import Learner, NonFiniteError
from sgfn.presets import PRESETS
from sgfn.tasks import Task

LOOKS, SAMPLES = 20, 2048
REPLAY: dict[str, Any] = {"explore": 0.1, "replay__updates": 4, "replay__batch": 1024, "replay__capacity": 80_000}
METHODS: dict[str, dict[str, Any]] = {
    **CONTESTANTS,
    "tb-replay": {**CONTESTANTS["tb"], **REPLAY},
    "kl-replay": {**CONTESTANTS["kl"], **REPLAY},
}
"""Everyone who may be compared, and ours with several updates for each trajectory."""


@dataclass(frozen=True, kw_only=True)
class Study:
    """A task with a published budget, under the noise levels and exponents that it is run at."""

    task: str
    preset: str
    alphas: tuple[float, ...]
    variants: tuple[dict[str, Any], ...] = ({},)
    """What else differs between cells."""
    methods: tuple[str, ...]

    def cells(self, steps: int | None) -> Iterator[tuple[dict[str, Any], TrainConfig]]:
        """A description and a configuration for each cell, without method and seed."""
        base = PRESETS[self.preset]
        for variant in self.variants:
            for alpha in self.alphas:
                config = base.with_(noise__alpha=alpha, steps=steps or base.steps, **variant)
                described = {"alpha": alpha, "steps": config.steps}
                yield {**described, **{name.replace("__", "."): value for name, value in variant.items()}}, config


FLOWS = ("kl", "tb", "db", "published-tb", "published-db", "blind-tb", "blind-db", "eflow", "kl-entropy")
PEERS = ("a2c", "ppo", "sac", "mh", "mars", "random")
STUDIES = {
    "tfbind8": Study(
        task="tfbind8",
        preset="published-tfbind8",
        alphas=(0.1, 0.3, 0.5),
        variants=({"beta": 3.0}, {"beta": 10.0}),
        methods=("kl-replay", "tb-replay", *FLOWS, *PEERS),
    ),
    "grid": Study(
        task="grid",
        preset="published-grid",
        alphas=(0.25, 0.5, 0.9),
        variants=({"grid__side": 8}, {"grid__side": 20}),
        methods=tuple(name for name in (*FLOWS, *PEERS) if name != "eflow"),
    ),
    "bits": Study(
        task="bits",
        preset="published-bits",
        alphas=(0.1, 0.3, 0.5),
        variants=({"bits__k": 4}, {"bits__k": 2}),
        methods=("kl", "tb", "published-db", "blind-db", "ppo", "sac", "mh", "random"),
    ),
}


class Discovering(Bits):
    """Remembers which modes some trajectory of the training came near to."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.found = torch.zeros(len(self.modes), dtype=torch.bool)

    def scores(self, objects: Int[Tensor, "*batch O"]) -> Float[Tensor, "*batch"]:
        """The reward; what was scored counts as seen."""
        distances = self.distances(objects)
        self.found |= (distances <= self.within).reshape(-1, len(self.modes)).any(0)
        return self.reward(distances)


def discovering(task: Task) -> Task:
    """A task of bits with a memory of its own; any other as it is."""
    return replace(task, landscape=Discovering(**vars(task.config.bits))) if task.name == "bits" else task


def figures(learner: Learner, measure: Measure) -> dict[str, Any]:
    """Exact distances where there is a law, and what 2,048 samples show."""
    enumerable = exact.enumerable(learner.task.env)
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


def run_cell(
    study: Study, config: TrainConfig, wanted: list[tuple[str, int]], device: torch.device, measure: Measure
) -> list[dict[str, Any]]:
    """All methods and seeds that are still wanted in one cell, side by side."""
    configs = [config.with_(seed=seed, **METHODS[method]) for method, seed in wanted]
    curves: list[list[list[float]]] = [[] for _ in wanted]
    reasons = [""] * len(wanted)

    def look(step: int, learners: list[Learner]) -> None:
        for i, learner in enumerate(learners):
            reasons[i] = reasons[i] or failure(learner)
            if not reasons[i] and exact.enumerable(learner.task.env) and learner.has_law:
                tv = exact.total_variation(learner.law(), measure.of(learner).target)
                curves[i].append([learner.trajectories, round(tv, 5)])

    every = max(1, config.steps // LOOKS)
    learners, seconds = train_together(study.task, configs, device, look, every, discovering, check=lambda _: None)
    look(config.steps, learners)
    print(f"{len(wanted)} runs in {seconds:.0f} s, {sum(map(bool, reasons))} failed", flush=True)
    rows = []
    for (method, seed), learner, curve, reason in zip(wanted, learners, curves, reasons, strict=True):
        described = {"method": method, "seed": seed, "calls": learner.trajectories, "device": machine(device)["device"]}
        described |= {"failed": reason} if reason else figures(learner, measure)
        rows.append(described | ({"curve": curve} if curve else {}))
    return rows


def failure(learner: Learner) -> str:
    """Why a run is not worth measuring, in one line; empty where it is."""
    try:
        learner.check_finite()
    except NonFiniteError as error:
        return str(error)
    return ""


def rows_of(out: Path) -> list[dict[str, Any]]:
    """What a file has already; rows without a command are of files that were written at one go."""
    there = read_json(out) if out.is_file() else {"rows": []}
    return [row if "command" in row else row | {"command": there["command"]} for row in there["rows"]]


def same(row: dict[str, Any], cell: dict[str, Any]) -> bool:
    """Whether a row belongs to a cell."""
    return cell.items() <= row.items()


def parse() -> argparse.Namespace:
    """Flags of the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", choices=STUDIES)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=None, help="only these")
    parser.add_argument("--alphas", nargs="+", type=float, default=None, help="only these noise levels")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=None, help="fewer steps, to try the script out")
    parser.add_argument("--out", type=Path, default=None)
    return parser.parse_args()


def main() -> None:
    """Run what is missing of a study."""
    args = parse()
    study, device, measure = STUDIES[args.study], torch.device(args.device), Measure()
    out = args.out or RESULTS / f"published_{args.study}.json"
    rows = rows_of(out)
    for cell, config in study.cells(args.steps):
        if args.alphas and cell["alpha"] not in args.alphas:
            continue
        names = args.methods or study.methods
        there = {(row["method"], row["seed"]) for row in rows if same(row, cell)}
        wanted = [(m, s) for m in names for s in range(args.seeds) if (m, s) not in there]
        if not wanted:
            continue
        print(cell, flush=True)
        found = run_cell(study, config, wanted, device, measure)
        new: list[dict[str, Any]] = [cell | row | {"command": command("published", out)} for row in found]
        rows += new
        write_results(out, "published", device, rows)
        for name in names:
            for key in ("tv", "top100_mean", "modes_greedy", "modes_reference", "modes_discovered"):
                values = [row[key] for row in new if row["method"] == name and row.get(key) is not None]
                print(f"  {name}: {key} %.4f [%.4f, %.4f]" % spread(values) if values else "", flush=True)


if __name__ == "__main__":
    main()
