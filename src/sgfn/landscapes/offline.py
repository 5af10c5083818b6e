"""Objects known beforehand: read from a file, or what the landscape was made from."""

import re
from pathlib import Path

from jaxtyping import Int
from torch import Tensor

from sgfn.config.tables import Table, ending, read_plain, read_table
from sgfn.envs.base import Env
from sgfn.landscapes.tasks import Task

FIELD, COLUMN = "offline.file", "sequence"


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
    """The column `sequence` of a table, or one object per line of a plain text; errors name the file and the line."""
    table = _plain(file) or read_table(file, FIELD, each="object")
    if COLUMN not in table.columns:
        raise table.header_problem(f"the header has no column {COLUMN!r}")
    objects = table.texts(COLUMN)
    for row, text in enumerate(objects):
        try:
            env.parse([text])
        except ValueError as error:
            raise table.problem(str(error).partition(" ")[2].partition(" ")[2], row) from None
    return env.parse(objects)


def _plain(file: Path) -> Table | None:
    """A text with one object per line; None where its first line names a column `sequence`, or its ending a table."""
    if ending(file, FIELD) not in ("", ".txt"):
        return None
    table = read_plain(file, FIELD, COLUMN, each="object")
    header = table.texts(COLUMN)[0]
    return None if COLUMN in [name.strip(' "') for name in re.split(r"[,;|\t]", header)] else table
