"""Local edits of finished objects, and the exact law of what comes out when an edited object is ordered.

To order an object is to intend it step by step (`Env.toward`), whatever the noise has done in the steps before.
"""

import math
from abc import ABC, abstractmethod

import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor

from sgfn.envs import laws
from sgfn.envs.base import Enumerable, Env, one_hot
from sgfn.envs.grid import GridEnv
from sgfn.envs.sequence import SequenceEnv

LARGEST_GRID = 4096
"""Most cells of a grid for which the table of all orders is made, under noise of one rate."""


class LocalEdits(ABC):
    """The numbered local edits of an object; each turns it into a goal that can be ordered."""

    count: int  # E: edits in all, legal or not
    features: int  # F: width of `encode`

    @abstractmethod
    def legal(self, objects: Int[Tensor, "*batch O"]) -> Bool[Tensor, "*batch E"]:
        """Which edits of each object are possible and change it."""

    @abstractmethod
    def goals(self, objects: Int[Tensor, "*batch O"], edit: Int[Tensor, "*batch"]) -> Int[Tensor, "*batch O"]:
        """Each object after an edit; meaningful only where the edit is legal."""

    @abstractmethod
    def log_outcomes(self, objects: Int[Tensor, "B O"], realised: Int[Tensor, "B O"]) -> Float64[Tensor, "B E"]:
        """log G(realised | goal) for the goal of each edit of the objects."""

    @abstractmethod
    def outcomes(self) -> Float64[Tensor, "N N"]:
        """G(y|g) over all objects, g in rows."""

    @abstractmethod
    def encode(self, objects: Int[Tensor, "*batch O"]) -> Float[Tensor, "*batch F"]:
        """One-hot codes of objects, for a network."""

    def log_uniform(self, objects: Int[Tensor, "*batch O"]) -> Float64[Tensor, "*batch E"]:
        """Log-probabilities of the uniform law over legal edits."""
        legal = self.legal(objects).double()
        return (legal / legal.sum(-1, keepdim=True)).log()


