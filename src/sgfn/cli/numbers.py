"""Whole numbers on the command line that may be written as 1e9."""

from tyro.constructors import PrimitiveConstructorSpec


def whole(text: str) -> int:
    """A whole number from its text, also with an exponent or with underscores.

    >>> whole("1e9"), whole("2.5e3"), whole("1_000"), whole("7")
    (1000000000, 2500, 1000, 7)
    """
    digits, _, power = text.lower().partition("e")
    try:
        if not power:
            return int(text)
        whole_part, _, rest = digits.partition(".")
        shift = int(power) - len(rest)
        if not 0 <= shift <= 30:
            raise ValueError
        return int(f"{whole_part}{rest}") * 10**shift
    except ValueError:
        raise ValueError(f"must be a whole number, such as 1000 or 1e9, got {text!r}") from None


WHOLE = PrimitiveConstructorSpec(
    nargs=1,
    metavar="INT",
    instance_from_str=lambda words: whole(words[0]),
    is_instance=lambda value: isinstance(value, int),
    str_from_instance=lambda value: [str(value)],
)
"""How tyro reads such a number."""
