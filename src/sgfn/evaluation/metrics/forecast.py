"""Scores of forecasts: functions of quantile forecasts [N, H, Q] and of the observed values [N, H], nan where missing.

Each row is a window. Sums and means run over the observed values of all windows together, as in GluonTS and GIFT-Eval.
"""

import numpy as np
from jaxtyping import Float64

Truth = Float64[np.ndarray, "N H"]
Points = Float64[np.ndarray, "N H"]
Quantiles = Float64[np.ndarray, "N H Q"]
Levels = Float64[np.ndarray, " Q"]

LEVELS: Levels = np.arange(1, 10) / 10
"""The nine quantiles .1, ..., .9 of GIFT-Eval."""


def mse(points: Points, truth: Truth) -> float:
    r"""Mean squared error $\overline{(y - \hat y)^2}$; the mean of a law minimises it."""
    return float(np.nanmean(np.square(truth - points)))


def rmse(points: Points, truth: Truth) -> float:
    r"""Root of the mean squared error, in the units of the values."""
    return float(np.sqrt(mse(points, truth)))


def mae(points: Points, truth: Truth) -> float:
    r"""Mean absolute error $\overline{|y - \hat y|}$; the median of a law minimises it."""
    return float(np.nanmean(np.abs(truth - points)))


def seasonal_error(history: Float64[np.ndarray, " T"], lag: int = 1) -> float:
    r"""Mean absolute change over a lag, $\overline{|y_t - y_{t-m}|}$, before a window; nan if none was observed.

    >>> seasonal_error(np.array([1.0, 2.0, 4.0]))
    1.5
    """
    if not 1 <= lag < len(history):
        raise ValueError(f"lag must lie in [1, {len(history) - 1}] for a history of {len(history)} values, got {lag}")
    change = np.abs(history[lag:] - history[:-lag])
    return float(np.nanmean(change)) if (~np.isnan(change)).any() else float("nan")


def mase(points: Points, truth: Truth, scale: Float64[np.ndarray, " N"]) -> float:
    r"""Mean absolute scaled error $\overline{|y - \hat y| / s_n}$, with `seasonal_error` as the scale of each window.

    Windows whose scale is 0 or nan are left out: their history never changes. The result is nan if none is left.

    Reference: Hyndman and Koehler (2006), Another look at measures of forecast accuracy, IJF 22:679.
    """
    there = scale > 0
    error = np.abs(truth[there] - points[there]) / scale[there, None]
    return float(np.nanmean(error)) if (~np.isnan(error)).any() else float("nan")


def pinball(quantiles: Quantiles, truth: Truth, levels: Levels) -> Quantiles:
    r"""Quantile loss $2\,|(q_\tau - y)(1[y \le q_\tau] - \tau)|$, whose mean over levels tends to the CRPS."""
    error = quantiles - truth[..., None]
    return 2 * np.abs(error * ((error >= 0) - levels))


def wql(quantiles: Quantiles, truth: Truth, levels: Levels = LEVELS) -> float:
    r"""Weighted quantile loss $\frac1Q\sum_\tau \sum L_\tau / \sum |y|$, an estimate of the CRPS over the mean size.

    Reference: Gasthaus et al. (2019), Probabilistic forecasting with spline quantile function RNNs, AISTATS.
    """
    return float(wql_by_level(quantiles, truth, levels).mean())


def wql_by_level(quantiles: Quantiles, truth: Truth, levels: Levels = LEVELS) -> Levels:
    """Weighted quantile loss of each level; nan where all observed values are 0."""
    size = float(np.nansum(np.abs(truth)))
    return np.nansum(pinball(quantiles, truth, levels), axis=(0, 1)) / (size if size > 0 else np.nan)


def coverage(quantiles: Quantiles, truth: Truth, levels: Levels = LEVELS, interval: float = 0.8) -> float:
    """Share of the observed values inside the central interval, whose two ends must be among the levels."""
    low, high = ends(levels, interval)
    inside = (quantiles[..., low] <= truth) & (truth <= quantiles[..., high])
    return float(inside[~np.isnan(truth)].mean())


def width(quantiles: Quantiles, truth: Truth, levels: Levels = LEVELS, interval: float = 0.8) -> float:
    """Mean width of the central interval over observed steps; at equal coverage the narrower forecast is better."""
    low, high = ends(levels, interval)
    return float((quantiles[..., high] - quantiles[..., low])[~np.isnan(truth)].mean())


def calibration(quantiles: Quantiles, truth: Truth, levels: Levels = LEVELS) -> Levels:
    r"""Share of the observed values at or below each quantile, $\overline{1[y \le q_\tau]}$; $\tau$ when calibrated."""
    seen = ~np.isnan(truth)
    return (truth[seen][:, None] <= quantiles[seen]).mean(0)


def ends(levels: Levels, interval: float) -> tuple[int, int]:
    """Positions of the two ends of a central interval among the levels."""
    wanted = ((1 - interval) / 2, (1 + interval) / 2)
    found = [int(np.abs(levels - level).argmin()) for level in wanted]
    if not np.allclose(levels[found], wanted):
        raise ValueError(f"an interval of {interval:g} needs the levels {wanted[0]:g} and {wanted[1]:g}, got {levels}")
    return found[0], found[1]


def crps(paths: Float64[np.ndarray, "N S H"], truth: Truth) -> float:
    r"""Mean continuous ranked probability score of sample paths, $E|X - y| - \tfrac12 E|X - X'|$ over distinct pairs.

    Reference: Gneiting and Raftery (2007), Strictly proper scoring rules, prediction, and estimation, JASA 102:359.
    """
    count = paths.shape[1]
    if count < 2:
        raise ValueError(f"paths must number at least 2 per window, got {count}")
    ordered = np.sort(paths, axis=1)
    weight = 2 * np.arange(1, count + 1) - count - 1
    spread = (weight[None, :, None] * ordered).sum(1) / (count * (count - 1))  # half of E|X - X'|
    return float(np.nanmean(np.abs(paths - truth[:, None]).mean(1) - spread))
