"""The table of a plate: a row for each well, with what to expect of its order, in the units of the user's scores."""

from dataclasses import replace

import pandas as pd

from sgfn.design.orders import OrderValue, to_frame, values_in
from sgfn.design.plate import well_names
from sgfn.design.space import OrderSpace
from sgfn.landscapes.proxies import Proxy

SCORES = ("expected", "score")
"""Columns whose sign is turned where low scores are good."""


def describe(
    space: OrderSpace, proxy: Proxy, orders: list[str], measured: list[str], seed: int = 0
) -> list[OrderValue]:
    """What to expect of each order under the noise; scores as the proxy has them, high ones good."""
    channel, automaton = space.env, space.automaton
    return values_in(channel, orders, proxy.predict, automaton=automaton, measured=measured, seed=seed)


def plate_frame(values: list[OrderValue], sign: float = 1.0) -> pd.DataFrame:
    """A row for each well, column `order` first, then plate and well; `sign` is -1 where low scores are good."""
    turned = [replace(value, **{name: sign * getattr(value, name) for name in SCORES}) for value in values]
    table = to_frame(turned)
    size = 96 if len(values) <= 96 else 384
    plates, wells = zip(*well_names(len(values), size), strict=True)
    table.insert(1, "plate", plates)
    table.insert(2, "well", wells)
    return table
