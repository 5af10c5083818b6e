"""The table of a plate: a row for each well, with what to expect of its order, in the units of the user's scores."""

import pandas as pd

from sgfn.design.orders import OrderValue, to_frame, values_in
from sgfn.design.plate import well_names
from sgfn.design.space import OrderSpace
from sgfn.design.units import UserUnits


def describe(
    space: OrderSpace, units: UserUnits, orders: list[str], measured: list[str], seed: int = 0
) -> list[OrderValue]:
    """What to expect of each order under the noise, in the user's units: expectations are of what is maximised."""
    more = {"automaton": space.automaton, "measured": measured, "seed": seed, "failed": space.failed}
    return values_in(space.channel, orders, units.values, shown=units.transform.predictions, **more)


def plate_frame(values: list[OrderValue]) -> pd.DataFrame:
    """A row for each well, column `order` first, then plate and well."""
    table = to_frame(values)
    size = 96 if len(values) <= 96 else 384
    plates, wells = zip(*well_names(len(values), size), strict=True)
    table.insert(1, "plate", plates)
    table.insert(2, "well", wells)
    return table
