"""Any function as a landscape: cached, checked, found by name; and the worker processes behind slow ones."""

import math
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from exact_tables import PROPERTY
from hypothesis import given
from hypothesis import strategies as st

from sgfn.config import processes
from sgfn.config.importing import importable_name
from sgfn.config.processes import cut
from sgfn.landscapes.function import FunctionLandscape, first_failure, letters, load_function


class Counted:
    """Number of As plus a tenth of the length; remembers every call."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def __call__(self, texts: list[str]) -> list[float]:
        self.calls.append(list(texts))
        return [self.score(text) for text in texts]

    @staticmethod
    def score(text: str) -> float:
        return text.count("A") + 0.1 * len(text)


def landscape(function: Any, **options: Any) -> FunctionLandscape:
    return FunctionLandscape(function, letters("AC"), None, 1.0, **options)


def rows(*texts: str, width: int = 3) -> torch.Tensor:
    return torch.tensor([["AC".index(c) for c in text] + [2] * (width - len(text)) for text in texts])


BATCHES = st.lists(st.lists(st.text("AC", max_size=3), min_size=1, max_size=6), min_size=1, max_size=6)


@PROPERTY
@given(batches=BATCHES, cache=st.integers(1, 8))
def test_scores_equal_the_function_which_is_asked_once(batches: list[list[str]], cache: int) -> None:
    """Against a plain least-recently-used list; strings of a batch are used in their order."""
    function = Counted()
    subject, recent, asked = landscape(function, cache=cache), OrderedDict(), []
    for batch in batches:
        found = subject.scores(rows(*batch))
        assert found.tolist() == pytest.approx([Counted.score(text) for text in batch])
        asked.append([text for text in dict.fromkeys(batch) if text not in recent])
        for text in batch:
            recent[text] = None
            recent.move_to_end(text)
        while len(recent) > cache:
            recent.popitem(last=False)
        assert list(subject.known) == list(recent)
    assert function.calls == [texts for texts in asked if texts]


def test_scores_keep_shape_and_type_and_take_empty_batches() -> None:
    function = Counted()
    subject = landscape(function)
    objects = rows("A", "AA", "AA", "C", "CAC", "A").reshape(2, 3, 3)
    found = subject.scores(objects)
    assert found.shape == (2, 3)
    assert found.dtype == torch.float32
    assert torch.equal(found, subject.scores(objects))
    assert function.calls == [["A", "AA", "C", "CAC"]]  # each once, in their order
    assert subject.scores(objects[:0]).shape == (0, 3)
    assert not torch.equal(found, subject.scores(objects.flip(0)))
    assert FunctionLandscape.on_host
    assert subject.maximum == math.inf  # nobody knows it


@pytest.mark.parametrize("kind", [list, tuple, np.array, torch.tensor, lambda x: np.array(x, dtype=np.float32)])
def test_any_sequence_of_numbers_will_do(kind: Any) -> None:
    assert landscape(lambda texts: kind([len(t) for t in texts])).scores(rows("A", "CC")).tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda texts: [1.0] * (len(texts) - 1), ["gave 2 scores for 3 strings", "return one each"]),
        (lambda texts: [1.0] * 9, ["gave 9 scores for 3 strings"]),
        (lambda texts: None, ["must return a list of floats", "got NoneType"]),
        (lambda texts: 1.0, ["must return a list of floats", "got float"]),
        (lambda texts: (t for t in texts), ["must return a list of floats", "got generator"]),
        (lambda texts: ["high"] * len(texts), ["'A' the score 'high'", "must be a number"]),
        (lambda texts: np.ones((len(texts), 1)), ["'A' the score array([1.])", "must be a number"]),
        (lambda texts: [float("nan") if t == "CA" else 1 for t in texts], ["'CA' the score nan", "finite"]),
        (lambda texts: [float("inf") if t == "CA" else 1 for t in texts], ["'CA' the score inf", "finite"]),
        (lambda texts: [1e39 if t == "CA" else 1 for t in texts], ["'CA' the score 1e+39", "float32"]),
        (lambda texts: [-0.5 if t == "CA" else 1 for t in texts], ["'CA' the score -0.5", "max(0.0, score)"]),
        (lambda texts: [1 / (t != "CA") for t in texts], ["failed on 'CA'", "ZeroDivisionError: division by zero"]),
    ],
)
def test_a_wrong_answer_names_function_string_and_fix(answer: Any, words: list[str]) -> None:
    subject = landscape(answer, name="scores:affinity")
    with pytest.raises(ValueError, match=r"^scores:affinity") as caught:
        subject.scores(rows("A", "CA", "AC"))
    assert all(word in str(caught.value) for word in words), caught.value
    assert "\n" not in str(caught.value)
    assert not subject.known  # nothing wrong is remembered
    with pytest.raises(ValueError, match="test_function:"):
        landscape(answer).scores(rows("A", "CA", "AC"))


def test_an_exception_is_chained_and_its_string_found_by_halving() -> None:
    asked: list[int] = []

    def fails_on_cac(texts: list[str]) -> list[float]:
        asked.append(len(texts))
        if "CAC" in texts:
            raise KeyError("two\nlines")
        return [1.0] * len(texts)

    texts = [f"{i}" for i in range(999)] + ["CAC"]
    culprit, _ = first_failure(fails_on_cac, texts, KeyError())
    assert culprit == "'CAC'"
    assert len(asked) <= 22  # two questions a halving, not a thousand
    with pytest.raises(ValueError, match=r"failed on 'CAC' \(KeyError: 'two\\nlines'\)") as caught:
        landscape(fails_on_cac).scores(rows("A", "CAC"))
    assert isinstance(caught.value.__cause__, KeyError)

    def fails_on_crowds(texts: list[str]) -> list[float]:
        if len(texts) > 1:
            raise MemoryError("too many")
        return [1.0]

    with pytest.raises(ValueError, match=r"failed on 2 strings together, beginning with 'A' \(MemoryError: too many\)"):
        landscape(fails_on_crowds).scores(rows("A", "CAC"))


# By name

SOURCE = """
weights = {"A": 1.0}

