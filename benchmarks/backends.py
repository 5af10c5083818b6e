"""What the backend for sequences of one length gains: beside the general backend, and beside plain autograd, compiled.

TFBind8 at 25 % noise, kernel known, trajectory balance, MLP 256 x 2. `fixed` is the backend as runs take it, compiled;
`uncompiled` the same as it is (captured on a GPU); `general` the backend that takes any environment, run the same way;
`autograd` a short step written for this comparison: rolls out with gradients on, one loss, autograd, Adam, all of it
one compiled function (captured on a GPU).

python -m benchmarks.backends --device cpu
"""

import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.common import RESULTS, arguments, write_results
from sgfn.config import TrainConfig
from sgfn.envs.base import one_hot
from sgfn.landscapes.tasks import make_task
from sgfn.learning.execution import GraphedStep, PlainStep, stepper
from sgfn.learning.trainer import Trainer

BATCHES = (16, 256, 4096)
ROUNDS, SECONDS = 5, 1.5
Run = Callable[[int], object]


def config_of(batch: int) -> TrainConfig:
    """The settings of one cell."""
    changes = {"noise__alpha": 0.25, "dynamics__mode": "known", "log__exact_every": 0}
    return TrainConfig().with_(batch=batch, steps=1_000_000, **changes)


def ours(batch: int, device: torch.device, how: str, general: bool = False) -> Run:
    """Steps of a trainer, by one of its backends."""
    trainer = Trainer(make_task("tfbind8", config_of(batch)), device)
    if general:
        trainer.backend = trainer.general
    if how == "compile":
        return stepper(trainer, "compile")
    return GraphedStep(trainer) if device.type == "cuda" else PlainStep(trainer)


