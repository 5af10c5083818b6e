"""What a user's function prints is no part of the JSON; what takes long is told, and a stop is heeded meanwhile."""

import json
import sys
from pathlib import Path

import pytest
import torch
from benchmarks.soak.forks import ForkServer
from small_runs import ANYWHERE

from sgfn.cli.commands import main
from sgfn.cli.streams import printed_aside, results
from sgfn.runs import evaluate as evaluating
from sgfn.runs.loop import in_parts

NOISY = """
import os, sys
print("imported")
def score(texts):
    print("scored", len(texts))
    os.write(1, b"by its number\\n")
    return [1.0 + text.count("A") for text in texts]
"""
WORDS = ["train", "callable", "--callable.function", "noisy_scores:score", "--callable.length", "2", *ANYWHERE]


def test_prints_go_to_standard_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "noisy_scores.py").write_text(NOISY)
    monkeypatch.syspath_prepend(tmp_path)
    assert main([*WORDS, "--out", str(tmp_path / "run"), "--json"]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["run"] == str(tmp_path / "run")
    assert "imported\n" in told.err
    assert "scored" in told.err


def test_in_a_process_of_its_own_also_what_goes_around_python(server: ForkServer, tmp_path: Path) -> None:
    (tmp_path / "noisy_scores.py").write_text(NOISY)
    workers = ["--callable.workers", "2", "--out", "run", "--json"]  # whose prints are no part of it either
    done = server.run([*WORDS, *workers], tmp_path)
    assert done.code == 0, done.err
    assert json.loads(done.out)["run"] == "run"
    assert "by its number" in done.err


def test_results_find_standard_output(capfd: pytest.CaptureFixture[str]) -> None:
    with printed_aside():
        sys.stdout.write("aside\n")
        with results() as stream:
            stream.write("result\n")
        sys.stdout.write("aside again\n")
    with results() as stream:
        stream.write("after\n")
    told = capfd.readouterr()
    assert told.out == "result\nafter\n"
    assert told.err == "aside\naside again\n"


def test_parts_grow_and_a_stop_is_heeded_between_them(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, sizes, told = [0.0], list[int](), list[float]()
    monkeypatch.setattr("sgfn.runs.loop.time.monotonic", lambda: clock[0])

    def score(rows: torch.Tensor) -> torch.Tensor:
        sizes.append(len(rows))
        clock[0] += len(rows) / 128
        return 2 * rows[:, 0]

    rows = torch.arange(1000)[:, None]
    found = in_parts(score, rows, lambda: False, told.append)
    assert found is not None
    assert found.tolist() == (2 * torch.arange(1000)).tolist()
    assert sizes == [64, *[128] * 7, 40]  # a second each
    assert told == [936 / 128]
    sizes.clear()
    assert in_parts(score, rows, lambda: len(sizes) == 3, told.append) is None
    assert sizes == [64, 128, 128]


def test_ctrl_c_is_heeded_while_everything_is_scored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "stopping_scores.py").write_text(
        "import os, signal\n"
        "ASKED = []\n"
        "def score(texts):\n"
        "    ASKED.append(len(texts))\n"
        "    if len(texts) > 60:\n"  # no batch, but the first part of all 1,024
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "    return [1.0] * len(texts)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    words = ["train", "callable", "--callable.function", "stopping_scores:score", "--callable.length", "5", *ANYWHERE]
    assert main([*words, "--log.exact-every", "1", "--out", str(tmp_path / "run")]) == 2
    assert "stopped at step 0; continue with: sgfn train callable --resume" in capsys.readouterr().err
    from stopping_scores import ASKED  # pyright: ignore[reportMissingImports]

    assert sum(asked > 60 for asked in ASKED) == 1  # and it is asked for no more


def test_a_slow_function_is_told_before_it_is_asked_for_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "noisy_scores.py").write_text(NOISY)
    monkeypatch.syspath_prepend(tmp_path)
    assert main([*WORDS, "--out", str(tmp_path / "run"), "--json"]) == 0
    words = ["evaluate", str(tmp_path / "run"), "--callable.function", "noisy_scores:score", "--device", "cpu"]
    capsys.readouterr()
    assert main(words) == 0
    assert "objects are scored" not in capsys.readouterr().err
    monkeypatch.setattr(evaluating, "LONG_WAIT", -1.0)
    assert main(words) == 0
    assert "all 16 objects are scored for the exact answer: about 0 s more; --max-states 1" in capsys.readouterr().err
