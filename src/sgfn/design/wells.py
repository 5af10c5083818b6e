"""What to expect of each well: its order's value under the noise, its chance to come out intact, its nearest neighbour."""

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.design.search import LARGEST_EXACT
from sgfn.design.space import OrderSpace
from sgfn.design.values import OrderValues, Predict, by_blocks, exact_values
from sgfn.envs.violations import violation_probabilities
from sgfn.evaluation.likelihood import log_law
from sgfn.evaluation.orders import order_policy
from sgfn.landscapes.proxies import Proxy
from sgfn.landscapes.words import edit_distance

DRAWS = 128
"""Outcomes of each order from which its value is estimated where it is not exact."""


def describe(
    space: OrderSpace, proxy: Proxy, orders: Int[Tensor, "W L"], measured: list[str], sign: float = 1.0, seed: int = 0
) -> pd.DataFrame:
    """A row for each well, the order first; scores in the units of the table.

    `expected` is V(o) with its standard deviation `sd` over the proxy, `predicted` the score if the order comes out
    intact, `intact` the probability of that, `violates` that what comes out breaks a constraint.
    """
    texts = space.decode(orders)
    alone = proxy.predict(texts)
    columns: dict[str, object] = {"order": texts, "well": wells(len(texts))}
    if space.silent:
        columns["expected"], columns["sd"] = sign * np.asarray(alone.mean), np.asarray(alone.sd)
    else:
        values = order_values(space, proxy.member_tokens, orders, seed)
        columns["expected"], columns["sd"] = sign * values.mean(0).numpy(), values.std(0, correction=0).numpy()
    columns["predicted"] = sign * np.asarray(alone.mean)
    columns["intact"] = log_law(space.env, order_policy(space.env, orders), orders).exp().numpy()
    if space.automaton is not None:
        columns["violates"] = violation_probabilities(space.automaton, orders, space.noise).numpy()
    columns["nearest"], columns["distance"] = nearest(space, orders, measured)
    return pd.DataFrame(columns)


def order_values(
    space: OrderSpace, predict: Predict, orders: Int[Tensor, "W L"], seed: int = 0
) -> Float[Tensor, "M W"]:
    """V_m(o) of a few orders: exact where all outcomes can be listed, else from many draws."""
    env = space.env
    if env.stop or env.num_objects > LARGEST_EXACT:
        return OrderValues(space, predict, DRAWS, seed)(orders)
    return exact_values(space, by_blocks(predict, env.all_objects()))[:, env.object_index(orders)]


def nearest(space: OrderSpace, orders: Int[Tensor, "W L"], measured: list[str]) -> tuple[list[str], list[int]]:
    """The nearest of some sequences to each order, and their distance: Hamming, or edits where lengths vary."""
    blank = space.vocab
    width = max(space.max_length, *map(len, measured))
    code = {letter: number for number, letter in enumerate(space.alphabet)}
    rows = torch.full((len(measured), width), blank)
    for place, text in enumerate(measured):
        rows[place, : len(text)] = torch.tensor([code[letter] for letter in text])
    found = []
    for order in orders:
        word = order[order < blank]
        if space.varies or width > space.max_length:
            distance = edit_distance(rows, word, blank)
        else:
            distance = (rows != order).sum(-1)
        place = int(distance.argmin())
        found.append((measured[place], int(distance[place])))
    return [text for text, _ in found], [distance for _, distance in found]


def wells(count: int) -> list[str]:
    """Names of wells, column by column, of 96-well plates or, for more orders, of 384-well plates; P1, P2, ... before
    them where there are several.

    >>> wells(3), wells(97)[16], wells(400)[-1]
    (['A01', 'B01', 'C01'], 'A02', 'P2-P01')
    """
    rows, columns = (8, 12) if count <= 96 else (16, 24)
    size, several = rows * columns, count > rows * columns
    names = [f"{chr(ord('A') + place % rows)}{place // rows + 1:02d}" for place in range(min(count, size))]
    plates = [f"P{number // size + 1}-{names[number % size]}" if several else names[number] for number in range(count)]
    return plates