def affinity(texts):
    return [sum(weights.get(c, 0.0) for c in text) for text in texts]

class Model:
    @staticmethod
    def predict(texts):
        return [2.0] * len(texts)

model = Model.predict
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's folder, entered; what is imported from it is forgotten."""
    (tmp_path / "my_scores.py").write_text(SOURCE)
    (tmp_path / "my_broken.py").write_text("x = 1\ndef f(:\n")
    (tmp_path / "my_needy.py").write_text("import a_package_nobody_has\n")
    (tmp_path / "my_failing.py").write_text("raise RuntimeError('no\\nweights')\n")
    monkeypatch.chdir(tmp_path)
    for name in ("my_scores", "my_broken", "my_needy", "my_failing"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


def test_a_function_of_the_current_folder_is_found(folder: Path) -> None:
    before = list(sys.path)
    found = load_function("my_scores:affinity")
    assert landscape(found).scores(rows("A", "AAC")).tolist() == [1.0, 2.0]
    assert importable_name(found) == "my_scores:affinity"
    assert load_function(importable_name(found)) is found
    assert importable_name(load_function("my_scores:Model.predict")) == "my_scores:Model.predict"
    assert sys.path == before
    assert load_function("os.path:join") is os.path.join
    (folder / "my_scores.py").unlink()
    sys.modules.pop("my_scores")
    with pytest.raises(ValueError, match="no module 'my_scores'"):
        load_function("my_scores:affinity")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("my_scores", ["must be module:function", "such as"]),
        ("my_scores:", ["must be module:function"]),
        (":affinity", ["must be module:function"]),
        ("my_scores.py:affinity()", ["name the module without .py, as my_scores:affinity"]),
        ("my scores:affinity", ["must be module:function"]),
        ("my_scorse:affinity", ["no module 'my_scorse'", "run from the folder that holds my_scorse.py"]),
        ("my_scores.inner:affinity", ["no module 'my_scores.inner'"]),
        ("my_scores:afinity", ["no afinity in", "my_scores.py", "did you mean affinity?"]),
        ("my_scores:zzz", ["no zzz in", "it has Model, affinity, model, weights"]),
        ("my_scores:Model.predic", ["no predic in Model", "did you mean predict?"]),
        ("my_scores:weights", ["is a dict, not a function"]),
        ("my_broken:f", ["my_broken.py, line 2: invalid syntax"]),
        ("my_needy:f", ["my_needy needs 'a_package_nobody_has'", "not installed"]),
        ("my_failing:f", ["importing my_failing failed (RuntimeError: no weights)"]),
    ],
)
def test_a_wrong_name_gets_one_line(folder: Path, name: str, words: list[str]) -> None:
    before = list(sys.path)
    with pytest.raises(ValueError, match=r"^function ") as caught:
        load_function(name)
    assert all(word in str(caught.value) for word in [repr(name), *words]), caught.value
    assert "\n" not in str(caught.value)
    assert sys.path == before


