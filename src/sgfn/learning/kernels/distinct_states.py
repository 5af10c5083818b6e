"""Each state of a batch evaluated once: in a graph with few states trajectories meet, and wait at their ends.

In a grid of 20 x 20 a batch of 128 trajectories, padded to 39 steps, has 5,120 entries and some 100 different states.
How many there are depends on the batch, so that this is for the CPU, where shapes may change from step to step.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.envs.base import Env, free_to_look
from sgfn.envs.tabulated import TabulatedEnv
from sgfn.learning.kernels.mlp_actor import MLPActor
from sgfn.learning.kernels.shared_states import SharedStateScorer, look_up
from sgfn.nets.encoders import MLP
from sgfn.nets.heads import FlowNets, Heads


def shares_distinct(env: Env, nets: FlowNets, device: torch.device) -> bool:
    """Whether states are shared by their numbers: in tabulated graphs with joins, by an MLP, on the CPU."""
    plain = type(nets.encoder) is MLP and not nets.reads_along and nets.join is None
    return free_to_look(device) and isinstance(env, TabulatedEnv) and not env.tree and plain


class DistinctStateScorer(SharedStateScorer):
    """Acts and scores for one batch at the present weights; where there are few states, acts by a table of all."""

    def __init__(self, env: TabulatedEnv, nets: FlowNets, batch: int) -> None:
        super().__init__(env, nets)
        assert isinstance(nets.encoder, MLP)
        self.actor = MLPActor(env, nets.encoder, nets.policy)
        self.few = env.num_states <= batch * env.horizon
        self.acts: Float[Tensor, "M A"] | None = None

    @torch.no_grad()
    def log_policy(self, t: int, state: Int[Tensor, "B S"]) -> Float[Tensor, "B A"]:
        """log pi(.|s) at step t, without gradient; of finished states it is arbitrary."""
        if not self.few:
            return self.actor.log_policy(t, state)
        if self.acts is None:
            assert isinstance(self.env, TabulatedEnv)
            self.acts = self.actor.log_policy(t, torch.arange(self.env.num_states)[:, None])
        return look_up(self.acts, state)

    def whole_rollout(self, clock: Float[Tensor, "T 2 B A"], explore: float, temperature: float | Tensor) -> None:
        """None: there is no such kernel on a CPU; and no sums are kept for an update, which evaluates other states."""

    def heads(self, state: Int[Tensor, "B T S"]) -> Heads:
        """Outputs of all heads, for the states of the batch in their order, each different one evaluated once."""
        distinct, place = torch.unique(state[..., 0], return_inverse=True)
        found = vars(self.nets.heads(distinct[:, None]))
        return Heads(**{name: rows_at(value, place) for name, value in found.items() if value is not None})


def each_once(
    function: Callable[[Int[Tensor, "*batch S"]], Tensor], env: Env, state: Int[Tensor, "*batch S"]
) -> Float[Tensor, "..."]:
    """Values of a function at states; on the CPU each different one of a tabulated environment is evaluated once."""
    if not free_to_look(state.device) or not isinstance(env, TabulatedEnv):
        return function(state)
    distinct, place = torch.unique(env.row(state), return_inverse=True)
    return rows_at(function(distinct[:, None]), place)


def rows_at(table: Float[Tensor, "M ..."], place: Int[Tensor, "*batch"]) -> Float[Tensor, "..."]:
    """Rows of a table where numbers point to, with gradients by addition."""
    return table.index_select(0, place.flatten()).view(*place.shape, *table.shape[1:])
