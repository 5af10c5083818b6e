"""The run folder: what is refused, with which words, and that what is refused is left alone."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from small_runs import CPU, FLAGS, complaint, contents, same_runs, same_tensors, small, small_on

import sgfn
from sgfn.cli.commands import main
from sgfn.config import TrainConfig, to_dict
from sgfn.learning.trainer import Trainer
from sgfn.runs.folder import FORMAT, OWN_FILES, Run


def edit(folder: Path, **changes: Any) -> None:
    """Change fields of config.json; None removes one."""
    file = folder / "config.json"
    data = json.loads(file.read_text()) | changes
    file.write_text(json.dumps({key: value for key, value in data.items() if value is not None}))


def configure(folder: Path, **changes: Any) -> None:
    edit(folder, config=to_dict(small()) | changes)


def write(name: str, content: str | bytes) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())

    return damage


def truncate(folder: Path) -> None:
    file = Run(path=folder).checkpoint
    file.write_bytes(file.read_bytes()[:-100])


def drop_tensor(folder: Path) -> None:
    file = Run(path=folder).checkpoint
    save_file({name: value for name, value in load_file(file).items() if name != "self.generator"}, file)


STATE = "checkpoint/state.safetensors"
DAMAGE: dict[str, tuple[Callable[[Path], None], str]] = {
    "config empty": (write("config.json", ""), "{run}/config.json, line 1: not valid JSON"),
    "config half": (write("config.json", '{"format": 1,\n"task"'), "{run}/config.json, line 2: not valid JSON"),
    "config binary": (write("config.json", b"\xff\x00"), "{run}/config.json: not a text file"),
    "config a list": (write("config.json", "[1]"), "{run}/config.json was not written by sgfn: fields format, task"),
    "config foreign": (write("config.json", '{"name": "x"}'), "{run}/config.json was not written by sgfn"),
    "no task": (lambda f: edit(f, task=None), "{run}/config.json was not written by sgfn"),
    "other format": (
        lambda f: edit(f, format=99),
        "{run}/config.json has format 99, this version reads 1 to 2: use the sgfn that wrote it",
    ),
    "unknown field": (lambda f: edit(f, config={"stepz": 1}), "{run}/config.json: config: field 'stepz' is unknown"),
    "wrong type": (
        lambda f: configure(f, steps="5"),
        "{run}/config.json: config.steps must be a whole number, got '5'",
    ),
    "wrong choice": (lambda f: configure(f, objective="bt"), "{run}/config.json: config.objective 'bt' is unknown"),
    "wrong kind": (lambda f: configure(f, objective=3), "{run}/config.json: config.objective must be a text, got 3"),
    "out of range": (lambda f: configure(f, batch=0), "{run}/config.json: batch must lie in [1, 1e+07], got 0"),
    "too large": (lambda f: configure(f, beta=10**400), "{run}/config.json: config.beta must be a number, got 1000000"),
    "not an object": (lambda f: edit(f, config=[]), "{run}/config.json: config must be an object, got list"),
    "checkpoint cut": (truncate, "{run}/checkpoint/state.safetensors cannot be read ("),
    "checkpoint empty": (write(STATE, ""), "{run}/checkpoint/state.safetensors cannot be read ("),
    "checkpoint text": (write(STATE, "nonsense" * 20), "{run}/checkpoint/state.safetensors cannot be read ("),
    "checkpoint lacks a part": (drop_tensor, "{run}/checkpoint/state.safetensors does not fit config.json ("),
    "other width": (
        lambda f: configure(f, net={"hidden": 17}),
        "{run}/checkpoint/state.safetensors does not fit config.json (",
    ),
    "other buffer": (
        lambda f: configure(f, replay={"updates": 1}),
        "{run}/checkpoint/state.safetensors does not fit config.json (the buffer differs): were the two mixed, "
        "or written by another version of sgfn?",
    ),
}


ONLY_TRAINING_CARES = ("checkpoint lacks a part", "other buffer")
"""Weights are enough to evaluate and to sample."""


def resume(run: Path) -> list[str]:
    return ["train", "grid", "--out", str(run), "--resume", "--device", "cpu"]


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_folder_is_named_in_one_line_and_left_alone(
    name: str, grid_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damage, message = DAMAGE[name]
    commands = [["evaluate", str(grid_run), "--device", "cpu"], ["sample", str(grid_run)], resume(grid_run)]
    damage(grid_run)
    before = contents(grid_run)
    for words in commands[-1:] if name in ONLY_TRAINING_CARES else commands:
        assert complaint(capsys, words).startswith(message.format(run=grid_run))
        assert contents(grid_run) == before


def test_an_unknown_task_in_the_file(grid_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit(grid_run, task="gird")
    assert complaint(capsys, ["evaluate", str(grid_run)]).startswith("task 'gird' is unknown")


def test_the_same_folder_undamaged_works(grid_run: Path) -> None:
    """So that the refusals above are due to the damage."""
    assert main(["evaluate", str(grid_run), "--device", "cpu", "--samples", "5", "--json"]) == 0
    assert main(resume(grid_run)) == 0


@pytest.mark.parametrize("kind", ["missing", "empty", "foreign", "a file"])
@pytest.mark.parametrize("command", ["evaluate", "sample", "report"])
def test_a_folder_that_is_no_run(kind: str, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "x"
    if kind == "a file":
        folder.write_text("mine")
    elif kind != "missing":
        folder.mkdir()
    if kind == "foreign":
        (folder / "notes.txt").write_text("mine")
    before = contents(tmp_path)
    wanted = "does not exist: name the folder" if kind == "missing" else "is not a run folder: it has no config.json"
    assert complaint(capsys, [command, str(folder)]).startswith(f"{folder} {wanted}")
    assert contents(tmp_path) == before


def test_a_run_without_a_checkpoint(grid_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(grid_run / "checkpoint")
    for command in ("evaluate", "sample"):
        assert complaint(capsys, [command, str(grid_run)]).startswith(f"{grid_run} has no checkpoint yet: train it")


# Starting


def test_an_existing_run_is_refused_and_untouched(grid_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(grid_run)
    line = complaint(capsys, ["train", "grid", *FLAGS, "--out", str(grid_run)])
    assert line == f"{grid_run} already holds a run: add --resume to continue it, --overwrite to replace it"
    assert contents(grid_run) == before


def test_overwrite_replaces_our_files_and_no_others(grid_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = {"notes.txt": b"mine", "samples.csv": b"a,b", "checkpoint/old.safetensors": b"mine too"}
    stale = {"exact.json": b"{}", "report.png": b"old", "report.html": b"old", "library.json": b"{}"}
    stale |= {"reward.log": b"old", "scores.jsonl": b"old"}
    for name, content in (mine | stale).items():
        (grid_run / name).write_bytes(content)
    before = contents(grid_run)
    words = ["train", "grid", *FLAGS, "--out", str(grid_run), "--overwrite", "--seed", "1"]
    assert main(words) == 0
    after = contents(grid_run)
    assert {name: after[name] for name in mine} == mine
    assert set(after) == {*mine, "config.json", "metrics.jsonl", STATE}  # what was known of the old run is gone
    assert all(after[name] != before[name] for name in ("config.json", "metrics.jsonl", STATE))
    assert Run(path=grid_run).read_config()[1].seed == 1
    assert set(before) - set(mine) == set(OWN_FILES)


def test_overwrite_of_a_task_that_fails_keeps_the_old_run(grid_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(grid_run)
    for words in (["gird"], ["grid", "--offline.file", "nowhere.csv", "--offline.share", "0.5"]):
        complaint(capsys, ["train", *words, "--out", str(grid_run), "--overwrite"])
        assert contents(grid_run) == before


@pytest.mark.parametrize("flags", [[], ["--overwrite"]])
def test_a_foreign_folder_is_refused(flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    line = complaint(capsys, ["train", "grid", *FLAGS, *flags, "--out", str(tmp_path)])
    assert line == f"{tmp_path} exists, is not empty and holds no run: give --out another name"
    assert contents(tmp_path) == {"thesis.tex": b"mine"}


def test_a_foreign_config_is_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = {"config.json": b'{"model_type": "bert"}', "report.png": b"mine"}
    for name, content in mine.items():
        (tmp_path / name).write_bytes(content)
    line = complaint(capsys, ["train", "grid", *FLAGS, "--overwrite", "--out", str(tmp_path)])
    assert line.startswith(f"{tmp_path}/config.json was not written by sgfn")
    assert contents(tmp_path) == mine


def test_two_trainings_do_not_share_a_folder(grid_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(grid_run)
    with Run(path=grid_run).locked():
        line = complaint(capsys, resume(grid_run))
    assert line.startswith(f"another process is training in {grid_run}")
    assert contents(grid_run) == before
    assert main(resume(grid_run)) == 0  # the lock goes with its holder


def test_weights_load_on_any_device_but_training_goes_on_where_it_was(
    grid_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Run(path=grid_run)
    state = load_file(run.checkpoint)
    elsewhere = {"self.cuda": torch.tensor(True), "self.generator": torch.zeros(16, dtype=torch.uint8)}
    save_file(state | elsewhere, run.checkpoint)
    assert main(["evaluate", str(grid_run), "--device", "cpu", "--samples", "5", "--json"]) == 0
    capsys.readouterr()
    assert "the run was trained on cuda: continue it with --device cuda" in complaint(capsys, resume(grid_run))


def test_what_a_killed_writer_left_is_swept(grid_run: Path) -> None:
    left, mine = grid_run / "checkpoint" / ".state.safetensors.x1.safetensors", grid_run / ".notes"
    left.write_bytes(b"half")
    mine.write_bytes(b"mine")
    assert main(resume(grid_run)) == 0
    assert not left.exists()
    assert mine.exists()


def test_a_file_in_the_place_of_the_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x"
    path.write_text("mine")
    line = complaint(capsys, ["train", "grid", *FLAGS, "--out", str(path)])
    assert line == f"{path} is a file: give --out another name"
    assert path.read_text() == "mine"


def test_an_empty_or_missing_folder_is_fine_to_start_in_and_nothing_to_resume(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in (tmp_path, tmp_path / "deep" / "er"):
        line = complaint(capsys, ["train", "grid", *FLAGS, "--resume", "--out", str(folder)])
        assert line.startswith((f"{folder} does not exist", f"{folder} is not a run folder"))
        assert main(["train", "grid", *FLAGS, "--out", str(folder)]) == 0
        assert Run(path=folder).load(CPU).done == 20
        shutil.rmtree(folder)
        tmp_path.mkdir(exist_ok=True)


def test_the_folder_tells_task_and_configuration(trained: Path) -> None:
    for task in ("grid", "words"):
        assert Run(path=trained / task).read_config() == (task, small_on(task))
        assert Run(path=trained / task).read_config() != (task, TrainConfig())
    assert json.loads((trained / "grid" / "config.json").read_text())["format"] == FORMAT


# Metrics


def test_rows_of_a_run(trained: Path) -> None:
    rows = Run(path=trained / "grid").rows()
    assert [row["step"] for row in rows] == [5, 10, 15, 20]
    assert ["tv" in row for row in rows] == [False, True, False, True]
    assert Run(path=trained / "nowhere").rows() == []


@pytest.mark.parametrize("tail", ['{"step": 25, "lo', "{", "\x00\x00\x00", '"', "25"])
def test_a_last_line_cut_short_is_dropped(tail: str, grid_run: Path, trained: Path) -> None:
    run = Run(path=grid_run)
    whole = run.rows()
    with run.metrics.open("a") as file:
        file.write(tail)
    assert run.rows() == whole
    run.metrics.write_bytes(run.metrics.read_bytes() + b"\xff")  # not even text
    assert run.rows() == whole
    assert main(resume(grid_run)) == 0
    assert same_runs(grid_run, trained / "grid")


@pytest.mark.parametrize("garbage", ["nonsense", "", "3", "[]", '{"loss": 1.0}', '{"step": 12, "lo'])
def test_garbage_in_the_middle_is_named_with_its_line(
    garbage: str, grid_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = grid_run / "metrics.jsonl"
    lines = file.read_text().splitlines()
    file.write_text("\n".join([*lines[:2], garbage, *lines[2:]]) + "\n")
    before = contents(grid_run)
    line = complaint(capsys, resume(grid_run))
    assert line == f"{file}, line 3: not valid JSON with a step"
    assert contents(grid_run) == before


def test_rewind_forgets_what_came_after(grid_run: Path) -> None:
    run = Run(path=grid_run)
    whole = run.rows()
    run.rewind(20)
    assert run.rows() == whole
    run.rewind(14)
    assert run.rows() == whole[:2]
    run.append({"step": 15})
    assert [row["step"] for row in run.rows()] == [5, 10, 15]


# Checkpoints


def test_a_checkpoint_gives_the_trainer_back(grid_run: Path) -> None:
    run = Run(path=grid_run)
    trainer = Trainer(run.task(), CPU)
    run.restore(trainer)
    state = {name: value.clone() for name, value in trainer.state().items()}
    assert same_tensors(state, run.load_state())
    trainer.step()
    assert not same_tensors(trainer.state(), state)
    run.save(trainer)
    assert same_tensors(run.load_state(), trainer.state())
    assert [path.name for path in run.checkpoint.parent.iterdir()] == ["state.safetensors"]


def test_a_task_does_not_resume_as_another(grid_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(grid_run)
    line = complaint(capsys, ["train", "words", "--out", str(grid_run), "--resume"])
    assert line == f"{grid_run} holds a run of grid, not of words: give --out another name"
    assert contents(grid_run) == before


def test_python_says_the_same(grid_run: Path) -> None:
    with pytest.raises(ValueError, match="already holds a run"):
        sgfn.train("grid", small(), grid_run, device="cpu")
    assert sgfn.train("grid", small(), grid_run, device="cpu", resume=True).rows()[-1]["step"] == 20


def test_a_run_keeps_the_noise_model_it_was_trained_with(tmp_path: Path) -> None:
    """`auto` chose a network for 20 letters once: such a folder is read, and trained further, as it was made."""
    flags = {"ehrlich__vocab": 9, "ehrlich__length": 4, "ehrlich__motifs": 1, "noise__alpha": 0.1, "steps": 2}
    flags |= {"net__hidden": 8, "dynamics__hidden": 8, "batch": 4}
    sgfn.train("ehrlich", TrainConfig().with_(**flags, dynamics__model="full"), tmp_path / "run")
    data = json.loads((tmp_path / "run" / "config.json").read_text())
    data["config"]["dynamics"]["model"] = "auto"  # as it was given then
    (tmp_path / "run" / "config.json").write_text(json.dumps(data))
    assert Run(path=tmp_path / "run").load(CPU).dynamics.kind == "full"
    assert sgfn.load(tmp_path / "run").policy([""]).shape == (1, 9)
    sgfn.train("ehrlich", TrainConfig().with_(**flags | {"steps": 3}), tmp_path / "run", resume=True)
    del flags["dynamics__hidden"]  # which a table does not read
    assert Run(path=tmp_path / "run").read_config()[1].dynamics.model == "auto"  # as it was given
    sgfn.train("ehrlich", TrainConfig().with_(**flags), tmp_path / "new")
    assert Run(path=tmp_path / "new").load(CPU).dynamics.kind == "shared"
