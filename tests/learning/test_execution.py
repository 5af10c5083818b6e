"""How steps are run: who may be accelerated, and that it changes nothing but the time."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from small_runs import contents, small, small_on
from steps_in_two_parts import Deferred, furthest

import sgfn
from sgfn.config import TrainConfig
from sgfn.config.presets import PRESETS
from sgfn.landscapes.tasks import make_task
from sgfn.learning import execution as stepper
from sgfn.learning.compilation import compiler_missing
from sgfn.learning.execution import COMPILE_FROM_STEPS, WIDEST_COMPILED, PlainStep, choose
from sgfn.learning.learner import NARROW, SMALL
from sgfn.learning.trainer import Trainer
from sgfn.runs.loop import WAITS
from sgfn.runs.train import steps_ahead, train

CPU = torch.device("cpu")


def learner(task: str = "tfbind8", **changes: Any) -> Trainer:
    return Trainer(make_task(task, small(**changes)), CPU)


KNOWN = {"capturable": True, "halves": False, "compilable": True, "scores_in_table": True}


def chosen_on(
    device: str, monkeypatch: pytest.MonkeyPatch, asked: str = "auto", missing: str = "", **facts: Any
) -> str:
    """What is done for a learner of which only this much is known."""
    monkeypatch.setattr(stepper, "compiler_missing", lambda _: missing)
    for name in (
        "choose",
        "_pays",
        "_default_without_compiling",
        "_obstacle",
    ):  # their types are not checked, which a stand-in has not
        monkeypatch.setattr(stepper, name, getattr(getattr(stepper, name), "__wrapped__", getattr(stepper, name)))
    fake = SimpleNamespace(**{"device": torch.device(device), **KNOWN} | facts)
    return stepper.choose(fake, asked, insist=False)[0]  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("on_host", "alone", "expected", "wanted"),
    [
        (False, True, False, "graph"),
        (False, True, True, "graph"),
        (True, True, False, "graph"),
        (True, False, False, "eager"),  # others score while training goes on
        (True, True, True, "eager"),  # children are scored as well
    ],
)
def test_scores_from_the_host_are_called_between_two_captured_halves(
    on_host: bool, alone: bool, expected: bool, wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores: Any = object.__new__(Trainer)  # of which only this much is known
    monkeypatch.setattr(Trainer, "parts_are_ours", True)
    scores.__dict__ |= {"task": SimpleNamespace(landscape=SimpleNamespace(on_host=on_host)), "explorer": None}
    scores.__dict__ |= {"backend": SimpleNamespace(alone=alone), "general": SimpleNamespace(reads_expected=expected)}
    facts = {"capturable": scores.capturable, "halves": scores.halves, "compilable": False, "config": TrainConfig()}
    assert (scores.capturable, scores.halves) == (not on_host and alone, on_host and wanted == "graph")
    assert chosen_on("cuda", monkeypatch, **facts) == wanted
    assert chosen_on("cpu", monkeypatch, **facts) == "eager"


def test_auto_compiles_where_it_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    for device, else_ in (("cpu", "eager"), ("cuda", "graph")):
        for steps, wanted in ((COMPILE_FROM_STEPS[device] - 1, else_), (COMPILE_FROM_STEPS[device], "compile")):
            assert chosen_on(device, monkeypatch, config=TrainConfig(steps=steps)) == wanted
    wide = TrainConfig(steps=COMPILE_FROM_STEPS["cuda"]).with_(net__hidden=WIDEST_COMPILED + 1)
    assert [chosen_on(device, monkeypatch, config=wide) for device in ("cpu", "cuda")] == ["eager", "compile"]


@pytest.mark.parametrize(("device", "instead"), [("cpu", "eager"), ("cuda", "graph")])
def test_without_a_compiler_a_gpu_still_captures(device: str, instead: str, monkeypatch: pytest.MonkeyPatch) -> None:
    long = TrainConfig(steps=COMPILE_FROM_STEPS[device])
    assert chosen_on(device, monkeypatch, missing="Triton", config=long) == instead
    assert chosen_on(device, monkeypatch, "compile", compilable=False, config=long) == instead
    assert chosen_on(device, monkeypatch, "compile", compilable=False, capturable=False, config=long) == "eager"


def test_the_published_bits_are_not_compiled_unasked() -> None:
    """An edit distance among compiled steps costs more than six minutes before the first of them."""
    config = PRESETS["published-bits"].with_(net__hidden=8, dynamics__hidden=8)
    assert config.steps >= COMPILE_FROM_STEPS["cpu"]
    assert choose(Trainer(make_task("bits", config), CPU)) == ("eager", "")
    assert choose(learner(steps=COMPILE_FROM_STEPS["cpu"]))[0] == ("eager" if compiler_missing(CPU) else "compile")


def test_a_refused_choice_leaves_a_resumed_run_as_it_was(tmp_path: Path) -> None:
    train("tfbind8", small_on("tfbind8"), tmp_path / "run", device="cpu")
    before = contents(tmp_path / "run")
    longer = small_on("tfbind8", steps=small().steps + 5)
    with pytest.raises(ValueError, match="use eager"):
        train("tfbind8", longer, tmp_path / "run", resume=True, accelerate="graph", device="cpu")
    assert contents(tmp_path / "run") == before


@pytest.mark.parametrize(
    ("task", "changes", "accelerate", "says"),
    [
        ("tfbind8", {}, "graph", "on a GPU, and this run is on a CPU: use eager"),
        (
            "tfbind8",
            {"objective": "eflow"},
            "compile",
            "is for flow networks by other objectives than eflow.*: use eager",
        ),
        ("tfbind8", {}, "compiled", "did you mean 'compile'"),
    ],
)
def test_what_cannot_be_had_is_an_error(task: str, changes: dict[str, Any], accelerate: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        choose(learner(task, **changes), accelerate)
    if accelerate in ("graph", "compile"):
        assert choose(learner(task, **changes), accelerate, insist=False)[0] == "eager"
    assert choose(learner(task, **changes), "eager") == ("eager", "")


def test_a_compiled_run_says_why_it_waits() -> None:
    if not compiler_missing(CPU):
        assert stepper.stepper(learner(), "compile").notice == stepper.COMPILING
    assert stepper.stepper(learner(), "eager").notice == ""


def test_a_missing_compiler_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(
        ValueError, match=r"needs a C\+\+ compiler \(no-such-compiler\), which is not installed: use eager"
    ):
        choose(learner(), "compile")
    name, notice = choose(learner(), "compile", insist=False)
    assert (name, "no-such-compiler" in notice) == ("eager", True)


def test_an_old_torch_is_not_asked_to_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "__version__", "2.7.1+cpu")
    with pytest.raises(ValueError, match=r"needs torch 2\.8, which is not installed: use eager"):
        choose(learner(), "compile")
    assert choose(learner(steps=COMPILE_FROM_STEPS["cpu"]))[0] == "eager"
    monkeypatch.setattr(torch, "__version__", "2.10.0")
    assert "torch" not in compiler_missing(CPU)


def test_nothing_is_written_before_the_choice(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="use eager"):
        train("tfbind8", small_on("tfbind8"), tmp_path / "run", accelerate="graph", device="cpu")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("accelerate", "says"), [("eager", "--resume --accelerate eager --out"), ("auto", "--resume --out")]
)
def test_a_stopped_run_says_how_it_was_run(accelerate: str, says: str, tmp_path: Path) -> None:
    def stop(step: int, row: dict[str, Any]) -> None:
        if step == 0:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt, match=says):
        train("tfbind8", small_on("tfbind8"), tmp_path / "run", accelerate=accelerate, device="cpu", progress=stop)


def test_who_stops_a_run_that_compiles_is_told_what_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first step stands in for a compilation, in which somebody presses Ctrl-C; at the second nothing is said."""
    said: list[str] = []

    class Slow(PlainStep):
        def __call__(self, count: int = 1) -> None:
            if self.learner.done == (0 if compiles else 1):
                os.kill(os.getpid(), signal.SIGINT)
            super().__call__(count)

    module = sys.modules[train.__module__]
    monkeypatch.setattr(module, "stepper", lambda learner, *_: Slow(learner, stepper.COMPILING))
    for compiles in (True, False):
        said.clear()
        with pytest.raises(KeyboardInterrupt, match="stopped at step"):
            train(
                "tfbind8",
                small_on("tfbind8"),
                tmp_path / f"run{compiles}",
                device="cpu",
                progress=lambda _, row: said.extend([row["notice"]] if "notice" in row else []),
            )
        assert said == [stepper.COMPILING, *([WAITS] if compiles else [])]


