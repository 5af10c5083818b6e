"""Comparisons that cannot be begun, or not be gone on with: their folder, its plan and its cells."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.soak.folders import COMMANDS
from benchmarks.soak.rows import Row, a_folder, row

AGAIN = COMMANDS["compare"][0]
"""The command that made the comparison."""
CELL = "run/tb/alpha0.25/seed0"


def plan(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    """Change compare.json."""

    def write(path: Path) -> None:
        data = json.loads(path.read_text())
        found = change(data)
        path.write_text(json.dumps(data if found is None else found))

    return write


def gone_on(name: str, change: Callable[[dict[str, Any]], Any] | str | bytes, *says: str, **more: object) -> Row:
    """The same command on a folder whose plan is another."""
    content = plan(change) if callable(change) else change
    return row(f"plan: {name}", AGAIN, *says, base="compare", files={"run/compare.json": content}, **more)


FOLDERS = [
    row("compare: another task", AGAIN.replace("compare table --table.file t.csv", "compare words"), "run compares",
        base="compare"),
    row("compare: other steps", AGAIN.replace("--steps 20", "--steps 21"), "run", "--steps", base="compare"),
    row("compare: other samples", AGAIN.replace("--samples 64", "--samples 65"), "run", "--samples", base="compare"),
    row("compare: another file", AGAIN.replace("t.csv", "u.csv"), "run", "--table.file", base="compare",
        files={"u.csv": "sequence,score\nACG,1\nCAT,0.5\n"}),
    row("compare: its copy has changed", AGAIN, "t.csv has changed", base="compare",
        files={"run/data/t.csv": "sequence,score\nACG,1\nCAT,0.5\n"}),
    row("compare: its copy is gone", AGAIN, "t.csv is missing", base="compare",
        files={"run/data/t.csv": lambda path: path.unlink()}),
    row("compare: a run is there", "compare grid {tiny} --methods tb --out run", "run", base="grid"),
    row("compare: a file is there", "compare grid {tiny} --methods tb --out run", "run is a file", files={"run": "x"}),
    row("compare: something else is there", "compare grid {tiny} --methods tb --out run", "run exists", "not empty",
        files={"run/letter.txt": "x"}),
    row("compare: below a file", "compare grid {tiny} --methods tb --out run/x", "run", files={"run": "x"}),
    row("compare: evaluated", "evaluate run", "run is not a run folder", base="compare"),
    row("compare: sampled", "sample run", "run is not a run folder", base="compare"),
    row("compare: reported", "report run", "run is not a run folder", base="compare"),
    row("compare: trained into", "train grid {tiny} --out run", "run exists", base="compare"),
    row("compare: a method twice", "compare grid --methods tb db tb {tiny}", "--methods names tb twice"),
    row("compare: a task that other processes cannot find", "compare __main__:f --methods tb {tiny}", "__main__:f"),
]

PLANS = [
    gone_on("empty", "", "compare.json"),
    gone_on("cut", '{"format": 2, "task"', "compare.json", "JSON"),
    gone_on("random bytes", bytes(range(128, 256)), "compare.json"),
    gone_on("a list", "[]", "compare.json"),
    gone_on("a number", "3", "compare.json"),
    gone_on("null", "null", "compare.json"),
    gone_on("100,000 brackets", "[" * 100_000, "compare.json"),
    gone_on("of the future", lambda data: data.update(format=99), "compare.json", "format 99"),
    gone_on("of a format in words", lambda data: data.update(format="two"), "compare.json", "format"),
    gone_on("of a format that is a list", lambda data: data.update(format=[2]), "compare.json"),
    gone_on("without a task", lambda data: data.pop("task") and None, "compare.json", "task"),
    gone_on("without cells", lambda data: data.pop("cells") and None, "compare.json", "cells"),
    gone_on("with cells that are a number", lambda data: data.update(cells=3), "compare.json"),
    gone_on("with cells of two parts", lambda data: data.update(cells=[["tb", 0.25]]), "compare.json"),
    gone_on("with cells of nothing", lambda data: data.update(cells=[None]), "compare.json"),
    gone_on("with an unknown method", lambda data: data.update(cells=[["tbb", 0.25, 0]]), "compare.json", "'tbb'"),
    gone_on("with a noise level of nan", lambda data: data.update(cells=[["tb", float("nan"), 0]]), ""),
    gone_on("with a seed below zero", lambda data: data.update(cells=[["tb", 0.25, -1]]), "seed"),
    gone_on("with a config that is a list", lambda data: data.update(config=[]), "compare.json"),
    gone_on("with samples in words", lambda data: data.update(samples="many"), "compare.json"),
    gone_on("with files that are a list", lambda data: data.update(files=[1]), "compare.json"),
    gone_on("with a file that is a number", lambda data: data.update(files={"table.file": 3}), "compare.json"),
    gone_on("with a copy outside of it",
            lambda data: data["files"]["table.file"].update(copy="../../../../../../../etc/passwd"), ""),
    gone_on("with a method that is a stranger's",
            lambda data: data["cells"].append(["stranger:f", 0.25, 0]), ""),
    row("plan: a folder", AGAIN, "compare.json", base="compare",
        files={"run/compare.json": lambda path: (path.unlink(), a_folder(path))}),
]


def cell(name: str, file: str, content: Any, *says: str, **more: object) -> Row:
    """The same command on a folder in which a file of one cell is another."""
    return row(f"cell: {name}", AGAIN, *says, base="compare", files={f"{CELL}/{file}": content}, leaves=True, talks=True,
               changes=True, **more)


CELLS = [
    cell("config cut", "config.json", "{", "config.json", "remove"),
    cell("config of another cell", "config.json", lambda path: path.write_text(path.read_text().replace("20", "21")),
         "holds another run"),
    cell("config a folder", "config.json", lambda path: (path.unlink(), a_folder(path)), ""),
    cell("metrics with a broken line", "metrics.jsonl", '{"step": 1\n{"step": 2}\n', "metrics.jsonl, line 1"),
    cell("metrics whose step is text", "metrics.jsonl", '{"step": "a"}\n{"step": "b"}\n', "metrics.jsonl"),
    cell("metrics of random bytes", "metrics.jsonl", bytes(range(256)) * 9, "metrics.jsonl"),
]

ROWS = [*FOLDERS, *PLANS, *CELLS]
