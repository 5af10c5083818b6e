"""A run that replaces another: killed, stopped or failing anywhere, the folder holds the old run or the new one."""

import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
from kills import killed_at
from small_runs import CPU, FLAGS, complaint, contents, same_runs, small

import sgfn
from sgfn.cli.commands import main
from sgfn.config.staging import NEW, READY
from sgfn.learning.trainer import Trainer
from sgfn.runs.folder import Run

CONFIG = small(seed=1, steps=4, log__every=1, log__exact_every=0, log__checkpoint_every=2)
MINE = {"notes.txt": b"mine", "checkpoint/old.safetensors": b"mine too", "samples.csv": b"a,b"}
KEPT = [*MINE, "seconds.json"]


def begin_again(folder: Path, **options: Any) -> None:
    sgfn.train("grid", CONFIG, folder, device="cpu", overwrite=True, **options)


@pytest.fixture
def old(grid_run: Path) -> Path:
    """A trained and evaluated run in a folder with other files."""
    sgfn.evaluate(grid_run, samples=5, device="cpu")
    for name, content in MINE.items():
        (grid_run / name).write_bytes(content)
    return grid_run


@pytest.fixture
def undisturbed(tmp_path: Path) -> Path:
    return sgfn.train("grid", CONFIG, tmp_path / "undisturbed", device="cpu").path


