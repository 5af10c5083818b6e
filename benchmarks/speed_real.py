"""Speed where sequences are long, alphabets large and networks transformers: every contestant in turns of one run.

    python -m benchmarks.speed real --device cuda        ours compiled and not, and a JAX scan of the same algorithm
    python -m benchmarks.speed real --device cpu         protein lengths; without noise torchgfn and gfnx as well

Trajectory balance in the marginal form at 25 % slips with a noise model to learn; `plain` cells, which torchgfn and
gfnx can train too, are without noise. JAX has an additive reward of its own in place of the task's
(benchmarks/speed_peers/jax_real.py). `host` cells have a reward that leaves the device, a function of strings, and show
our own ways to run steps: eager, and in two captured halves around the reward. Cells are in order of importance, and
one by one written to results/speed_real_DEVICE.json; those that are there are not measured again; after `--minutes` no
more are begun.
"""

import argparse
import json
import math
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch

from benchmarks.common import write_results
from benchmarks.speed_peers.environments import present, python_of
from benchmarks.turns import Turns
from sgfn.config.files import read_json

MODULES = {
    "ours": "benchmarks.speed_peers.ours",
    "uncompiled": "benchmarks.speed_peers.ours",
    "eager": "benchmarks.speed_peers.ours",
    "jax": "benchmarks.speed_peers.jax_real",
    "jax-loop": "benchmarks.speed_peers.jax_real",
    "gfnx": "benchmarks.speed_peers.gfnx_real",
    "torchgfn": "benchmarks.speed_peers.torchgfn_real",
}
OWN: dict[str, dict[str, dict[str, Any]]] = {
    device: {
        "ours": {"accelerate": "compile"},
        "uncompiled": {"accelerate": way},
        "eager": {"accelerate": "eager"},
        "jax-loop": {"unroll": 1},
    }
    for device, way in (("cpu", "eager"), ("cuda", "graph"))
}
"""Fields of the job by contestant; JAX decodes several letters in a round of its loop, or one, whichever is faster."""
SHOWN = ("cell", "task", "objective", "vocab", "length", "encoder", "hidden", "layers", "batch")
ROUNDS, SECONDS, MINUTES = {"cpu": 3, "cuda": 3}, {"cpu": 4.0, "cuda": 1.0}, {"cpu": 60.0, "cuda": 6.5}
AT_ONCE = {"cpu": 1, "cuda": 4}
STEPS = 20_000


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One task and network; batches with the updates between looks at the clock, about a tenth of a second's work."""

    name: str
    task: str
    vocab: int
    length: int
    hidden: int
    layers: int
    chunks: dict[int, int]
    heads: int = 0
    """Of a transformer; 0 for an MLP."""
    settings: dict[str, Any] = field(default_factory=dict)
    noisy: bool = True
    peers: tuple[str, ...] = ()
    """Others than JAX that have such a task."""
    host: bool = False
    """Whether the reward is a function on the host, which JAX's scan has none of: there our own ways are compared."""

    @property
    def encoder(self) -> str:
        """`transformer` or `mlp`."""
        return "transformer" if self.heads else "mlp"

    def job(self, batch: int, device: str, unroll: int = 0) -> dict[str, Any]:
        """The job that contestants are sent."""
        network = {"net__encoder": self.encoder, **({"net__heads": self.heads} if self.heads else {})}
        return {
            "cell": self.name,
            "task": self.task,
            "objective": "stochastic" if self.noisy else "tb",
            "vocab": self.vocab,
            "length": self.length,
            "encoder": self.encoder,
            "heads": self.heads,
            "hidden": self.hidden,
            "layers": self.layers,
            "batch": batch,
            "activation": "gelu",
            "beta": 1.0,
            "steps": STEPS,
            "chunk": self.chunks[batch],
            "device": device,
            "settings": json.dumps({**self.settings, **network, "beta": None}),
            "unroll": unroll or (self.length if self.length <= 16 else 4),
        }


BITS: dict[str, Any] = {
    "task": "bits",
    "vocab": 256,
    "length": 15,
    "settings": {"bits__k": 8, "bits__distance": "hamming"},
}
MOTIF: dict[str, Any] = {"task": "motif", "vocab": 4}
PROTEIN: dict[str, Any] = {
    "task": "ehrlich",
    "vocab": 20,
    "length": 50,
    "settings": {"ehrlich__vocab": 20, "ehrlich__length": 50, "ehrlich__motifs": 2},
}
HOST: dict[str, Any] = {
    "task": "callable",
    "vocab": 4,
    "length": 30,
    "host": True,
    "settings": {"callable__function": "benchmarks.host_reward:best_match", "callable__length": 30},
}
SMALL: dict[str, Any] = {"hidden": 64, "layers": 3, "heads": 8}
WIDE: dict[str, Any] = {"hidden": 128, "layers": 3, "heads": 8}
MLP: dict[str, Any] = {"hidden": 256, "layers": 2}
CELLS: dict[str, list[Cell]] = {
    "cuda": [
        Cell(name="bits", **BITS, **SMALL, chunks={16: 100, 256: 75, 4096: 25}),
        Cell(name="motif100", **MOTIF, **WIDE, length=100, chunks={16: 20, 256: 10}, settings={"motif__length": 100}),
        Cell(
            name="ehrlich32",
            task="ehrlich",
            vocab=20,
            length=32,
            **MLP,
            chunks={16: 200, 256: 150, 4096: 50},
            settings={"ehrlich__vocab": 20, "ehrlich__length": 32, "ehrlich__motifs": 4},
        ),
        Cell(
            name="motif30",
            **MOTIF,
            **MLP,
            length=30,
            chunks={16: 200, 256: 150, 4096: 50},
            settings={"motif__length": 30},
        ),
        Cell(name="host30", **HOST, **MLP, chunks={16: 100, 256: 50, 4096: 10}),
    ],
    "cpu": [
        Cell(name="protein50", **PROTEIN, **WIDE, chunks={64: 1}),
        Cell(name="protein50-mlp", **PROTEIN, **MLP, chunks={64: 5}),
        Cell(name="motif30", **MOTIF, **MLP, length=30, chunks={64: 10}, settings={"motif__length": 30}),
        Cell(name="bits-plain", **BITS, **MLP, chunks={16: 10}, noisy=False, peers=("gfnx", "torchgfn")),
        Cell(name="protein50-plain", **PROTEIN, **MLP, chunks={64: 5}, noisy=False, peers=("gfnx",)),
    ],
}


