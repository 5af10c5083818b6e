"""A comparison of training speed: contestants are processes that train in turns, so that all see the same machine.

A contestant prepares a job (it builds and warms up whatever it has) and then trains for a while whenever it is asked
to, by messages of one line. This file needs the standard library and NumPy alone, as each contestant runs in its own
environment.
"""

import argparse
import contextlib
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypedDict, cast, runtime_checkable

import numpy as np

ROOT = Path(__file__).parent.parent


class Job(TypedDict):
    """Training job of a contestant by trajectory balance: TFBind8, or what the last fields say."""

    objective: str  # tb: no noise; stochastic: uniform slip and a learned noise model
    batch: int
    hidden: int
    layers: int
    activation: str
    alpha: float
    beta: float
    lr: float
    steps: int  # of the schedule
    chunk: int  # updates between looks at the clock
    seed: int
    device: str
    accelerate: str
    table: str  # a .npy with the score of every sequence, smallest scores raised
    task: str
    settings: str  # further settings of ours, as JSON
    vocab: int
    length: int
    encoder: str
    heads: int
    unroll: int  # letters that JAX decodes in one round of its inner loop


DEFAULT: Job = {
    "objective": "tb",
    "batch": 16,
    "hidden": 256,
    "layers": 2,
    "activation": "relu",
    "alpha": 0.25,
    "beta": 3.0,
    "lr": 1e-3,
    "steps": 5000,
    "chunk": 50,
    "seed": 0,
    "device": "cpu",
    "accelerate": "auto",
    "table": "",
    "task": "tfbind8",
    "settings": "{}",
    "vocab": 4,
    "length": 8,
    "encoder": "mlp",
    "heads": 4,
    "unroll": 1,
}


class Loop(Protocol):
    """A contestant's training loop."""

    def advance(self) -> int:
        """Run some updates to their end; returns how many."""
        ...

    def memory(self) -> int:
        """Peak bytes on an accelerator, 0 where there is none."""
        ...


@runtime_checkable
class Racer(Loop, Protocol):
    """A loop that tells how near it is to the target."""

    def law(self) -> np.ndarray:
        """Exact law of the policy over all sequences, without noise."""
        ...


def timed(loop: Loop, seconds: float) -> dict[str, float]:
    """Train for about so many seconds; returns updates, seconds, core seconds and peak memory."""
    started, worked, count = time.perf_counter(), time.process_time(), 0
    while (spent := time.perf_counter() - started) < seconds or count == 0:
        count += loop.advance()
    return {"updates": count, "seconds": spent, "core_seconds": time.process_time() - worked, **used(loop)}


def used(loop: Loop) -> dict[str, float]:
    """Peak memory of the process and of the device, in MiB."""
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"memory": round(resident, 1), "device_memory": round(loop.memory() / 2**20, 1)}


def race(make: Callable[[Job], Loop], job: Job, goal: float, limit: float) -> dict[str, Any]:
    """Seconds of training, with set-up and compilation, until the exact law is as near to the target as asked."""
    started = time.perf_counter()
    loop, looking, updates, curve = make(job), 0.0, 0, []
    assert isinstance(loop, Racer)
    target = np.load(job["table"]).astype(np.float64) ** job["beta"]
    target /= target.sum()
    while True:
        updates += loop.advance()
        now = time.perf_counter()
        distance = float(np.abs(loop.law() - target).sum() / 2)
        curve.append((round(now - started - looking, 3), updates, round(distance, 4)))
        if distance <= goal or curve[-1][0] > limit or updates >= job["steps"]:
            return {"seconds": curve[-1][0], "updates": updates, "tv": distance, "curve": curve}
        looking += time.perf_counter() - now


def answer(make: Callable[[Job], Loop], loop: Loop | None, asked: dict[str, Any]) -> tuple[Loop | None, dict[str, Any]]:
    """Answer one message: prepare a job, train for some seconds, or race to a goal; returns the loop and the answer."""
    job = cast(Job, {**DEFAULT, **asked.get("job", {})})
    if asked["do"] == "prepare":
        started = time.perf_counter()
        loop = make(job)
        loop.advance()
        return loop, {"seconds": time.perf_counter() - started}
    if asked["do"] == "run" and loop is not None:
        return loop, timed(loop, asked["seconds"])
    return loop, race(make, job, asked["goal"], asked["limit"])


def serve(make: Callable[[Job], Loop], about: str) -> None:
    """Entry point of a contestant: measure once as the flags say, or with --serve answer messages until they end."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--serve", action="store_true")
    for name, value in DEFAULT.items():
        parser.add_argument(f"--{name}", type=type(value), default=value)
    parser.add_argument("--seconds", type=float, default=3.0)
    args = vars(parser.parse_args())
    if not args.pop("serve"):
        seconds = args.pop("seconds")
        loop, prepared = answer(make, None, {"do": "prepare", "job": args})
        found = answer(make, loop, {"do": "run", "seconds": seconds})[1]
        rate = found["updates"] / found["seconds"]
        print(f"{about}: {rate:,.0f} updates/s, {rate * args['batch']:,.0f} trajectories/s, {prepared | found}")
        return
    out, sys.stdout = sys.stdout, sys.stderr  # what a library prints does not mix with the answers
    print(json.dumps({"about": about}), file=out, flush=True)
    loop = None
    for line in sys.stdin:
        try:
            loop, found = answer(make, loop, json.loads(line))
        except Exception as error:  # one job that cannot be done (memory, say) is no reason to end the contest
            found = {"error": f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"}
        print(json.dumps(found), file=out, flush=True)


class Contestant:
    """A contestant's process, to which `serve` is the other end."""

    def __init__(self, name: str, python: str, module: str, environment: dict[str, str]) -> None:
        self.name = name
        command = [python, "-m", module, "--serve"]
        self.process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.about = self._read()["about"]

    def ask(self, **message: Any) -> dict[str, Any]:
        """Send one message and return the answer; an error stands for a contestant that has ended."""
        assert self.process.stdin is not None
        try:
            print(json.dumps(message), file=self.process.stdin, flush=True)
        except BrokenPipeError:
            return {"error": f"{self.name} is gone"}
        return self._read()

    def _read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"error": f"{self.name} is gone", "about": f"{self.name}: did not start"}

    def leave(self) -> None:
        """End the contestant's process."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # one that died has left
            self.process.stdin.close()
        self.process.wait()
