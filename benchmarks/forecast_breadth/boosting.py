"""A rival of another kind: gradient-boosted trees that forecast quantiles from lagged values, all series together.

The usual recipe of forecasting competitions: values are divided by the mean size of the last season, rows hold the last
values, those of one and two seasons before, the step ahead and the phase of the season; one model for each quantile
(Ke et al. 2017, LightGBM, NeurIPS). Trained once on what came before the first test window of each series, as the
network is.
"""

from importlib import import_module

import numpy as np
from jaxtyping import Float64

from benchmarks.forecast_breadth.panel import DataSet
from sgfn.evaluation.metrics.forecast import LEVELS

LAGS = 12
"""Last values that a row holds, at most; as many as fit the shortest history."""
MOST_ROWS = 30_000
"""Training rows at most, evenly spread."""
ROUNDS = 150
SETTINGS = {"learning_rate": 0.06, "num_leaves": 15, "min_data_in_leaf": 10, "num_threads": 1, "verbose": -1}

Values = Float64[np.ndarray, " T"]


def boosted_quantiles(data: DataSet) -> Float64[np.ndarray, "N H Q"]:
    """Quantiles of every test window; raises ImportError where LightGBM is not installed."""
    lightgbm = import_module("lightgbm")
    first = {one.series.name: one.cut for one in reversed(data.origins)}
    season = data.seasons[0] if min(first.values()) > 3 * data.seasons[0] else 1
    lags = max(1, min(LAGS, min(first.values()) - 2 * season - data.horizon - 1))
    rows, targets = [], []
    for series in data.panel.series:
        values = filled(series.values[: first.get(series.name, len(series))])
        for cut in range(2 * season + lags, len(values)):
            for step in range(min(data.horizon, len(values) - cut)):
                row, size = row_of(values, cut, step, season, lags)
                rows.append(row)
                targets.append(values[cut + step] / size)
    some = np.linspace(0, len(rows) - 1, min(len(rows), MOST_ROWS)).round().astype(int)
    table, target = np.array(rows)[some], np.array(targets)[some]
    asked = [
        row_of(filled(one.series.values[: one.cut]), one.cut, step, season, lags)
        for one in data.origins
        for step in range(data.horizon)
    ]
    inputs, sizes = np.array([row for row, _ in asked]), np.array([size for _, size in asked])
    found = []
    for level in LEVELS:
        settings = SETTINGS | {"objective": "quantile", "alpha": float(level)}
        model = lightgbm.train(settings, lightgbm.Dataset(table, target), num_boost_round=ROUNDS)
        found.append(model.predict(inputs) * sizes)
    by_window = np.stack(found, -1).reshape(len(data.origins), data.horizon, len(LEVELS))
    return np.maximum.accumulate(by_window, -1)


def row_of(values: Values, cut: int, step: int, season: int, lags: int) -> tuple[list[float], float]:
    """What is known at a cut of a step after it, in units of the mean size of the last values, and that size."""
    known = values[max(cut - max(season, lags), 0) : cut]
    size = max(float(np.abs(known).mean()), 1e-9)
    cycles = -(-(step + 1) // season)
    seasonal = [values[cut + step - (cycles + more) * season] for more in (0, 1)]
    found = [*values[cut - lags : cut], *seasonal, float(known.mean())]
    return [*(np.array(found) / size), float(step), float((cut + step) % season)], size


def filled(values: Values) -> Values:
    """Values with gaps bridged by straight lines."""
    seen = np.flatnonzero(~np.isnan(values))
    return np.interp(np.arange(len(values)), seen, values[seen])
