"""The reward exponent found while training: raised or lowered until samples reach a wanted mean score."""

import math
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from sgfn.config.digits import figure
from sgfn.landscapes.transforms import ScoreTransform

MOST = 100.0
"""Largest exponent that is tried, unless the run begins with a larger one."""
MEMORY = 0.95
"""Share of the running means that stays at each step."""
HELD = 0.25
"""Share of the steps, the last ones, at which the exponent stays: the policy has to come to rest at it."""
REACH = 6.0
"""The exponent may change by a factor of exp(REACH / steps) at each step, by 90 before it is held; a faster one runs
ahead of the policy, and has to come back."""


class AimedExponent(nn.Module):
    r"""Reward exponent $\beta_t$ that moves by Newton steps towards a mean score m.

    .. math:: \log\beta_{t+1} = \log\beta_t + \mathrm{clip}\Big(\frac{m - E[S]}{\beta_t\,\mathrm{Cov}(S, \log R)},
              \pm\frac{6}{steps}\Big)

    Under the target R^beta/Z the derivative of E[S] by beta is Cov(S, log R), so the step is the right one once the
    policy has followed; mean and covariance are running means over batches. `auto` aims half-way between the mean score
    of the first batch and the best score so far. All numbers stay on the device. The level is given in the user's
    units, from which `shape` leads to the scores S of the landscape, whose mean it is.
    """

    log_beta: Tensor
    moments: Tensor
    level: Tensor

    def __init__(
        self,
        aim: float | Literal["auto"],
        beta: float,
        norm: float,
        steps: int,
        shape: ScoreTransform | None = None,
    ) -> None:
        super().__init__()
        self.shape = shape or ScoreTransform()
        self.auto, self.norm, self.rate = aim == "auto", norm, REACH / steps
        self.moving = (1.0 - HELD) * steps
        self.most = math.log(max(MOST, beta))
        self.register_buffer("log_beta", torch.tensor(math.log(max(beta, 0.01)), dtype=torch.float64))
        self.register_buffer("moments", torch.zeros(5, dtype=torch.float64))  # see `update`
        self.register_buffer(
            "level", torch.tensor(0.0 if isinstance(aim, str) else self.shape.value(aim), dtype=torch.float64)
        )

    @property
    def beta(self) -> Float[Tensor, ""]:
        """The present exponent."""
        return self.log_beta.exp()

    @torch.no_grad()
    def update(self, log_reward: Float[Tensor, " B"], index: Float[Tensor, ""]) -> None:
        """One step, given the log-rewards of a batch of rollouts before the exponent, and the number of the step."""
        log_reward = log_reward.double()
        score = self.norm * log_reward.exp()
        mean = score.mean()
        covariance = ((score - mean) * (log_reward - log_reward.mean())).mean()
        weight, old_mean, old_covariance, best, begun = self.moments.unbind()
        total = weight * MEMORY + (1.0 - MEMORY)
        share = (1.0 - MEMORY) / total  # 1 at the first step
        mean, covariance = torch.lerp(old_mean, mean, share), torch.lerp(old_covariance, covariance, share)
        best, begun = torch.maximum(best, score.max()), torch.where(weight == 0, mean, begun)
        self.moments.copy_(torch.stack([total, mean, covariance, best, begun]))
        if self.auto:
            self.level.copy_((begun + best) / 2.0)
        newton = (self.level - mean) / (self.beta * covariance.clamp(min=1e-12))
        change = torch.where(index < self.moving, newton.clamp(-self.rate, self.rate), 0.0)
        self.log_beta.copy_((self.log_beta + change).clamp(math.log(0.01), self.most))

    def missed(self) -> str:
        """That the wanted score is out of reach, in words with the numbers; empty where it is met to 5 %."""
        wanted, mean, beta = float(self.level), float(self.moments[1]), float(self.beta)
        if mean >= 0.95 * wanted:
            return ""
        aim, found = self.shape.score(wanted), self.shape.score(mean)
        return f"aim {figure(aim)} is not reached: the mean score of samples is {figure(found)} at exponent {beta:.3g}"


def refuse_own_reward(plain: bool, name: str) -> None:
    """Raise where a landscape turns scores into rewards by a rule of its own, so that a mean score is not known."""
    if not plain:
        raise ValueError(f"aim reads scores off rewards, and {name} has its own rule for them: give --beta instead")
