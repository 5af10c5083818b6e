"""Runs the kernel for whole rollouts in Triton's interpreter beside plain rollouts, and tells how far they agree."""

from typing import Any
from unittest.mock import patch

import torch

from sgfn.config import TrainConfig
from sgfn.landscapes.tasks import make_task
from sgfn.learning import general
from sgfn.learning.kernels import fixed_length_rollout as append_rollout
from sgfn.learning.kernels import whole_rollout as kernel
from sgfn.learning.kernels.fixed_length import visited
from sgfn.learning.kernels.fixed_length_rollout import KernelSequenceRollouts
from sgfn.learning.kernels.mlp_actor import MLPActor
from sgfn.learning.kernels.whole_rollout import fits, whole_rollout
from sgfn.learning.rollout import clocks, rollout
from sgfn.learning.trainer import Trainer

CASES = {
    "tfbind8": ("tfbind8", {}, 1.0),
    "one layer, exploring": ("tfbind8", {"net__layers": 1, "net__hidden": 40, "explore": 0.3}, 1.0),
    "grid, relu": ("grid", {"net__activation": "relu", "grid__side": 4}, 1.0),
    "variable length, silu": ("words", {"net__activation": "silu", "noise__alpha": 0.4}, 1.0),
    "heated": ("grid", {"grid__side": 4}, 2.0),
    "heated by a tensor": ("words", {}, torch.tensor(0.5)),
    "not exploring": ("tfbind8", {"explore": 0.0}, 1.0),
    "without noise": ("words", {"noise__alpha": 0.0}, 1.0),
    "without noise, many actions": (
        "bits",
        {"bits__length": 8, "bits__k": 4, "bits__modes": 4, "noise__alpha": 0.0},
        1.0,
    ),
    "not exploring, heated, not all is legal": ("words", {"explore": 0.0, "noise__alpha": 0.4}, torch.tensor(0.5)),
    "many actions": ("bits", {"bits__length": 8, "bits__k": 4, "bits__modes": 4, "noise__alpha": 0.3}, 1.0),
    "many actions, not exploring": ("bits", {"bits__length": 8, "bits__k": 4, "bits__modes": 4, "explore": 0.0}, 2.0),
}
BATCH = 19  # not a multiple of the rows of a program


def compare_rollouts(name: str, changes: dict[str, object], temperature: float | torch.Tensor) -> dict[str, object]:
    """Shares of equal steps, the largest error of what is kept, and the same with another clock."""
    config = TrainConfig().with_(**{"net__hidden": 64, "batch": 4, **changes})
    trainer = Trainer(make_task(name, config), torch.device("cpu"))
    encoder, head, env = trainer.nets.encoder, trainer.nets.policy, trainer.env
    for parameter in head.parameters():
        torch.nn.init.normal_(parameter, std=0.3, generator=torch.Generator().manual_seed(1))
    twin = MLPActor(env, encoder, head, keep=True)
    settings = {"batch": BATCH, "explore": config.explore, "temperature": temperature}
    plain = rollout(env, twin, trainer.task.log_reward, generator=torch.Generator().manual_seed(3), **settings)
    found = {"fits": fits(encoder.linear, env.actions)}
    kinds = {"single": (False, 3), "half": (True, 3), "other clock": (False, 4)}
    for kind, (half, seed) in list(kinds.items())[: None if name == "grid" else 2]:  # that it can fail is shown there
        clock = clocks((env.horizon, 2, BATCH, env.actions), torch.Generator().manual_seed(seed))
        arguments = (encoder.linear, head, encoder.activation, env, clock, temperature, config.explore, True, half)
        with torch.no_grad():
            intended, realised, states, kept = whole_rollout(*arguments)
        same = torch.cat([intended == plain.intended, realised == plain.realised, states == plain.states[..., 0]], 1)
        error = max(float((a - b).abs().max()) for a, b in zip(kept, twin.sums(), strict=True))
        found[kind] = {"same": float(same.float().mean()), "error": error}
    found["kernels"] = "kernel_table" in vars(env)  # whether they were made
    return found


def trainer_with_kernel(**changes: object) -> Trainer:
    """As on a GPU: the kernel makes the rollouts."""
    config = TrainConfig().with_(**{"net__hidden": 64, "explore": 0.1, **changes})
    with patch.object(general, "rollout_kernel", lambda *_: kernel):
        return Trainer(make_task("tfbind8", config), torch.device("cpu"))


def compare_gradients(batch: int, most: int, **changes: object) -> dict[str, float]:
    """Largest error of a step on the kernel's rollouts, beside one that evaluates the same states again."""
    append_rollout.MAX_BATCH_KEEPING_SUMS = most
    trainer = trainer_with_kernel(batch=batch, **changes)
    way, generator = trainer.fixed_length, torch.Generator().manual_seed(5)
    learns = trainer.config.dynamics.mode == "batch"
    drawn = way.roller.draw(batch, generator, explore=0.1)
    done, found = way.roller.roll(drawn)
    anew = way.roller.from_sequences(drawn.intended, drawn.realised)
    said = way.net.forward_known(anew.rows, anew.last, anew.realised).outputs[:, anew.index]
    own = way.episodes(done, way.log_reward(done.realised))
    sides = [
        way.gradients(rolled, passed, own, torch.ones(()), learn=learns)
        for rolled, passed in ((done, found), (anew, way.net.forward_known(anew.rows, anew.last, anew.realised)))
    ]
    mine, theirs = ([*side.nets, *(way.noise_model_gradients(side.noise_model) if learns else [])] for side in sides)
    apart = [float((a - b).abs().max() / b.abs().max()) for a, b in zip(mine, theirs, strict=True)]
    here = visited(found.outputs, done.index)
    plain = rollout(
        trainer.env,
        MLPActor(trainer.env, trainer.nets.encoder, trainer.nets.policy),
        trainer.task.log_reward,
        batch=batch,
        explore=0.1,
        generator=generator.manual_seed(5),
    )
    return {
        "kept": float(drawn.sums is not None),
        "loss": float((sides[0].loss - sides[1].loss).abs() / sides[1].loss),
        "same": float((plain.realised == drawn.realised).float().mean()),
        "error": float((here - said).abs().max()),
        "gradient": max(apart),
        "other states": float((here - said.roll(1, 1)).abs().max()),
    }


GRADIENT_CASES = {
    "kept": (19, 1024, {}),
    "shared": (19, 1, {}),
    "crowded": (70, 1, {}),  # more rollouts than there are prefixes of three letters
    "kl, kept": (19, 1024, {"objective": "kl", "dynamics__mode": "known"}),
    "kl, shared": (19, 1, {"objective": "kl", "dynamics__mode": "known"}),
    "detailed balance": (19, 1024, {"objective": "db"}),
    "blind": (19, 1024, {"form": "blind", "dynamics__mode": "known"}),
}


def who_rolls() -> dict[str, bool]:
    """Whether the kernel makes the rollouts, under noise that it knows and under noise that it does not."""
    found = {}
    for kind in ("uniform", "hidden"):
        trainer = trainer_with_kernel(batch=4, noise__kind=kind)
        trainer.step()
        assert trainer.backend is trainer.fixed_length
        found[kind] = isinstance(trainer.backend.roller, KernelSequenceRollouts)
    return found


def found() -> dict[str, Any]:
    """All comparisons."""
    return {
        "rollouts": {case: compare_rollouts(*described) for case, described in CASES.items()},
        "gradients": {
            case: compare_gradients(batch, most, **changes) for case, (batch, most, changes) in GRADIENT_CASES.items()
        },
        "rolls": who_rolls(),
    }
