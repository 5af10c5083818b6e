"""Encoders: a state -> a representation that the heads read."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from itertools import pairwise

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sgfn.config import NetConfig
from sgfn.config.registry import called_as, of_kind
from sgfn.envs.base import Env
from sgfn.envs.sequence import SequenceEnv
from sgfn.envs.tabulated import TabulatedEnv
from sgfn.nets.registry import ENCODERS
from sgfn.nets.transformer import Cache, TokenEncoder

aten = torch.ops.aten
ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "gelu": nn.GELU, "silu": nn.SiLU}
GRADIENTS: dict[type[nn.Module], Callable[[Tensor, Tensor], Tensor]] = {
    nn.ReLU: lambda gradient, sums: aten.threshold_backward(gradient, sums, 0.0),
    nn.GELU: lambda gradient, sums: aten.gelu_backward(gradient, sums),
    nn.SiLU: lambda gradient, sums: aten.silu_backward(gradient, sums),
}
"""(Gradient of an activation's output, its input) to the gradient of its input."""


class MLP(nn.Module):
    """Fully connected layers of one width, an activation after each."""

    def __init__(self, features: int, hidden: int, layers: int, activation: str) -> None:
        super().__init__()
        sizes = [features] + [hidden] * layers
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(sizes))
        self.activation = ACTIVATIONS[activation]()
        self.width = hidden

    @property
    def linear(self) -> list[nn.Linear]:
        """The layers by their type."""
        return [layer for layer in self.layers if isinstance(layer, nn.Linear)]

    def forward(self, features: Float[Tensor, "*batch F"]) -> Float[Tensor, "*batch H"]:
        """Apply the layers in turn."""
        for layer in self.layers:
            features = self.activation(layer(features))
        return features


class StateReader(nn.Module):
    """Reads states themselves, as the networks' environment writes or numbers them; other encoders read features."""

    env: Env
    width: int


class StateTable(StateReader):
    """A row of its own for every state of a task whose states can be listed: nothing is learned of one from another.

    Any policy can be represented, so that what is left of the distance to the exact answer is the objective's and the
    training's, not the fit of a network; each state has to be visited.
    """

    def __init__(self, env: Env, config: NetConfig) -> None:
        super().__init__()
        if not isinstance(env, TabulatedEnv):
            wanted = "states that can be listed, which those of this task cannot"
            raise ValueError(f"net.encoder 'table' needs {wanted}: use mlp")
        self.env, self.width = env, config.hidden
        self.rows = nn.Parameter(torch.randn(env.num_states + env.num_objects, config.hidden) * config.hidden**-0.5)

    def forward(self, state: Int[Tensor, "*batch S"]) -> Float[Tensor, "*batch H"]:
        """The rows of states by their numbers."""
        return nn.functional.embedding(state[..., 0], self.rows)


class Reader(StateReader, ABC):
    """Reads states along their trajectories: whole ones in one pass, or step by step with a cache."""

    @abstractmethod
    def along(self, states: Int[Tensor, "B N S"]) -> Float[Tensor, "B N H"]:
        """The first N states of trajectories."""

    @abstractmethod
    def start(self, state: Int[Tensor, "B S"]) -> tuple[Cache, Float[Tensor, "B H"]]:
        """A memory, and the root."""

    @abstractmethod
    def step(self, state: Int[Tensor, "B S"], cache: Cache, t: int) -> Float[Tensor, "B H"]:
        """State t of a trajectory, from what happened last."""

    def raw(self, state: Int[Tensor, "*batch S"]) -> Int[Tensor, "*batch R"]:
        """A state as its own environment writes it, looked up where states are numbered."""
        return self.env.raw[state[..., 0]] if isinstance(self.env, TabulatedEnv) else state