@pytest.mark.parametrize(("done", "ahead"), [(0, 5), (4, 1), (5, 2), (7, 3), (20, 3)])
def test_bursts_end_where_something_is_due(done: int, ahead: int) -> None:
    config = small(log__every=5, log__checkpoint_every=7, log__exact_every=0).log
    assert steps_ahead(done, 23, config) == min(ahead, 5 - done % 5, 7 - done % 7, 23 - done)


CASES: dict[str, dict[str, Any]] = {  # one of them all at once is traced in `test_a_step_in_two_compiled_parts...`
    "kl from a buffer": {"objective": "kl", "replay__updates": 1, "replay__batch": 12, "dynamics__mode": "replay"},
}


def told(script: str, *words: str) -> Any:
    """What a script of the tests prints as JSON, run with one thread and this very package."""
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(sgfn.__file__).parents[1])}
    command = [sys.executable, str(Path(__file__).parents[1] / "support" / script), *words]
    run = subprocess.run(command, env=env, capture_output=True, check=False)
    assert run.returncode == 0, run.stderr[-2000:]
    return json.loads(run.stdout)


@pytest.mark.long  # what is compiled is traced, without the compiler's C++, in `test_a_step_in_two_compiled_parts...`
@pytest.mark.skipif(bool(compiler_missing(CPU)), reason="no C++ compiler")
def test_compiled_runs_are_those_that_are_not(tmp_path: Path) -> None:
    """Loss by loss."""
    found = told("compiled_beside_eager.py", str(tmp_path), json.dumps(CASES))
    assert found.keys() == CASES.keys()
    for runs in found.values():
        assert len(runs["plain"]) == len(runs["compiled"]) == 8
        for mine, theirs in zip(runs["compiled"], runs["plain"], strict=True):
            for name in ("loss", "dynamics_nll", "log_reward", "log_z"):
                assert mine[name] == pytest.approx(theirs[name], rel=1e-3, abs=1e-4)
        assert runs["other"][0]["loss"] != pytest.approx(runs["plain"][0]["loss"], rel=1e-3)


