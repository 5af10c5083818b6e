"""State sharing: all trajectories pass through the same few early states, so those are evaluated once per update.

A level of a tree with no more states than the batch has trajectories is evaluated whole and looked up; deeper levels
are evaluated where the batch visits them. The numbers are the same, the work is less: on DNA 8-mers 1,109 states
instead of 2,048 at batch 256, and 21,845 instead of 131,072 at batch 16,384.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.envs.base import Env
from sgfn.envs.sequence import SequenceEnv
from sgfn.envs.tabulated import TabulatedEnv
from sgfn.learning.kernels.mlp_actor import MLPActor, mlp_from_sums
from sgfn.learning.rollout import RolloutSteps
from sgfn.nets.encoders import MLP
from sgfn.nets.heads import FlowNets, Heads
from sgfn.nets.prefixes import first_layer, sums_prefixes


def shared_levels(env: Env, nets: FlowNets, batch: int) -> int:
    """Number of first levels with no more states than the batch; 0 but on tabulated trees, by networks of one state."""
    if not isinstance(env, TabulatedEnv) or not env.tree or nets.reads_final or nets.reads_along:
        return 0
    return sum(size <= batch for size in env.level_sizes)  # a tree's levels grow with depth


class SharedStateScorer:
    """Acts and scores states for one batch, by the networks at their present weights.

    The first levels are looked up, with gradients through the look-up. What was computed on deeper levels while acting
    is not computed again. It is for MLP encoders.
    """

    def __init__(self, env: Env, nets: FlowNets, levels: int = 0) -> None:
        assert isinstance(nets.encoder, MLP)
        self.env, self.nets, self.levels, self.log_z = env, nets, levels, nets.log_z
        self.reads_final, self.encoder = nets.reads_final, nets.encoder
        self.table = None
        if levels and isinstance(env, TabulatedEnv):
            self.table = nets.heads(first_rows(env, levels, nets.log_z.device))
        self.actor = MLPActor(env, nets.encoder, nets.policy, keep=True)

    # acting

    def log_policy(self, t: int, state: Int[Tensor, "B S"]) -> Float[Tensor, "B A"]:
        """log pi(.|s) at step t, without gradient."""
        if t < self.levels and self.table is not None:
            return look_up(self.table.log_policy.detach(), state)
        return self.actor.log_policy(t, state)

    def observe(self, t: int, intended: Int[Tensor, " B"], realised: Int[Tensor, " B"]) -> None:
        """Do nothing: the policy depends on the state alone."""

    def whole_rollout(
        self, clock: Float[Tensor, "T 2 B A"], explore: float, temperature: float | Tensor
    ) -> RolloutSteps | None:
        """The whole rollout by a GPU kernel, None where it does not fit; keeps no sums where levels are shared."""
        self.actor.keep = self.levels == 0
        return self.actor.whole_rollout(clock, explore, temperature)

    def forget(self) -> None:
        """Drop what was computed while acting: the states to score are others."""
        self.actor = MLPActor(self.env, self.encoder, self.nets.policy)

    # scoring

    def heads(self, state: Int[Tensor, "B T S"]) -> Heads:
        """Outputs of all heads, for the states of the batch in their order."""
        if self.table is None:
            return self.nets.heads_of(self._represent(state), state)
        early, after = state[:, : self.levels], state[:, self.levels :]
        late = self.nets.heads_of(self._represent(after), after) if self.levels < state.shape[1] else None

        def joined(name: str) -> Tensor:
            found = look_up(getattr(self.table, name), early)
            return found if late is None else torch.cat([found, getattr(late, name)], 1)

        log_outcome = None if self.table.log_outcome is None else joined("log_outcome")  # on a tree nothing is backward
        return Heads(log_policy=joined("log_policy"), log_flow=joined("log_flow"), log_outcome=log_outcome)

    def _represent(self, state: Int[Tensor, "B N S"]) -> Float[Tensor, "B N H"]:
        """Representations of states: from the sums kept while acting, and computed for those after them."""
        sums = self.actor.sums()
        if not sums:
            return self.nets.represent_along(state) if self.levels == 0 else self.nets.represent(state)
        steps = sums[0].shape[1]
        hidden = self._from_sums(state[:, :steps], sums)
        if steps == state.shape[1]:
            return hidden
        return torch.cat([hidden, self.nets.represent(state[:, steps:])], 1)

    def _from_sums(self, state: Int[Tensor, "B N S"], sums: list[Tensor]) -> Float[Tensor, "B N H"]:
        """Representations from the sums of all layers; the first ones are cheaper to sum again where states grow."""
        if not (isinstance(self.env, SequenceEnv) and sums_prefixes(self.env)):
            return mlp_from_sums(self.encoder, self.env.encode(state), sums)
        first = first_layer(self.encoder.linear[0], self.env, state).transpose(0, 1)
        features = self.encoder.activation(first)
        return mlp_from_sums(self.encoder, features, sums[1:]) if sums[1:] else features


def share(
    function: Callable[[Int[Tensor, "*batch 1"]], Tensor], env: TabulatedEnv, state: Int[Tensor, "B T 1"], levels: int
) -> Tensor:
    """Values of a function at the states of whole trajectories, the first levels evaluated once."""
    early = look_up(function(first_rows(env, levels, state.device)), state[:, :levels])
    return early if levels == state.shape[1] else torch.cat([early, function(state[:, levels:])], 1)


def first_rows(env: TabulatedEnv, levels: int, device: torch.device) -> Int[Tensor, "M 1"]:
    """All states of the first levels, which have the first numbers."""
    return torch.arange(sum(env.level_sizes[:levels]), device=device)[:, None]


def look_up(table: Float[Tensor, " M *rest"], state: Int[Tensor, " *batch 1"]) -> Tensor:
    """Rows of a table by state; finished states, which only padded steps ask for, read the last row.

    `gather` sends gradients back by atomic adds; plain indexing would sort the batch first.
    """
    row = state.clamp(max=table.shape[0] - 1)[..., 0]
    found = table.reshape(table.shape[0], -1)
    found = found.gather(0, row.flatten()[:, None].expand(-1, found.shape[1]))
    return found.view(*row.shape, *table.shape[1:])
