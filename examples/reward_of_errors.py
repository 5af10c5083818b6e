"""Why a forecaster must not be rewarded by exp(-error / T): the interval it learns is the temperature.

A policy cannot see the future y, so balance in logarithms fits the mean of the log-reward,

    p(x) proportional to exp(-E|x - y| / T),

whatever the law of y. Both laws below are exact: y is standard normal, or one of two modes at -2 and 2.
"""

from collections.abc import Callable

import numpy as np
from scipy.stats import norm

GRID = np.linspace(-12.0, 12.0, 2401)
TEMPERATURES = (0.1, 0.5, 1.0, 2.0)


def normal(x: np.ndarray) -> np.ndarray:
    """Distribution function of the first process."""
    return norm.cdf(x)


def two_modes(x: np.ndarray) -> np.ndarray:
    """Distribution function of the second."""
    return (norm.cdf(x, -2, 0.4) + norm.cdf(x, 2, 0.4)) / 2


def fitted(cdf: Callable[[np.ndarray], np.ndarray], temperature: float) -> np.ndarray:
    """The law on the grid that balance with the reward exp(-|x - y| / T) fits."""
    mass = np.diff(cdf(GRID), prepend=0.0)
    error = np.abs(GRID[:, None] - GRID) @ mass
    law = np.exp(-(error - error.min()) / temperature)
    return law / law.sum()


def interval(law: np.ndarray, share: float = 0.8) -> tuple[float, float]:
    """The central interval of a law on the grid."""
    upto = law.cumsum()
    low, high = np.searchsorted(upto, [(1 - share) / 2, (1 + share) / 2])
    return float(GRID[low]), float(GRID[high])


def held(cdf: Callable[[np.ndarray], np.ndarray], temperature: float) -> tuple[float, float]:
    """Width of the fitted 80 % interval, and the share of futures that it really holds."""
    low, high = interval(fitted(cdf, temperature))
    return high - low, float(cdf(np.array(high)) - cdf(np.array(low)))


def main() -> list[str]:
    """Print a table: for each temperature the interval that is learned for either process."""
    lines = ["| T | normal: width | holds | two modes: width | holds |", "|---|---|---|---|---|"]
    for temperature in TEMPERATURES:
        cells = [
            f"{width:.1f} | {share:.0%}" for width, share in (held(normal, temperature), held(two_modes, temperature))
        ]
        lines.append(f"| {temperature:g} | {' | '.join(cells)} |")
    truth = [np.diff(cdf(GRID), prepend=0.0) for cdf in (normal, two_modes)]
    true = [f"{high - low:.1f} | 80%" for low, high in map(interval, truth)]
    lines.append(f"| the truth | {' | '.join(true)} |")
    print("\n".join(lines))
    return lines


if __name__ == "__main__":
    main()
