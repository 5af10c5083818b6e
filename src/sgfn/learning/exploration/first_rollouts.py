"""What the first rollouts of a run tell of the target: whether anything may be hidden, that effort would find."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.envs.base import Enumerable, Env

KEPT = 256
"""Rollouts that are kept, the first ones: later ones are of a policy that has made up its mind."""
PEAKED, EVEN = 0.25, 0.35
"""Effective shares of rollouts up to which all effort is spent, and from which on none is."""
LEVEL = 1e-6
"""Difference of log-rewards up to which they are on one level."""


class FirstRollouts:
    r"""Rewards and probabilities of the first rollouts of the policy itself, before it has concentrated on anything.

    A rollout weighs $w = R(x)^\beta / P(x)$, what its object is worth beside how often rollouts end there, and n of
    them are as good as $(\sum w)^2 / \sum w^2$ draws from the target. Where that is a good share of n, for the target
    and for all objects alike ($\beta = 0$), rollouts have been nearly everywhere and nothing there outweighs the
    others: a search beside them finds nothing that they do not.
    """

    log_reward: Float[Tensor, " N"]
    log_weight: Float[Tensor, " N"]
    r"""$-\log P$: of the steps of each rollout, noise included, less the logarithm of a uniform backward policy."""
    count: Int[Tensor, ""]
    """Rollouts that are there."""
    effort: Float[Tensor, ""]
    """How much of their effort ways should spend, as of the last look: from 1, all, to 0 where nothing is hidden."""

    def __init__(self, env: Env, beta: float, device: torch.device) -> None:
        self.log_number = math.log(env.num_objects) if isinstance(env, Enumerable) else None
        self.log_reward = torch.zeros(KEPT, device=device)
        self.log_weight = torch.zeros_like(self.log_reward)
        self.count = torch.zeros((), dtype=torch.int64, device=device)
        self.beta, self.effort = beta, torch.ones((), device=device)

    @property
    def complete(self) -> bool:
        """Whether as many are there as are kept."""
        return int(self.count) == KEPT

    def add(self, log_reward: Float[Tensor, " B"], log_weight: Float[Tensor, " B"]) -> None:
        """Keep more rollouts, as long as there is room."""
        begin = int(self.count)
        more = min(len(log_reward), KEPT - begin)
        self.log_reward[begin : begin + more] = log_reward[:more]
        self.log_weight[begin : begin + more] = log_weight[:more]
        self.count += more

    def look(self, best: Float[Tensor, ""], beta: Float[Tensor, ""]) -> None:
        """Bring the effort up to date, by the highest log-reward so far and the exponent (that of the task if larger).

        All is spent unless it is shown that nothing is hidden, which takes enough rollouts and rewards on two levels.
        """
        value = beta.clamp(min=self.beta) * torch.cat([self.log_reward, best[None]])
        if self.complete and float(value.max() - value.min()) > LEVEL:
            share = min(self.evenness, self.reach, self.worth(value))
            self.effort.fill_(min(1.0, max(0.0, (EVEN - share) / (EVEN - PEAKED))))

    @property
    def evenness(self) -> float:
        """Effective share of the rollouts for all objects alike."""
        return effective_share(self.log_weight)

    @property
    def reach(self) -> float:
        """Share of all objects that rollouts reach, from the mean of 1/P; 1 where objects cannot be counted."""
        if self.log_number is None:
            return 1.0
        return math.exp(min(0.0, float(self.log_weight.logsumexp(0)) - math.log(KEPT) - self.log_number))

    def worth(self, value: Float[Tensor, " M"]) -> float:
        """Effective share for the target, by log-rewards at its exponent: those of the rollouts, and of the best object
        so far, which counts as one more rollout of average probability."""
        average = self.log_weight.logsumexp(0) - math.log(KEPT)
        return effective_share(value + torch.cat([self.log_weight, average[None]]))

    def state(self) -> dict[str, Tensor]:
        """Tensors that a checkpoint keeps."""
        return {name: getattr(self, name) for name in ("log_reward", "log_weight", "count", "effort")}


def effective_share(log_weight: Float[Tensor, " N"]) -> float:
    r"""Effective sample size by the number of weights, $(\sum_i w_i)^2 / (n \sum_i w_i^2)$.

    Reference: Kong (1992), A note on importance sampling using standardized weights, University of Chicago.

    >>> effective_share(torch.tensor([1.0, 1.0, 2.0]).log())  # 16 / (3 * 6)
    0.888888...
    """
    log_size = 2 * log_weight.logsumexp(0) - (2 * log_weight).logsumexp(0)
    return math.exp(float(log_size)) / len(log_weight)
