"""MLPs on the states of a large batch in half precision: half the bytes of every pass over memory, as exact as TF32.

A GPU's products of single-precision numbers round what they multiply to ten bits (TF32), as many as half precision has.
Stored in it, what lies between two products takes half the memory, and at 100,000 states nothing else takes as long as
reading and writing that. Sums, weights, outputs and the gradients of weights stay in single precision. Half precision
reaches from 6e-5 to 65,504: gradients are scaled so that the largest at the outputs is `LARGEST`, and scaled back where
they leave it. A sum or a gradient beyond 65,504 is stored as 65,504, not as infinity, of which activations would make
what is no number: networks that grow so large are trained on, with errors where they are cut, and what becomes infinite
in single precision (weights, losses) is still found.
"""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import pad

from sgfn.envs.base import Env
from sgfn.envs.sequence import SequenceEnv
from sgfn.nets.encoders import GRADIENTS, MLP
from sgfn.nets.prefixes import MOST_CODED, sums_prefixes
from sgfn.nets.quick_gelu import quick_gelu, quick_gelu_backward

HALF_FROM = 65_536
"""States of a batch (trajectories x steps) from which a GPU reads and writes them in half precision."""
LARGEST = 16.0
"""Largest gradient at the outputs, scaled."""
LIMIT = torch.finfo(torch.float16).max
"""Largest number of half precision, 65,504."""
ALIGNED = 8
"""Rows and outputs are padded to a multiple of so many entries: a GPU's products of others take twice as long."""


class HeadOutputs:
    """Outputs of linear heads on a network, where they are computed with it."""

    def __init__(self, heads: list[nn.Linear], outputs: Float[Tensor, "*batch O"]) -> None:
        parts = outputs.split([head.out_features for head in heads], -1)
        self.by_head = {id(head): part for head, part in zip(heads, parts, strict=True)}

    def of(self, head: nn.Module) -> Float[Tensor, "*batch A"]:
        """What one head says."""
        return self.by_head[id(head)]


def half_fits(encoder: nn.Module, env: Env, states: Int[Tensor, "B N S"]) -> bool:
    """Whether states are evaluated in half precision: prefixes of sequences in a large batch on a GPU, by an MLP.

    Codes of more than `MOST_CODED` numbers are summed in single precision instead, see `nets.prefixes`.
    """
    large = states.is_cuda and states.shape[0] * states.shape[1] >= HALF_FROM
    coded = sums_prefixes(env) and env.features <= MOST_CODED
    return large and coded and type(encoder) is MLP and half_takes(encoder)


def half_takes(encoder: MLP) -> bool:
    """Whether layers are of a width and an activation that `HalfNet` has."""
    known = type(encoder.activation) in GRADIENTS and encoder.width % ALIGNED == 0
    return known and encoder.linear[0].weight.dtype == torch.float32


def half_outputs(
    encoder: MLP, heads: list[nn.Linear], env: SequenceEnv, states: Int[Tensor, "B N S"]
) -> Float[Tensor, "B N O"]:
    """Outputs of all heads, one after the other, at the first N states of trajectories."""
    first, *layers = encoder.linear
    spare = (0, -env.features % ALIGNED)
    rows = pad(env.encode(states), spare).half()
    weights = [pad(first.weight, spare), first.bias]
    outputs = sum(head.out_features for head in heads)
    more = (0, 0, 0, -outputs % ALIGNED)
    weights += [tensor for layer in layers for tensor in (layer.weight, layer.bias)]
    weights += [pad(torch.cat([head.weight for head in heads]), more)]
    weights += [pad(torch.cat([head.bias for head in heads]), more[2:])]
    found = HalfNet.apply(encoder.activation, rows.flatten(0, 1), *weights)
    return found.view(*rows.shape[:2], -1)[..., :outputs]


class HalfNet(torch.autograd.Function):
    """Layers with activations between them, on the codes of states."""

    @staticmethod
    def forward(ctx: Any, activation: nn.Module, rows: Float[Tensor, "M F"], *weights: Tensor) -> Float[Tensor, "M O"]:
        """Outputs in single precision; `weights` are weight and bias of each layer in turn."""
        halves = [saturated(weight.half()) for weight in weights]
        before, read = [], [rows]
        for weight, bias in zip(halves[:-2:2], halves[1:-2:2], strict=True):
            before.append(torch.addmm(bias, read[-1], weight.t()))
            read.append(_activated(activation, saturated(before[-1])))
        ctx.activation, ctx.layers = activation, len(weights) // 2 - 1
        ctx.save_for_backward(*before, *read, *halves[::2])
        return wide_product(read[-1], halves[-2].t()) + weights[-1]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
        """Gradients of all weights, computed from the last to the first."""
        (gradient,), layers, slope = gradients, ctx.layers, _slope(ctx.activation)
        before, read, weights = _in_parts(list(ctx.saved_tensors), layers, layers + 1)
        scale = LARGEST / gradient.abs().amax().clamp(min=1e-30)
        half, back = (gradient * scale).half(), scale.reciprocal()
        found = [wide_product(half.t(), read[-1]) * back, gradient.sum(0)]
        half = half @ weights[-1]
        for i in range(layers - 1, -1, -1):
            sums = saturated(before[i]) if torch.compiler.is_compiling() else before[i]
            half = saturated(slope(saturated(half), sums))
            found = [wide_product(half.t(), read[i]) * back, half.sum(0, dtype=torch.float32) * back, *found]
            if i:
                half = half @ weights[i]
        return None, None, *found


def _quick(activation: nn.Module) -> bool:
    """Whether the activation is taken as a polynomial: GELU where a compiler joins its many operations in one pass."""
    return isinstance(activation, nn.GELU) and torch.compiler.is_compiling()


def _activated(activation: nn.Module, sums: Float[Tensor, "M H"]) -> Float[Tensor, "M H"]:
    return quick_gelu(sums) if _quick(activation) else activation(sums)


def _slope(activation: nn.Module) -> Callable[[Tensor, Tensor], Tensor]:
    return quick_gelu_backward if _quick(activation) else GRADIENTS[type(activation)]


def _in_parts(values: list[Tensor], first: int, second: int) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    return values[:first], values[first : first + second], values[first + second :]


def saturated(values: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Values in half precision with the largest number for infinity; what is no number stays that.

    In place, but where a compiler joins it with what reads the values, which then are not written a second time.

    >>> saturated(torch.tensor([[7e4, -1e9, 3.0]]).half()).tolist()
    [[65504.0, -65504.0, 3.0]]
    """
    return values.clamp(-LIMIT, LIMIT) if torch.compiler.is_compiling() else values.clamp_(-LIMIT, LIMIT)


def wide_product(left: Float[Tensor, "M K"], right: Float[Tensor, "K N"]) -> Float[Tensor, "M N"]:
    """A product of half-precision matrices in single precision; a CPU, which has none, rounds nothing at all."""
    return torch.mm(left, right, out_dtype=torch.float32) if left.is_cuda else left.float() @ right.float()
