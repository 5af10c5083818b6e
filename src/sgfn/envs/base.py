"""Env = kernel (law of the noise) + apply (deterministic) + masks, batched over any leading dimensions."""

from abc import ABC, abstractmethod
from collections.abc import Iterator

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sgfn.noise import Noise, slip_kernel, slip_row


class Env(ABC):
    """A space of objects built step by step; an intention is an action index, so is an outcome.

    A state is a row of `width` integers, an object (what a landscape scores) a row of `object_width`. States that are
    done stay as they are under `apply`, and every action counts as legal there, so that padded steps stay finite.
    """

    actions: int  # A = K: number of intentions, and of outcomes
    horizon: int  # T: steps of the longest trajectory
    width: int
    object_width: int
    features: int  # F: width of `encode`
    tree: bool  # each state has exactly one parent
    num_states: int  # states that are not done
    num_objects: int
    distance: str  # how objects are compared when modes are counted
    noise: Noise

    @abstractmethod
    def initial(self, batch: int, device: torch.device | str = "cpu") -> Int[Tensor, "B S"]:
        """The root state, once per trajectory."""

    @abstractmethod
    def done(self, state: Int[Tensor, "*batch S"]) -> Bool[Tensor, "*batch"]:
        """Whether the state is a finished object."""

    @abstractmethod
    def legal(self, state: Int[Tensor, "*batch S"]) -> Bool[Tensor, "*batch A"]:
        """Which actions may be intended, and which outcomes may happen."""

    @abstractmethod
    def slippable(self, state: Int[Tensor, "*batch S"]) -> Bool[Tensor, "*batch A"]:
        """The set within which noise may replace one action by another."""

    @abstractmethod
    def position(self, state: Int[Tensor, "*batch S"]) -> Int[Tensor, "*batch"]:
        """How many steps were made, which noise may depend on."""

    @abstractmethod
    def apply(self, state: Int[Tensor, "*batch S"], outcome: Int[Tensor, "*batch"]) -> Int[Tensor, "*batch S"]:
        """The next state: deterministic, given the outcome."""

    @abstractmethod
    def parents(self, state: Int[Tensor, "*batch S"]) -> Bool[Tensor, "*batch K"]:
        """Which outcomes may have led here; at the root, which has none, every entry is true."""

    @abstractmethod
    def parent(self, state: Int[Tensor, "*batch S"], outcome: Int[Tensor, "*batch"]) -> Int[Tensor, "*batch S"]:
        """Undo an outcome; meaningful only where `parents` holds."""

    @abstractmethod
    def encode(self, state: Int[Tensor, "*batch S"]) -> Float[Tensor, "*batch F"]:
        """What a network reads: one-hot codes."""

    @abstractmethod
    def toward(self, state: Int[Tensor, "*batch S"], goal: Int[Tensor, "*batch O"]) -> Float[Tensor, "*batch K"]:
        """A law over the outcomes that lead from the state to the object `goal`, for replaying known objects."""

    @abstractmethod
    def objects(self, state: Int[Tensor, "*batch S"]) -> Int[Tensor, "*batch O"]:
        """The object a finished state stands for."""

    @abstractmethod
    def levels(self) -> Iterator[Int[Tensor, "N S"]]:
        """All states that are not done, by depth; a state's parents stand in earlier levels."""

    @abstractmethod
    def index(self, state: Int[Tensor, "*batch S"]) -> Int[Tensor, "*batch"]:
        """Number of a state that is not done, in [0, num_states)."""

    @abstractmethod
    def object_index(self, objects: Int[Tensor, "*batch O"]) -> Int[Tensor, "*batch"]:
        """Number of an object, in [0, num_objects)."""

    @abstractmethod
    def all_objects(self) -> Int[Tensor, "N O"]:
        """Every object, in the order of `object_index`."""

    @abstractmethod
    def decode(self, objects: Int[Tensor, "N O"]) -> list[str]:
        """Objects as text."""

    @abstractmethod
    def parse(self, texts: list[str]) -> Int[Tensor, "N O"]:
        """Text as objects; raises ValueError with the number of the first bad entry."""

    def kernel(
        self,
        state: Int[Tensor, "*batch S"],
        dtype: torch.dtype = torch.float32,
        rate: float | Float[Tensor, "*batch"] | None = None,
    ) -> Float[Tensor, "*batch A K"]:
        """P(k|s,a) for every intention and outcome: the one place where noise is written.

        With a rate, the kernel of an episode whose hidden rate it is.
        """
        if rate is not None:
            return slip_kernel(self.slippable(state), rate, dtype)
        return self.noise.kernel(self.slippable(state), dtype, self.position(state))

    def kernel_row(
        self,
        state: Int[Tensor, "*batch S"],
        action: Int[Tensor, "*batch"],
        rate: Float[Tensor, "*batch"] | None = None,
    ) -> Float[Tensor, "*batch K"]:
        """P(.|s,a) for one intention: what a simulator needs."""
        if rate is not None:
            return slip_row(self.slippable(state), action, rate)
        index = action[..., None, None].expand(*action.shape, 1, self.actions)
        return self.kernel(state).gather(-2, index)[..., 0, :]

    def embed(self, raw: Int[Tensor, "*batch S"]) -> Int[Tensor, "*batch S"]:
        """A state as enumeration gives it, in this environment's own coding."""
        return raw

    def support(self, state: Int[Tensor, "*batch S"]) -> Bool[Tensor, "*batch K A"]:
        """Which (outcome, intention) pairs may have led to the state: parents whose kernel is positive there."""
        columns = []
        for k in range(self.actions):
            outcome = torch.full(state.shape[:-1], k, dtype=state.dtype, device=state.device)
            columns.append(self.kernel(self.parent(state, outcome))[..., k] > 0)
        return torch.stack(columns, -2) & self.parents(state)[..., None]


def one_hot(values: Int[Tensor, "*batch"], classes: int) -> Float[Tensor, "*batch C"]:
    """One-hot code by comparison: no range check, hence no wait for the device; values >= classes give zeros."""
    return (values[..., None] == torch.arange(classes, device=values.device)).float()
