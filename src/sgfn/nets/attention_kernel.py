r"""Causal attention of short sequences in one GPU kernel, and its gradient in another, with no matrix in main memory.

A program has one head of one sequence: queries, keys and values of up to 128 rows fit into its registers, so that

.. math:: P = \mathrm{softmax}(Q K^\top/\sqrt D),\ O = P V, \qquad
          dV = P^\top dO,\ dS = P \circ (dO V^\top - \mathrm{rowsum}(dO \circ O))/\sqrt D,\ dQ = dS\,K,\ dK = dS^\top Q

are computed at once (Dao et al. 2022, FlashAttention, NeurIPS, for one tile). The twin in plain PyTorch is
`scaled_dot_product_attention`, whose kernels for long sequences take several times as long on short ones.
"""

# pyright: reportMissingImports=false, reportGeneralTypeIssues=false, reportFunctionMemberAccess=false, reportIndexIssue=false, reportPossiblyUnboundVariable=false, reportCallIssue=false
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

LONGEST, WIDEST = 128, 64
"""Most rows of a sequence, and most columns of a head."""


@triton.jit
def _shares(
    qkv, b, head, T, H: tl.constexpr, D: tl.constexpr, BT: tl.constexpr, BD: tl.constexpr, HOW: tl.constexpr  # noqa: N803
):  # fmt: skip
    """Queries, keys and values of one head, and what each row reads of those before it."""
    m, d = tl.arange(0, BT), tl.arange(0, BD)
    spot = qkv + (b * T + m[:, None]) * 3 * H + head * D + d[None, :]
    there = (m[:, None] < T) & (d[None, :] < D)
    q = tl.load(spot, mask=there, other=0.0)
    k = tl.load(spot + H, mask=there, other=0.0)
    v = tl.load(spot + 2 * H, mask=there, other=0.0)
    scores = tl.dot(q, tl.trans(k), input_precision=HOW) / tl.sqrt(D * 1.0)
    scores = tl.where(m[:, None] >= m[None, :], scores, -float("inf"))
    shares = tl.exp(scores - tl.max(scores, 1)[:, None])
    return q, k, v, shares / tl.sum(shares, 1)[:, None]


@triton.jit
def _forward(
    qkv, mixed, T, heads,  # noqa: N803
    H: tl.constexpr, D: tl.constexpr, BT: tl.constexpr, BD: tl.constexpr, HOW: tl.constexpr,  # noqa: N803
):  # fmt: skip
    b, head = (tl.program_id(0) // heads).to(tl.int64), tl.program_id(0) % heads
    _, _, v, shares = _shares(qkv, b, head, T, H, D, BT, BD, HOW)
    m, d = tl.arange(0, BT), tl.arange(0, BD)
    there = (m[:, None] < T) & (d[None, :] < D)
    tl.store(
        mixed + (b * T + m[:, None]) * H + head * D + d[None, :], tl.dot(shares, v, input_precision=HOW), mask=there
    )


@triton.jit
def _backward(
    qkv, slope, gradient, T, heads,  # noqa: N803
    H: tl.constexpr, D: tl.constexpr, BT: tl.constexpr, BD: tl.constexpr, HOW: tl.constexpr,  # noqa: N803
):  # fmt: skip
    b, head = (tl.program_id(0) // heads).to(tl.int64), tl.program_id(0) % heads
    q, k, v, shares = _shares(qkv, b, head, T, H, D, BT, BD, HOW)
    m, d = tl.arange(0, BT), tl.arange(0, BD)
    there = (m[:, None] < T) & (d[None, :] < D)
    out = tl.load(slope + (b * T + m[:, None]) * H + head * D + d[None, :], mask=there, other=0.0)
    spot = gradient + (b * T + m[:, None]) * 3 * H + head * D + d[None, :]
    tl.store(spot + 2 * H, tl.dot(tl.trans(shares), out, input_precision=HOW), mask=there)
    share_slope = tl.dot(out, tl.trans(v), input_precision=HOW)
    score_slope = shares * (share_slope - tl.sum(shares * share_slope, 1)[:, None]) / tl.sqrt(D * 1.0)
    tl.store(spot, tl.dot(score_slope, k, input_precision=HOW), mask=there)
    tl.store(spot + H, tl.dot(tl.trans(score_slope), q, input_precision=HOW), mask=there)


def _sizes(qkv: Tensor, heads: int) -> dict[str, object]:
    rows, width = qkv.shape[1], qkv.shape[2] // 3
    tile = max(16, 1 << (rows - 1).bit_length())
    each = width // heads
    how = "ieee" if torch.get_float32_matmul_precision() == "highest" else "tf32"
    sizes: dict[str, object] = {
        "H": width,
        "D": each,
        "BT": tile,
        "BD": max(16, 1 << (each - 1).bit_length()),
        "HOW": how,
    }
    return sizes | {"num_warps": {16: 1, 32: 2, 64: 4}.get(tile, 8)}


@torch.library.triton_op("sgfn::causal_attention", mutates_args={})
def causal_attention(qkv: Tensor, heads: int) -> Tensor:
    """Mixed values [B, T, H] of queries, keys and values [B, T, 3 H], the columns of each head side by side."""
    qkv = qkv.contiguous()
    batch, rows, width = qkv.shape
    mixed = torch.empty(batch, rows, width // 3, dtype=qkv.dtype, device=qkv.device)
    torch.library.wrap_triton(_forward)[(batch * heads,)](qkv, mixed, rows, heads, **_sizes(qkv, heads))
    return mixed


@torch.library.triton_op("sgfn::causal_attention_backward", mutates_args={})
def causal_attention_backward(qkv: Tensor, slope: Tensor, heads: int) -> Tensor:
    """Gradient of `causal_attention` with respect to its input, given that of its result."""
    qkv, slope = qkv.contiguous(), slope.contiguous()
    gradient = torch.empty_like(qkv)
    grid = (qkv.shape[0] * heads,)
    torch.library.wrap_triton(_backward)[grid](qkv, slope, gradient, qkv.shape[1], heads, **_sizes(qkv, heads))
    return gradient


def _keep(ctx: Any, inputs: Any, output: Tensor) -> None:
    ctx.save_for_backward(inputs[0])
    ctx.heads = inputs[1]


def _gradients(ctx: Any, slope: Tensor) -> tuple[Tensor, None]:
    return causal_attention_backward(ctx.saved_tensors[0], slope, ctx.heads), None


causal_attention.register_autograd(_gradients, setup_context=_keep)
