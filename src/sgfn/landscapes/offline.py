"""Objects known beforehand: read from a file, or what the landscape was made from."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

from jaxtyping import Int
from torch import Tensor

from sgfn.envs.base import Env
from sgfn.landscapes.tasks import Task

if TYPE_CHECKING:
    from sgfn.config.tables import Table

FIELD, COLUMN = "offline.file", "sequence"


def known_objects(task: Task) -> Int[Tensor, "N O"] | None:
    """The objects of `offline.file`, else those measured for the landscape; None where there are neither."""
    file = task.config.offline.file
    return task.landscape.offline_objects() if file is None else read_objects(task.env, file)


def start_objects(task: Task) -> Int[Tensor, "N O"] | None:
    """Objects that a search begins with: those of `offline.file`, else what the landscape offers; None without any."""
    file = task.config.offline.file
    return task.landscape.start_objects() if file is None else read_objects(task.env, file)


def training_objects(task: Task) -> Int[Tensor, "N O"] | None:
    """What a share of each batch is drawn from; None where the share is zero."""
    config = task.config.offline
    known = None if config.share == 0 and config.file is None else start_objects(task)
    if config.share > 0 and known is None:
        raise ValueError("offline.share is positive but offline.file is not given: name a file of objects")
    return known if known is None or task.env.admissible(known) is None else _feasible(task, known)


def _feasible(task: Task, known: Int[Tensor, "N O"]) -> Int[Tensor, "N O"]:
    """Those of the known objects that satisfy the constraints: others cannot be built."""
    fits = task.env.admissible(known)
    assert fits is not None
    kept = known[fits]
    if not kept.shape[0] and task.config.offline.share > 0:
        rules = "whole" if task.env.automaton is None else f"what the constraints ask for ({task.env.automaton.told})"
        what = f"none of the {known.shape[0]:,} known objects is {rules}"
        raise ValueError(f"offline.share is positive and {what}: leave it out, or relax a constraint")
    return kept


def read_objects(env: Env, file: Path) -> Int[Tensor, "N O"]:
    """The column `sequence` of a table, or one object per line of a plain text; errors name the file and the line."""
    from sgfn.config.tables import read_table  # pandas is slow to import, and large

    table = _plain(file) or read_table(file, FIELD, each="object")
    if COLUMN not in table.columns:
        raise table.header_problem(f"the header has no column {COLUMN!r}")
    objects = table.texts(COLUMN)
    if type(env).parse is Env.parse:
        env.parse(objects)  # raises: it cannot read any
    for row, text in enumerate(objects):
        try:
            env.parse([text])
        except ValueError as error:
            raise table.problem(_said(error, text), row) from None
    return env.parse(objects)


def _said(error: ValueError, text: str) -> str:
    """What is wrong with an object: our own messages number it as an entry, which the line does better."""
    said = re.sub(r"^entry \d+ (?=\()", "", str(error))
    return said if said != str(error) or repr(text) in said else f"({text!r}): {said or 'cannot be read'}"


def _plain(file: Path) -> "Table | None":
    """A text with one object per line; None where its first line names a column `sequence`, or its ending a table."""
    from sgfn.config.tables import ending, read_plain

    if ending(file, FIELD) not in ("", ".txt"):
        return None
    table = read_plain(file, FIELD, COLUMN, each="object")
    header = table.texts(COLUMN)[0]
    return None if COLUMN in [name.strip(' "') for name in re.split(r"[,;|\t]", header)] else table
