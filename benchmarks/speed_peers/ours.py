"""This package as a contestant: the loop that `sgfn train` runs."""

import json
from typing import Any

import numpy as np
import torch

from benchmarks.contest import Job, serve
from sgfn.config import TrainConfig
from sgfn.landscapes.tasks import make_task
from sgfn.learning.execution import stepper
from sgfn.learning.trainer import Trainer


def settings(job: Job) -> TrainConfig:
    """The job as a configuration: without noise nothing is learned of it."""
    noisy = job["objective"] == "stochastic"
    common: dict[str, Any] = {
        "batch": job["batch"],
        "steps": job["steps"],
        "seed": job["seed"],
        "beta": job["beta"],
        "noise__alpha": job["alpha"] if noisy else 0.0,
        "dynamics__mode": "batch" if noisy else "known",
        "form": "marginal" if noisy else "blind",
        "net__hidden": job["hidden"],
        "net__layers": job["layers"],
        "net__activation": job["activation"],
        "optim__lr": job["lr"],
    }
    return TrainConfig().with_(**common | json.loads(job["settings"]))


class Ours:
    """A trainer and its way to step."""

    def __init__(self, job: Job) -> None:
        self.device, self.chunk = torch.device(job["device"]), job["chunk"]
        self.trainer = Trainer(make_task(job["task"], settings(job)), self.device)
        self.step = stepper(self.trainer, job["accelerate"])

    def advance(self) -> int:
        """So many updates, done when this returns."""
        self.step(self.chunk)
        self.trainer.done += self.chunk
        self.trainer.read_meters()  # waits for the device, as training does for each line of metrics
        return self.chunk

    def law(self) -> np.ndarray:
        """Exact law under the job's own noise."""
        return self.trainer.law().numpy()

    def memory(self) -> int:
        """Peak bytes on a GPU."""
        return torch.cuda.max_memory_allocated() if self.device.type == "cuda" else 0


if __name__ == "__main__":
    serve(Ours, f"sgfn, torch {torch.__version__}")
