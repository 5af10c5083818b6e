"""Projection of a law onto those that noise allows: in closed form for uniform slip, by iteration for any kernel."""

import torch
from jaxtyping import Float, Float64
from torch import Tensor

GAP = 1e-9
"""Largest difference in KL between a projection found by iteration and the optimum."""


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


def nearest_law(
    conditional: Float64[Tensor, "N K"], kernel: Float64[Tensor, "N A K"]
) -> tuple[Float64[Tensor, "N A"], Float64[Tensor, "N K"]]:
    r"""Policy and law nearest to c under any kernel: $\min_\pi KL(c \,\|\, \pi^T P)$, row by row, within `GAP`.

    Outcomes that no intention reaches are left out of c. The gap is bounded by convexity:

    .. math:: KL(c\|\bar P) - \min \le \max_a \sum_k c_k P(k|a)/\bar P_k - 1
    """
    rows = max(1, 4_000_000 // kernel[0].numel()) if len(kernel) else 1  # blocks of rows, to bound memory
    policies = [_interior_point(c, p) for c, p in zip(conditional.split(rows), kernel.split(rows), strict=True)]
    policy = torch.cat(policies)
    return policy, torch.einsum("na,nak->nk", policy, kernel)


def _interior_point(c: Float64[Tensor, "N K"], kernel: Float64[Tensor, "N A K"]) -> Float64[Tensor, "N A"]:
    r"""Policy that solves $\min_{\pi \ge 0} -\sum_k c_k \log(\pi^T P)_k + \sum_a \pi_a$, by an interior-point method.

    The solution sums to one without a constraint. Primal-dual: Newton's method on $\nabla = z,\ \pi z = \mu$ with mu
    going to zero.
    """
    c = torch.where((kernel > 0).any(-2), c, 0.0)
    total = c.sum(-1, keepdim=True)
    c = torch.where(total > 0, c / total, (kernel > 0).any(-2) / (kernel > 0).any(-2).sum(-1, keepdim=True))
    useful = ((kernel > 0) & (c > 0)[:, None, :]).any(-1).double()  # N A: intentions that give some wanted outcome
    kernel = kernel * useful[..., None]
    policy, slack = useful / useful.sum(-1, keepdim=True) + 1e-3, torch.ones_like(useful)
    gap = torch.full_like(total, torch.inf)
    for _ in range(200):
        law = torch.einsum("na,nak->nk", policy, kernel)
        weight = torch.where(c > 0, c / law.clamp(min=1e-300), 0.0)  # N K
        pull = torch.einsum("nak,nk->na", kernel, weight)
        gap = (pull.amax(-1) * (policy * useful).sum(-1) - 1.0)[:, None]
        if bool((gap <= GAP / 10).all()):
            break
        centre = (0.1 * (policy * slack).mean(-1, keepdim=True)).clamp(min=1e-13)
        curved = kernel * torch.where(c > 0, weight / law.clamp(min=1e-300), 0.0)[:, None, :]
        matrix = curved @ kernel.transpose(-1, -2) + torch.diag_embed(slack / policy)
        move = torch.linalg.solve(matrix, pull - 1.0 + centre / policy)
        turn = (centre - slack * move) / policy - slack
        step = torch.minimum(_room(policy, move), _room(slack, turn))
        policy, slack = policy + step * move, slack + step * turn
    if not float(gap.max()) <= GAP:  # true for nan, too
        raise RuntimeError(f"the projection onto the noise kernel stopped {float(gap.max()):.1e} from the optimum")
    return policy * useful / (policy * useful).sum(-1, keepdim=True)


def _room(value: Float64[Tensor, "N A"], move: Float64[Tensor, "N A"]) -> Float64[Tensor, "N 1"]:
    """Longest step, at most one, after which all entries are still positive."""
    reach = torch.where(move < 0, -value / move, torch.inf).amin(-1, keepdim=True)
    return (0.99 * reach).clamp(max=1.0)
