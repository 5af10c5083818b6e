"""State sharing: on a small tree the networks judge each distinct state once, however often the batch visits it."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.envs.tabulated import TabulatedEnv
from sgfn.nets.heads import DynamicsNet, FlowNets, Heads


class SharedStates:
    """Every unfinished state of a tabulated tree, ready for one pass."""

    def __init__(self, env: TabulatedEnv, device: torch.device) -> None:
        self.env, self.states = env, torch.arange(env.num_states, device=device)[:, None]

    def judge(self, nets: FlowNets) -> "SharedJudge":
        """The networks at their present weights, as a table."""
        return SharedJudge(self.env, nets, nets.heads(self.states))

    def log_kernel(self, model: DynamicsNet, state: Int[Tensor, "*batch 1"]) -> Float[Tensor, "*batch A K"]:
        """The dynamics model, looked up."""
        return look_up(model.log_kernel(self.states), self.env, state)


class SharedJudge:
    """Looks states up in one pass over the whole space; gradients flow back through the look-up."""

    reads_final = False

    def __init__(self, env: TabulatedEnv, nets: FlowNets, table: Heads) -> None:
        self.env, self.table, self.log_z = env, table, nets.log_z

    def log_policy(self, state: Int[Tensor, "*batch 1"]) -> Float[Tensor, "*batch A"]:
        """log pi(.|s), without gradient: what a rollout needs."""
        return look_up(self.table.log_policy.detach(), self.env, state)

    def heads(self, state: Int[Tensor, "*batch 1"]) -> Heads:
        """Policy and flow; on a tree there is no backward head to read."""
        log_flow = look_up(self.table.log_flow[:, None], self.env, state)[..., 0]
        return Heads(log_policy=look_up(self.table.log_policy, self.env, state), log_flow=log_flow)


def look_up(table: Float[Tensor, "M *rest"], env: TabulatedEnv, state: Int[Tensor, "*batch 1"]) -> Tensor:
    """Rows of a table by state; finished states, which only padded steps ask for, read the last row.

    `gather` sends gradients back by atomic adds; plain indexing would sort the batch first.
    """
    row = state.clamp(max=env.num_states - 1)[..., 0]
    width = table[0].numel()
    found = table.flatten(1).gather(0, row.flatten()[:, None].expand(-1, width))
    return found.view(*row.shape, *table.shape[1:])
