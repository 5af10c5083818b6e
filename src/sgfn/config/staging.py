"""Files of a folder that take their places together: whoever is killed on the way leaves the old ones, or the new ones.

New files are written into a hidden folder. Once all of them are on the disk it gets another name, and from then on they
count: if their writer could not move them to their places, whoever comes next does.
"""

import fcntl
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from sgfn.config.files import flush_folder, naming, read_json, refuse_irregular, resolved, write_json

NEW, READY = ".sgfn-new", ".sgfn-ready"
LOCK = ".lock"
PATIENCE = 10.0
"""Seconds that a reader waits for another process that is just replacing a folder's files."""
GONE = ".gone.json"
"""Names of old files that have no successor, kept beside the new ones."""


class Busy(ValueError):  # noqa: N818 -- says what is wrong
    """Another process writes to a folder."""


@contextmanager
def holding(folder: Path, doing: str = "writing to") -> Iterator[None]:
    """Hold a folder against a second writer, for as long as this process lives; files of a killed one are settled."""
    with naming(folder / LOCK):
        handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Busy(f"another process is {doing} {folder}: wait for it, or give --out another name") from None
        put_into_place(folder)
        discard(folder)
        yield
    finally:
        os.close(handle)


def settle(folder: Path, hold: Callable[[], AbstractContextManager[None]], patience: float) -> None:
    """Bring files to their places whose writer was killed on the way; one that is alive is waited for."""
    begun = time.monotonic()
    while unsettled(folder):
        try:
            with hold():
                return
        except Busy:
            if time.monotonic() - begun > patience:
                raise
            time.sleep(0.05)


@contextmanager
def staging(folder: Path) -> Iterator[Path]:
    """A hidden folder inside another, which the caller has locked; what is left there at the end is removed."""
    new = folder / NEW
    discard(folder)
    with naming(new):
        new.mkdir()
    try:
        yield new
    except OSError as error:  # to be told of the place that the file was meant for
        error.filename = str(error.filename).replace(f"{os.sep}{NEW}{os.sep}", os.sep) if error.filename else None
        raise
    finally:
        discard(folder)


def discard(folder: Path) -> None:
    """Remove new files that nobody has finished."""
    shutil.rmtree(folder / NEW, ignore_errors=True)


def take_over(folder: Path, gone: Iterable[str]) -> None:
    """Let the files in the hidden folder take their places, and remove the old ones named here without a successor."""
    new = folder / NEW
    names = _files(new)
    gone = sorted({*gone} - {*names})
    for name in (*gone, *names):
        refuse_irregular(folder / name)
    write_json(new / GONE, gone)
    for path in (*(path for path in new.rglob("*") if path.is_dir()), new):
        flush_folder(path)
    with naming(folder):
        new.rename(folder / READY)
        flush_folder(folder)
    put_into_place(folder)


def unsettled(folder: Path) -> bool:
    """Whether somebody was killed before all new files of a folder were in their places.

    A link was not put there by us: what lies behind it belongs to somebody else.
    """
    return (folder / READY).is_dir() and not (folder / READY).is_symlink()


def refuse_hidden_links(folder: Path) -> None:
    """Raise where a hidden file or folder of ours is a link, or what waits in there for its place is one."""
    for path in (folder / LOCK, folder / NEW, folder / READY, *(folder / READY / name for name in _waiting(folder))):
        if path.is_symlink():
            raise ValueError(f"{path} is a link, which sgfn never makes: remove it, or give another folder")


def _waiting(folder: Path) -> list[str]:
    """Names of all files that wait for their places, the list of those that go included."""
    return [*_files(folder / READY), GONE] if unsettled(folder) else []


def put_into_place(folder: Path) -> None:
    """Move new files that count already to their places; for whoever has locked the folder."""
    ready = folder / READY
    if not unsettled(folder):
        return
    refuse_hidden_links(folder)
    names, gone = _files(ready), read_json(ready / GONE) if (ready / GONE).is_file() else []
    if not isinstance(gone, list):
        raise ValueError(f"{ready / GONE} was not written by sgfn: a list of names is expected")
    targets, removed = [_inside(folder, name) for name in names], [_inside(folder, str(name)) for name in gone]
    for name, target in zip(names, targets, strict=True):
        with naming(target):
            target.parent.mkdir(exist_ok=True)
            (ready / name).replace(target)
    for path in removed:
        path.unlink(missing_ok=True)
    for path in {folder, *((folder / name).parent for name in names)}:
        flush_folder(path)
    shutil.rmtree(ready)


def _files(folder: Path) -> list[str]:
    """Names of all files below a folder, but for the list of those that go."""
    found = [Path(path, name).relative_to(folder) for path, _, names in os.walk(folder) for name in names]
    return [str(name) for name in found if name != Path(GONE)]


def _inside(folder: Path, name: str) -> Path:
    """A path inside the folder; a name or a link that leads out of it is refused."""
    path, parts = folder / name, Path(name).parts
    plain = parts and ".." not in parts and not Path(name).is_absolute()
    if not plain or resolved(path.parent) != resolved(folder).joinpath(*parts[:-1]):
        raise ValueError(f"{path} leads out of {folder}: remove {folder / READY}")
    return path