class SequenceEdits(LocalEdits):
    r"""Edits of sequences: another symbol at one position; at variable length also one letter more or less at the end.

    Edit (i, v) writes v at position i. A blank has the code of the stop action, so that an object is a row of
    intentions as it stands, and adding or removing a letter writes one symbol too. On a tree one path leads from the
    order g to y, and noise depends on the position, not on the letters before it:

    .. math:: G(y|g) = E_\alpha \prod_{t \le |y|} P_{\alpha,t}(y_t | g_t)

    with the mean over the hidden rate of an order, where there is one.
    """

    def __init__(self, env: SequenceEnv, device: torch.device) -> None:
        self.env, self.count = env, env.length * env.actions
        self.symbols = env.vocab + int(env.stop)  # blank included
        self.features = env.length * self.symbols
        rates = env.noise.rates(env.horizon)
        kernels = torch.stack([self._kernels(rate) for rate, _ in rates])
        self.log_kernels = kernels.log().to(device)  # R T A K
        self.log_weights = torch.tensor([weight for _, weight in rates], dtype=torch.float64).log().to(device)

    def _kernels(self, rate: float | None) -> Float64[Tensor, "T A K"]:
        state, found = self.env.initial(1), []
        for _ in range(self.env.length):
            found.append(self.env.kernel(state, torch.float64, rate)[0])
            state = self.env.apply(state, torch.zeros(1, dtype=torch.int64))
        return torch.stack(found)

    def legal(self, objects: Int[Tensor, "*batch O"]) -> Bool[Tensor, "*batch E"]:
        """Other letters up to the first blank; a blank at the last letter, unless the sequence would be too short."""
        env, device = self.env, objects.device
        position = torch.arange(env.length, device=device)[:, None]  # L 1
        symbol = torch.arange(env.actions, device=device)  # A
        length = env.written(objects)[..., None, None]
        shorter = (position == length - 1) & (length > env.min_length)
        legal = torch.where(symbol < env.vocab, position <= length, shorter) & (symbol != objects[..., None])
        return legal.flatten(-2)

    def goals(self, objects: Int[Tensor, "*batch O"], edit: Int[Tensor, "*batch"]) -> Int[Tensor, "*batch O"]:
        """Objects with the edit's symbol written at its position."""
        here = torch.arange(self.env.length, device=objects.device) == (edit // self.env.actions)[..., None]
        return torch.where(here, (edit % self.env.actions)[..., None], objects)

    def log_outcomes(self, objects: Int[Tensor, "B O"], realised: Int[Tensor, "B O"]) -> Float64[Tensor, "B E"]:
        """log G(realised | goal) for the goal of each edit, all edits at once.

        The product over the positions that an edit does not change is the same for every symbol it may write.
        """
        columns = self._columns(realised)  # R B T A
        kept = columns.gather(-1, objects.expand(columns.shape[0], -1, -1)[..., None])[..., 0]  # R B T
        others = _running(kept) + _running(kept.flip(-1)).flip(-1)
        terms = (columns + others[..., None]).flatten(-2)  # R B E
        return torch.logsumexp(terms + self.log_weights[:, None, None], 0)

    def _columns(self, realised: Int[Tensor, "B O"]) -> Float64[Tensor, "R B T A"]:
        """log P(y_t|a) for every intention a, at every rate; zero once the sequence has ended."""
        position = torch.arange(self.env.length, device=realised.device)
        columns = self.log_kernels.transpose(-1, -2)[:, position, realised]  # R B T A
        return torch.where(self._happened(realised)[..., None], columns, 0.0)

    def _happened(self, objects: Int[Tensor, "B O"]) -> Bool[Tensor, "B T"]:
        """Which steps were taken to write an object; the stop is one of them."""
        return torch.arange(self.env.length, device=objects.device) <= self.env.written(objects)[:, None]

    def outcomes(self) -> Float64[Tensor, "N N"]:
        """G(y|g) over all objects, as a product over positions, averaged over rates."""
        objects = self.env.all_objects().to(self.log_weights.device)
        happened, total = self._happened(objects), torch.zeros_like(self.log_weights[0])
        for weight, kernels in zip(self.log_weights.exp(), self.log_kernels.exp(), strict=True):
            table = weight.expand(len(objects), len(objects)).clone()
            for symbol, kernel, counts in zip(objects.T, kernels, happened.T, strict=True):
                table *= torch.where(counts, kernel[symbol][:, symbol], 1.0)
            total = table + total
        return total

    def encode(self, objects: Int[Tensor, "*batch O"]) -> Float[Tensor, "*batch F"]:
        """One-hot symbols, position by position."""
        return one_hot(objects, self.symbols).flatten(-2)


def _running(values: Float64[Tensor, "R B T"]) -> Float64[Tensor, "R B T"]:
    """Sum of the entries before each one; not a difference of cumulative sums, as entries may be minus infinity."""
    return torch.cat([torch.zeros_like(values[..., :1]), values[..., :-1]], -1).cumsum(-1)


class GridEdits(LocalEdits):
    """Edits of grid cells: one coordinate changes by one, within the box.

    Many paths lead to a cell, so G is a table that is made once.
    """

    def __init__(self, env: GridEnv, device: torch.device) -> None:
        self.env, self.count, self.features = env, 2 * env.ndim, env.ndim * env.side
        self.power = env.object_index(torch.eye(env.ndim, dtype=torch.int64)).to(device)  # numbering is linear
        down, up = -torch.eye(env.ndim, dtype=torch.int64), torch.eye(env.ndim, dtype=torch.int64)
        self.moves = torch.cat([down, up]).to(device)  # E O
        self.log_table = outcome_table(env).log().to(device)

    def legal(self, objects: Int[Tensor, "*batch O"]) -> Bool[Tensor, "*batch E"]:
        """Steps down from positive coordinates, and steps up below the border."""
        return torch.cat([objects > 0, objects < self.env.side - 1], -1)

    def goals(self, objects: Int[Tensor, "*batch O"], edit: Int[Tensor, "*batch"]) -> Int[Tensor, "*batch O"]:
        """The neighbouring cell of each edit."""
        return objects + self.moves[edit]

    def log_outcomes(self, objects: Int[Tensor, "B O"], realised: Int[Tensor, "B O"]) -> Float64[Tensor, "B E"]:
        """log G(realised | goal) for the goal of each edit, from the table."""
        goals = (objects[:, None] + self.moves).clamp(0, self.env.side - 1)  # B E O
        return self.log_table[(goals * self.power).sum(-1), (realised * self.power).sum(-1)[:, None]]

    def outcomes(self) -> Float64[Tensor, "N N"]:
        """G(y|g) over all cells: the table itself."""
        return self.log_table.exp()

    def encode(self, objects: Int[Tensor, "*batch O"]) -> Float[Tensor, "*batch F"]:
        """One-hot coordinates."""
        return one_hot(objects, self.env.side).flatten(-2)


def check_edits(env: Env) -> None:
    """Raise where an environment has no edits or its table of orders would be too large, before anything is made."""
    if not env.intends_outcomes:
        raise ValueError("chains of edits order what comes out, and intentions are another set here: use tb or kl")
    if isinstance(env, SequenceEnv):
        if env.noise_by_state:
            raise ValueError("chains of edits need noise by position, and this noise reads the state: use tb or kl")
        return
    if not isinstance(env, GridEnv):
        raise ValueError(f"chains of edits are for sequences and grids, and {type(env).__name__} is neither")
    rates = len(env.noise.rates(env.horizon))
    most = math.isqrt(LARGEST_GRID**2 // rates)  # a table for each rate
    if env.num_objects > most:
        hidden = f" under {rates} slip rates" if rates > 1 else ""
        raise ValueError(
            f"chains on a grid need the law of every order, and the grid has {env.num_objects:,} cells, more than "
            f"{most:,}{hidden}: lower --grid.side or --grid.ndim"
        )


def make_edits(env: Env, device: torch.device) -> LocalEdits:
    """The edits of an environment's objects, with their tables on a device."""
    check_edits(env)
    if isinstance(env, GridEnv):
        return GridEdits(env, device)
    assert isinstance(env, SequenceEnv)
    return SequenceEdits(env, device)


def outcome_table(env: Enumerable) -> Float64[Tensor, "N N"]:
    r"""$G(y|g)$ for every pair of objects, g in rows, by dynamic programming over the states for all goals at once.

    Under a hidden rate it is the mean over rates, as each order draws its own.
    """
    total = torch.zeros(env.num_objects, env.num_objects, dtype=torch.float64)
    for rate, weight in env.noise.rates(env.horizon):
        total.add_(_outcome_table(env, rate), alpha=weight)
    return total


def _outcome_table(env: Enumerable, rate: float | None) -> Float64[Tensor, "N N"]:
    goals = env.all_objects()
    states_mass = torch.zeros(env.num_objects, env.num_states, dtype=torch.float64)
    objects_mass = torch.zeros(env.num_objects, env.num_objects, dtype=torch.float64)
    states_mass[:, env.index(env.initial(1))] = 1.0
    for states in env.levels():
        size = (env.num_objects, states.shape[0], -1)
        policy = env.toward(states.expand(*size), goals[:, None].expand(*size)).double()
        policy = policy / policy.sum(-1, keepdim=True)  # given in single precision
        moved = env.operator(states, torch.float64, rate).outcome_probabilities(policy)
        moved = moved * states_mass[:, env.index(states), None]
        for rows, k, target, finished in laws.children(env, states):
            (objects_mass if finished else states_mass).index_add_(1, target, moved[:, rows, k])
    return objects_mass
