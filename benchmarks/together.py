"""Several studies in one pool of processes, the first seeds of all before the last ones of any.

OMP_NUM_THREADS=1 python -m benchmarks.together all --jobs 14 --minutes 18 --out FOLDER
OMP_NUM_THREADS=1 python -m benchmarks.together p2 p4 --jobs 2 --out FOLDER

Files in the folder are those of `benchmarks/results` with more rows: what is committed is not computed again, each row
is written as soon as it is there, and the same command goes on where it was cut off. Copy them to `benchmarks/results`.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks import channels, exploration
from benchmarks.cells import Cell, Study, perform
from benchmarks.common import add_cluster, positive
from benchmarks.design import METHODS, PROXY
from benchmarks.design_games import games_of
from benchmarks.design_searches import searches_study
from benchmarks.libraries import __main__ as libraries

Make = Callable[[range, Path], Study]


@dataclass(frozen=True, kw_only=True)
class Part:
    """A study, its seeds, and when its cells come."""

    make: Make
    out: str
    command: str
    """What makes it alone; its seeds are added."""
    seeds: int
    first: int = 0
    turn: float = 0.0
    """Turn of its first seed."""
    each: float = 1.0
    """How much later each further seed comes."""

    def study(self, folder: Path, seeds: int | None) -> Study:
        """The study with the turns of its cells."""
        count = seeds or self.seeds
        made = self.make(range(self.first, self.first + count), folder / self.out)
        cells = [replace(cell, turn=self.turn + self.each * self._later(cell)) for cell in made.cells]
        first = f" --first {self.first}" if self.first and not self.command.startswith("exploration") else ""
        return replace(made, cells=cells, command=f"python -m benchmarks.{self.command} --seeds {count}{first}")

    def _later(self, cell: Cell) -> int:
        return int(cell.key["seed"]) - self.first


def _design(study: str) -> Make:
    return lambda seeds, out: games_of(study, seeds, PROXY[study], METHODS[study], out)


def _exploration(study: str) -> Make:
    return lambda seeds, out: exploration.study_of(study, seeds, out)


PARTS = {
    "p2": Part(make=_design("p2"), out="design_p2.json", command="design p2", seeds=2),
    "p4": Part(make=_design("p4"), out="design_p4.json", command="design p4", seeds=5, turn=0.5),
    "searches": Part(make=searches_study, out="design_searches.json", command="design searches", seeds=5, turn=0.6),
    "steps": Part(make=channels.steps_study, out="channels_steps.json", command="channels steps", seeds=3, turn=1.2),
    "known": Part(
        make=libraries.known_study, out="libraries_known.json", command="libraries known", seeds=20, turn=1.3, each=0.1
    ),
    "pools": Part(
        make=libraries.pools_study, out="libraries_pools.json", command="libraries pools", seeds=20, turn=1.4, each=0.1
    ),
    "ehrlich": Part(
        make=_exploration("ehrlich"), out="exploration_ehrlich.json", command="exploration ehrlich", seeds=5, turn=-0.5
    ),
    "rates": Part(
        make=channels.rates_study,
        out="channels_rates.json",
        command="channels rates",
        seeds=100,
        first=100,
        turn=2.2,
        each=0.01,
    ),
    "validation": Part(
        make=_exploration("validation"),
        out="exploration_validation.json",
        command="exploration validation",
        seeds=5,
        first=10,
        turn=1.6,
    ),
    "grids": Part(
        make=_exploration("grids"),
        out="exploration_grids.json",
        command="exploration grids",
        seeds=5,
        first=21,
        turn=4.7,
    ),
}


def main() -> None:
    """Do what lacks of some studies."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="+", choices=[*PARTS, "all"])
    parser.add_argument("--seeds", type=positive, default=None, help="how many; by default as many as each study has")
    parser.add_argument("--jobs", type=positive, default=1, help="cells at once, a process each")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="after so many no cell is begun")
    parser.add_argument("--out", type=Path, required=True, help="folder of the files")
    add_cluster(parser)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    names = PARTS if "all" in given.parts else given.parts
    studies = [PARTS[name].study(given.out, given.seeds) for name in names]
    perform(studies, given.jobs, given.minutes, cluster=given.cluster, committed=True)


if __name__ == "__main__":
    main()
