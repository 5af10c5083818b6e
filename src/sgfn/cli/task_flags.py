"""Flags of what a task is, for commands that do not train one."""

from dataclasses import dataclass, field

from sgfn.config import NoiseConfig, RewardConfig
from sgfn.config.tasks import (
    BitsConfig,
    CallableConfig,
    ConstraintsConfig,
    EhrlichConfig,
    GridConfig,
    MotifConfig,
    RnaConfig,
    TableConfig,
)


@dataclass(frozen=True, kw_only=True)
class TaskFlags:
    """The part of a configuration that decides what a task is, and not how it is learned."""

    beta: float | None = None
    """Reward exponent; by default the task's own."""
    noise: NoiseConfig = field(default_factory=NoiseConfig)
    constraints: ConstraintsConfig = field(default_factory=ConstraintsConfig)
    reward: RewardConfig = field(default_factory=RewardConfig)
    grid: GridConfig = field(default_factory=GridConfig)
    motif: MotifConfig = field(default_factory=MotifConfig)
    bits: BitsConfig = field(default_factory=BitsConfig)
    ehrlich: EhrlichConfig = field(default_factory=EhrlichConfig)
    rna: RnaConfig = field(default_factory=RnaConfig)
    table: TableConfig = field(default_factory=TableConfig)
    callable: CallableConfig = field(default_factory=CallableConfig)
