"""Heads: policy, backward policy, flow and outcome policy on one encoder; the dynamics model on its own."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sgfn.config import DynamicsConfig, NetConfig
from sgfn.envs.base import Env
from sgfn.nets.encoders import MLP


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
    """Encoder, policy and flow heads, backward and outcome heads where the form needs them, and log Z."""

    def __init__(self, env: Env, form: str, config: NetConfig) -> None:
        super().__init__()
        self.env, self.form = env, form
        self.encoder = MLP(env.features, config.hidden, config.layers, config.activation)
        self.policy = _small(nn.Linear(self.encoder.width, env.actions))
        self.flow = _small(nn.Linear(self.encoder.width, 1))
        size = env.actions**2 if form == "published" else 0 if env.tree else env.actions
        self.backward = _small(nn.Linear(self.encoder.width, size)) if size else None
        self.reads_final = self.backward is not None
        self.outcome = _small(nn.Linear(self.encoder.width, env.actions)) if form == "outcome" else None
        self.log_z = nn.Parameter(torch.zeros(()))

    def log_policy(self, state: Int[Tensor, "*batch S"]) -> Float[Tensor, "*batch A"]:
        """log pi(.|s) alone: what a rollout needs."""
        return self._log_policy(self.encoder(self.env.encode(state)), state)

    def heads(self, state: Int[Tensor, "*batch S"]) -> Heads:
        """Everything, in one pass over the states."""
        hidden = self.encoder(self.env.encode(state))
        log_flow = self.flow(hidden)[..., 0]
        log_policy, log_outcome = self._log_policy(hidden, state), None
        if self.outcome is not None:
            log_outcome = masked_log_softmax(self.outcome(hidden), self.env.legal(state))
        log_backward, log_joint = self._log_backward(hidden, state)
        return Heads(
            log_policy=log_policy,
            log_flow=log_flow,
            log_backward=log_backward,
            log_joint_backward=log_joint,
            log_outcome=log_outcome,
        )

    def _log_backward(
        self, hidden: Float[Tensor, "*batch H"], state: Int[Tensor, "*batch S"]
    ) -> tuple[Tensor | None, Tensor | None]:
        """Over parents, or over (parent, intention) pairs; neither on a tree where the parent says it all."""
        if self.backward is None:
            return None, None
        logits = self.backward(hidden)
        if self.form != "published":
            return masked_log_softmax(logits, self.env.parents(state)), None
        joint = masked_log_softmax(logits, self.env.support(state).flatten(-2))
        return None, joint.unflatten(-1, (self.env.actions, self.env.actions))

    def _log_policy(self, hidden: Float[Tensor, "*batch H"], state: Int[Tensor, "*batch S"]) -> Tensor:
        return masked_log_softmax(self.policy(hidden), self.env.legal(state))


class DynamicsNet(nn.Module):
    """P^(k|s,a) for every intention at once: one pass gives the whole matrix of a state."""

    def __init__(self, env: Env, config: DynamicsConfig) -> None:
        super().__init__()
        self.env = env
        self.encoder = MLP(env.features, config.hidden, config.layers, "relu")
        self.outcome = nn.Linear(self.encoder.width, env.actions**2)
        # Start near "what is intended happens": right for the stop action, a mild prior elsewhere.
        nn.init.zeros_(self.outcome.weight)
        with torch.no_grad():
            self.outcome.bias.copy_(2.0 * torch.eye(env.actions).flatten())

    def log_kernel(self, state: Int[Tensor, "*batch S"]) -> Float[Tensor, "*batch A K"]:
        """log P^(.|s,a), minus infinity for illegal outcomes."""
        logits = self.outcome(self.encoder(self.env.encode(state)))
        logits = logits.unflatten(-1, (self.env.actions, self.env.actions))
        return masked_log_softmax(logits, self.env.legal(state)[..., None, :].expand(logits.shape))


def masked_log_softmax(logits: Float[Tensor, "*batch A"], mask: Tensor) -> Float[Tensor, "*batch A"]:
    """Log-softmax over the true entries, minus infinity elsewhere; at least one entry must be true."""
    return torch.log_softmax(logits.masked_fill(~mask, -torch.inf), -1)


def _small(layer: nn.Linear) -> nn.Linear:
    """Start heads close to zero: a near-uniform policy and flat flows."""
    with torch.no_grad():
        layer.weight.mul_(0.1)
        layer.bias.zero_()
    return layer
