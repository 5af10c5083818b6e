"""Ways to explore by name, and what each reads and needs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sgfn.config import TrainConfig
from sgfn.config.reads import reads
from sgfn.config.registry import Entry, Registry, imported, refuse_arguments


@dataclass(frozen=True, kw_only=True)
class WayEntry(Entry):
    """A way to explore."""

    way: Callable[..., Any] | str = ""
    """Makes a `Way` of its surroundings; ours as `module:name`, empty where the trainer itself does all there is."""
    behaviour: bool = False
    """Whether it changes how intentions are drawn in rollouts, which only the general backend asks for."""
    replays: bool = False
    """Whether all it does is seen in replayed batches, so that there must be some."""

    @property
    def make(self) -> Callable[..., Any]:
        """The function that makes the way."""
        return imported(self.way)


def _wrap(name: str, found: Any) -> WayEntry:
    way = refuse_arguments("exploration", name, found, "a Way (surroundings)", "surroundings")
    return WayEntry(name=name, way=way, behaviour=True)


def _ours(name: str, about: str, *read: str, behaviour: bool = False) -> WayEntry:
    """The entry of a way that has a file here: `entropy-state` is the class EntropyState of entropy_state.py.

    What does not change the behaviour is seen in replayed batches alone.
    """
    words = name.split("-")
    home, kind = "_".join(words), "".join(word.capitalize() for word in words)
    way = f"sgfn.learning.exploration.{home}:{kind}"
    return WayEntry(name=name, about=about, way=way, reads=(reads(*read),), behaviour=behaviour, replays=not behaviour)


EXPLORATIONS: Registry[WayEntry] = Registry(
    "exploration",
    _wrap,
    WayEntry(name="constant", about="--explore and --temperature as they are"),
    WayEntry(
        name="entropy",
        about="temperature times the entropy ratio of the batch before",
        reads=(
            reads("entropy.variant", "entropy.gamma"),
            reads("entropy.quantile", entropy__variant=("quantile", "trajectory")),
            reads("entropy.rate_high", "entropy.rate_low", entropy__variant="exponential"),
        ),
    ),
    _ours("entropy-state", "hotter where entropy is low and visits are few", "entropy.gamma", behaviour=True),
    _ours("novelty", "towards states unlike those seen (random distillation)", "novelty", behaviour=True),
    _ours("thompson", "rollouts by heads that differ where little is known", "thompson", behaviour=True),
    _ours("teacher", "rollouts by a sampler that seeks what the policy gets wrong", "teacher", behaviour=True),
    _ours("best", "replays the best distinct objects", "archive"),
    _ours("surprise", "replays in proportion to the loss", "surprise"),
    _ours("local", "orders objects near the best: edits, and parts rebuilt by the policy", "local", "archive.capacity"),
)


def chosen_ways(config: TrainConfig) -> list[WayEntry]:
    """The entries of the ways that a configuration names."""
    return [EXPLORATIONS[name] for name in config.explorations]


def check_ways(config: TrainConfig) -> None:
    """Refuse a way twice, and ways that need replayed batches where there are none."""
    names = config.explorations
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"exploration {config.exploration!r} names {twice} twice: leave one out")
    for entry in chosen_ways(config):
        if entry.replays and config.replay.updates == 0:
            raise ValueError(
                f"exploration {entry.name!r} is learned from replayed batches: set --replay.updates to 1 or more"
            )
