"""Transformers on a CPU by a kernel in C++: letter by letter, keeping what the gradient reads, so that an update needs
no second pass.

A rollout reads every prefix of its own batch at the weights of the update: the same representations again would take a
quarter of a step. `KeptTransformer.representations` gives those of the rollout, with the gradient of the full pass;
it is `CausalTransformer.forward` up to rounding. Threads share trajectories out, and meet once a letter.
"""

import ctypes
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from sgfn.learning.kernels.cpp import FLOATS, LANES, Matrix, at, in_large_pages, library, matrix
from sgfn.nets.transformer import CausalTransformer

SOURCE = "cpu_transformer"
LETTER = [*[ctypes.c_void_p] * 4, ctypes.c_long, *[ctypes.c_void_p] * 4, ctypes.c_long, ctypes.c_int]
"""Types of what the kernel's `letter` is given, which is called often: Python's own numbers then do."""


class Shape(ctypes.Structure):
    """Sizes, as the kernel reads them."""

    _fields_ = [
        (name, ctypes.c_int) for name in ("batch", "length", "width", "heads", "layers", "threads", "cached", "spare")
    ]


VECTORS = (
    "attention_norm.weight",
    "attention_norm.bias",
    "forward_norm.weight",
    "forward_norm.bias",
    "attention.read.bias",
    "attention.write.bias",
    "feed_forward.read.bias",
    "feed_forward.write.bias",
)
MATRICES = ("attention.read.weight", "attention.write.weight", "feed_forward.read.weight", "feed_forward.write.weight")
"""Weights of a block in the kernel's order."""


class BlockWeights(ctypes.Structure):
    """Where the weights of a block are."""

    _fields_ = [(name.replace(".", "_"), FLOATS) for name in VECTORS] + [
        (name.replace(".", "_"), Matrix) for name in MATRICES
    ]


KEPT = ("start", "read", "mixed", "middle", "wide", "keys", "peaks")
PACKED = ("read_pack", "write_pack", "widen_pack", "narrow_pack")


class BlockKept(ctypes.Structure):
    """Where a block keeps what it computes, and its weights in the order of products."""

    _fields_ = [(name, FLOATS) for name in (*KEPT, *PACKED)]


def transformer_fits(core: CausalTransformer) -> bool:
    """Whether the kernel takes a transformer, and can be compiled here."""
    each = core.width // core.heads
    plain = core.width % LANES == 0 and each % LANES == 0 and core.positions.dtype == torch.float32
    return plain and core.positions.device.type == "cpu" and library(SOURCE) is not None


def rounds_fast() -> bool:
    """Whether this processor multiplies bfloat16 faster than float32."""
    found = library(SOURCE)
    return found is not None and bool(found.rounds_fast())


