"""Registries: what can be chosen by name, each with the facts that help, checks and figures are made of.

Ours name their functions and classes as `module:name`, imported on first use, so that help can list them at once.
"""

import inspect
from collections.abc import Callable, ItemsView, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Generic, TypeVar

from sgfn.config.checks import one_of
from sgfn.config.importing import find
from sgfn.config.reads import Reads
from sgfn.config.user_code import raised_by_user

SOLID, DASHED, DOTTED, DASH_DOTTED = "-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (5, 2, 1.5, 2))
Line = str | tuple[int, tuple[float | int, ...]]
PALETTE = ("#2f855a", "#805ad5", "#b7791f", "#2c7a7b", "#97266d", "#5a67d8")
"""Colours of what brings none of its own."""


@dataclass(frozen=True, kw_only=True)
class Style:
    """How something is drawn in every figure: colour by family, line by member."""

    colour: str
    line: Line = SOLID


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What is known of one choice beside what it does."""

    name: str
    """What flags and files call it: a word of ours, or `module:name`."""
    about: str = ""
    """What it is, in a few words of `--help`."""
    label: str = ""
    """What tables and figures call it; by default its name."""
    style: Style | None = None
    reads: tuple[Reads, ...] = ()
    """Settings that mean something where it is chosen."""

    @property
    def title(self) -> str:
        """The label of the entry, or its name where it has none."""
        return self.label or self.name

    @property
    def drawn(self) -> Style:
        """Its own style, or a colour that follows from its name."""
        return self.style or Style(colour=PALETTE[sum(self.name.encode()) % len(PALETTE)])


E = TypeVar("E", bound=Entry)


class Registry(Generic[E]):
    """Entries by name, in the order they came; `registry["module:name"]` finds what is not ours."""

    def __init__(self, what: str, wrap: Callable[[str, Any], E], *entries: E) -> None:
        self.what, self.wrap = what, wrap
        self.entries = {entry.name: entry for entry in entries}

    def add(self, entry: E) -> E:
        """Make an entry known under its name."""
        self.entries[entry.name] = entry
        return entry

    def remove(self, name: str) -> None:
        """Forget an entry."""
        del self.entries[name]

    def __getitem__(self, name: str) -> E:
        return resolve(name, self)

    def __contains__(self, name: object) -> bool:
        return name in self.entries

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def items(self) -> ItemsView[str, E]:
        """Names and entries of all that are known."""
        return self.entries.items()

    def check(self, name: str, where: str | None = None) -> None:
        """Refuse a name that is neither known nor `module:name`, and suggest the nearest; nothing is imported."""
        if ":" not in name:
            one_of(where or self.what, name, self.entries)


def imported(thing: Any) -> Any:
    """The thing itself; `module:name` of ours is imported now."""
    if not isinstance(thing, str):
        return thing
    home, _, name = thing.partition(":")
    return getattr(import_module(home), name)


def refuse_uncallable(what: str, name: str, found: Any, wanted: str) -> Any:
    """What was found under a name, if it can be called; else one line on what it should be."""
    if not callable(found):
        raise ValueError(f"{what} {name!r}: is a {type(found).__name__}, not {wanted}")
    return found


T = TypeVar("T")


def of_kind(what: str, name: str, found: Any, kind: type[T]) -> T:
    """What somebody's function has made, if it is of the kind that is wanted; else one line on what it is."""
    if not isinstance(found, kind):
        raise ValueError(f"{what} {name!r}: makes a {type(found).__name__}, not a {kind.__name__}")
    return found


def refuse_arguments(what: str, name: str, found: Any, wanted: str, *given: str, **named: str) -> Any:
    """What was found under a name, if it can be called and takes arguments of those names; else one line."""
    refuse_uncallable(what, name, found, wanted)
    try:
        signature = inspect.signature(found)
    except (TypeError, ValueError):  # a built-in function may have none
        return found
    try:
        signature.bind(*given, **named)
    except TypeError as error:
        raise ValueError(f"{what} {name!r}: takes {signature}, must be {wanted} ({error})") from None
    return found


@contextmanager
def called_as(what: str, name: str) -> Iterator[None]:
    """Note on what a user's code raises in here by which field it was called."""
    try:
        yield
    except Exception as error:
        if raised_by_user(error):
            error.add_note(f"called as {what} {name!r}")
        raise


def resolve(name: str, registry: Registry[E]) -> E:
    """The entry of a name; `module:name` is imported here, and nowhere else, unless somebody registered it."""
    if name in registry.entries:
        return registry.entries[name]
    registry.check(name)
    found = find(name, registry.what)
    return found if isinstance(found, Entry) else registry.wrap(name, found)  # pyright: ignore[reportReturnType]
