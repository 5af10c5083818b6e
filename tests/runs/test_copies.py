"""A run reads its own copies of the files it was made from: the originals may change, move or go."""

import errno
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from kills import killed_at
from small_runs import ANYWHERE, FLAGS, complaint, contents, same_runs, small_on

import sgfn
from sgfn.cli.commands import main
from sgfn.compare.cells import Cell
from sgfn.compare.worker_process import work
from sgfn.compare.workers import SharedSettings, job_of
from sgfn.config import TrainConfig, from_dict
from sgfn.config.files import read_json
from sgfn.runs import copies
from sgfn.runs.copies import checksum, copy_file, keeping
from sgfn.runs.folder import Run

FILES = {
    "table.file": ("sequence,score\nACG,1\nCAT,0.5\nTAG,0.2\n", "sequence,score\nACG,1\nCAT,0.9\nTAG,0.2\n"),
    "noise.file": ("alpha\n0.1\n0.2\n0.1\n", "alpha\n0.1\n0.9\n0.1\n"),
    "offline.file": ("ACG\n", "TAG\n"),
}
"""Content of each file, and what somebody makes of it later."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with three files and a run of five steps that was made from them."""
    folder = tmp_path_factory.mktemp("made")
    for field, (text, _) in FILES.items():
        original(folder, field).parent.mkdir(exist_ok=True)
        original(folder, field).write_text(text)
    assert main([*words(folder), "--steps", "5"]) == 0
    return folder


