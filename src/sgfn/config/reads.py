"""Which settings something reads, and under which other choices: the facts behind the check for unread flags."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import accumulate
from operator import attrgetter
from typing import Any

SAID = {"task": "task ", "stop": "a task with a stop action", "plain": "a task name without a dash"}
"""How facts that are no flags are spoken of."""


@dataclass(frozen=True)
class When:
    """A condition on one field of a configuration, or on a fact of the task: one of some values, or above a number."""

    field: str
    values: tuple[Any, ...] = ()
    above: float | int | None = None
    given: bool | None = None
    """Whether the field must be set at all (a file, say), or must not."""

    def holds(self, config: Any, facts: Mapping[str, Any]) -> bool:
        """Whether it does; a fact that is not known yet counts as true."""
        if self.field in SAID:
            return self.field not in facts or facts[self.field] in self.values
        value = attrgetter(self.field)(config)
        if self.given is not None:
            return (value not in (None, "")) == self.given
        return value > self.above if self.above is not None else any(one in self.values for one in joined(value))

    @property
    def words(self) -> str:
        """The condition as one would type it.

        >>> When("dynamics.mode", ("batch", "replay")).words, When("thought.layers", above=0).words
        ('--dynamics.mode batch or replay', '--thought.layers above 0')
        """
        if self.field in SAID:
            return SAID[self.field] + (listed(self.values, "or") if self.field == "task" else "")
        if self.given is not None:
            return f"--{self.field}" if self.given else f"no --{self.field}"
        if self.above is not None:
            return f"--{self.field} above {self.above:g}"
        return f"--{self.field}" if self.values == (True,) else f"--{self.field} {listed(self.values, 'or')}"


@dataclass(frozen=True)
class Reads:
    """Fields, or whole components, that are read where all conditions hold."""

    names: tuple[str, ...]
    when: tuple[When, ...] = ()

    def covers(self, name: str) -> bool:
        """Whether a field is among those that are read."""
        return any(name == own or name.startswith(f"{own}.") for own in self.names)

    def also(self, *when: When) -> "Reads":
        """The same reading under more conditions."""
        return replace(self, when=(*when, *self.when))

    def missing(self, config: Any, facts: Mapping[str, Any]) -> tuple[When, ...]:
        """The conditions of the reading that do not hold."""
        return tuple(when for when in self.when if not when.holds(config, facts))


def reads(*names: str, **when: Any) -> Reads:
    """Fields read where other fields have a value: `reads("dynamics.rounds", dynamics__mode="replay")`.

    >>> reads("net.heads", net__encoder=("transformer",)).when
    (When(field='net.encoder', values=('transformer',), above=None, given=None),)
    """
    found = []
    for field, wanted in when.items():
        values = wanted if isinstance(wanted, tuple) else (wanted,)
        found.append(wanted if isinstance(wanted, When) else When(field.replace("__", "."), values))
    return Reads(names, tuple(found))


def above(field: str, least: float | int) -> When:
    """The condition that a number is above another."""
    return When(field, above=least)


def given(field: str, there: bool = True) -> When:
    """That a field is set, or is not."""
    return When(field, given=there)


def leaves(config: Any, prefix: str = "") -> Iterator[str]:
    """Every field of a configuration by its dotted name, those of components included."""
    for part in fields(config):
        value = getattr(config, part.name)
        yield from leaves(value, f"{prefix}{part.name}.") if is_dataclass(value) else (prefix + part.name,)


def unread_fields(lines: Iterable[Reads], config: Any, facts: Mapping[str, Any]) -> list[str]:
    """Fields that no line reads under a configuration."""
    read = {own for line in lines if not line.missing(config, facts) for own in line.names}
    return [name for name in leaves(config) if read.isdisjoint(accumulate(name.split("."), "{}.{}".format))]


def readers(lines: Iterable[Reads], name: str, config: Any, facts: Mapping[str, Any]) -> str:
    """What would have to be chosen for a field to be read, in words: the ways with the fewest changes."""
    ways = dict.fromkeys(line.missing(config, facts) for line in lines if line.covers(name))
    fewest = min((len(way) for way in ways), default=0)
    merged: dict[tuple[Any, ...], list[Any]] = {}
    for way in (way for way in ways if len(way) == fewest):
        first = way[0]
        merged.setdefault((first.field, first.above, first.given, way[1:]), []).extend(first.values)
    told = []
    for (field, least, there, rest), values in merged.items():
        first = When(field, tuple(dict.fromkeys(values)), least, there)
        told.append(" and ".join(when.words for when in (first, *rest)))
    return ", or ".join(told)


def joined(value: Any) -> tuple[Any, ...]:
    """The choices that a value joins by `+`; any other value is one.

    >>> joined("local+best"), joined(3)
    (('local+best', 'local', 'best'), (3,))
    """
    return (value, *value.split("+")) if isinstance(value, str) and "+" in value else (value,)


def listed(values: Iterable[Any], last: str) -> str:
    """Words with commas between them, and another word before the last.

    >>> listed(["tb", "db", "subtb"], "or"), listed([1], "or")
    ('tb, db or subtb', '1')
    """
    *others, end = [str(value) for value in values] or [""]
    return f"{', '.join(others)} {last} {end}" if others else end
