"""Everything that decides a run's numbers: frozen dataclasses, one per component; the CLI's flags come from them."""

from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal

from sgfn.config.checks import in_range, one_of
from sgfn.config.components import (
    DynamicsConfig,
    EntropyConfig,
    KLConfig,
    LogConfig,
    NetConfig,
    NoiseConfig,
    OfflineConfig,
    OptimConfig,
    ReplayConfig,
    RewardConfig,
    ThoughtConfig,
)
from sgfn.config.conversion import changed
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

Accelerate = Literal["auto", "eager", "compile", "compile-float32", "graph"]
Preset = Literal[
    "none",
    "demo",
    "table",
    "exact",
    "frugal",
    "published-tfbind8",
    "published-grid",
    "published-bits",
    "forecast",
    "explore",
]


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
            in_range("aim", self.aim, -1e300 if self.table.transformed else 1e-30)
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
            top[part] = changed(top.get(part, getattr(self, part)), values, f"{part}.")
        return changed(self, top)
