"""Everything that decides a run's numbers: frozen dataclasses, one per component; the CLI's flags come from them."""

import types
import typing
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from sgfn.config.checks import divides, in_range, nearest, one_of, quoted, require
from sgfn.config.exploration import (
    ArchiveConfig,
    LocalConfig,
    NoveltyConfig,
    SurpriseConfig,
    TeacherConfig,
    ThompsonConfig,
)
from sgfn.config.peers import ChainConfig, RLConfig
from sgfn.config.series import SeriesConfig
from sgfn.config.tasks import (
    BitsConfig,
    CallableConfig,
    ConstraintsConfig,
    EhrlichConfig,
    GridConfig,
    MotifConfig,
    ProxyConfig,
    RnaConfig,
    TableConfig,
)

EntropyVariant = Literal["quantile", "trajectory", "per-state", "exponential"]
Accelerate = Literal["auto", "eager", "compile", "graph"]
Activation = Literal["relu", "gelu", "silu"]
DynamicsMode = Literal["batch", "replay", "known"]
DynamicsModel = Literal["auto", "shared", "positional", "full"]
Preset = Literal[
    "none", "demo", "exact", "frugal", "published-tfbind8", "published-grid", "published-bits", "forecast", "explore"
]


@dataclass(frozen=True, kw_only=True)
class NoiseConfig:
    """How the environment turns what is intended into what happens."""

    kind: str = "uniform"
    """`uniform` slip; `confusion` matrix from a file; `position`: a slip rate for each position, from a file;
    `hidden`: each episode draws its own slip rate, which the agent never sees; `indel`: letters are skipped or written
    twice as well; or `module:Noise`, yours."""
    alpha: float = 0.25
    """Uniform slip: probability that a token (a grid move) is replaced by a uniform draw. 0 is no noise. The mean rate
    where it is hidden."""
    file: Path | None = None
    """Table: confusion matrix (rows intended, columns realised, letters as labels), or a column `alpha` by position;
    of `indel` rates by letter or by position, as `sgfn design channel` writes them."""
    stop: bool = False
    """Whether noise acts on the stop action too; a confusion matrix then needs a row and a column `stop`."""
    concentration: float = 4.0
    """Hidden rate: drawn from Beta(alpha c, (1 - alpha) c); the larger c, the nearer it stays to alpha."""
    preset: str | None = None
    """A channel by its name, which `sgfn noise` lists; it is of the kind `indel`."""
    substitution: float = 0.0
    """Indel: probability that a letter which is written is another one."""
    deletion: float = 0.0
    """Indel: probability that nothing is written for a letter."""
    insertion: float = 0.0
    """Indel: probability that a random letter is written as well."""
    scale: float = 1.0
    """Indel: all rates of a preset or a file are multiplied by this."""
    flank: str | None = None
    """Indel: letters that follow the sequence in its construct: what is too short is read into them. Without a flank
    it scores nothing."""
    spare: int = 2
    """Indel: cycles beyond its length that a sequence may take step by step, to write again what was skipped."""

    def __post_init__(self) -> None:
        in_range("noise.alpha", self.alpha, 0.0, 1.0, open_high=True)
        in_range("noise.concentration", self.concentration, 0.1, 1e6)
        for name in ("substitution", "deletion", "insertion"):
            in_range(f"noise.{name}", getattr(self, name), 0.0, 1.0, open_high=True)
        in_range("noise.scale", self.scale, 0.0, 1e6)
        in_range("noise.spare", self.spare, 0, 1000)
        if self.preset is not None and self.kind == "uniform":
            object.__setattr__(self, "kind", "indel")


@dataclass(frozen=True, kw_only=True)
class RewardConfig:
    """From score to reward: log R = log(clip(score, minimum) / norm), raised to beta; `motif` has its own."""

    minimum: float = 1e-3
    """Scores below this count as this, so that every log-reward is finite."""
    norm: float = 1.0
    """Scores are divided by this."""
    ramp: float = 0.0
    """k of the exponent's ramp beta_t = 1 + (beta - 1)(1 - 1/(1 + t/k)); 0 is no ramp."""

    def __post_init__(self) -> None:
        in_range("reward.minimum", self.minimum, 1e-30)
        in_range("reward.norm", self.norm, 1e-30)
        in_range("reward.ramp", self.ramp, 0.0)


