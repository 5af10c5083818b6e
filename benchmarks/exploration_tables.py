"""Tables of the study of exploration, from the committed results: medians over seeds, with the range behind them."""

from typing import Any

from benchmarks.common import RESULTS, read_results, spread

Rows = list[dict[str, Any]]


def rows_of(name: str) -> Rows:
    """Rows of a committed result; none where it is not there yet."""
    return read_results(name)["rows"] if (RESULTS / name).is_file() else []


def ranged(values: list[float], form: str = "{:.2f}") -> str:
    """Median and range; a dash without values."""
    if not values:
        return "-"
    middle, low, high = (form.format(value) for value in spread(values))
    return middle if low == high else f"{middle} ({low} to {high})"


def counts(rows: Rows, key: str) -> str:
    """Median and range of a count."""
    return ranged([row[key] for row in rows], "{:,.0f}")


def calls_to(rows: Rows, key: str) -> str:
    """Median of the calls that a goal took; runs that did not reach it count as later than all that did."""
    found = sorted(row[key] if row[key] is not None else float("inf") for row in rows)
    middle = found[(len(found) - 1) // 2]
    reached = sum(value < float("inf") for value in found)
    said = "never" if middle == float("inf") else f"{middle:,.0f}"
    return said if reached == len(found) else f"{said} ({reached} of {len(found)})"


def table(head: list[str], lines: list[list[str]]) -> str:
    """Rows of text as a table in Markdown."""
    rule = ["---"] * len(head)
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, rule, *lines])


def groups(rows: Rows, keys: tuple[str, ...]) -> dict[tuple[Any, ...], Rows]:
    """Rows by the values of some keys, in the order in which they come."""
    found: dict[tuple[Any, ...], Rows] = {}
    for row in rows:
        found.setdefault(tuple(row[key] for key in keys), []).append(row)
    return found


def ehrlich_table() -> str:
    """Ours beside the genetic algorithm: best score, calls until .75 and 1, distinct objects of at least .75."""
    rivals, lines = groups(rows_of("exploration_rival.json"), ("cell", "alpha")), []
    for (cell, alpha), rows in groups(rows_of("exploration_ehrlich.json"), ("cell", "alpha")).items():
        other = rivals.get((cell, alpha), [])
        first = [cell, f"{alpha:g}", str(len(rows)), ranged([row["best"] for row in rows])]
        reached = [calls_to(rows, "calls_to_0.75"), calls_to(rows, "calls_to_1")]
        lines.append(
            [
                *first,
                *reached,
                counts(rows, "distinct"),
                ranged([row["best"] for row in other]),
                counts(other, "kept"),
                counts(other, "distinct"),
            ]
        )
    head = [
        "function",
        "noise",
        "seeds",
        "best",
        "calls to .75",
        "calls to 1",
        "distinct",
        "GA best",
        "GA keeps",
        "GA saw",
    ]
    return table(head, lines)


def grid_table() -> str:
    """Ways at equal trajectories: calls until all peaks were seen and until the law is near the floor."""
    lines = []
    for (cell, alpha, way), rows in groups(rows_of("exploration_grids.json"), ("cell", "alpha", "way")).items():
        tv = ranged([row["tv"] for row in rows if row["tv"] is not None], "{:.3f}")
        modes = ranged([row["modes"] for row in rows], "{:.0f}")
        goals = [calls_to(rows, "calls_to_all_modes"), calls_to(rows, "calls_to_goal")]
        lines.append([cell, f"{alpha:g}", way, modes, *goals, tv])
    return table(
        ["grid", "noise", "way", "corners seen", "calls to all corners", "calls to goal", "TV at the end"], lines
    )
