"""Which way to explore finds what is hidden, and how soon; every call of the score is counted.

python -m benchmarks.exploration ehrlich      Ehrlich functions from one feasible start, preset `explore`
python -m benchmarks.exploration validation   the same at seeds 10 to 14, which no setting was chosen on
python -m benchmarks.exploration rival        the same functions, start and calls by the genetic algorithm of holo-bench
                                              (package pytorch-holo, in an environment of its own with ours)
python -m benchmarks.exploration grids        all ways and peers on hypergrids, bits and two Ehrlich functions
python -m benchmarks.exploration rna          some of them on RNA, which needs ViennaRNA
python -m benchmarks.exploration heat         what the temperature r_gamma changes in rollouts on two grids
python -m benchmarks.exploration tfbind8      the ways on TFBind8, which needs no exploration: is anything lost?
python -m benchmarks.exploration tell         write the tables of docs/exploration.md from the committed results

Rows that a file has already are not run again; with --minutes no run is begun after that time.
"""

import argparse
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import torch

from benchmarks import cells as pool
from benchmarks.common import RESULTS, add_cluster, command, device_here, positive
from benchmarks.exploration_ehrlich import CELLS, ehrlich, rival
from benchmarks.exploration_ways import KNOWN, NOISES, RNA, SLOW, TASKS, WAYS, explored, fits, heated, turn
from sgfn.config.files import write_text

Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Study:
    """Runs of one function over all values of some arguments, and over seeds."""

    run: Callable[..., Row]
    out: str
    axes: dict[str, Iterable[Any]]
    seeds: int = 5
    first: int = 0
    """The first seed."""
    device: bool = False
    """Whether runs take a device and a number of steps."""

    def cells(self, seeds: int, chosen: dict[str, list[Any]]) -> Iterator[Row]:
        """All runs, seed by seed, so that a study that is stopped has few whole seeds, not few cells."""
        axes = {name: [v for v in values if v in chosen.get(name, [v])] for name, values in self.axes.items()}
        for seed, *values in product(range(self.first, self.first + seeds), *axes.values()):
            cell: Row = dict(zip(axes, values, strict=True)) | {"seed": seed}
            if "way" not in cell or fits(cell["cell"], cell["way"], cell["alpha"]):
                yield cell


_OURS = [way for way, settings in WAYS.items() if "method" not in settings]
_PEERS = [way for way in WAYS if way not in _OURS]
_FUNCTIONS = {"cell": CELLS, "alpha": (0.0, 0.1)}
STUDIES: dict[str, Study] = {
    "ehrlich": Study(run=ehrlich, out="exploration_ehrlich.json", axes=_FUNCTIONS),
    "validation": Study(run=ehrlich, out="exploration_validation.json", axes=_FUNCTIONS, first=10),
    "rival": Study(run=rival, out="exploration_rival.json", axes=_FUNCTIONS),
    "rival-validation": Study(run=rival, out="exploration_rival_validation.json", axes=_FUNCTIONS, first=10),
    "grids": Study(
        run=explored,
        out="exploration_grids.json",
        axes={"way": WAYS, "cell": [cell for cell in TASKS if cell != RNA], "alpha": NOISES},
        first=21,
        device=True,
    ),
    "rna": Study(
        run=explored,
        out="exploration_rna.json",
        axes={"way": [way for way in WAYS if way not in SLOW or way in _PEERS], "cell": [RNA], "alpha": NOISES},
        first=21,
        device=True,
    ),
    "heat": Study(
        run=heated,
        out="exploration_heat.json",
        axes={"cell": [cell for cell in TASKS if "3 x 10" in cell or "2 x 20" in cell], "alpha": (0.0,)},
        seeds=3,
        first=20,
    ),
    "tfbind8": Study(
        run=explored,
        out="exploration_tfbind8.json",
        axes={"way": _OURS, "cell": KNOWN, "alpha": NOISES},
        first=20,
        device=True,
    ),
}


def one(study: str, cell: Row, more: Row) -> Row:
    """One run in a process of its own, on one thread."""
    torch.set_num_threads(1)
    return cell | STUDIES[study].run(**cell, **more)


def turn_of(cell: Row) -> float:
    """When a run has its turn: seed by seed, and the ways of most interest ahead of the others."""
    return turn(cell["cell"], cell["way"], cell["seed"]) if "way" in cell else cell["seed"]


def study_of(
    name: str,
    seeds: Iterable[int],
    out: Path,
    chosen: dict[str, list[Any]] | None = None,
    steps: int | None = None,
    device: str = "cpu",
) -> pool.Study:
    """The runs of a study, seed by seed, those alone whose axes have a chosen value."""
    study = STUDIES[name]
    more = {"steps": steps, "device": device} if study.device else {}
    cells = [cell for seed in seeds for cell in replace(study, first=seed).cells(1, chosen or {})]
    made = [pool.Cell(key=cell, function=one, arguments=(name, cell, more), turn=turn_of(cell)) for cell in cells]
    return pool.Study(out=out, command=command("exploration"), cells=made, device=device if study.device else "cpu")


def run(name: str, args: argparse.Namespace) -> None:
    """Run what the file does not have yet; it is written after every run."""
    study, out = STUDIES[name], args.out or RESULTS / STUDIES[name].out
    seeds = range(study.first, study.first + (args.seeds or study.seeds))
    axes = {"cell": args.cells, "way": args.ways, "alpha": args.alphas}
    chosen = {axis: values for axis, values in axes.items() if values}
    wanted = study_of(name, seeds, out, chosen, args.steps, args.device)
    pool.perform([wanted], args.jobs, args.minutes, cluster=args.cluster, device=wanted.device)
    print(f"{len(wanted.rows)} rows in {out}, {len(wanted.cells)} were wanted")


def parse() -> argparse.Namespace:
    """Flags of the studies."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", choices=[*STUDIES, "tell"])
    parser.add_argument("--seeds", type=positive, default=None, help="how many; by default as many as the study has")
    parser.add_argument("--jobs", type=positive, default=1)
    add_cluster(parser)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--device", type=device_here, default="cpu", help="of the networks, for grids and tfbind8")
    parser.add_argument("--steps", type=positive, default=None, help="for grids and tfbind8: fewer, to try it out")
    parser.add_argument("--cells", nargs="*", default=None, help="only these tasks")
    parser.add_argument("--ways", nargs="*", default=None, help="only these ways")
    parser.add_argument("--alphas", nargs="*", type=float, default=None, help="only these noise levels")
    parser.add_argument("--out", type=Path, default=None)
    return parser.parse_args()


def tell() -> None:
    """Write the tables of docs/exploration.md anew."""
    from benchmarks.figures import (
        ROOT,
        with_tables,
    )  # draws, which a machine that only runs studies need not be able to

    page = ROOT / "docs" / "exploration.md"
    write_text(page, with_tables(page.read_text(encoding="utf-8")))


def main() -> None:
    """Run a study, or write the tables."""
    args = parse()
    return tell() if args.study == "tell" else run(args.study, args)


if __name__ == "__main__":
    main()
