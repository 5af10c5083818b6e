"""The entropy-ratio objective: any base objective, a policy KL with entropy ratio, and the dynamics balance."""

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor

from sgfn.config import EntropyConfig, TrainConfig
from sgfn.envs.trajectories import Episodes
from sgfn.objectives.entropy import entropy_parts, entropy_terms
from sgfn.objectives.parts import Parts, weighted_sum
from sgfn.objectives.scores import Scores, masked_mean


def kl_entropy(
    scores: Scores, batch: Episodes, base: Callable[[Scores, Episodes], Tensor], config: EntropyConfig
) -> Float[Tensor, " B"]:
    r"""A base objective plus two regularisers, one value per trajectory; gradients flow through the entropy ratio.

    .. math:: L_{base} + \lambda_{KL}\,\overline{\textstyle\sum_a \pi(a|s_t)
              [\log\pi(a|s_t) - \log\pi_B(a|s_{t+1}) - \log r_\gamma]}
              - \lambda_{dyn}\,\overline{H(s_t) [\log\rho + (1-\gamma)(1-H(s_t))\log(1-\rho)]}

    Both bars are means over each trajectory's own steps, as in detailed balance: mu gives every trajectory of a batch
    the same weight, and every state of a trajectory the same share of it.
    Neither vanishes at the balanced solution, so both are weighted, and the weights shift the solution; with both zero
    this is the base objective, bit for bit. Averaged over the policy's own outcomes the KL there is that of independent
    intentions and outcomes to their joint law (lautum information): zero only where the outcome tells nothing.
    """
    terms, _ = entropy_loss_terms(scores, batch, config)
    return weighted_sum(base(scores, batch), terms, weights_of(config))


def weights_of(config: EntropyConfig) -> dict[str, float]:
    """The weight of each term."""
    return {"policy_kl_term": config.weight_kl, "dynamics_balance": config.weight_dynamics}


def entropy_loss_terms(
    scores: Scores, batch: Episodes, config: EntropyConfig
) -> tuple[dict[str, Float[Tensor, " B"]], Parts]:
    """Both terms before their weights, one value per trajectory, and all figures of the policy's entropy."""
    terms = entropy_terms(scores, batch, config)
    policy_kl = masked_mean(terms.policy_kl - terms.ratio.log_ratio, batch.valid)
    balance = masked_mean(terms.dynamics_balance, batch.valid)
    return {"policy_kl_term": policy_kl, "dynamics_balance": balance}, entropy_parts(terms, batch)


def kl_entropy_terms(scores: Scores, batch: Episodes, config: TrainConfig) -> tuple[dict[str, Tensor], Parts]:
    """What `kl-entropy` adds to its base, under a whole configuration."""
    return entropy_loss_terms(scores, batch, config.entropy)
