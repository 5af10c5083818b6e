"""This package as a contestant, at its present layout or at that of commit d22a10e: which one is on the path decides.

`two_trees` starts it for both, with this file and the sources of one or the other.
"""

import importlib
import json
from typing import Any

import torch

from benchmarks.contest import Job, serve

PLACES = {
    "make_task": ("sgfn.landscapes.tasks", "sgfn.tasks"),
    "stepper": ("sgfn.learning.execution", "sgfn.stepper"),
    "Trainer": ("sgfn.learning.trainer", "sgfn.trainer"),
    "TrainConfig": ("sgfn.config",),
}


def found(name: str) -> Any:
    """A part of the package, where its layout has it."""
    for place in PLACES[name]:
        try:
            return getattr(importlib.import_module(place), name)
        except ModuleNotFoundError:
            continue
    raise ModuleNotFoundError(f"no {name} in {PLACES[name]}")


def settings(job: Job) -> Any:
    """The job as a configuration."""
    common: dict[str, Any] = {
        "batch": job["batch"],
        "steps": job["steps"],
        "seed": job["seed"],
        "noise__alpha": job["alpha"],
        "dynamics__mode": "batch",
        "form": "marginal",
        "net__hidden": job["hidden"],
        "net__layers": job["layers"],
        "net__activation": job["activation"],
        "optim__lr": job["lr"],
    }
    return found("TrainConfig")().with_(**common | json.loads(job["settings"]))


class EitherTree:
    """A trainer and its way to step."""

    def __init__(self, job: Job) -> None:
        self.chunk = job["chunk"]
        self.trainer = found("Trainer")(found("make_task")(job["task"], settings(job)), torch.device(job["device"]))
        self.step = found("stepper")(self.trainer, job["accelerate"])

    def advance(self) -> int:
        """So many updates, done when this returns."""
        self.step(self.chunk)
        self.trainer.done += self.chunk
        self.trainer.read_meters()
        return self.chunk

    def memory(self) -> int:
        """Peak bytes on a GPU."""
        return 0


if __name__ == "__main__":
    serve(EitherTree, f"sgfn, torch {torch.__version__}")
