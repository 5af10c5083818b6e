"""Heads: policy, backward policy, flow and outcome policy on one encoder."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sgfn.config import NetConfig
from sgfn.envs.base import Env
from sgfn.envs.sequence import SequenceEnv
from sgfn.nets.encoders import MLP, Join, Reader, StateReader, make_encoder, masked_log_softmax, width_of
from sgfn.nets.half import HeadOutputs, half_fits, half_outputs
from sgfn.nets.prefixes import encode_along


@dataclass(frozen=True, kw_only=True)
class Heads:
    """What the networks say of a batch of states; log-probabilities, minus infinity where impossible."""

    log_policy: Float[Tensor, "*batch A"]
    log_flow: Float[Tensor, "*batch"]
    log_backward: Float[Tensor, "*batch K"] | None = None
    """Over parents, for the noise-blind and marginal forms on a graph; None on a tree, where the parent is known."""
    log_joint_backward: Float[Tensor, "*batch K A"] | None = None
    """Over (parent, intention) pairs, for the published form."""
    log_outcome: Float[Tensor, "*batch K"] | None = None
    """The outcome policy c(k|s): what should happen, for the KL objective."""


class FlowNets(nn.Module):
    """Encoder, policy and flow heads, a backward head where it is needed, and log Z.

    With `joint_backward` the backward policy is one over (parent, intention) pairs; with `outcome_policy` there is a
    head for c(k|s). The encoder is the configured one, or one that is given. With `thought` (its width) policy and flow
    read what the history tells as well. The outcome policy and the backward policy do not: what should happen, and how
    a state may have come about, are matters of the state alone.
    """

    def __init__(
        self,
        env: Env,
        config: NetConfig,
        thought: int = 0,
        encoder: nn.Module | None = None,
        *,
        joint_backward: bool = False,
        outcome_policy: bool = False,
    ) -> None:
        super().__init__()
        self.env, self.joint_backward = env, joint_backward
        self.encoder = make_encoder(env, config) if encoder is None else encoder
        self.width = width_of(self.encoder, env)
        self.join = Join(self.width, thought, config.activation) if thought else None
        self.policy = small(nn.Linear(self.width, env.actions))
        self.flow = small(nn.Linear(self.width, 1))
        size = env.outcomes * env.actions if joint_backward else 0 if env.tree else env.outcomes
        self.backward = small(nn.Linear(self.width, size)) if size else None
        self.reads_final = self.backward is not None
        self.outcome = small(nn.Linear(self.width, env.outcomes)) if outcome_policy else None
        self.log_z = nn.Parameter(torch.zeros(()))

    @property
    def reads_along(self) -> bool:
        """Whether states are better, or only, read along their trajectories: see `nets.along`."""
        return isinstance(self.encoder, Reader) or self.join is not None

    def represent(self, state: Int[Tensor, "*batch S"]) -> Float[Tensor, "*batch H"]:
        """Representations of any states, each by itself: a `StateReader` reads states, other modules their features."""
        return self.encoder(state if isinstance(self.encoder, StateReader) else self.env.encode(state))

    def represent_along(self, states: Int[Tensor, "B N S"]) -> Float[Tensor, "B N H"]:
        """The first N states of trajectories."""
        if isinstance(self.encoder, Reader):
            return self.encoder.along(states)
        return encode_along(self.encoder, self.env, states) if type(self.encoder) is MLP else self.represent(states)

    def log_policy(self, state: Int[Tensor, "*batch S"]) -> Float[Tensor, "*batch A"]:
        """log pi(.|s) of raw states, or of states as the environment of these networks numbers them."""
        state = self.env.embed(state)
        return self.log_policy_of(self.represent(state), state)

    def log_policy_of(
        self,
        hidden: Float[Tensor, "*batch H"],
        state: Int[Tensor, "*batch S"],
        thought: Float[Tensor, "*batch W"] | None = None,
    ) -> Float[Tensor, "*batch A"]:
        """log pi(.|s), or pi(.|s, history), from the state's representation."""
        return self._log_policy(self._joined(hidden, thought), state)

    def heads(self, state: Int[Tensor, "*batch S"]) -> Heads:
        """Everything the networks say of raw states, or of numbered ones, in one pass."""
        state = self.env.embed(state)
        return self.heads_of(self.represent(state), state)

    def heads_along(self, states: Int[Tensor, "B N S"], thought: Float[Tensor, "B N W"] | None = None) -> Heads:
        """Everything, of the first N states of trajectories; in half precision where that fits."""
        env, encoder = self.env, self.encoder
        if type(self) is FlowNets and self.join is None and half_fits(encoder, env, states):
            assert isinstance(encoder, MLP)
            assert isinstance(env, SequenceEnv)
            heads = [head for head in (self.policy, self.flow, self.outcome, self.backward) if head is not None]
            return self.heads_of(HeadOutputs(heads, half_outputs(encoder, heads, env, states)), states)
        return self.heads_of(self.represent_along(states), states, thought)

    def heads_of(
        self,
        hidden: Float[Tensor, "*batch H"] | HeadOutputs,
        state: Int[Tensor, "*batch S"],
        thought: Float[Tensor, "*batch W"] | None = None,
    ) -> Heads:
        """Everything, from the states' representations."""
        joined = self._joined(hidden, thought)
        log_flow = read(self.flow, joined)[..., 0]
        log_policy, log_outcome = self._log_policy(joined, state), None
        if self.outcome is not None:
            log_outcome = masked_log_softmax(self.logits(self.outcome, hidden), self.env.possible(state))
        log_backward, log_joint = self._log_backward(hidden, state)
        return Heads(
            log_policy=log_policy,
            log_flow=log_flow,
            log_backward=log_backward,
            log_joint_backward=log_joint,
            log_outcome=log_outcome,
        )

    def _joined(self, hidden: Tensor | HeadOutputs, thought: Tensor | None) -> Tensor | HeadOutputs:
        """With the thought, which learns from the noise model's likelihood alone."""
        if self.join is None or isinstance(hidden, HeadOutputs):
            return hidden
        if thought is None:
            raise ValueError("this policy remembers: give it the thought of the history, or let an actor walk with it")
        return self.join(hidden, thought.detach())

    def _log_backward(
        self, hidden: Float[Tensor, "*batch H"] | HeadOutputs, state: Int[Tensor, "*batch S"]
    ) -> tuple[Tensor | None, Tensor | None]:
        """Over parents, or over (parent, intention) pairs; neither on a tree where the parent says it all."""
        if self.backward is None:
            return None, None
        logits = read(self.backward, hidden)
        if not self.joint_backward:
            return masked_log_softmax(logits, self.env.parents(state)), None
        joint = masked_log_softmax(logits, self.env.support(state).flatten(-2))
        return None, joint.unflatten(-1, (self.env.outcomes, self.env.actions))

    def _log_policy(self, hidden: Float[Tensor, "*batch H"] | HeadOutputs, state: Int[Tensor, "*batch S"]) -> Tensor:
        return masked_log_softmax(self.logits(self.policy, hidden), self.env.legal(state))

    def logits(self, head: nn.Module, hidden: Float[Tensor, "*batch H"] | HeadOutputs) -> Float[Tensor, "*batch A"]:
        """What a head over actions says; networks that begin at a known law add it here."""
        return read(head, hidden)


def read(head: nn.Module, hidden: Float[Tensor, "*batch H"] | HeadOutputs) -> Float[Tensor, "*batch A"]:
    """What a head says of representations, or has said of them already."""
    return hidden.of(head) if isinstance(hidden, HeadOutputs) else head(hidden)


def small(layer: nn.Linear) -> nn.Linear:
    """Start heads close to zero: a near-uniform policy and flat flows."""
    with torch.no_grad():
        layer.weight.mul_(0.1)
        layer.bias.zero_()
    return layer
