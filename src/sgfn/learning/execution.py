"""Ways to run steps: eager, compiled, or captured in a CUDA graph. The numbers are the same up to rounding."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol, get_args, runtime_checkable

import torch
from torch import Tensor

from sgfn.config import Accelerate
from sgfn.config.checks import one_of
from sgfn.learning.compilation import NotCompilableError, compiler_missing
from sgfn.learning.kernels.cpp import refused
from sgfn.learning.kernels.cpu_mlp import mlp_fits
from sgfn.learning.learner import Learner
from sgfn.learning.trainer import Trainer

COMPILE_FROM_STEPS = {"cpu": 20_000, "cuda": 100_000}
"""Steps of a run from which compiling saves time where scores are in a table, by device. It takes half a minute, and
saves two milliseconds a step on a CPU; on a GPU a quarter of one, beside uncompiled steps in a CUDA graph."""
COMPILE_LONG_FROM_STEPS = {"cpu": 2_000, "cpu, mlp": 10_000, "cuda": 100_000, "cuda, large": 25_000}
"""The same where scores are computed, for small networks on a CPU. On a GPU it takes 30 to 90 s where nothing was
compiled before and saves .3 to 1 ms, in large batches 1 to 4 ms, beside uncompiled steps in a CUDA graph
(benchmarks/results/speed_real_cuda.json)."""
COMPILE_LARGE_FROM_STEPS = {"cpu": 500, "cpu, mlp": 5_000}
LARGE_WORK = {"cpu": 64 * 50 * 3 * 128**2, "cpu, mlp": 64 * 50 * 2 * 256**2}
"""The same for large networks on a CPU, and what large is: states x layers x width squared of a step; between small and
large ones steps are in inverse proportion. There it saves .16 s a step of such a transformer, and 13 ms of such an MLP
that a kernel takes (benchmarks/results/two_trees_long_cpu.json; another MLP is faster uncompiled), and takes 30 to 40 s
where nothing was compiled before."""
LARGE = 16_384
"""States of a batch (trajectories x steps) from which it is large in this."""
MOST_LETTERS = 32
"""Largest alphabet for which an MLP is compiled on a CPU unasked: with 256 letters, whose laws take most of the time,
compiled steps are slower (benchmarks/results/speed_real_cpu.json); where between 20 and 256 that begins is a guess."""
WIDEST_COMPILED = 1024
"""Widest layers for which that holds on a CPU: with 2,048 a step takes 20 milliseconds and more, mostly in products."""
COMPILED = ("compile", "compile-float32")
"""Ways that compile; the second rounds no factors of products."""
COMPILING = "compiling: the first step takes about half a minute, less where the same was compiled before"
HALVES = "the reward leaves the GPU: it is called between two captured halves of each step"
COMPILABLE = "flow networks by other objectives than eflow, without ways to explore, workers or ranks"
REPLAY_LENGTHS, MAX_CAPTURED_ENV_STEPS = (25, 5, 1), 400
"""Steps in one replay of a CUDA graph (intervals of metrics and checkpoints are mostly multiples of them), and most
steps of the environment in one graph, which holds every operation of each."""


@runtime_checkable
class Stepper(Protocol):
    """Runs steps of a learner."""

    burst: int
    """Number of steps per call that is fastest."""
    notice: str
    """One line for the user on how steps are run; empty where there is nothing to say."""

    def __call__(self, count: int = 1) -> None:
        """Run `count` steps."""
        ...


def pick_device(name: str) -> torch.device:
    """The torch device of a name; `auto` is a GPU where there is one."""
    if not isinstance(name, str):
        raise ValueError(f"device must be a name (auto, cpu, cuda), got {name!r}")
    one_of("device", name, ["auto", "cpu", "cuda"])
    if name == "cuda" and not torch.cuda.is_available():
        raise ValueError("device 'cuda' is not available here: use --device cpu")
    return torch.device("cuda" if name == "cuda" or (name == "auto" and torch.cuda.is_available()) else "cpu")


def choose(learner: Learner, accelerate: str = "auto", insist: bool = True) -> tuple[str, str]:
    """The way to run steps (`eager`, `graph` or one of `COMPILED`), and a notice where another was wanted.

    `auto` chooses by device and by the number of steps of the whole run, so that a resumed run goes on as it was. A way
    that is not available is an error; without `insist`, it is a notice and the default without compiling.
    """
    one_of("accelerate", accelerate, get_args(Accelerate))
    kind = learner.device.type
    pays = learner.compilable and _pays(learner, kind)
    wanted = accelerate if accelerate != "auto" else "compile" if pays else _default_without_compiling(learner)
    why = _obstacle(learner, wanted)
    if why and insist and accelerate != "auto":
        raise ValueError(f"accelerate {accelerate!r} {why}: use {_default_without_compiling(learner)}")
    return (
        (_default_without_compiling(learner), f"accelerate {wanted!r} {why}: steps run without")
        if why
        else (wanted, "")
    )


def _pays(learner: Learner, kind: str) -> bool:
    """Whether compiling saves more time in the whole run than it takes."""
    config = learner.config
    if learner.scores_in_table:
        narrow = kind == "cuda" or config.net.hidden <= WIDEST_COMPILED
        return narrow and config.steps >= COMPILE_FROM_STEPS[kind]
    if kind == "cuda" and config.batch * learner.env.horizon >= LARGE:
        kind = "cuda, large"
    if kind == "cpu" and config.net.encoder != "transformer":
        enough = learner.env.actions <= MOST_LETTERS and config.steps >= _steps_that_pay(learner, "cpu, mlp")
        return enough and isinstance(learner, Trainer) and mlp_fits(learner.env, learner.nets.encoder)
    return config.steps >= (_steps_that_pay(learner, kind) if kind == "cpu" else COMPILE_LONG_FROM_STEPS[kind])


def _steps_that_pay(learner: Learner, kind: str) -> int:
    """Steps from which compiling pays on a CPU where scores are computed, by the work of one."""
    net, states = learner.config.net, learner.config.batch * learner.env.horizon
    fewest = COMPILE_LARGE_FROM_STEPS[kind] * max(1.0, LARGE_WORK[kind] / (states * net.layers * net.hidden**2))
    return min(COMPILE_LONG_FROM_STEPS[kind], math.ceil(fewest))


def _default_without_compiling(learner: Learner) -> str:
    """`graph` where steps can be captured, else `eager`."""
    return "graph" if learner.device.type == "cuda" and (learner.capturable or learner.halves) else "eager"


def _obstacle(learner: Learner, wanted: str) -> str:
    """Why steps cannot be run in a way, for an error message; empty where they can."""
    if wanted == "graph" and learner.device.type != "cuda":
        return "captures steps on a GPU, and this run is on a CPU"
    if wanted == "graph" and not (learner.capturable or learner.halves):
        return "cannot hold steps of this run, which leave the GPU"
    if wanted in COMPILED and not learner.compilable:
        return f"is for {COMPILABLE}"
    missing = compiler_missing(learner.device) if wanted in COMPILED else ""
    return f"needs {missing}, which is not installed" if missing else ""


def stepper(learner: Learner, accelerate: str = "auto", insist: bool = True) -> Stepper:
    """The stepper that runs a learner's steps in the chosen way; on a GPU with TF32 products but `compile-float32`."""
    chosen, notice = choose(learner, accelerate, insist)
    cuda = learner.device.type == "cuda"
    if cuda:
        torch.set_float32_matmul_precision("highest" if chosen == "compile-float32" else "high")
    if chosen in COMPILED:
        learner.rounds_products = chosen == "compile"
        try:
            learner.compile()
            notice = COMPILING
        except NotCompilableError as error:
            if insist and accelerate in COMPILED:
                raise ValueError(f"accelerate {accelerate!r}: {error}: use auto") from error
            chosen, notice = _default_without_compiling(learner), f"{error}: steps run without compiling"
    if chosen == "eager" or not cuda:
        return PlainStep(learner, "; ".join(filter(None, [notice, *refused()])))
    if learner.capturable:
        return GraphedStep(learner, notice)
    if learner.halves:
        return HalvedStep(learner, "; ".join(filter(None, [notice, HALVES])))
    return PlainStep(learner, notice)


