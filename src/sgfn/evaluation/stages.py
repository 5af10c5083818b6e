"""Which stage an evaluation is at: on a million objects it takes minutes, and somebody waits for it."""

from collections.abc import Callable
from dataclasses import dataclass, field

StageProgress = Callable[[str, int, int | None], object]
"""Called with the name of a stage, how many of its parts are done, and of how many; None where nobody can tell."""


@dataclass
class Stages:
    """Tells a function, where there is one, of each stage that begins and of each part of it that is done."""

    told: StageProgress | None = None
    name: str = field(default="", init=False)
    done: int = field(default=0, init=False)
    total: int | None = field(default=None, init=False)

    def begin(self, name: str, total: int | None = None) -> None:
        """Another stage begins, of so many parts."""
        self.name, self.done, self.total = name, 0, total
        self.advance(0)

    def advance(self, count: int) -> None:
        """So many more parts of the stage are done."""
        self.done += count
        if self.told is not None:
            self.told(self.name, self.done, self.total)
