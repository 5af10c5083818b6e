"""Methods by name: flow networks, and the peers they are compared with; what each reads, and what it refuses."""

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from sgfn.config import TrainConfig
from sgfn.config.checks import one_of
from sgfn.config.reads import above, reads
from sgfn.config.registry import DASHED, DOTTED, SOLID, Entry, Registry, Style, imported, refuse_arguments
from sgfn.learning.exploration.registry import EXPLORATIONS
from sgfn.learning.forms import FORMS
from sgfn.nets.registry import ENCODERS
from sgfn.noise.registry import NOISES
from sgfn.objectives.registry import NO_BASE, OBJECTIVES, bases


@dataclass(frozen=True, kw_only=True)
class MethodEntry(Entry):
    """A method by name: what makes its learner, what it reads, and what it refuses."""

    learner: Callable[..., Any] | str
    """Makes a learner for a task on a device; ours as `module:name`."""
    fits: Callable[..., None] | str = lambda task: None
    """Refuses a task that the method cannot work on, at no cost; ours as `module:name`."""
    objective: bool = False
    """Whether it reads the configured objective."""
    encoder: bool = False
    """Whether it reads the configured encoder, and all that one reads."""
    compared: bool = True
    """Whether `compare` has it among its methods by its own name."""
    forecasts: bool = False
    """Whether it learns time series, and nothing else."""

    @property
    def make(self) -> Callable[..., Any]:
        """The function that makes a learner of a task and a device."""
        return imported(self.learner)

    @property
    def refuse(self) -> Callable[..., None]:
        """The function that raises for a task that the method cannot work on."""
        return imported(self.fits)


def wrap(name: str, found: Any) -> MethodEntry:
    """The entry of a learner that is not ours; it may read any setting of learning."""
    learner = refuse_arguments("method", name, found, "a Learner (task, device)", "task", "device")
    return MethodEntry(name=name, learner=learner, objective=True, encoder=True, reads=(reads(*LEARNING),))


LEARNING = (
    *("objective", "form", "subtb_lambda", "explore", "temperature", "exploration", "reward.ramp", "net", "dynamics"),
    *("thought", "rl", "chain", "kl", "entropy", "replay", "offline.share", "optim", "log.exact_every"),
    *("archive", "local", "surprise", "novelty", "thompson", "teacher"),
    *("log.entropy", "aim", "ahead", "deterministic", "actors", "actors_lag"),
)
"""Settings of learning, all methods together."""
_EXACT = reads("log.exact_every")
_FADING = ("optim.clip", "optim.warmup", "optim.final")
_PLAIN_NET = reads("net.encoder", "net.hidden", "net.layers", "net.activation")
_ACTOR = (_EXACT, _PLAIN_NET, reads("reward.ramp", "optim.lr", *_FADING, "rl.temperature"))
_ON_POLICY = (*_ACTOR, reads("rl.trace", "rl.value_weight"))
_FLOWS = (
    reads("objective", "explore", "temperature", "exploration", "reward.ramp", "aim", "offline.share", "optim"),
    reads("dynamics.mode", "thought.layers", "replay.updates", "log.entropy", "actors"),
    reads("actors_lag", "deterministic", actors=above("actors", 0)),
    reads("dynamics.model", "dynamics.lr", "dynamics.clip", dynamics__mode=("batch", "replay")),
    reads("dynamics.hidden", "dynamics.layers", dynamics__mode=("batch", "replay"), dynamics__model=("auto", "full")),
    reads("dynamics.rounds", "dynamics.batch", dynamics__mode="replay"),
    reads("thought.width", "thought.heads", thought=above("thought.layers", 0)),
    reads("replay.capacity", "replay.batch", replay=above("replay.updates", 0)),
    reads("replay.capacity", dynamics__mode="replay"),
    reads("entropy.variant", "entropy.gamma", log__entropy=True),
    reads("entropy.quantile", log__entropy=True, entropy__variant=("quantile", "trajectory")),
    reads("entropy.rate_high", "entropy.rate_low", log__entropy=True, entropy__variant="exponential"),
)
PURPLE, GREEN = "#540477", "#3c8b6b"

