"""Components of the configuration that belong to single ways to explore."""

from dataclasses import dataclass

from sgfn.config.checks import in_range


@dataclass(frozen=True, kw_only=True)
class ArchiveConfig:
    """The best distinct objects so far, which `best` replays and `local` starts from."""

    capacity: int = 1000
    """Objects kept; among equal rewards the newest stay."""
    share: float = 0.5
    """Share of each replayed batch that `best` takes from them; the rest comes from the buffer."""

    def __post_init__(self) -> None:
        in_range("archive.capacity", self.capacity, 1, 10**7)
        in_range("archive.share", self.share, 0.0, 1.0)


@dataclass(frozen=True, kw_only=True)
class LocalConfig:
    """The way `local`: objects near the best are ordered, and what comes out is scored and replayed."""

    count: int = 256
    """Orders in a round, each one trajectory more."""
    rounds: int = 1
    """Rounds per step; each begins with what the one before has found."""
    rebuilt: float = 0.25
    """Share of them in which the policy rebuilds a part of an object; the others are edits of it."""

    def __post_init__(self) -> None:
        in_range("local.count", self.count, 1, 10**7)
        in_range("local.rounds", self.rounds, 1, 10**4)
        in_range("local.rebuilt", self.rebuilt, 0.0, 1.0)


@dataclass(frozen=True, kw_only=True)
class SurpriseConfig:
    """The way `surprise`: past trajectories are replayed in proportion to their present loss."""

    candidates: int = 4
    """Trajectories whose loss is computed for each one that is replayed."""
    share: float = 0.5
    """Share of each replayed batch that is picked so."""

    def __post_init__(self) -> None:
        in_range("surprise.candidates", self.candidates, 2, 1000)
        in_range("surprise.share", self.share, 0.0, 1.0)


@dataclass(frozen=True, kw_only=True)
class NoveltyConfig:
    """The way `novelty`: actions that lead to states unlike those seen before are tried more often."""

    weight: float = 1.0
    """What is added to log pi for a state of average novelty."""
    hidden: int = 64
    """Width of the two small networks."""
    lr: float = 1e-3
    """Learning rate of the one that is trained."""

    def __post_init__(self) -> None:
        in_range("novelty.weight", self.weight, 0.0, 1e3)
        in_range("novelty.hidden", self.hidden, 1, 65536)
        in_range("novelty.lr", self.lr, 0.0, 10.0)


@dataclass(frozen=True, kw_only=True)
class ThompsonConfig:
    """The way `thompson`: rollouts are made by heads that differ where little is known."""

    heads: int = 4
    """Number of heads; rollouts are dealt to them in turn."""
    prior: float = 1.0
    """Standard deviation of the fixed random logits that each head begins with."""
    hidden: int = 128
    """Width of the network that they share."""
    lr: float = 2e-3
    """Its learning rate."""

    def __post_init__(self) -> None:
        in_range("thompson.heads", self.heads, 1, 64)
        in_range("thompson.prior", self.prior, 0.0, 100.0)
        in_range("thompson.hidden", self.hidden, 1, 65536)
        in_range("thompson.lr", self.lr, 0.0, 10.0)


@dataclass(frozen=True, kw_only=True)
class TeacherConfig:
    """The way `teacher`: a share of the rollouts is made by a sampler that seeks what the policy gets wrong."""

    share: float = 0.5
    """Share of each batch of rollouts that the teacher makes."""
    boost: float = 19.0
    """How much more errors count where the policy gives too little than where it gives too much."""
    mix: float = 0.5
    """Power of the task's own reward in the teacher's reward."""
    hidden: int = 128
    """Width of the teacher's network."""
    lr: float = 2e-3
    """Its learning rate."""

    def __post_init__(self) -> None:
        in_range("teacher.share", self.share, 0.0, 1.0)
        in_range("teacher.boost", self.boost, 0.0, 1e6)
        in_range("teacher.mix", self.mix, 0.0, 10.0)
        in_range("teacher.hidden", self.hidden, 1, 65536)
        in_range("teacher.lr", self.lr, 0.0, 10.0)
