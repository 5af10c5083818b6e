"""`entropy-state`: the entropy ratio as a temperature of each state, hotter where visits are few."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.envs.trajectories import Trajectories
from sgfn.learning.exploration.base import Surroundings, Way, WrappedActor
from sgfn.learning.general import GeneralBackend
from sgfn.learning.rollout import Actor
from sgfn.objectives.entropy import entropy_ratio, policy_entropy

BUCKETS = 65536
"""Counters of visits; states that are not numbered share them by a hash."""
PRIMES = (1_000_003, 8_191, 131_071, 524_287)


class EntropyState(Way):
    r"""Temperature by state: $T(s) = T \cdot (1 / (\gamma r_\gamma(s)))^{1/\sqrt{1+N(s)}}$.

    r(s) is the ratio of the `per-state` variant, between 1 where the policy is certain and 1/gamma where it is not, so
    the base is 1/gamma where the policy is certain and 1 where it explores by itself; N(s) are visits so far. It heats
    where entropy is low and visits are few, and leaves alone what is known or undecided.
    """

    def __init__(self, surroundings: Surroundings) -> None:
        super().__init__(surroundings)
        self.visits = torch.zeros(BUCKETS, device=self.device)
        self.gamma = self.config.entropy.gamma

    def bucket(self, state: Int[Tensor, "*batch S"]) -> Int[Tensor, "*batch"]:
        """The counter of each state: its number where states are numbered, else a hash."""
        if state.shape[-1] == 1:
            return state[..., 0] % BUCKETS
        factor = torch.tensor([PRIMES[i % 4] ** (1 + i // 4 % 3) for i in range(state.shape[-1])], device=state.device)
        return (((state + 1) * (factor + torch.arange(state.shape[-1], device=state.device))).sum(-1) // 7) % BUCKETS

    def heat(self, log_policy: Float[Tensor, "B A"], state: Int[Tensor, "B S"]) -> Float[Tensor, " B"]:
        """The factor of the temperature at each state, from 1 to 1/gamma."""
        entropy = policy_entropy(log_policy)
        low = entropy.clamp(max=0.1 / math.log(log_policy.shape[-1]))
        ratio = entropy_ratio(entropy, low, self.gamma)
        fewness = (1.0 + self.visits[self.bucket(state)]).rsqrt()
        return (-ratio.log_rho * fewness).exp()

    def actor(self, actor: Actor) -> Actor:
        """The policy at the temperature of each state."""
        return HeatedActor(actor, self)

    def observe(self, batch: Trajectories, backend: GeneralBackend, beta: Tensor) -> None:
        """Count the visits of all states before each step."""
        bucket = self.bucket(batch.states[:, :-1])[batch.valid]
        self.visits.index_add_(0, bucket, torch.ones_like(bucket, dtype=self.visits.dtype))

    def memory(self) -> dict[str, Tensor]:
        """Visits, for checkpoints."""
        return {"visits": self.visits}


class HeatedActor(WrappedActor):
    """An actor at the temperature of each state."""

    def __init__(self, inner: Actor, way: EntropyState) -> None:
        super().__init__(inner)
        self.way = way

    def changed(self, log_policy: Tensor, state: Int[Tensor, "B S"]) -> Tensor:
        """Logits divided by the state's temperature."""
        return log_policy / self.way.heat(log_policy, state)[:, None]
