"""Numbers as tables and axes write them."""

DASH = "\N{EN DASH}"
"""Stands for what is not known."""
SCORE = 3
"""Decimals of a score of ordinary size."""


def plain(value: float, decimals: int = 2) -> str:
    """A number with commas between thousands and a proper minus sign, none before zero.

    >>> plain(-1234.5, 1), plain(-0.001)
    ('\N{MINUS SIGN}1,234.5', '0.00')
    """
    text = f"{value:,.{decimals}f}"
    return text.replace("-", "\N{MINUS SIGN}") if float(text.replace(",", "")) else text.removeprefix("-")


def score_text(value: float | None) -> str:
    """A score to three decimals, or to two digits where it is small; a dash where there is none.

    >>> score_text(0.97137), score_text(-12.5), score_text(0.000374), score_text(1e-16)
    ('0.971', '\N{MINUS SIGN}12.500', '0.00037', '0.000')
    """
    if value is None:
        return DASH
    if 1e-15 < abs(value) < 0.01:
        return f"{value:.2g}".replace("-", "\N{MINUS SIGN}")
    return plain(value, SCORE)


def percent(value: float | None) -> str:
    """A probability in percent to three digits; a dash where there is none.

    >>> percent(0.0625), percent(0.00003), percent(None)
    ('6.25%', '< 0.01%', '\N{EN DASH}')
    """
    if value is None:
        return DASH
    return "< 0.01%" if 0 < value < 1e-4 else f"{100 * value:.3g}%"
