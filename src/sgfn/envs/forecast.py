"""Forecasts as an environment: a state is a window and the bins of the steps forecast so far."""

from collections.abc import Iterator

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sgfn.config.checks import shorten
from sgfn.envs.base import Enumerable, one_hot
from sgfn.noise import Noise

PAIR = ":"
"""Separator between a window and its bins in text."""


class ForecastEnv(Enumerable):
    """Forecasts of the steps of a window in order, each by the bin of its scaled value before measurement.

    A state is the number of a window, then a bin for each step, K where it is not forecast yet. Trajectories start in
    the windows in turn. Noise is the measurement error; it may differ between windows (the same error spans more bins
    where the scale is small), so the window is the position that noise depends on.
    """

    tree = True
    unmasked = True
    distance = "hamming"

    def __init__(self, *, horizon: int, bins: int, noise: Noise, windows: int = 1) -> None:
        if horizon < 1 or bins < 2 or windows < 1:
            raise ValueError(
                f"a forecast needs 1 step, 2 bins and 1 window or more, got horizon {horizon}, bins {bins}, "
                f"windows {windows}"
            )
        noise.check(bins, windows)
        self.horizon, self.bins, self.noise, self.windows = horizon, bins, noise, windows
        self.actions, self.blank = bins, bins
        self.width = self.object_width = 1 + horizon
        self.features = windows + horizon * bins + horizon + 1
        self.before = [sum(bins**d for d in range(depth)) for depth in range(horizon + 1)]
        self.num_states, self.num_objects = windows * self.before[horizon], windows * bins**horizon

    def initial(self, batch: int, device: torch.device | str = "cpu") -> Int[Tensor, "B S"]:
        """States with nothing forecast, the windows in turn."""
        window = torch.arange(batch, device=device) % self.windows
        blank = torch.full((batch, self.horizon), self.blank, dtype=torch.int64, device=device)
        return torch.cat([window[:, None], blank], 1)

    def written(self, state: Int[Tensor, "*batch S"]) -> Int[Tensor, "*batch"]:
        """Number of steps forecast so far."""
        return (state[..., 1:] < self.bins).sum(-1)

    def done(self, state: Int[Tensor, "*batch S"]) -> Bool[Tensor, "*batch"]:
        """Whether all steps are forecast."""
        return state[..., -1] < self.bins

    def legal(self, state: Int[Tensor, "*batch S"]) -> Bool[Tensor, "*batch A"]:
        """Every bin, at any time."""
        return torch.ones(*state.shape[:-1], self.actions, dtype=torch.bool, device=state.device)

    def slippable(self, state: Int[Tensor, "*batch S"]) -> Bool[Tensor, "*batch A"]:
        """Bins that may be measured as others: all of them, until the forecast is complete."""
        return ~self.done(state)[..., None] & self.legal(state)

    def position(self, state: Int[Tensor, "*batch S"]) -> Int[Tensor, "*batch"]:
        """The window, by which noise may vary."""
        return state[..., 0]

    def apply(self, state: Int[Tensor, "*batch S"], outcome: Int[Tensor, "*batch"]) -> Int[Tensor, "*batch S"]:
        """States with the outcome written at the first step that is not forecast yet."""
        return torch.where(self._at(state, self.written(state)), outcome[..., None], state)

    def last(self, state: Int[Tensor, "*batch S"]) -> Int[Tensor, "*batch"]:
        """The bin written last; 0 at the root."""
        found = state.gather(-1, self.written(state)[..., None])[..., 0]
        return torch.where(self.written(state) == 0, 0, found)

    def parents(self, state: Int[Tensor, "*batch S"]) -> Bool[Tensor, "*batch K"]:
        """The one outcome that led to a state: its last bin."""
        root = self.written(state) == 0
        return (one_hot(self.last(state), self.actions) > 0) | root[..., None]

    def parent(self, state: Int[Tensor, "*batch S"], outcome: Int[Tensor, "*batch"]) -> Int[Tensor, "*batch S"]:
        """States without their last bin, whichever outcome is given."""
        return torch.where(self._at(state, self.written(state) - 1), self.blank, state)

    def support(self, state: Int[Tensor, "*batch S"]) -> Bool[Tensor, "*batch K A"]:
        """As in `Env`, computed from the one parent of a state."""
        return self._may_lead(self.parent(state, state[..., 0])) & self.parents(state)[..., None]

    def encode(self, state: Int[Tensor, "*batch S"]) -> Float[Tensor, "*batch F"]:
        """One-hot window, bins by step, and number of steps forecast."""
        steps = one_hot(state[..., 1:], self.bins).flatten(-2)
        window = one_hot(state[..., 0], self.windows)
        return torch.cat([window, steps, one_hot(self.written(state), self.horizon + 1)], -1)

    def toward(self, state: Int[Tensor, "*batch S"], goal: Int[Tensor, "*batch O"]) -> Float[Tensor, "*batch K"]:
        """Policy towards a goal: its next bin."""
        ahead = 1 + self.written(state).clamp(max=self.horizon - 1)
        return one_hot(goal.gather(-1, ahead[..., None])[..., 0], self.actions)

    def objects(self, state: Int[Tensor, "*batch S"]) -> Int[Tensor, "*batch O"]:
        """The state itself, once it is finished."""
        return state

    def levels(self) -> Iterator[Int[Tensor, "N S"]]:
        """All unfinished forecasts, by the number of steps, window by window."""
        for depth in range(self.horizon):
            yield self._paths(depth)

    def index(self, state: Int[Tensor, "*batch S"]) -> Int[Tensor, "*batch"]:
        """Number of a state: by window, then by length, then by its bins."""
        shorter = (self.bins ** self.written(state) - 1) // (self.bins - 1)
        return state[..., 0] * self.before[self.horizon] + shorter + self._number(state)

    def object_index(self, objects: Int[Tensor, "*batch O"]) -> Int[Tensor, "*batch"]:
        """Number of a path: by window, then by its bins."""
        return objects[..., 0] * self.bins**self.horizon + self._number(objects)

    def all_objects(self) -> Int[Tensor, "N O"]:
        """Every path of every window, in the order of `object_index`."""
        return self._paths(self.horizon)

    def decode(self, objects: Int[Tensor, "N O"]) -> list[str]:
        """Window and bins as text: `0:3 1 2`."""
        return [f"{row[0]}{PAIR}{' '.join(map(str, row[1:]))}" for row in objects.tolist()]

    def parse(self, texts: list[str]) -> Int[Tensor, "N O"]:
        """Windows and bins from text; raises with the number of a wrong entry."""
        rows = []
        for number, text in enumerate(texts, start=1):
            window, mark, bins = text.partition(PAIR)
            row = [window, *bins.split(" ")]
            if not mark or len(row) != self.width or not all(part.isdecimal() and len(part) < 9 for part in row):
                raise ValueError(
                    f"entry {number} ({shorten(text)!r}): write a window and {self.horizon} bins, like 0:1 1 0"
                )
            values = [int(part) for part in row]
            if values[0] >= self.windows or max(values[1:]) >= self.bins:
                raise ValueError(
                    f"entry {number} ({shorten(text)!r}): windows go to {self.windows - 1}, bins to {self.bins - 1}"
                )
            rows.append(values)
        return torch.tensor(rows, dtype=torch.int64).reshape(-1, self.width)

    def _at(self, state: Int[Tensor, "*batch S"], step: Int[Tensor, "*batch"]) -> Bool[Tensor, "*batch S"]:
        """Mask of the column that holds a step; nowhere true before the first step or after the last."""
        column = torch.arange(self.width, device=state.device)
        return (column == step[..., None] + 1) & (column > 0)

    def _paths(self, depth: int) -> Int[Tensor, "N S"]:
        number = torch.arange(self.windows * self.bins**depth)
        digits = [(number // self.bins ** (depth - 1 - i)) % self.bins for i in range(depth)]
        blanks = [torch.full_like(number, self.blank)] * (self.horizon - depth)
        return torch.stack([number // self.bins**depth, *digits, *blanks], -1)

    def _number(self, state: Int[Tensor, "*batch S"]) -> Int[Tensor, "*batch"]:
        length = self.written(state)[..., None]
        step = torch.arange(self.horizon, device=state.device)
        power = self.bins ** (length - 1 - step).clamp(min=0)
        return torch.where(step < length, state[..., 1:] * power, 0).sum(-1)
