"""Files that are whole or absent: write aside, flush to disk, rename."""

import errno
import fcntl
import hashlib
import json
import math
import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sgfn.config.reading import read_json as read_json

LONGEST_NAME = 255
"""Bytes of a file's name that file systems take."""
ASIDE = re.compile(r"\..+\.sgfn-[a-z0-9_]{8}(\.[^.]*)?", re.DOTALL)
"""Names of the files that `replacing` writes."""


def resolved(path: Path) -> Path:
    """Where a path leads, absolute and without links; a link in a circle, which leads nowhere, stays as it is."""
    return Path(os.path.realpath(path))


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Errors of the disk that name the file: a failed write does not, and a temporary name tells nobody anything."""
    try:
        yield
    except OSError as error:
        error.filename = str(path)
        raise


def check_target(path: Path, *, overwrite: bool, flag: str = "--out") -> None:
    """Raise unless a file can be written to a path: what is there is a file, and may be replaced."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder: give {flag} the name of a file")
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is a pipe or a device: give {flag} the name of a file")
    if not overwrite and (path.exists() or path.is_symlink()):
        raise ValueError(f"{path} exists: add --overwrite to replace it, or give {flag} another name")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary neighbour that takes the path's place when the block ends well; the old file stays if it does not.

    It is locked while it is written: what a killed writer left is swept by the next one in its folder, what a living
    one writes is not, and nobody else may write to the same path meanwhile.
    """
    with naming(path):
        refuse_irregular(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        if any(alive.name.startswith(_prefix(path)) for alive in sweep(path.parent)):
            raise ValueError(f"another process is writing {path}: wait for it, or give another name")
        handle, aside = _locked_aside(path)
        try:
            yield aside
            with aside.open("rb") as file:
                os.fsync(file.fileno())
            aside.chmod(0o666 & ~_umask())
            aside.replace(path)
            flush_folder(path.parent)
        finally:
            aside.unlink(missing_ok=True)
            os.close(handle)


def refuse_irregular(path: Path) -> None:
    """Raise where something other than a file has the path: a folder, a pipe, a device."""
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "not a regular file, give another name", str(path))


def check_writable(path: Path) -> None:
    """Raise now if `replacing` could not write the path later; nothing is left behind."""
    with naming(path):
        refuse_irregular(path)
        folder = next(folder for folder in path.absolute().parents if folder.exists())
        with tempfile.TemporaryFile(dir=folder):
            pass


def _prefix(path: Path) -> str:
    """How the names of temporary files for a path begin; of a name that leaves no room for more, by its digest."""
    name = os.fsencode(path.name)
    fits = len(name) + len(os.fsencode(path.suffix)) + len(".sgfn-") + 16 <= LONGEST_NAME
    return f".{path.name if fits else hashlib.sha256(name).hexdigest()}.sgfn-"


def _locked_aside(path: Path) -> tuple[int, Path]:
    """A new temporary file for a path, locked as long as the handle is open."""
    suffix = path.suffix if len(path.suffix) < 16 else ""
    while True:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=_prefix(path), suffix=suffix)
        with suppress(OSError):  # a file system that knows no locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        if os.fstat(handle).st_nlink:  # it was not swept before it was locked
            return handle, Path(name)
        os.close(handle)


def sweep(folder: Path, names: Iterable[str] = ()) -> list[Path]:
    """Remove what killed writers left in a folder, and return what living ones write.

    Names without our mark, as earlier versions had them, are known by the files that they stand beside.
    """
    with os.scandir(folder) as entries:
        left = [folder / entry.name for entry in entries if ASIDE.fullmatch(entry.name)]
    for path in (folder / name for name in names):
        neighbours = path.parent.iterdir() if path.parent.is_dir() else ()
        left += [one for one in neighbours if one.name.startswith(f".{path.name}.") and one.is_file()]
    return [one for one in dict.fromkeys(left) if _alive(one)]


def _alive(aside: Path) -> bool:
    """Whether somebody writes a temporary file; one that is known to be nobody's is removed."""
    try:
        handle = os.open(aside, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:  # gone, or not ours to open
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        aside.unlink(missing_ok=True)
    except BlockingIOError:
        return True
    except OSError:  # a file system that knows no locks, or not ours to remove
        return False
    finally:
        os.close(handle)
    return False


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def flush_folder(folder: Path) -> None:
    """A rename is on disk only when its folder is."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_text(path: Path, text: str) -> None:
    """Write a text file that is whole or absent."""
    with replacing(path) as aside:
        aside.write_text(text, encoding="utf-8")


def nulls(data: Any) -> Any:
    """Nested figures with None in place of nan and infinities, which JSON does not have.

    >>> nulls({"mase": float("nan"), "by_series": [{"a": 1.5}]})
    {'mase': None, 'by_series': [{'a': 1.5}]}
    """
    if isinstance(data, dict):
        return {name: nulls(value) for name, value in data.items()}
    if isinstance(data, list | tuple):
        return [nulls(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def write_json(path: Path, data: Any) -> None:
    """Write a JSON file that is whole or absent."""
    write_text(path, json.dumps(data, indent=2) + "\n")
