"""Noise kernels: the law that links an intended action to the realised outcome."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class UniformSlip:
    r"""With probability alpha a slippable action is replaced by a uniform draw from the slippable set S.

    .. math:: P(k|s,a) = (1-\alpha)\,1[k=a] + \alpha\,1[k \in S]/|S| \quad (a \in S), \qquad 1[k=a] \quad (a \notin S)

    Reference: Pan et al. (2023), Stochastic Generative Flow Networks, UAI.
    """

    alpha: float

    def kernel(self, slippable: Bool[Tensor, "*batch A"], dtype: torch.dtype) -> Float[Tensor, "*batch A K"]:
        """Rows are intentions, columns outcomes; every row sums to one."""
        inside = slippable.to(dtype)  # A
        spread = inside / inside.sum(-1, keepdim=True).clamp(min=1.0)  # K
        slip = (self.alpha * inside)[..., None]  # A 1
        kept = torch.eye(inside.shape[-1], dtype=dtype, device=inside.device) * (1.0 - slip)
        return kept + slip * spread[..., None, :]

    def project(
        self, conditional: Float[Tensor, "N K"], slippable: Bool[Tensor, "N K"]
    ) -> tuple[Float[Tensor, "N A"], Float[Tensor, "N K"]]:
        r"""The policy whose outcome law is nearest to a target conditional in forward KL, and that law.

        Noise moves mass only within the slippable set S, so the mass of S is kept and water-filling acts inside it:

        .. math:: \bar P_k = m\,\max(\nu c_k/m,\ \alpha/|S|), \quad m = \sum_{k \in S} c_k,
                  \qquad \pi_k = (\bar P_k - \alpha m/|S|)/(1-\alpha)
        """
        inside = slippable.to(conditional.dtype)
        size = inside.sum(-1, keepdim=True).clamp(min=1.0)
        mass = (conditional * inside).sum(-1, keepdim=True)
        floor = self.alpha * inside / size
        share = torch.where(mass > 0, conditional * inside / mass.clamp(min=1e-300), inside / size)
        law = water_fill(share, floor) * mass
        policy = ((law - floor * mass) / (1.0 - self.alpha)).clamp(min=0.0)
        outside = conditional * (1.0 - inside)
        return policy + outside, law + outside


def water_fill(share: Float[Tensor, "N K"], floor: Float[Tensor, "N K"]) -> Float[Tensor, "N K"]:
    r"""The law $\max(\nu c_k, f_k)$ with $\nu$ such that it sums to one: $\arg\min_{p \ge f} KL(c\|p)$.

    Entries leave the proportional part in order of c/f, so at most K rounds of pinning find the exact set.
    Rows whose share sums to zero (nothing to fill) are returned as zeros.
    """
    pinned = torch.zeros_like(share, dtype=torch.bool)
    for _ in range(share.shape[-1]):
        free_mass = 1.0 - (floor * pinned).sum(-1, keepdim=True)
        nu = free_mass / (share * ~pinned).sum(-1, keepdim=True).clamp(min=1e-300)
        pinned = pinned | (nu * share < floor)
    free_mass = 1.0 - (floor * pinned).sum(-1, keepdim=True)
    nu = free_mass / (share * ~pinned).sum(-1, keepdim=True).clamp(min=1e-300)
    filled = torch.where(pinned, floor, nu * share)
    return torch.where(share.sum(-1, keepdim=True) > 0, filled, torch.zeros_like(share))
