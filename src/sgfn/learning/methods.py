"""Methods by name: flow networks, and the peers they are compared with; what each reads, and what it refuses."""

from collections.abc import Callable, Mapping
from importlib import import_module
from operator import attrgetter

import torch
from jaxtyping import Int
from torch import Tensor

from sgfn.config import TrainConfig, differing
from sgfn.landscapes.tasks import Task
from sgfn.learning.learner import Learner
from sgfn.learning.peers.a2c import A2C
from sgfn.learning.peers.actor_critic import check_encoder
from sgfn.learning.peers.mars import Mars, check_proposals
from sgfn.learning.peers.metropolis import MetropolisHastings
from sgfn.learning.peers.orders import check_orders
from sgfn.learning.peers.ppo import PPO
from sgfn.learning.peers.random import UniformPolicy
from sgfn.learning.peers.sac import SAC
from sgfn.learning.trainer import Trainer, check_task

LEARNERS: dict[str, Callable[[Task, torch.device], Learner]] = {
    "gfn": Trainer,
    "random": UniformPolicy,
    "mh": MetropolisHastings,
    "mars": Mars,
    "a2c": A2C,
    "ppo": PPO,
    "sac": SAC,
    "forecast": lambda task, device: import_module("sgfn.series.learner").ForecastLearner(task, device),
}
"""Keys equal the config's `Method`."""

EVERYONE = (
    *("method", "steps", "batch", "seed", "beta", "reward.minimum", "reward.norm", "noise", "offline.file", "log"),
    *("grid", "motif", "bits", "ehrlich", "rna", "table", "callable", "series"),
)
"""Fields and whole components that a run reads whatever its method; `offline.file` tells what is novel."""
_CHAIN = ("reward.ramp", "chain.keep")
_FADING = ("optim.clip", "optim.warmup", "optim.final")
_ACTOR = ("reward.ramp", "net", "optim.lr", *_FADING, "rl.temperature")
READS: dict[str, tuple[str, ...]] = {
    "gfn": (
        *("objective", "form", "subtb_lambda", "explore", "temperature", "exploration", "reward.ramp", "net"),
        *("dynamics", "thought", "kl", "entropy", "replay", "offline.share", "optim"),
    ),
    "random": (),
    "mh": _CHAIN,
    "mars": (*_CHAIN, *_FADING, "net", "chain"),
    "a2c": (*_ACTOR, "rl.trace", "rl.value_weight"),
    "ppo": (*_ACTOR, "rl.trace", "rl.value_weight", "rl.epochs", "rl.clip"),
    "sac": (*_ACTOR, "rl.updates", "rl.average", "explore", "temperature", "replay.capacity", "replay.batch"),
    "forecast": ("net.encoder", "net.hidden", "net.layers", "net.heads", "optim.lr", *_FADING),
}
"""What else each method reads."""


def unread(config: TrainConfig, method: str) -> list[str]:
    """Flags that were changed from their defaults and mean nothing to a method.

    >>> unread(TrainConfig().with_(steps=7, explore=0.1, rl__epochs=2), "ppo")
    ['--explore']
    """
    known = tuple(f"--{name}." for name in (*EVERYONE, *READS[method]))
    return [flag for flag in differing(config, TrainConfig()) if not f"{flag}.".startswith(known)]


def lean(config: TrainConfig, method: str) -> TrainConfig:
    """The configuration with everything that a method does not read at its default."""
    names = [flag[2:] for flag in unread(config, method)]
    return config.with_(**{name.replace(".", "__"): attrgetter(name)(TrainConfig()) for name in names})


def refuse_unread(config: TrainConfig, methods: Mapping[str, str]) -> None:
    """Say so, rather than leave out in silence what was asked for: of methods by name, some one must read each flag."""
    ignored = [unread(config, method) for method in methods.values()]
    flags = [flag for flag in ignored[0] if all(flag in others for others in ignored)]
    if flags:
        one, *others = methods
        who = f"none of {', '.join(methods)} reads" if others else f"method {one!r} does not read"
        it = "it" if len(flags) == 1 else "them"
        raise ValueError(f"{who} {', '.join(flags)}: leave {it} out (a preset may have set {it})")


def check_series(task: Task) -> None:
    """Refuse what is no time series."""
    if task.series is None:
        raise ValueError(f"method 'forecast' learns time series, and {task.name} is none: use task series")


FITS: dict[str, Callable[[Task], None]] = {
    "gfn": check_task,
    "random": lambda task: None,
    "mh": lambda task: check_orders(task.env),
    "mars": check_proposals,
    "a2c": lambda task: check_encoder(task.config),
    "ppo": lambda task: check_encoder(task.config),
    "sac": lambda task: check_encoder(task.config),
    "forecast": check_series,
}
"""What a method refuses to work on, found out at no cost."""


def check(task: Task) -> None:
    """Refuse, before anything is made, what the task's method does not read or cannot work on."""
    method = task.config.method
    if task.series is not None and method != "forecast":
        raise ValueError(f"task series is learned by method 'forecast', not by {method!r}: add --preset forecast")
    refuse_unread(task.config, {method: method})
    FITS[method](task)


def make_learner(task: Task, device: torch.device, offline: Int[Tensor, "N O"] | None = None) -> Learner:
    """A method set to work on a task that suits it."""
    check(task)
    return build(task, device, offline)


def build(task: Task, device: torch.device, offline: Int[Tensor, "N O"] | None = None) -> Learner:
    """The same unchecked, for a run that is there already; only flow networks have a use for known objects."""
    kind = LEARNERS[task.config.method]
    return Trainer(task, device, offline) if kind is Trainer else kind(task, device)
