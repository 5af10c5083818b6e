"""What a noise is: the law that links an intended action to the realised outcome, as a matrix and as an operator."""

from abc import ABC, abstractmethod
from typing import Any

import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor

from sgfn.noise.operators import DenseKernel, Kernel, Rate, UniformSlipKernel


class Noise(ABC):
    """How an intention becomes an outcome, within the set of slippable actions that the environment names.

    `kernel` is all that a noise of one's own needs; a class that can answer without a matrix per state says so in
    `operator`. A noise may have a rate that each episode draws anew and nobody sees: `rates`, `draw_rates` and
    `posterior_rates` speak of it, and say None where there is none. Given the rate, noise is the uniform slip of that
    strength.
    """

    stop: bool = False
    """Whether the stop action takes part."""
    notice: str = ""
    """What whoever gave it should know of how it was read."""

    @property
    @abstractmethod
    def summary(self) -> str:
        """A few words for a table."""

    @property
    def by_position(self) -> bool:
        """Whether `kernel` reads the position, which is then computed where the environment counts steps."""
        return True

    @property
    def changes_length(self) -> bool:
        """Whether a step may write no letter, or several: then positions are no steps, see `sgfn.noise.indel`."""
        return False

    @abstractmethod
    def kernel(
        self, slippable: Bool[Tensor, "*batch A"], dtype: torch.dtype, position: Int[Tensor, "*batch"] | None = None
    ) -> Float[Tensor, "*batch A K"]:
        """P(k|s,a), rows intentions, columns outcomes; `position` counts the steps made and may be left out where
        noise is the same at all of them."""

    def operator(
        self,
        slippable: Bool[Tensor, "*batch A"],
        dtype: torch.dtype,
        position: Int[Tensor, "*batch"] | None = None,
        rate: Rate | None = None,
    ) -> Kernel:
        """The kernel at a batch of states as an operator; with a rate, that of episodes whose hidden rate it is."""
        if rate is not None:
            return UniformSlipKernel(slippable, rate, dtype)
        return DenseKernel(self.kernel(slippable, dtype, position))

    def intentions(self, outcomes: int) -> int:
        """How many intentions there are for so many outcomes: as many, unless the kernel is rectangular."""
        return outcomes

    @abstractmethod
    def check(self, slipping: int, positions: int) -> None:
        """Raise unless this noise fits an environment with that many actions that can slip, and so many positions."""

    @property
    def has_hidden_rate(self) -> bool:
        """Whether each episode draws a rate of its own, so that one kernel does not tell what happens in it."""
        return type(self).draw_rates is not Noise.draw_rates

    def rates(self, steps: int) -> list[tuple[float | None, float]]:
        """Rates and weights whose mean over laws of that many steps is exact; None is the kernel itself."""
        return [(None, 1.0)]

    def draw_rates(self, batch: int, generator: torch.Generator) -> Float[Tensor, " B"] | None:
        """The hidden rate of each trajectory, where there is one."""
        return None

    def posterior_rates(
        self, slippable: Bool[Tensor, "B T A"], intended: Int[Tensor, "B T"], realised: Int[Tensor, "B T"]
    ) -> Float64[Tensor, "B T"] | None:
        """Expected rate before each step, given the steps before it."""
        return None


class OperatorNoise(Noise):
    """Noise that is written as an operator; a subclass may still write a `kernel` of its own, which then counts."""

    @abstractmethod
    def _closed_form(
        self,
        slippable: Bool[Tensor, "*batch _"],
        dtype: torch.dtype,
        position: Int[Tensor, "*batch"] | None,
        rate: Rate | None,
    ) -> Kernel:
        """The kernel at a batch of states, without a matrix per state where that can be."""

    def kernel(
        self, slippable: Bool[Tensor, "*batch _"], dtype: torch.dtype, position: Int[Tensor, "*batch"] | None = None
    ) -> Float[Tensor, "*batch A K"]:
        """The operator's matrices."""
        return self._closed_form(slippable, dtype, position, None).matrix()

    def operator(
        self,
        slippable: Bool[Tensor, "*batch _"],
        dtype: torch.dtype,
        position: Int[Tensor, "*batch"] | None = None,
        rate: Rate | None = None,
    ) -> Kernel:
        """The closed form, unless a subclass has written a kernel of its own."""
        if type(self).kernel is not OperatorNoise.kernel:
            return super().operator(slippable, dtype, position, rate)
        return self._closed_form(slippable, dtype, position, rate)


def row_at(position: Int[Tensor, "*batch"] | None, rows: int) -> Int[Tensor, "*batch"]:
    """The row of a table by position for each state; its last one serves all positions beyond."""
    if position is None:
        raise ValueError("noise by position needs to know the position")
    return position.clamp(max=rows - 1)


def are_laws(table: Float64[Tensor, "... K"]) -> bool:
    """Whether rows are probabilities that sum to one."""
    return bool((table >= 0).all()) and bool(((table.sum(-1) - 1.0).abs() <= 1e-6).all())


def as_numbers(values: Any, what: str) -> Float64[Tensor, "..."]:
    """Numbers, given as a tensor, an array or nested lists, as a tensor; `what` says what they must be."""
    try:
        return torch.as_tensor(values, dtype=torch.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{what} ({' '.join(str(error).split())})") from None
