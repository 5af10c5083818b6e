"""Runs the kernels for sequences and for attention in Triton's interpreter beside plain PyTorch."""

from typing import Any

import torch
import torch.nn.functional as F

from sgfn.config import TrainConfig
from sgfn.landscapes.tasks import make_task
from sgfn.learning.kernels import sequence_kernels as kernels
from sgfn.learning.kernels.sequence_actor import SequenceKernel, plain_sequence
from sgfn.learning.rollout import RolloutDraws, act, clocks
from sgfn.learning.trainer import Trainer
from sgfn.nets import attention_kernel

TRANSFORMER = {"net__encoder": "transformer", "net__heads": 2, "net__layers": 2}
CASES = {
    "mlp": ({"noise__alpha": 0.25}, 1.0),
    "mlp, one layer, heated by a tensor, without noise": ({"net__layers": 1, "noise__alpha": 0.0}, torch.tensor(0.5)),
    "transformer, exploring, heated": (TRANSFORMER | {"noise__alpha": 0.25, "explore": 0.3}, 2.0),
}
BATCH = 3  # not a multiple of the rows of a program


def compare(changes: dict[str, object], temperature: float | torch.Tensor) -> dict[str, float]:
    """Shares of equal steps in both precisions, and with another clock."""
    small = {"ehrlich__vocab": 5, "ehrlich__length": 4, "ehrlich__motif_length": 2, "ehrlich__quantisation": 2}
    config = TrainConfig().with_(**{"net__hidden": 16, "batch": 4, **small, **changes})
    trainer = Trainer(make_task("ehrlich", config), torch.device("cpu"))
    nets, env = trainer.nets, trainer.env
    for parameter in nets.policy.parameters():
        torch.nn.init.normal_(parameter, std=0.3, generator=torch.Generator().manual_seed(1))
    clock = clocks((env.horizon, 2, BATCH, env.actions), torch.Generator().manual_seed(3))
    draws = RolloutDraws(clock=clock, rate=None, explore=config.explore, temperature=temperature)
    plain = act(env, trainer.actor(), trainer.task.log_reward, draws)
    sequence = plain_sequence(env)
    assert sequence is not None
    maker, found = SequenceKernel(env, sequence, nets, kernels, torch.device("cpu")), {}
    kinds = (("single", False, clock), ("half", True, clock), ("other clock", False, clock.flip(0)))
    for kind, half, times in kinds[: 2 if config.net.encoder == "transformer" else 3]:  # an MLP shows that it can fail
        with torch.no_grad():
            intended, realised = maker.roll(times, temperature, config.explore, half)
        same = torch.cat([intended == plain.intended, realised == plain.realised])
        found[kind] = float(same.float().mean())
    return found


def attention(batch: int, rows: int, heads: int, width: int) -> dict[str, float]:
    """Largest errors of attention and its gradient."""
    generator = torch.Generator().manual_seed(0)
    qkv = torch.randn(batch, rows, 3 * width, generator=generator)
    slope = torch.randn(batch, rows, width, generator=generator)
    mixed, gradient, sizes = torch.empty_like(slope), torch.empty_like(qkv), attention_kernel._sizes(qkv, heads)
    attention_kernel._forward[(batch * heads,)](qkv, mixed, rows, heads, **sizes)
    attention_kernel._backward[(batch * heads,)](qkv, slope, gradient, rows, heads, **sizes)
    known = qkv.double().requires_grad_()
    query, key, value = known.unflatten(-1, (3, heads, -1)).permute(2, 0, 3, 1, 4)
    plain = F.scaled_dot_product_attention(query, key, value, is_causal=True).transpose(1, 2).flatten(-2)
    (wanted,) = torch.autograd.grad(plain, known, slope.double())
    return {"value": float((mixed - plain.detach()).abs().max()), "gradient": float((gradient - wanted).abs().max())}


def found() -> dict[str, Any]:
    """All comparisons."""
    return {
        "rollouts": {case: compare(*described) for case, described in CASES.items()},
        "attention": [attention(2, 5, 2, 16), attention(1, 20, 1, 8)],
    }
