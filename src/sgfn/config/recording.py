"""Which settings a function reads: it is given a copy that notes them."""

import weakref
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

C = TypeVar("C")
T = TypeVar("T")


def fields_read(function: Callable[[C], T], config: C) -> tuple[T, frozenset[str] | None]:
    """What a function makes of settings, and the dotted names of the fields that it read.

    None stands for the names where the settings are kept in what was made, so that they may be read later.

    >>> from sgfn.config import TrainConfig
    >>> fields_read(lambda config: config.grid.side, TrainConfig())
    (8, frozenset({'grid.side'}))
    """
    seen: set[str] = set()
    copies: list[weakref.ref[Any]] = []
    made = function(_noting(config, "", seen, copies))
    return made, None if any(copy() is not None for copy in copies) else frozenset(seen)


class Observed:
    """Fields that functions of others were seen to read in this process, by the functions' names."""

    def __init__(self) -> None:
        self.seen: dict[str, frozenset[str] | None] = {}

    def call(self, name: str, function: Callable[[C], T], config: C) -> T:
        """What a function makes of settings; what it reads is added to what it read in earlier calls."""
        made, now = fields_read(function, config)
        before = self.seen.get(name, frozenset())
        self.seen[name] = None if now is None or before is None else before | now
        return made

    def forget(self, name: str) -> None:
        """Begin anew, as the name means another function now."""
        self.seen.pop(name, None)

    def fields(self, name: str) -> frozenset[str] | None:
        """What a function reads; None where that is not known: it was not called yet, or keeps its settings."""
        return self.seen.get(name)


def plain(config: C) -> C:
    """The same settings as an ordinary object; to ask for it is not noted."""
    kind = config.__class__  # of a copy that notes, the class that it stands for
    made = object.__new__(kind)
    for part in fields(config):  # pyright: ignore[reportArgumentType]
        value = object.__getattribute__(config, part.name)
        object.__setattr__(made, part.name, plain(value) if is_dataclass(value) else value)
    return made


def _noting(config: Any, prefix: str, seen: set[str], copies: list[weakref.ref[Any]]) -> Any:
    """A copy that adds each field to `seen` when it is read; a component notes its own fields."""
    kind, values = type(config), {part.name: getattr(config, part.name) for part in fields(config)}
    own = {name for name, value in values.items() if not is_dataclass(value)}

    class Noting(kind):
        def __getattribute__(self, name: str) -> Any:
            if name == "__class__":
                return kind  # it equals plain settings, and changed copies of it are plain
            seen.update(prefix + field for field in (own if name == "__dict__" else own & {name}))
            return super().__getattribute__(name)

    made = object.__new__(Noting)
    for name, value in values.items():
        object.__setattr__(made, name, value if name in own else _noting(value, f"{prefix}{name}.", seen, copies))
    copies.append(weakref.ref(made))
    return made
