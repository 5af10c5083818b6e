"""Design: orders and what to expect of them, plates of diverse orders, and their files."""

from sgfn.design.orders import OrderValue, PairwiseScore, expected_orders, to_frame, value_orders
from sgfn.design.plate import well_names, write_fasta, write_plate
from sgfn.design.search import feasible_orders, local_search
from sgfn.design.selection import select_plate

__all__ = [
    "OrderValue",
    "PairwiseScore",
    "expected_orders",
    "feasible_orders",
    "local_search",
    "select_plate",
    "to_frame",
    "value_orders",
    "well_names",
    "write_fasta",
    "write_plate",
]
