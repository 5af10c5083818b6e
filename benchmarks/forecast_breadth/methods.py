"""Methods of the forecasting panel: each gives quantiles [N, H, Q] for the test windows of a data set.

Classical methods are those of statsforecast, fitted anew before each window; missing values are interpolated for them.
A method that cannot or need not be run on a data set raises `SkippedError` with the reason, which the results keep.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float64
from statsforecast.models import MSTL, AutoETS, AutoTheta, CrostonSBA, SeasonalNaive
from statsforecast.utils import ConformalIntervals

from benchmarks.forecast_breadth.boosting import boosted_quantiles
from benchmarks.forecast_breadth.panel import DataSet
from sgfn.evaluation.metrics.forecast import LEVELS
from sgfn.series.baselines import quantile_name
from sgfn.series.classical import PRETRAINED
from sgfn.series.data import cuts_of
from sgfn.series.forecaster import Forecaster
from sgfn.series.quantile_laws import QuantileLaw
from sgfn.series.stacked import NETWORK
from sgfn.series.windows import Windows

Quantiles = Float64[np.ndarray, "N H Q"]
Method = Callable[[DataSet], Quantiles]
LONGEST_HISTORY = 1_000
"""Values that exponential smoothing, Theta and ARIMA read: older ones have hardly any weight, and cost time."""
LONGEST_STATE = 24
"""Longest season of exponential smoothing and ARIMA, which keep a state for each of its steps."""
ARIMA = "AutoARIMA"
INTERVALS = [20, 40, 60, 80]


class SkippedError(Exception):
    """A method was not run on a data set, for the given reason."""


def interpolated(values: Float64[np.ndarray, " T"]) -> Float64[np.ndarray, " T"]:
    """Values with gaps filled on straight lines, from the first value on."""
    seen = np.flatnonzero(~np.isnan(values))
    return np.interp(np.arange(seen[0], len(values)), seen, values[seen])


def fitted_by(make: Callable[[DataSet, int], Any], longest: int | None = LONGEST_HISTORY) -> Method:
    """A method that fits a model to the values before each window; `make` gets the data set and how many there are."""

    def method(data: DataSet) -> Quantiles:
        found = []
        for origin in data.origins:
            history = interpolated(origin.series.values[: origin.cut])[-(longest or len(origin.series)) :]
            found.append(law(make(data, len(history)), history, data.horizon))
        return np.stack(found)

    return method


def law(model: Any, history: Float64[np.ndarray, " T"], horizon: int) -> Float64[np.ndarray, "H Q"]:
    """Quantiles that a model of statsforecast gives; of a constant history, the constant."""
    if np.ptp(history) == 0:
        return np.full((horizon, len(LEVELS)), history[0])
    found = model.forecast(y=history, h=horizon, level=INTERVALS)
    named = {name.replace("-20", "-20.0").replace("-40", "-40.0"): value for name, value in found.items()}
    named = {name.replace("-60", "-60.0").replace("-80", "-80.0"): value for name, value in named.items()}
    return np.stack([named[quantile_name(level)] for level in LEVELS], axis=1)


def season_of(data: DataSet, values: int) -> int:
    """The season, where two of it are there."""
    return data.seasons[0] if values >= 2 * data.seasons[0] else 1


def state_season(data: DataSet, values: int) -> int:
    """The season for models with a state per step; 1 where it is too long for them."""
    season = season_of(data, values)
    return season if season <= LONGEST_STATE else 1


def mstl(data: DataSet, values: int) -> Any:
    """Seasons by smoothing, trend by exponential smoothing; the latter alone where there is no season."""
    seasons = [season for season in data.seasons if season > 1 and values >= 2 * season + 2]
    return MSTL(season_length=seasons, trend_forecaster=AutoETS(model="ZZN")) if seasons else AutoETS(model="ZZN")


def croston(data: DataSet) -> Quantiles:
    """Croston's method with Syntetos and Boylan's correction, conformal intervals; for counts alone."""
    if data.recipe.kind not in ("counts", "intermittent"):
        raise SkippedError("not counts")
    return fitted_by(conformal_croston)(data)


def conformal_croston(data: DataSet, values: int) -> Any:
    """Croston's method with intervals from up to ten held-out windows."""
    windows = min(10, (values - 1) // data.horizon - 1)
    return CrostonSBA(prediction_intervals=ConformalIntervals(n_windows=max(windows, 2), h=data.horizon))


def boosted(data: DataSet) -> Quantiles:
    """Gradient-boosted trees of lagged values, a quantile each (LightGBM), where it is installed."""
    try:
        return boosted_quantiles(data)
    except ImportError:
        raise SkippedError("lightgbm is not installed") from None


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """Our forecaster of a data set, fitted once for all its ablations."""

    data: str
    forecaster: Forecaster


_last: list[Fitted] = []


def fitted(data: DataSet) -> Forecaster:
    """Our forecaster with its defaults, trained once before the first window of each series; the last one is kept."""
    if not _last or _last[0].data != data.name:
        spares = ",".join(map(str, data.spare))
        forecaster = Forecaster(horizon=data.horizon, spares=spares).fit(data.panel)
        _last[:] = [Fitted(data=data.name, forecaster=forecaster)]
    return _last[0].forecaster


def sgfn_of(laws: Callable[[tuple[str, ...]], Sequence[str]] = lambda names: names, *, equal: bool = False) -> Method:
    """Our forecaster with some of its laws, whose weights are learned, or `equal`.

    Ablations share the fits and forecasts of the whole one, so their seconds are those of pooling alone.
    """

    def method(data: DataSet) -> Quantiles:
        whole = fitted(data).stacked
        if not (names := laws(whole.names)):
            raise SkippedError(f"no network: {whole.no_network}")
        windows = Windows(whole.data.panel, whole.data.plan)
        cuts = [(number, cut) for number, cut in cuts_of(data.panel, places(data)).tolist()]
        stacked = whole.of_laws(names, equal=equal)
        return stacked.predict(windows, cuts, samples=2, seed=0, final=False).quantiles()

    return method


def places(data: DataSet) -> list[tuple[str, int]]:
    """Test windows: the name of a series and how many of its values come before."""
    return [(origin.series.name, origin.cut) for origin in data.origins]


def ours(data: DataSet) -> Quantiles:
    """Our forecaster with its defaults, as a user has it."""
    _last.clear()  # its seconds are those of the fit, too
    return fitted(data).predict(origins=places(data), samples=2).quantiles()


def single(name: str) -> Method:
    """A law of our pool by itself, without spreads; ARIMA has smaller orders there than by default: in bounded time."""

    def method(data: DataSet) -> Quantiles:
        whole = fitted(data).stacked
        if name not in whole.names:
            raise SkippedError(whole.too_slow[name])
        cuts = [(number, cut) for number, cut in cuts_of(data.panel, places(data)).tolist()]
        bank = whole.bank(whole.data.panel)
        found = bank.quantiles(name, cuts)
        if not np.isfinite(found).all():
            raise SkippedError(bank.why_not(name, cuts) or "some windows are too short for it")
        return QuantileLaw(values=found).quantile(LEVELS)

    return method


METHODS: dict[str, Method] = {
    "seasonal naive": fitted_by(lambda data, values: SeasonalNaive(season_length=season_of(data, values)), None),
    "AutoETS": fitted_by(lambda data, values: AutoETS(season_length=state_season(data, values))),
    "AutoTheta": fitted_by(lambda data, values: AutoTheta(season_length=season_of(data, values))),
    ARIMA: single(ARIMA),
    "MSTL+ETS": fitted_by(mstl, None),
    "CrostonSBA": croston,
    "sgfn": ours,
    "sgfn, without network": sgfn_of(lambda names: [name for name in names if name != NETWORK]),
    "sgfn, network alone": sgfn_of(lambda names: [name for name in names if name == NETWORK]),
    "sgfn, without pretrained": sgfn_of(lambda names: [name for name in names if PRETRAINED not in name]),
    "sgfn, equal weights": sgfn_of(equal=True),
    "pretrained alone": single(PRETRAINED),
    "lightgbm": boosted,
}
OURS = (
    *("sgfn", "sgfn, without network", "sgfn, network alone", "sgfn, without pretrained", "sgfn, equal weights"),
    "pretrained alone",
)
"""Our forecaster and its ablations, which share its fit: the whole one comes first."""
ENSEMBLE = "equal weights"
MEMBERS = ("AutoETS", "AutoTheta", "AutoARIMA", "MSTL+ETS")
"""Methods whose quantiles the simple ensemble averages, each where it was run."""


def ensemble(forecasts: Sequence[Path]) -> Quantiles:
    """Mean of the quantiles that other methods left in files."""
    if len(forecasts) < 2:
        raise SkippedError(f"needs two of {', '.join(MEMBERS)}: run them first")
    return np.mean([np.load(path)["quantiles"] for path in forecasts], axis=0)
