"""Temporary folders of jobs; what killed ones left behind is removed by those that follow."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sgfn.config.staging import LOCK

PREFIX = "sgfn-job-"


@contextmanager
def own_folder() -> Iterator[Path]:
    """A folder for one job, which goes with it; folders that killed workers left behind go too."""
    base = Path(tempfile.gettempdir())
    for left in base.glob(f"{PREFIX}*"):
        _remove_if_left(left)
    handle, folder = _locked_folder()
    try:
        with folder as name:
            yield Path(name)
    finally:
        os.close(handle)


def _locked_folder() -> tuple[int, tempfile.TemporaryDirectory[str]]:
    """A new folder, locked as long as the handle is open; whoever took it for a leftover before it was has removed it.

    Between the making of the lock and the locking another job of this machine may look: then there is a new one.
    """
    while True:
        folder = tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True)
        handle = os.open(Path(folder.name) / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(handle, fcntl.LOCK_EX)
        if os.fstat(handle).st_nlink:
            return handle, folder
        os.close(handle)
        folder.cleanup()


def _remove_if_left(folder: Path) -> None:
    """Remove a job's folder whose worker is gone."""
    try:
        handle = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:  # not ours, or just being made
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    except OSError:  # its worker lives
        return
    finally:
        os.close(handle)
