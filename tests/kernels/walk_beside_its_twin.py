"""Runs the walking kernel in Triton's interpreter beside plain rollouts, and prints how far they agree as JSON.

A process of its own: the interpreter is chosen by the environment before Triton is imported.
"""

import json

import torch

from sgfn.config import TrainConfig
from sgfn.kernels.walk import fits, walk
from sgfn.nets.layered import Layered
from sgfn.rollout import clocks, rollout
from sgfn.tasks import make_task
from sgfn.trainer import Trainer

CASES = {
    "tfbind8": ("tfbind8", {}, 1.0),
    "one layer, exploring": ("tfbind8", {"net__layers": 1, "net__hidden": 40, "explore": 0.3}, 1.0),
    "grid, relu": ("grid", {"net__activation": "relu"}, 1.0),
    "variable length, silu": ("words", {"net__activation": "silu", "noise__alpha": 0.4}, 1.0),
    "heated": ("grid", {}, 2.0),
    "heated by a tensor": ("words", {}, torch.tensor(0.5)),
}
BATCH = 37  # not a multiple of the rows of a program


def compare(name: str, changes: dict[str, object], temperature: float | torch.Tensor) -> dict[str, object]:
    """Shares of equal steps, the largest error of what is kept, and the same with another clock."""
    config = TrainConfig().with_(**{"net__hidden": 64, "batch": 4, **changes})
    trainer = Trainer(make_task(name, config), torch.device("cpu"))
    encoder, head, env = trainer.nets.encoder, trainer.nets.policy, trainer.env
    for parameter in head.parameters():
        torch.nn.init.normal_(parameter, std=0.3, generator=torch.Generator().manual_seed(1))
    twin = Layered(env, encoder, head, keep=True)
    settings = {"batch": BATCH, "explore": config.explore, "temperature": temperature}
    plain = rollout(env, twin, trainer.task.log_reward, generator=torch.Generator().manual_seed(3), **settings)
    found = {"fits": fits(encoder.linear, env.actions)}
    for kind, half, seed in (("single", False, 3), ("half", True, 3), ("other clock", False, 4)):
        clock = clocks((env.horizon, 2, BATCH, env.actions), torch.Generator().manual_seed(seed))
        arguments = (encoder.linear, head, encoder.activation, env, clock, temperature, config.explore, True, half)
        with torch.no_grad():
            intended, realised, states, kept = walk(*arguments)
        same = torch.cat([intended == plain.intended, realised == plain.realised, states == plain.states[..., 0]], 1)
        error = max(float((a - b).abs().max()) for a, b in zip(kept, twin.sums(), strict=True))
        found[kind] = {"same": float(same.float().mean()), "error": error}
    return found


if __name__ == "__main__":
    print(json.dumps({case: compare(*described) for case, described in CASES.items()}))  # noqa: T201
