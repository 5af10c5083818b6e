"""Games of design in many processes, each written as soon as it is played: a study that was stopped goes on."""

import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks import cells as pool
from benchmarks.common import command, machine
from benchmarks.design_landscapes import made
from sgfn.config import NoiseConfig, TrainConfig
from sgfn.config.files import write_json
from sgfn.design.rivals import History
from sgfn.design.simulate import Truth, play
from sgfn.landscapes.ehrlich import Ehrlich, draw_walk
from sgfn.landscapes.tasks import Task, make_task

SIZES = {
    "4 x 96": {"rounds": 4, "orders": 96},
    "10 x 128": {"rounds": 10, "orders": 128},
    "6 x 64": {"rounds": 6, "orders": 64},
}
TASKS = {"mpsa": "NNNGYNNNN", "tfbind8": None, "tfbind8-CRX_REF_R1": None}
"""Landscapes of the study under noise, and which sequences may be ordered; what noise makes of splice sites outside of
NNNGYNNNN scores 0."""
NOISES = ("0.05", "0.1", "0.2", "taq")
TAQ = {"AG": 0.642, "TC": 0.642, "AT": 0.194, "TA": 0.194, "GA": 0.045, "CT": 0.045, "AC": 0.015, "TG": 0.015}
TAQ |= {"GT": 0.015, "CA": 0.015}
"""Share of all mutations of error-prone PCR with Taq (BMC Biol 5:29), complements together; frameshifts left out."""
TAQ_RATE = 0.1
LARGE: dict[str, dict[str, Any]] = {
    "rna 50": {"rna__length": 50},
    "rna 100": {"rna__length": 100},
    "ehrlich 32, V 20": {"ehrlich__length": 32, "ehrlich__motifs": 4},
    "ehrlich 32, V 32": {"ehrlich__length": 32, "ehrlich__motifs": 4, "ehrlich__vocab": 32},
    "ehrlich 64, V 20": {"ehrlich__length": 64, "ehrlich__motifs": 4},
    "ehrlich 64, V 32": {"ehrlich__length": 64, "ehrlich__motifs": 4, "ehrlich__vocab": 32},
    "callable 20": {
        "callable__function": "benchmarks.design_peptides:moments",
        "callable__alphabet": "protein",
        "callable__length": 20,
        "constraints__forbid": "NG,NS,DG,DP,KK,KR,RK,RR",
        "constraints__charge": "2:4",
    },
}
"""Spaces that nobody can list, by the task's name and its length: binding to rna1, Ehrlich functions of four motifs,
and the hydrophobic moment of peptides without sites of deamidation, acid cleavage or trypsin-like proteases."""

WIDE: dict[str, dict[str, Any]] = {
    "rna 40": {"rna__length": 40, "rna__target": "rna3"},
    "rna 36 folded": {"rna__length": 36, "rna__mode": "fold"},
    "ehrlich 24, V 12": {"ehrlich__length": 24, "ehrlich__motifs": 3, "ehrlich__vocab": 12},
    "callable 30": {
        "callable__function": "benchmarks.design_landscapes:coupled",
        "callable__alphabet": "protein",
        "callable__length": 30,
    },
}
"""Smaller spaces that nobody can list, on which settings of searches are chosen; none is one of `LARGE`."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A setting that all methods play, seed by seed."""

    task: str
    noise: str = "0"
    size: str = "4 x 96"
    start: int = 96

    @property
    def name(self) -> str:
        """How files call it."""
        return f"{self.task}, noise {self.noise}, {self.size}"


def cells(study: str) -> Iterator[Cell]:
    """Settings of a study; of GB1 what was never measured scores 0."""
    if study == "p1":
        yield Cell(task="gb1")
    elif study == "development":
        yield from (Cell(task=name) for name in ("made", "mpsa", "tfbind8-CRX_REF_R1"))
    elif study == "p4":
        yield from (Cell(task=name, size="10 x 128", start=128) for name in LARGE)
    elif study == "wide":
        yield from (Cell(task=name, size="6 x 64", start=64) for name in WIDE)
    else:
        for size in ("4 x 96", "10 x 128"):
            for task in TASKS:
                yield from (Cell(task=task, noise=noise, size=size, start=5000) for noise in NOISES)


