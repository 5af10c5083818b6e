"""Methods by name: flow networks, and the peers they are compared with; what each reads, and what it refuses."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from sgfn.config import TrainConfig
from sgfn.config.importing import find
from sgfn.config.reads import above, reads
from sgfn.config.registry import DASHED, DOTTED, SOLID, Entry, Registry, Style, refuse_uncallable
from sgfn.landscapes.tasks import Task
from sgfn.learning.learner import Learner
from sgfn.learning.peers.a2c import A2C
from sgfn.learning.peers.actor_critic import check_encoder
from sgfn.learning.peers.edits import check_edits
from sgfn.learning.peers.mars import Mars, check_proposals
from sgfn.learning.peers.metropolis import MetropolisHastings
from sgfn.learning.peers.ppo import PPO
from sgfn.learning.peers.random import UniformPolicy
from sgfn.learning.peers.sac import SAC
from sgfn.learning.scoring import FORMS, form_entry
from sgfn.learning.trainer import Trainer, check_task
from sgfn.nets.encoders import ENCODERS
from sgfn.noise import NOISES
from sgfn.objectives import OBJECTIVES, scored_as

Maker = Callable[[Task, torch.device], Learner]


@dataclass(frozen=True, kw_only=True)
class MethodEntry(Entry):
    """A method by name: what makes its learner, what it reads, and what it refuses."""

    learner: Maker | str
    """Makes a learner for a task on a device; `module:name` is imported when it is needed."""
    fits: Callable[[Task], None] = lambda task: None
    """Refuses a task that the method cannot work on, at no cost."""
    objective: bool = False
    """Whether it reads the configured objective."""
    encoder: bool = False
    """Whether it reads the configured encoder, and all that one reads."""
    compared: bool = True
    """Whether `compare` has it among its methods by its own name."""
    forecasts: bool = False
    """Whether it learns time series, and nothing else."""

    @property
    def make(self) -> Maker:
        """The function that makes a learner of a task and a device."""
        return find(self.learner, "method") if isinstance(self.learner, str) else self.learner


def check_flows(task: Task) -> None:
    """Refuse an objective, a form or a network that the task's states do not suit."""
    check_task(task)
    check_objective(task.config)


def check_objective(config: TrainConfig) -> None:
    """Refuse an objective in a form that makes no sense for it, or with a memory that it is not sound with."""
    entry, form = OBJECTIVES[config.objective], form_entry(scored_as(config))
    if form.name in entry.refuses:
        use = " or ".join(name for name in FORMS if name not in entry.refuses)
        raise ValueError(f"objective {entry.name!r} weighs intentions, which form {form.name!r} ignores: use {use}")
    if config.thought.layers > 0 and not entry.memory:
        raise ValueError(
            f"thought.layers: objective {entry.name!r} has no history of the children it imagines: use tb or kl"
        )
    if config.thought.layers > 0 and form.no_memory:
        raise ValueError(f"thought.layers does not go with form {form.name!r} ({form.no_memory}): use form marginal")


def check_series(task: Task) -> None:
    """Refuse a task that is no time series."""
    if task.series is None:
        raise ValueError(f"method 'forecast' learns time series, and {task.name} is none: use task series")


def wrap(name: str, found: Any) -> MethodEntry:
    """The entry of a learner that is not ours; it may read any setting of learning."""
    learner = refuse_uncallable("method", name, found, "a Learner (task, device)")
    return MethodEntry(name=name, learner=learner, objective=True, encoder=True, reads=(reads(*LEARNING),))


