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

    def __init__(
        self, centres: Float[Tensor, " K"], reference: Float[Tensor, "W H"], unit: Float[Tensor, " W"]
    ) -> None:
        self.centres, self.reference, self.unit = centres.double(), reference.double(), unit.double()

    def values(self, objects: Int[Tensor, "*batch O"]) -> Float[Tensor, "*batch H"]:
        """The path in units of the data, each step at the centre of its bin."""
        window = objects[..., 0]
        return self.centres[objects[..., 1:]] * self.unit[window][..., None] + self.reference[window]

    def scores(self, objects: Int[Tensor, "*batch O"]) -> Float[Tensor, "*batch"]:
        """Mean value of the path."""
        return self.values(objects).mean(-1).to(torch.float32)
