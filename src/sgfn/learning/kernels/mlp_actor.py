"""Acting by an MLP policy, step by step or by one GPU kernel, keeping what it computes for the update.

An update on the rollout's own batch needs the same sums again, at the same weights: they are reused instead of computed
a second time, with the same gradients.
"""

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sgfn.envs.base import Env
from sgfn.envs.sequence import SequenceEnv
from sgfn.envs.tabulated import TabulatedEnv
from sgfn.learning.rollout import RolloutSteps, WholeRollout
from sgfn.nets.encoders import GRADIENTS, MLP, masked_log_softmax
from sgfn.nets.prefixes import GrowingSums, sums_prefixes


class MLPFromSums(torch.autograd.Function):
    """Output of an MLP from the inputs of its activations, with the gradients of its weights."""

    @staticmethod
    def forward(
        ctx: Any, activation: nn.Module, features: Tensor, sums: tuple[Tensor, ...], *weights: Tensor
    ) -> Float[Tensor, "N H"]:
        """The last activation of the last sums; `weights` are weight and bias of each layer in turn."""
        ctx.activation = activation
        ctx.save_for_backward(features, *sums, *weights)
        ctx.layers = len(sums)
        return activation(sums[-1])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
        """Gradients of the weights of all layers, last to first, and of the features where they are asked for."""
        (gradient,) = gradients
        features, *rest = ctx.saved_tensors
        sums, weights = rest[: ctx.layers], rest[ctx.layers :]
        found: list[Tensor] = []
        for layer in range(ctx.layers - 1, -1, -1):
            gradient = GRADIENTS[type(ctx.activation)](gradient, sums[layer])
            before = ctx.activation(sums[layer - 1]) if layer else features
            found = [gradient.t() @ before, gradient.sum(0), *found]
            if layer or ctx.needs_input_grad[1]:
                gradient = gradient @ weights[2 * layer]
        return None, gradient if ctx.needs_input_grad[1] else None, None, *found


def mlp_from_sums(
    encoder: MLP, features: Float[Tensor, "*batch F"], sums: list[Float[Tensor, "*batch H"]]
) -> Float[Tensor, "*batch H"]:
    """`encoder(features)`, values and gradients, from known inputs of its activations; of its last layers alone where
    fewer sums are known, of features that the layer before them gives.

    >>> encoder, features = MLP(3, 4, 2, "gelu"), torch.randn(5, 3)
    >>> first = encoder.layers[0](features)
    >>> sums = [first.detach(), encoder.layers[1](encoder.activation(first)).detach()]
    >>> torch.allclose(mlp_from_sums(encoder, features, sums), encoder(features))
    True
    """
    weights = [tensor for layer in encoder.linear[-len(sums) :] for tensor in (layer.weight, layer.bias)]
    flat = tuple(part.flatten(0, -2) for part in sums)
    hidden = MLPFromSums.apply(encoder.activation, features.flatten(0, -2), flat, *weights)
    return hidden.view(*features.shape[:-1], -1)


class MLPActor:
    """An actor by an MLP and a head; with `keep` it keeps the inputs of activations at each step of one rollout."""

    def __init__(
        self, env: Env, encoder: MLP, head: nn.Linear, *, keep: bool = False, whole: WholeRollout | None = None
    ) -> None:
        self.env, self.encoder, self.head, self.keep, self.made_whole = env, encoder, head, keep, whole
        self.steps: list[list[Tensor]] = [[] for _ in encoder.layers]
        self.whole: list[Tensor] | None = None
        self.growing: GrowingSums | None = None
        if isinstance(env, SequenceEnv) and sums_prefixes(env) and head.weight.device.type == "cpu":
            self.growing = GrowingSums(encoder.linear[0], env)

    @torch.no_grad()
    def log_policy(self, t: int, state: Int[Tensor, "B S"]) -> Float[Tensor, "B A"]:
        """log pi(.|s) at step t."""
        first, *layers = self.encoder.linear
        sums = [first(self.env.encode(state)) if self.growing is None else self.growing.at_step(t, state)]
        for layer in layers:
            sums.append(layer(self.encoder.activation(sums[-1])))
        if self.keep:
            for kept, found in zip(self.steps, sums, strict=True):
                kept.append(found)
        return masked_log_softmax(self.head(self.encoder.activation(sums[-1])), self.env.legal(state))

    def observe(self, t: int, intended: Int[Tensor, " B"], realised: Int[Tensor, " B"]) -> None:
        """Do nothing: the policy depends on the state alone."""

    @torch.no_grad()
    def whole_rollout(
        self, clock: Float[Tensor, "T 2 B A"], explore: float, temperature: float | Tensor
    ) -> RolloutSteps | None:
        """The whole rollout by a GPU kernel; None where it does not fit."""
        kernel = rollout_kernel(self.env, self.encoder, clock.device)
        if kernel is None:
            return None if self.made_whole is None else self.made_whole(clock, explore, temperature)
        net = (self.encoder.linear, self.head, self.encoder.activation)
        intended, realised, states, kept = kernel.whole_rollout(*net, self.env, clock, temperature, explore, self.keep)
        self.whole = None if kept is None else list(kept.unbind())
        return RolloutSteps(intended=intended, realised=realised, states=states[..., None])

    def sums(self) -> list[Float[Tensor, "B T H"]]:
        """Kept inputs of each activation, at the states before each step; empty where none are kept."""
        return self.whole if self.whole is not None else [torch.stack(kept, 1) for kept in self.steps if kept]


@cache
def _kernel() -> ModuleType | None:
    return import_module("sgfn.learning.kernels.whole_rollout") if find_spec("triton") else None


def rollout_kernel(env: Env, encoder: nn.Module, device: torch.device) -> ModuleType | None:
    """The module with `whole_rollout` as a GPU kernel; None without a GPU or Triton, or where it does not fit."""
    if device.type != "cuda" or not isinstance(env, TabulatedEnv) or type(encoder) is not MLP:
        return None
    kernel = _kernel()
    return kernel if kernel is not None and kernel.fits(encoder.linear, env.actions) else None
