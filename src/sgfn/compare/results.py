"""What a comparison found: one row per cell, and medians over seeds with both ends."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sgfn.compare.cells import FIGURES, CellState
from sgfn.config.csv_cells import csv_text
from sgfn.config.files import write_text
from sgfn.evaluation.seeds import rule, spread
from sgfn.noise import NOISES

COLUMNS = ["task", "method", "alpha", "seed", "status", "error", "step", "trajectories", "seconds", *FIGURES]

Rows = list[dict[str, Any]]


def result_row(state: CellState) -> dict[str, Any]:
    """A line of results.csv; the figures of evaluation are those of a cell that is done."""
    cell = state.cell
    alpha = cell.alpha if NOISES[cell.config.noise.kind].has_level else None
    names = {"task": cell.task, "method": cell.method, "alpha": alpha, "seed": cell.seed}
    spent = {"step": state.step, "trajectories": state.row.get("trajectories", 0), "seconds": state.seconds}
    figures = {key: state.results.get(key) for key in FIGURES}
    return {**names, "status": state.status, "error": state.error, **spent, **figures}


def write_results(path: Path, rows: Rows) -> None:
    """All rows as a CSV; what is not known is left empty."""
    write_text(path, csv_text(COLUMNS, ([row[name] for name in COLUMNS] for row in rows)))


def summarise(rows: Rows) -> Rows:
    """One row per method and noise level, with each figure taken together over the seeds that are done."""
    groups: dict[tuple[str, float | None], Rows] = {}
    for row in rows:
        groups.setdefault((row["method"], row["alpha"]), []).append(row)
    return [_summary(method, alpha, group) for (method, alpha), group in groups.items()]


def _summary(method: str, alpha: float | None, rows: Rows) -> dict[str, Any]:
    done = [row for row in rows if row["status"] == "done"]
    counts = {"seeds": len(rows), "done": len(done), "failed": sum(row["status"] == "failed" for row in rows)}
    figures = {key: together(row[key] for row in done) for key in ("trajectories", "seconds", *FIGURES)}
    return {"method": method, "alpha": alpha, **counts, **figures}


def together(values: Iterable[float | int | None]) -> dict[str, Any] | None:
    """Median and both ends over seeds, and what the ends are; None where nothing is known.

    >>> together([1.0, 2.0, None, 4.0])
    {'median': 2.0, 'low': 1.0, 'high': 4.0, 'ends': 'range'}
    """
    found = spread(values)
    if found is None:
        return None
    return {"median": found.middle, "low": found.low, "high": found.high, "ends": rule([found.count])}
