"""`load`: a model from its run folder."""

from pathlib import Path

import torch
from torch import nn

from sgfn.envs import Env
from sgfn.landscapes.function import load_function
from sgfn.learning.execution import pick_device
from sgfn.noise import Noise
from sgfn.runs.fit import learner_of
from sgfn.runs.folder import Run
from sgfn.runs.model import Model
from sgfn.runs.parts import Parts, Reward, make, read_parts
from sgfn.runs.spaces import as_noise


def load(
    path: Path | str,
    device: str = "cpu",
    *,
    env: Env | None = None,
    noise: float | Noise | None = None,
    reward: Reward | None = None,
    encoder: nn.Module | None = None,
) -> Model:
    """The model of a run folder, written by `model.save` or by `sgfn train`.

    An environment, noise, reward or encoder that cannot be found by name, such as a lambda, is to be given again.
    """
    run, where = Run(path=Path(path)), pick_device(device)
    name = run.read_config()[0]
    if name == "series":
        raise ValueError(f"{run.path} holds a forecast: load it with sgfn.Forecaster.load")
    given = {
        "env": env,
        "noise": None if noise is None else as_noise(noise),
        "reward": load_function(reward) if isinstance(reward, str) else reward,
        "encoder": encoder,
    }
    parts = read_parts(run.path, **given) or Parts(name=name, **given)
    learner = learner_of(parts, make(parts, run.own_config()), where)
    if learner_kind(run) == where.type:
        run.restore(learner)
    else:
        run.restore_networks(learner)
    return Model(learner, parts, run.rows())


def learner_kind(run: Run) -> str:
    """The kind of device that a run was trained on."""
    return "cuda" if bool(torch.as_tensor(run.load_state()["self.cuda"])) else "cpu"
