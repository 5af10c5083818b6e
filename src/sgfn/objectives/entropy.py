"""Entropy of the policy at visited states, and the ratio of high to low entropies."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from sgfn.config import EntropyConfig
from sgfn.envs.trajectories import Episodes
from sgfn.objectives.parts import Parts, step_means
from sgfn.objectives.scores import Scores

TINY = 1e-10  # probabilities and entropies are kept above this before a logarithm is taken
LOG_TINY = math.log(TINY)


def policy_entropy(log_policy: Float[Tensor, "*batch A"]) -> Float[Tensor, "*batch"]:
    r"""Normalised entropy $H(s) = -\sum_a \pi(a|s)\log\pi(a|s) / \log V$, in [0, 1]; V counts all actions."""
    nats = -(log_policy.exp() * log_policy.clamp(min=LOG_TINY)).sum(-1)
    return (nats / math.log(log_policy.shape[-1])).clamp(0.0, 1.0)


def masked_quantile(
    values: Float[Tensor, "B T"], mask: Bool[Tensor, "B T"], q: tuple[float, ...]
) -> Float[Tensor, " Q"]:
    """Quantiles of the entries where the mask is true: linear between neighbours, differentiable, of fixed shapes."""
    return row_quantiles(values.flatten()[None], mask.flatten()[None], q)[:, 0]


def row_quantiles(
    values: Float[Tensor, "B T"], mask: Bool[Tensor, "B T"], q: tuple[float, ...]
) -> Float[Tensor, "Q B"]:
    """The same for each row by itself; a row without true entries is not asked for."""
    ordered = torch.where(mask, values, torch.inf).sort(-1).values
    last = (mask.sum(-1) - 1).clamp(min=0)  # B
    place = torch.stack([last.double() * share for share in q])  # Q B
    below = place.floor().long()
    above = torch.minimum(below + 1, last)
    found = [ordered.gather(1, at.t()).t() for at in (below, above)]  # Q B each
    return torch.lerp(found[0], found[1], (place - below).to(values.dtype))


@dataclass(frozen=True, kw_only=True)
class EntropyRatio:
    r"""$r_\gamma = H_{high}/(\gamma H_{high} + (1-\gamma) H_{low})$ and $\rho = \gamma r_\gamma$, as logarithms."""

    high: Float[Tensor, "*batch"]
    low: Float[Tensor, "*batch"]
    log_ratio: Float[Tensor, "*batch"]
    """log r, which lies in [0, -log gamma] where high >= low."""
    log_rho: Float[Tensor, "*batch"]
    log_rest: Float[Tensor, "*batch"]
    """log(1 - rho), from its own closed form: 1 - rho may be too small to be seen beside 1."""

    @property
    def rho(self) -> Float[Tensor, "*batch"]:
        """The share rho, strictly inside (0, 1) also where it rounds to 1."""
        kind = torch.finfo(self.log_rho.dtype)
        return self.log_rho.exp().clamp(kind.tiny, 1.0 - kind.eps)


def entropy_ratio(high: Float[Tensor, "*batch"], low: Float[Tensor, "*batch"], gamma: float) -> EntropyRatio:
    r"""How much the high-entropy end outweighs a mixture of both ends.

    .. math:: r_\gamma = \frac{H_{high}}{\gamma H_{high} + (1-\gamma) H_{low}}, \qquad \rho = \gamma r_\gamma, \qquad
              1-\rho = \frac{(1-\gamma) H_{low}}{\gamma H_{high} + (1-\gamma) H_{low}}

    A formula that asks for log(1 - r) has no real value: H_high >= H_low makes r >= 1, so the logarithm's argument is
    zero or negative. The quantity in (0, 1) is rho, the share of the mixture that comes from high-entropy states, so
    log(1 - rho) stands wherever log(1 - r) was written. Entropies are kept above 1e-10: one-hot policies have none.
    """
    high, low = high.clamp(min=TINY), low.clamp(min=TINY)
    log_mixture = torch.lerp(low, high, gamma).log()  # exactly log(low) where both are equal, so that r is exactly 1
    log_ratio = high.log() - log_mixture
    return EntropyRatio(
        high=high,
        low=low,
        log_ratio=log_ratio,
        log_rho=math.log(gamma) + log_ratio,
        log_rest=math.log1p(-gamma) + low.log() - log_mixture,
    )


Ends = tuple[Float[Tensor, "B T"], Float[Tensor, "B T"]]


def quantile_ends(
    entropy: Float[Tensor, "B T"], valid: Bool[Tensor, "B T"], actions: int, config: EntropyConfig
) -> Ends:
    """H_high and H_low as the q and 1-q quantiles over the batch: one ratio for all states."""
    high, low = masked_quantile(entropy, valid, (config.quantile, 1.0 - config.quantile)).unbind()
    return high.expand_as(entropy), low.expand_as(entropy)


def trajectory_ends(
    entropy: Float[Tensor, "B T"], valid: Bool[Tensor, "B T"], actions: int, config: EntropyConfig
) -> Ends:
    """H_high and H_low as the q and 1-q quantiles over the states of each trajectory: one ratio for each of them."""
    high, low = row_quantiles(entropy, valid, (config.quantile, 1.0 - config.quantile))
    return high[:, None].expand_as(entropy), low[:, None].expand_as(entropy)


def per_state_ends(
    entropy: Float[Tensor, "B T"], valid: Bool[Tensor, "B T"], actions: int, config: EntropyConfig
) -> Ends:
    """H_high as the state's own entropy, H_low as the same but at most a tenth of a nat."""
    return entropy, entropy.clamp(max=0.1 / math.log(actions))


