"""A ring buffer of rows of whole numbers, in tensors of fixed size on the device."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor


class RingBuffer:
    """The newest rows of integer tables with named columns, up to a capacity.

    Each table has one row more, where rows that are not to be kept are written, so that shapes never vary; it is never
    read.
    """

    added: Int[Tensor, ""]

    def __init__(self, capacity: int, device: torch.device, **widths: int) -> None:
        self.capacity = capacity
        self.tables = {
            name: torch.zeros(capacity + 1, width, dtype=torch.int32, device=device) for name, width in widths.items()
        }
        self.added = torch.zeros((), dtype=torch.int64, device=device)

    def add(self, chosen: Bool[Tensor, " B"], **rows: Int[Tensor, "B _"]) -> None:
        """Overwrite the oldest rows with those where `chosen` is true; of more than the capacity only the last stay."""
        count = chosen.cumsum(0)
        stays = chosen & (count[-1] - count < self.capacity)
        place = torch.where(stays, (self.added + count - 1) % self.capacity, self.capacity)
        for name, values in rows.items():
            self.tables[name][place] = values.to(torch.int32)
        self.added += count[-1]

    @property
    def filled(self) -> Int[Tensor, ""]:
        """Number of rows held."""
        return self.added.clamp(max=self.capacity)

    def read(self, place: Int[Tensor, " N"]) -> dict[str, Int[Tensor, "N _"]]:
        """The rows at the given places, by column name."""
        return {name: table[place].long() for name, table in self.tables.items()}

    def sample(self, count: int, generator: torch.Generator) -> dict[str, Int[Tensor, "N _"]]:
        """Rows drawn uniformly with replacement; rows of zeros where nothing has been added."""
        uniform = torch.rand(count, generator=generator, device=self.added.device, dtype=torch.float64)
        return self.read((uniform * self.filled).long())

    def state(self) -> dict[str, Tensor]:
        """The tensors that a checkpoint keeps: the tables, and how many rows were ever added."""
        return {name: table[: self.capacity] for name, table in self.tables.items()} | {"added": self.added}
