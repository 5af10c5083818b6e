"""Which candidates fill a plate: wells take turns at the rows of an acquisition, and keep a distance."""

from collections.abc import Iterator

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sgfn.design.acquisition import normal_weights
from sgfn.design.distances import distances

LOOKED_AT = 20_000
"""Best candidates, of all rows together, that are looked at."""


def take_turns(
    attraction: Float[Tensor, "K N"],
    count: int,
    free: Bool[Tensor, " N"],
    tokens: Int[Tensor, "N L"],
    distance: int = 1,
    blank: int | None = None,
) -> Int[Tensor, " W"]:
    """Places of chosen candidates in the order of the wells: each well takes the best of its row that is still free.

    Two chosen ones are `distance` apart at least: letters that differ, or edits where rows differ in length and `blank`
    fills them up. Fewer than `count` are returned where no more satisfy that.

    >>> rows, tokens = torch.tensor([[3.0, 2.0, 1.0], [3.0, 1.0, 2.0]]), torch.tensor([[0, 0], [0, 1], [1, 1]])
    >>> take_turns(rows, 2, torch.ones(3, dtype=torch.bool), tokens).tolist()
    [0, 2]
    """
    chosen, taken = list[int](), set[int]()
    queues = [iter(ranked) for ranked in _ranked(attraction, free, count)]
    while len(chosen) < count and queues:
        queue = queues.pop(0)
        place = _next_fit(queue, taken, chosen, tokens, distance, blank)
        if place is not None:
            chosen.append(place)
            taken.add(place)
            queues.append(queue)
    return torch.tensor(chosen, dtype=torch.int64)


def _ranked(attraction: Float[Tensor, "K N"], free: Bool[Tensor, " N"], count: int) -> list[list[int]]:
    """Places of the free candidates of each row, best first."""
    most = min(int(free.sum()), max(LOOKED_AT // len(attraction), 8 * count))
    masked = torch.where(free, attraction, -torch.inf)
    return masked.topk(most, 1).indices.tolist() if most else []


def _next_fit(
    queue: Iterator[int],
    taken: set[int],
    chosen: list[int],
    tokens: Int[Tensor, "N L"],
    distance: int,
    blank: int | None,
) -> int | None:
    """The next place of a queue that is free and far enough from those chosen; None where the queue is empty."""
    for place in queue:
        if place in taken:
            continue
        if distance <= 1 or not chosen:
            return place
        metric = "hamming" if blank is None else "edit"
        if int(distances(tokens[chosen], tokens[place], -1 if blank is None else blank, metric).min()) >= distance:
            return place
    return None


def expected_best(
    known: Float[Tensor, "M R"], outcomes: Float[Tensor, "M D W"], seed: int = 0
) -> Float[Tensor, " W+1"]:
    r"""Expected true score of the best sequence known after the first k wells, for k from 0 on.

    .. math:: E[\max(f(x_1), \dots, f(x_n), f(y_1), \dots, f(y_k))]

    over D draws of f from the normal law with the members' mean and covariance: x were measured, and y comes out of a
    well, of which `outcomes` holds the members' scores in each draw.
    """
    weights = normal_weights(outcomes.shape[1], len(known), seed).to(known.dtype)  # D M
    before = (weights @ known).max(1, keepdim=True).values  # D 1
    drawn = torch.einsum("dm,mdw->dw", weights, outcomes.to(known.dtype))
    return torch.cat([before, drawn], 1).cummax(1).values.mean(0)
