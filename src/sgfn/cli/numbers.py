"""Whole numbers on the command line that may be written as 1e9."""

import re

from tyro.constructors import PrimitiveConstructorSpec


def whole(text: str) -> int:
    """A whole number from its text, also with an exponent.

    >>> whole("1e9"), whole("2.5e3"), whole("7")
    (1000000000, 2500, 7)
    """
    found = re.fullmatch(r"([0-9]+)(?:\.([0-9]*))?[eE]\+?([0-9]{1,2})", text)
    if found is None:
        return int(text)
    before, behind, power = found[1], (found[2] or "").rstrip("0"), int(found[3])
    if power < len(behind):
        return int(text)  # raises: it is no whole number
    return int(before + behind) * 10 ** (power - len(behind))


WHOLE = PrimitiveConstructorSpec(
    nargs=1,
    metavar="INT",
    instance_from_str=lambda words: whole(words[0]),
    is_instance=lambda value: isinstance(value, int),
    str_from_instance=lambda value: [str(value)],
)
"""How tyro reads such a number."""
