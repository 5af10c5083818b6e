"""Data-parallel training: each rank rolls out its share of every batch, and gradients are averaged over the ranks.

For losses that are means over trajectories the update is that of one process on the whole batch.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch
import torch.distributed as dist
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sgfn.config import TrainConfig
from sgfn.config.launch import launch
from sgfn.landscapes.tasks import Task
from sgfn.learning.execution import Stepper
from sgfn.learning.learner import MetricsSnapshot
from sgfn.learning.samplers import mixed
from sgfn.learning.trainer import Trainer

SHARED = ("batch", "replay.batch", "dynamics.batch")
"""Settings that count trajectories of all ranks together."""


class RankLost(ValueError):  # noqa: N818 -- says what happened
    """Another rank has ended, so that nothing can be averaged any more."""

    def __init__(self) -> None:
        super().__init__("another rank has ended; --resume continues from the last checkpoint")


@dataclass(frozen=True, kw_only=True)
class Ranks:
    """The processes that train one model together, and which of them this is."""

    rank: int
    count: int

    @property
    def leads(self) -> bool:
        """Whether this one writes the run folder and speaks."""
        return self.rank == 0

    def mean(self, value: Tensor) -> None:
        """Replace a tensor by its mean over all ranks."""
        with _together():
            dist.all_reduce(value)
        value /= self.count

    def total(self, value: Tensor) -> Tensor:
        """The sum of a tensor over all ranks."""
        found = value.detach().clone()
        with _together():
            dist.all_reduce(found)
        return found

    def any(self, flag: bool, device: torch.device) -> bool:
        """Whether a flag is set on some rank."""
        return bool(self.total(torch.tensor(float(flag), device=device)))

    def spread(self, state: dict[str, Tensor] | None) -> dict[str, Tensor]:
        """The state that rank 0 has, on all ranks."""
        box = [None if state is None else {name: value.cpu() for name, value in state.items()}]
        with _together():
            dist.broadcast_object_list(box, 0)
        assert box[0] is not None
        return box[0]


@contextmanager
def _together() -> Iterator[None]:
    """What goes wrong between ranks is that one has gone, whatever the library says of it."""
    try:
        yield
    except RuntimeError as error:
        raise RankLost from error


def launched() -> Ranks | None:
    """The ranks that torchrun has started this process among; None where it has not, or where there is only one."""
    found = launch()
    return None if found is None else Ranks(rank=found[0], count=found[1])


@contextmanager
def joined(ranks: Ranks | None, device: torch.device) -> Iterator[None]:
    """Connect the ranks while the block runs: by gloo on CPUs, by NCCL on GPUs, each of which has its own."""
    if ranks is None:
        yield
        return
    if device.type == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield
    finally:
        dist.destroy_process_group()


def share_of(config: TrainConfig, count: int) -> TrainConfig:
    """The settings of one rank: its share of whatever counts trajectories of a step."""
    shares: dict[str, int] = {}
    for name in SHARED:
        part, _, field = name.rpartition(".")
        total = getattr(getattr(config, part) if part else config, field)
        if total % count:
            raise ValueError(f"{name} {total} is no multiple of the {count} ranks that share it")
        shares[name.replace(".", "__")] = total // count
    if config.offline_batch % count:
        raise ValueError(f"offline.share makes {config.offline_batch} trajectories, no multiple of {count} ranks")
    return config.with_(**shares)


def check_ranks(task: Task) -> None:
    """Refuse what ranks would do each for itself, and differ by."""
    config = task.config
    if config.method != "gfn":
        raise ValueError(f"torchrun trains flow networks (--method gfn), not {config.method!r}")
    if config.aim is not None:
        raise ValueError("aim finds the exponent by the batches of one process: give --beta with torchrun")
    if config.exploration not in ("constant", "entropy"):
        raise ValueError(f"exploration {config.exploration!r} keeps an archive in one process: leave it out")
    if config.actors or task.landscape.scores_ahead:
        raise ValueError("torchrun, and actors or workers of a reward: take one of them")


class ParallelTrainer(Trainer):
    """The trainer of one rank: its share of a batch, and gradients averaged over all ranks before they are clipped."""

    def __init__(
        self, task: Task, device: torch.device, offline: Int[Tensor, "N O"] | None = None, *, ranks: Ranks
    ) -> None:
        check_ranks(task)
        self.ranks, self.whole = ranks, task.config
        super().__init__(replace(task, config=share_of(task.config, ranks.count)), device, offline)
        for optimiser in self.optimisers().values():
            optimiser.reduce = ranks.mean

    def weighed(self, mean: Float[Tensor, ""], valid: Bool[Tensor, "B T"]) -> Float[Tensor, ""]:
        """A mean over the valid steps of this rank, times its share in those of all ranks over an equal share."""
        own = valid.sum().to(mean.dtype)
        return mean * (own * self.ranks.count / self.ranks.total(own))

    def step(self) -> None:
        """Make a step with random numbers that seed, rank and number of the step decide."""
        self.generator.manual_seed(mixed(self.config.seed, self.ranks.rank, int(self.index)))
        super().step()

    def snapshot(self) -> MetricsSnapshot:
        """Means of the meters over all ranks."""
        self.ranks.mean(self.meters)
        return super().snapshot()

    @property
    def batch(self) -> int:
        """Trajectories per step, of all ranks together."""
        return self.whole.batch

    @property
    def trajectories(self) -> int:
        """Environment calls so far, of all ranks."""
        return super().trajectories * self.ranks.count

    @property
    def has_law(self) -> bool:
        """Whether `law` works; one rank that computes it is enough."""
        return self.ranks.leads and super().has_law

    @property
    def compilable(self) -> bool:
        """Compiled steps do not average gradients."""
        return False

    @property
    def capturable(self) -> bool:
        """Captured steps do not average gradients."""
        return False

    @property
    def halves(self) -> bool:
        """Neither do their halves."""
        return False


class AgreedStep:
    """Runs steps on all ranks, and tells each where one of them was asked to stop: they stop after the same step."""

    def __init__(
        self, advance: Stepper, trainer: ParallelTrainer, asked: Callable[[], bool], stop: Callable[[], None]
    ) -> None:
        self.advance, self.trainer, self.asked, self.stop = advance, trainer, asked, stop
        self.burst, self.notice = advance.burst, advance.notice

    def __call__(self, count: int = 1) -> None:
        """Run `count` steps, then agree."""
        self.advance(count)
        if self.trainer.ranks.any(self.asked(), self.trainer.device):
            self.stop()
