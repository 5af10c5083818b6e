"""The entropy-ratio objective: any base objective, a policy KL with entropy ratio, and the dynamics balance."""

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor

from sgfn.config import EntropyConfig
from sgfn.envs.trajectories import Episodes
from sgfn.objectives.entropy import entropy_terms
from sgfn.objectives.scores import Scores, masked_mean


def kl_entropy(
    scores: Scores, batch: Episodes, base: Callable[[Scores, Episodes], Tensor], config: EntropyConfig
) -> Float[Tensor, " B"]:
    r"""A base objective plus two regularisers, one value per trajectory; gradients flow through the entropy ratio.

    .. math:: L_{base} + \lambda_{KL}\,\overline{\textstyle\sum_a \pi(a|s_t)
              [\log\pi(a|s_t) - \log\pi_B(a|s_{t+1}) - \log r_\gamma]}
              - \lambda_{dyn} \textstyle\sum_s \mu(s) H(s) [\log\rho + (1-\gamma)(1-H(s))\log(1-\rho)]

    The first bar is a mean over each trajectory's own steps, the sum runs over all states of the batch.
    Neither vanishes at the balanced solution, so both are weighted, and the weights shift the solution; with both zero
    this is the base objective, bit for bit. Averaged over the policy's own outcomes the KL there is that of independent
    intentions and outcomes to their joint law (lautum information): zero only where the outcome tells nothing.
    """
    terms = entropy_terms(scores, batch, config)
    policy_kl = masked_mean(terms.policy_kl - terms.ratio.log_ratio, batch.valid)
    balance = batch.valid.shape[0] * (terms.visits * terms.dynamics_balance).sum(1)  # its mean is the sum over states
    return base(scores, batch) + config.weight_kl * policy_kl + config.weight_dynamics * balance