METHODS: Registry[MethodEntry] = Registry(
    "method",
    wrap,
    MethodEntry(
        name="gfn",
        about="flow networks",
        learner="sgfn.learning.trainer:Trainer",
        fits="sgfn.learning.methods:check_flows",
        reads=(_EXACT, *_FLOWS),
        objective=True,
        encoder=True,
        compared=False,
    ),
    MethodEntry(
        name="random",
        about="uniform intentions",
        learner="sgfn.learning.peers.random:UniformPolicy",
        reads=(_EXACT,),
        style=Style(colour="#1f2933", line=DOTTED),
    ),
    MethodEntry(
        name="mh",
        about="Metropolis-Hastings chains",
        learner="sgfn.learning.peers.metropolis:MetropolisHastings",
        fits="sgfn.learning.peers.metropolis:check_chains",
        reads=(_EXACT, reads("reward.ramp", "chain.keep")),
        style=Style(colour=PURPLE, line=SOLID),
    ),
    MethodEntry(
        name="mars",
        about="chains with learned proposals",
        learner="sgfn.learning.peers.mars:Mars",
        fits="sgfn.learning.peers.mars:check_proposals",
        reads=(_EXACT, _PLAIN_NET, reads("reward.ramp", "chain", *_FADING)),
        style=Style(colour=PURPLE, line=DASHED),
    ),
    MethodEntry(
        name="a2c",
        about="advantage actor-critic",
        learner="sgfn.learning.peers.a2c:A2C",
        fits="sgfn.learning.peers.actor_critic:check_encoder",
        reads=_ON_POLICY,
        style=Style(colour=GREEN, line=SOLID),
    ),
    MethodEntry(
        name="ppo",
        about="proximal policy optimisation",
        learner="sgfn.learning.peers.ppo:PPO",
        fits="sgfn.learning.peers.actor_critic:check_encoder",
        reads=(*_ON_POLICY, reads("rl.epochs", "rl.clip")),
        style=Style(colour=GREEN, line=DASHED),
    ),
    MethodEntry(
        name="sac",
        about="soft actor-critic",
        learner="sgfn.learning.peers.sac:SAC",
        fits="sgfn.learning.peers.actor_critic:check_encoder",
        reads=(
            *_ACTOR,
            reads("rl.updates", "rl.average", "explore", "temperature", "replay.capacity", "replay.batch"),
        ),
        style=Style(colour=GREEN, line=DOTTED),
    ),
    MethodEntry(
        name="forecast",
        about="learns what came, for task series",
        learner="sgfn.series.learner:ForecastLearner",
        fits="sgfn.learning.methods:check_series",
        reads=(reads("net.hidden", "net.layers", "net.heads", "optim.lr", *_FADING),),
        compared=False,
        forecasts=True,
    ),
)

REGISTRIES: dict[str, Registry[Any]] = {
    "method": METHODS,
    "objective": OBJECTIVES,
    "form": FORMS,
    "noise.kind": NOISES,
    "net.encoder": ENCODERS,
    "exploration": EXPLORATIONS,
}
"""The registry that each field takes its names from."""


def choices() -> dict[str, list[str]]:
    """The names of ours that each field takes."""
    built_on = {e.base[1]: bases(e) + [NO_BASE] * e.alone for _, e in OBJECTIVES.items() if e.base is not None}
    return {field: list(registry) for field, registry in REGISTRIES.items()} | built_on


def check_names(config: TrainConfig, where: str = "") -> None:
    """Refuse names of ours that are not there, and suggest the nearest; what is not ours is not imported for that."""
    for field in choices():
        check_name(field, attrgetter(field)(config), where)


def check_name(field: str, name: str, where: str = "") -> None:
    """Refuse a field's name that is neither ours nor `module:name`, and suggest the nearest."""
    for part in name.split("+") if field == "exploration" else [name]:
        if ":" not in part:
            one_of(f"{where}{field}", part, choices()[field])