@pytest.fixture
def place(made: Path, tmp_path: Path) -> Path:
    """The same anew; config.json names the originals in the new folder."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    file = tmp_path / "run" / "config.json"
    file.write_text(file.read_text().replace(str(made), str(tmp_path)))
    return tmp_path


def original(folder: Path, field: str) -> Path:
    """Two of the files are called alike, in folders of their own."""
    return folder / field / ("x.txt" if field == "offline.file" else "x.csv")


def copy(folder: Path, field: str) -> Path:
    name = {"table.file": "table-x.csv", "noise.file": "x.csv", "offline.file": "x.txt"}[field]
    return folder / "run" / "data" / name


def words(folder: Path) -> list[str]:
    named = [word for field in FILES for word in (f"--{field}", str(original(folder, field)))]
    return ["train", "table", *ANYWHERE, "--noise.kind", "position", *named, "--out", str(folder / "run")]


def later(folder: Path) -> list[list[str]]:
    """Commands that read a run."""
    run = str(folder / "run")
    evaluate = ["evaluate", run, "--device", "cpu", "--samples", "5"]
    resume = ["train", "table", "--resume", "--steps", "10", "--out", run, "--device", "cpu"]
    return [evaluate, ["sample", run, "-n", "5", "--overwrite"], ["report", run], resume]


@pytest.mark.parametrize("how", ["edited", "deleted"])
def test_what_becomes_of_the_originals_changes_nothing(how: str, place: Path, tmp_path_factory: Any) -> None:
    other = shutil.copytree(place, tmp_path_factory.mktemp("other"), dirs_exist_ok=True)
    assert [main(command) for command in later(other)] == [0] * 4
    for field, (_, text) in FILES.items():
        file = original(place, field)
        if how == "edited":
            file.write_text(text)
        else:
            file.unlink()
    assert [main(command) for command in later(place)] == [0] * 4
    assert same_runs(place / "run", other / "run")
    assert (place / "run" / "exact.json").read_bytes() == (other / "run" / "exact.json").read_bytes()


def test_the_content_of_the_copies_counts(place: Path, tmp_path_factory: Any) -> None:
    """So that the test above can fail: a run begun with the edited files is another one."""
    other = tmp_path_factory.mktemp("other")
    for field, (_, text) in FILES.items():
        original(other, field).parent.mkdir()
        original(other, field).write_text(text)
    assert main([*words(other), "--steps", "5"]) == 0
    assert not same_runs(place / "run", other / "run")


def test_a_run_can_be_moved_with_its_copies(place: Path) -> None:
    for field in FILES:
        original(place, field).unlink()
    moved = (place / "run").rename(place / "elsewhere")
    assert main(["evaluate", str(moved), "--device", "cpu", "--samples", "5"]) == 0
    assert Run(path=moved).copies()["table.file"] == (moved / "data" / "table-x.csv").resolve()


@pytest.mark.parametrize("field", FILES)
def test_a_copy_that_was_tampered_with_is_refused(field: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, run = copy(place, field), place / "run"
    fix = "put the old file back, or begin again with another --out"
    file.write_text(FILES[field][1])
    before = contents(place)
    for command in (later(place)[0], later(place)[1], later(place)[3]):
        assert complaint(capsys, command) == f"--{field} {file} has changed since {run} was begun: {fix}"
        assert contents(place) == before
    file.unlink()
    assert complaint(capsys, later(place)[0]) == f"--{field} {file} is missing, and {run} is read with it: {fix}"
    file.write_text(FILES[field][0])  # the content counts, not when it was written
    assert main(later(place)[0]) == 0


def test_config_json_keeps_the_original_path_and_the_checksum(place: Path) -> None:
    data = read_json(place / "run" / "config.json")
    assert data["config"]["table"]["file"] == str(original(place, "table.file"))
    for field in FILES:
        name = str(copy(place, field).relative_to(place / "run"))
        assert data["files"][field] == {"sha256": checksum(original(place, field)), "copy": name}


def test_the_same_command_resumes_although_the_original_has_gone(place: Path) -> None:
    original(place, "table.file").unlink()
    assert main([*words(place), "--steps", "7", "--resume"]) == 0
    assert Run(path=place / "run").rows()[-1]["step"] == 7


def test_overwriting_replaces_the_copies_and_nothing_else(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = place / "run" / "data" / "mine.csv"
    mine.write_text("mine")
    assert main(["train", "grid", *FLAGS, "--out", str(place / "run"), "--overwrite"]) == 0
    assert [file.name for file in mine.parent.iterdir()] == ["mine.csv"]  # a grid needs no file
    table = place / "table.file" / "mine.csv"
    table.write_text(FILES["table.file"][0])
    before = contents(place)
    again = ["train", "table", *ANYWHERE, "--table.file", str(table), "--out", str(place / "run"), "--overwrite"]
    assert complaint(capsys, again) == f"{mine} is in the way: move it, or give --out another name"
    assert contents(place) == before
    mine.unlink()
    assert main(again) == 0
    assert mine.read_text() == FILES["table.file"][0]


def test_a_copy_of_the_run_itself_may_be_given(place: Path) -> None:
    """What is removed is read before."""
    table = copy(place, "table.file")
    assert (
        main(["train", "table", *ANYWHERE, "--table.file", str(table), "--out", str(place / "run"), "--overwrite"]) == 0
    )
    assert [file.name for file in table.parent.iterdir()] == [table.name]
    assert table.read_text() == FILES["table.file"][0]


def test_an_original_is_never_linked(place: Path) -> None:
    """Whoever edits it in its place must not edit the copy."""
    assert not any(copy(place, field).samefile(original(place, field)) for field in FILES)
    folder = place / "data"
    folder.mkdir()
    (folder / "a.csv").write_text("x")
    copy_file(folder / "a.csv", folder / "b.csv")
    copy_file(folder / "a.csv", folder / "c.csv", link=True)
    assert [(folder / name).samefile(folder / "a.csv") for name in ("b.csv", "c.csv")] == [False, True]


# When copying fails


class FullDisk:
    """A file of which only the first bytes can be written."""

    def __init__(self, file: Any) -> None:
        self.file = file

    def __enter__(self) -> "FullDisk":
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    def write(self, piece: bytes) -> None:
        self.file.write(piece[:3])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No copy can be written, all else can."""
    whole = Path.open

    def opened(self: Path, mode: str = "r", **options: Any) -> Any:
        file = whole(self, mode, **options)
        return FullDisk(file) if self.name == ".data.table-x.csv" and "w" in mode else file

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", opened)
        yield


