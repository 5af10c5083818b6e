"""What a run is told: settings and their checks, presets, and the files they name."""

from sgfn.config.components import (
    DynamicsConfig,
    EntropyConfig,
    EntropyVariant,
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
from sgfn.config.conversion import differing, from_dict, to_dict
from sgfn.config.train import Accelerate, Preset, TrainConfig

VERSION = "0.2.0"

__all__ = [
    "VERSION",
    "Accelerate",
    "DynamicsConfig",
    "EntropyConfig",
    "EntropyVariant",
    "KLConfig",
    "LogConfig",
    "NetConfig",
    "NoiseConfig",
    "OfflineConfig",
    "OptimConfig",
    "Preset",
    "ReplayConfig",
    "RewardConfig",
    "ThoughtConfig",
    "TrainConfig",
    "differing",
    "from_dict",
    "to_dict",
]
