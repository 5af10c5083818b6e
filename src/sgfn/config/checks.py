"""Checks of single fields: each raises one line that names the field, the wanted range and the value."""

import difflib
import math
from collections.abc import Iterable
from numbers import Integral


def require(condition: bool, name: str, wanted: str, value: object) -> None:
    """Raise the one kind of message a wrong field gets."""
    if not condition:
        raise ValueError(f"{name} must {wanted}, got {value}")


def in_range(
    name: str, value: int | float, low: int | float, high: int | float = math.inf, *, open_high: bool = False
) -> None:
    """Check low <= value <= high (or < high), finite."""
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
        near = difflib.get_close_matches(value, allowed, n=1, cutoff=0.5)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"{name} {value!r} is unknown: choose from {', '.join(allowed)}{hint}")


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
