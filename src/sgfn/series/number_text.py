"""Numbers in text with commas: decimal commas, thousands separators, and what may be either."""

import re

import pandas as pd

DECIMAL = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?")
"""1234,5 and 1.234,5: a decimal comma, with or without points between thousands."""
THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?")
"""12,018 and 1,234,567.8: commas between thousands."""
PLAIN_COMMA = re.compile(r".*,(\d{1,2}|\d{4,})")
"""A comma that no thousands follow."""

SIGNED = re.compile(
    r"(?P<open>\()?([€$£¥]|[A-Z]{3} )?\s*(?P<number>[+-]?\d+(\.\d+)?)(\s*%|\s?[€$£¥]|\s[A-Za-z]{1,4})?\)?"
)
"""50.1%, $12.50, 100 EUR and (12.50): a number with a sign or a unit, or a negative one as accountants write it."""


def decimal_commas(text: pd.Series) -> bool:
    """Whether all cells are numbers with decimal commas and nothing else: one at least has no three digits after it.

    >>> decimal_commas(pd.Series(["51,06", "7", "1.234,5"])), decimal_commas(pd.Series(["12,018", "13,500"]))
    (True, False)
    """
    return bool(text.str.fullmatch(DECIMAL).all() and text.str.fullmatch(PLAIN_COMMA).any())


def with_points(text: pd.Series) -> pd.Series:
    """Numbers with decimal commas as numbers with points."""
    return text.str.replace(".", "", regex=False).str.replace(",", ".", regex=False)


def comma_numbers(text: pd.Series) -> pd.Series:
    """Whether each cell is a number with a decimal comma or with thousands separators."""
    return text.str.fullmatch(DECIMAL) | text.str.fullmatch(THOUSANDS)


def not_a_number(text: str) -> str:
    """What to say of a cell that should be a number, with both readings of a comma that may be either.

    >>> not_a_number("12,018")
    "'12,018' has a thousands separator (12018) or a decimal comma (12.018): write the one that is meant"
    >>> not_a_number("50.1%"), not_a_number("(12.50)")
    ("'50.1%' is not a number alone: write 50.1", "'(12.50)' is not a number alone: write -12.50")
    """
    shown, whole = f"{text[:40]!r}", text.replace(",", "")
    if THOUSANDS.fullmatch(text) and (text.count(",") > 1 or "." in text):
        return f"{shown} has thousands separators: write {whole}"
    if THOUSANDS.fullmatch(text):
        point = text.replace(",", ".")
        return f"{shown} has a thousands separator ({whole}) or a decimal comma ({point}): write the one that is meant"
    if DECIMAL.fullmatch(text) and "," in text:
        return f"{shown} has a decimal comma: write {text.replace('.', '').replace(',', '.')}"
    if signed := SIGNED.fullmatch(text):
        return f"{shown} is not a number alone: write {'-' if signed['open'] else ''}{signed['number']}"
    return f"{shown} is not a number"
