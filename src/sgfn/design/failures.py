"""What sequences that failed have in common: neighbouring letters that no other sequence has.

Many assays have a floor, and what cannot be made or folded sits on it. A search that edits good sequences should not
pay again for what is known to end there.
"""

from dataclasses import replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sgfn.design.space import OrderSpace

FEWEST = 2
"""Sequences with the lowest score at least, all of them equal, that are taken for failures."""


def failed_neighbours(
    tokens: Int[Tensor, "N L"], scores: Float[Tensor, " N"], vocab: int
) -> Bool[Tensor, "W W"] | None:
    """Which letter followed by which occurs in sequences on the floor of the scores and in no other; None where none.

    >>> failed_neighbours(torch.tensor([[0, 0], [0, 1], [0, 1]]), torch.tensor([1.0, 0.0, 0.0]), 2).nonzero().tolist()
    [[0, 1]]
    """
    failed = scores == scores.min()
    if int(failed.sum()) < FEWEST or bool(failed.all()):
        return None
    found = _neighbours(tokens[failed], vocab) & ~_neighbours(tokens[~failed], vocab)
    return found if bool(found.any()) else None


def _neighbours(tokens: Int[Tensor, "N L"], vocab: int) -> Bool[Tensor, "W W"]:
    """Which letter is followed by which in any row; ends do not count."""
    found = torch.zeros(vocab + 1, vocab + 1, dtype=torch.bool)
    found[tokens[:, :-1].flatten(), tokens[:, 1:].flatten()] = True
    found[vocab], found[:, vocab] = False, False
    return found


def avoiding(space: OrderSpace, failures: str, tokens: Int[Tensor, "N L"], scores: Float[Tensor, " N"]) -> OrderSpace:
    """The space of orders in which searches avoid what only failures have, unless they are ignored.

    `scores` are what is maximised.
    """
    if failures == "ignore" or not len(tokens):
        return space
    return replace(space, avoided=failed_neighbours(tokens, scores, space.vocab))