class AutogradStep:
    """The short step: weights, their moments, and an update that autograd and a compiler make."""

    def __init__(self, batch: int, device: torch.device) -> None:
        config = config_of(batch)
        task = make_task("tfbind8", config)
        self.batch, self.device, self.alpha, self.explore = batch, device, config.noise.alpha, config.explore
        self.log_reward = (task.beta * task.log_reward(task.env.all_objects())).to(device)  # type: ignore[attr-defined]
        sizes = ((256, 41), (256,), (256, 256), (256,), (4, 256), (4,), ())
        self.weights = [0.05 * torch.randn(size, device=device) for size in sizes]
        self.moments = [(torch.zeros_like(w), torch.zeros_like(w)) for w in self.weights]
        self.count = torch.zeros((), device=device)
        self.update = torch.compile(self._update, fullgraph=True, dynamic=False)

    def loss(self, weights: list[Tensor], uniform: Tensor, clocks: Tensor) -> Tensor:
        """Trajectory balance of a batch that is rolled out on the way, gradients on."""
        w1, b1, w2, b2, w3, b3, log_z = weights
        written = torch.zeros(self.batch, 8, 4, device=self.device)
        number = torch.zeros(self.batch, dtype=torch.int64, device=self.device)
        log_pf = log_z
        for t in range(8):
            place = (torch.arange(9, device=self.device) == t).float().expand(self.batch, 9)
            hidden = F.relu(F.linear(torch.cat([written.flatten(1), place], 1), w1, b1))
            log_policy = torch.log_softmax(F.linear(F.relu(F.linear(hidden, w2, b2)), w3, b3), -1)
            behaviour = (1 - self.explore) * log_policy.detach().exp() + self.explore / 4
            intended = (clocks[t].log() - behaviour.log()).argmin(-1)
            slip, other = uniform[t] < self.alpha, (uniform[t] * (4 / self.alpha)).long().clamp(max=3)
            outcome = torch.where(slip, other, intended)
            law = (1 - self.alpha) * log_policy.exp() + self.alpha / 4
            log_pf = log_pf + law.gather(1, outcome[:, None])[:, 0].log()
            step = one_hot(outcome, 4)[:, None] * (torch.arange(8, device=self.device) == t).float()[:, None]
            written, number = written + step, 4 * number + outcome
        return (log_pf - self.log_reward[number]).square().mean()

    def _update(self, uniform: Tensor, clocks: Tensor) -> None:
        gradients = torch.func.grad(lambda weights: self.loss(weights, uniform, clocks))(self.weights)
        norm = torch.stack([g.square().sum() for g in gradients]).sum().sqrt()
        self.count.add_(1)
        for weight, gradient, (first, second) in zip(self.weights, gradients, self.moments, strict=True):
            gradient = gradient * (10.0 / norm).clamp(max=1.0)
            first.lerp_(gradient, 0.1)
            second.lerp_(gradient.square(), 0.001)
            size = 1e-3 * (1 - 0.999**self.count).sqrt() / (1 - 0.9**self.count)
            weight.sub_(size * first / (second.sqrt() + 1e-8))

    def step(self) -> None:
        """One update on fresh random numbers."""
        uniform = torch.rand(8, self.batch, device=self.device)
        self.update(uniform, torch.empty(8, self.batch, 4, device=self.device).exponential_())

    def run(self, count: int) -> None:
        """Steps one after the other."""
        for _ in range(count):
            self.step()

    def captured(self, steps: int = 25) -> Run:
        """Steps as replays of a CUDA graph."""
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            self.run(3)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            self.run(steps)
        return lambda count: [graph.replay() for _ in range(max(1, count // steps))]


def autograd(batch: int, device: torch.device) -> Run:
    """The short step as it is run on a device."""
    made = AutogradStep(batch, device)
    return made.captured() if device.type == "cuda" else made.run


def rate(run: Run, device: torch.device) -> float:
    """Updates per second over about `SECONDS`, in calls of 25."""
    done, started = 0, time.perf_counter()
    while time.perf_counter() - started < SECONDS:
        run(25)
        if device.type == "cuda":
            torch.cuda.synchronize()
        done += 25
    return done / (time.perf_counter() - started)


def measured(batch: int, kind: str, short: bool = True) -> list[dict[str, Any]]:
    """Medians of all contestants of a size, timed in turns, after one turn that counts for nothing."""
    device = torch.device(kind)
    torch.set_float32_matmul_precision("high")
    torch.manual_seed(0)
    runs = {
        "fixed": ours(batch, device, "compile"),
        "uncompiled": ours(batch, device, "as it is"),
        "general": ours(batch, device, "as it is", general=True),
    }
    if short:
        runs["autograd"] = autograd(batch, device)
    rates: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(ROUNDS + 1):
        for name, run in runs.items():
            found = rate(run, device)
            if turn:
                rates[name].append(found)
    rows = []
    for name, values in rates.items():
        ratio = statistics.median(v / f for v, f in zip(values, rates["fixed"], strict=True))
        rows.append({"batch": batch, "who": name, "updates": round(statistics.median(values), 1)})
        rows[-1] |= {"of_fixed": round(ratio, 3)}
        print(rows[-1], flush=True)
    return rows


def alone(batch: int, kind: str, short: bool) -> list[dict[str, Any]]:
    """Rows of a size, measured in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(measured, batch, kind, short).result()


def rows_of(batch: int, kind: str) -> list[dict[str, Any]]:
    """Rows of a size; where the short step fails (its graph may), the others without it, and a row that says why."""
    try:
        return alone(batch, kind, short=True)
    except Exception as error:
        failed = {"batch": batch, "who": "autograd", "failed": str(error).strip().splitlines()[0]}
        print(failed, flush=True)
        return [*alone(batch, kind, short=False), failed]


def main() -> None:
    """Every size, then the file."""
    args = arguments(__doc__ or "", None)
    rows = [row for batch in BATCHES for row in rows_of(batch, args.device)]
    device = torch.device(args.device)
    write_results(args.out or RESULTS / f"backends_{device.type}.json", "backends", device, rows)


if __name__ == "__main__":
    main()
