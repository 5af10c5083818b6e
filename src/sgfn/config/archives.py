"""Folders as bytes, which travel between machines; what comes back is data, and is unpacked within bounds."""

import io
import os
import tarfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath

MOST_FILES = 10_000
MOST_BYTES = 4 * 2**30
"""Of all files of a folder together."""


def pack_folder(folder: Path, *, keep: Callable[[str], bool] = bool, most_bytes: int = MOST_BYTES) -> bytes:
    """The regular files of a folder as a tar, in order of their names; links and what `keep` denies stay behind."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    names = [(path, path.relative_to(folder).as_posix()) for path in paths]
    chosen = [(path, name) for path, name in names if keep(name)]
    _check_bounds(folder.name, len(chosen), sum(path.stat().st_size for path, _ in chosen), most_bytes)
    found = io.BytesIO()
    with tarfile.open(fileobj=found, mode="w") as tar:
        for path, name in chosen:
            entry = tarfile.TarInfo(name)  # no owner, no times: equal files give equal bytes
            with path.open("rb") as content:
                entry.size = os.fstat(content.fileno()).st_size
                tar.addfile(entry, content)
    return found.getvalue()


def unpack_folder(packed: bytes, folder: Path, *, most_bytes: int = MOST_BYTES) -> list[str]:
    """Write the files of a tar into an empty folder; returns their names, and refuses all that is not a plain file.

    Names that lead out of the folder, links, devices, names given twice, too many files or bytes: nothing is written.
    """
    try:
        with tarfile.open(fileobj=io.BytesIO(packed), mode="r:") as tar:
            entries = tar.getmembers()
            _check_bounds("the folder", len(entries), sum(entry.size for entry in entries), most_bytes)
            for entry in entries:
                _check_entry(entry)
            if len({entry.name for entry in entries}) != len(entries):
                raise ValueError("an archive names a file twice: it was not packed by sgfn")
            for entry in entries:
                _write_entry(tar, entry, folder)
    except tarfile.TarError as error:
        raise ValueError(f"an archive cannot be read ({error}): it was not packed by sgfn") from None
    return [entry.name for entry in entries]


def _check_bounds(name: str, files: int, size: int, most_bytes: int) -> None:
    if files > MOST_FILES or size > most_bytes:
        most = f"at most {MOST_FILES:,} files and {most_bytes / 1e9:,.1f} GB"
        raise ValueError(f"{name}: {files:,} files of {size / 1e9:,.1f} GB are too much to travel: {most}")


def _check_entry(entry: tarfile.TarInfo) -> None:
    """Raise for anything but a plain file with a plain name below the folder."""
    parts = PurePosixPath(entry.name).parts
    plain = parts and ".." not in parts and not entry.name.startswith("/") and "\0" not in entry.name
    if not entry.isreg() or not plain or "\\" in entry.name:
        raise ValueError(f"an archive holds {entry.name!r}, which is no plain file below it: it was not packed by sgfn")


def _write_entry(tar: tarfile.TarFile, entry: tarfile.TarInfo, folder: Path) -> None:
    target = folder / entry.name
    target.parent.mkdir(parents=True, exist_ok=True)
    content = tar.extractfile(entry)
    assert content is not None
    with target.open("xb") as file:
        while piece := content.read(2**20):
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())