class KeptTransformer:
    """Representations of prefixes that grow by a letter, with all that their gradient reads.

    With `rounded`, factors of the products of the gradient are rounded to bfloat16. Their sums, representations,
    attention and its gradient and normalisations are in float32.
    """

    def __init__(self, core: CausalTransformer, batch: int, length: int, *, rounded: bool = False) -> None:
        found = library(SOURCE)
        assert found is not None
        self.library, self.core, self.batch, self.length, self.rounded = found, core, batch, length, rounded
        found.letter.argtypes = LETTER
        h, cached = core.width, length + -length % LANES
        rows = {"start": h, "read": 3 * h, "mixed": h, "middle": h, "wide": 4 * h}
        sizes = {name: batch * length * n for name, n in rows.items()}
        sizes |= {"keys": batch * cached * h, "peaks": batch * length * 2 * core.heads}
        sizes |= dict(zip(PACKED, (3 * h * h, h * h, 4 * h * h, 4 * h * h), strict=True))
        count, end = len(core.blocks), batch * length * h
        *room, self.end = in_large_pages(count * sum(sizes.values()) + end).split([*sizes.values()] * count + [end])
        self.kept = [dict(zip(sizes, room[i * len(sizes) :], strict=False)) for i in range(count)]
        self.out = torch.zeros(batch, length, h)
        self.outs = self.out.unbind(1)
        self.shape = Shape(batch, length, h, core.heads, len(self.kept), 1, cached, 0)
        self.places = (BlockKept * (len(self.kept) + 1))(
            *(BlockKept(*(block[name].data_ptr() for name in (*KEPT, *PACKED))) for block in self.kept),
            BlockKept(start=self.end.data_ptr()),
        )
        blocks = [block.get_parameter(name) for block in core.blocks for name in (*VECTORS, *MATRICES)]
        self.parameters = [*blocks, core.norm.weight, core.norm.bias]  # in the kernel's order
        self.weights, self.positions, self.places_of_letters = self._weights(), core.positions, list[Any]()

    def _weights(self) -> Any:
        """Where the weights of all blocks are now."""
        each, found = len(VECTORS) + len(MATRICES), []
        for i in range(len(self.core.blocks)):
            vectors = self.parameters[i * each : i * each + len(VECTORS)]
            matrices = self.parameters[i * each + len(VECTORS) : (i + 1) * each]
            found.append(BlockWeights(*(v.data_ptr() for v in vectors), *(matrix(m) for m in matrices)))
        return (BlockWeights * len(found))(*found)

    def start(self) -> None:
        """Take the present weights; a letter at position 0 comes next."""
        self.shape.threads = torch.get_num_threads()
        self.weights = self._weights()
        self.library.pack_weights(ctypes.byref(self.shape), self.weights, self.places)
        norm, self.positions = self.core.norm, self.core.positions.detach().contiguous()  # some lie transposed
        common = (norm.weight.data_ptr(), norm.bias.data_ptr())
        firsts = zip(self.positions, self.outs, strict=False)
        self.places_of_letters = [(row.data_ptr(), *common, out.data_ptr(), out.stride(0)) for row, out in firsts]

    def letter(self, item: Float[Tensor, "B H"], position: int) -> Float[Tensor, "B H"]:
        """Row `position` of the full pass, after a letter for each position before it."""
        assert item.stride(1) == 1
        network = (ctypes.byref(self.shape), self.weights, self.places)
        self.library.letter(*network, item.data_ptr(), item.stride(0), *self.places_of_letters[position], position)
        return self.outs[position]

    def representations(self, items: Float[Tensor, "B M H"]) -> Float[Tensor, "B M H"]:
        """`core(items)` of the items that were read, with its gradient."""
        count = items.shape[1]
        assert count == self.length
        return FromKept.apply(self, items + self.core.positions[:count], *self.parameters)

    def gradient(self, slope: Float[Tensor, "B M H"]) -> tuple[Tensor, list[Tensor]]:
        """Gradient of the items and of `parameters`, from that of the representations."""
        slope, items = slope.contiguous(), torch.empty_like(self.out)
        sizes = [p.numel() for p in self.parameters]
        found = torch.empty(sum(sizes))
        self.library.gradient(
            ctypes.byref(self.shape),
            self.weights,
            self.places,
            at(self.core.norm.weight),
            at(slope),
            at(items),
            at(found),
            ctypes.c_long(len(found)),
            ctypes.c_int(self.rounded),
        )
        pieces = found.split(sizes)
        return items, [piece.view(p.shape) for piece, p in zip(pieces, self.parameters, strict=True)]


class FromKept(torch.autograd.Function):
    """Representations that a rollout computed, as a function of its items and weights."""

    @staticmethod
    def forward(ctx: Any, kept: KeptTransformer, items: Tensor, *weights: Tensor) -> Tensor:
        """What is kept."""
        ctx.kept = kept
        return kept.out.view_as(kept.out)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Any, ...]:
        """By the kernel, from the same rollout."""
        items, weights = ctx.kept.gradient(slopes[0])
        return None, items, *weights
