"""How steps are run: as they are, compiled, or captured in a CUDA graph. The numbers are the same up to rounding."""

from typing import Protocol, get_args, runtime_checkable

import torch

from sgfn.config import Accelerate
from sgfn.config.checks import one_of
from sgfn.learning.compilation import compiler_missing
from sgfn.learning.learner import Learner

PAYS = {"cpu": 20_000, "cuda": 100_000}
"""Steps from which on a compilation is earned back. It takes half a minute, and saves two milliseconds a step on a CPU;
on a GPU, beside steps that are captured as they are, a quarter of one."""
WIDEST_COMPILED = 1024
"""Layers up to which that holds on a CPU: with 2,048 a step takes 20 milliseconds and more, nearly all in products."""
COMPILING = "compiling: the first step takes about half a minute, less where the same was compiled before"
COMPILABLE = (
    "flow networks with an mlp, by other forms than published and eflow, without known objects in their batches, "
    "on sequences of one length whose scores fit in a table"
)
REPLAYED, LONGEST = (25, 5, 1), 400
"""Steps in one replay of a CUDA graph, on which lines of metrics and checkpoints mostly fall: as many as have no more
steps of the environment among them than this, as a graph holds every operation of each."""


@runtime_checkable
class Stepper(Protocol):
    """Runs steps of a learner."""

    burst: int
    """How many steps are best asked for at once."""
    notice: str
    """What the user may want to know of how steps are run."""

    def __call__(self, count: int = 1) -> None:
        """So many steps."""
        ...


def pick_device(name: str) -> torch.device:
    """`auto` is a GPU where there is one."""
    one_of("device", name, ["auto", "cpu", "cuda"])
    if name == "cuda" and not torch.cuda.is_available():
        raise ValueError("device 'cuda' is not available here: use --device cpu")
    return torch.device("cuda" if name == "cuda" or (name == "auto" and torch.cuda.is_available()) else "cpu")


def choose(learner: Learner, accelerate: str = "auto", insist: bool = True) -> tuple[str, str]:
    """What is done about a choice, and a notice where something better is out of reach.

    `auto` goes by device and length of the run: of the whole run, so that one that is resumed goes on as it was. What
    cannot be had is an error, or where nobody insists a notice and the next best.
    """
    one_of("accelerate", accelerate, get_args(Accelerate))
    config, kind = learner.config, learner.device.type
    narrow = kind == "cuda" or config.net.hidden <= WIDEST_COMPILED
    pays = learner.compilable and narrow and config.steps >= PAYS[kind]
    wanted = accelerate if accelerate != "auto" else "compile" if pays else _uncompiled(learner)
    why = _obstacle(learner, wanted)
    if why and insist and accelerate != "auto":
        raise ValueError(f"accelerate {accelerate!r} {why}: use {_uncompiled(learner)}")
    return (_uncompiled(learner), f"accelerate {wanted!r} {why}: steps run without") if why else (wanted, "")


def _uncompiled(learner: Learner) -> str:
    return "graph" if learner.device.type == "cuda" and learner.capturable else "eager"


def _obstacle(learner: Learner, wanted: str) -> str:
    """Why steps cannot be run so; empty where they can."""
    if wanted == "graph" and learner.device.type != "cuda":
        return "captures steps on a GPU, and this run is on a CPU"
    if wanted == "graph" and not learner.capturable:
        return "cannot hold steps of this run, which leave the GPU"
    if wanted == "compile" and not learner.compilable:
        return f"is for {COMPILABLE}"
    missing = compiler_missing(learner.device) if wanted == "compile" else ""
    return f"needs {missing}, which is not installed" if missing else ""


def stepper(learner: Learner, accelerate: str = "auto", insist: bool = True) -> Stepper:
    """How to run `step` here: on a GPU with TF32 products."""
    chosen, notice = choose(learner, accelerate, insist)
    cuda = learner.device.type == "cuda"
    if cuda:
        torch.set_float32_matmul_precision("high")
    if chosen == "compile":
        learner.compile()
        notice = COMPILING
    captured = chosen == "graph" or (chosen == "compile" and cuda and learner.capturable)
    return GraphedStep(learner, notice) if captured else PlainStep(learner, notice)


def replayed(horizon: int) -> int:
    """Number of steps in one replay of a CUDA graph, by the environment's horizon.

    >>> [replayed(horizon) for horizon in (8, 16, 17, 80, 256, 1000)]
    [25, 25, 5, 5, 1, 1]
    """
    return next((count for count in REPLAYED if count * horizon <= LONGEST), 1)


class PlainStep:
    """Runs steps one after the other, as they are written."""

    burst = 1

    def __init__(self, learner: Learner, notice: str = "") -> None:
        self.learner, self.notice = learner, notice
        self.flushed = float(torch.tensor(1e-40) * 1.0) == 0.0

    def __call__(self, count: int = 1) -> None:
        """So many steps; numbers near the least that there are count as zero, which processors are slow with.

        Moments of gradients that have died out come there, and steps would take half as long again.
        """
        threads = torch.get_num_threads()
        torch.set_flush_denormal(True)
        torch.set_num_threads(1 if self.learner.small else threads)
        try:
            for _ in range(count):
                self.learner.step()
            self.learner.settle()
        finally:
            torch.set_flush_denormal(self.flushed)
            torch.set_num_threads(threads)


class GraphedStep:
    """Runs the first steps as they are (they warm the allocator up), captures some in a graph, then replays it."""

    WARMUP = 3

    def __init__(self, learner: Learner, notice: str = "") -> None:
        self.learner, self.notice, self.warm = learner, notice, 0
        self.burst = replayed(learner.env.horizon)
        self.graphs: dict[int, torch.cuda.CUDAGraph] = {}
        self.stream = torch.cuda.Stream()

    def __call__(self, count: int = 1) -> None:
        """So many steps, in replays as long as there are."""
        while count > 0:
            if self.warm < self.WARMUP:
                self._eager()
                done = 1
            else:
                done = next(most for most in REPLAYED if most <= min(count, self.burst))
                if done not in self.graphs:
                    self.graphs[done] = self._capture(done)
                self.graphs[done].replay()
            count -= done

    def _eager(self) -> None:
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            self.learner.step()
            self.learner.settle()
        torch.cuda.current_stream().wait_stream(self.stream)
        self.warm += 1

    def _capture(self, steps: int) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(self.learner.generator)
        with torch.cuda.graph(graph, stream=self.stream):
            for _ in range(steps):
                self.learner.step()
            self.learner.settle()
        return graph
