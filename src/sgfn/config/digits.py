"""Figures as people read them."""


def figure(value: int | float, digits: int = 4) -> str:
    """So many significant digits, and all before the point where there are more: no exponent below ten million.

    >>> figure(0.5), figure(8523.4, 3), figure(20000), figure(2.5e-9), figure(3e8)
    ('0.5', '8523', '20000', '2.5e-09', '3e+08')
    """
    return f"{value:.0f}" if 10**digits - 0.5 <= abs(value) < 1e7 else f"{value:.{digits}g}"
