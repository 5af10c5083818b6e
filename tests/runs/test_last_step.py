"""Code of a user's that fails in the middle of a training leaves the state after the last whole step."""

import itertools
import math
import shlex
from pathlib import Path
from typing import Any

import pytest
from small_runs import CPU, complaint, same_runs, small, small_on

import sgfn
from sgfn.cli.commands import main
from sgfn.compare.worker_process import outcome
from sgfn.config import to_dict
from sgfn.landscapes.tasks import make_task
from sgfn.learning.learner import Learner, NonFiniteError
from sgfn.learning.methods import build
from sgfn.runs import loop
from sgfn.runs.folder import Run
from sgfn.runs.last_step import calls_others_code, kept_on_failure

CODE = """
import sys
from pathlib import Path
from sgfn.objectives.trajectory_balance import trajectory_balance

CALLS = [0]

def count():
    CALLS[0] += 1
    if Path("broken").exists() and CALLS[0] == int(Path("broken").read_text()):
        raise {error}

def loss(scores, batch):
    count()
    return trajectory_balance(scores, batch)

def affinity(texts):
    count()
    return [1.0 + text.count("A") for text in texts]
"""
LINE = 11
ERRORS = {"ZeroDivisionError('x')": "ZeroDivisionError: x", "SystemExit(0)": "SystemExit: 0"}
ERRORS |= {"KeyboardInterrupt": "KeyboardInterrupt", "GeneratorExit": "GeneratorExit"}
CASES = [(error, 9, 0) for error in ERRORS] + [(next(iter(ERRORS)), *case) for case in ((2, 0), (3, 2), (10, 2))]
"""Error, call of the objective that raises it (the first is the check before training), updates after each step."""
COUNT = itertools.count()


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module in the current folder that no other test uses."""
    monkeypatch.chdir(tmp_path)
    return f"mine_{next(COUNT)}"


def train(task: str, out: str, **flags: Any) -> list[str]:
    plain = {"batch": 8, "steps": 12, "net.hidden": 8, "log.every": 3, "log.exact-every": 4, "device": "cpu"}
    named = {name.replace("__", "."): value for name, value in flags.items()}
    return ["train", task, "--out", out, *(str(w) for n, v in (plain | named).items() for w in (f"--{n}", v))]


def broken(module: str, error: str, at: int) -> None:
    Path(f"{module}.py").write_text(CODE.format(error=error))
    Path("broken").write_text(str(at))


@pytest.mark.parametrize(("error", "at", "replay"), CASES)
def test_a_run_goes_on_as_if_nothing_had_been(
    error: str, at: int, replay: int, module: str, capsys: pytest.CaptureFixture[str]
) -> None:
    broken(module, error, at)
    words = train("grid", "run", objective=f"{module}:loss", grid__side=3, replay__updates=replay)
    line, done = complaint(capsys, words), (at - 2) // (1 + replay)
    command = f"sgfn train grid --resume --objective {module}:loss --out run"
    kept = f"the run is kept as it was after step {done}; mend the code, then continue with: {command}"
    assert line == f"{module}.py, line {LINE}: {ERRORS[error]}; {kept}"
    assert int(Run(path=Path("run")).load_state()["self.done"]) == done
    Path("broken").unlink()
    assert main(shlex.split(command)[1:]) == 0
    assert main([word if word != "run" else "other" for word in words]) == 0
    assert same_runs(Path("run"), Path("other"))


def test_a_reward_that_fails_leaves_a_checkpoint(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Also where all objects are scored before the first step."""
    broken(module, "SystemExit()", 2)
    words = train("callable", "run", callable__function=f"{module}:affinity", callable__length=3)
    line = complaint(capsys, words)
    assert line.startswith(f"{module}:affinity failed on ")
    told = f" in {module}.py, line {LINE}; it must score every string; "
    log, kept = "the traceback is in run/reward.log", "the run is kept as it was after step 0; "
    assert f"{told}{log}; {kept}" in line
    Path("broken").unlink()
    assert main(shlex.split(line.partition("continue with: ")[2])[1:]) == 0


@pytest.mark.parametrize("error", ["SystemExit(0)", "KeyboardInterrupt"])
def test_a_cell_of_a_comparison_fails_and_is_tried_again(error: str, module: str) -> None:
    broken(module, error, 9)
    config = small(objective=f"{module}:loss")
    job = {"task": "grid", "config": to_dict(config), "path": "cell", "samples": 16, "copies": {}}
    job |= {"device": "cpu", "accelerate": "auto"}
    assert outcome(job) == f"{module}.py, line {LINE}: {ERRORS[error]}"
    assert int(Run(path=Path("cell")).load_state()["self.done"]) == 7
    Path("broken").unlink()
    assert outcome(job) == 0
    assert Run(path=Path("cell")).rows()[-1]["step"] == 20


def test_weights_that_are_not_finite_are_not_kept(grid_run: Path) -> None:
    run = Run(path=grid_run)
    learner, written = run.load(CPU), list[Any]()
    with pytest.raises(NonFiniteError), kept_on_failure(learner, {}, written.append):
        learner.raise_non_finite({"loss": math.nan}, 1)
    with pytest.raises(ValueError, match="x") as caught, kept_on_failure(learner, {}, written.append):
        raise ValueError("x")
    assert len(written) == 1
    assert caught.value.__notes__ == ["the run is kept as it was after step 20"]
    next(iter(learner.modules()["nets"].parameters())).data.fill_(float("nan"))
    with pytest.raises(ValueError, match="x"), kept_on_failure(learner, {}, written.append):
        raise ValueError("x")
    assert len(written) == 1


def test_whose_code_a_run_calls(module: str) -> None:
    def learner(task: str, config: sgfn.TrainConfig) -> Learner:
        return build(make_task(task, config), CPU)

    broken(module, "ValueError", 0)
    own = {"callable__function": f"{module}:affinity", "callable__length": 2}
    assert not calls_others_code(learner("grid", small()))
    assert not calls_others_code(learner("words", small_on("words")))
    assert calls_others_code(learner("callable", small_on("callable", **own)))
    assert calls_others_code(learner("grid", small(objective=f"{module}:loss")))


def test_runs_of_ours_are_not_copied_at_every_step(grid_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "kept_on_failure", None)
    sgfn.train("grid", small(steps=24), grid_run, resume=True, device="cpu")


def test_weights_that_lie_transposed_are_kept_too(tmp_path: Path) -> None:
    """Layers of more than 64 outputs lie inputs first in their buffer."""
    learner = build(make_task("grid", small(net__hidden=80)), CPU)
    assert any(not value.is_contiguous() for value in learner.state().values())
    run = Run(path=tmp_path / "run")
    run.path.mkdir()
    with pytest.raises(RuntimeError, match="of a user's"), kept_on_failure(learner, {}, run.write_state):
        raise RuntimeError("of a user's")
    assert set(run.load_state()) == set(learner.state())
