"""Samples of a policy by look-ups alone, where every state can be evaluated beforehand."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.envs.tabulated import TabulatedEnv
from sgfn.envs.trajectories import Samples
from sgfn.landscapes.base import Landscape
from sgfn.learning.rollout import LogPolicy

MOST_STATES = 100_000
"""Most states for which this is used: evaluating all is cheap beside drawing. It depends on the space alone, so that
the first samples are the same however many are drawn."""
SCORED = 65536
"""Objects scored at once."""


def look_up(policy: Float[Tensor, "M A"]) -> LogPolicy:
    """Log-policy by look-up in a table of all unfinished states; at finished states it is arbitrary."""
    log_policy, last = policy.log(), policy.shape[0] - 1
    return lambda state: log_policy[state[..., 0].clamp(max=last)]


class TableSampler:
    r"""Draws samples: a step is one uniform number u, and a search among cumulative chances of (intention, outcome).

    .. math:: (a, k) = \min\{j : u < C_j(s)\}, \qquad C_j(s) = \sum_{(a,k) \le j} \pi(a|s)\,P(k|s,a)
    """

    def __init__(self, env: TabulatedEnv, policy: Float[Tensor, "M A"], landscape: Landscape, block: int) -> None:
        self.env, self.landscape, self.block = env, landscape, block
        states = torch.arange(env.num_states, device=policy.device)[:, None]
        joint, following = policy.double()[:, :, None], env.following[: env.num_states, :, None]  # M A 1, without noise
        if not env.noise_free:
            joint, following = joint * env.kernel(states, torch.float64), following.transpose(1, 2)  # M A K
        self.outcomes, entries = joint.shape[2], joint[0].numel()
        self.size = 1 << (entries - 1).bit_length()  # a power of two, so that each look halves what is left
        sums = joint.flatten(1).cumsum(-1)
        bounds = torch.where(sums < sums[:, -1:], sums / sums[:, -1:], torch.inf)  # what has no chance is never drawn
        pad = (0, self.size - entries)
        self.bounds = F.pad(bounds, (*pad, 0, 1), value=torch.inf).flatten()  # and a row for the end
        follow = following.expand_as(joint).flatten(1)
        self.follow = F.pad(follow, (*pad, 0, 1)).flatten()
        objects = env.object_table[env.num_states :].split(SCORED)
        self.scores = None if landscape.on_host else torch.cat([landscape.scores(part) for part in objects])

    def draw(self, count: int, generator: torch.Generator) -> Samples:
        """`count` samples, at most a block; random numbers are drawn for the whole block."""
        env = self.env
        chance = torch.rand(env.horizon, self.block, generator=generator, device=generator.device, dtype=torch.float64)
        state, meant = torch.zeros(count, dtype=torch.int64, device=generator.device), []
        for uniform in chance[:, :count].unbind():
            place = self._search(state, uniform)
            done = state >= env.num_states
            meant.append(torch.where(done, -1, (place & (self.size - 1)) // self.outcomes))
            state = torch.where(done, state, self.follow.index_select(0, place))
        objects = env.object_table[state]
        scores = self.landscape.scores(objects) if self.scores is None else self.scores[state - env.num_states]
        return Samples(objects=objects.cpu(), scores=scores.cpu(), intended=torch.stack(meant, 1).cpu())

    def _search(self, state: Int[Tensor, " N"], uniform: Float[Tensor, " N"]) -> Int[Tensor, " N"]:
        """Place in the tables of the first entry whose bound lies above the number."""
        place, half = state.clamp(max=self.env.num_states) * self.size, self.size // 2
        while half:
            place = place.add(self.bounds.index_select(0, place + (half - 1)) <= uniform, alpha=half)
            half //= 2
        return place
