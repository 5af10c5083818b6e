"""A whole rollout in one GPU kernel: each program makes all steps of a few trajectories.

The weights are read once and stay on the processor, as in persistent recurrent networks (Diamos et al. 2016, ICML);
a step is limited by look-ups that depend on each other. The twin in plain PyTorch is `sgfn.learning.rollout.act` with
the policy network: given the same waiting times the two take the same steps, up to rounding. Products are of half
precision with sums in single; half precision has ten bits of mantissa, as TF32 has.
"""

# pyright: reportMissingImports=false, reportIndexIssue=false, reportPossiblyUnboundVariable=false, reportCallIssue=false
import torch
import triton
import triton.language as tl
from jaxtyping import Float, Int
from torch import Tensor, nn

from sgfn.envs.tabulated import TabulatedEnv
from sgfn.learning.kernels.drawing import NAMES, activate, draw_action, padded, waiting_times, weight_tile

MOST_LAYERS, WIDEST, MOST_FEATURES, MOST_ACTIONS = 2, 256, 64, 64
"""Largest network that fits into the memory of one processor: features padded to 64 and layers of 256 take most."""

MAX_ACTIONS_DRAWN_AHEAD = 8
"""Largest number of actions for which the outcomes of all are drawn while the network is evaluated."""


@triton.jit
def _draw_outcomes(kernel, clock, row, inside, state, A: tl.constexpr, BC: tl.constexpr):  # noqa: N803
    """Outcome that each intention would have [BM, BC]."""
    c = tl.arange(0, BC)
    intended, outcome = c[None, :, None], c[None, None, :]
    outcome_times = waiting_times(clock + row[:, None, None] * A + outcome, inside[:, None, None] & (outcome < A))
    addresses = kernel + (state[:, None, None] * A + intended) * A + outcome
    outcome_probabilities = tl.load(addresses, mask=(intended < A) & (outcome < A), other=0.0)
    return tl.argmax(outcome_probabilities / outcome_times, 2)


@triton.jit
def _rollout_kernel(
    features, legal, kernel, following, clock, temperature, temperature_value, explore_share, rows,
    w0, w0_along, w0_across, b0, w1, w1_along, w1_across, b1, policy, policy_along, policy_across, policy_bias,
    intended, realised, states, kept, by_row, by_step,
    T: tl.constexpr, F: tl.constexpr, H: tl.constexpr, A: tl.constexpr, LAYERS: tl.constexpr, NAME: tl.constexpr,  # noqa: N803
    BM: tl.constexpr, BF: tl.constexpr, BH: tl.constexpr, BA: tl.constexpr, BC: tl.constexpr,  # noqa: N803
    KEEP: tl.constexpr, HEATED: tl.constexpr, EXPLORE: tl.constexpr, NOISY: tl.constexpr, TYPE: tl.constexpr,  # noqa: N803
):  # fmt: skip
    # One function: the weights and the state that its loop keeps on the chip would be arguments of every part of it.
    # BM: trajectories of a program. BF, BH, BA: features, hidden units and actions, padded to powers of two.
    # BC: actions padded to a power of two where all outcomes are drawn ahead; 0 where only that of the action is.
    row = (tl.program_id(0) * BM + tl.arange(0, BM)).to(tl.int64)
    inside = row < rows
    a, f, h = tl.arange(0, BA), tl.arange(0, BF), tl.arange(0, BH)
    column = a[None, :] < A
    asked = inside[:, None] & column
    entry = weight_tile(w0, w0_along, w0_across, H, F, BH, BF, TYPE)
    entry_bias = tl.load(b0 + h, mask=h < H, other=0.0)[None, :]
    head = weight_tile(policy, policy_along, policy_across, A, H, BA, BH, TYPE)
    head_bias = tl.load(policy_bias + a, mask=a < A, other=0.0)[None, :]
    if LAYERS > 1:
        inner = weight_tile(w1, w1_along, w1_across, H, H, BH, BH, TYPE)
        inner_bias = tl.load(b1 + h, mask=h < H, other=0.0)[None, :]
    if HEATED:
        temperature_value = tl.load(temperature)
    if BC > 0:
        c = tl.arange(0, BC)
    state = tl.zeros((BM,), tl.int64)
    tl.store(states + row * (T + 1), state, mask=inside)
    for t in range(T):
        times = clock + t * 2 * rows * A + row[:, None] * A + a[None, :]
        action_times = waiting_times(times, asked)
        x = tl.load(features + state[:, None] * F + f[None, :], mask=f[None, :] < F, other=0.0)
        legal_here = tl.load(legal + state[:, None] * A + a[None, :], mask=column, other=0) != 0
        if BC > 0:  # outcomes of all intentions, drawn while the network is evaluated
            if NOISY:
                outcomes = _draw_outcomes(kernel, clock + (t * 2 + 1) * rows * A, row, inside, state, A, BC)
            else:
                outcomes = tl.zeros((BM, BC), tl.int32) + c[None, :]
            after = tl.load(following + state[:, None] * A + outcomes, mask=c[None, :] < A, other=0)
        sums_address = kept + (row * by_row + t * by_step)[:, None] + h[None, :]
        stored = inside[:, None] & (h[None, :] < H)
        hidden = tl.dot(x.to(TYPE), entry, out_dtype=tl.float32) + entry_bias
        if KEEP:
            tl.store(sums_address, hidden, mask=stored)
        hidden = activate(hidden, NAME)
        if LAYERS > 1:
            hidden = tl.dot(hidden.to(TYPE), inner, out_dtype=tl.float32) + inner_bias
            if KEEP:
                tl.store(sums_address + rows.to(tl.int64) * T * H, hidden, mask=stored)
            hidden = activate(hidden, NAME)
        logits = tl.dot(hidden.to(TYPE), head, out_dtype=tl.float32) + head_bias
        action = draw_action(logits / temperature_value, legal_here, action_times, explore_share, EXPLORE)
        if BC > 0:
            this = c[None, :] == action[:, None]
            outcome = tl.sum(tl.where(this, outcomes, 0), 1)
            state = tl.sum(tl.where(this, after, 0), 1)
        else:
            outcome = action
            if NOISY:
                outcome_times = waiting_times(times + rows * A, asked)
                outcome_probabilities = tl.load(
                    kernel + (state * A + action)[:, None] * A + a[None, :], mask=column, other=0.0
                )
                outcome = tl.argmax(outcome_probabilities / outcome_times, 1)
            state = tl.load(following + state * A + outcome)
        tl.store(intended + row * T + t, action.to(tl.int64), mask=inside)
        tl.store(realised + row * T + t, outcome.to(tl.int64), mask=inside)
        tl.store(states + row * (T + 1) + t + 1, state, mask=inside)


