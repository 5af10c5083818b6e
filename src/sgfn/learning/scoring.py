"""Scores of trajectories by networks and noise, as objectives read them."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.config.registry import of_kind
from sgfn.envs.base import Env
from sgfn.envs.trajectories import Trajectories
from sgfn.learning.forms import form_entry
from sgfn.learning.rollout import LogReward
from sgfn.nets.heads import Heads
from sgfn.noise.operators import Kernel
from sgfn.objectives.scores import Scores

Form = Callable[[Heads, Kernel, Trajectories, Tensor], Any]
"""What the networks say, P^, trajectories and log Z to `Scores`."""


@runtime_checkable
class Scorer(Protocol):
    """Evaluates states: the networks in training, exact tables in tests."""

    @property
    def log_z(self) -> Tensor:
        """Logarithm of the total flow."""
        ...

    @property
    def reads_final(self) -> bool:
        """Whether finished states are evaluated too (a backward policy is read there)."""
        ...

    def heads(self, state: Int[Tensor, "*batch S"]) -> Heads:
        """Log-probabilities and flows."""
        ...


def score_blind(heads: Heads, kernel: Kernel, batch: Trajectories, log_z: Tensor) -> Scores:
    """Noise-blind form: pi is read at the outcome, as if the agent had meant it. The published baselines."""
    log_policy = heads.log_policy[:, : batch.valid.shape[1]]
    log_pf = _pick(log_policy, batch.realised)
    _, log_intention = kernel.posterior(log_policy, batch.realised)
    return _scores(batch, heads, log_z, log_pf=log_pf, log_pb=_log_parent(heads, batch), log_intention=log_intention)


def score_published(heads: Heads, kernel: Kernel, batch: Trajectories, log_z: Tensor) -> Scores:
    """Published form (Pan et al. 2023): pi at the intention, P^ at the outcome, pi_B over (parent, intention)."""
    log_pf = _pick(heads.log_policy[:, : batch.valid.shape[1]], batch.intended)
    log_dynamics = kernel.log_prob(batch.intended, batch.realised)
    assert heads.log_joint_backward is not None
    joint = _row(heads.log_joint_backward[:, 1:], batch.realised)  # B T A
    # A padded step has no parent, and nothing to normalise.
    log_intention = torch.log_softmax(torch.where(batch.valid[..., None], joint, 0.0), -1)
    log_pb = _pick(joint, batch.intended)
    scores = _scores(batch, heads, log_z, log_pf=log_pf, log_pb=log_pb, log_intention=log_intention)
    return replace(scores, log_dynamics=torch.where(batch.valid, log_dynamics, 0.0))


def score_marginal(heads: Heads, kernel: Kernel, batch: Trajectories, log_z: Tensor) -> Scores:
    r"""Marginal form: the intention is summed out, $\log\bar P(k|s) = \log\sum_a \pi(a|s) \hat P(k|s,a)$."""
    log_pf, log_intention = kernel.posterior(heads.log_policy[:, : batch.valid.shape[1]], batch.realised)
    return _scores(batch, heads, log_z, log_pf=log_pf, log_pb=_log_parent(heads, batch), log_intention=log_intention)


def score_outcome(heads: Heads, kernel: Kernel, batch: Trajectories, log_z: Tensor) -> Scores:
    r"""For the KL objective: balance over outcomes alone, and how far the policy is from making them happen.

    .. math:: KL\big(c(\cdot|s)\,\|\,\textstyle\sum_a \pi(a|s) \hat P(\cdot|s,a)\big), \quad c \text{ detached}
    """
    assert heads.log_outcome is not None
    log_outcome = heads.log_outcome[:, : batch.valid.shape[1]]  # B T K
    log_policy = heads.log_policy[:, : batch.valid.shape[1]]
    log_pf, log_pb = _pick(log_outcome, batch.realised), _log_parent(heads, batch)
    _, log_intention = kernel.posterior(log_policy, batch.realised)
    scores = _scores(batch, heads, log_z, log_pf=log_pf, log_pb=log_pb, log_intention=log_intention)
    projection = kl_divergence(log_outcome.detach(), kernel.outcome_law(log_policy))
    return replace(scores, projection=torch.where(batch.valid, projection, 0.0))


def kl_divergence(log_p: Float[Tensor, "*batch K"], log_q: Float[Tensor, "*batch K"]) -> Float[Tensor, "*batch"]:
    r"""$\sum_k p_k (\log p_k - \log q_k)$, with terms of p = 0 left out before they can turn into nan."""
    possible = log_p > -torch.inf
    gap = torch.where(possible, log_p, 0.0) - torch.where(possible, log_q, 0.0)
    return torch.where(possible, log_p.exp() * gap, 0.0).sum(-1)


def score(scorer: Scorer, batch: Trajectories, form: str | Form, kernel: Kernel) -> Scores:
    """Scores of a batch in a form, by its name or the function itself, by one pass over all its states.

    `kernel` is P^ at the states before each step.
    """
    heads = scorer.heads(batch.states if scorer.reads_final else batch.states[:, :-1])
    scoring = form_entry(form).scoring if isinstance(form, str) else form
    found = scoring(heads, kernel.detach(), batch, scorer.log_z)
    return found if isinstance(found, Scores) else of_kind("form", str(form), found, Scores)


def score_expected(env: Env, scorer: Scorer, batch: Trajectories, kernel: Kernel, log_reward: LogReward) -> Scores:
    r"""For expected flows, on a tree: $\log\sum_k \hat P(k|s,a) F(s'_k)$ from the flows of all children.

    `log_reward` gives the (raised) reward of finished children, most of which the batch did not reach.
    """
    heads = scorer.heads(batch.states[:, :-1])
    kernel = kernel.detach()
    scores = score_marginal(heads, kernel, batch, scorer.log_z)
    states = batch.states[:, :-1, None].expand(-1, -1, env.outcomes, -1)  # B T K S
    outcome = torch.arange(env.outcomes, device=states.device).expand(states.shape[:-1])
    children = env.apply(states, outcome)
    possible = env.possible(batch.states[:, :-1]) & batch.valid[..., None]
    done, finished = env.done(children), env.objects(batch.states[:, -1])[:, None, None]
    objects = torch.where(done[..., None], env.objects(children), finished)  # an unfinished one has no score
    reward = log_reward(objects.flatten(0, 2)).view(outcome.shape)
    log_flow = torch.where(done, reward, scorer.heads(children).log_flow)
    log_expected = kernel.log_expected(torch.where(possible, log_flow, -torch.inf))  # B T A
    return replace(scores, log_expected=torch.where(log_expected > -torch.inf, log_expected, 0.0))


def _scores(
    batch: Trajectories, heads: Heads, log_z: Tensor, *, log_pf: Tensor, log_pb: Tensor, log_intention: Tensor
) -> Scores:
    root = log_z.expand(batch.states.shape[0], 1).to(heads.log_flow.dtype)  # F(s_0) = Z
    inner = heads.log_flow[:, 1 : batch.valid.shape[1]]
    return Scores(
        log_pf=torch.where(batch.valid, log_pf, 0.0),
        log_dynamics=torch.zeros_like(log_pf),
        log_pb=torch.where(batch.valid, log_pb, 0.0),
        log_flow=torch.cat([root, inner, torch.zeros_like(root)], 1),  # the last state is always final
        log_z=log_z,
        log_policy=heads.log_policy[:, : batch.valid.shape[1]],
        log_intention=log_intention,
    )


def _log_parent(heads: Heads, batch: Trajectories) -> Tensor:
    if heads.log_backward is None:
        return torch.zeros_like(batch.valid, dtype=heads.log_flow.dtype)
    return _pick(heads.log_backward[:, 1:], batch.realised)


def _pick(values: Float[Tensor, "B T A"], index: Int[Tensor, "B T"]) -> Float[Tensor, "B T"]:
    return values.gather(-1, index[..., None])[..., 0]


def _row(matrix: Float[Tensor, "B T A K"], index: Int[Tensor, "B T"]) -> Float[Tensor, "B T K"]:
    return matrix.gather(-2, index[..., None, None].expand(*index.shape, 1, matrix.shape[-1]))[..., 0, :]