def shadowed(texts: list[str]) -> list[float]:
    return []


hidden = shadowed


def shadowed(texts: list[str]) -> list[float]:
    return [0.0]


def test_a_function_without_a_name_of_its_own_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def local(texts: list[str]) -> list[float]:
        return [0.0] * len(texts)

    for function in (local, lambda texts: texts, Counted()):
        with pytest.raises(ValueError, match="top level of a module"):
            importable_name(function)
    assert importable_name(shadowed) == f"{__name__}:shadowed"
    with pytest.raises(ValueError, match="means something else by now"):
        importable_name(hidden)
    monkeypatch.setattr(shadowed, "__module__", "__main__")
    with pytest.raises(ValueError, match="move it to a module of its own"):
        importable_name(shadowed)


# Worker processes


@PROPERTY
@given(texts=st.lists(st.text("AC"), min_size=1, max_size=20), pieces=st.integers(1, 8))
def test_pieces_are_the_list_again(texts: list[str], pieces: int) -> None:
    parts = cut(texts, pieces)
    assert [text for part in parts for text in part] == texts
    assert len(parts) <= pieces
    assert all(parts)
    assert max(map(len, parts)) == -(-len(texts) // pieces)


SCRIPT = """
import multiprocessing, os, signal, time
from functools import partial
from processes import Pool, ProcessWorker, cut, itself

def nap(texts):
    time.sleep(0.1)
    return [float(text) for text in texts]

if __name__ == "__main__":
    pool = Pool(partial(ProcessWorker, partial(itself, nap)), 2)

    def workers(texts):
        futures = [pool.submit(lambda ask, part=part: ask(part)) for part in cut(texts, 2)]
        return [value for future in futures for value in future.result()]

    try:
        print("ready", flush=True)
        while True:
            assert workers(["1", "2", "3"]) == [1.0, 2.0, 3.0]
    except KeyboardInterrupt:
        print(*workers(["4", "5", "6"]), flush=True)
        print(*[child.pid for child in multiprocessing.active_children()], flush=True)
    time.sleep(60)
"""


def running(pid: int) -> bool:
    """Whether a process lives; one that waits to be collected by its parent does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
@pytest.mark.parametrize("delay", [0.05, 0.6])
def test_workers_survive_an_interrupt_and_die_with_their_parent(tmp_path: Path, delay: float) -> None:
    """Ctrl-C reaches the whole group, while it starts or works: the parent decides. Killed, it leaves nobody behind."""
    (tmp_path / "script.py").write_text(SCRIPT)
    shutil.copy(processes.__file__, tmp_path / "processes.py")  # the file alone: importing all of sgfn takes seconds
    complaints = tmp_path / "complaints.txt"
    with (
        complaints.open("w") as errors,
        subprocess.Popen(
            [sys.executable, "script.py"],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        ) as parent,
    ):
        assert parent.stdout is not None
        watchdog = threading.Timer(120, parent.kill)  # a deadlock fails the test rather than hang it
        watchdog.start()
        try:
            assert parent.stdout.readline() == "ready\n"
            time.sleep(delay)
            os.killpg(parent.pid, signal.SIGINT)
            assert parent.stdout.readline().split() == ["4.0", "5.0", "6.0"]
            children = [int(pid) for pid in parent.stdout.readline().split()]
            assert 1 <= len(children) <= 2
            assert all(map(running, children))
        finally:
            watchdog.cancel()
            parent.kill()
    deadline = time.monotonic() + 300
    while any(map(running, children)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(running, children))
    assert "Traceback" not in complaints.read_text()