def replayed(horizon: int) -> int:
    """Number of steps in one replay of a CUDA graph, by the environment's horizon.

    >>> [replayed(horizon) for horizon in (8, 16, 17, 80, 256, 1000)]
    [25, 25, 5, 5, 1, 1]
    """
    return next((count for count in REPLAY_LENGTHS if count * horizon <= MAX_CAPTURED_ENV_STEPS), 1)


class PlainStep:
    """Runs steps one after the other, without capturing them."""

    burst = 1

    def __init__(self, learner: Learner, notice: str = "") -> None:
        self.learner, self.notice = learner, notice
        self.flushed = float(torch.tensor(1e-40) * 1.0) == 0.0

    def __call__(self, count: int = 1) -> None:
        """Run `count` steps, with denormal numbers flushed to zero.

        Moments of gradients that have died out become denormal, which makes a CPU take half as long again for a step.
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
    """Runs the first steps eagerly (they warm the allocator up), captures some in a CUDA graph, then replays it."""

    WARMUP = 3

    def __init__(self, learner: Learner, notice: str = "") -> None:
        self.learner, self.notice, self.warm = learner, notice, 0
        self.burst = replayed(learner.env.horizon)
        self.graphs: dict[int, torch.cuda.CUDAGraph] = {}
        self.stream = torch.cuda.Stream()

    def __call__(self, count: int = 1) -> None:
        """Run `count` steps, in the longest replays that fit."""
        while count > 0:
            if self.warm < self.WARMUP:
                self._eager()
                done = 1
            else:
                done = next(most for most in REPLAY_LENGTHS if most <= min(count, self.burst))
                if done not in self.graphs:
                    self.graphs[done] = self._capture(done)
                self.graphs[done].replay()
            count -= done

    def _eager(self) -> None:
        with beside(self.stream):
            self.learner.step()
            self.learner.settle()
        self.warm += 1

    def _capture(self, steps: int) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(self.learner.generator)
        with torch.cuda.graph(graph, stream=self.stream):
            for _ in range(steps):
                self.learner.step()
            self.learner.settle()
        return graph


class HalvedStep:
    """Runs steps whose rewards are computed on the host: each half in a CUDA graph, and the reward between them.

    The first steps run eagerly, as in `GraphedStep`. Both graphs have one memory, in which the second finds the batch
    of the first; log-rewards are copied to where the second was captured with them.
    """

    burst = 1

    def __init__(self, learner: Learner, notice: str = "") -> None:
        self.learner, self.notice, self.warm = learner, notice, 0
        self.stream = torch.cuda.Stream()
        self.first: torch.cuda.CUDAGraph | None = None
        self.second: torch.cuda.CUDAGraph | None = None
        self.begun: Any = None
        self.log_rewards: list[Tensor] = []

    def __call__(self, count: int = 1) -> None:
        """Run `count` steps."""
        for _ in range(count):
            if self.warm < GraphedStep.WARMUP:
                with beside(self.stream):
                    self.learner.step()
                self.warm += 1
            else:
                self._replay()

    def _replay(self) -> None:
        """Replay the first half, call the reward, and replay the second; each is captured when it is first reached."""
        if self.first is None:
            self.first = torch.cuda.CUDAGraph()
            self.first.register_generator_state(self.learner.generator)
            with torch.cuda.graph(self.first, stream=self.stream):
                self.begun = self.learner.begin_step()
        self.first.replay()
        found = self.learner.score_step(self.begun)
        if self.second is None:
            self.log_rewards = [part.clone() for part in found]
            self.second = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.second, stream=self.stream, pool=self.first.pool()):
                self.learner.complete_step(self.begun, self.log_rewards)
        else:
            for kept, part in zip(self.log_rewards, found, strict=True):
                kept.copy_(part)
        self.second.replay()


@contextmanager
def beside(stream: torch.cuda.Stream) -> Iterator[None]:
    """Within this context work is queued on another stream, after what the present one has queued and before more."""
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        yield
    torch.cuda.current_stream().wait_stream(stream)
