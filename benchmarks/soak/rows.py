"""Rows of the corpus of bad inputs: a command, the files it finds, and what its one line must say."""

import gzip
import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.soak.forks import Ended
from benchmarks.soak.outcomes import contents, troubles

TINY = "--steps 4 --batch 4 --log.every 2 --log.checkpoint-every 2 --device cpu"
"""Flags under which a command that should have been refused ends soon."""
NET = "--net.hidden 4 --dynamics.hidden 4"
SHORT = "--horizon 4 --steps 4 --batch 4 --members 1 --folds 0 --bins 8 --net.hidden 8 --net.layers 1 --net.heads 2"
SHORT += " --samples 16 --context 8 --log.every 2 --log.checkpoint-every 2 --windows 2 --figures 0"
SHORT += " --laws network --baselines seasonal-naive --device cpu"
PLACEHOLDERS = {"{tiny}": f"{TINY} {NET}", "{bare}": TINY, "{short}": SHORT}
Content = str | bytes | Callable[[Path], object]

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One bad input."""

    name: str
    words: list[str]
    says: tuple[str, ...]
    """Pieces of the one line."""
    files: Mapping[str, Content] = field(default_factory=dict)
    """Text, bytes, or a function that makes the file at a path."""
    base: str = ""
    """Folder that lies in `run` when the command begins; see `folders.COMMANDS`."""
    codes: tuple[int, ...] = (2,)
    """Exit codes that are right."""
    hides: tuple[str, ...] = ()
    """Pieces that must not appear anywhere."""
    leaves: bool = False
    """Whether the command may leave new files, such as a run that failed on the way."""
    changes: bool = False
    """Whether it may change files that were there."""
    talks: bool = False
    """Whether other lines may stand before the one line, and something on standard output."""
    circumstances: dict[str, Any] = field(default_factory=dict)
    """Of `ForkServer.run`: variables, limits, closed streams."""


def row(
    name: str, command: str | list[str], *says: str, files: Mapping[str, Content] | None = None, **more: Any
) -> Row:
    """A row whose command is written as in a shell."""
    words = command
    if isinstance(command, str):
        for short, long in PLACEHOLDERS.items():
            command = command.replace(short, long)
        words = _split(command)
    more = {"limit": 60} | more
    more["env"] = {"SGFN_CACHE": "cache"} | more.get("env", {})
    code = more.pop("code", 2)
    known = {key: more.pop(key) for key in ("base", "hides", "leaves", "changes", "talks") if key in more}
    known["codes"] = code if isinstance(code, tuple) else (code,)
    return Row(name=name, words=list(words), says=says, files=dict(files or {}), circumstances=more, **known)


def _split(command: str) -> list[str]:
    """Words of a command as a shell takes them; without a quote blanks alone divide them, which is quickly seen."""
    if set("'\"\\") & set(command):
        return shlex.split(command)
    return [word for word in re.split("[ \t\r\n]+", command) if word]


def lay_out(folder: Path, files: Mapping[str, Content]) -> None:
    """Make the files of a row; folders below which a file lies are made, too."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if callable(content):
            content(path)
        else:
            path.write_bytes(content.encode() if isinstance(content, str) else content)


def judge(row: Row, ended: Ended, before: dict[str, Any], folder: Path) -> list[str]:
    """What is wrong with how a row's command ended, in a folder that held so much before; nothing where all is well."""
    found, after = troubles(ended, folder), contents(folder)
    if ended.code not in row.codes and "wrong exit code" not in found:
        found.append("wrong exit code")
    found += [f"shows {piece!r}" for piece in row.hides if piece in ended.err + ended.out]
    if ended.code != 2:
        return found
    line = ended.err.removesuffix("\n").rpartition("\n")[2]
    found += [f"does not say {piece!r}" for piece in row.says if piece not in line]
    if not row.talks and (ended.out or ended.err.count("\n") > 1):
        found.append("says more than one line")
    if not row.changes:
        found += [f"lost file: {name}" for name in before if name not in after]
        found += [f"changed file: {name}" for name in before if name in after and after[name] != before[name]]
    if not row.leaves:
        found += [f"left file: {name}" for name in after if name not in before]
    return found


def corpus() -> list[Row]:
    """All rows of tests/faults."""
    sys.path.insert(0, str(ROOT / "tests" / "faults"))
    return list(import_module("corpus").ROWS)


# Things that lie where a file is expected


def a_folder(path: Path) -> None:
    """Make a folder."""
    path.mkdir(parents=True)


def a_pipe(path: Path) -> None:
    """Make a named pipe, which nobody writes into."""
    os.mkfifo(path)


def a_link(target: str) -> Callable[[Path], None]:
    """A symbolic link; one to its own name never ends."""
    return lambda path: path.symlink_to(target)


def unreadable(path: Path) -> None:
    """Make a table that nobody may read."""
    path.write_text("sequence,score\nACG,1\n")
    path.chmod(0)


def read_only_folder(path: Path) -> None:
    """Make a folder into which nobody may write."""
    path.mkdir()
    path.chmod(0o555)


def packed(text: str) -> bytes:
    """Text as gzip packs it."""
    return gzip.compress(text.encode(), mtime=0)


def bomb(path: Path, gigabytes: int = 4) -> None:
    """A few megabytes that unpack to many gigabytes."""
    member = gzip.compress(b"A" * 2**24, mtime=0)
    path.write_bytes(member * (64 * gigabytes))


def flipped(data: bytes, place: int) -> bytes:
    """One byte is another."""
    return data[:place] + bytes([data[place] ^ 0x55]) + data[place + 1 :]
