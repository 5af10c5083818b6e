"""Checks of single fields: each raises one line that names the field, the wanted range and the value."""

import difflib
import math
from collections.abc import Iterable


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


def one_of(name: str, value: str, allowed: Iterable[str]) -> None:
    """Check a choice by name, and suggest the nearest."""
    allowed = list(allowed)
    if value not in allowed:
        near = difflib.get_close_matches(value, allowed, n=1, cutoff=0.5)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"{name} {value!r} is unknown: choose from {', '.join(allowed)}{hint}")


def divides(name: str, value: int, whole_name: str, whole: int) -> None:
    """Check that one field divides another, and say which values would."""
    if whole % value:
        fits = ", ".join(str(n) for n in range(1, min(whole, 16) + 1) if whole % n == 0)
        raise ValueError(f"{name} must divide {whole_name} {whole}, got {value}: choose from {fits}")