@dataclass(frozen=True, kw_only=True)
class NetConfig:
    """The network that policy, flow and backward heads share."""

    encoder: str = "mlp"
    """`mlp` reads a state's features; `transformer` reads the tokens of a sequence, all its prefixes in one
    pass; or `module:Encoder`, yours."""
    hidden: int = 256
    """Width of each layer."""
    layers: int = 2
    """Number of hidden layers, or of the transformer's blocks."""
    activation: Activation = "gelu"
    """Non-linearity of the mlp."""
    heads: int = 4
    """Attention heads of the transformer; they divide the width."""

    def __post_init__(self) -> None:
        in_range("net.hidden", self.hidden, 1, 65536)
        in_range("net.layers", self.layers, 1, 64)
        one_of("net.activation", self.activation, get_args(Activation))
        in_range("net.heads", self.heads, 1, 1024)
        if self.encoder == "transformer":
            divides("net.heads", self.heads, "net.hidden", self.hidden)


@dataclass(frozen=True, kw_only=True)
class DynamicsConfig:
    """How P^(k|s,a) is had: the true kernel, or a network fitted to realised outcomes."""

    model: DynamicsModel = "auto"
    """What is learned: one matrix for all states (`shared`), one per position (`positional`), or one per state by a
    network (`full`); `auto` goes by alphabet and noise: `full` where matrices are small, else by the noise."""
    mode: DynamicsMode = "batch"
    """`batch`: learned on the current batch; `replay`: learned off-policy from the buffer; `known`: the true kernel."""
    hidden: int = 64
    """Width of its layers."""
    layers: int = 1
    """Number of hidden layers."""
    lr: float = 2e-3
    """Its own learning rate."""
    clip: float = 1.0
    """Its own gradient-norm clip; 0 is none."""
    rounds: int = 4
    """Updates per step in `replay` mode."""
    batch: int = 0
    """Past trajectories in each of those updates; 0 is the batch size of the rollouts."""

    def __post_init__(self) -> None:
        one_of("dynamics.mode", self.mode, get_args(DynamicsMode))
        one_of("dynamics.model", self.model, get_args(DynamicsModel))
        in_range("dynamics.hidden", self.hidden, 1, 65536)
        in_range("dynamics.layers", self.layers, 1, 64)
        in_range("dynamics.lr", self.lr, 0.0, 10.0)
        in_range("dynamics.clip", self.clip, 0.0)
        in_range("dynamics.rounds", self.rounds, 1, 1000)
        in_range("dynamics.batch", self.batch, 0, 10**7)


@dataclass(frozen=True, kw_only=True)
class ThoughtConfig:
    """A transformer over what was intended and what happened so far: where the noise's rate is hidden, it shows."""

    layers: int = 0
    """Blocks of the transformer; 0 is none: policy and noise model then read the state alone."""
    width: int = 32
    """Width of a thought, which joins the state's representation."""
    heads: int = 2
    """Attention heads; they divide the width."""

    def __post_init__(self) -> None:
        in_range("thought.layers", self.layers, 0, 64)
        in_range("thought.width", self.width, 1, 65536)
        in_range("thought.heads", self.heads, 1, 1024)
        if self.layers > 0:
            divides("thought.heads", self.heads, "thought.width", self.width)


@dataclass(frozen=True, kw_only=True)
class ReplayConfig:
    """Several updates per trajectory, from a buffer of past ones."""

    capacity: int = 16384
    """Trajectories kept; the oldest go first."""
    updates: int = 0
    """Further policy updates per step, each on a batch drawn from the buffer."""
    batch: int = 0
    """Size of those batches; 0 is the batch size of the rollouts."""

    def __post_init__(self) -> None:
        in_range("replay.capacity", self.capacity, 1, 10**9)
        in_range("replay.updates", self.updates, 0, 10000)
        in_range("replay.batch", self.batch, 0, 10**7)


@dataclass(frozen=True, kw_only=True)
class OfflineConfig:
    """Known objects mixed into each batch, their intentions drawn from the posterior."""

    file: Path | None = None
    """Plain text with one object per line, or a table with a column `sequence`."""
    share: float = 0.0
    """Share of each batch that comes from the file; of `table`, without a file, from its measurements."""

    def __post_init__(self) -> None:
        in_range("offline.share", self.share, 0.0, 1.0, open_high=True)


@dataclass(frozen=True, kw_only=True)
class KLConfig:
    """The `kl` objective: an outcome flow, and a policy projected onto it."""

    flow: str = "tb"
    """Balance objective of the outcome flow."""
    weight: float = 1.0
    """Weight of the projection."""

    def __post_init__(self) -> None:
        in_range("kl.weight", self.weight, 0.0, 1e6)


