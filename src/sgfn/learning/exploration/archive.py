"""The archive: the best distinct objects that were found, each with the trajectory that made it."""

import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor

from sgfn.envs.base import Env
from sgfn.envs.trajectories import Trajectories
from sgfn.learning.backend import Past

REMEMBERED, ENOUGH, LEAST = 2000, 0.05, 0.1
"""Trajectories over which news are counted, the share of them that keeps up all effort, and what is kept of it."""


class Archive:
    """Objects in order of their rewards, the best first, none twice; among equal rewards the newest stands first.

    So a full archive goes on changing where all it holds are equally good: newer ones push older ones out, which lets
    a search drift along a plateau instead of standing on one spot.
    """

    objects: Int[Tensor, "N O"]
    intended: Int[Tensor, "N T"]
    realised: Int[Tensor, "N T"]
    log_reward: Float[Tensor, " N"]
    """Minus infinity where nothing is kept yet."""
    news: Float[Tensor, ""]
    """Share of the last trajectories, some two thousand, that ended in an object which was taken and not there yet."""

    def __init__(self, env: Env, capacity: int, device: torch.device) -> None:
        self.env, self.capacity = env, capacity
        self.objects = torch.zeros(capacity, env.object_width, dtype=torch.int64, device=device)
        self.intended = torch.zeros(capacity, env.horizon, dtype=torch.int64, device=device)
        self.realised = torch.zeros_like(self.intended)
        self.log_reward = torch.full((capacity,), -torch.inf, device=device)
        self.news = torch.ones((), device=device)

    @property
    def size(self) -> int:
        """Number of objects kept."""
        return int((self.log_reward > -torch.inf).sum())

    def add(self, batch: Trajectories) -> None:
        """Take what is better than the worst that is kept, or as good and newer."""
        enough = batch.log_reward >= self.log_reward[-1]
        new = {
            "objects": self.env.objects(batch.states[:, -1]),
            "intended": batch.intended,
            "realised": batch.realised,
            "log_reward": batch.log_reward,
        }
        both = {name: torch.cat([value[enough], getattr(self, name)]) for name, value in new.items()}
        group = torch.unique(both["objects"], dim=0, return_inverse=True)[1]
        self._count(group, batch.log_reward.shape[0])
        order = torch.sort(both["log_reward"], descending=True, stable=True).indices
        order = order[first_of_each(group[order])]
        order = order[both["log_reward"][order] > -torch.inf][: self.capacity]
        self.log_reward.fill_(-torch.inf)
        for name, value in both.items():
            getattr(self, name)[: len(order)] = value[order].to(getattr(self, name).dtype)

    def _count(self, group: Int[Tensor, " N"], offered: int) -> None:
        """Bring the share of news up to date; `group` numbers the objects of those good enough, then of those kept."""
        taken = len(group) - self.capacity
        new = ~torch.isin(group[:taken], group[taken:][self.log_reward > -torch.inf])
        self.news.lerp_(new.sum() / max(1, offered), min(1.0, offered / REMEMBERED))

    @property
    def promise(self) -> float:
        """How much of their effort ways should put into what is kept: all while news come, little when none do.

        Where all that is good was found, a search around it finds nothing more, and only the law is left to be learned.
        """
        return min(1.0, max(LEAST, float(self.news) / ENOUGH))

    def rows(self, uniform: Float64[Tensor, " B"], decay: float) -> Int[Tensor, " B"]:
        r"""Rows where uniform numbers point to, by rank: $p(r) \propto e^{-r / (d n)}$ among the n that are kept."""
        size = self.size
        weight = torch.exp(-torch.arange(size, device=uniform.device, dtype=torch.float64) / (decay * size))
        total = weight.cumsum(0)
        return torch.searchsorted(total / total[-1], uniform).clamp(max=size - 1)

    def past(self, rows: Int[Tensor, " B"]) -> Past:
        """Trajectories of some rows, as a replay buffer gives them."""
        return self.intended[rows], self.realised[rows], self.log_reward[rows]

    def state(self) -> dict[str, Tensor]:
        """Tensors that a checkpoint keeps."""
        return {name: getattr(self, name) for name in ("objects", "intended", "realised", "log_reward", "news")}


def first_of_each(group: Int[Tensor, " N"]) -> Bool[Tensor, " N"]:
    """Which numbers have no equal before them.

    >>> first_of_each(torch.tensor([2, 0, 2])).tolist()
    [True, True, False]
    """
    place = torch.arange(len(group), device=group.device)
    first = torch.full_like(place, len(group)).scatter_reduce(0, group, place, "amin")
    return first[group] == place
