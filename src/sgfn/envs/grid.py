"""Hypergrid of any dimension and side, with a stop action: its states form a directed acyclic graph, not a tree."""

import re
from collections.abc import Iterator

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sgfn.config.checks import shorten
from sgfn.envs.base import Enumerable, one_hot
from sgfn.noise import Noise


class GridEnv(Enumerable):
    """Cells of a hypergrid: start at the origin, increment one coordinate at a time, stop anywhere.

    A state is the coordinates and a flag "stopped". Noise is as published: never on the stop action (unless asked for),
    and off where any coordinate has reached the border.
    Reference: Pan et al. (2023), Stochastic Generative Flow Networks, UAI.
    """

    tree = False
    distance = "l1"

    def __init__(self, *, ndim: int, side: int, noise: Noise) -> None:
        if noise.changes_length:
            raise ValueError("insertions and deletions are of letters, and a grid has none: choose another noise.kind")
        self.ndim, self.side, self.noise = ndim, side, noise
        self.actions = ndim + 1
        self.horizon = ndim * (side - 1) + 1
        self.width, self.object_width = ndim + 1, ndim
        self.features = ndim * side + 1
        self.num_states = self.num_objects = side**ndim
        noise.check(ndim + int(noise.stop), self.horizon)

    def initial(self, batch: int, device: torch.device | str = "cpu") -> Int[Tensor, "B S"]:
        """States at the origin, not stopped."""
        return torch.zeros(batch, self.width, dtype=torch.int64, device=device)

    def is_state(self, state: Int[Tensor, "*batch S"]) -> Bool[Tensor, "*batch"]:
        """Whether coordinates lie within the grid, and the flag is 0 or 1."""
        cells, flag = state[..., :-1], state[..., -1]
        return ((cells >= 0) & (cells < self.side)).all(-1) & ((flag == 0) | (flag == 1))

    def done(self, state: Int[Tensor, "*batch S"]) -> Bool[Tensor, "*batch"]:
        """Whether each state has stopped."""
        return state[..., -1] == 1

    def legal(self, state: Int[Tensor, "*batch S"]) -> Bool[Tensor, "*batch A"]:
        """Moves that stay inside the grid, and the stop action; all actions once stopped."""
        moves = state[..., :-1] < self.side - 1
        return torch.cat([moves, torch.ones_like(moves[..., :1])], -1) | self.done(state)[..., None]

    def slippable(self, state: Int[Tensor, "*batch S"]) -> Bool[Tensor, "*batch A"]:
        """Actions that noise acts on: every move while no coordinate is at the border, and stop where configured."""
        inner = (state[..., :-1] < self.side - 1).all(-1) & ~self.done(state)
        moves = torch.arange(self.actions, device=state.device) < self.ndim + int(self.noise.stop)
        return moves & inner[..., None]

    def position(self, state: Int[Tensor, "*batch S"]) -> Int[Tensor, "*batch"]:
        """Sum of the coordinates, by which noise may vary."""
        return state[..., :-1].sum(-1)

    def apply(self, state: Int[Tensor, "*batch S"], outcome: Int[Tensor, "*batch"]) -> Int[Tensor, "*batch S"]:
        """States after an outcome: one coordinate incremented, or the stop flag set."""
        step = one_hot(outcome, self.actions).to(state.dtype)
        return torch.where(self.done(state)[..., None], state, state + step)

    def parents(self, state: Int[Tensor, "*batch S"]) -> Bool[Tensor, "*batch K"]:
        """Outcomes that may have led to a state: moves along positive coordinates, or stop for a stopped state."""
        stopped = self.done(state)[..., None]
        moves = (state[..., :-1] > 0) & ~stopped
        root = (state == 0).all(-1, keepdim=True)
        return torch.cat([moves, stopped], -1) | root

    def parent(self, state: Int[Tensor, "*batch S"], outcome: Int[Tensor, "*batch"]) -> Int[Tensor, "*batch S"]:
        """State before an outcome: one coordinate decremented, or the stop flag cleared."""
        return (state - one_hot(outcome, self.actions).to(state.dtype)).clamp(min=0)

    def encode(self, state: Int[Tensor, "*batch S"]) -> Float[Tensor, "*batch F"]:
        """One-hot coordinates, and the stop flag."""
        return torch.cat([one_hot(state[..., :-1], self.side).flatten(-2), state[..., -1:].float()], -1)

    def toward(self, state: Int[Tensor, "*batch S"], goal: Int[Tensor, "*batch O"]) -> Float[Tensor, "*batch K"]:
        """Policy towards a goal that is uniform over the shortest paths to it.

        A move has probability in proportion to the remaining distance along it; where none remains, the policy stops.
        """
        remaining = (goal - state[..., :-1]).clamp(min=0).float()
        total = remaining.sum(-1, keepdim=True)
        return torch.cat([remaining / total.clamp(min=1.0), (total == 0).float()], -1)

    def objects(self, state: Int[Tensor, "*batch S"]) -> Int[Tensor, "*batch O"]:
        """Coordinates of a state."""
        return state[..., :-1]

    def levels(self) -> Iterator[Int[Tensor, "N S"]]:
        """Cells that have not stopped, by the sum of their coordinates."""
        cells = self.all_objects()
        depth = cells.sum(-1)
        for d in range(self.horizon):
            level = cells[depth == d]
            yield torch.cat([level, torch.zeros_like(level[:, :1])], -1)

    def index(self, state: Int[Tensor, "*batch S"]) -> Int[Tensor, "*batch"]:
        """Row-major number of a state's cell."""
        return self.object_index(state[..., :-1])

    def object_index(self, objects: Int[Tensor, "*batch O"]) -> Int[Tensor, "*batch"]:
        """Row-major number of a cell."""
        power = torch.tensor([self.side ** (self.ndim - 1 - i) for i in range(self.ndim)], device=objects.device)
        return (objects * power).sum(-1)

    def all_objects(self) -> Int[Tensor, "N O"]:
        """Every cell, in the order of `object_index`."""
        return torch.cartesian_prod(*[torch.arange(self.side)] * self.ndim).reshape(-1, self.ndim)

    def decode(self, objects: Int[Tensor, "N O"]) -> list[str]:
        """Cells as text, coordinates joined by commas."""
        return [",".join(map(str, row)) for row in objects.tolist()]

    def parse(self, texts: list[str]) -> Int[Tensor, "N O"]:
        """Cells from text, coordinates joined by commas; raises with the number of a wrong entry."""
        rows = []
        for number, text in enumerate(texts, start=1):
            fields = text.split(",")
            numbers = [int(f) for f in fields if re.fullmatch(r"\s*\d{1,9}\s*", f)]
            if not len(fields) == len(numbers) == self.ndim or max(numbers) >= self.side:
                wanted = f"{self.ndim} coordinates in 0..{self.side - 1} joined by commas"
                raise ValueError(f"entry {number} ({shorten(text)!r}): this task needs {wanted}")
            rows.append(numbers)
        return torch.tensor(rows, dtype=torch.int64).reshape(-1, self.ndim)
