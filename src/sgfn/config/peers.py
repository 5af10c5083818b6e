"""Settings of the peers that flow networks are compared with: reinforcement learning and Markov chains."""

from dataclasses import dataclass

from sgfn.config.checks import in_range


@dataclass(frozen=True, kw_only=True)
class RLConfig:
    """Entropy-regularised reinforcement learning (`a2c`, `ppo`, `sac`): reward beta log R at the end of an episode."""

    temperature: float = 1.0
    """Weight of the policy's entropy against the reward; at 1, without noise, the best policy samples the target."""
    trace: float = 0.95
    """lambda of the generalised advantage estimate (a2c, ppo)."""
    value_weight: float = 0.5
    """Weight of the critic's squared error (a2c, ppo); the critic is a network of its own, so this hardly matters."""
    epochs: int = 4
    """Passes over each batch (ppo)."""
    clip: float = 0.2
    """Largest change of an action's probability ratio that still earns (ppo)."""
    updates: int = 4
    """Updates from the buffer per step (sac)."""
    average: float = 0.05
    """How fast the target critics follow (sac)."""

    def __post_init__(self) -> None:
        in_range("rl.temperature", self.temperature, 0.0, 1e3)
        in_range("rl.trace", self.trace, 0.0, 1.0)
        in_range("rl.value_weight", self.value_weight, 0.0, 1e3)
        in_range("rl.epochs", self.epochs, 1, 1000)
        in_range("rl.clip", self.clip, 1e-3, 1.0)
        in_range("rl.updates", self.updates, 1, 1000)
        in_range("rl.average", self.average, 1e-6, 1.0)


@dataclass(frozen=True, kw_only=True)
class ChainConfig:
    """Markov chains over finished objects (`mh`, `mars`): one chain for each trajectory of a batch."""

    keep: int = 4096
    """Newest states of all chains that count as samples."""
    learn: float = 1e-3
    """Learning rate of the proposal network (mars)."""
    floor: float = 0.1
    """Share of uniform edits among its proposals, which keeps the correction bounded (mars)."""
    successes: int = 4096
    """Newest edits that raised the reward, which it learns from (mars)."""

    def __post_init__(self) -> None:
        in_range("chain.keep", self.keep, 1, 10**7)
        in_range("chain.learn", self.learn, 0.0, 10.0)
        in_range("chain.floor", self.floor, 1e-3, 1.0)
        in_range("chain.successes", self.successes, 1, 10**7)
