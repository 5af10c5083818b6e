"""What comes out of a synthesis that skips letters, as a landscape of whole sequences reads it."""

import math
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sgfn.config import RewardConfig
from sgfn.envs import IndelEnv
from sgfn.landscapes.base import Landscape


class ReadOut(Landscape):
    """A landscape of sequences of one length on objects that may have fewer letters.

    They are scored as the environment reads them, with the flank behind them; what lacks letters all the same has the
    lowest score, and the reward of the floor.
    """

    def __init__(self, inner: Landscape, env: IndelEnv) -> None:
        self.inner, self.env = inner, env
        self.maximum, self.mode_level, self.on_host = inner.maximum, inner.mode_level, inner.on_host
        self.data_notice, self.score_transform = inner.data_notice, inner.score_transform
        self.lowest = min(0.0, float(getattr(inner, "minimum", 0.0)))

    def _read(self, objects: Int[Tensor, "*batch O"]) -> tuple[Int[Tensor, "*batch O"], Bool[Tensor, "*batch"]]:
        """Rows that the inner landscape can score, and which of them are whole."""
        rows = self.env.read(objects)
        whole = self.env.written(rows) == self.env.length
        return torch.where(whole[..., None], rows, 0), whole

    @property
    def scores_ahead(self) -> bool:
        """Whether the inner landscape asks others for scores."""
        return self.inner.scores_ahead

    def request(self, objects: Int[Tensor, "N O"]) -> Any:
        """Ask for the scores of objects, as they are read."""
        return self.inner.request(self._read(objects)[0])

    def taken(self, request: Any) -> AbstractContextManager[None]:
        """Wait for a request of the inner landscape."""
        return self.inner.taken(request)

    def live(self) -> dict[str, float]:
        """Figures of the inner landscape for a progress bar."""
        return self.inner.live()

    def close(self) -> None:
        """End what the inner landscape has started."""
        self.inner.close()

    def scores(self, objects: Int[Tensor, "*batch O"]) -> Float[Tensor, "*batch"]:
        """Score of what is whole, the lowest of what is not."""
        rows, whole = self._read(objects)
        return torch.where(whole, self.inner.scores(rows), self.lowest)

    def log_reward(self, objects: Int[Tensor, "*batch O"], config: RewardConfig) -> Float[Tensor, "*batch"]:
        """Log-reward of what is whole, the floor of what is not."""
        rows, whole = self._read(objects)
        found = self.inner.log_reward(rows, config)
        return torch.where(whole, found, found.clamp(max=math.log(config.minimum) - math.log(config.norm)))

    def told(self, objects: Int[Tensor, "*batch O"], scores: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """As the inner landscape tells what is whole, and the lowest score by its transform."""
        rows, whole = self._read(objects)
        return torch.where(whole, self.inner.told(rows, scores), super().told(objects, scores))

    def told_of_orders(
        self, objects: Int[Tensor, "*batch O"], scores: Float[Tensor, "*batch"]
    ) -> Float[Tensor, "*batch"]:
        """The same of orders."""
        rows, whole = self._read(objects)
        return torch.where(whole, self.inner.told_of_orders(rows, scores), super().told(objects, scores))

    def uncertainty(self, objects: Int[Tensor, "*batch O"]) -> Float[Tensor, "*batch"]:
        """That of the inner landscape; what is not whole is known to be worthless."""
        rows, whole = self._read(objects)
        return torch.where(whole, self.inner.uncertainty(rows), 0.0)

    def measured(self, objects: Int[Tensor, "*batch O"]) -> Bool[Tensor, "*batch"] | None:
        """Which objects, as they are read, were measured."""
        rows, whole = self._read(objects)
        found = self.inner.measured(rows)
        return None if found is None else found & whole

    def modes_known(self, objects: Int[Tensor, "N O"]) -> tuple[int, int] | None:
        """Modes that the whole objects find."""
        rows, whole = self._read(objects)
        return self.inner.modes_known(rows[whole])

    def offline_objects(self) -> Int[Tensor, "N O"] | None:
        """What the inner landscape was made from."""
        return self.inner.offline_objects()

    def start_objects(self) -> Int[Tensor, "N O"] | None:
        """Where a search of the inner landscape begins."""
        return self.inner.start_objects()

    def fitted_files(self, folder: Path) -> dict[str, Path]:
        """Those of the inner landscape."""
        return self.inner.fitted_files(folder)

    def attach(self, folder: Path, *, resumed: bool) -> None:
        """Tell the inner landscape."""
        self.inner.attach(folder, resumed=resumed)

    def trouble(self) -> str:
        """That of the inner landscape."""
        return self.inner.trouble()

    def to(self, device: torch.device) -> None:
        """Move the inner landscape."""
        self.inner.to(device)
