"""Plates of 96 or 384 wells, and the files in which orders are sent to whoever makes them."""

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Literal

from sgfn.config.csv_cells import csv_text
from sgfn.config.files import write_text
from sgfn.design.orders import OrderValue

PlateSize = Literal[96, 384]
SHAPES: dict[int, tuple[int, int]] = {96: (8, 12), 384: (16, 24)}
"""Rows and columns of a plate, by its wells."""
COLUMNS = ("order", "plate", "well", *(part.name for part in fields(OrderValue) if part.name != "order"))


def well_names(count: int, size: int = 96) -> list[tuple[int, str]]:
    """Plate (from 1) and well of so many orders, row by row: A1 .. A12, B1 .. H12 of 96, A1 .. P24 of 384.

    >>> well_names(98)[0], well_names(98)[12], well_names(98)[-1]
    ((1, 'A1'), (1, 'B1'), (2, 'A2'))
    """
    if size not in SHAPES:
        raise ValueError(f"a plate must have {' or '.join(map(str, SHAPES))} wells, got {size}")
    rows, columns = SHAPES[size]
    names = [f"{chr(ord('A') + row)}{column + 1}" for row in range(rows) for column in range(columns)]
    return [(number // size + 1, names[number % size]) for number in range(count)]


def plate_rows(values: Sequence[OrderValue], size: int = 96) -> list[dict[str, object]]:
    """A row for each order with its plate and well, in the columns of the file."""
    wells = well_names(len(values), size)
    placed = [{"plate": plate, "well": well} | vars(value) for (plate, well), value in zip(wells, values, strict=True)]
    return [{name: row[name] for name in COLUMNS} for row in placed]


def write_plate(path: Path | str, values: Sequence[OrderValue], size: int = 96) -> None:
    """Write a CSV of orders with their wells, column `order` first; whole or absent, and safe in a spreadsheet."""
    rows = ([_figure(cell) for cell in row.values()] for row in plate_rows(values, size))
    write_text(Path(path), csv_text(COLUMNS, rows))


def write_fasta(path: Path | str, values: Sequence[OrderValue], size: int = 96) -> None:
    """Write the orders as FASTA, each named by its plate and well; one line a sequence, however long."""
    wells = well_names(len(values), size)
    lines = [
        f">plate{plate}_{well} expected={value.expected:.6g} intact={value.intact:.6g}\n{value.order}\n"
        for (plate, well), value in zip(wells, values, strict=True)
    ]
    write_text(Path(path), "".join(lines))


def _figure(value: object) -> object:
    """Six digits of a number."""
    return f"{value:.6g}" if isinstance(value, float) else value