@dataclass(frozen=True, kw_only=True)
class EntropyConfig:
    """The entropy ratio r_gamma: of the `kl-entropy` objective, and of exploration guided by it."""

    base: str = "tb"
    """What `kl-entropy` adds its terms to: a balance in the chosen form, the `kl` objective, or `none`: its terms
    alone, which do not know the reward."""
    variant: EntropyVariant = "quantile"
    """High and low entropy: quantiles of the batch, or of each `trajectory`; each state's own, capped; or decaying
    exponentially with it."""
    gamma: float = 0.5
    """Share of the high end in the mixture: r_gamma lies in [1, 1/gamma]."""
    quantile: float = 0.9
    """q: the high end is the q-quantile of the entropies, the low end the (1-q)-quantile."""
    rate_high: float = 1.0
    """b_high of the exponential variant."""
    rate_low: float = 2.0
    """b_low of the exponential variant."""
    weight_kl: float = 0.1
    """lambda_kl: weight of the policy KL with entropy ratio; 0 is none."""
    weight_dynamics: float = 0.1
    """lambda_dyn: weight of the dynamics balance; 0 is none."""

    def __post_init__(self) -> None:
        one_of("entropy.variant", self.variant, get_args(EntropyVariant))
        in_range("entropy.gamma", self.gamma, 0.001, 0.999)
        in_range("entropy.quantile", self.quantile, 0.5, 1.0)
        in_range("entropy.rate_high", self.rate_high, 0.0, 20.0)
        in_range("entropy.rate_low", self.rate_low, 0.0, 20.0)
        in_range("entropy.weight_kl", self.weight_kl, 0.0, 1e6)
        in_range("entropy.weight_dynamics", self.weight_dynamics, 0.0, 1e6)


@dataclass(frozen=True, kw_only=True)
class OptimConfig:
    """Adam on the balance objective."""

    lr: float = 1e-3
    """Learning rate of policy, flow and backward heads."""
    log_z_factor: float = 20.0
    """log Z learns this many times faster."""
    clip: float = 10.0
    """Gradient-norm clip; 0 is none."""
    warmup: int = 100
    """Steps of linear warm-up."""
    final: float = 0.01
    """Share of the learning rate that is left at the end of the cosine decay; 1 is no decay."""

    def __post_init__(self) -> None:
        in_range("optim.lr", self.lr, 0.0, 10.0)
        in_range("optim.log_z_factor", self.log_z_factor, 0.0, 1e6)
        in_range("optim.clip", self.clip, 0.0)
        in_range("optim.warmup", self.warmup, 0, 10**9)
        in_range("optim.final", self.final, 0.0, 1.0)


