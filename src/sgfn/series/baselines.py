"""Baseline forecasts: naive, seasonal naive, and exponential smoothing chosen by its information criterion.

All give normal quantiles [H, Q] around a point forecast, as statsforecast and hence GIFT-Eval have them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from jaxtyping import Float64
from scipy.special import ndtri

from sgfn.evaluation.metrics.forecast import LEVELS, Levels
from sgfn.series.calendar import never_on_weekends, season_length, typical_gap
from sgfn.series.panel import Panel, Series
from sgfn.series.protocol import Origin

Values = Float64[np.ndarray, " T"]
QuantileForecast = Float64[np.ndarray, "H Q"]

LONGEST_SEASON = 24
"""Longest season for exponential smoothing, which estimates a start value for each step; longer ones are ignored."""
LONGEST_HISTORY = 1_000
"""Number of values that exponential smoothing reads by default: older ones have hardly any weight, and cost time."""
WORKING_DAYS = 5
SHORTEST = 8
"""Least number of values to which exponential smoothing can be fitted."""
NEEDS = "AutoETS needs statsforecast; install it with `pip install 'sgfn[forecast]'`"


def filled_forward(values: Values) -> Values:
    """Values with gaps filled by the last one observed (by the first one, where none came before).

    >>> filled_forward(np.array([np.nan, 1.0, np.nan, 3.0]))
    array([1., 1., 1., 3.])
    """
    seen = ~np.isnan(values)
    if not seen.any():
        raise ValueError("a baseline needs at least one observed value before the window")
    last = np.maximum.accumulate(np.where(seen, np.arange(len(values)), -1))
    return values[np.where(last < 0, seen.argmax(), last)]


def seasonal_naive(values: Values, horizon: int, levels: Levels = LEVELS, season: int = 1) -> QuantileForecast:
    r"""Forecast that repeats the last season; the error of step $h$ has variance $\sigma^2 \lceil h/m \rceil$.

    $\sigma$ is the root mean square of $y_t - y_{t-m}$. Naive is the case $m = 1$.

    Reference: Hyndman and Athanasopoulos (2021), Forecasting: principles and practice, section 5.5.
    """
    season = min(season, len(values))
    filled = filled_forward(values)
    point = filled[len(filled) - season + np.arange(horizon) % season]
    change = values[season:] - values[:-season]
    sigma = np.sqrt(np.nanmean(np.square(change))) if (~np.isnan(change)).any() else 0.0
    spread = sigma * np.sqrt(np.arange(horizon) // season + 1)
    return point[:, None] + spread[:, None] * ndtri(levels)


naive = partial(seasonal_naive, season=1)


def periodic_naive(
    history: Series, ahead: np.ndarray, period: np.timedelta64, levels: Levels = LEVELS
) -> QuantileForecast:
    """Seasonal naive for irregular stamps: the last value observed no later than a whole number of periods before."""
    seen = ~np.isnan(history.values)
    times, values = history.stamps[seen], history.values[seen]
    periods = np.maximum(-((times[-1] - ahead) // period), 1)
    before = np.searchsorted(times, ahead - periods * period, side="right") - 1
    back = np.searchsorted(times, times - period, side="right") - 1
    change = (values - values[back])[back >= 0]
    sigma = np.sqrt(np.mean(np.square(change))) if len(change) else 0.0
    return values[np.maximum(before, 0)][:, None] + sigma * np.sqrt(periods)[:, None] * ndtri(levels)


def auto_ets(
    values: Values, horizon: int, levels: Levels = LEVELS, season: int = 1, longest: int = LONGEST_HISTORY
) -> QuantileForecast:
    """Exponential smoothing whose form minimises the corrected Akaike criterion, by statsforecast.

    With fewer than `SHORTEST` values it cannot be fitted, and the naive forecast is returned.

    Reference: Hyndman et al. (2008), Forecasting with exponential smoothing, Springer.
    """
    try:
        from statsforecast.models import AutoETS
    except ImportError:
        raise ValueError(NEEDS) from None
    if len(values) < SHORTEST:
        return naive(values, horizon, levels)
    model = AutoETS(season_length=season if season <= LONGEST_SEASON else 1)
    intervals = sorted({round(abs(200 * level - 100), 6) for level in levels} - {0.0})
    found = model.forecast(filled_forward(values)[-longest:], h=horizon, level=intervals)
    return np.stack([found[quantile_name(level)] for level in levels], axis=1)


def quantile_name(level: float) -> str:
    """Name that statsforecast gives to a quantile: the end of a central interval.

    >>> quantile_name(0.1), quantile_name(0.5), quantile_name(0.9)
    ('lo-80.0', 'mean', 'hi-80.0')
    """
    interval = round(abs(200 * level - 100), 6)
    return "mean" if interval == 0 else f"{'lo' if level < 0.5 else 'hi'}-{interval}"


# Baselines of a window


@dataclass(frozen=True, kw_only=True)
class BaselineSettings:
    """Settings of the baselines: quantile levels, and the season in rows or, for irregular stamps, in time."""

    season: int
    period: np.timedelta64 | None = None
    """How far seasonal naive looks back where stamps are irregular; None where rows are evenly spaced."""
    levels: Levels

    @staticmethod
    def of(panel: Panel, season: int = 0, levels: Levels = LEVELS) -> "BaselineSettings":
        """Settings for a panel: the given season, else the one its step suggests; that of working days is 5 rows."""
        stamps = max(panel.series, key=len).stamps
        gap = typical_gap(stamps, panel.step)
        if season or panel.step is not None:
            return BaselineSettings(season=season or season_length(gap), levels=levels)
        if never_on_weekends(stamps, np.diff(stamps)):
            return BaselineSettings(season=WORKING_DAYS, levels=levels)
        return BaselineSettings(season=1, period=season_length(gap) * gap, levels=levels)


def naive_at(origin: Origin, setting: BaselineSettings) -> QuantileForecast:
    """Naive forecast of a window: its last value."""
    return naive(origin.history.values, origin.horizon, setting.levels)


def seasonal_naive_at(origin: Origin, setting: BaselineSettings) -> QuantileForecast:
    """Seasonal naive forecast of a window, by time where stamps are irregular."""
    history = origin.history
    if setting.period is not None:
        return periodic_naive(history, origin.stamps, setting.period, setting.levels)
    return seasonal_naive(history.values, origin.horizon, setting.levels, setting.season)


def auto_ets_at(origin: Origin, setting: BaselineSettings) -> QuantileForecast:
    """Exponential smoothing of a window, row by row where stamps are irregular."""
    return auto_ets(origin.history.values, origin.horizon, setting.levels, setting.season)


BASELINES: dict[str, Callable[[Origin, BaselineSettings], QuantileForecast]] = {
    "naive": naive_at,
    "seasonal naive": seasonal_naive_at,
    "AutoETS": auto_ets_at,
}
