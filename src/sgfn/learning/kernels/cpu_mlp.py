"""MLPs on a CPU by a kernel in C++: prefixes that grow by a letter, with what the gradient reads kept.

As `cpu_transformer` does for transformers. The first layer is a sum of one row for each letter (`nets.prefixes`): its
gradient is one sum from the end of each trajectory, where a product takes as many operations as another layer.
"""

import ctypes
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.envs.sequence import SequenceEnv
from sgfn.learning.kernels.cpp import LANES, Matrix, at, in_large_pages, library, matrix
from sgfn.nets.encoders import ACTIVATIONS, MLP
from sgfn.nets.prefixes import rows_by_symbol, sums_prefixes

SOURCE = "cpu_mlp"
KINDS = [ACTIVATIONS[name] for name in ("relu", "gelu", "silu")]
"""Activations in the kernel's order."""


class Shape(ctypes.Structure):
    """Sizes, as the kernel reads them."""

    _fields_ = [
        (name, ctypes.c_int)
        for name in ("batch", "length", "width", "layers", "threads", "symbols", "activation", "spare")
    ]


class Layer(ctypes.Structure):
    """A layer after the first."""

    _fields_ = [("weight", Matrix), ("bias", ctypes.c_void_p), ("pack", ctypes.c_void_p)]


def mlp_fits(env: object, encoder: object) -> bool:
    """Whether the kernel takes an encoder of an environment's states, and can be compiled here."""
    if type(encoder) is not MLP or not (isinstance(env, SequenceEnv) and sums_prefixes(env)):
        return False
    weight = encoder.linear[0].weight
    plain = weight.dtype == torch.float32 and weight.device.type == "cpu" and encoder.width % LANES == 0
    return plain and type(encoder.activation) in KINDS and library(SOURCE) is not None


class KeptMLP:
    """Representations of prefixes that grow by a letter, with all that their gradient reads."""

    def __init__(self, encoder: MLP, env: SequenceEnv, batch: int, length: int) -> None:
        found = library(SOURCE)
        assert found is not None
        self.library, self.encoder, self.env, self.batch, self.length = found, encoder, env, batch, length
        layers, h = len(encoder.linear), encoder.width
        room = in_large_pages((layers + 1) * batch * length * h)
        *self.sums, self.out = room.view(layers + 1, batch, length, h).unbind()
        self.packs = torch.empty(max(1, layers - 1), h, h)
        kind = KINDS.index(type(encoder.activation))
        self.shape = Shape(batch, length, h, layers, 1, env.symbols, kind, 0)
        self.places = (ctypes.c_void_p * layers)(*(kept.data_ptr() for kept in self.sums))
        self.table, self.begin = torch.empty(0), torch.empty(0)
        self.layers = self._layers()

    def _layers(self) -> Any:
        later = self.encoder.linear[1:]
        found = [
            Layer(matrix(layer.weight), layer.bias.data_ptr(), pack.data_ptr())
            for layer, pack in zip(later, self.packs, strict=False)
        ]
        return (Layer * max(1, len(later)))(*found)

    @torch.no_grad()
    def start(self) -> None:
        """Take the present weights; a letter at position 0 comes next."""
        self.shape.threads = torch.get_num_threads()
        self.layers = self._layers()
        table, begin = rows_by_symbol(self.encoder.linear[0], self.env)
        self.table, self.begin = table.contiguous(), begin.contiguous()
        self.library.pack_weights(ctypes.byref(self.shape), self.layers)

    def letter(self, letters: Int[Tensor, " B"], position: int) -> Float[Tensor, "B H"]:
        """Representations of prefixes of so many letters, the last of which is given; at 0 none is read."""
        self.library.letter(
            ctypes.byref(self.shape),
            self.layers,
            self.places,
            at(self.table),
            at(self.begin),
            at(letters),
            ctypes.c_long(letters.stride(0)),
            at(self.out),
            ctypes.c_int(position),
        )
        return self.out[:, position]

    def representations(self, letters: Int[Tensor, "B L"]) -> Float[Tensor, "B M H"]:
        """`encode_along` of the prefixes that were read, with its gradient."""
        table, start = rows_by_symbol(self.encoder.linear[0], self.env)
        later = [weight for layer in self.encoder.linear[1:] for weight in (layer.weight, layer.bias)]
        return FromKept.apply(self, letters.contiguous(), *later, start, table)

    def gradient(self, letters: Int[Tensor, "B L"], slope: Float[Tensor, "B M H"]) -> list[Tensor]:
        """Gradient of weights and biases of layers after the first, of the start and of the table."""
        slope, later = slope.contiguous(), len(self.encoder.linear) - 1
        h, steps = self.encoder.width, self.table.shape[0]
        shapes = [*((h, h), (h,)) * later, (h,), (steps, self.env.symbols, h)]
        sizes = [torch.Size(shape).numel() for shape in shapes]
        found = torch.empty(sum(sizes))
        self.library.gradient(
            ctypes.byref(self.shape),
            self.layers,
            self.places,
            at(letters),
            ctypes.c_long(letters.stride(0)),
            at(slope),
            at(found),
            ctypes.c_long(len(found)),
        )
        return [piece.view(shape) for piece, shape in zip(found.split(sizes), shapes, strict=True)]


class FromKept(torch.autograd.Function):
    """Representations that a rollout computed, as a function of weights."""

    @staticmethod
    def forward(ctx: Any, kept: KeptMLP, letters: Tensor, *weights: Tensor) -> Tensor:
        """What is kept."""
        ctx.kept, ctx.letters = kept, letters
        return kept.out.view_as(kept.out)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Any, ...]:
        """By the kernel, from the same rollout."""
        return None, None, *ctx.kept.gradient(ctx.letters, slopes[0])
