"""Configurations as plain data for JSON and back, their differences, and copies with some fields changed."""

import functools
import types
import typing
from collections.abc import Iterable
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from sgfn.config.checks import nearest, one_of, quoted, require
from sgfn.config.names import words_on

T = TypeVar("T")


class NotGiven(str):
    """A default that can be told from the same word given by a user."""


LARGEST = 10**300
"""No number of a configuration is larger."""


type_hints = functools.cache(typing.get_type_hints)
"""Types of a class's fields, which are found out once."""


def to_dict(config: Any) -> dict[str, Any]:
    """A configuration as plain data for JSON."""
    out = {}
    for f in fields(config):
        value = getattr(config, f.name)
        out[f.name] = to_dict(value) if is_dataclass(value) else str(value) if isinstance(value, Path) else value
    return out


def differing(mine: Any, other: Any, prefix: str = "--") -> list[str]:
    """Flags in which two configurations differ."""
    found = []
    for part in fields(mine):
        one, two = getattr(mine, part.name), getattr(other, part.name)
        if is_dataclass(one):
            found += differing(one, two, f"{prefix}{part.name}.")
        elif one != two:
            found.append(prefix + part.name)
    return found


def from_dict(cls: type[T], data: object, where: str = "config") -> T:
    """Back from JSON, strictly: unknown or ill-typed fields are named."""
    if not isinstance(data, dict):
        raise ValueError(f"{where} must be an object, got {type(data).__name__}")
    hints = type_hints(cls)
    for name in data:
        one_of(f"{where}: field", str(name), hints)
    defaults = {f.name: f.default for f in fields(typing.cast(Any, cls))}
    values = {name: _value(hints[name], value, f"{where}.{name}") for name, value in data.items()}
    if data.get("preset"):  # beside a preset, which chooses a kind where none is given, the word was given
        return cls(**values)
    return cls(**{name: _as_not_given(value, defaults[name]) for name, value in values.items()})


def _as_not_given(value: Any, default: Any) -> Any:
    """A value out of JSON; the default itself where a file, which cannot tell, has the word of one nobody gave."""
    return default if isinstance(default, NotGiven) and value == default else value


def changed(config: T, values: dict[str, Any], prefix: str = "") -> T:
    """A copy with some fields changed; unknown or ill-typed ones are named."""
    hints = type_hints(type(config))
    for name, value in values.items():
        _check_field(config, prefix, name, hints)
        if not isinstance(value, Path) and not is_dataclass(value):
            values = {**values, name: _value(hints[name], value, prefix + name)}
    return replace(typing.cast(Any, config), **values)


def _check_field(config: Any, prefix: str, name: str, known: Iterable[str]) -> None:
    """Raise unless a field is known; one that only components have is suggested with theirs."""
    if name in known:
        return
    if not prefix and (elsewhere := words_on(name, dashes="")):
        raise ValueError(f"config: field {name!r} is unknown: {elsewhere}")
    parts = {f.name: getattr(config, f.name) for f in fields(config)}
    inner = [(part, f.name) for part, value in parts.items() if is_dataclass(value) for f in fields(value)]
    end = name if nearest(name, parts) else nearest(name, [own for _, own in inner])
    suggested = [f"'{part}.{own}'" for part, own in inner if own in (name, end)]
    if suggested:
        suggested.sort(key=lambda whole: not whole.startswith(("'net.", "'optim.")))  # what is meant most often
        raise ValueError(f"config: field {name!r} is unknown; did you mean {' or '.join(suggested[:3])}?")
    one_of("config: field", prefix + name, (prefix + one for one in known))


def _value(hint: Any, value: Any, where: str) -> Any:
    if is_dataclass(hint):
        return from_dict(typing.cast(type, hint), value, where)
    union = isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union
    options = get_args(hint) if union else (hint,)
    if value is None and type(None) in options:
        return None
    if Path in options and isinstance(value, str):
        require("\0" not in value, where, "be the path of a file", quoted(value))
        return Path(value)
    if float in options and isinstance(value, int | float) and not isinstance(value, bool):
        require(not isinstance(value, int) or abs(value) < LARGEST, where, "be a number", quoted(value))
        return float(value)
    literals = [option for option in options if typing.get_origin(option) is Literal]
    if literals and isinstance(value, str):
        one_of(where, value, get_args(literals[0]))
        return value
    if (options[0] in (int, bool) and type(value) is options[0]) or (options[0] is str and isinstance(value, str)):
        return value
    raise ValueError(f"{where} must be {' or '.join(map(kind_words, options))}, got {quoted(value)}")


KINDS = {int: "a whole number", float: "a number", bool: "True or False", str: "a text", Path: "the path of a file"}


def kind_words(option: Any) -> str:
    """What a value of a type is called in messages.

    >>> kind_words(int), kind_words(Literal["tb", "db"]), kind_words(type(None))
    ('a whole number', 'one of tb, db', 'None')
    """
    if typing.get_origin(option) is Literal:
        return f"one of {', '.join(map(str, get_args(option)))}"
    return KINDS.get(option, "None" if option is type(None) else str(option))
