"""Time and memory of `sgfn report` on a run with a million lines of metrics.

    python -m benchmarks.long_report

A process of its own for each row, imports included; medians of three. The run itself is a grid of nine cells, evaluated
before: what is measured is reading and drawing. `cpu_seconds` is the figure to compare: `seconds` by the clock count
what else the machine does, and the committed ones come from a busy one.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

import sgfn
from benchmarks.common import RESULTS, arguments, write_results
from sgfn.config import TrainConfig

ROUNDS = 3
LINES = (1_000, 1_000_000)
CHILD = """
import re, sys, time
from pathlib import Path
from sgfn.cli import main
assert main(sys.argv[1:]) == 0
print(time.process_time(), re.search("VmHWM:[ ]*([0-9]+)", Path("/proc/self/status").read_text().replace("\t", " "))[1])
"""
"""A command line whose process tells what it took: to a parent, memory is at least that of the parent."""
JUDGED = 10
"""Lines from one exact evaluation to the next."""


def long_run(folder: Path, lines: int) -> None:
    """A trained and evaluated run with so many lines of metrics."""
    config = TrainConfig().with_(steps=20, batch=8, net__hidden=16, dynamics__hidden=8, grid__side=3)
    run = sgfn.train("grid", config.with_(log__every=10, log__exact_every=10), folder, device="cpu")
    results, row = sgfn.evaluate(folder, device="cpu"), run.rows()[-1]
    with run.metrics.open("w", encoding="utf-8") as file:
        for step in range(1, lines + 1):
            row |= {"step": step, "trajectories": 8 * step, "loss": 1.0 + 1000.0 / step, "tv": 0.3}
            file.write(json.dumps(row if step % JUDGED == 0 else {n: v for n, v in row.items() if n != "tv"}) + "\n")
    (folder / "exact.json").write_text(json.dumps(dict(results) | {"step": lines}), encoding="utf-8")


def command(words: list[str]) -> tuple[float, float, float]:
    """Seconds, seconds of CPU and MB (10^6 bytes) of memory at most of one command line; on Linux."""
    started = time.monotonic()
    child = subprocess.run([sys.executable, "-c", CHILD, *words], check=True, capture_output=True, text=True)
    cpu, kibibytes = child.stdout.split()[-2:]
    return time.monotonic() - started, float(cpu), float(kibibytes) * 1024 / 1e6


def measured(folder: Path, lines: int, flags: list[str]) -> dict[str, Any]:
    """One row: the command that writes a picture, or a picture and a page."""
    seconds, cpu, memory = zip(*(command(["report", str(folder), *flags]) for _ in range(ROUNDS)), strict=True)
    return {
        "lines": lines,
        "written": "picture and page" if flags else "picture",
        "metrics_mb": round((folder / "metrics.jsonl").stat().st_size / 1e6, 1),
        "seconds": round(statistics.median(seconds), 2),
        "cpu_seconds": round(statistics.median(cpu), 2),
        "memory_mb": round(max(memory)),
    }


def main() -> None:
    """A short run and a long one."""
    args, rows = arguments(__doc__ or "", None), list[dict[str, Any]]()
    for lines in LINES:
        with tempfile.TemporaryDirectory() as folder:
            long_run(Path(folder) / "run", lines)
            for flags in ([], ["--html"]):
                rows.append(measured(Path(folder) / "run", lines, flags))
                print(rows[-1], flush=True)
    write_results(args.out or RESULTS / "long_report_cpu.json", "long_report", torch.device("cpu"), rows)


if __name__ == "__main__":
    main()
