"""Results of `evaluate` in exact.json: read as far as figures, pages and comparisons need them, and checked for it."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from sgfn.config.files import read_json

FILE = "exact.json"
LONGEST_HISTOGRAM = 10_000
DISTRIBUTIONS = ("target", "law", "samples")
COUNTS = {"step": 0, "samples": 1}
"""Whole numbers that are always there, with the least that they may be."""
TEXTS = ("task", "alphabet", "floor_kind", "modes_greedy_rule", "dynamics_model", "tv_absent")
Check = Callable[[Any], bool]


def read_results(folder: Path) -> dict[str, Any]:
    """Results of the run in a folder, with None for figures that are no numbers; empty where there are none."""
    file = folder / FILE
    if not file.is_file():
        return {}
    data = read_json(file)
    if not isinstance(data, dict):
        raise _problem(file, f"an object is expected, got {type(data).__name__}")
    for name, least in COUNTS.items():
        if type(data.get(name)) is not int or not least <= data[name] <= 2**53:
            raise _problem(file, f"{name} must be a whole number from {least} on, got {str(data.get(name))[:40]!r}")
    for name, (right, what) in SHAPES.items():
        if data.get(name) is not None and not right(data[name]):
            raise _problem(file, f"{name} must be {what}")
    for name in data.keys() - SHAPES.keys():
        if not isinstance(data[name], int | float | None):
            raise _problem(file, f"{name} must be a number or null, got {type(data[name]).__name__}")
    wild = {name for name, value in data.items() if type(value) in (int, float) and not _number(value)}
    return {name: None if name in wild else value for name, value in data.items()}


def _problem(file: Path, what: str) -> ValueError:
    return ValueError(f"{file}: {what}; remove it and evaluate the run again")


def _number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < 1e300


def _pairs(value: Any) -> bool:
    """Whether these are texts with a score each."""
    return isinstance(value, list) and all(
        isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) and _number(pair[1]) for pair in value
    )


def _orders(value: Any) -> bool:
    """Whether these are orders, each with what to expect of it."""
    figures = ("expected", "intact", "score")
    return isinstance(value, list) and all(
        isinstance(order, dict) and isinstance(order.get("order"), str) and all(_number(order.get(n)) for n in figures)
        for order in value
    )


def _histogram(value: Any) -> bool:
    """Whether these are rising edges with a share of each distribution between any two, or nothing at all."""
    if not isinstance(value, dict) or not all(
        isinstance(row, list) and all(map(_number, row)) and len(row) <= LONGEST_HISTOGRAM for row in value.values()
    ):
        return False
    edges = value.get("edges", [])
    shares = {name: row for name, row in value.items() if name != "edges"}
    if not edges:
        return not any(shares.values())
    rising = all(low < high for low, high in pairwise(edges))
    fits = all(len(row) == len(edges) - 1 and min(row, default=0) >= 0 for row in shares.values())
    return len(edges) > 1 and rising and fits and not shares.keys().isdisjoint(DISTRIBUTIONS)


def _kernel(value: Any) -> bool:
    """Whether these are two tables of shares, a row for each intention and a column for each outcome, with names."""
    if not isinstance(value, dict) or value.keys() != {"intentions", "outcomes", "true", "learned"}:
        return False
    rows, columns = value["intentions"], value["outcomes"]
    if not all(isinstance(n, list) and len(n) <= 1000 and all(isinstance(x, str) for x in n) for n in (rows, columns)):
        return False
    return all(
        isinstance(table, list)
        and len(table) == len(rows) > 0
        and all(isinstance(row, list) and len(row) == len(columns) > 0 and all(map(_share, row)) for row in table)
        for table in (value["true"], value["learned"])
    )


def _share(value: Any) -> bool:
    return value is None or (_number(value) and 0 <= value <= 1.000001)


SHAPES: dict[str, tuple[Check, str]] = {
    "histogram": (_histogram, "edges in rising order with a share between any two"),
    "designs": (_pairs, "a list of texts with their scores"),
    "modes": (_pairs, "a list of texts with their scores"),
    "kernel": (_kernel, "names and two tables of shares, true and learned"),
    "orders": (_orders, "a list of orders with expected, intact and score"),
    **{name: (lambda value: isinstance(value, str), "a text") for name in TEXTS},
}
"""Figures that are no single numbers: what they must be."""
