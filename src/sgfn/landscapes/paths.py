"""Paths of a forecast as objects: from the bins of a window's steps to values of the data."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.landscapes.base import Landscape


class Paths(Landscape):
    """Forecast paths by their mean value: what is reported of a drawn path. A forecast itself has no reward."""

    maximum = math.inf
    mode_level = math.inf

    def __init__(self, table: Float[Tensor, "W H K"]) -> None:
        self.table = table.double()
        """What each bin is worth at each step of each window, in units of the data."""

    def values(self, objects: Int[Tensor, "*batch O"]) -> Float[Tensor, "*batch H"]:
        """The path in units of the data."""
        step = torch.arange(self.table.shape[1], device=objects.device)
        return self.table[objects[..., :1], step, objects[..., 1:]]

    def scores(self, objects: Int[Tensor, "*batch O"]) -> Float[Tensor, "*batch"]:
        """Mean value of the path."""
        return self.values(objects).mean(-1).to(torch.float32)
