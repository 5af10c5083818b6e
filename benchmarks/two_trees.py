"""Speed of two checkouts of this package beside each other, in turns of one run.

git worktree add ../before d22a10e
python -m benchmarks.two_trees ../before --device cpu       TFBind8, MLP 256 x 2, compiled
python -m benchmarks.two_trees ../before --long             50 residues on a CPU: transformer 128 x 3 and MLP 256 x 2

Before, what is long could not be compiled, so that it is eager there. Rates are updates per second; beside them stand
updates per second of a core's work, which do not count the time that others take from us on a busy machine.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch

from benchmarks.common import RESULTS, device_here, write_results
from benchmarks.speed_real import CELLS

ROOT = Path(__file__).parent.parent
LONG, WAYS = ("protein50", "protein50-mlp"), ("eager", "compile-float32", "compile")
"""Cells of `benchmarks.speed_real`, and how our own steps are run."""
CHUNKS = {"cpu": {16: 100, 256: 20, 4096: 1}, "cuda": {16: 200, 256: 200, 4096: 50}}


class Tree:
    """A process of `benchmarks.speed_peers.ours` of one checkout, with one job."""

    def __init__(self, path: Path, job: dict[str, Any], either: bool = False) -> None:
        """`either` runs our own `either_tree` on the sources of the checkout."""
        home, module = (ROOT, "either_tree") if either else (path, "ours")
        paths = os.pathsep.join([str(path / "src"), str(home), os.environ.get("PYTHONPATH", "")])
        command = [sys.executable, "-m", f"benchmarks.speed_peers.{module}", "--serve"]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        settings = {"GOMP_SPINCOUNT": "3000", "PYTHONPATH": paths}  # threads wait as those of the command `sgfn` do
        self.process = subprocess.Popen(command, cwd=home, env={**os.environ, **settings}, text=True, **pipes)
        self._read()
        self.ask(do="prepare", job=job)

    def ask(self, **message: Any) -> dict[str, Any]:
        """The answer to one message; raises what went wrong there."""
        assert self.process.stdin is not None
        print(json.dumps(message), file=self.process.stdin, flush=True)
        found = self._read()
        if "error" in found:
            raise RuntimeError(found["error"])
        return found

    def _read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline() or '{"error": "the process is gone"}')

    def rates(self, seconds: float) -> tuple[float, float]:
        """Updates per second over about so long, and per second of a core's work."""
        found = self.ask(do="run", seconds=seconds)
        return found["updates"] / found["seconds"], found["updates"] / found["core_seconds"]

    def rate(self, seconds: float) -> float:
        """Updates per second over about so long."""
        return self.rates(seconds)[0]

    def leave(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def main() -> None:
    """Time both checkouts in turns."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, help="the other checkout")
    parser.add_argument("--device", type=device_here, default="cpu")
    parser.add_argument("--long", action="store_true", help="50 residues on a CPU instead of TFBind8")
    parser.add_argument("--rounds", type=int, default=0, help="turns of each: 5, of what is long 10")
    parser.add_argument("--out", type=Path, default=None)
    args = parser.parse_args()
    if args.long:
        measure_long(args)
    else:
        measure_short(args)


def measure_short(args: argparse.Namespace) -> None:
    """TFBind8 by both checkouts, compiled."""
    trees = {"before": args.before.resolve(), "now": ROOT}
    cells = [(tree, o, b) for o in ("tb", "stochastic") for b in (16, 256, 4096) for tree in trees]
    with ThreadPoolExecutor(1 if args.device == "cpu" else len(cells)) as pool:
        ready = list(pool.map(lambda cell: Tree(trees[cell[0]], job_of(cell, args.device)), cells))
    rates: dict[Any, list[float]] = {cell: [] for cell in cells}
    for _ in range(args.rounds or 5):
        for cell, tree in zip(cells, ready, strict=True):
            rates[cell].append(tree.rate(1.5))
    rows = [row_of(o, b, rates["before", o, b], rates["now", o, b]) for t, o, b in cells if t == "now"]
    out = args.out or RESULTS / f"two_trees_{args.device}.json"
    write_results(out, "two_trees", torch.device(args.device), rows)


def job_of(cell: tuple[str, str, int], device: str) -> dict[str, Any]:
    """What a process is to train."""
    job = {"objective": cell[1], "batch": cell[2], "hidden": 256, "device": device, "accelerate": "compile"}
    return job | {"chunk": CHUNKS[device][cell[2]]}


def row_of(objective: str, batch: int, before: list[float], now: list[float]) -> dict[str, Any]:
    """Medians over rounds, and the median of their ratios."""
    ratio = statistics.median(n / b for n, b in zip(now, before, strict=True))
    row = {"objective": objective, "batch": batch, "before": round(statistics.median(before), 1)}
    row |= {"now": round(statistics.median(now), 1), "ratio": round(ratio, 3)}
    print(row, flush=True)
    return row


def measure_long(args: argparse.Namespace) -> None:
    """Two networks on 50 residues: the other checkout, and ours in each way, in many short turns."""
    rows, rounds, device = [], args.rounds or 10, torch.device("cpu")
    out = args.out or RESULTS / "two_trees_long_cpu.json"
    for name in LONG:
        job = next(cell for cell in CELLS["cpu"] if cell.name == name).job(64, "cpu")
        ways = {"before": (args.before.resolve(), "eager")} | {way: (ROOT, way) for way in WAYS}
        trees = {who: Tree(path, job | {"accelerate": way}, either=True) for who, (path, way) in ways.items()}
        turns = [{who: tree.rates(2.0) for who, tree in trees.items()} for _ in range(rounds)]
        for tree in trees.values():
            tree.leave()
        rows += [long_row(name, who, turns) for who in trees]
        load = round(os.getloadavg()[1], 1)
        write_results(out, "two_trees", device, rows, rounds=rounds, load=load)


def long_row(name: str, who: str, turns: list[dict[str, tuple[float, float]]]) -> dict[str, Any]:
    """Medians over turns of both rates, and medians of their ratios to those before."""
    row: dict[str, Any] = {"cell": name, "who": who}
    for i, rate in enumerate(("updates_per_second", "updates_per_core_second")):
        mine, before = [turn[who][i] for turn in turns], [turn["before"][i] for turn in turns]
        ratios = [m / b for m, b in zip(mine, before, strict=True)]
        row[rate] = round(statistics.median(mine), 2)
        row[f"times_{rate}"] = round(statistics.median(ratios), 2)
        row[f"range_{rate}"] = [round(min(ratios), 2), round(max(ratios), 2)]
    print(row, flush=True)
    return row


if __name__ == "__main__":
    main()
