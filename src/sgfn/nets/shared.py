"""State sharing: all trajectories pass through the same few early states, so those are judged once per update.

A level of a tree with no more states than the batch has trajectories is evaluated whole and looked up; deeper levels
are evaluated where the batch visits them. The numbers are the same, the work is less: on DNA 8-mers 1,109 states
instead of 2,048 at batch 256, and 21,845 instead of 131,072 at batch 16,384.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.envs.base import Env
from sgfn.envs.tabulated import TabulatedEnv
from sgfn.nets.heads import FlowNets, Heads
from sgfn.rollout import LogPolicy


def shared_levels(env: Env, nets: FlowNets, batch: int) -> int:
    """How many levels are worth sharing: states read one by one, numbered by level, and no final ones among them."""
    if not isinstance(env, TabulatedEnv) or not env.tree or nets.reads_final or nets.reads_along:
        return 0
    return sum(size <= batch for size in env.level_sizes)  # a tree's levels grow with depth


class Judge:
    """The networks at their present weights, with the first levels looked up; gradients flow through the look-up."""

    reads_final = False

    def __init__(self, env: TabulatedEnv, nets: FlowNets, levels: int) -> None:
        self.env, self.nets, self.levels, self.log_z = env, nets, levels, nets.log_z
        self.table = nets.heads(first_rows(env, levels, nets.log_z.device))

    def policies(self) -> list[LogPolicy]:
        """log pi(.|s) for each step of a rollout, without gradient."""
        table = self.table.log_policy.detach()
        early: LogPolicy = lambda state: look_up(table, state)  # noqa: E731
        return [early] * self.levels + [self.nets.log_policy] * (self.env.horizon - self.levels)

    def heads(self, state: Int[Tensor, "B T 1"]) -> Heads:
        """Policy, flow and outcome policy; on a tree there is no backward head to read."""
        early = state[:, : self.levels]
        late = self.nets.heads(state[:, self.levels :]) if self.levels < state.shape[1] else None

        def joined(name: str) -> Tensor:
            found = look_up(getattr(self.table, name), early)
            return found if late is None else torch.cat([found, getattr(late, name)], 1)

        log_outcome = None if self.table.log_outcome is None else joined("log_outcome")
        return Heads(log_policy=joined("log_policy"), log_flow=joined("log_flow"), log_outcome=log_outcome)


def share(
    function: Callable[[Int[Tensor, "*batch 1"]], Tensor], env: TabulatedEnv, state: Int[Tensor, "B T 1"], levels: int
) -> Tensor:
    """Any function of states over whole trajectories, the first levels evaluated once."""
    early = look_up(function(first_rows(env, levels, state.device)), state[:, :levels])
    return early if levels == state.shape[1] else torch.cat([early, function(state[:, levels:])], 1)


def first_rows(env: TabulatedEnv, levels: int, device: torch.device) -> Int[Tensor, "M 1"]:
    """All states of the first levels: the first numbers."""
    return torch.arange(sum(env.level_sizes[:levels]), device=device)[:, None]


def look_up(table: Float[Tensor, "M *rest"], state: Int[Tensor, "*batch 1"]) -> Tensor:
    """Rows of a table by state; finished states, which only padded steps ask for, read the last row.

    `gather` sends gradients back by atomic adds; plain indexing would sort the batch first.
    """
    row = state.clamp(max=table.shape[0] - 1)[..., 0]
    found = table.reshape(table.shape[0], -1)
    found = found.gather(0, row.flatten()[:, None].expand(-1, found.shape[1]))
    return found.view(*row.shape, *table.shape[1:])
