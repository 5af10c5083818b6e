"""Settings of a run's components, one frozen dataclass each: noise, reward, networks, objectives, optimiser, log."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from sgfn.config.checks import divides, in_range, one_of
from sgfn.config.conversion import NotGiven

EntropyVariant = Literal["quantile", "trajectory", "per-state", "exponential"]
Activation = Literal["relu", "gelu", "silu"]
DynamicsMode = Literal["batch", "replay", "known"]
DynamicsModel = Literal["auto", "shared", "positional", "full"]


@dataclass(frozen=True, kw_only=True)
class NoiseConfig:
    """How the environment turns what is intended into what happens."""

    kind: str = NotGiven("uniform")
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
        if self.preset is not None and isinstance(self.kind, NotGiven):
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
    pass; `table` has a row for each state, where they can be listed; or `module:Encoder`, yours."""
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
    network (`full`); `auto` goes by alphabet, noise and length: `full` where matrices are small and states few enough
    to be listed, else by the noise."""
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