def exponential_ends(
    entropy: Float[Tensor, "B T"], valid: Bool[Tensor, "B T"], actions: int, config: EntropyConfig
) -> Ends:
    r"""H_high and H_low as $e^{-b_{high} H}$ and $e^{-b_{low} H}$; where $b_{high} > b_{low}$ the ratio is below 1."""
    return torch.exp(-config.rate_high * entropy), torch.exp(-config.rate_low * entropy)


ENDS: dict[str, Callable[[Tensor, Tensor, int, EntropyConfig], Ends]] = {
    "quantile": quantile_ends,
    "trajectory": trajectory_ends,
    "per-state": per_state_ends,
    "exponential": exponential_ends,
}


@dataclass(frozen=True, kw_only=True)
class EntropyTerms:
    """Entropies of a batch and the terms made of them, by state; weights and terms are zero on padded steps."""

    entropy: Float[Tensor, "B T"]
    ratio: EntropyRatio
    visits: Float[Tensor, "B T"]
    """mu: the weight of each valid state, 1/(B T) in a batch of B where its trajectory has T; they sum to one."""
    policy_kl: Float[Tensor, "B T"]
    r"""KL from the policy to the inferred intentions, $\sum_a \pi(a|s_t)\log[\pi(a|s_t)/\pi_B(a|s_{t+1})]$."""
    dynamics_balance: Float[Tensor, "B T"]
    r"""$-H(s)[\log\rho + (1-\gamma)(1-H(s))\log(1-\rho)]$, before it is weighted with mu."""


def entropy_terms(scores: Scores, batch: Episodes, config: EntropyConfig) -> EntropyTerms:
    """Terms that the entropy-ratio objective, its log and the guided exploration read."""
    assert scores.log_policy is not None
    assert scores.log_intention is not None
    entropy = policy_entropy(scores.log_policy)
    ends = ENDS[config.variant](entropy, batch.valid, scores.log_policy.shape[-1], config)
    ratio = entropy_ratio(*ends, config.gamma)
    known = scores.log_policy.clamp(min=LOG_TINY) - scores.log_intention.clamp(min=LOG_TINY)
    policy_kl = (scores.log_policy.exp() * known).sum(-1)
    balance = -entropy * (ratio.log_rho + (1.0 - config.gamma) * (1.0 - entropy) * ratio.log_rest)
    return EntropyTerms(
        entropy=entropy,
        ratio=ratio,
        visits=batch.valid / (batch.valid.shape[0] * batch.valid.sum(1, keepdim=True).clamp(min=1)).to(entropy.dtype),
        policy_kl=torch.where(batch.valid, policy_kl, 0.0),
        dynamics_balance=torch.where(batch.valid, balance, 0.0),
    )


ENTROPY_METERS = (
    "H_high",
    "H_low",
    "H_mean",
    "r_gamma",
    "rho",
    "policy_kl",
    "dynamics_balance",
    "reward_minus_kl",
)
"""Names of what is logged of the policy's entropy; the last is `reward` less `policy_kl`, see `objectives.parts`."""


def entropy_parts(terms: EntropyTerms, batch: Episodes) -> Parts:
    """Means over visited states, weighted with mu: all of ENTROPY_METERS but the last, which needs the reward."""
    ratio = terms.ratio
    figures = {
        "H_high": ratio.high,
        "H_low": ratio.low,
        "H_mean": terms.entropy,
        "r_gamma": ratio.log_ratio.exp(),
        "rho": ratio.rho,
        "policy_kl": terms.policy_kl,
        "dynamics_balance": terms.dynamics_balance,
    }
    return step_means(batch, figures)