@pytest.mark.usefixtures("full_disk")
def test_a_full_disk_leaves_nothing_half_written(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(place)
    line = complaint(capsys, [*words(place), "--overwrite"])
    assert line == f"{copy(place, 'table.file')}: No space left on device"
    assert contents(place) == before  # the old run is whole
    shutil.rmtree(place / "run")
    assert complaint(capsys, words(place)) == line
    assert contents(place / "run") == {}


def test_after_a_kill_while_copying_the_same_command_works(place: Path) -> None:
    run = place / "run"
    shutil.rmtree(run)
    run.mkdir()
    (run / ".data.table-x.csv").write_text("hal")
    assert main([*words(place), "--steps", "5"]) == 0
    assert not (run / ".data.table-x.csv").exists()
    assert copy(place, "table.file").read_text() == FILES["table.file"][0]


@pytest.mark.parametrize("change", range(8, 18, 3))
def test_killed_before_its_copies_have_their_names_a_run_goes_on(change: int, place: Path) -> None:
    """Three copies are named one after the other, after config.json: it is there at all of these moments."""
    run = place / "run"
    shutil.rmtree(run)
    assert killed_at(change, lambda: main([*words(place), "--steps", "5"]))
    again = ["train", "table", "--resume", "--out", str(run), "--device", "cpu"]
    assert main(again if (run / "config.json").is_file() else [*words(place), "--steps", "5"]) == 0
    assert {field: copy(place, field).read_text() for field in FILES} == {
        field: old for field, (old, _) in FILES.items()
    }
    assert not [path for path in run.iterdir() if path.name.startswith(".data.")]


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("new")
    with (
        pytest.raises(ValueError, match=r"^--table\.file .*a\.csv changed while it was read: give the same command"),
        keeping(tmp_path, {"table.file": file}, {"table.file": "0" * 64}),
    ):
        pass
    assert contents(tmp_path) == {"a.csv": b"new"}
    with keeping(tmp_path, {"table.file": file}, {"table.file": checksum(file)}) as kept:
        assert not (tmp_path / "data").exists()  # the copy gets its name with the block's end
    assert contents(tmp_path) == {"a.csv": b"new", "data/a.csv": b"new"}
    assert kept["table.file"].copy == "data/a.csv"


def test_the_user_is_told_of_a_large_copy(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main([*words(place), "--overwrite"]) == 0
    assert "copying" not in capsys.readouterr().err
    monkeypatch.setattr(copies, "LARGE", 10)
    assert main([*words(place), "--overwrite"]) == 0
    told = " ".join(capsys.readouterr().err.split())
    assert f"copying {original(place, 'noise.file')} (0 MB), {original(place, 'table.file')} (0 MB) into" in told
    assert "offline.file" not in told  # of four bytes


def test_a_large_file_is_copied_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies, "CHUNK", 7)
    content = torch.randint(256, (1000,), generator=torch.Generator().manual_seed(0)).to(torch.uint8).numpy().tobytes()
    (tmp_path / "a").write_bytes(content)
    assert copy_file(tmp_path / "a", tmp_path / "b") == checksum(tmp_path / "a")
    assert (tmp_path / "b").read_bytes() == content


# Comparisons


def test_cells_read_the_comparisons_own_copy(stub: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Cells that are added after the original was edited are trained on what the first ones were trained on."""
    table, copied = tmp_path / "a.csv", stub / "data" / "a.csv"
    table.write_text(FILES["table.file"][0])
    compare = ["compare", "table", *ANYWHERE, "--steps", "20", "--out", str(stub), "--samples", "8", "--methods", "tb"]
    compare += ["--table.file", str(table), "--json", "--seeds"]
    assert main([*compare, "1"]) == 0
    table.write_text(FILES["table.file"][1])
    assert main([*compare, "2"]) == 0
    table.unlink()
    assert main([*compare, "3"]) == 0
    assert copied.read_text() == FILES["table.file"][0]
    copied.write_text(FILES["table.file"][1])
    line = complaint(capsys, [*compare, "4"])
    assert line.startswith(f"--table.file {copied} has changed since {stub} was begun: put the old file back")
    assert read_json(stub / "compare.json")["format"] == 2


def test_a_cell_shares_the_copy_and_is_a_run_like_any_other(tmp_path: Path) -> None:
    """A second name of one file on the disk, however many cells there are."""
    copied, path = tmp_path / "data" / "a.csv", tmp_path / "tb" / "alpha0.25" / "seed0"
    copied.parent.mkdir()
    copied.write_text(FILES["table.file"][0])
    config = small_on("table", steps=5, objective="tb", table__file=tmp_path / "gone.csv")
    cell = Cell(task="table", method="tb", alpha=0.25, seed=0, path=path, config=config)
    shared = SharedSettings(jobs=1, device="cpu", accelerate="auto", samples=4, copies={"table.file": copied})
    job = json.loads(json.dumps(job_of(cell, shared)))
    copies = {name: Path(file) for name, file in job["copies"].items()}
    work(job["task"], from_dict(TrainConfig, job["config"]), path, "cpu", "auto", 4, copies)
    assert (path / "data" / "a.csv").samefile(copied)
    assert Run(path=path).read_config() == ("table", config)  # with the original's path
    moved = path.rename(tmp_path / "alone")
    copied.unlink()
    assert sgfn.evaluate(moved, samples=4, device="cpu")["step"] == 5
