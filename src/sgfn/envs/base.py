"""Environments: objects built step by step. Eight methods and a few numbers make one; all else has a default."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sgfn.envs.automaton import Automaton
from sgfn.noise import Noise, UniformSlip
from sgfn.noise.operators import DenseKernel, Kernel

State = Int[Tensor, "*batch S"]


class Env(ABC):
    """A space of objects built step by step: intentions become outcomes by the kernel, outcomes move the state.

    A state is a row of `width` integers, an object (what a landscape scores) a row of `object_width`. States that are
    done stay as they are under `apply`, and every action counts as legal there, so that padded steps stay finite. All
    methods are batched over any leading dimensions.

    An environment of one's own sets `actions`, `horizon` and `width` and writes `initial`, `done`, `legal`, `apply`,
    `parents`, `encode`, `objects` and `decode`; `Enumerable` adds what exact answers need. Noise that depends on the
    state is written by overriding `kernel`: whatever simulates, learns, scores or evaluates asks that.
    """

    actions: int
    """A: number of intentions."""
    horizon: int
    """T: steps of the longest trajectory."""
    width: int
    """S: integers in a state."""
    tree: bool = False
    """Whether each state has exactly one parent."""
    distance: str = "hamming"
    """How objects are compared when modes are counted: hamming or l1."""
    noise: Noise = UniformSlip(alpha=0.0)
    unmasked: bool = False
    """Whether every action is legal, and every outcome possible, in every state."""
    automaton: Automaton | None = None
    """Which objects satisfy the constraints on sequences, where there are some."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls.operator is not Env.operator and cls.kernel is Env.kernel:
            raise TypeError(f"{cls.__name__} overrides operator alone: noise is written in kernel, override that one")

    # what every environment has

    @abstractmethod
    def initial(self, batch: int, device: torch.device | str = "cpu") -> Int[Tensor, "B S"]:
        """The root state, once per trajectory."""

    @abstractmethod
    def done(self, state: State) -> Bool[Tensor, "*batch"]:
        """Whether the state is a finished object."""

    @abstractmethod
    def legal(self, state: State) -> Bool[Tensor, "*batch A"]:
        """Which actions may be intended."""

    @abstractmethod
    def apply(self, state: State, outcome: Int[Tensor, "*batch"]) -> State:
        """The next state: deterministic, given the outcome."""

    @abstractmethod
    def parents(self, state: State) -> Bool[Tensor, "*batch K"]:
        """Which outcomes may have led here; at the root, which has none, every entry is true."""

    @abstractmethod
    def encode(self, state: State) -> Float[Tensor, "*batch F"]:
        """The features that a network reads."""

    @abstractmethod
    def objects(self, state: State) -> Int[Tensor, "*batch O"]:
        """The object a finished state stands for."""

    @abstractmethod
    def decode(self, objects: Int[Tensor, "N O"]) -> list[str]:
        """Objects as text."""

    # sizes that follow from others

    @cached_property
    def outcomes(self) -> int:
        """K: number of outcomes; as many as intentions, unless noise turns one set into another."""
        return self.actions

    @property
    def intends_outcomes(self) -> bool:
        """Whether intentions are outcomes: what is meant has the number of what then happens without noise."""
        return self.actions == self.outcomes

    @cached_property
    def object_width(self) -> int:
        """O: integers in an object."""
        return self.objects(self.initial(1)).shape[-1]

    @cached_property
    def features(self) -> int:
        """F: width of `encode`."""
        return self.encode(self.initial(1)).shape[-1]

    # noise

    def kernel(
        self, state: State, dtype: torch.dtype = torch.float32, rate: float | Float[Tensor, "*batch"] | None = None
    ) -> Float[Tensor, "*batch A K"]:
        """P(k|s,a) for every intention and outcome: the one place where noise is written.

        With a rate, the kernel of an episode whose hidden rate it is.
        """
        return self._by_noise(state, dtype, rate).matrix()

    @property
    def noise_summary(self) -> str:
        """The noise in a few words."""
        return "noise that depends on the state" if self.noise_by_state else self.noise.summary

    @property
    def noise_by_state(self) -> bool:
        """Whether `kernel` is overridden, so that noise may depend on anything in the state."""
        return type(self).kernel is not Env.kernel

    def operator(
        self, state: State, dtype: torch.dtype = torch.float32, rate: float | Float[Tensor, "*batch"] | None = None
    ) -> Kernel:
        """The same kernel as an operator: without a matrix per state, unless `kernel` is overridden."""
        if self.noise_by_state:
            return DenseKernel(self.kernel(state, dtype, rate))
        return self._by_noise(state, dtype, rate)

    def _by_noise(self, state: State, dtype: torch.dtype, rate: float | Tensor | None) -> Kernel:
        # noise that needs the position says so where there is none
        position = self.position(state) if self.noise.by_position and self.counts_steps else None
        return self.noise.operator(self.slippable(state), dtype, position, rate)

    @property
    def counts_steps(self) -> bool:
        """Whether `position` is overridden, so that noise may depend on it."""
        return type(self).position is not Env.position

    def slippable(self, state: State) -> Bool[Tensor, "*batch A"]:
        """The set within which noise may replace one action by another: all that is legal, until the object is done."""
        return self.legal(state) & ~self.done(state)[..., None]

    def possible(self, state: State) -> Bool[Tensor, "*batch K"]:
        """Which outcomes may happen: those that may be intended, unless intentions are another set."""
        if self.outcomes != self.actions:
            raise ValueError(
                f"{type(self).__name__} has {self.actions} intentions and {self.outcomes} outcomes: add `possible`"
            )
        return self.legal(state)

    # what only some uses need

    def is_state(self, state: State) -> Bool[Tensor, "*batch"]:
        """Whether rows of integers are states; what is none is refused by whoever is asked about it. By default all
        count as states."""
        return torch.ones(state.shape[:-1], dtype=torch.bool, device=state.device)

    def position(self, state: State) -> Int[Tensor, "*batch"]:
        """How many steps were made, for noise that depends on it."""
        raise ValueError(f"noise by position needs a method `position` of {type(self).__name__}")

    def parent(self, state: State, outcome: Int[Tensor, "*batch"]) -> State:
        """The state before an outcome, meaningful only where `parents` holds; for the published form."""
        raise ValueError(f"the published form needs a method `parent` of {type(self).__name__}: use form marginal")

    def toward(self, state: State, goal: Int[Tensor, "*batch O"]) -> Float[Tensor, "*batch K"]:
        """A law over the outcomes that lead from the state to an object, for replaying known objects."""
        raise ValueError(f"known objects need a method `toward` of {type(self).__name__}")

    def parse(self, texts: list[str]) -> Int[Tensor, "N O"]:
        """Text as objects; raises ValueError with the number of the first bad entry."""
        raise ValueError(f"reading objects needs a method `parse` of {type(self).__name__}")

    def support(self, state: State) -> Bool[Tensor, "*batch K A"]:
        """Which (outcome, intention) pairs may have led to the state: parents whose kernel is positive there."""
        columns = []
        for k in range(self.outcomes):
            outcome = torch.full(state.shape[:-1], k, dtype=torch.int64, device=state.device)
            columns.append(self.operator(self.parent(state, outcome)).log_column(outcome) > -torch.inf)
        return torch.stack(columns, -2) & self.parents(state)[..., None]

    def _may_lead(self, state: State) -> Bool[Tensor, "*batch K A"]:
        """Which intentions may lead to each outcome from the state."""
        kernel, outcomes = self.operator(state), torch.arange(self.outcomes, device=state.device)
        return torch.stack([kernel.log_column(k.expand(state.shape[:-1])) > -torch.inf for k in outcomes], -2)

    def admissible(self, objects: Int[Tensor, "*batch O"]) -> Bool[Tensor, "*batch"] | None:
        """Which objects are what is asked for: those that satisfy the constraints; None where all are."""
        return None if self.automaton is None else self.automaton.feasible(objects)

    def embed(self, raw: State) -> State:
        """A state in the coding that this environment works with; raw states are their own."""
        return raw

    def unrolled(self, realised: Int[Tensor, "B T"]) -> tuple[Int[Tensor, "B T+1 S"], Bool[Tensor, "B T"]]:
        """The states that a table of outcomes passes through, and which steps are valid."""
        state = self.initial(realised.shape[0], realised.device)
        states, valid = [state], []
        for outcome in realised.unbind(1):
            done = self.done(state)
            if all_known(done):
                rest = realised.shape[1] - len(valid)
                states, valid = [*states, *[state] * rest], [*valid, *[~done] * rest]
                break
            valid.append(~done)
            state = self.apply(state, outcome)
            states.append(state)
        return torch.stack(states, 1), torch.stack(valid, 1)


