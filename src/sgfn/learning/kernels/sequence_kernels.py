"""Whole rollouts of sequences of one length in one GPU kernel, by an MLP or by a transformer, with no table of states.

Each program makes all steps of a few sequences. The MLP carries the sums of its first layer along, as
`fixed_length_net` does, and keeps its weights on the processor. The transformer reads its weights anew at every step
and keeps keys and values of what it has read; its attention is a product for each sequence, of a matrix that holds the
query of one head in each row. Products are of half precision with sums in single, as in `whole_rollout`. The twin in
plain PyTorch is `learning.rollout.act`: given the same waiting times the two take the same steps, up to rounding.
"""

# pyright: reportMissingImports=false, reportIndexIssue=false, reportPossiblyUnboundVariable=false, reportCallIssue=false
from itertools import pairwise

import torch
import triton
import triton.language as tl
from jaxtyping import Float, Int
from torch import Tensor, nn

from sgfn.learning.kernels.drawing import (
    NAMES,
    activate,
    draw_action,
    draw_by_position,
    padded,
    waiting_times,
    weight_tile,
)
from sgfn.nets.encoders import MLP
from sgfn.nets.transformer import Block, TokenEncoder

MOST_MLP_LAYERS, WIDEST_MLP, MOST_MLP_ACTIONS = 2, 256, 64
"""Largest MLP whose weights fit into the memory of one processor."""
WIDEST_TRANSFORMER, MOST_HEADS, MOST_ACTIONS = 128, 16, 256
"""Widest transformer whose weight matrices fit there one by one, most heads and most letters."""
PROCESSORS = 132
"""Programs beyond which a program takes more than one sequence: the multiprocessors of a large GPU."""


@triton.jit
def _within(hidden, TYPE: tl.constexpr):  # noqa: N803
    """Activations, which are never far below zero, in the precision of products; no infinity in half precision."""
    if TYPE == tl.float16:  # noqa: SIM300
        hidden = tl.minimum(hidden, 65504.0)
    return hidden.to(TYPE)


@triton.jit
def _mlp_kernel(
    clock, table, by_step, temperature, temperature_value, explore_share, rows,
    w0, w0_along, w0_across, b0, w1, w1_along, w1_across, b1, policy, policy_along, policy_across, policy_bias,
    intended, realised,
    T: tl.constexpr, H: tl.constexpr, A: tl.constexpr, LAYERS: tl.constexpr, NAME: tl.constexpr,  # noqa: N803
    BM: tl.constexpr, BH: tl.constexpr, BA: tl.constexpr,  # noqa: N803
    HEATED: tl.constexpr, EXPLORE: tl.constexpr, NOISY: tl.constexpr, TYPE: tl.constexpr,  # noqa: N803
):  # fmt: skip
    row = (tl.program_id(0) * BM + tl.arange(0, BM)).to(tl.int64)
    inside = row < rows
    a, h = tl.arange(0, BA), tl.arange(0, BH)
    column, unit = a[None, :] < A, h < H
    asked = inside[:, None] & column
    legal = column & (row[:, None] >= 0)
    head = weight_tile(policy, policy_along, policy_across, A, H, BA, BH, TYPE)
    head_bias = tl.load(policy_bias + a, mask=a < A, other=0.0)[None, :]
    if LAYERS > 1:
        inner = weight_tile(w1, w1_along, w1_across, H, H, BH, BH, TYPE)
        inner_bias = tl.load(b1 + h, mask=unit, other=0.0)[None, :]
    if HEATED:
        temperature_value = tl.load(temperature)
    lengths = w0 + h * w0_along + T * A * w0_across  # weights of the code of the length
    sums = tl.load(b0 + h, mask=unit, other=0.0)[None, :] + tl.zeros((BM, BH), tl.float32)
    for t in range(T):
        times = clock + t * 2 * rows * A + row[:, None] * A + a[None, :]
        action_times = waiting_times(times, asked)
        hidden = activate(sums + tl.load(lengths + t * w0_across, mask=unit, other=0.0)[None, :], NAME)
        if LAYERS > 1:
            hidden = activate(tl.dot(_within(hidden, TYPE), inner, out_dtype=tl.float32) + inner_bias, NAME)
        logits = tl.dot(_within(hidden, TYPE), head, out_dtype=tl.float32) + head_bias
        action = draw_action(logits / temperature_value, legal, action_times, explore_share, EXPLORE)
        outcome = draw_by_position(table + t * by_step, times + rows * A, action, a, column, asked, A, NOISY)
        tl.store(intended + row * T + t, action.to(tl.int64), mask=inside)
        tl.store(realised + row * T + t, outcome.to(tl.int64), mask=inside)
        written = w0 + h[None, :] * w0_along + (t * A + outcome)[:, None] * w0_across
        sums += tl.load(written, mask=unit[None, :] & inside[:, None], other=0.0)


