"""Design: orders and what to expect of them, plates of diverse orders, and their files."""

from sgfn.design.ordering import OrderSheet, order, order_sheet
from sgfn.design.orders import OrderValue, PairwiseScore, expected_orders, to_frame, value_orders
from sgfn.design.plate import well_names, write_fasta, write_plate
from sgfn.design.selection import select_plate

__all__ = [
    "OrderSheet",
    "OrderValue",
    "PairwiseScore",
    "expected_orders",
    "order",
    "order_sheet",
    "select_plate",
    "to_frame",
    "value_orders",
    "well_names",
    "write_fasta",
    "write_plate",
]
