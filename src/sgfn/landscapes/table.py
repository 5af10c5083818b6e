"""Landscapes from a complete table of scores, one for each sequence of a fixed length."""

from jaxtyping import Float, Int
from torch import Tensor

from sgfn.landscapes.base import Landscape


class TableLandscape(Landscape):
    """Scores looked up by a sequence's base-V number, its first token the most significant digit."""

    def __init__(self, table: Float[Tensor, " N"], *, vocab: int, mode_level: float) -> None:
        self.table, self.vocab = table.float(), vocab
        self.maximum, self.mode_level = float(table.max()), mode_level

    def scores(self, objects: Int[Tensor, "*batch O"]) -> Float[Tensor, "*batch"]:
        """Table entry of each object; numbers are computed by Horner's rule."""
        number = objects[..., 0]
        for i in range(1, objects.shape[-1]):
            number = number * self.vocab + objects[..., i]
        return self.table[number]
