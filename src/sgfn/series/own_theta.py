"""A Theta method of our own, for where statsforecast is not installed."""

import numpy as np
from jaxtyping import Float64
from scipy.special import ndtri

Values = Float64[np.ndarray, " T"]

RATES = np.linspace(0.05, 0.95, 19)
"""Smoothing rates that are tried."""


def own_theta(
    values: Values, horizon: int, season: int, levels: Float64[np.ndarray, " Q"]
) -> Float64[np.ndarray, "H Q"]:
    r"""Simple exponential smoothing with half the linear trend as drift, of values less the means of their season.

    .. math:: \hat y_{T+h} = \ell_T + \tfrac{b}{2} h + s_{T+h}, \qquad \sigma_h^2 = \sigma^2 (1 + (h-1)\alpha^2)

    with b the slope of a straight line through the values and the rate $\alpha$ of least squared error.

    Reference: Hyndman and Billah (2003), Unmasking the Theta method, International Journal of Forecasting 19:287.
    """
    time = np.arange(len(values))
    slope = float(np.polyfit(time, values, 1)[0]) if len(values) > 2 else 0.0
    shape = seasonal_means(values - slope * time, season)
    rest = values - shape[time % season]
    fits = [(smoothed(rest, slope / 2, rate), rate) for rate in RATES.tolist()]
    (level, errors), rate = min(fits, key=lambda one: float(np.square(one[0][1]).sum()))
    ahead = np.arange(1, horizon + 1)
    point = level + slope / 2 * ahead + shape[(len(values) - 1 + ahead) % season]
    sigma = float(np.sqrt(np.square(errors).mean())) if len(errors) else 0.0
    deviation = sigma * np.sqrt(1 + (ahead - 1) * rate**2)
    return point[:, None] + deviation[:, None] * ndtri(levels)


def seasonal_means(values: Values, season: int) -> Float64[np.ndarray, " S"]:
    """Mean of each phase less the mean of all; zeros where there is no season or less than two of them."""
    if season < 2 or len(values) < 2 * season:
        return np.zeros(season)
    phase = np.arange(len(values)) % season
    return np.bincount(phase, weights=values) / np.bincount(phase) - values.mean()


def smoothed(values: Values, drift: float, rate: float) -> tuple[float, Float64[np.ndarray, " E"]]:
    """Last level of exponential smoothing with a drift, and the errors of one step ahead."""
    level, errors = float(values[0]), np.empty(len(values) - 1)
    for at, value in enumerate(values[1:].tolist()):
        errors[at] = value - level - drift
        level += drift + rate * errors[at]
    return float(level), errors
