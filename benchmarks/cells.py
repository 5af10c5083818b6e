"""Cells of studies that go on: each row is written as soon as it is there, and what a file has is not done again.

A study is a list of cells, seed by seed, so that one that was cut short has few seeds and not few settings. They are
done by `each_cell`, as those of all studies.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from benchmarks.common import RESULTS, Row, command, each_cell, importable, machine
from sgfn.config.files import read_json, write_text


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One computation: what its row is known by, and what computes the row."""

    key: Row
    function: Callable[..., Row]
    arguments: tuple[Any, ...] = ()
    turn: float = 0.0
    """Cells of a lower turn come first, whichever study they are of."""

    def compute(self) -> Row:
        """The row, on one thread; the figures that it is known by come first."""
        torch.set_num_threads(1)
        return self.key | self.function(*self.arguments)


@dataclass(kw_only=True)
class Study:
    """Cells of one file of results."""

    out: Path
    command: str
    cells: list[Cell]
    about: Callable[[list[Row]], Row] = field(default=lambda rows: {})
    """What the file says beside its rows."""
    device: str = "cpu"
    rows: list[Row] = field(default_factory=list)
    before: list[Row] = field(default_factory=list)
    """Commands and machines of rows that the file had already."""
    note: str = ""
    """What the file says of its rows in words, which stays."""

    def begin(self, committed: bool = False) -> list[Cell]:
        """Read the file, or if asked for the committed one where there is none yet, and give the cells that lack."""
        known = RESULTS / self.out.name if committed and not self.out.is_file() else self.out
        if known.is_file():
            found = read_json(known)
            self.rows, self.note = found["rows"], found.get("note", "")
            self.before = _commands(found, self.origin())
        return [cell for cell in self.cells if not any(is_of(row, cell.key) for row in self.rows)]

    def keep(self, row: Row) -> None:
        """Take a row into the file, in the place of an older one."""
        keys = next((cell.key for cell in self.cells if is_of(row, cell.key)), row)
        self.rows = [*(one for one in self.rows if not keys.items() <= one.items()), row]
        self.write()

    def origin(self) -> Row:
        """The command and the machine of the rows that are computed now."""
        return {"command": self.command, "machine": machine(torch.device(self.device))}

    def write(self) -> None:
        """Write the file."""
        order = {str(cell.key): place for place, cell in enumerate(self.cells)}
        names = list(self.cells[0].key) if self.cells else []
        self.rows.sort(key=lambda row: order.get(str({name: row.get(name) for name in names}), -1))
        about = self.origin() | ({"note": self.note} if self.note else {}) | self.about(self.rows)
        about |= {"before": self.before} if self.before else {}
        write_text(self.out, row_by_row(about, self.rows))


def row_by_row(about: Row, rows: list[Row]) -> str:
    """Text of a JSON file with a line for each row, which has a half of the bytes of one for each number.

    >>> print(row_by_row({"command": "python -m x"}, [{"seed": 0, "best": [0.5, 1.0]}, {"seed": 1, "best": [0.25]}]))
    {
      "command": "python -m x",
      "rows": [
        {"seed": 0, "best": [0.5, 1.0]},
        {"seed": 1, "best": [0.25]}
      ]
    }
    <BLANKLINE>
    """
    lines = ",\n".join(f"    {json.dumps(row)}" for row in rows)
    head = json.dumps(about, indent=2).removesuffix("\n}")
    return f'{head},\n  "rows": [\n{lines}\n  ]\n}}\n'


def study_by_keys(out: Path, module: str, keys: list[Row], function: Callable[..., Row], **about: Any) -> Study:
    """A study whose function takes what its rows are known by."""
    cells = [Cell(key=key, function=function, arguments=tuple(key.values())) for key in keys]
    return Study(out=out, command=command(module), cells=cells, about=lambda rows: about)


def is_of(row: Row, key: Row) -> bool:
    """Whether a row is that of a cell; rows marked `older`, with the reason, are computed again."""
    return key.items() <= row.items() and "older" not in row


def _commands(found: Row, now: Row) -> list[Row]:
    """Commands and machines of a file, oldest first, each once, less the present one."""
    own = [
        {"command": found[name], "machine": found.get("machine")} for name in ("command", "commands") if name in found
    ]
    listed = [*found.get("before", []), *own]
    return [one for place, one in enumerate(listed) if one != now and one not in listed[:place]]


def perform(
    studies: list[Study],
    jobs: int = 1,
    minutes: float = float("inf"),
    *,
    cluster: str | None = None,
    device: str = "cpu",
    committed: bool = False,
) -> None:
    """Compute what lacks, turn by turn, in processes here or on a cluster; after so many minutes no cell is begun."""
    deadline = time.time() + 60 * minutes
    lacking = [(study, cell) for study in studies for cell in study.begin(committed)]
    named = {
        f"{study.out.name} {cell.key}": (study, cell) for study, cell in sorted(lacking, key=lambda one: one[1].turn)
    }
    known = {name: (replace(cell, function=importable(cell.function)), deadline) for name, (_, cell) in named.items()}

    def keep(name: str, row: Row) -> None:
        if row:
            named[name][0].keep(row)
            key = named[name][1].key
            print(name, {k: v for k, v in row.items() if k not in key and not isinstance(v, list | dict)}, flush=True)

    each_cell(known, in_time, keep, cluster, jobs=jobs, device=device)


def in_time(cell: Cell, deadline: float) -> Row:
    """The row of a cell, nothing after the deadline."""
    return cell.compute() if time.time() < deadline else {}
