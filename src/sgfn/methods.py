"""Methods by name: flow networks, and the peers they are compared with; what each reads, and what it refuses."""

from collections.abc import Callable, Mapping
from operator import attrgetter

import torch
from jaxtyping import Int
from torch import Tensor

from sgfn.config import TrainConfig, differing
from sgfn.learner import Learner
from sgfn.peers.a2c import A2C
from sgfn.peers.mars import Mars
from sgfn.peers.metropolis import MetropolisHastings
from sgfn.peers.ppo import PPO
from sgfn.peers.random import UniformPolicy
from sgfn.peers.sac import SAC
from sgfn.tasks import Task
from sgfn.trainer import Trainer

LEARNERS: dict[str, Callable[[Task, torch.device], Learner]] = {
    "gfn": Trainer,
    "random": UniformPolicy,
    "mh": MetropolisHastings,
    "mars": Mars,
    "a2c": A2C,
    "ppo": PPO,
    "sac": SAC,
}
"""Keys equal the config's `Method`."""

EVERYONE = (
    *("method", "steps", "batch", "seed", "beta", "reward.minimum", "reward.norm", "noise", "offline.file", "log"),
    *("grid", "motif", "bits", "ehrlich", "rna", "table", "callable"),
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


def make_learner(task: Task, device: torch.device, offline: Int[Tensor, "N O"] | None = None) -> Learner:
    """A method set to work on a task; a setting that it does not read is refused."""
    refuse_unread(task.config, {task.config.method: task.config.method})
    return build(task, device, offline)


def build(task: Task, device: torch.device, offline: Int[Tensor, "N O"] | None = None) -> Learner:
    """The same without that check, for a run that is there already; only flow networks have a use for known objects."""
    kind = LEARNERS[task.config.method]
    return Trainer(task, device, offline) if kind is Trainer else kind(task, device)
