"""MSTL whose seasons are kept between fits: only the trend's model is brought up to date at later origins."""

from importlib import import_module
from typing import Any

import numpy as np
from jaxtyping import Float64

Values = Float64[np.ndarray, " T"]
Ahead = Float64[np.ndarray, " H"]


class KeptSeasons:
    """Multiple seasonal-trend decomposition by statsforecast, with exponential smoothing of what is left.

    At a later origin values are adjusted by the seasons of the last fit, whose last cycles are repeated, so that an
    origin costs a filter instead of a decomposition.

    Reference: Bandara, Hyndman and Bergmeir (2021), MSTL: a seasonal-trend decomposition algorithm for time series with
    multiple seasonal patterns, arXiv:2107.13462.
    """

    def __init__(self, seasons: list[int]) -> None:
        models = import_module("statsforecast.models")
        self.seasons, self.smoothing = seasons, models.AutoETS(model="ZZN")
        self.model = models.MSTL(season_length=seasons, trend_forecaster=self.smoothing)
        self.shape = np.zeros(0)

    def fit(self, values: Values) -> "KeptSeasons":
        """Decompose values and fit the model of what is left."""
        self.model = self.model.fit(values)
        parts: Any = self.model.model_
        columns = [name for name in parts.columns if name.startswith("seasonal")]
        self.cycles = [np.asarray(parts[name], dtype=np.float64) for name in columns]
        self.shape = np.sum(self.cycles, axis=0)
        return self

    def predict(self, h: int, level: list[float]) -> dict[str, Ahead]:
        """Forecast after the values of the fit."""
        return self.model.predict(h=h, level=level)

    def later(self, values: Values, shift: int, h: int, level: list[float]) -> dict[str, Ahead]:
        """Forecast after newer values, of which the last `shift` came after the fit."""
        ahead = self.repeated(shift + h)
        season = np.concatenate([self.shape, ahead])[-len(values) - h :]
        rest = values - season[: len(values)]
        found = self.model.trend_forecaster.forward(y=rest, h=h, level=level)
        return {name: part + season[len(values) :] for name, part in found.items()}

    def repeated(self, count: int) -> Ahead:
        """The seasons of so many steps after the fit: last cycles, one after the other."""
        found = np.zeros(count)
        for steps, cycle in zip(sorted(self.seasons), self.cycles, strict=True):
            found += np.resize(cycle[-steps:], count)
        return found
