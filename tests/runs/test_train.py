"""Training into a folder: killed, interrupted, out of disk or of numbers, it goes on bit for bit or stops cleanly."""

import errno
import json
import os
import resource
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from benchmarks.soak.forks import ForkServer
from safetensors.torch import load_file
from small_runs import ANYWHERE, CPU, FLAGS, complaint, contents, same_runs, same_tensors, small
from torch import Tensor

import sgfn
from sgfn.cli.commands import Train, main, parse
from sgfn.config import TrainConfig
from sgfn.config.presets import PRESETS
from sgfn.landscapes.tasks import make_task
from sgfn.learning.execution import pick_device
from sgfn.learning.trainer import Trainer
from sgfn.runs import folder as runs
from sgfn.runs.folder import Run
from sgfn.runs.train import Lines, stoppable

PLAIN = ["grid", *FLAGS]
FULL = ["words", *ANYWHERE, "--objective", "subtb", "--beta", "2", "--reward.ramp", "10", "--temperature", "1.5"]
FULL += ["--replay.updates", "1", "--replay.capacity", "50", "--dynamics.mode", "replay", "--dynamics.rounds", "2"]
FULL += ["--offline.share", "0.25", "--offline.file"]  # the file's name follows

# What a child process does instead of the real thing, once, at step 13: between the checkpoints of steps 10 and 20.
CHILD = """
import json, os, signal, sys, time
from pathlib import Path
from sgfn.cli import commands as cli
from sgfn.runs import folder as runs

way, words = sys.argv[3], sys.argv[4:]
append, save_file, saves = runs.Run.append, runs.save_file, []

def append_and_die(run, row):
    while row["step"] == 13 and int(runs.read_file(run.checkpoint)["self.done"]) < 10:  # it is on its way
        time.sleep(0.01)
    if row["step"] == 13 and way == "inside a line":
        with run.metrics.open("a") as file:
            file.write(json.dumps(row)[:40])
            file.flush()
            os.kill(os.getpid(), signal.SIGKILL)
    append(run, row)
    if row["step"] == 13 and way == "SIGINT":
        os.kill(os.getpid(), signal.SIGINT)

def save_and_die(state, path):
    save_file(state, path)
    saves.append(path)
    if len(saves) == 3 and way == "inside a checkpoint":
        os.truncate(path, Path(path).stat().st_size // 2)
        os.kill(os.getpid(), signal.SIGKILL)

runs.Run.append, runs.save_file = append_and_die, save_and_die
sys.exit(cli.main(words))
"""


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("offline") / "known.csv"
    path.write_text("sequence,score\nGATTACA,1\nCAT,1\nTAG,0.4\n")
    return path


@pytest.fixture(scope="module")
def recipes(known: Path) -> dict[str, list[str]]:
    every = ["--log.every", "1"]
    return {"plain": ["train", *PLAIN, *every], "full": ["train", *FULL, str(known), *every]}


