"""Checks of single fields: each raises one line that names the field, the wanted range and the value."""

import math
from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any

LONGEST_NAME, LONGEST_SLIP = 100, 30
"""Letters of a name that is still compared with others, and by which it may be longer or shorter."""


def require(condition: bool, name: str, wanted: str, value: object) -> None:
    """Raise the one kind of message a wrong field gets."""
    if not condition:
        raise ValueError(f"{name} must {wanted}, got {value}")


def in_range(name: str, value: Any, low: int | float, high: int | float = math.inf, *, open_high: bool = False) -> None:
    """Check low <= value <= high (or < high), finite.

    >>> in_range("seed", "a", 0)
    Traceback (most recent call last):
    ValueError: seed must be a number, got 'a'
    """
    if value is None or isinstance(value, str | bytes | list | tuple | dict):
        raise ValueError(f"{name} must be a number, got {value!r}")
    inside = abs(value) < math.inf and low <= value and (value < high if open_high else value <= high)
    bracket = ")" if open_high or math.isinf(high) else "]"
    require(inside, name, f"lie in [{low:g}, {high:g}{bracket}", value)


def whole_number(name: str, value: object, low: int, high: int | float = math.inf) -> None:
    """Check low <= value <= high for an integer, which a text, a truth value or 2.5 is not.

    >>> whole_number("length", "3", 1)
    Traceback (most recent call last):
    ValueError: length must be a whole number, got '3'
    """
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise ValueError(f"{name} must be a whole number, got {value!r}")
    in_range(name, int(value), low, high)


def one_of(name: str, value: str, allowed: Iterable[str]) -> None:
    """Check a choice by name, and suggest the nearest."""
    allowed = list(allowed)
    if value not in allowed:
        near = nearest(value, allowed)
        hint = f"; did you mean {near!r}?" if near else ""
        raise ValueError(f"{name} {value!r} is unknown: choose from {', '.join(allowed)}{hint}")


def nearest(text: str, known: Iterable[str]) -> str:
    """The known name that a text may be a slip of, in any case; empty where none is near.

    A name is near where it begins the text or is begun by it (three letters at least), or where a third of its letters
    at most were left out, put in, changed or swapped with the next.

    >>> nearest("hiden", ["chain", "hidden"]), nearest("hiden", ["chain"]), nearest("seq", ["Sequence"])
    ('hidden', '', 'Sequence')
    """
    slips = {name: _slips(text.lower(), name.lower()) for name in known}
    few = {name: (max(len(text), len(name)) + 1) // 3 for name in slips}
    found = [name for name, slip in slips.items() if slip <= few[name] or _begins(text, name)]
    return min(found, key=lambda name: (slips[name], -len(name)), default="")


def _begins(one: str, other: str) -> bool:
    """Whether the shorter of two names begins the longer."""
    short, long = sorted((one.lower(), other.lower()), key=len)
    return len(short) >= 3 and long.startswith(short)


def _slips(one: str, other: str) -> int:
    """Letters left out, put in, changed or swapped with the next that lead from one text to the other."""
    if abs(len(one) - len(other)) > LONGEST_SLIP or max(len(one), len(other)) > LONGEST_NAME:
        return max(len(one), len(other))
    before, last = list[int](), list(range(len(other) + 1))
    for i, letter in enumerate(one):
        row = [i + 1]
        for j, known in enumerate(other):
            steps = [last[j + 1] + 1, row[j] + 1, last[j] + (letter != known)]
            if i and j and letter == other[j - 1] and known == one[i - 1]:
                steps.append(before[j - 1] + 1)
            row.append(min(steps))
        before, last = last, row
    return last[-1]


def shorten(text: str, width: int = 40) -> str:
    """One line for an error, cut where it gets long.

    >>> shorten("a word  and another", 12)
    'a word an...'
    """
    line = " ".join(text[: 4 * width].split())
    return line if len(line) <= width and len(text) <= 4 * width else line[: width - 3] + "..."


def quoted(value: object) -> str:
    """A value in a few words, whatever it is: numbers without end and things that cannot be told have their kind.

    >>> quoted("a"), quoted(10**9999)
    ("'a'", 'int of a kind that cannot be written')
    """
    try:
        return shorten(repr(value))
    except Exception:  # of a user's own class, or an integer of more digits than Python writes
        return f"{type(value).__name__} of a kind that cannot be written"


def divides(name: str, value: int, whole_name: str, whole: int) -> None:
    """Check that one field divides another, and say which values would."""
    if whole % value:
        fits = ", ".join(str(n) for n in range(1, min(whole, 16) + 1) if whole % n == 0)
        raise ValueError(f"{name} must divide {whole_name} {whole}, got {value}: choose from {fits}")


def is_ours(thing: object) -> bool:
    """Whether a class or function, or the class of an object, is part of this package.

    >>> is_ours(is_ours), is_ours(3)
    (True, False)
    """
    home = getattr(thing, "__module__", None) or type(thing).__module__
    return home.partition(".")[0] == "sgfn"


def refuse_twice(name: str, values: Sequence[Any]) -> None:
    """Raise where a value is listed twice."""
    again = [value for place, value in enumerate(values) if value in values[:place]]
    if again:
        raise ValueError(f"{name} names {again[0]} twice: name it once")