@dataclass(frozen=True, kw_only=True)
class LogConfig:
    """How often a run writes metrics, exact distances and checkpoints."""

    every: int = 100
    """Steps between lines of metrics.jsonl."""
    exact_every: int = 500
    """Steps between exact evaluations on enumerable tasks; 0 is never."""
    checkpoint_every: int = 1000
    """Steps between checkpoints."""
    entropy: bool = False
    """Log the policy's entropy, its ratio r_gamma and the terms made of them, whatever the objective."""

    def __post_init__(self) -> None:
        in_range("log.every", self.every, 1)
        in_range("log.exact_every", self.exact_every, 0)
        in_range("log.checkpoint_every", self.checkpoint_every, 1)


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """All settings that decide a run's numbers."""

    method: str = "gfn"
    """Flow networks, or a peer to compare with; or `module:Learner`, yours."""
    objective: str = "tb"
    """What flow networks minimise; or `module:function`, yours."""
    form: str = "marginal"
    """How noise enters a balance; or `module:function`, yours."""
    subtb_lambda: float = 0.9
    """lambda of SubTB."""
    beta: float | None = None
    """Reward exponent; by default the task's own, which `sgfn tasks` lists."""
    aim: float | Literal["auto"] | None = None
    """Mean score that samples should reach, in units of the score: the exponent is then found while training, from
    --beta on. `auto`: half-way between the first batch's mean and the best score so far."""
    steps: int = 5000
    """Training steps, each with one batch of rollouts."""
    batch: int = 64
    """Trajectories per step."""
    seed: int = 0
    """Seed of everything random."""
    explore: float = 0.01
    """Probability of a uniform action while sampling."""
    temperature: float = 1.0
    """Sampling temperature: above 1 flattens the policy while exploring."""
    exploration: str = "constant"
    """Ways to explore, joined by `+` where there are several: local+best; or `module:Way`, yours."""
    ahead: int = 2
    """Batches that wait for their scores while training goes on, where workers score them; each is trained on when they
    have arrived, so many steps later. 0: every step waits for its own."""
    deterministic: bool = False
    """Train on batches in the order in which they were rolled out, so that the numbers of a run do not depend on how
    long scores took; else in the order in which they arrive."""
    actors: int = 0
    """Processes that roll out and score batches for the one that learns; with --cluster they are actors of a Ray
    cluster. 0: each step rolls out its own batch."""
    actors_lag: int | None = None
    """Most updates between the weights that rolled out a batch and the update on it; by default twice the actors."""
    noise: NoiseConfig = field(default_factory=NoiseConfig)
    constraints: ConstraintsConfig = field(default_factory=ConstraintsConfig)
    grid: GridConfig = field(default_factory=GridConfig)
    motif: MotifConfig = field(default_factory=MotifConfig)
    bits: BitsConfig = field(default_factory=BitsConfig)
    ehrlich: EhrlichConfig = field(default_factory=EhrlichConfig)
    rna: RnaConfig = field(default_factory=RnaConfig)
    table: TableConfig = field(default_factory=TableConfig)
    proxy: ProxyConfig = field(default_factory=ProxyConfig)
    callable: CallableConfig = field(default_factory=CallableConfig)
    series: SeriesConfig = field(default_factory=SeriesConfig)
    reward: RewardConfig = field(default_factory=RewardConfig)
    net: NetConfig = field(default_factory=NetConfig)
    dynamics: DynamicsConfig = field(default_factory=DynamicsConfig)
    thought: ThoughtConfig = field(default_factory=ThoughtConfig)
    rl: RLConfig = field(default_factory=RLConfig)
    chain: ChainConfig = field(default_factory=ChainConfig)
    kl: KLConfig = field(default_factory=KLConfig)
    entropy: EntropyConfig = field(default_factory=EntropyConfig)
    replay: ReplayConfig = field(default_factory=ReplayConfig)
    offline: OfflineConfig = field(default_factory=OfflineConfig)
    archive: ArchiveConfig = field(default_factory=ArchiveConfig)
    local: LocalConfig = field(default_factory=LocalConfig)
    surprise: SurpriseConfig = field(default_factory=SurpriseConfig)
    novelty: NoveltyConfig = field(default_factory=NoveltyConfig)
    thompson: ThompsonConfig = field(default_factory=ThompsonConfig)
    teacher: TeacherConfig = field(default_factory=TeacherConfig)
    optim: OptimConfig = field(default_factory=OptimConfig)
    log: LogConfig = field(default_factory=LogConfig)

    @property
    def offline_batch(self) -> int:
        """Trajectories of each batch that come from the offline file."""
        return round(self.batch * self.offline.share)

    @property
    def files(self) -> dict[str, Path]:
        """The files that are named, by the field that names them."""
        named = {
            "noise.file": self.noise.file,
            "table.file": self.table.file,
            "proxy.file": self.proxy.file,
            "offline.file": self.offline.file,
            "series.file": self.series.file,
        }
        return {name: file for name, file in named.items() if file is not None}

    def __post_init__(self) -> None:
        in_range("subtb_lambda", self.subtb_lambda, 0.0, 2.0)
        if self.beta is not None:
            in_range("beta", self.beta, 0.0, 1e3)
        if self.aim is not None and self.reward.ramp > 0:
            raise ValueError("aim finds the exponent, and reward.ramp sets it: leave one of them out")
        if isinstance(self.aim, float):
            in_range("aim", self.aim, 1e-30)
        in_range("steps", self.steps, 1, 10**9)
        in_range("batch", self.batch, 1, 10**7)
        in_range("seed", self.seed, 0, 2**31 - 1)
        in_range("explore", self.explore, 0.0, 1.0, open_high=True)
        in_range("temperature", self.temperature, 1e-3, 1e3)
        in_range("ahead", self.ahead, 0, 1000)
        in_range("actors", self.actors, 0, 4096)
        if self.actors_lag is not None:
            in_range("actors_lag", self.actors_lag, 0, 10**6)
            if self.actors_lag < self.actors - 1:
                fix = f"raise it to {self.actors - 1} or more"
                raise ValueError(f"actors_lag {self.actors_lag} leaves some of {self.actors} actors idle: {fix}")
        if self.thought.layers > 0 and self.dynamics.mode == "known":
            raise ValueError("thought.layers needs a learned noise model: set dynamics.mode to batch or replay")
        share = self.offline.share
        if share > 0 and not 0 < self.offline_batch < self.batch:
            raise ValueError(
                f"offline.share {share:g} of a batch of {self.batch} leaves no whole trajectory on one side"
            )

    @property
    def watches_entropy(self) -> bool:
        """Whether the entropy ratio has a part in the run, or is logged."""
        return self.log.entropy or self.objective == "kl-entropy" or "entropy" in self.explorations

    @property
    def explorations(self) -> tuple[str, ...]:
        """The ways to explore, one by one."""
        return tuple(self.exploration.split("+"))

    def with_(self, **changes: Any) -> "TrainConfig":
        """A copy with some fields changed; `noise__alpha=0.1` reaches into a component."""
        top: dict[str, Any] = {}
        inner: dict[str, dict[str, Any]] = {}
        for name, value in changes.items():
            part, _, field_name = name.partition("__")
            (inner.setdefault(part, {}) if field_name else top)[field_name or part] = value
        for part, values in inner.items():  # all fields of a component at once: they are checked together
            one_of("config: field", part, (f.name for f in fields(self) if is_dataclass(getattr(self, f.name))))
            top[part] = _changed(top.get(part, getattr(self, part)), values, f"{part}.")
        return _changed(self, top)


