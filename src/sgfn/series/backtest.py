"""Backtests: forecasts of several methods on the same windows, their scores, and tables of both."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Float64

from sgfn.evaluation.metrics import forecast as metrics
from sgfn.evaluation.metrics.forecast import Levels
from sgfn.series.baselines import BASELINES, BaselineSettings
from sgfn.series.protocol import Origin, scales, truths

ProgressCallback = Callable[[str, int, int], None]
"""Called with a method's name, windows done, and windows in all."""
INTERVAL = 0.8
LEVEL = re.compile(r"q0\.\d+")


@dataclass(frozen=True, kw_only=True)
class Forecasts:
    """Quantile forecasts and means of one method for N windows."""

    method: str
    levels: Levels
    quantiles: Float64[np.ndarray, "N H Q"]
    mean: Float64[np.ndarray, "N H"]

    @property
    def median(self) -> Float64[np.ndarray, "N H"]:
        """The forecast at the level nearest to one half."""
        return self.quantiles[..., int(np.abs(self.levels - 0.5).argmin())]


def baseline_forecasts(
    method: str, origins: Sequence[Origin], setting: BaselineSettings, progress: ProgressCallback | None = None
) -> Forecasts:
    """Forecasts of a baseline for every window."""
    found = []
    for done, origin in enumerate(origins, start=1):
        found.append(BASELINES[method](origin, setting))
        if progress:
            progress(method, done, len(origins))
    quantiles = np.stack(found)
    middle = quantiles[..., int(np.abs(setting.levels - 0.5).argmin())]
    return Forecasts(method=method, levels=setting.levels, quantiles=quantiles, mean=middle)  # normal: mean is median


def score(forecasts: Forecasts, origins: Sequence[Origin], lag: int = 1) -> dict[str, float]:
    """Scores of a method: MSE of the mean; MAE and MASE of the median; WQL, coverage and width of the 80 % interval."""
    truth, levels = truths(origins), forecasts.levels
    quantiles, median = forecasts.quantiles, forecasts.median
    return {
        "mse": metrics.mse(forecasts.mean, truth),
        "mae": metrics.mae(median, truth),
        "mase": metrics.mase(median, truth, scales(origins, lag)),
        "wql": metrics.wql(quantiles, truth, levels),
        "coverage_80": metrics.coverage(quantiles, truth, levels, INTERVAL),
        "width_80": metrics.width(quantiles, truth, levels, INTERVAL),
    }


def scores_by_series(forecasts: Forecasts, origins: Sequence[Origin], lag: int = 1) -> dict[str, dict[str, float]]:
    """Scores of a method by series, each over its own windows."""
    names = np.array([origin.series.name for origin in origins], dtype=object)
    found = {}
    for name in dict.fromkeys(names):
        at = np.flatnonzero(names == name).tolist()
        part = Forecasts(
            method=forecasts.method,
            levels=forecasts.levels,
            quantiles=forecasts.quantiles[at],
            mean=forecasts.mean[at],
        )
        found[name] = score(part, [origins[i] for i in at], lag)
    return found


# Tables


def level_name(level: float) -> str:
    """Name of the column that holds a quantile.

    >>> level_name(0.1), level_name(0.025)
    ('q0.1', 'q0.025')
    """
    return f"q{level:g}"


def levels_in(frame: pd.DataFrame) -> Levels:
    """Quantile levels for which a table has columns, in increasing order."""
    return np.sort([float(name[1:]) for name in map(str, frame.columns) if LEVEL.fullmatch(name)])


def quantile_table(
    names: Sequence[str], stamps: np.ndarray, forecasts: Forecasts, **columns: np.ndarray
) -> pd.DataFrame:
    """Table with a row per window and step: unique_id, ds, further columns [N, H], mean, and a column per quantile."""
    windows, horizon = forecasts.mean.shape
    table = {"unique_id": np.repeat(np.array(names, dtype=object), horizon), "ds": stamps.reshape(-1)}
    table |= {name: np.broadcast_to(column, (windows, horizon)).reshape(-1) for name, column in columns.items()}
    table |= {"mean": forecasts.mean.reshape(-1)}
    table |= {level_name(one): forecasts.quantiles[..., at].reshape(-1) for at, one in enumerate(forecasts.levels)}
    return pd.DataFrame(table)


def backtest_table(found: Sequence[Forecasts], origins: Sequence[Origin]) -> pd.DataFrame:
    """Forecasts of all methods, one below the other.

    Each row has the last time stamp that its window knew (`cutoff`) and the observed value (`y`).
    """
    names, stamps = [one.series.name for one in origins], np.stack([one.stamps for one in origins])
    cutoff = np.array([one.series.stamps[one.cut - 1] for one in origins])[:, None]
    tables = [
        quantile_table(names, stamps, one, cutoff=cutoff, y=truths(origins)).assign(method=one.method) for one in found
    ]
    return pd.concat(tables, ignore_index=True)
