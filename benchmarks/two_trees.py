"""Speed of two checkouts of this package beside each other, TFBind8, MLP 256 x 2, compiled, in turns of one run.

git worktree add ../before COMMIT
python -m benchmarks.two_trees ../before --device cpu
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

ROOT = Path(__file__).parent.parent
CHUNKS = {"cpu": {16: 100, 256: 20, 4096: 1}, "cuda": {16: 200, 256: 200, 4096: 50}}


class Tree:
    """A process of `benchmarks.speed_peers.ours` of one checkout, with one job."""

    def __init__(self, path: Path, job: dict[str, Any]) -> None:
        paths = os.pathsep.join([str(path / "src"), str(path), os.environ.get("PYTHONPATH", "")])
        command = [sys.executable, "-m", "benchmarks.speed_peers.ours", "--serve"]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(command, cwd=path, env={**os.environ, "PYTHONPATH": paths}, text=True, **pipes)
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

    def rate(self, seconds: float) -> float:
        """Updates per second over about so long."""
        found = self.ask(do="run", seconds=seconds)
        return found["updates"] / found["seconds"]


def main() -> None:
    """Prepare every cell of both checkouts, then time them in turns."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, help="the other checkout")
    parser.add_argument("--device", type=device_here, default="cpu")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=None)
    args = parser.parse_args()
    trees = {"before": args.before.resolve(), "now": ROOT}
    cells = [(tree, o, b) for o in ("tb", "stochastic") for b in (16, 256, 4096) for tree in trees]
    with ThreadPoolExecutor(1 if args.device == "cpu" else len(cells)) as pool:
        ready = list(pool.map(lambda cell: Tree(trees[cell[0]], job_of(cell, args.device)), cells))
    rates: dict[Any, list[float]] = {cell: [] for cell in cells}
    for _ in range(args.rounds):
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


if __name__ == "__main__":
    main()
