"""Landscape of forecast paths: the values of the bins that a path takes."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.landscapes.base import Landscape


class ForecastPaths(Landscape):
    """Forecast paths scored by their mean value, for reports only: a forecast has no reward."""

    maximum = math.inf
    mode_level = math.inf

    def __init__(self, table: Float[Tensor, "W H K"]) -> None:
        self.table = table.double()
        """Value of each bin at each step of each window, in units of the data."""

    def values(self, objects: Int[Tensor, "*batch O"]) -> Float[Tensor, "*batch H"]:
        """Values of the paths in units of the data."""
        step = torch.arange(self.table.shape[1], device=objects.device)
        return self.table[objects[..., :1], step, objects[..., 1:]]

    def scores(self, objects: Int[Tensor, "*batch O"]) -> Float[Tensor, "*batch"]:
        """Mean value of each path."""
        return self.values(objects).mean(-1).to(torch.float32)
