"""Scoring and acting along trajectories: a transformer reads every prefix in one pass, thoughts join the states."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.learning.rollout import RolloutSteps, WholeRollout
from sgfn.nets.dynamics import NoiseModel
from sgfn.nets.encoders import Reader
from sgfn.nets.heads import FlowNets, Heads
from sgfn.nets.transformer import Cache
from sgfn.noise.operators import Kernel


class TrajectoryScorer:
    """Scores the states of a batch of trajectories, in their order, with the thoughts that go with them."""

    def __init__(
        self,
        nets: FlowNets,
        thoughts: Float[Tensor, "B N W"] | None,
        read: Float[Tensor, "B N H"] | None = None,
    ) -> None:
        """`read` are the states' representations, where they are known."""
        self.nets, self.thoughts, self.read = nets, thoughts, read
        self.log_z, self.reads_final = nets.log_z, nets.reads_final

    def heads(self, state: Int[Tensor, "B N S"]) -> Heads:
        """Outputs of all heads, for the first N states of each trajectory."""
        thought = None if self.thoughts is None else self.thoughts[:, : state.shape[1]]
        if self.read is None:
            return self.nets.heads_along(state, thought)
        return self.nets.heads_of(self.read[:, : state.shape[1]], state, thought)


class CachedActor:
    """A policy that acts step by step and keeps what it has read in caches; it starts anew at step 0.

    It gives the laws that `TrajectoryScorer` gives in one pass; what it keeps has the same shape at every step.
    """

    def __init__(self, nets: FlowNets, model: NoiseModel, whole: WholeRollout | None = None) -> None:
        self.nets, self.model, self.whole = nets, model, whole
        self.tokens: Cache | None = None
        self.pairs: Cache | None = None
        self.thought: Tensor | None = None

    @torch.no_grad()
    def log_policy(self, t: int, state: Int[Tensor, "B S"]) -> Float[Tensor, "B A"]:
        """log pi(.|s, history) at step t."""
        if t == 0 and self.model.thought is not None:
            self.pairs, self.thought = self.model.thought.start(state.shape[0], state.device)
        return self.nets.log_policy_of(self._represent(t, state), state, self.thought)

    @torch.no_grad()
    def kernel(self, state: Int[Tensor, "B S"]) -> Kernel:
        """P^(.|s,a, history) at the present step."""
        return self.model.operator(state, self.thought)

    def observe(self, t: int, intended: Int[Tensor, " B"], realised: Int[Tensor, " B"]) -> None:
        """Add (intention, outcome) to the history, but for the last step, after which it is not read."""
        if self.model.thought is not None and self.pairs is not None and t + 1 < self.nets.env.horizon:
            self.thought = self.model.thought.step(intended, realised, self.pairs, t + 1)

    def whole_rollout(
        self, clock: Float[Tensor, "T 2 B A"], explore: float, temperature: float | Tensor
    ) -> RolloutSteps | None:
        """The whole rollout by a GPU kernel; None where none is given, or where the policy remembers."""
        if self.whole is None or self.model.thought is not None:
            return None
        return self.whole(clock, explore, temperature)

    def _represent(self, t: int, state: Int[Tensor, "B S"]) -> Float[Tensor, "B H"]:
        encoder = self.nets.encoder
        if not isinstance(encoder, Reader):
            return self.nets.represent(state)
        if t == 0 or self.tokens is None:
            self.tokens, hidden = encoder.start(state)
            return hidden
        return encoder.step(state, self.tokens, t)
