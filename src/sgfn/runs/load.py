"""`load`: a model from its run folder."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from sgfn.config import NetConfig, NoiseConfig, TrainConfig
from sgfn.envs import Env
from sgfn.landscapes.function import load_function
from sgfn.learning.execution import pick_device
from sgfn.noise import Noise
from sgfn.runs.fit import learner_of
from sgfn.runs.folder import Run
from sgfn.runs.model import Model, check_path
from sgfn.runs.parts import Parts, Reward, make, read_parts, refuse_superfluous
from sgfn.runs.spaces import as_noise
from sgfn.runs.trust import Trust

REPLACED = {
    "env": ("task", "noise.kind"),
    "noise": ("noise.kind",),
    "reward": ("reward", "callable.function"),
    "encoder": ("net.encoder",),
}
"""Fields of a folder that name what an object given in their place makes needless."""


def load(
    path: Path | str,
    device: str = "cpu",
    *,
    env: Env | None = None,
    noise: float | Noise | None = None,
    reward: Reward | None = None,
    encoder: nn.Module | None = None,
    trust: Trust = False,
) -> Model:
    """The model of a run folder, written by `model.save` or by `sgfn train`.

    An environment, noise, reward or encoder that cannot be found by name, such as a lambda, is to be given again. The
    noise is the saved one unless `noise` is given; an environment that is given may have that noise or none. Code that
    only the folder names is not run unless it is trusted, or given here as an object: see `evaluate`.
    """
    check_path(path)
    for name, one, kind, wanted in (
        ("env", env, Env, "an environment"),
        ("encoder", encoder, nn.Module, "a torch module"),
    ):
        if not isinstance(one, kind | None):
            raise ValueError(f"{name} must be {wanted}, got {type(one).__name__}")
    run, where = Run(path=Path(path), trust=trust), pick_device(device)
    name = run.read_config()[0]
    if name == "series":
        raise ValueError(f"{run.path} holds a forecast: load it with sgfn.Forecaster.load")
    given: dict[str, Any] = {
        "env": env,
        "noise": None if noise is None else as_noise(noise),
        "reward": load_function(reward) if isinstance(reward, str) else reward,
        "encoder": encoder,
    }
    needless = {field for part, fields in REPLACED.items() if given[part] is not None for field in fields}
    config = without(run.own_config(needless), needless)
    parts = read_parts(run.path, **given)
    if parts is None:
        if encoder is not None:
            refuse_superfluous(run.path, "encoder", trained=False)
        parts = Parts(name=name, **given)
    learner, state = learner_of(parts, make(parts, config), where), run.load_state()
    try:
        run.restore(learner, state) if trained_on(state) == where.type else run.restore_networks(learner, state)
    except ValueError as error:
        if encoder is None:
            raise
        raise ValueError(f"{error}; or is encoder= another one than that of the training?") from None
    return Model(learner, parts, run.rows())


def without(config: TrainConfig, needless: Collection[str]) -> TrainConfig:
    """The configuration without the code that it names in some fields: defaults stand there."""
    if "noise.kind" in needless and ":" in config.noise.kind:
        config = config.with_(noise=NoiseConfig())
    if "net.encoder" in needless and ":" in config.net.encoder:
        config = config.with_(net__encoder=NetConfig().encoder)
    return config


def trained_on(state: dict[str, Tensor]) -> str:
    """The kind of device that a checkpoint was written on; cpu where it does not tell, which is refused later."""
    cuda = state.get("self.cuda")
    return "cuda" if cuda is not None and torch.equal(cuda, torch.tensor(True)) else "cpu"
