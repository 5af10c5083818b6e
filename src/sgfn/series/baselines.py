"""Forecasts to compare with: naive, seasonal naive, and exponential smoothing chosen by its information criterion.

All give normal quantiles [H, Q] around a point forecast, as statsforecast and hence GIFT-Eval have them.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from jaxtyping import Float64
from scipy.special import ndtri

from sgfn.metrics.forecast import LEVELS, Levels
from sgfn.series.calendar import season_length, typical_gap
from sgfn.series.panel import Series

Values = Float64[np.ndarray, " T"]
QuantileForecast = Float64[np.ndarray, "H Q"]
Baseline = Callable[[Values, int, Levels], QuantileForecast]

LONGEST_SEASON = 24
"""Exponential smoothing estimates a start value per step of the season; longer seasons are left out."""
LONGEST_HISTORY = 2_000
"""Exponential smoothing reads so many values at most: older ones have no weight, and cost time."""
NEEDS = "AutoETS needs statsforecast; install it with `pip install 'sgfn[forecast]'`"


def carried(values: Values) -> Values:
    """Missing values filled with the last one observed (the first one, where none came before).

    >>> carried(np.array([np.nan, 1.0, np.nan, 3.0]))
    array([1., 1., 1., 3.])
    """
    seen = ~np.isnan(values)
    if not seen.any():
        raise ValueError("a baseline needs at least one observed value before the window")
    last = np.maximum.accumulate(np.where(seen, np.arange(len(values)), -1))
    return values[np.where(last < 0, seen.argmax(), last)]


def seasonal_naive(values: Values, horizon: int, levels: Levels = LEVELS, season: int = 1) -> QuantileForecast:
    r"""The last season repeated; the error of step $h$ has variance $\sigma^2 \lceil h/m \rceil$.

    $\sigma$ is the root mean square of $y_t - y_{t-m}$. Naive is the case $m = 1$.

    Reference: Hyndman and Athanasopoulos (2021), Forecasting: principles and practice, section 5.5.
    """
    season = min(season, len(values))
    filled = carried(values)
    point = filled[len(filled) - season + np.arange(horizon) % season]
    change = values[season:] - values[:-season]
    sigma = np.sqrt(np.nanmean(np.square(change))) if (~np.isnan(change)).any() else 0.0
    spread = sigma * np.sqrt(np.arange(horizon) // season + 1)
    return point[:, None] + spread[:, None] * ndtri(levels)


naive = partial(seasonal_naive, season=1)


def auto_ets(values: Values, horizon: int, levels: Levels = LEVELS, season: int = 1) -> QuantileForecast:
    """Exponential smoothing whose form minimises the corrected Akaike criterion, by statsforecast.

    Reference: Hyndman et al. (2008), Forecasting with exponential smoothing, Springer.
    """
    try:
        from statsforecast.models import AutoETS
    except ImportError:
        raise ValueError(NEEDS) from None
    model = AutoETS(season_length=season if season <= LONGEST_SEASON else 1)
    intervals = sorted({round(abs(200 * level - 100), 6) for level in levels} - {0.0})
    found = model.forecast(carried(values)[-LONGEST_HISTORY:], h=horizon, level=intervals)
    return np.stack([found[quantile_name(level)] for level in levels], axis=1)


def quantile_name(level: float) -> str:
    """How statsforecast names the end of an interval that is a quantile.

    >>> quantile_name(0.1), quantile_name(0.5), quantile_name(0.9)
    ('lo-80.0', 'mean', 'hi-80.0')
    """
    interval = round(abs(200 * level - 100), 6)
    return "mean" if interval == 0 else f"{'lo' if level < 0.5 else 'hi'}-{interval}"


def season_of(series: Series, step: np.timedelta64 | None) -> int:
    """The season's length in rows."""
    return season_length(typical_gap(series.stamps, step))