@pytest.fixture(scope="module")
def undisturbed(recipes: dict[str, list[str]], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The runs as they are when nothing happens."""
    folders = {name: tmp_path_factory.mktemp(name) / "run" for name in recipes}
    for name, words in recipes.items():
        assert main([*words, "--out", str(folders[name])]) == 0
    return folders


def step_of(folder: Path) -> int:
    return int(load_file(Run(path=folder).checkpoint)["self.done"])


@pytest.mark.parametrize(
    ("recipe", "way", "code", "checkpoint", "lines"),
    [
        ("plain", "inside a line", -signal.SIGKILL, 10, 12),
        ("plain", "inside a checkpoint", -signal.SIGKILL, 10, 20),
        ("full", "SIGINT", 2, 13, 13),
    ],
)
def test_a_run_cut_short_resumes_bit_for_bit(
    recipe: str,
    way: str,
    code: int,
    checkpoint: int,
    lines: int,
    recipes: dict[str, list[str]],
    undisturbed: dict[str, Path],
    server: ForkServer,
    tmp_path: Path,
) -> None:
    folder = tmp_path / "run"
    words = [*recipes[recipe], "--out", str(folder)]
    child = server.run(["-c", CHILD, way, *words], tmp_path)
    assert child.code == code, child.err
    assert "Traceback" not in child.err
    if code == 2:
        assert child.err == f"sgfn: stopped at step 13; continue with: sgfn train words --resume --out {folder}\n"
    assert step_of(folder) == checkpoint
    assert [row["step"] for row in Run(path=folder).rows()] == list(range(1, lines + 1))
    assert not same_runs(folder, undisturbed[recipe])
    assert main([*words, "--resume"]) == 0
    assert same_runs(folder, undisturbed[recipe])
    assert [path.name for path in (folder / "checkpoint").iterdir()] == ["state.safetensors"]


def test_identity_is_not_for_free(recipes: dict[str, list[str]], undisturbed: dict[str, Path], tmp_path: Path) -> None:
    """Without its checkpoint a run starts again and comes out the same; with another seed it does not."""
    folder = Path(shutil.copytree(undisturbed["plain"], tmp_path / "run"))
    shutil.rmtree(folder / "checkpoint")
    assert main([*recipes["plain"], "--out", str(folder), "--resume"]) == 2  # metrics say that there was one
    Run(path=folder).metrics.unlink()
    assert main([*recipes["plain"], "--out", str(folder), "--resume"]) == 0
    assert same_runs(folder, undisturbed["plain"])
    other = tmp_path / "other"
    assert main([*recipes["plain"], "--seed", "1", "--out", str(other)]) == 0
    assert not same_runs(other, undisturbed["plain"])


def stop_at(step: int, action: Callable[[], int]) -> int:
    """Ctrl-C, from within."""
    append = Run.append

    def append_and_stop(run: Run, row: dict[str, Any]) -> None:
        append(run, row)
        if row["step"] == step:
            signal.raise_signal(signal.SIGINT)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Run, "append", append_and_stop)
        return action()


def test_resume_goes_on_with_its_own_configuration(
    recipes: dict[str, list[str]],
    undisturbed: dict[str, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / "run"
    assert stop_at(7, lambda: main([*recipes["plain"], "--out", str(folder)])) == 2
    assert step_of(folder) == 7
    bare, before = ["train", "grid", "--resume", "--device", "cpu", "--out", str(folder)], contents(folder)
    line = complaint(capsys, [*bare, "--seed", "5", "--optim.lr", "0.5"])
    assert line == f"{folder} continues with its own configuration: with --resume leave --seed, --optim.lr out"
    assert contents(folder) == before
    assert main(bare) == 0
    assert same_runs(folder, undisturbed["plain"])


# More steps


def stepped(config: TrainConfig, *totals: int) -> dict[str, Tensor]:
    """What steps without a folder lead to, where the number of steps in all is changed on the way."""
    learner = Trainer(make_task("grid", config), CPU)
    for total in totals:
        learner.steps.fill_(total)
        learner.update_schedules()
        while learner.done < total:
            learner.step()
            learner.done += 1
            if learner.done % 5 == 0:
                learner.read_meters()
    return learner.state()


def test_more_steps_go_on_where_the_run_ended(trained: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(trained / "grid", tmp_path / "run"))
    bare = ["train", "grid", "--resume", "--device", "cpu", "--out", str(folder)]
    assert main([*bare, "--steps", "40"]) == 0
    run = Run(path=folder)
    assert run.rows()[:4] == Run(path=trained / "grid").rows()  # what was trained stays
    assert [row["step"] for row in run.rows()] == [5, 10, 15, 20, 25, 30, 35, 40]
    assert run.read_config() == ("grid", small(steps=40))
    assert same_tensors(run.load_state(), stepped(small(), 20, 40))
    assert not same_tensors(run.load_state(), stepped(small(), 40))  # the schedule was another in the first half
    assert not same_tensors(run.load_state(), stepped(small(optim__final=0.5), 20, 40))


@pytest.mark.parametrize("method", ["gfn", "sac", "mars"])
def test_without_decay_more_steps_are_those_of_a_longer_run(method: str, tmp_path: Path) -> None:
    config = small(method=method, optim__final=1.0)
    whole, grown = tmp_path / "whole", tmp_path / "grown"
    sgfn.train("grid", config.with_(steps=40), whole, device="cpu")
    sgfn.train("grid", config, grown, device="cpu")
    assert not same_runs(grown, whole)
    sgfn.train("grid", config.with_(steps=40), grown, device="cpu", resume=True)
    assert same_runs(grown, whole)
    assert (grown / "config.json").read_bytes() == (whole / "config.json").read_bytes()


def test_a_run_made_longer_is_continued_as_such(trained: Path, tmp_path: Path) -> None:
    straight, cut = (Path(shutil.copytree(trained / "grid", tmp_path / name)) for name in ("straight", "cut"))
    for folder, stop in ((straight, 40), (cut, 30)):
        words = ["train", "grid", "--resume", "--device", "cpu", "--out", str(folder), "--steps", "40"]
        assert stop_at(stop, lambda words=words: main(words)) == (0 if stop == 40 else 2)
    sgfn.train("grid", None, cut, device="cpu", resume=True)
    assert same_runs(cut, straight)


@pytest.mark.parametrize("steps", ["5", "19"])
def test_steps_that_are_done_are_not_taken_back(
    steps: str, trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(shutil.copytree(trained / "grid", tmp_path / "run"))
    before = contents(folder)
    bare = ["train", "grid", "--resume", "--device", "cpu", "--out", str(folder)]
    assert complaint(capsys, [*bare, "--steps", steps]) == f"steps must be more than the 20 that are done, got {steps}"
    line = complaint(capsys, [*bare, "--steps", "40", "--seed", "1"])
    assert line == f"{folder} continues with its own configuration: with --resume leave --seed out"
    assert contents(folder) == before
    assert main([*bare, "--steps", "20"]) == 0
    assert contents(folder) == before


def test_what_is_not_said_is_as_it_was(grid_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also a number of steps that happens to be the default."""
    words, default = ["grid", "--resume", "--out", str(grid_run)], TrainConfig().steps
    assert parse(Train, "train", words).config == small()
    assert parse(Train, "train", [*words, "--steps", str(default)]).config == small(steps=default)
    assert parse(Train, "train", [*words, "--preset", "demo"]).config == PRESETS["demo"]
    assert parse(Train, "train", words[:1] + words[2:]).config == TrainConfig()
    (grid_run.parent / "runs").mkdir()
    grid_run.rename(grid_run.parent / "runs" / "grid")
    monkeypatch.chdir(grid_run.parent)
    assert parse(Train, "train", ["grid", "--resume"]).config == small()


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_resuming_a_finished_run_changes_nothing(
    flags: list[str], undisturbed: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(shutil.copytree(undisturbed["plain"], tmp_path / "run"))
    before = contents(folder)
    assert main(["train", "grid", "--out", str(folder), "--resume", *flags]) == 0
    assert contents(folder) == before
    out = capsys.readouterr().out
    assert json.loads(out)["step"] == 20 if flags else "trained 20 steps" in out
    (folder / "metrics.jsonl").unlink()
    assert main(["train", "grid", "--out", str(folder), "--resume", *flags]) == 0


def test_a_stop_in_the_last_step_is_no_stop(
    recipes: dict[str, list[str]], undisturbed: dict[str, Path], tmp_path: Path
) -> None:
    words = [*recipes["plain"], "--out", str(tmp_path / "run")]
    assert stop_at(20, lambda: main(words)) == 0
    assert same_runs(tmp_path / "run", undisturbed["plain"])


# Stopping


def test_a_second_signal_acts_at_once_and_handlers_come_back() -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with stoppable() as stop:
        assert not stop.asked
        signal.raise_signal(signal.SIGTERM)
        assert stop.asked
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_training_works_outside_the_main_thread(undisturbed: dict[str, Path], tmp_path: Path) -> None:
    config = Run(path=undisturbed["plain"]).read_config()[1]
    thread = threading.Thread(target=sgfn.train, args=("grid", config, tmp_path), kwargs={"device": "cpu"})
    thread.start()
    thread.join()
    assert same_runs(tmp_path, undisturbed["plain"])


# What does not hold steps up


def test_steps_go_on_while_a_checkpoint_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save, further, held = runs.save_file, threading.Event(), []

    def save_late(state: dict[str, Tensor], path: Path) -> None:
        if int(state["self.done"]):  # the one before the first step is waited for
            held.append(further.wait(60))
        save(state, path)

    monkeypatch.setattr(runs, "save_file", save_late)
    steps = []

    def watch(step: int, figures: dict[str, Any]) -> None:
        steps.extend([step] if "notice" not in figures else [])
        if step >= 4:
            further.set()

    config = small(steps=5, log__every=1, log__checkpoint_every=3)
    run = sgfn.train("grid", config, tmp_path, device="cpu", progress=watch)
    assert (held, steps) == ([True, True], [0, 1, 2, 3, 4, 5])  # step 4 came before the checkpoint of step 3 was there
    assert run.load(CPU).done == 5


@pytest.mark.parametrize("stopped", [False, True])
def test_lines_that_are_read_late_are_the_same(stopped: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a GPU has them: read when the next is due, and before a checkpoint."""
    config = small(steps=12, log__every=2, log__exact_every=3, log__checkpoint_every=5)
    at_once, late = tmp_path / "at once", tmp_path / "late"
    sgfn.train("grid", config, at_once, device="cpu")
    seen = []

    def watch(step: int, figures: dict[str, Any]) -> None:
        seen.extend([(step, figures.get("step", 0))] if "notice" not in figures else [])
        if stopped and step == 6:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Lines, "__init__", read_late(Lines.__init__))
    if stopped:
        with pytest.raises(KeyboardInterrupt, match="stopped at step 8"):  # where the line of step 6 was read
            sgfn.train("grid", config, late, device="cpu", progress=watch)
        assert [row["step"] for row in Run(path=late).rows()] == [2, 3, 4, 6, 8]
        sgfn.train("grid", config, late, device="cpu", resume=True)
    else:
        sgfn.train("grid", config, late, device="cpu", progress=watch)
        assert [step for step, _ in seen] == [step for _, step in seen] == [0, 2, 3, 4, 6, 8, 9, 10, 12]
    assert same_runs(at_once, late)


def read_late(make: Callable[..., None]) -> Callable[..., None]:
    def made(lines: Lines, *args: Any) -> None:
        make(lines, *args)
        lines.late = True

    return made


# Disks


def full_disk(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_keeps_the_last_checkpoint(
    recipes: dict[str, list[str]],
    undisturbed: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words, save, saves = [*recipes["plain"], "--out", str(tmp_path)], runs.save_file, []

    def save_once(state: dict[str, Tensor], path: Path) -> None:
        saves.append(path)
        (save if len(saves) <= 2 else full_disk)(state, path)

    monkeypatch.setattr(runs, "save_file", save_once)
    line = complaint(capsys, words)
    assert line.startswith(f"{tmp_path}/checkpoint/state.safetensors: ")
    assert "No space left on device" in line
    assert step_of(tmp_path) == 10
    assert [path.name for path in (tmp_path / "checkpoint").iterdir()] == ["state.safetensors"]
    assert Run(path=tmp_path).load(CPU).done == 10
    monkeypatch.undo()
    assert main([*words, "--resume"]) == 0
    assert same_runs(tmp_path, undisturbed["plain"])


@contextmanager
def files_no_larger_than(size: int) -> Iterator[None]:
    """The system refuses to write more: what a full disk or a quota does, for real."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize(("size", "file"), [(6000, "checkpoint/state.safetensors"), (100, "config.json")])
def test_a_write_that_the_system_refuses(
    size: int, file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    words = ["train", *PLAIN, "--out", str(folder)]
    with files_no_larger_than(size):
        line = complaint(capsys, words)
    assert line.startswith(f"{folder}/{file}: ")
    assert "File too large" in line
    assert not any(path.name.startswith(".") and path.name != ".lock" for path in folder.rglob("*"))
    assert main([*words, *(["--overwrite"] if file != "config.json" else [])]) == 0


def test_metrics_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", *PLAIN, "--out", str(tmp_path)]) == 0
    (tmp_path / "metrics.jsonl").unlink()
    (tmp_path / "metrics.jsonl").mkdir()
    capsys.readouterr()
    line = complaint(capsys, ["train", *PLAIN, "--out", str(tmp_path), "--overwrite"])
    assert line.startswith(f"{tmp_path}/metrics.jsonl: ")


# Numbers


@pytest.mark.parametrize("every", ["1", "100"])
def test_a_loss_that_is_no_number_stops_the_run_and_keeps_the_last_good_checkpoint(
    every: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    step = Trainer.step

    def step_until(trainer: Trainer) -> None:
        objective = trainer.objective
        if trainer.done == 12:
            trainer.objective = lambda scores, batch: objective(scores, batch) * torch.nan
        return step(trainer)

    monkeypatch.setattr(Trainer, "step", step_until)
    words = ["train", *PLAIN, "--out", str(tmp_path), "--log.every", every]
    words += ["--log.exact-every", "0", "--log.checkpoint-every", "5"]
    line = complaint(capsys, words)
    noticed = 13 if every == "1" else 15  # at the next line, or before the next checkpoint
    assert line.startswith(f"training left the finite numbers near step {noticed} (loss nan); ")
    assert "lower --optim.lr" in line
    trainer = Run(path=tmp_path).load(CPU)
    assert trainer.done == 10
    trainer.check_finite()
    monkeypatch.undo()
    assert main([*words, "--resume"]) == 0
    assert step_of(tmp_path) == 20


# Progress and devices


def test_progress_is_told(tmp_path: Path) -> None:
    told: list[tuple[int, dict[str, Any]]] = []
    run = sgfn.train("grid", small(), tmp_path, device="cpu", progress=lambda step, row: told.append((step, dict(row))))
    assert told[0] == (0, {})
    last, notice = told.pop()
    assert (last, [*notice]) == (20, ["notice"])  # after all figures, what to do about them
    assert "near that of a uniform policy" in notice["notice"]
    assert [step for step, _ in told[1:]] == [5, 10, 15, 20]
    assert [{k: v for k, v in row.items() if k != "rate"} for _, row in told[1:]] == run.rows()
    assert all(row["rate"] > 0 for _, row in told[1:])
    assert not any("rate" in row for row in run.rows())  # a clock in the metrics would end their identity


def test_figures_of_the_metrics(tmp_path: Path) -> None:
    run = sgfn.train("grid", small(log__exact_every=0, steps=7), tmp_path, device="cpu")
    rows = run.rows()
    assert [row["step"] for row in rows] == [5, 7]
    keys = {"step", "trajectories", "loss", "dynamics_nll", "log_reward", "log_z", "length", "reward"}
    keys |= {"log_pf", "log_pb", "end_flow", "beta"}
    assert all(set(row) == keys for row in rows)
    assert step_of(tmp_path) == 7


def test_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    for available, found in ((False, "cpu"), (True, "cuda")):
        monkeypatch.setattr(torch.cuda, "is_available", lambda available=available: available)
        assert pick_device("auto").type == found
        assert pick_device("cpu").type == "cpu"
    assert pick_device("cuda").type == "cuda"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match="device 'cuda' is not available here: use --device cpu"):
        pick_device("cuda")
    with pytest.raises(ValueError, match=r"device 'cdua' is unknown: .*did you mean 'cuda'\?"):
        pick_device("cdua")
