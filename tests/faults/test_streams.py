"""Standard streams that are closed, full or left: no traceback, and never a result that was not written."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.soak.folders import Bases
from benchmarks.soak.forks import ForkServer
from benchmarks.soak.outcomes import one_line

CLOSED = {
    "output of evaluate": (["evaluate", "run", "--samples", "8", "--device", "cpu"], [1]),
    "output of tasks": (["tasks"], [1]),
    "output of tasks as JSON": (["tasks", "--json"], [1]),
    "output of sample": (["sample", "run", "-n", "4", "--device", "cpu"], [1]),
    "output of help": (["train", "--help"], [1]),
    "error": (["evaluate", "nowhere"], [2]),
    "error of training": (["train", "grid", "--resume", "--device", "cpu", "--out", "run"], [2]),
    "output of data": (["data", "list", "--json"], [1]),
    "output and error of data": (["data", "list", "--json"], [1, 2]),
    "output of one task": (["tasks", "grid"], [1]),
    "input and output of help": (["--help"], [0, 1]),
    "output and error of help": (["tasks", "--help"], [1, 2]),
    "error of a misspelt task": (["tasks", "gird"], [2]),
    "output and error of a wrong number": (["train", "--steps", "abc"], [1, 2]),
    "all": (["evaluate", "run", "--samples", "8", "--device", "cpu"], [0, 1, 2]),
    "all of a mistake": (["train", "gird"], [0, 1, 2]),
}


@pytest.mark.parametrize("name", CLOSED)
def test_a_closed_stream_is_no_traceback(name: str, server: ForkServer, bases: Bases, tmp_path: Path) -> None:
    bases.lay("grid", tmp_path)
    words, closed = CLOSED[name]
    ended = server.run(words, tmp_path, closed=closed)
    assert ended.code in (0, 2)
    assert "Traceback" not in ended.err
    if ended.code == 2 and 2 not in closed:
        one_line(ended.err)
    wrong = (["evaluate", "nowhere"], ["train", "gird"], ["tasks", "gird"], ["train", "--steps", "abc"])
    assert ended.code == 2 * (words in wrong) or "run" in words


def shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A command in a shell, with an interpreter of its own."""
    line = command.replace("sgfn", f"{sys.executable} -m sgfn")
    return subprocess.run(["bash", "-c", line], cwd=folder, capture_output=True, text=True, timeout=900, check=False)


FULL = """
import os
os.dup2(os.open("/dev/full", os.O_WRONLY), 1)
from sgfn.cli.commands import main
raise SystemExit(main("evaluate run --samples 8 --json --device cpu".split()))
"""


def test_a_full_device_is_told(server: ForkServer, bases: Bases, tmp_path: Path) -> None:
    bases.lay("grid", tmp_path)
    ended = server.run(["-c", FULL], tmp_path)
    assert (ended.code, ended.out) == (2, "")
    assert "No space left" in one_line(ended.err)
    alone = shell("sgfn data list --json > /dev/full", tmp_path)
    assert (alone.returncode, alone.stdout) == (2, "")
    assert "No space left" in one_line(alone.stderr)


def test_a_reader_that_has_gone_is_no_error(tmp_path: Path) -> None:
    ended = shell("sgfn data list --json | head -c 1; echo ' ' ${PIPESTATUS[0]}", tmp_path)
    assert ended.stderr == ""
    assert ended.stdout.split()[-1] in ("0", str(128 + signal.SIGPIPE))