LEARNING = (
    *("objective", "form", "subtb_lambda", "explore", "temperature", "exploration", "reward.ramp", "net", "dynamics"),
    *("thought", "rl", "chain", "kl", "entropy", "replay", "offline.share", "optim", "log.exact_every"),
)
"""Settings of learning, all methods together."""
_EXACT = reads("log.exact_every")
_FADING = ("optim.clip", "optim.warmup", "optim.final")
_PLAIN_NET = reads("net.encoder", "net.hidden", "net.layers", "net.activation")
_ACTOR = (_EXACT, _PLAIN_NET, reads("reward.ramp", "optim.lr", *_FADING, "rl.temperature"))
_ON_POLICY = (*_ACTOR, reads("rl.trace", "rl.value_weight"))
_FLOWS = (
    reads("objective", "explore", "temperature", "exploration", "reward.ramp", "offline.share", "optim"),
    reads("dynamics.mode", "thought.layers", "replay.updates"),
    reads("dynamics.model", "dynamics.lr", "dynamics.clip", dynamics__mode=("batch", "replay")),
    reads("dynamics.hidden", "dynamics.layers", dynamics__mode=("batch", "replay"), dynamics__model=("auto", "full")),
    reads("dynamics.rounds", dynamics__mode="replay"),
    reads("thought.width", "thought.heads", thought=above("thought.layers", 0)),
    reads("replay.capacity", "replay.batch", replay=above("replay.updates", 0)),
    reads("replay.capacity", dynamics__mode="replay"),
    reads("entropy.variant", "entropy.gamma", exploration="entropy"),
    reads("entropy.quantile", exploration="entropy", entropy__variant="quantile"),
    reads("entropy.rate_high", "entropy.rate_low", exploration="entropy", entropy__variant="exponential"),
)
PURPLE, GREEN = "#540477", "#3c8b6b"

METHODS: Registry[MethodEntry] = Registry(
    "method",
    wrap,
    MethodEntry(
        name="gfn",
        learner=Trainer,
        fits=check_flows,
        reads=(_EXACT, *_FLOWS),
        objective=True,
        encoder=True,
        compared=False,
    ),
    MethodEntry(name="random", learner=UniformPolicy, reads=(_EXACT,), style=Style(colour="#1f2933", line=DOTTED)),
    MethodEntry(
        name="mh",
        learner=MetropolisHastings,
        fits=lambda task: check_edits(task.env),
        reads=(_EXACT, reads("reward.ramp", "chain.keep")),
        style=Style(colour=PURPLE, line=SOLID),
    ),
    MethodEntry(
        name="mars",
        learner=Mars,
        fits=check_proposals,
        reads=(_EXACT, _PLAIN_NET, reads("reward.ramp", "chain", *_FADING)),
        style=Style(colour=PURPLE, line=DASHED),
    ),
    MethodEntry(
        name="a2c",
        learner=A2C,
        fits=lambda task: check_encoder(task.config),
        reads=_ON_POLICY,
        style=Style(colour=GREEN, line=SOLID),
    ),
    MethodEntry(
        name="ppo",
        learner=PPO,
        fits=lambda task: check_encoder(task.config),
        reads=(*_ON_POLICY, reads("rl.epochs", "rl.clip")),
        style=Style(colour=GREEN, line=DASHED),
    ),
    MethodEntry(
        name="sac",
        learner=SAC,
        fits=lambda task: check_encoder(task.config),
        reads=(
            *_ACTOR,
            reads("rl.updates", "rl.average", "explore", "temperature", "replay.capacity", "replay.batch"),
        ),
        style=Style(colour=GREEN, line=DOTTED),
    ),
    MethodEntry(
        name="forecast",
        learner="sgfn.series.learner:ForecastLearner",
        fits=check_series,
        reads=(reads("net.hidden", "net.layers", "net.heads", "optim.lr", *_FADING),),
        compared=False,
        forecasts=True,
    ),
)


def check_names(config: TrainConfig, where: str = "") -> None:
    """Refuse names of ours that are not there, and suggest the nearest; what is not ours is not imported for that."""
    METHODS.check(config.method, f"{where}method")
    OBJECTIVES.check(config.objective, f"{where}objective")
    FORMS.check(config.form, f"{where}form")
    NOISES.check(config.noise.kind, f"{where}noise.kind")
    ENCODERS.check(config.net.encoder, f"{where}net.encoder")
    OBJECTIVES.check(config.kl.flow, f"{where}kl.flow")
    OBJECTIVES.check(config.entropy.base, f"{where}entropy.base")


def check_fit(task: Task) -> None:
    """Refuse what the task's method cannot work on."""
    entry = METHODS[task.config.method]
    if task.series is not None and not entry.forecasts and entry.name in METHODS:
        raise ValueError(f"task series is learned by method 'forecast', not by {entry.name!r}: add --preset forecast")
    entry.fits(task)


def build(task: Task, device: torch.device, offline: Int[Tensor, "N O"] | None = None) -> Learner:
    """A method set to work, unchecked, for a run that is there already; only flow networks use known objects."""
    make = METHODS[task.config.method].make
    if isinstance(make, type) and issubclass(make, Trainer):
        return make(task, device, offline)
    return make(task, device)