def config_of(cell: Cell, folder: Path) -> TrainConfig:
    """The configuration of a cell's task; a confusion matrix is written to the folder."""
    if cell.noise != "taq":
        noise = NoiseConfig(alpha=float(cell.noise))
    else:
        letters = "ACGU" if cell.task == "mpsa" else "ACGT"
        noise = NoiseConfig(kind="confusion", file=write_taq(folder / f"{letters}.csv", letters))
    config = TrainConfig().with_(noise=noise, constraints__pattern=TASKS.get(cell.task))
    return config.with_(**LARGE.get(cell.task, WIDE.get(cell.task, {})))


def write_taq(file: Path, letters: str) -> Path:
    """Write the confusion matrix of error-prone PCR at one wrong base in ten, over bases that are equally frequent."""
    lines = [f"intended,{','.join(letters)}"]
    for one in letters.replace("U", "T"):
        row = {other: 4 * TAQ_RATE * TAQ.get(one + other, 0.0) / 2 for other in letters.replace("U", "T")}
        row[one] = 1.0 - sum(row.values())
        lines.append(",".join([one if one in letters else "U", *(f"{value:.6f}" for value in row.values())]))
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def task_of(cell: Cell, seed: int, folder: Path) -> Task:
    """The task of a cell; a made-up landscape or Ehrlich function is another one with every seed."""
    config = config_of(cell, folder).with_(ehrlich__seed=seed)
    return made(seed, "made", config) if cell.task == "made" else make_task(cell.task.split()[0], config)


def first_of(task: Task, cell: Cell, seed: int) -> History | None:
    """Feasible sequences of an Ehrlich function, walks along its allowed transitions; None where any will do."""
    if not isinstance(task.landscape, Ehrlich):
        return None
    landscape, generator = task.landscape, torch.Generator().manual_seed(seed)
    allowed = landscape.allowed[:-1, :-1]
    walks = [draw_walk(allowed, landscape.length, generator, stays=True) for _ in range(cell.start)]
    tokens = torch.tensor(walks).unique(dim=0)
    return History(tokens=tokens, scores=Truth(task).scores(tokens))


def play_one(cell: Cell, method: str, seed: int, proxy: str, device: str = "cpu") -> dict[str, Any]:
    """Play one game, and give its figures round by round."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        task = task_of(cell, seed, Path(folder))
        chosen = {**SIZES[cell.size], "start": cell.start, "seed": seed, "proxy": proxy, "device": device}
        game = play(task, method, **chosen, first=first_of(task, cell, seed))
    return {"cell": cell.name, "method": method, "seed": seed, "proxy": proxy} | rounds_of(game)


def rounds_of(game: Any) -> dict[str, list[float | None]]:
    """Figures of each round of a game, five digits each."""
    names = ("best", "top", "diversity", "expected", "regret", "seconds")
    figures = {name: [getattr(one, name) for one in game.rounds] for name in names}
    return {name: [None if x is None else float(f"{x:.5g}") for x in row] for name, row in figures.items()}


def games_of(
    study: str,
    seeds: Iterable[int],
    proxy: str,
    methods: tuple[str, ...],
    out: Path,
    only: str | None = None,
    device: str = "cpu",
) -> pool.Study:
    """All games of a study, seed by seed."""
    chosen = [cell for cell in cells(study) if only is None or only in cell.name]
    wanted = [
        pool.Cell(
            key={"cell": cell.name, "method": method, "seed": seed},
            function=play_one,
            arguments=(cell, method, seed, proxy, device),
        )
        for seed in seeds
        for cell in chosen
        for method in methods
    ]
    return pool.Study(out=out, command=command("design"), cells=wanted, device=device)


def write_results(out: Path, found: dict[str, Any]) -> None:
    """Write figures with the command and the machine that they come from."""
    write_json(out, {"command": command("design"), "machine": machine(torch.device("cpu"))} | found)
