"""Which candidates fill a plate: wells take turns at the rows of an acquisition, and keep a distance from each other."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

LOOKED_AT = 20_000
"""Best candidates of a row that are looked at."""


def take_turns(
    attraction: Float[Tensor, "K N"],
    count: int,
    free: Bool[Tensor, " N"],
    tokens: Int[Tensor, "N L"],
    distance: int = 1,
) -> Int[Tensor, " W"]:
    """Places of chosen candidates in the order of the wells: each well takes the best of its row that is still free.

    Two chosen ones differ in `distance` places at least (blanks behind shorter ones count as letters). Fewer than
    `count` are returned where no more satisfy that.
    """
    free, chosen = free.clone(), list[int]()
    ranked = _ranked(attraction, free, max(count, 1))
    pointers, exhausted = [0] * len(ranked), set[int]()
    well = 0
    while len(chosen) < count and len(exhausted) < len(ranked):
        row = well % len(ranked)
        place = _next_free(ranked[row], pointers, row, free)
        if place is None:
            exhausted.add(row)
        else:
            chosen.append(place)
            free[place] = False
            if distance > 1:
                free &= (tokens != tokens[place]).sum(-1) >= distance
        well += 1
    return torch.tensor(chosen, dtype=torch.int64)


def _ranked(attraction: Float[Tensor, "K N"], free: Bool[Tensor, " N"], count: int) -> list[list[int]]:
    """Places of the free candidates of each row, best first."""
    masked = torch.where(free, attraction, -torch.inf)
    most = min(int(free.sum()), max(LOOKED_AT // len(attraction), 8 * count))
    return masked.topk(most, 1).indices.tolist() if most else []


def _next_free(ranked: list[int], pointers: list[int], row: int, free: Bool[Tensor, " N"]) -> int | None:
    """The best place of a row that is free; the pointer of the row is moved behind it."""
    while pointers[row] < len(ranked):
        place = ranked[pointers[row]]
        pointers[row] += 1
        if bool(free[place]):
            return place
    return None


def expected_best(values: Float[Tensor, "M W"], best: float, seed: int = 0, draws: int = 512) -> Float[Tensor, " W"]:
    r"""Expected best score after the first k wells and all that was measured, for k from 1 on.

    .. math:: E[\max(b, f(o_1), \dots, f(o_k))]

    over draws of f from the normal law with the members' mean and covariance.
    """
    members = len(values)
    generator = torch.Generator().manual_seed(seed)
    weights = torch.randn(draws, members, generator=generator) / max(members - 1, 1) ** 0.5
    weights = weights - weights.mean(1, keepdim=True) + 1 / members
    drawn = weights.to(values.dtype) @ values  # R W
    return drawn.cummax(1).values.clamp(min=best).mean(0)
