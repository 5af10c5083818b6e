"""What a command may leave and say: files that are whole, one line, and no trace of code that nobody asked for."""

import csv
import io
import json
import os
import re
from collections.abc import Callable
from pathlib import Path

from benchmarks.soak.forks import HUNG, Ended

MARK = "a stranger was here"
"""File that code leaves which no command may run."""
VOLATILE = {"seconds.json"}
"""Files that tell how long something took."""
PYTHON = re.compile(
    r"object at 0x|<class |<function |_io\.|invalid literal for int|could not convert string|object is not |"
    r"cannot unpack|update sequence|/\.\w+\.csv\.\w{8}"
)
"""What a message says that quotes Python, or the name of a temporary file."""

Content = bytes | str | None


def contents(folder: Path) -> dict[str, Content]:
    """Every file below a folder as bytes, links by their targets, pipes as None; not locks and compiled modules."""
    found: dict[str, Content] = {}
    for path in sorted(folder.rglob("*")):
        if path.name == ".lock" or "__pycache__" in path.parts or (path.is_dir() and not path.is_symlink()):
            continue
        found[str(path.relative_to(folder))] = content(path)
    return found


def content(path: Path) -> Content:
    """What lies at a path, as `contents` tells it."""
    if path.is_symlink():
        return f"link to {path.readlink()}"
    if not path.is_file():
        return None
    return path.read_bytes() if path.stat().st_mode & 0o400 else "unreadable"


def one_line(err: str, *, talks: bool = False) -> str:
    """The line of a user's error, without `sgfn: `; raises where standard error holds anything else.

    With `talks` other lines may come before it.
    """
    assert "Traceback" not in err, err
    lines = err.removesuffix("\n").split("\n")
    assert err.endswith("\n"), err
    assert lines[-1].startswith("sgfn: "), err
    assert talks or len(lines) == 1, err
    assert sum(line.startswith("sgfn: ") for line in lines) == 1, err
    line = lines[-1].removeprefix("sgfn: ")
    assert line.isprintable(), repr(line)
    assert len(line) <= 1500, line
    assert not PYTHON.search(line), line
    return line


def troubles(ended: Ended, folder: Path) -> list[str]:
    """What is wrong with how a command ended that nobody disturbed: kinds of trouble, none of which may be."""
    found = []
    if ended.code == HUNG:
        found.append("hang")
    elif ended.code not in (0, 2):
        found.append("wrong exit code")
    if "Traceback" in ended.err:
        found.append("traceback")
    elif ended.code == 2:
        try:
            one_line(ended.err, talks=True)
        except AssertionError:
            found.append("not one line")
    if (folder / MARK).exists():
        found.append("stranger's code")
    return found


# Results


def leftovers(folder: Path) -> list[str]:
    """Files below a folder that a killed writer left, and that should have been swept."""
    return [name for name in contents(folder) if os.path.basename(name).startswith(".")]  # noqa: PTH119


def results(folder: Path) -> dict[str, Content]:
    """Files below a folder that must be the same whenever the same is done; times are left out."""
    found = {name: data for name, data in contents(folder).items() if Path(name).name not in VOLATILE}
    return {name: TIMELESS.get(Path(name).name, same)(data) for name, data in found.items()}


def same(data: Content) -> Content:
    """The content as it is."""
    return data


def without_seconds(data: Content) -> Content:
    """The JSON of a round of design without how long its proposals took; what is no such JSON stays as it is."""
    try:
        tree = json.loads(data) if isinstance(data, bytes) else None
        for proposal in tree["history"] if isinstance(tree, dict) else ():
            proposal.pop("seconds", None)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return data
    return data if tree is None else json.dumps(tree)


def timeless(table: Content) -> Content:
    """The table of a comparison without the column of seconds; what is no such table stays as it is."""
    try:
        rows = list(csv.DictReader(io.StringIO(table.decode()))) if isinstance(table, bytes) else []
    except (UnicodeDecodeError, csv.Error):
        rows = []
    return repr([{name: cell for name, cell in row.items() if name != "seconds"} for row in rows]) if rows else table


TIMELESS: dict[str, Callable[[Content], Content]] = {"results.csv": timeless, "design.json": without_seconds}
"""What takes seconds out of a file's content, by its name."""


def relative(folder: Path) -> dict[str, Content]:
    """The results in a folder, with its own path in them left out."""
    mine = str(folder.resolve()).encode()
    return {n: d.replace(mine, b"FOLDER") if isinstance(d, bytes) else d for n, d in results(folder).items()}


def differences(one: dict[str, Content], two: dict[str, Content]) -> list[str]:
    """Names of files that two folders do not share to the last bit."""
    return sorted(name for name in one.keys() | two.keys() if one.get(name, "none") != two.get(name, "none"))