T = TypeVar("T")
LARGEST = 10**300
"""No number of a configuration is larger."""


def to_dict(config: Any) -> dict[str, Any]:
    """A configuration as plain data for JSON."""
    out = {}
    for f in fields(config):
        value = getattr(config, f.name)
        out[f.name] = to_dict(value) if is_dataclass(value) else str(value) if isinstance(value, Path) else value
    return out


def differing(mine: Any, other: Any, prefix: str = "--") -> list[str]:
    """Flags in which two configurations differ."""
    found = []
    for part in fields(mine):
        one, two = getattr(mine, part.name), getattr(other, part.name)
        if is_dataclass(one):
            found += differing(one, two, f"{prefix}{part.name}.")
        elif one != two:
            found.append(prefix + part.name)
    return found


def from_dict(cls: type[T], data: object, where: str = "config") -> T:
    """Back from JSON, strictly: unknown or ill-typed fields are named."""
    if not isinstance(data, dict):
        raise ValueError(f"{where} must be an object, got {type(data).__name__}")
    hints = typing.get_type_hints(cls)
    for name in data:
        one_of(f"{where}: field", str(name), hints)
    return cls(**{name: _value(hints[name], value, f"{where}.{name}") for name, value in data.items()})


def _changed(config: T, values: dict[str, Any], prefix: str = "") -> T:
    """A copy with some fields changed; unknown or ill-typed ones are named."""
    hints = typing.get_type_hints(type(config))
    for name, value in values.items():
        _check_field(config, prefix, name, hints)
        if not isinstance(value, Path) and not is_dataclass(value):
            values = {**values, name: _value(hints[name], value, prefix + name)}
    return replace(typing.cast(Any, config), **values)


def _check_field(config: Any, prefix: str, name: str, known: Iterable[str]) -> None:
    """Raise unless a field is known; one that only components have is suggested with theirs."""
    if name in known:
        return
    parts = {f.name: getattr(config, f.name) for f in fields(config)}
    inner = [(part, f.name) for part, value in parts.items() if is_dataclass(value) for f in fields(value)]
    end = name if nearest(name, parts) else nearest(name, [own for _, own in inner])
    suggested = [f"'{part}.{own}'" for part, own in inner if own in (name, end)]
    if suggested:
        suggested.sort(key=lambda whole: not whole.startswith(("'net.", "'optim.")))  # what is meant most often
        raise ValueError(f"config: field {name!r} is unknown; did you mean {' or '.join(suggested[:3])}?")
    one_of("config: field", prefix + name, (prefix + one for one in known))


def _value(hint: Any, value: Any, where: str) -> Any:
    if is_dataclass(hint):
        return from_dict(typing.cast(type, hint), value, where)
    union = isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union
    options = get_args(hint) if union else (hint,)
    if value is None and type(None) in options:
        return None
    if Path in options and isinstance(value, str):
        require("\0" not in value, where, "be the path of a file", quoted(value))
        return Path(value)
    if float in options and isinstance(value, int | float) and not isinstance(value, bool):
        require(not isinstance(value, int) or abs(value) < LARGEST, where, "be a number", quoted(value))
        return float(value)
    literals = [option for option in options if typing.get_origin(option) is Literal]
    if literals and isinstance(value, str):
        one_of(where, value, get_args(literals[0]))
        return value
    if options[0] in (int, str, bool) and type(value) is options[0]:
        return value
    raise ValueError(f"{where} has the wrong type: {quoted(value)}")
