"""Files that take their places together: killed anywhere, a folder has the old ones or the new ones."""

import json
from pathlib import Path

import pytest
from kills import killed_at

from sgfn.config.staging import GONE, NEW, READY, discard, put_into_place, staging, take_over, unsettled

OLD = {"a.txt": "old", "b.txt": "old", "data/x.csv": "old", "data/y.csv": "old", "notes.txt": "mine"}
FRESH = {"a.txt": "new", "data/x.csv": "new", "deep/z.txt": "new"}
AFTER = FRESH | {"notes.txt": "mine"}


def fill(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def texts(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def replace_files(folder: Path) -> None:
    with staging(folder) as new:
        fill(new, FRESH)
        take_over(folder, ["a.txt", "b.txt", "data/y.csv", "nothing.txt"])


def test_new_files_take_their_places_and_the_rest_stays(tmp_path: Path) -> None:
    replace_files(fill(tmp_path, OLD))
    assert texts(tmp_path) == AFTER
    assert not any(path.name.startswith(".") for path in tmp_path.iterdir())


def test_a_block_that_fails_changes_nothing(tmp_path: Path) -> None:
    fill(tmp_path, OLD)

    def fail() -> None:
        with staging(tmp_path) as new:
            fill(new, FRESH)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert texts(tmp_path) == OLD
    assert not (tmp_path / NEW).exists()


def test_killed_anywhere_the_files_are_all_old_or_all_new(tmp_path: Path) -> None:
    outcomes, change = [], 0
    while True:
        change += 1
        folder = fill(tmp_path / str(change), OLD)
        if not killed_at(change, lambda folder=folder: replace_files(folder)):
            break
        counts = unsettled(folder)
        put_into_place(folder)
        discard(folder)
        assert texts(folder) in (OLD, AFTER)
        assert counts <= (texts(folder) == AFTER)
        assert not any(path.name.startswith(".") for path in folder.iterdir())
        outcomes.append(texts(folder) == AFTER)
    assert outcomes == sorted(outcomes)  # old ones up to some moment, new ones from there on
    assert 2 < sum(outcomes) < len(outcomes) - 2


def test_killed_while_it_settles_it_is_settled_by_the_next(tmp_path: Path) -> None:
    for change in range(1, 40):
        folder = fill(tmp_path / str(change), OLD)
        (folder / READY).mkdir()
        fill(folder / READY, FRESH | {GONE: json.dumps(["b.txt", "data/y.csv"])})
        killed = killed_at(change, lambda folder=folder: put_into_place(folder))
        put_into_place(folder)
        assert texts(folder) == AFTER
        if not killed:
            break
    assert 5 < change < 39


def test_what_is_in_the_way_is_told_before_anything_changes(tmp_path: Path) -> None:
    fill(tmp_path, OLD)
    (tmp_path / "b.txt").unlink()
    (tmp_path / "b.txt").mkdir()
    with pytest.raises(OSError, match="not a regular file") as caught:
        replace_files(tmp_path)
    assert caught.value.filename == str(tmp_path / "b.txt")
    assert texts(tmp_path) == {name: text for name, text in OLD.items() if name != "b.txt"}


WAYS_OUT = [["../mine.txt"], ["HERE/mine.txt"], [""], ["out/mine.txt"], ["data/../../mine.txt"], {}]


@pytest.mark.parametrize("gone", WAYS_OUT, ids=str)
def test_a_stranger_removes_nothing_outside_of_the_folder(gone: object, tmp_path: Path) -> None:
    fill(tmp_path, {"mine.txt": "mine", "other/mine.txt": "mine"})
    folder = fill(tmp_path / "run", OLD)
    (folder / "out").symlink_to(tmp_path / "other")
    (folder / READY).mkdir()
    (folder / READY / GONE).write_text(json.dumps(gone).replace("HERE", str(tmp_path)))
    with pytest.raises(ValueError, match=r"leads out of|was not written by sgfn"):
        put_into_place(folder)
    assert texts(tmp_path / "other") == {"mine.txt": "mine"}
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_a_stranger_writes_nothing_outside_of_the_folder(tmp_path: Path) -> None:
    fill(tmp_path, {"other/mine.txt": "mine"})
    folder = fill(tmp_path / "run", OLD)
    (folder / "out").symlink_to(tmp_path / "other")
    fill(folder / READY, {"out/mine.txt": "not mine"})
    with pytest.raises(ValueError, match="leads out of"):
        put_into_place(folder)
    assert texts(tmp_path / "other") == {"mine.txt": "mine"}


def test_what_lies_behind_a_link_is_not_moved(tmp_path: Path) -> None:
    """A run of somebody else's may hold a link in the place of our hidden folder."""
    run, home = tmp_path / "run", tmp_path / "home"
    run.mkdir()
    home.mkdir()
    (home / "diary.txt").write_text("dear")
    (run / READY).symlink_to("../home")
    assert not unsettled(run)
    put_into_place(run)
    assert (home / "diary.txt").read_text() == "dear"
    assert [path.name for path in run.iterdir()] == [READY]
