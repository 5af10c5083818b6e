"""Pieces that GPU kernels of whole rollouts share: activations, waiting times, intentions and outcomes."""

# pyright: reportMissingImports=false, reportIndexIssue=false, reportPossiblyUnboundVariable=false, reportCallIssue=false
import triton
import triton.language as tl
from torch import nn

NAMES: dict[type[nn.Module], str] = {nn.ReLU: "relu", nn.GELU: "gelu", nn.SiLU: "silu"}
"""Name of each activation that `activate` has."""


@triton.jit
def activate(x, NAME: tl.constexpr):  # noqa: N803
    """The activation of that name; `quick-gelu` is the polynomial of `nets.quick_gelu`."""
    if NAME == "quick-gelu":
        near = tl.minimum(tl.maximum(x, -4.5), 4.5)
        u = near * near * (2.0 / 20.25) - 1.0
        p = u * 0.000819328268 - 0.00225915444
        p = p * u + 0.00307924483
        p = p * u - 0.00541326402
        p = p * u + 0.0111570176
        p = p * u - 0.0189148205
        p = p * u + 0.0283720815
        p = p * u - 0.0401344764
        p = p * u + 0.0546917515
        p = p * u - 0.0771922821
        p = p * u + 0.156905088
        return x * (0.5 + near * p)
    if NAME == "gelu":
        return 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
    if NAME == "silu":
        return x * tl.sigmoid(x)
    return tl.maximum(x, 0.0)


@triton.jit
def waiting_times(addresses, there):
    """Waiting times at addresses, 1 where masked; at least 1e-30, as a zero would win against any probability."""
    return tl.maximum(tl.load(addresses, mask=there, other=1.0), 1e-30)


@triton.jit
def draw_action(logits, legal_here, action_times, explore_share, EXPLORE: tl.constexpr):  # noqa: N803
    """A legal action from each row: argmax of p_a / t_a, with p the policy mixed with a share of uniform."""
    logits = tl.where(legal_here, logits, -float("inf"))
    if EXPLORE:
        probabilities = tl.exp(logits - tl.max(logits, 1)[:, None])
        probabilities = probabilities / tl.sum(probabilities, 1)[:, None]
        uniform = legal_here.to(tl.float32)
        probabilities = probabilities + explore_share * (uniform / tl.sum(uniform, 1)[:, None] - probabilities)
        return tl.argmax(probabilities / action_times, 1)
    return tl.argmax(logits - tl.log(action_times), 1)  # the argmax does not depend on the normalisation


@triton.jit
def draw_by_position(table, times, action, a, column, asked, A: tl.constexpr, NOISY: tl.constexpr):  # noqa: N803
    """The outcome of each row's action by the kernel `table` [A, A] of a position; the action itself without noise."""
    outcome = action
    if NOISY:
        outcome_times = waiting_times(times, asked)
        probabilities = tl.load(table + action[:, None] * A + a[None, :], mask=column, other=0.0)
        outcome = tl.argmax(probabilities / outcome_times, 1)
    return outcome


@triton.jit
def weight_tile(weight, along, across, N, K, BN: tl.constexpr, BK: tl.constexpr, TYPE: tl.constexpr):  # noqa: N803
    """A layer's weight [N, K] with its strides, transposed and padded with zeros: [BK, BN]."""
    n, k = tl.arange(0, BN), tl.arange(0, BK)
    there = (n[None, :] < N) & (k[:, None] < K)
    return tl.load(weight + n[None, :] * along + k[:, None] * across, mask=there, other=0.0).to(TYPE)


def padded(size: int) -> int:
    """The least power of two that a matrix unit takes."""
    return max(16, 1 << (size - 1).bit_length())
