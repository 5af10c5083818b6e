"""Folders of jobs go with them; what a killed one left is removed by the next, what a living one has is not."""

import fcntl
import os
import tempfile
from pathlib import Path

import pytest

from sgfn.config import work_folders
from sgfn.config.staging import LOCK
from sgfn.config.work_folders import PREFIX, own_folder


def test_leftovers_go_and_what_is_held_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left, held, others = (tmp_path / name for name in (f"{PREFIX}left", f"{PREFIX}held", "thesis"))
    for folder in (left, held, others):
        folder.mkdir()
        (folder / LOCK).touch()
    (left / "cell").mkdir()
    handle = os.open(held / LOCK, os.O_RDWR)
    fcntl.flock(handle, fcntl.LOCK_EX)
    with own_folder() as mine:
        assert mine.parent == tmp_path
        assert {path.name for path in tmp_path.iterdir()} == {held.name, others.name, mine.name}
        with own_folder() as second:  # of another job at the same time
            assert mine.is_dir()
            assert second != mine
    os.close(handle)
    assert {path.name for path in tmp_path.iterdir()} == {held.name, others.name}


def test_a_link_in_the_place_of_a_lock_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (trap := tmp_path / f"{PREFIX}trap").mkdir()
    (trap / LOCK).symlink_to(tmp_path / "precious")
    with own_folder():
        assert trap.is_dir()
    assert not (tmp_path / "precious").exists()


def test_a_folder_that_another_job_takes_for_a_leftover_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another job looks between the making of the lock and the locking."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    real, looked = fcntl.flock, list[Path]()

    def flock(handle: int, how: int) -> None:
        if how == fcntl.LOCK_EX and not looked:
            looked.extend(tmp_path.glob(f"{PREFIX}*"))
            work_folders._remove_if_left(looked[0])
        real(handle, how)

    monkeypatch.setattr(work_folders.fcntl, "flock", flock)
    with own_folder() as mine:
        assert not looked[0].exists()
        assert mine != looked[0]
        assert (mine / LOCK).is_file()
        work_folders._remove_if_left(mine)  # now it is held
        assert mine.is_dir()
    assert not list(tmp_path.iterdir())
