"""Whatever a user's code raises is an error of the user, told in one line with the file and the line of that code."""

import itertools
import os
import signal
import sys
from pathlib import Path

import pytest
from small_runs import ANYWHERE, complaint

from sgfn.cli.commands import main
from sgfn.config import user_code
from sgfn.config.user_code import brief, is_users, user_errors

COUNT = itertools.count()
PARTS = """
import os, signal, sys
from sgfn.landscapes.tasks import make_task
from sgfn.learning.peers.random import UniformPolicy
from sgfn.noise import Noise

class Ended(BaseException):
    pass

def task(name, config):
    {act}

def by_ours(name, config):
    return make_task("gird", config)

def wrongly(name, config):
    return make_task("grid")

class Silent(Noise):
    summary = "silent"
    def check(self, slipping, positions):
        {act}
    def kernel(self, *_):
        {act}

def encoder(env, config):
    {act}

def form(*_):
    {act}

class Lazy(UniformPolicy):
    def step(self):
        {act}

def affinity(texts):
    {act}
"""
RAISED = {
    "sys.exit()": "SystemExit",
    "sys.exit(0)": "SystemExit: 0",
    "sys.exit('bye')": "SystemExit: bye",
    "raise KeyboardInterrupt": "KeyboardInterrupt",
    "raise GeneratorExit('x')": "GeneratorExit: x",
    "raise Ended('two  lines')": "Ended: two lines",
    "raise ValueError('x')": "ValueError: x",
    "raise OSError(2, 'gone', 'x.csv')": "FileNotFoundError: [Errno 2] gone: 'x.csv'",
    "return 1 / 0": "ZeroDivisionError: division by zero",
    "open('nowhere')": "FileNotFoundError: [Errno 2] No such file or directory: 'nowhere'",
}
"""What code does, and what is said of it."""
TRAIN = ["train", "grid", "--grid.side", "3", *ANYWHERE, "--out", "run"]
WAYS = {
    "task": ["tasks", "{}:task"],
    "noise": ["tasks", "grid", "--noise.kind", "{}:Silent"],
    "encoder": [*TRAIN, "--net.encoder", "{}:encoder"],
    "form": [*TRAIN, "--form", "{}:form"],
    "method": ["train", "grid", "--method", "{}:Lazy", "--steps", "3", "--device", "cpu", "--out", "run"],
}
"""Commands that call a user's code."""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    return f"parts_{next(COUNT)}"


def line_of(module: str, text: str, after: str) -> int:
    """Number of the first line that holds a text, after one that holds another."""
    lines = Path(f"{module}.py").read_text().splitlines()
    first = next(i for i, line in enumerate(lines) if after in line)
    return next(i for i, line in enumerate(lines, start=1) if i > first and text in line)


def whose(act: str, module: str) -> str:
    """What is added to an error: as what the code was called; a stop is told as it is."""
    named = any(word in act for word in ("ValueError", "OSError", "1 / 0", "open"))
    return f"; called as task '{module}:task'" if named else ""


@pytest.mark.parametrize("act", RAISED)
def test_whatever_a_builder_raises(act: str, module: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path(f"{module}.py").write_text(PARTS.format(act=act))
    line = complaint(capsys, ["tasks", f"{module}:task"])
    assert line == f"{module}.py, line {line_of(module, act, 'def task')}: {RAISED[act]}{whose(act, module)}"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("act", ["sys.exit(0)", "raise Ended('x')"])
def test_wherever_it_is_raised(way: str, act: str, module: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path(f"{module}.py").write_text(PARTS.format(act=act))
    line = complaint(capsys, [word.format(module) for word in WAYS[way]])
    after = {"task": "def task", "noise": "class Silent", "encoder": "def encoder", "form": "def form"}
    place = f"{module}.py, line {line_of(module, act, after.get(way, 'class Lazy'))}"
    assert line.startswith(f"{place}: {'SystemExit: 0' if 'sys' in act else 'Ended: x'}")


@pytest.mark.parametrize("act", ["sys.exit(0)", "raise Ended('two  lines')", "return 1 / 0"])
def test_a_reward_and_the_string_it_fails_on(act: str, module: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path(f"{module}.py").write_text(PARTS.format(act=act))
    words = ["tasks", "callable", "--callable.function", f"{module}:affinity", "--callable.length", "2"]
    where = f"in {module}.py, line {line_of(module, act, 'def affinity')}; it must score every string"
    assert complaint(capsys, words) == f"{module}:affinity failed on 'AA' ({RAISED[act]}) {where}"


def test_a_module_that_ends_the_program_when_it_is_imported(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path(f"{module}.py").write_text("import sys\nsys.exit(0)\n")
    line = complaint(capsys, ["tasks", f"{module}:task"])
    assert line == f"task '{module}:task': importing {module} failed (SystemExit: 0) in {module}.py, line 2"


def test_what_ours_says_to_a_users_code_is_enough(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path(f"{module}.py").write_text(PARTS.format(act="pass"))
    assert complaint(capsys, ["tasks", f"{module}:by_ours"]).startswith("task 'gird' is unknown: choose from ")
    line = complaint(capsys, ["tasks", f"{module}:wrongly"])
    assert line.endswith(f"missing 1 required positional argument: 'config'; called as task '{module}:wrongly'")
    line = complaint(capsys, ["tasks", f"{module}:task"])
    assert line == f"task '{module}:task': makes a NoneType, not a Task"


def test_ctrl_c_in_a_users_code_is_a_stop(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    act = "os.kill(os.getpid(), signal.SIGINT); [None for _ in range(10**8)]"
    Path(f"{module}.py").write_text(PARTS.format(act=act))
    assert complaint(capsys, ["tasks", f"{module}:task"]) == "stopped"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_function_may_import_its_neighbours_when_it_is_called(module: str) -> None:
    before, near = list(sys.path), f"{module}_near"
    Path(f"{module}.py").write_text(f"def affinity(texts):\n    import {near}\n    return {near}.score(texts)\n")
    Path(f"{near}.py").write_text("def score(texts):\n    return [1.0 + text.count('A') for text in texts]\n")
    assert main(["tasks", "callable", "--callable.function", f"{module}:affinity", "--callable.length", "2"]) == 0
    assert sys.path == before


def test_an_error_of_ours_stays_what_it_is() -> None:
    with pytest.raises(KeyError), user_errors():
        raise KeyError("x")
    with pytest.raises(SystemExit), user_errors():
        raise SystemExit(0)


def test_notes_are_told() -> None:
    def fail() -> None:
        error = ValueError("x")
        error.add_note("kept")
        raise error

    for notes, told in ((True, "x; kept"), (False, "x")):
        with pytest.raises(ValueError, match="x") as caught, user_errors(notes=notes):
            fail()
        assert str(caught.value) == told


def test_whose_code_a_file_holds() -> None:
    assert is_users(__file__)
    assert not is_users(user_code.__file__)
    assert not is_users(os.__file__)
    assert not is_users(pytest.__file__)
    assert not is_users("<string>")


def test_a_long_message_is_cut() -> None:
    assert len(brief(ValueError("word " * 1000))) <= user_code.LONGEST
