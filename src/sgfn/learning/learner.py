"""Learners: the interface of a method on a task that training, run folders, evaluation and sampling use."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor, nn

from sgfn.config.checks import is_ours
from sgfn.envs import laws
from sgfn.envs.base import check_states
from sgfn.envs.checks import check_env
from sgfn.envs.tabulated import TabulatedEnv, tabulate
from sgfn.envs.trajectories import Samples, finished, gathered
from sgfn.landscapes.checks import check_parts
from sgfn.landscapes.tasks import Task
from sgfn.learning.optimisation import Optimiser
from sgfn.learning.rollout import LogPolicy, Policy, rollout
from sgfn.learning.table_sampling import MOST_STATES, TableSampler, look_up

SMALL, NARROW = 1024, 256
"""States of a batch (trajectories x steps) from which a second CPU thread makes steps faster, for layers of this width:
128 trajectories of DNA 8-mers, 21 of 50 residues."""
SAMPLE_BLOCK = 16384
StatesDone = Callable[[int], object]
"""Called with the number of states that have been evaluated since it was called last."""


class NonFiniteError(RuntimeError):
    """The loss or a weight is infinite or not a number.

    Commands are told of flags and checkpoints; `in_python` says it to whoever trains in memory.
    """

    def __init__(self, what: str, fix: str | None = None) -> None:
        flags = "lower --optim.lr or --beta, or raise --reward.minimum"
        super().__init__(f"{what}; the last good checkpoint, if any, is kept: {fix or flags}")
        self.in_python = f"{what}: {fix or 'lower optim__lr or beta, or raise reward__minimum'}"


@dataclass(frozen=True, kw_only=True)
class MetricsSnapshot:
    """Metrics at one step, while they are copied from the device."""

    names: tuple[str, ...]
    values: Float64[Tensor, " N"]
    """In the order of the names, then whether all weights are finite; to be read after `arrived`."""
    arrived: torch.cuda.Event | None
    step: int


def announced(states: Int[Tensor, "N S"], size: int, told: StatesDone | None) -> Iterator[Int[Tensor, "n S"]]:
    """Blocks of states; `told` is called when the next one is asked for, as the last one is done then."""
    for block in states.split(size):
        yield block
        if told is not None:
            told(len(block))


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Within this context CPU random numbers depend on the seed alone; the caller's random state is restored."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield


class Learner(ABC):
    """A method on a task: its state on a device, a step that never waits for the device, and metrics.

    A subclass has networks (`modules`), their `optimisers`, and whatever else the next step depends on (`memory`).
    """

    bound_by_floor: bool = True
    """Whether samples are outcomes of a policy under noise, so that no law is nearer to the target than the floor."""

    def __init__(self, task: Task, device: torch.device, meters: tuple[str, ...]) -> None:
        self.task, self.config, self.device = task, task.config, device
        task.landscape.to(device)
        check_parts(task, device)
        self.env = tabulate(task.env, device)
        if self.env is task.env and device.type != "cpu" and not (is_ours(task.env) and is_ours(task.env.noise)):
            check_env(task.env, device)  # it is asked there in every step
        self.generator = torch.Generator(device).manual_seed(self.config.seed)
        self.index = torch.zeros((), device=device, dtype=torch.float64)  # the step's number, for schedules
        self.meter_names = meters
        self.meters = torch.zeros(len(meters) + 1, device=device)
        self.done = 0

    @abstractmethod
    def step(self) -> None:
        """Make one batch of environment calls and learn from it."""

    def settle(self) -> None:
        """Make the device wait for work of earlier steps that runs on a side stream; by default there is none."""
        return

    @abstractmethod
    def state_policy(self) -> LogPolicy | None:
        """log pi(.|s) as a function of the state; None where there is no policy, or where it depends on the history."""

    def actor(self) -> Policy:
        """The actor of a rollout, at the present weights."""
        policy = self.state_policy()
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
        """Whether a step may be captured in a CUDA graph: not where scores are computed on the host."""
        return not self.task.landscape.on_host

    @property
    def halves(self) -> bool:
        """Whether a step may be captured in two halves, between which rewards are computed on the host."""
        return False

    def begin_step(self) -> Any:
        """The first half of `step`: a batch that is not scored."""
        raise NotImplementedError(f"{type(self).__name__} makes a step in one piece")

    def score_step(self, begun: Any) -> list[Tensor]:
        """Log-rewards of a batch that `begin_step` made."""
        raise NotImplementedError(f"{type(self).__name__} makes a step in one piece")

    def complete_step(self, begun: Any, log_rewards: list[Tensor]) -> None:
        """The second half of `step`."""
        raise NotImplementedError(f"{type(self).__name__} makes a step in one piece")

    @property
    def small(self) -> bool:
        """Whether steps are so small that they are fastest on one CPU thread."""
        states = self.config.batch * self.env.horizon
        return states * max(1.0, self.config.net.hidden / NARROW) ** 2 < SMALL

    rounds_products: bool = False
    """Whether compiled steps on a CPU may round factors of the gradient's products to bfloat16."""

    @property
    def compilable(self) -> bool:
        """Whether `compile` may be called."""
        return False

    @property
    def scores_in_table(self) -> bool:
        """Whether the scores of all objects are in a table, so that a whole step is compiled as one."""
        return True

    def compile(self) -> None:
        """Compile the expensive parts of a step; compilation happens in the next step."""
        raise NotImplementedError(f"{type(self).__name__} cannot be compiled")

    @property
    def exponent(self) -> float:
        """The reward exponent of the target that is trained towards; waits for the device where it is being found."""
        return self.task.beta

    @property
    def batch(self) -> int:
        """Trajectories per step, of all ranks together."""
        return self.config.batch

    @property
    def trajectories(self) -> int:
        """Environment calls made so far."""
        return self.done * self.config.batch

    # metrics

    def record(self, *values: Tensor) -> None:
        """Add one step to the meters, in the order of their names."""
        self.meters += torch.stack([*(v.detach().to(torch.float32) for v in values), torch.ones_like(self.meters[0])])

    def snapshot(self) -> MetricsSnapshot:
        """Means of the meters since the last snapshot, and `readings`, without waiting for the device."""
        sums, count = self.meters[:-1].double(), self.meters[-1].double().clamp(min=1.0)
        readings = {name: value.detach().to(self.device, torch.float64) for name, value in self.readings().items()}
        values = torch.cat([sums / count, torch.stack([*readings.values(), self._finite().double()])])
        self.meters.zero_()
        values, arrived = values.to("cpu", non_blocking=True), None
        if self.device.type == "cuda":
            arrived = torch.cuda.Event()
            arrived.record()
        return MetricsSnapshot(names=(*self.meter_names, *readings), values=values, arrived=arrived, step=self.done)

    def read_snapshot(self, snapshot: MetricsSnapshot) -> dict[str, float]:
        """Metrics by name of a snapshot, once they have arrived; raises if one, or a weight, is not finite."""
        if snapshot.arrived is not None:
            snapshot.arrived.synchronize()
        *means, finite = snapshot.values.tolist()
        found = dict(zip(snapshot.names, means, strict=True))
        if not (finite and all(math.isfinite(value) for value in means)):
            self.raise_non_finite(found, snapshot.step)
        return found

    def read_meters(self) -> dict[str, float]:
        """Means of the meters since the last snapshot, and `readings`; waits for the device."""
        return self.read_snapshot(self.snapshot())

    def readings(self) -> dict[str, Tensor]:
        """Metrics of the present state, which are not means over steps."""
        return {}

    def live(self) -> dict[str, float]:
        """Figures of this moment for a progress bar alone; they depend on the clock."""
        return self.task.landscape.live()

    def close(self) -> None:
        """End processes that the task's rewards were computed in."""
        self.task.landscape.close()

    def _finite(self) -> Tensor:
        """Whether all weights are finite numbers."""
        weights = [p for module in self.modules().values() for p in module.parameters()]
        return torch.stack([(p * 0.0).sum() for p in weights] or [torch.zeros((), device=self.device)]).isfinite().all()

    def check_finite(self) -> None:
        """Raise if a weight is not finite."""
        if not bool(self._finite()):
            self.raise_non_finite({}, self.done)

    def raise_non_finite(self, found: dict[str, float], step: int) -> NoReturn:
        """Raise because a loss, a weight or a law is not finite any more; `found` are metrics by name."""
        what = f"training left the finite numbers near step {step} (loss {found.get('loss', math.nan):g})"
        if not math.isfinite(found.get("log_reward", 0.0)) and not is_ours(self.task.landscape):
            whose = type(self.task.landscape).__name__
            raise NonFiniteError(what, f"{whose} gave a score that is no finite number of 0 or above, mend it")
        raise NonFiniteError(what)

    def calibrated(self, batch: int, seed: int) -> dict[str, float | None]:
        """Kind, likelihood and distance of the noise model on the policy's trajectories; None without a model."""
        return dict.fromkeys(("dynamics_model", "dynamics_nll", "dynamics_entropy", "dynamics_tv"))

    def kernels(self, batch: int, seed: int) -> dict[str, list[list[float | None]]] | None:
        """Mean true and learned noise by intention on the policy's trajectories; None where none is learned."""
        return None

    @property
    def why_no_law(self) -> str:
        """Why `law` is not to be had, where it is not; empty where it is."""
        return "" if self.has_law else "the method has no policy of the state"

    # laws and samples

    @property
    def block(self) -> int:
        """States scored at once outside of training."""
        return 65536

    @torch.no_grad()
    def policy(self, states: Int[Tensor, "N S"], told: StatesDone | None = None) -> Float[Tensor, "N A"]:
        """Probabilities of intentions at raw states, computed in blocks, after each of which `told` is called."""
        check_states(self.task.env, states)
        log_policy = self.state_policy()
        assert log_policy is not None
        blocks = [log_policy(self.env.embed(block).to(self.device)) for block in announced(states, self.block, told)]
        return torch.cat([found.exp().cpu() for found in blocks]).double()

    @property
    def has_law(self) -> bool:
        """Whether `law` works on an enumerable task."""
        return self.state_policy() is not None

    @torch.no_grad()
    def law(self, told: StatesDone | None = None) -> Float[Tensor, " N"]:
        """Exact law of the current policy under the true noise; `told` is called while states are evaluated."""
        log_policy = self.state_policy()
        if not isinstance(self.env, TabulatedEnv) or log_policy is None:
            return laws.law(laws.check_size(self.task.env), partial(self.policy, told=told))
        return self.env.law(self._policy_table(self.env, log_policy, told)).cpu()

    def _policy_table(
        self, env: TabulatedEnv, log_policy: LogPolicy, told: StatesDone | None = None
    ) -> Float[Tensor, "M A"]:
        """Probabilities at all unfinished states of a tabulated environment."""
        rows = torch.arange(env.num_states, device=self.device)[:, None]
        return torch.cat([log_policy(block).exp() for block in announced(rows, self.block, told)])

    def draw(self, n: int, seed: int) -> Samples:
        """Samples of the policy in its noisy environment, without exploration."""
        return gathered(list(self.stream(n, seed)))

    @torch.no_grad()
    def stream(self, n: int, seed: int) -> Iterator[Samples]:
        """The samples of `draw` in blocks, so that memory does not grow with n."""
        generator = torch.Generator(self.device).manual_seed(seed)
        log_policy, block = self.state_policy(), min(SAMPLE_BLOCK, self.block)
        draw = self._roll
        if isinstance(self.env, TabulatedEnv) and self.env.num_states <= MOST_STATES and log_policy is not None:
            policy = self._policy_table(self.env, log_policy)
            if self.env.noise.has_hidden_rate:  # outcomes cannot be tabulated: each episode has a rate
                draw = partial(self._roll, actor=look_up(policy))
            else:
                block = SAMPLE_BLOCK * (1 if self.device.type == "cpu" else 16)
                draw = TableSampler(self.env, policy, self.task.landscape, block).draw
        for start in range(0, n, block):
            yield draw(min(block, n - start), generator)

    def _roll(self, count: int, generator: torch.Generator, actor: Policy | None = None) -> Samples:
        """Samples by `count` rollouts of an actor, by default the learner's own."""
        env, actor = self.env, self.actor() if actor is None else actor  # one with a memory is not used twice
        batch = rollout(env, actor, self.task.landscape.scores, batch=count, generator=generator)
        return finished(env, batch)

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
        """Load the weights, which is enough to sample and to evaluate."""
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
        if mine["meters"].shape == self.meters.shape:  # else of a version that logged other figures
            self.meters.copy_(mine["meters"])
        self.done = int(mine["done"])
        self.generator.set_state(mine["generator"].cpu())


def part_of(state: dict[str, Tensor], name: str) -> dict[str, Tensor]:
    """The tensors whose names begin with a part's name."""
    return {key.partition(".")[2]: value for key, value in state.items() if key.startswith(name + ".")}


def copy_into(kept: dict[str, Tensor], saved: dict[str, Tensor], name: str) -> None:
    """Copy saved tensors into those of the same name, shape and type; raises where they differ."""
    mine, theirs = ({key: (value.shape, value.dtype) for key, value in part.items()} for part in (kept, saved))
    if mine != theirs:
        raise RuntimeError(f"the {name} differs")
    for key, value in saved.items():
        kept[key].copy_(value)
