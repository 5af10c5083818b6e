"""A method at work on a task: what training, run folders, evaluation, sampling and comparison need of it."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import NoReturn

import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor, nn

from sgfn.envs import laws
from sgfn.envs.tabulated import TabulatedEnv, tabulate
from sgfn.envs.trajectories import Samples, gathered
from sgfn.landscapes.tasks import Task
from sgfn.learning.optimisation import Optimiser
from sgfn.learning.rollout import LogPolicy, Policy, rollout
from sgfn.learning.table_sampling import MOST_STATES, TableSampler, look_up
from sgfn.noise import HiddenRate

SMALL, NARROW = 128, 256
"""Trajectories in a batch from which on a second thread gains something, in layers no wider than this."""
SAMPLE_BLOCK = 16384


class NonFiniteError(RuntimeError):
    """The loss or a weight stopped being a number."""


@dataclass(frozen=True, kw_only=True)
class MetricsSnapshot:
    """Figures of one moment, on their way from the device."""

    names: tuple[str, ...]
    values: Float64[Tensor, " N"]
    """In the order of the names, then whether all weights are finite; there when `arrived` says so."""
    arrived: torch.cuda.Event | None
    step: int


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Networks made here depend on the seed alone; the caller's random state, a GPU's included, stays as it is."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield


class Learner(ABC):
    """State that lives on the device, a step that never waits for it, and figures that are read now and then.

    A subclass has networks (`modules`), their `optimisers`, and whatever else the next step depends on (`memory`).
    """

    bound_by_floor: bool = True
    """Whether what counts as samples is what a policy lets happen, so that no law is nearer than the floor."""

    def __init__(self, task: Task, device: torch.device, meters: tuple[str, ...]) -> None:
        self.task, self.config, self.device = task, task.config, device
        self.env = tabulate(task.env, device)
        task.landscape.to(device)
        self.generator = torch.Generator(device).manual_seed(self.config.seed)
        self.index = torch.zeros((), device=device, dtype=torch.float64)  # the step's number, for schedules
        self.meter_names = meters
        self.meters = torch.zeros(len(meters) + 1, device=device)
        self.done = 0

    @abstractmethod
    def step(self) -> None:
        """One batch of environment calls, and what is learned from it."""

    def settle(self) -> None:
        """What is asked of the device from here on comes after all that the steps so far have left for later."""
        return

    @abstractmethod
    def memoryless(self) -> LogPolicy | None:
        """The policy as a function of the state alone; None where there is none, or where it remembers."""

    def actor(self) -> Policy:
        """Who acts in a rollout, at the present weights."""
        policy = self.memoryless()
        if policy is None:
            raise NotImplementedError(f"{type(self).__name__} has no policy")
        return policy

    def modules(self) -> dict[str, nn.Module]:
        """Networks by name."""
        return {}

    def optimisers(self) -> dict[str, Optimiser]:
        """Optimisers by name."""
        return {}

    def memory(self) -> dict[str, dict[str, Tensor]]:
        """Other tensors that the next step depends on, by part and name; they are changed in place only."""
        return {}

    @property
    def capturable(self) -> bool:
        """Whether a step may be captured in a CUDA graph: unless scores come from the host."""
        return not self.task.landscape.on_host

    @property
    def small(self) -> bool:
        """Whether steps are so small that more than one thread of a CPU is of no use."""
        return self.config.batch * max(1.0, self.config.net.hidden / NARROW) ** 2 < SMALL

    @property
    def compilable(self) -> bool:
        """Whether `compile` does anything."""
        return False

    def compile(self) -> None:
        """From now on all that is heavy in a step runs compiled; the first step then takes its time."""
        raise NotImplementedError(f"{type(self).__name__} cannot be compiled")

    @property
    def trajectories(self) -> int:
        """Environment calls made so far."""
        return self.done * self.config.batch

    # figures

    def record(self, *values: Tensor) -> None:
        """Add one step to the meters, in the order of their names."""
        self.meters += torch.stack([*(v.detach().to(torch.float32) for v in values), torch.ones_like(self.meters[0])])

    def glance(self) -> MetricsSnapshot:
        """Means since the last one, and all else that a line of metrics says, without waiting for the device."""
        sums, count = self.meters[:-1].double(), self.meters[-1].double().clamp(min=1.0)
        readings = {name: value.detach().to(self.device, torch.float64) for name, value in self.readings().items()}
        values = torch.cat([sums / count, torch.stack([*readings.values(), self._finite().double()])])
        self.meters.zero_()
        values, arrived = values.to("cpu", non_blocking=True), None
        if self.device.type == "cuda":
            arrived = torch.cuda.Event()
            arrived.record()
        return MetricsSnapshot(names=(*self.meter_names, *readings), values=values, arrived=arrived, step=self.done)

    def read(self, glance: MetricsSnapshot) -> dict[str, float]:
        """What a glance saw; raises if training had left the finite numbers."""
        if glance.arrived is not None:
            glance.arrived.synchronize()
        *means, finite = glance.values.tolist()
        found = dict(zip(glance.names, means, strict=True))
        if not (finite and all(math.isfinite(value) for value in means)):
            self._complain(found.get("loss", math.nan), glance.step)
        return found

    def read_meters(self) -> dict[str, float]:
        """Means of the meters since the last reading, and the other figures of a line; waits for the device."""
        return self.read(self.glance())

    def readings(self) -> dict[str, Tensor]:
        """Figures of the present moment, which are no means over steps."""
        return {}

    def _finite(self) -> Tensor:
        """Whether all weights are finite numbers."""
        weights = [p for module in self.modules().values() for p in module.parameters()]
        return torch.stack([p.isfinite().all() for p in weights] or [torch.ones((), device=self.device).bool()]).all()

    def check_finite(self) -> None:
        """Raise if a weight is not a number any more."""
        if not bool(self._finite()):
            self._complain(math.nan, self.done)

    def _complain(self, loss: float, step: int) -> NoReturn:
        raise NonFiniteError(
            f"training left the finite numbers near step {step} (loss {loss:g}); "
            "the last good checkpoint, if any, is kept: lower --optim.lr or --beta, or raise --reward.minimum"
        )

    def calibrated(self, batch: int, seed: int) -> dict[str, float | None]:
        """How good the noise model is on trajectories of the policy; nulls where there is none."""
        return dict.fromkeys(("dynamics_model", "dynamics_nll", "dynamics_entropy", "dynamics_tv"))

    # what comes out

    @property
    def block(self) -> int:
        """States scored at once outside of training."""
        return 65536

    @torch.no_grad()
    def policy(self, states: Int[Tensor, "N S"]) -> Float[Tensor, "N A"]:
        """Probabilities at states as enumeration gives them, in blocks."""
        log_policy = self.memoryless()
        assert log_policy is not None
        blocks = [log_policy(self.env.embed(block).to(self.device)) for block in states.split(self.block)]
        return torch.cat([found.exp().cpu() for found in blocks]).double()

    @property
    def has_law(self) -> bool:
        """Whether `law` can be had on an enumerable task."""
        return self.memoryless() is not None

    @torch.no_grad()
    def law(self) -> Float[Tensor, " N"]:
        """Exact law of the current policy under the true noise."""
        log_policy = self.memoryless()
        if not isinstance(self.env, TabulatedEnv) or log_policy is None:
            return laws.law(laws.check_size(self.task.env), self.policy)
        return self.env.law(self._everywhere(self.env, log_policy)).cpu()

    def _everywhere(self, env: TabulatedEnv, log_policy: LogPolicy) -> Float[Tensor, "M A"]:
        """Probabilities at all unfinished states of a tabulated environment."""
        rows = torch.arange(env.num_states, device=self.device)[:, None]
        return torch.cat([log_policy(block).exp() for block in rows.split(self.block)])

    def draw(self, n: int, seed: int) -> Samples:
        """Run the policy in its noisy environment, without exploration."""
        return gathered(list(self.stream(n, seed)))

    @torch.no_grad()
    def stream(self, n: int, seed: int) -> Iterator[Samples]:
        """What `draw` draws, a block at a time: memory does not grow with n."""
        generator = torch.Generator(self.device).manual_seed(seed)
        log_policy, block = self.memoryless(), min(SAMPLE_BLOCK, self.block)
        draw = self._roll
        if isinstance(self.env, TabulatedEnv) and self.env.num_states <= MOST_STATES and log_policy is not None:
            policy = self._everywhere(self.env, log_policy)
            if isinstance(self.env.noise, HiddenRate):  # outcomes cannot be tabulated: each episode has a rate
                draw = partial(self._roll, actor=look_up(policy))
            else:
                block = SAMPLE_BLOCK * (1 if self.device.type == "cpu" else 16)
                draw = TableSampler(self.env, policy, self.task.landscape, block).draw
        for start in range(0, n, block):
            yield draw(min(block, n - start), generator)

    def _roll(self, count: int, generator: torch.Generator, actor: Policy | None = None) -> Samples:
        """Samples by so many rollouts of an actor."""
        env, actor = self.env, self.actor() if actor is None else actor  # a memory is never passed on
        batch = rollout(env, actor, self.task.landscape.scores, batch=count, generator=generator)
        return Samples(
            objects=env.objects(batch.states[:, -1]).cpu(),
            scores=batch.log_reward.cpu(),  # scores, as asked for above
            intended=torch.where(batch.valid, batch.intended, -1).cpu(),
        )

    # checkpoints

    def state(self) -> dict[str, Tensor]:
        """Everything the next step depends on, as named tensors."""
        parts: dict[str, dict[str, Tensor]] = {name: m.state_dict() for name, m in self.modules().items()}
        parts |= {name: optimiser.state() for name, optimiser in self.optimisers().items()} | self.memory()
        parts["self"] = {
            "index": self.index,
            "meters": self.meters,
            "done": torch.tensor(self.done),
            "cuda": torch.tensor(self.device.type == "cuda"),
            "generator": self.generator.get_state(),
        }
        return {f"{part}.{name}": value.detach() for part, named in parts.items() for name, value in named.items()}

    def load_networks(self, state: dict[str, Tensor]) -> None:
        """Weights, and what was remembered: enough to sample and to evaluate."""
        for name, module in self.modules().items():
            module.load_state_dict(part_of(state, name))

    def load(self, state: dict[str, Tensor]) -> None:
        """Continue from a saved state."""
        self.load_networks(state)
        mine = part_of(state, "self")
        if int(mine["cuda"]) != (self.device.type == "cuda"):
            there = "cuda" if self.device.type == "cpu" else "cpu"
            raise ValueError(f"the run was trained on {there}: continue it with --device {there}")
        for name, optimiser in self.optimisers().items():
            optimiser.load({key: value.to(self.device) for key, value in part_of(state, name).items()})
        memory, named = self.memory(), {"self", *self.modules(), *self.optimisers()}
        for name in sorted({key.partition(".")[0] for key in state} - named | memory.keys()):
            copy_into(memory.get(name, {}), part_of(state, name), name)
        self.index.copy_(mine["index"])
        self.meters.copy_(mine["meters"])
        self.done = int(mine["done"])
        self.generator.set_state(mine["generator"].cpu())


def part_of(state: dict[str, Tensor], name: str) -> dict[str, Tensor]:
    """The tensors whose names begin with a part's name."""
    return {key.partition(".")[2]: value for key, value in state.items() if key.startswith(name + ".")}


def copy_into(kept: dict[str, Tensor], saved: dict[str, Tensor], name: str) -> None:
    """Put saved tensors in the place of those of the same name and shape."""
    if {key: value.shape for key, value in kept.items()} != {key: value.shape for key, value in saved.items()}:
        raise RuntimeError(f"the {name} differs")
    for key, value in saved.items():
        kept[key].copy_(value)