@triton.jit
def _normalised(x, weight, bias, h, H: tl.constexpr):  # noqa: N803
    """Rows with mean 0 and variance 1, scaled and shifted."""
    centred = x - (tl.sum(x, 1) / H)[:, None]
    variance = tl.sum(centred * centred, 1) / H
    return centred * tl.rsqrt(variance + 1e-5)[:, None] * tl.load(weight + h)[None, :] + tl.load(bias + h)[None, :]


@triton.jit
def _attend(
    query, keys, values, first, rows, m, h, t,
    T: tl.constexpr, H: tl.constexpr, D: tl.constexpr, BM: tl.constexpr,  # noqa: N803
    EACH: tl.constexpr, BN: tl.constexpr, BP: tl.constexpr, TYPE: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """Attention of one new row over all positions up to t, for each sequence of the program; scores in base e."""
    n, p = tl.arange(0, BN), tl.arange(0, BP)
    own = n[:, None] == (h // D)[None, :]  # columns of each head
    mixed = tl.zeros((BM, H), tl.float32)
    for r in tl.static_range(EACH):
        start = tl.minimum(first + r, rows - 1).to(tl.int64) * T * H
        here = tl.sum(tl.where(m[:, None] == r, query, 0.0), 0)
        heads = tl.where(own, here[None, :], 0.0).to(TYPE)  # BN H
        largest = tl.full((BN,), -float("inf"), tl.float32)
        total = tl.zeros((BN,), tl.float32)
        found = tl.zeros((BN, H), tl.float32)
        for tile in range(t // BP + 1):
            place = tile * BP + p
            there = place <= t
            key = tl.load(keys + start + place[None, :] * H + h[:, None], mask=there[None, :], other=0.0)
            scores = tl.where(there[None, :], tl.dot(heads, key, out_dtype=tl.float32), -float("inf"))
            most = tl.maximum(largest, tl.max(scores, 1))
            share, shrink = tl.exp(scores - most[:, None]), tl.exp(largest - most)
            total = total * shrink + tl.sum(share, 1)
            value = tl.load(values + start + place[:, None] * H + h[None, :], mask=there[:, None], other=0.0)
            found = found * shrink[:, None] + tl.dot(share.to(TYPE), value, out_dtype=tl.float32)
            largest = most
        joined = tl.sum(tl.where(own, found / total[:, None], 0.0), 0)
        mixed += tl.where(m[:, None] == r, joined[None, :], 0.0)
    return mixed


@triton.jit
def _decoding_kernel(
    clock, table, by_step, temperature, temperature_value, explore_share, rows,
    items, places, keys, values,
    norm1, norm1_bias, read, read_along, read_across, read_bias, write, write_along, write_across, write_bias,
    norm2, norm2_bias, up, up_along, up_across, up_bias, down, down_along, down_across, down_bias, by_block,
    last, last_bias, policy, policy_along, policy_across, policy_bias,
    intended, realised,
    T: tl.constexpr, H: tl.constexpr, D: tl.constexpr, A: tl.constexpr, LAYERS: tl.constexpr,  # noqa: N803
    BM: tl.constexpr, EACH: tl.constexpr, BA: tl.constexpr, BN: tl.constexpr, BP: tl.constexpr,  # noqa: N803
    STAGES: tl.constexpr,  # noqa: N803
    HEATED: tl.constexpr, EXPLORE: tl.constexpr, NOISY: tl.constexpr, TYPE: tl.constexpr,  # noqa: N803
):  # fmt: skip
    # One function: what its loop keeps on the chip, and the addresses of all weights, would be arguments of every part.
    # A program makes EACH sequences; its products have BM rows, of which the others are padding.
    first = tl.program_id(0) * EACH
    m, a, h = tl.arange(0, BM), tl.arange(0, BA), tl.arange(0, H)
    row = (first + m).to(tl.int64)
    inside = (row < rows) & (m < EACH)
    column = a[None, :] < A
    asked, legal = inside[:, None] & column, column & (row[:, None] >= 0)
    scale = 1.0 / tl.sqrt(D * 1.0)
    if HEATED:
        temperature_value = tl.load(temperature)
    symbol = tl.full((BM,), A, tl.int32)  # the item that stands before all letters
    for t in range(T):
        times = clock + t * 2 * rows * A + row[:, None] * A + a[None, :]
        action_times = waiting_times(times, asked)
        x = tl.load(items + symbol[:, None] * H + h[None, :]) + tl.load(places + t * H + h)[None, :]
        for layer in range(LAYERS):
            s = layer * by_block
            q = weight_tile(read + s, read_along, read_across, H, H, H, H, TYPE)
            k = weight_tile(read + s + H * read_along, read_along, read_across, H, H, H, H, TYPE)
            v = weight_tile(read + s + 2 * H * read_along, read_along, read_across, H, H, H, H, TYPE)
            y = _normalised(x, norm1 + s, norm1_bias + s, h, H).to(TYPE)
            query = tl.dot(y, q, out_dtype=tl.float32) + tl.load(read_bias + s + h)[None, :]
            key = tl.dot(y, k, out_dtype=tl.float32) + tl.load(read_bias + s + H + h)[None, :]
            value = tl.dot(y, v, out_dtype=tl.float32) + tl.load(read_bias + s + 2 * H + h)[None, :]
            block = rows.to(tl.int64) * T * H * layer
            spot = block + row[:, None] * T * H + t * H + h[None, :]
            tl.store(keys + spot, key.to(TYPE), mask=inside[:, None])
            tl.store(values + spot, value.to(TYPE), mask=inside[:, None])
            out = weight_tile(write + s, write_along, write_across, H, H, H, H, TYPE)
            tl.debug_barrier()  # other threads of the program read what was just stored
            mixed = _attend(
                query * scale, keys + block, values + block, first, rows, m, h, t, T, H, D, BM, EACH, BN, BP, TYPE
            )
            x += tl.dot(mixed.to(TYPE), out, out_dtype=tl.float32) + tl.load(write_bias + s + h)[None, :]
            y = _normalised(x, norm2 + s, norm2_bias + s, h, H).to(TYPE)
            x += tl.load(down_bias + s + h)[None, :]
            for part in tl.range(4, num_stages=STAGES):
                wide = weight_tile(up + s + part * H * up_along, up_along, up_across, H, H, H, H, TYPE)
                narrow = weight_tile(down + s + part * H * down_across, down_along, down_across, H, H, H, H, TYPE)
                inner = tl.dot(y, wide, out_dtype=tl.float32) + tl.load(up_bias + s + part * H + h)[None, :]
                x += tl.dot(activate(inner, "gelu").to(TYPE), narrow, out_dtype=tl.float32)
        head = weight_tile(policy, policy_along, policy_across, A, H, BA, H, TYPE)
        y = _normalised(x, last, last_bias, h, H).to(TYPE)
        logits = tl.dot(y, head, out_dtype=tl.float32) + tl.load(policy_bias + a, mask=a < A, other=0.0)[None, :]
        action = draw_action(logits / temperature_value, legal, action_times, explore_share, EXPLORE)
        outcome = draw_by_position(table + t * by_step, times + rows * A, action, a, column, asked, A, NOISY)
        tl.store(intended + row * T + t, action.to(tl.int64), mask=inside)
        tl.store(realised + row * T + t, outcome.to(tl.int64), mask=inside)
        symbol = tl.where(inside, outcome, A).to(tl.int32)


Written = tuple[Int[Tensor, "B T"], Int[Tensor, "B T"]]
"""Intentions and outcomes."""


def mlp_fits(encoder: MLP, actions: int) -> bool:
    """Whether the kernel takes an MLP of this size."""
    layers = encoder.linear
    small = layers[0].out_features <= WIDEST_MLP and len(layers) <= MOST_MLP_LAYERS and actions <= MOST_MLP_ACTIONS
    return small and type(encoder.activation) in NAMES


def transformer_fits(encoder: TokenEncoder, actions: int) -> bool:
    """Whether the kernel takes a transformer of this size."""
    width, core = encoder.width, encoder.core
    narrow = 16 <= width <= WIDEST_TRANSFORMER and width & (width - 1) == 0
    return narrow and core.heads <= MOST_HEADS and actions <= MOST_ACTIONS and _even(core.blocks)


def mlp_rollout(
    encoder: MLP,
    policy: nn.Linear,
    table: Float[Tensor, "R A A"] | None,
    clock: Float[Tensor, "T 2 B A"],
    temperature: float | Float[Tensor, ""],
    explore: float,
    half: bool = True,
) -> Written:
    """Rollouts by an MLP of the code of sequences: tokens by position, then the length."""
    horizon, _, batch, actions = clock.shape
    layers, found = encoder.linear, _outputs(clock)
    block = 16 if batch <= 2048 else 32
    weights = [item for layer in (layers[0], layers[-1], policy) for item in _described(layer)]
    name = NAMES[type(encoder.activation)]
    name = "quick-gelu" if half and name == "gelu" else name
    _mlp_kernel[(triton.cdiv(batch, block),)](
        *_inputs(clock, table, temperature, explore), *weights, *found,
        T=horizon, H=layers[0].out_features, A=actions, LAYERS=len(layers), NAME=name,
        BM=block, BH=padded(layers[0].out_features), BA=max(2 * block, padded(actions)),
        **_switches(table, temperature, explore, half), num_warps=8, num_stages=1,
    )  # fmt: skip
    return found


def transformer_rollout(
    encoder: TokenEncoder,
    policy: nn.Linear,
    table: Float[Tensor, "R A A"] | None,
    clock: Float[Tensor, "T 2 B A"],
    temperature: float | Float[Tensor, ""],
    explore: float,
    half: bool = True,
) -> Written:
    """Rollouts by a transformer over the letters written so far."""
    horizon, _, batch, actions = clock.shape
    core, width, found = encoder.core, encoder.width, _outputs(clock)
    kind = torch.float16 if half else torch.float32
    blocks = [block for block in core.blocks if isinstance(block, Block)]
    flat = _flat(policy.weight, kind)
    cache = torch.empty(2, len(blocks), batch, horizon, width, dtype=kind, device=clock.device)
    items = torch.cat([encoder.token.weight[:actions], encoder.begin[None]])
    each = min(16, 1 << ((batch - 1) // PROCESSORS).bit_length())
    first = blocks[0]
    _decoding_kernel[(triton.cdiv(batch, each),)](
        *_inputs(clock, table, temperature, explore),
        items, core.positions[:horizon].contiguous(), cache[0], cache[1],
        first.attention_norm.weight, first.attention_norm.bias, *_described(first.attention.read, flat),
        *_described(first.attention.write, flat), first.forward_norm.weight, first.forward_norm.bias,
        *_described(first.feed_forward.read, flat), *_described(first.feed_forward.write, flat), _stride(blocks),
        core.norm.weight, core.norm.bias, *_described(policy, flat), *found,
        T=horizon, H=width, D=width // core.heads, A=actions, LAYERS=len(blocks),
        BM=16, EACH=each, BA=padded(actions), BN=padded(core.heads), BP=min(128, padded(horizon)), STAGES=3,
        **_switches(table, temperature, explore, half), num_warps=4 if width <= 64 and each == 16 else 8, num_stages=1,
    )  # fmt: skip
    return found


def _outputs(clock: Float[Tensor, "T 2 B A"]) -> Written:
    shape = (clock.shape[2], clock.shape[0])
    intended = torch.empty(shape, dtype=torch.int64, device=clock.device)
    return intended, torch.empty_like(intended)


def _inputs(clock: Tensor, table: Tensor | None, temperature: float | Tensor, explore: float) -> tuple[object, ...]:
    """First arguments of both kernels; what is not there is never read."""
    heated = isinstance(temperature, Tensor)
    by_step = 0 if table is None or table.shape[0] == 1 else table.shape[1] * table.shape[2]
    values = (temperature if heated else clock, 1.0 if heated else float(temperature), float(explore), clock.shape[2])
    return clock, clock if table is None else table, by_step, *values


def _switches(table: Tensor | None, temperature: float | Tensor, explore: float, half: bool) -> dict[str, object]:
    kind = tl.float16 if half else tl.float32
    return {"HEATED": isinstance(temperature, Tensor), "EXPLORE": explore > 0, "NOISY": table is not None, "TYPE": kind}


def _flat(parameter: Tensor, kind: torch.dtype) -> Tensor:
    """All weights that lie in one buffer with a parameter, in another precision."""
    whole = torch.empty(0, dtype=parameter.dtype, device=parameter.device).set_(parameter.untyped_storage())
    return whole.to(kind)


def _described(layer: nn.Linear, flat: Tensor | None = None) -> tuple[Tensor, int, int, Tensor]:
    """Weight, its strides and bias; the weight is read from a copy of the buffer where one is given."""
    weight = layer.weight.detach()
    if flat is not None:
        weight = flat.as_strided(weight.shape, weight.stride(), weight.storage_offset())
    return weight, weight.stride(0), weight.stride(1), layer.bias


def _stride(blocks: list[Block]) -> int:
    """Distance between the same weights of two blocks in the buffer."""
    if len(blocks) == 1:
        return 0
    first, second = (int(block.attention.read.weight.storage_offset()) for block in blocks[:2])
    return second - first


def _even(blocks: nn.ModuleList) -> bool:
    """Whether all weights lie in one buffer, those of each block at the same distance from the block before."""
    each = [[(p.storage_offset(), p.stride(), p.data_ptr()) for p in block.parameters()] for block in blocks]
    steps = {tuple(b[0] - a[0] for a, b in zip(one, two, strict=True)) for one, two in pairwise(each)}
    pointers = {p[2] - p[0] * 4 for block in each for p in block}
    return len(pointers) == 1 and all(len(set(step)) == 1 for step in steps) and len(steps) <= 1
