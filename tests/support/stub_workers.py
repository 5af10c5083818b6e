"""Comparisons whose workers take no time: processes without networks that write the files of a run."""

import sys
from pathlib import Path
from typing import Any

import pytest
from small_runs import small

import sgfn
from sgfn.compare import compare
from sgfn.compare import figure as compare_figure
from sgfn.compare import workers as crew
from sgfn.reports import pages as page

# A worker without networks: how it ends depends on the method, its figures on noise and seed.
STUB = r"""
import json, os, signal, sys, time
from pathlib import Path

job = json.loads(sys.stdin.readline())
path, config = Path(job["path"]), job["config"]
method, begun = path.parts[-3], (path / "config.json").is_file()
path.mkdir(parents=True, exist_ok=True)
(path / "config.json").write_text(json.dumps({"format": 2, "task": job["task"], "config": config}))
tv = config["noise"]["alpha"] + (config["seed"] + 1) ** 2 / 100

def note(step):
    row = {"step": step, "trajectories": 8 * step, "loss": 1.0, "log_reward": -tv, "reward": 0.5, "tv": tv * 20 / step}
    with (path / "metrics.jsonl").open("a") as file:
        file.write(json.dumps(row) + "\n")

def stop(*_):
    note(10)
    sys.exit(130)

if method == "db" and not begun:
    note(5)
    os.kill(os.getpid(), signal.SIGKILL)
if method == "subtb":
    sys.exit(3)
if method == "kl-entropy":
    sys.exit("first line\nthe reason")
if method == "kl" and not begun:
    signal.signal(signal.SIGTERM, stop)
    note(5)
    time.sleep(60)
note(20)
figures = {"step": 20, "samples": job["samples"], "tv": tv, "tv_floor": 0.05, "sample_mean": 0.25, "unique": 3}
(path / "exact.json").write_text(json.dumps(figures))
"""
SAMPLES = 32
WRITE_PAGE = page.write_page


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the page was asked to show, newest last."""
    shown: list[dict[str, Any]] = []

    def note_page(out: Path, title: str, entries: list[page.Entry], note: str = "") -> None:
        shown.append({"title": title, "entries": entries, "note": note})
        out.write_text(title)

    monkeypatch.setattr(page, "write_page", note_page)
    return shown


@pytest.fixture
def stub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pages: list[dict[str, Any]]) -> Path:
    """Workers that take no time; returns the folder for a comparison."""
    script = tmp_path / "stub.py"
    script.write_text(STUB)
    monkeypatch.setattr(crew, "COMMAND", [sys.executable, "-I", "-S", str(script)])
    monkeypatch.setattr(crew, "PAUSE", 0.02)
    monkeypatch.setattr(compare_figure, "draw_comparison", lambda path, _: path.write_bytes(b""))
    return tmp_path / "comparison"


def run(out: Path, methods: list[str], **options: Any) -> sgfn.Comparison:
    config = options.pop("config", small())
    return compare("grid", config, out, methods=methods, device="cpu", samples=SAMPLES, **options)
