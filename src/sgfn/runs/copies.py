"""Copies of the files that a configuration names, kept in a folder's `data`, so that the originals may change or go."""

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from sgfn.config import TrainConfig
from sgfn.config.files import flush_folder, naming, resolved, sweep
from sgfn.landscapes.base import Landscape
from sgfn.runs.trust import Trust, own_copy

DATA = "data"
"""Folder of the copies, inside that of a run or a comparison."""
CHUNK = 2**20
LARGE = 100 * 10**6
"""Bytes from which on the user is told of a copy."""


@dataclass(frozen=True, kw_only=True)
class KeptFile:
    """A file as it was when a run or a comparison began."""

    sha256: str | None
    """None where an early version kept no checksum."""
    copy: str | None
    """Where the copy lies inside the folder; None where an early version kept none, and the original is read."""


def checksum(file: Path) -> str:
    """SHA-256 of a file."""
    with file.open("rb") as content:
        try:
            return hashlib.file_digest(content, "sha256").hexdigest()
        except OSError as error:  # of a broken disk, say; it names no file
            raise OSError(error.errno, error.strerror, str(file)) from None


def files_there(config: TrainConfig) -> dict[str, Path]:
    """The files that a configuration names, as far as they are there, by the field that names them."""
    return {name: file for name, file in config.files.items() if file.is_file()}


def checksums(files: Mapping[str, Path]) -> dict[str, str]:
    """SHA-256 of each file."""
    return {name: checksum(file) for name, file in files.items()}


def with_files(config: TrainConfig, files: Mapping[str, Path]) -> TrainConfig:
    """A configuration that names other files."""
    return config.with_(**{name.replace(".", "__"): file for name, file in files.items()})


@contextmanager
def fitted_aside(landscape: Landscape, files: Mapping[str, Path]) -> Iterator[dict[str, Path]]:
    """Files of what a landscape has fitted, but for those among `files`; they go when the block ends.

    Landscapes that fit nothing need no room on a disk for it.
    """
    if type(landscape).fitted_files is Landscape.fitted_files:
        yield {}
        return
    with TemporaryDirectory() as folder:
        found = landscape.fitted_files(Path(folder))
        yield {field: file for field, file in found.items() if field not in files}


# Making copies


def copy_names(files: Mapping[str, Path]) -> dict[str, str]:
    """What copies are called: as the originals, with the field's component before it where two are called alike.

    >>> copy_names({"noise.file": Path("a/x.csv"), "table.file": Path("b/X.csv"), "offline.file": Path("y.csv")})
    {'noise.file': 'x.csv', 'table.file': 'table-X.csv', 'offline.file': 'y.csv'}
    >>> copy_names({"noise.file": Path("table-x.csv"), "offline.file": Path("x.csv"), "table.file": Path("b/x.csv")})
    {'noise.file': 'table-x.csv', 'offline.file': 'x.csv', 'table.file': 'table-table-x.csv'}
    """
    names, taken = dict[str, str](), set[str]()
    for field, file in files.items():
        names[field] = file.name
        while names[field].lower() in taken:
            names[field] = f"{field.partition('.')[0]}-{names[field]}"
        taken.add(names[field].lower())
    return names


@contextmanager
def keeping(
    folder: Path, files: Mapping[str, Path], known: Mapping[str, str], *, link: bool = False
) -> Iterator[dict[str, KeptFile]]:
    """Copies of files under temporary names, which get their own when the block ends well and else are removed.

    Inside the block the caller, who has locked the folder, writes the file that names them. A file whose checksum is
    not the `known` one has changed since it was read, and is refused. With `link` a file is not copied but gets a
    second name, where the disk allows it: for copies of ours, which nobody writes to.
    """
    names, asides = copy_names(files), dict[str, Path]()
    try:
        kept = {}
        for field, name in names.items():
            target, asides[field] = folder / DATA / name, folder / f".{DATA}.{name}"
            with naming(target):
                sha256 = copy_file(files[field], asides[field], link=link)
            if known.get(field, sha256) != sha256:
                raise ValueError(f"--{field} {files[field]} changed while it was read: give the same command again")
            kept[field] = KeptFile(sha256=sha256, copy=f"{DATA}/{name}")
        yield kept
        for field, name in names.items():
            _settle(asides[field], folder / DATA / name)
    finally:
        for aside in asides.values():
            aside.unlink(missing_ok=True)


def copy_file(source: Path, target: Path, *, link: bool = False) -> str:
    """Copy a file piece by piece, onto the disk, or give it a second name; returns its SHA-256."""
    target.unlink(missing_ok=True)
    if link and _linked(source, target):
        return checksum(target)
    digest = hashlib.sha256()
    with source.open("rb") as content, target.open("wb") as file:
        while piece := content.read(CHUNK):
            digest.update(piece)
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())
    return digest.hexdigest()


def large_copies(files: Mapping[str, Path], folder: Path) -> str:
    """What a user is told of large files before they are copied; empty where there is none."""
    sizes = {file: file.stat().st_size for file in files.values()}
    told = [f"{file} ({size / 1e6:,.0f} MB)" for file, size in sizes.items() if size > LARGE]
    return f"copying {', '.join(told)} into {folder / DATA}, which the run will read from now on" if told else ""


def _linked(source: Path, target: Path) -> bool:
    """Whether a second name for a file could be made."""
    try:
        os.link(source, target)
    except OSError:  # another disk, or a file system that knows no second names
        return False
    return True


def _settle(aside: Path, target: Path) -> None:
    """Move a finished copy to its final name."""
    with naming(target):
        target.parent.mkdir(exist_ok=True)
        aside.replace(target)
        flush_folder(target.parent)


def settle_copies(folder: Path, kept: Mapping[str, KeptFile]) -> None:
    """Give copies their final names where whoever made them was killed before that, and remove other leftovers.

    The caller has locked the folder.
    """
    for record in kept.values():
        if record.copy is not None and (aside := _unsettled(folder, record)) is not None:
            _settle(aside, folder / record.copy)
    if folder.is_dir():
        sweep(folder, (DATA,))


def _unsettled(folder: Path, record: KeptFile) -> Path | None:
    """A whole copy under its temporary name, where there is none under the final one."""
    assert record.copy is not None
    aside = folder / f".{DATA}.{Path(record.copy).name}"
    if os.path.lexists(folder / record.copy) or aside.is_symlink() or not aside.is_file():
        return None
    return aside if checksum(aside) == record.sha256 else None


# Reading copies


def kept_paths(
    folder: Path, config: TrainConfig, kept: Mapping[str, KeptFile], trust: Trust = False
) -> dict[str, Path]:
    """Where the files of a run or a comparison are read; raises unless each is as it was at the beginning."""
    paths = {}
    for field, record in kept.items():
        original = config.files.get(field)
        file = original
        if record.copy is not None:
            file = own_copy(folder, field, record.copy, trust)
            file = _unsettled(resolved(folder), record) or file
        if file is not None:
            _refuse_changed(folder, field, file, record)
            paths[field] = file
    return paths


def _refuse_changed(folder: Path, field: str, file: Path, record: KeptFile) -> None:
    fix = "put the old file back, or begin again with another --out"
    if not file.is_file():
        why = f"{folder} is of sgfn 0.1, which kept no copy" if record.copy is None else f"{folder} is read with it"
        raise ValueError(f"--{field} {file} is missing, and {why}: {fix}")
    if record.sha256 is not None and checksum(file) != record.sha256:
        raise ValueError(f"--{field} {file} has changed since {folder} was begun: {fix}")
