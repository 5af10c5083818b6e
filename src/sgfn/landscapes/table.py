"""A complete table of scores, one per sequence of fixed length."""

from jaxtyping import Float, Int
from torch import Tensor

from sgfn.landscapes.base import Landscape


class TableLandscape(Landscape):
    """Look up by base-V number, first token most significant."""

    def __init__(self, table: Float[Tensor, " N"], *, vocab: int, mode_level: float) -> None:
        self.table, self.vocab = table.float(), vocab
        self.maximum, self.mode_level = float(table.max()), mode_level

    def scores(self, objects: Int[Tensor, "*batch O"]) -> Float[Tensor, "*batch"]:
        """Horner's rule, then a gather."""
        number = objects[..., 0]
        for i in range(1, objects.shape[-1]):
            number = number * self.vocab + objects[..., i]
        return self.table[number]