def fail_at(step: int, monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    whole = Trainer.step

    def step_until(trainer: Trainer) -> None:
        if trainer.done == step:
            raise error
        whole(trainer)

    monkeypatch.setattr(Trainer, "step", step_until)


# Checkpoint 0


def test_there_is_a_checkpoint_before_the_first_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed at any step, a run goes on from its start and comes out the same."""
    fail_at(1, monkeypatch, MemoryError())
    with pytest.raises(MemoryError):
        sgfn.train("grid", CONFIG, tmp_path / "cut", device="cpu")
    assert Run(path=tmp_path / "cut").load(CPU).done == 0
    assert [row["step"] for row in Run(path=tmp_path / "cut").rows()] == [1]
    monkeypatch.undo()
    for name, resume in (("cut", True), ("whole", False)):
        sgfn.train("grid", None if resume else CONFIG, tmp_path / name, device="cpu", resume=resume)
    assert same_runs(tmp_path / "cut", tmp_path / "whole")


@pytest.mark.parametrize("method", ["gfn", "sac", "mars", "mh", "ppo"])
def test_every_method_goes_on_from_its_checkpoint_0(method: str, tmp_path: Path) -> None:
    config = small(method=method, steps=2, log__every=1, log__exact_every=0)
    whole = sgfn.train("grid", config, tmp_path / "whole", device="cpu")
    saved: list[Path] = []

    def keep(step: int, row: dict[str, Any]) -> None:
        if step == 0:
            saved.append(Path(shutil.copytree(tmp_path / "again", tmp_path / "cut")))

    sgfn.train("grid", config, tmp_path / "again", device="cpu", progress=keep)
    assert Run(path=saved[0]).load(CPU).done == 0
    sgfn.train("grid", None, saved[0], device="cpu", resume=True)
    assert same_runs(saved[0], whole.path)


# Replacing


def test_the_new_run_comes_out_as_one_in_an_empty_folder(old: Path, undisturbed: Path) -> None:
    begin_again(old)
    assert same_runs(old, undisturbed)
    assert contents(old).keys() == {*contents(undisturbed), *MINE}


@pytest.mark.parametrize("error", [ValueError("of the user"), KeyboardInterrupt(), MemoryError()], ids=repr)
def test_one_that_fails_in_its_first_step_leaves_the_old_run(
    error: BaseException, old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(old)
    fail_at(0, monkeypatch, error)
    with pytest.raises(type(error)):
        begin_again(old)
    assert contents(old) == before
    monkeypatch.undo()
    fail_at(1, monkeypatch, error)
    with pytest.raises(type(error)):
        begin_again(old)
    assert Run(path=old).read_config()[1] == CONFIG


def test_one_that_is_stopped_before_its_first_step_leaves_the_old_run(old: Path) -> None:
    before = contents(old)

    def stop(step: int, row: dict[str, Any]) -> None:
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt, match=r"stopped before the first step; .* holds its old run as before"):
        begin_again(old, progress=stop)
    assert contents(old) == before


def test_killed_anywhere_there_is_one_whole_run(old: Path, undisturbed: Path, tmp_path: Path) -> None:
    """Killed before any of its changes of the disk; what was killed after it took over goes on to the same end."""
    before, outcomes = {name: found for name, found in contents(old).items() if name not in KEPT}, []
    for change in range(1, 200, 2):
        folder = Path(shutil.copytree(old, tmp_path / "tried"))
        if not killed_at(change, lambda folder=folder: begin_again(folder)):
            break
        found = Run(path=folder).read_config()[1]  # a reader, as `evaluate` is one
        assert {name: contents(folder)[name] for name in MINE} == MINE
        outcomes.append(found == CONFIG)
        if found == CONFIG and outcomes.count(True) % 4 == 1:
            sgfn.train("grid", None, folder, device="cpu", resume=True)
            assert same_runs(folder, undisturbed)
        elif found != CONFIG:
            here = contents(folder)
            assert {name: here[name] for name in before} == before
            with Run(path=folder).locked():
                pass
            assert contents(folder).keys() == contents(old).keys()
        shutil.rmtree(folder)
    assert outcomes == sorted(outcomes)
    assert 3 < sum(outcomes) < len(outcomes) - 3
    assert change < 190


def test_a_saved_model_replaces_all_at_once(old: Path, tmp_path: Path) -> None:
    model = sgfn.load(old)
    model.rows = model.rows[:1]
    before, after, outcomes = contents(old), None, []
    for change in range(1, 100, 2):
        folder = Path(shutil.copytree(old, tmp_path / "tried"))
        killed = killed_at(change, lambda folder=folder: model.save(folder, overwrite=True))
        Run(path=folder).read_config()
        with Run(path=folder).locked():
            found = contents(folder)
        outcomes.append(found != before)
        after = found if outcomes[-1] and after is None else after
        assert found in (before, after)
        shutil.rmtree(folder)
        if not killed:
            break
    assert outcomes == sorted(outcomes)
    assert 1 < sum(outcomes) < len(outcomes) - 1
    assert after is not None
    assert after["metrics.jsonl"].count(b"\n") == 1
    assert "exact.json" not in after


def test_a_model_saved_into_a_new_folder_is_whole_or_absent(old: Path, tmp_path: Path) -> None:
    model = sgfn.load(old)
    for change in range(1, 100, 2):
        folder = tmp_path / "tried"
        killed = killed_at(change, lambda folder=folder: model.save(folder))
        if (folder / "config.json").exists() or (folder / READY).exists():
            assert sgfn.load(folder).step == 20
            with pytest.raises(ValueError, match="already holds a run"):
                model.save(folder)
        else:
            model.save(folder)
        assert {path.name for path in folder.iterdir()} == {".lock", "config.json", "metrics.jsonl", "checkpoint"}
        shutil.rmtree(folder)
        if not killed:
            break
    assert 5 < change < 90


def test_a_living_process_that_replaces_a_run_is_waited_for(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sgfn.runs.folder.PATIENCE", 0.1)
    with Run(path=old).locked():
        (old / READY).mkdir()
        with pytest.raises(ValueError, match="another process is training in"):
            Run(path=old).read_config()
        (old / READY).rmdir()
        Run(path=old).read_config()


def test_a_full_disk_leaves_the_old_run(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from sgfn.runs import folder as runs

    before = contents(old)

    def full(state: object, path: Path) -> None:
        raise OSError(28, "No space left on device")

    words = ["train", "grid", *FLAGS, "--overwrite", "--seed", "5", "--out", str(old)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "save_file", full)
        line = complaint(capsys, words)
    assert line == f"{old}/checkpoint/state.safetensors: No space left on device"
    assert contents(old) == before
    assert not (old / NEW).exists()
    assert main(words) == 0
