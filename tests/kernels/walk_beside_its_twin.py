"""Runs the walking kernel in Triton's interpreter beside plain rollouts, and prints how far they agree as JSON.

A process of its own: the interpreter is chosen by the environment before Triton is imported.
"""

import json

import torch

from sgfn import append_rollout
from sgfn.config import TrainConfig
from sgfn.kernels import walk as kernel
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


def judge(batch: int, most: int) -> dict[str, float]:
    """The largest error of what a compiled step makes of the kernel's walk, beside judging the same states anew."""
    append_rollout.LARGEST_KEPT = most
    config = TrainConfig().with_(net__hidden=64, batch=batch, explore=0.1)
    trainer = Trainer(make_task("tfbind8", config), torch.device("cpu"))
    way, generator = trainer.append_only, torch.Generator().manual_seed(5)
    way.walk_by(kernel, trainer.env)
    drawn = way.roller.draw(batch, generator, explore=0.1)
    done, found = way.roller.roll(drawn)
    anew = way.roller.walk(drawn.intended, drawn.realised)
    said = way.net.forced(anew.rows, anew.last, anew.realised).outputs[:, anew.index]
    own = way.episodes(done, way.log_reward(done.realised))
    slopes = [
        way.slopes(walked, passed, own, torch.ones(()), learn=True)
        for walked, passed in ((done, found), (anew, way.net.forced(anew.rows, anew.last, anew.realised)))
    ]
    apart = [float((a - b).abs().max() / b.abs().max()) for a, b in zip(slopes[0].nets, slopes[1].nets, strict=True)]
    here = found.outputs[:, done.index]
    plain = rollout(
        trainer.env,
        Layered(trainer.env, trainer.nets.encoder, trainer.nets.policy),
        trainer.task.log_reward,
        batch=batch,
        explore=0.1,
        generator=generator.manual_seed(5),
    )
    return {
        "kept": float(drawn.sums is not None),
        "same": float((plain.realised == drawn.realised).float().mean()),
        "error": float((here - said).abs().max()),
        "gradient": max(apart),
        "other states": float((here - said.roll(1, 1)).abs().max()),
    }


if __name__ == "__main__":
    beside = {case: compare(*described) for case, described in CASES.items()}
    print(json.dumps({"walks": beside, "judged": [judge(37, 1024), judge(37, 1)]}))  # noqa: T201