def key_of(row: dict[str, Any]) -> tuple[str, int]:
    """What tells one size from another."""
    return row["cell"], row["batch"]


def missing(args: argparse.Namespace, rows: list[dict[str, Any]]) -> list[Turns]:
    """Jobs for sizes without rows, with their contestants."""
    done, here, found = {key_of(row) for row in rows}, present(args.device), []
    here += ["eager", *(["jax-loop"] if "jax" in here else [])]
    for cell in CELLS[args.device]:
        allowed = {"ours", "uncompiled", "jax", *cell.peers, *(["jax-loop"] if cell.heads else [])}
        allowed = {"ours", "uncompiled", "eager"} if cell.host else allowed
        for batch in cell.chunks:
            job = cell.job(batch, args.device, args.unroll)
            if key_of(job) not in done and (not args.cells or cell.name in args.cells):
                names = [name for name in here if name in allowed]
                found.append(Turns(job, names, SHOWN, MODULES, OWN[args.device]))
    return found


def installed(jobs: list[Turns]) -> dict[str, str]:
    """Install what contestants need before anybody starts; returns those that cannot be, with why."""
    lacking = {}
    for name in {name for job in jobs for name in job.names}:
        try:
            python_of(name)
        except (subprocess.CalledProcessError, OSError) as error:
            lacking[name] = f"did not install: {error}".splitlines()[0]
    return lacking


def measure(args: argparse.Namespace) -> None:
    """Measure the sizes that the file does not have yet, a few started together, then in turns alone."""
    device, out, began = args.device, args.out / f"speed_real_{args.device}.json", time.monotonic()
    rows: list[dict[str, Any]] = read_json(out)["rows"] if out.is_file() else []
    jobs = missing(args, rows)
    if not jobs:
        print(f"{out} has all of these sizes already: give --out another folder to measure them anew")
    lacking = installed(jobs)
    at_once, minutes = args.at_once or AT_ONCE[device], args.minutes or MINUTES[device]
    for first in range(0, len(jobs), at_once):
        if time.monotonic() - began > 60.0 * minutes:
            print(f"{minutes} minutes are over: {len(jobs) - first} sizes are left, the same command goes on with them")
            break
        group = jobs[first : first + at_once]
        absent = [absentees(job, lacking) for job in group]
        start(group, together=at_once > 1)
        for job, without in zip(group, absent, strict=True):
            found = job.take(args.rounds or ROUNDS[device], args.seconds or SECONDS[device]) + without
            for row in found:
                tell(row)
            rows += found
            write_results(out, "speed", torch.device(device), rows, versions=versions())


def absentees(job: Turns, lacking: dict[str, str]) -> list[dict[str, Any]]:
    """Take contestants that did not install out of a job; returns a row that says so for each."""
    without = [name for name in job.names if name in lacking]
    job.names = [name for name in job.names if name not in lacking]
    return [{"who": name, "about": name, **job.shown, "error": lacking[name]} for name in without]


def start(group: list[Turns], together: bool) -> None:
    """Let every contestant of some sizes build and compile what it needs, one after the other or all together."""
    entries = [(job, name) for job in group for name in job.names]
    with ThreadPoolExecutor(len(entries) if together else 1) as pool:
        list(pool.map(lambda entry: entry[0].prepare(entry[1]), entries))


def versions() -> dict[str, str]:
    """Versions of what our own interpreter has; contestants in others say theirs in their rows."""
    found = {}
    for name in ("torch", "triton", "jax", "jaxlib"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def tell(row: dict[str, Any]) -> None:
    """Print one line of the table."""
    head = f"{row['cell']:>16} {row['batch']:>6} {row['who']:>10}"
    if "error" in row:
        print(f"{head}  {row['error']}", flush=True)
        return
    memory, times = row["device_memory_mib"] or row["memory_mib"], row["ours_is_times"] or math.nan
    rates = "{updates_per_second:>10,.1f} [{lowest:,.1f}, {highest:,.1f}]/s".format(**row)
    print(f"{head} {rates}  ours is {times:.2f} x  {memory:,.0f} MiB  start {row['start_seconds']:.1f} s", flush=True)


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Flags of this part alone."""
    parser.add_argument("--cells", nargs="+", help="real: these cells alone")
    parser.add_argument("--minutes", type=float, default=0.0, help="no more sizes are begun after so many")
    parser.add_argument("--unroll", type=int, default=0, help="real: letters that JAX decodes per round of its loop")