def fits(layers: list[nn.Linear], actions: int) -> bool:
    """Whether the kernel takes networks of this size."""
    features, hidden = layers[0].in_features, layers[0].out_features
    return features <= MOST_FEATURES and hidden <= WIDEST and len(layers) <= MOST_LAYERS and actions <= MOST_ACTIONS


def whole_rollout(
    layers: list[nn.Linear],
    policy: nn.Linear,
    activation: nn.Module,
    env: TabulatedEnv,
    clock: Float[Tensor, "T 2 B A"],
    temperature: float | Float[Tensor, ""],
    explore: float,
    keep: bool,
    half: bool = True,
    steps_first: bool = False,
) -> tuple[Int[Tensor, "B T"], Int[Tensor, "B T"], Int[Tensor, "B T+1"], Float[Tensor, "layers _ _ H"] | None]:
    """Intentions, outcomes, numbers of states and, with `keep`, the inputs of each activation (B T or T B)."""
    horizon, _, batch, actions = clock.shape
    hidden, features, device = layers[0].out_features, layers[0].in_features, clock.device
    shape, by_row, by_step = ((horizon, batch), 1, batch) if steps_first else ((batch, horizon), horizon, 1)
    kept = torch.empty(len(layers), *shape, hidden, device=device) if keep else None
    intended = torch.empty(batch, horizon, dtype=torch.int64, device=device)
    realised = torch.empty_like(intended)
    states = torch.empty(batch, horizon + 1, dtype=torch.int64, device=device)
    block = 16 if batch <= 2048 else 32
    heated = isinstance(temperature, Tensor)
    weights = [item for layer in (layers[0], layers[-1], policy) for item in _described(layer)]
    _rollout_kernel[(triton.cdiv(batch, block),)](
        env.feature_table, env.legal_table, clock if env.noise_free else env.kernel_table, env.following,
        clock, temperature if heated else clock, 1.0 if heated else float(temperature), float(explore), batch,
        *weights, intended, realised, states, clock if kept is None else kept, by_row * hidden, by_step * hidden,
        T=horizon, F=features, H=hidden, A=actions, LAYERS=len(layers), NAME=NAMES[type(activation)],
        BM=block, BF=padded(features), BH=padded(hidden),
        BA=max(2 * block, padded(actions)),  # wider than high: the warps then share the columns of every product
        BC=1 << (actions - 1).bit_length() if actions <= MAX_ACTIONS_DRAWN_AHEAD else 0,
        KEEP=keep, HEATED=heated, EXPLORE=explore > 0, NOISY=not env.noise_free,
        TYPE=tl.float16 if half else tl.float32,
        num_warps=8, num_stages=1,
    )  # fmt: skip
    return intended, realised, states, kept


def _described(layer: nn.Linear) -> tuple[Tensor, int, int, Tensor]:
    return layer.weight, layer.weight.stride(0), layer.weight.stride(1), layer.bias