def test_steps_leave_threads_and_small_numbers_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, bool]] = []
    sizes: list[dict[str, int]] = [{"batch": 8}, {"batch": SMALL}, {"batch": 8, "net__hidden": 4 * NARROW}]
    for size in sizes:
        made = learner(**size)
        monkeypatch.setattr(made, "step", lambda: seen.append((torch.get_num_threads(), flushed())))
        before = torch.get_num_threads()
        torch.set_num_threads(2)
        try:
            PlainStep(made)(3)
            assert (torch.get_num_threads(), flushed()) == (2, False)
        finally:
            torch.set_num_threads(before)
    assert seen == [(1, True)] * 3 + [(2, True)] * 6


def flushed() -> bool:
    return float(torch.tensor(1e-40) * 1.0) == 0.0


MORE: dict[str, dict[str, Any]] = {
    "a noise model": {},
    "none": {"dynamics__mode": "known"},
    "recalled batches": {"replay__updates": 1, "replay__capacity": 64},
    "heated": {"objective": "kl-entropy", "exploration": "entropy", "entropy__weight_kl": 0.1},
}


@pytest.mark.parametrize("case", MORE)
def test_what_a_step_leaves_for_later_may_wait_for_the_next_rollouts(case: str) -> None:
    plain, other = learner(noise__alpha=0.3, **MORE[case]), learner(noise__alpha=0.3, **MORE[case])
    other.side_stream = Deferred()  # pyright: ignore[reportAttributeAccessIssue]
    for _ in range(5):
        plain.step()
        other.step()
    assert furthest(plain, other) > 0.0  # the last step's rest
    other.settle()
    assert furthest(plain, other) == 0.0


TRACED = {
    "all at once": {**MORE["recalled batches"], **MORE["heated"]},  # a noise model and trajectory balance are in it too
    "recalled batches": MORE["recalled batches"],
}


@pytest.mark.slow
@pytest.mark.parametrize("case", ["all at once", pytest.param("recalled batches", marks=pytest.mark.long)])
def test_a_step_in_two_compiled_parts_is_the_same_step(case: str) -> None:
    """The long case is part of the other, in a trace of its own."""
    (found,) = told("steps_in_two_parts.py", json.dumps([{"noise__alpha": 0.3, **TRACED[case]}]))
    assert found["apart"] < 1e-5
    assert found["counted twice"] >= 1.0  # and the comparison can fail