def free_to_look(device: torch.device) -> bool:
    """Whether a step may depend on values: on a GPU the host would wait for them, and a compiled step cannot."""
    return device.type == "cpu" and not torch.compiler.is_compiling()


def all_known(flags: Bool[Tensor, "*batch"]) -> bool:
    """Whether there are some and all are true, as far as a step is free to look."""
    return free_to_look(flags.device) and flags.numel() > 0 and bool(flags.all())


class Enumerable(Env):
    """An environment whose states and objects can be listed and numbered, which exact answers need."""

    num_states: int
    num_objects: int

    @abstractmethod
    def levels(self) -> Iterator[Int[Tensor, "N S"]]:
        """All states that are not done, by depth; a state's parents stand in earlier levels."""

    @abstractmethod
    def index(self, state: State) -> Int[Tensor, "*batch"]:
        """Number of a state that is not done, in [0, num_states)."""

    @abstractmethod
    def object_index(self, objects: Int[Tensor, "*batch O"]) -> Int[Tensor, "*batch"]:
        """Number of an object, in [0, num_objects)."""

    @abstractmethod
    def all_objects(self) -> Int[Tensor, "N O"]:
        """Every object, in the order of `object_index`."""


def check_states(env: Env, states: Any) -> None:
    """Raise unless rows are raw states of the environment; within a compiled function values are not looked at."""
    who = f"states of {type(env).__name__}"
    if not isinstance(states, Tensor):
        raise ValueError(f"{who} must be a tensor of integers [*, {env.width}], got {type(states).__name__}")
    if states.dtype == torch.bool or states.is_floating_point() or states.is_complex():
        raise ValueError(f"{who} must be integers, got {states.dtype}")
    if not states.ndim or states.shape[-1] != env.width:
        raise ValueError(f"{who} must have the shape [*, {env.width}], got {list(states.shape)}")
    if torch.compiler.is_compiling():
        return
    strangers = ~env.is_state(states)
    if bool(strangers.any()):
        raise ValueError(f"{states[strangers][0].tolist()} is no state of {type(env).__name__}")


def one_hot(values: Int[Tensor, "*batch"], classes: int) -> Float[Tensor, "*batch C"]:
    """One-hot code by comparison: no range check, hence no wait for the device; values >= classes give zeros."""
    return (values[..., None] == torch.arange(classes, device=values.device)).float()
