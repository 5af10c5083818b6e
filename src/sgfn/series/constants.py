"""Forecasts of series that never change: the constant itself, with all its probability."""

from dataclasses import replace

import numpy as np
from jaxtyping import Float64

from sgfn.series.panel import Panel, Series
from sgfn.series.prediction import Forecast, NetworkForecast, StackedForecast
from sgfn.series.quantile_laws import QuantileLaw

NARROWEST = float(np.finfo(np.float64).tiny)
"""Unit of a constant forecast of the network: the least positive number, so that its quantiles are the constant."""


def constant_of(series: Series) -> float | None:
    """The one value that a series ever had; None where it had several."""
    seen = series.values[~np.isnan(series.values)]
    return float(seen[0]) if len(seen) and np.ptp(seen) == 0 else None


def with_constants(found: Forecast, panel: Panel) -> Forecast:
    """A forecast whose windows of constant series hold the constant: paths, quantiles and mean."""
    values = {series.name: constant_of(series) for series in panel.series}
    at = [row for row, name in enumerate(found.names) if values[name] is not None]
    if not at:
        return found
    constants: Float64[np.ndarray, " C"] = np.array([values[found.names[row]] for row in at], dtype=np.float64)
    paths = found.paths.copy()
    paths[at] = constants[:, None, None]
    if isinstance(found, StackedForecast):
        law = found.law.values.copy()
        law[at] = constants[:, None, None]
        return replace(found, paths=paths, law=QuantileLaw(values=law))
    assert isinstance(found, NetworkForecast)
    reference, unit = found.reference.clone(), found.unit.clone()
    reference[at] = reference.new_tensor(constants.tolist())[:, None]
    unit[at] = NARROWEST
    return replace(found, paths=paths, reference=reference, unit=unit)
