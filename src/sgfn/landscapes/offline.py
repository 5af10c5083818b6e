"""Objects known beforehand: read from a file, or what the landscape was made from."""

import csv
from pathlib import Path

from jaxtyping import Int
from torch import Tensor

from sgfn.config.files import read_lines
from sgfn.envs.base import Env
from sgfn.landscapes.tasks import Task

COLUMN = "sequence"


def known_objects(task: Task) -> Int[Tensor, "N O"] | None:
    """The objects of `offline.file`, else those measured for the landscape; None where there are neither."""
    file = task.config.offline.file
    return task.landscape.offline_objects() if file is None else read_objects(task.env, file)


def training_objects(task: Task) -> Int[Tensor, "N O"] | None:
    """What a share of each batch is drawn from; None where the share is zero."""
    config = task.config.offline
    known = None if config.share == 0 and config.file is None else known_objects(task)
    if config.share > 0 and known is None:
        raise ValueError("offline.share is positive but offline.file is not given: name a file of objects")
    return known


def read_objects(env: Env, file: Path) -> Int[Tensor, "N O"]:
    """One object per line, or the column `sequence` of a CSV; every error names the file and the line."""
    lines = read_lines(file, "offline.file")
    if not lines:
        raise ValueError(f"offline.file {file} is empty")
    header = next(csv.reader([lines[0][1]]))
    if COLUMN in header:
        lines = [(n, _field(file, n, line, header)) for n, line in lines[1:]]
    elif file.suffix == ".csv":
        raise ValueError(f"offline.file {file}, line {lines[0][0]}: the header has no column {COLUMN!r}")
    if not lines:
        raise ValueError(f"offline.file {file} has a header but no rows")
    for number, text in lines:
        try:
            env.parse([text.strip()])
        except ValueError as error:
            raise ValueError(
                f"offline.file {file}, line {number}: {str(error).partition(' ')[2].partition(' ')[2]}"
            ) from None
    return env.parse([text.strip() for _, text in lines])


def _field(file: Path, number: int, line: str, header: list[str]) -> str:
    row = next(csv.reader([line]))
    if len(row) != len(header):
        raise ValueError(f"offline.file {file}, line {number}: {len(row)} fields, the header has {len(header)}")
    return row[header.index(COLUMN)]