class SequenceReader(Reader):
    """A transformer over the tokens of a sequence: any states, or every state of whole trajectories in one pass.

    The row of a state is that of its written symbols, an end mark counted; blanks stand behind it and are never read.
    """

    def __init__(self, env: Env, config: NetConfig) -> None:
        super().__init__()
        sequence = sequence_of(env)
        if sequence is None:
            raise ValueError("net.encoder 'transformer' reads sequences: use mlp")
        self.env, self.blank, self.width = env, sequence.blank, config.hidden
        self.tokens = TokenEncoder(
            sequence.end + 1,
            width=config.hidden,
            layers=config.layers,
            heads=config.heads,
            length=sequence.length,
        )

    def forward(self, state: Int[Tensor, "*batch S"]) -> Float[Tensor, "*batch H"]:
        """Each state by itself: a whole pass for one row of it."""
        raw = self.raw(state).flatten(0, -2)
        rows = self.tokens(raw)  # N L+1 H
        written = (raw != self.blank).sum(-1)[:, None, None].expand(-1, 1, self.width)
        return rows.gather(1, written).view(*state.shape[:-1], self.width)

    def along(self, states: Int[Tensor, "B N S"]) -> Float[Tensor, "B N H"]:
        """The first N states of trajectories: row t of the last one's tokens is state t, up to the padding."""
        return self.tokens(self.raw(states[:, -1])[:, : states.shape[1] - 1])

    def start(self, state: Int[Tensor, "B S"]) -> tuple[Cache, Float[Tensor, "B H"]]:
        """A memory, and the root."""
        return self.tokens.start(state.shape[0], state.device)

    def step(self, state: Int[Tensor, "B S"], cache: Cache, t: int) -> Float[Tensor, "B H"]:
        """State t of a trajectory, from the symbol written last."""
        return self.tokens.step(self.raw(state)[:, t - 1], cache, t)


class Join(nn.Module):
    """A thought joins a state's representation: side by side through one layer, so that heads see how they interact."""

    def __init__(self, width: int, thought: int, activation: str) -> None:
        super().__init__()
        self.layer, self.activation = nn.Linear(width + thought, width), ACTIVATIONS[activation]()

    def forward(self, hidden: Float[Tensor, "*batch H"], thought: Float[Tensor, "*batch W"]) -> Float[Tensor, "..."]:
        """As wide as before."""
        return self.activation(self.layer(torch.cat([hidden, thought], -1)))


def sequence_of(env: Env) -> SequenceEnv | None:
    """The environment if its states are sequences of tokens, behind look-up tables too; else None."""
    inner = env.env if isinstance(env, TabulatedEnv) else env
    return inner if isinstance(inner, SequenceEnv) and inner.appends else None


def width_of(encoder: nn.Module, env: Env) -> int:
    """Width of what an encoder gives: as ours say themselves, or as another module gives for features of zeros."""
    return encoder.width if isinstance(encoder, StateReader | MLP) else output_width(encoder, env.features)


@torch.no_grad()
def output_width(module: nn.Module, features: int) -> int:
    """H of a module that maps [*, F] to [*, H], found by a dry run; raises one line where it does not.

    >>> output_width(nn.Linear(5, 3), 5)
    3
    """
    like = next((p for p in module.parameters() if p.is_floating_point()), torch.zeros(()))
    probe = torch.zeros(2, 3, features, device=like.device)
    wanted = f"the encoder must map features [*, {features}] to [*, H]"
    try:
        found = module(probe)
    except Exception as error:
        raise ValueError(f"{wanted}; on {list(probe.shape)} it raised {' '.join(str(error).split())}") from error
    if not isinstance(found, Tensor) or found.ndim != 3 or found.shape[:2] != (2, 3) or not found.is_floating_point():
        got = f"{list(found.shape)} of {found.dtype}" if isinstance(found, Tensor) else type(found).__name__
        raise ValueError(f"{wanted}; of {list(probe.shape)} it made {got}")
    return found.shape[-1]


def masked_log_softmax(logits: Float[Tensor, "*batch A"], mask: Tensor) -> Float[Tensor, "*batch A"]:
    """Log-softmax over the true entries, minus infinity elsewhere; at least one entry must be true."""
    return torch.log_softmax(logits.masked_fill(~mask, -torch.inf), -1)


def make_mlp(env: Env, config: NetConfig) -> MLP:
    """The `mlp` encoder of an environment's features."""
    return MLP(env.features, config.hidden, config.layers, config.activation)


def make_encoder(env: Env, config: NetConfig) -> nn.Module:
    """The configured encoder."""
    with called_as("net.encoder", config.encoder):
        return of_kind("net.encoder", config.encoder, ENCODERS[config.encoder].maker(env, config), nn.Module)
