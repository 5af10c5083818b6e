"""Files that are whole or absent: write aside, flush to disk, rename."""

import errno
import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Errors of the disk that name the file: a failed write does not, and a temporary name tells nobody anything."""
    try:
        yield
    except OSError as error:
        error.filename = str(path)
        raise


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary neighbour that takes the path's place when the block ends well; the old file stays if it does not."""
    with naming(path):
        if path.exists() and not path.is_file():
            raise OSError(errno.EINVAL, "not a regular file, give another name", str(path))
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=path.suffix)
        os.close(handle)
        aside = Path(name)
        try:
            yield aside
            with aside.open("rb") as file:
                os.fsync(file.fileno())
            aside.chmod(0o666 & ~_umask())
            aside.replace(path)
            flush_folder(path.parent)
        finally:
            aside.unlink(missing_ok=True)


def sweep(folder: Path, names: Iterable[str]) -> None:
    """Remove what killed writers left beside these files."""
    for name in names:
        path = folder / name
        for left in path.parent.glob(f".{path.name}.*"):
            left.unlink(missing_ok=True)


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


def write_json(path: Path, data: Any) -> None:
    """Write a JSON file that is whole or absent."""
    write_text(path, json.dumps(data, indent=2) + "\n")


def read_json(path: Path) -> Any:
    """JSON with an error that names the file and the line."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}, line {error.lineno}: not valid JSON ({error.msg})") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path}: not a text file") from None
