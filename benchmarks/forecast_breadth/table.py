"""The table of the forecasting panel: every method relative to seasonal naive, by data set and over all of them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.common import RESULTS, read_results

Row = dict[str, Any]
BASE = "seasonal naive"
CLASSICAL = ("seasonal naive", "AutoETS", "AutoTheta", "AutoARIMA", "MSTL+ETS", "CrostonSBA")
SCORING = " scoring"
"""How names of our rows of an earlier scoring end."""
ENOUGH = 100
"""Values from which a data set's coverage is judged."""
COVERED = (0.72, 0.88)
TIED = 0.02
"""Two methods tie on a data set where their WQL differ by no more."""
NEAR = 1.10
"""A method is near the best single classical one on a data set where its WQL is at most this multiple of it."""


def relative(rows: Sequence[Row], score: str) -> dict[str, dict[str, float]]:
    """Scores by data set and method, divided by those of seasonal naive."""
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        if row.get(score) is not None:
            found.setdefault(row["data"], {})[row["method"]] = row[score]
    based = {data: methods for data, methods in found.items() if methods.get(BASE, 0.0) > 0.0}
    return {data: {name: value / methods[BASE] for name, value in methods.items()} for data, methods in based.items()}


def geometric_mean(values: Sequence[float]) -> float:
    """Geometric mean; a score of 0 counts as a thousandth."""
    return float(np.exp(np.mean(np.log(np.maximum(values, 1e-3)))))


def mean_ranks(scores: dict[str, dict[str, float]], methods: Sequence[str]) -> dict[str, float]:
    """Mean rank of each method over the data sets on which all of them were run, 1 is best."""
    whole = [row for row in scores.values() if all(method in row for method in methods)]
    ranks = np.array([[sum(row[a] > row[b] for b in methods) + 1 for a in methods] for row in whole])
    return dict(zip(methods, ranks.mean(0).tolist() if len(whole) else [float("nan")] * len(methods), strict=True))


def summary(rows: Sequence[Row], classical: Sequence[str]) -> list[dict[str, Any]]:
    """Figures of each method over the data sets it was run on, a row per method, best first.

    `against`: geometric mean of its WQL over that of the best single classical method (the one with the smallest
    geometric mean), on the data sets that both were run on. `near`: share of data sets where it is at most 1.10 x the
    best classical method of that data set. `covered`: share of data sets of 100 values or more whose 80 % intervals
    hold 72 to 88 %.
    """
    wql, mase = relative(rows, "wql"), relative(rows, "mase")
    methods = sorted({method for row in wql.values() for method in row})
    everywhere = [m for m in methods if m in classical and all(m in row for row in wql.values())]
    best = min(everywhere, key=lambda m: geometric_mean([row[m] for row in wql.values()]), default=BASE)
    ranks = mean_ranks(wql, [m for m in methods if all(m in row for row in wql.values())])
    found = []
    for method in methods:
        own = [row for row in wql.values() if method in row]
        wide = [r for r in rows if r["method"] == method and r["values"] >= ENOUGH and "coverage_80" in r]
        floors = [min(value for name, value in row.items() if name in classical) for row in own]
        found.append(
            {
                "method": method,
                "sets": len(own),
                "wql": geometric_mean([row[method] for row in own]),
                "mase": geometric_mean([row[method] for row in mase.values() if method in row]),
                "rank": ranks.get(method),
                "against": geometric_mean([row[method] / row[best] for row in own]),
                "near": float(np.mean([row[method] <= NEAR * low for row, low in zip(own, floors, strict=True)])),
                "coverage": float(np.median([row["coverage_80"] for row in wide])) if wide else None,
                "covered": float(np.mean([_holds(row) for row in wide])) if wide else None,
                "seconds": sum(row["cpu_seconds"] for row in rows if row["method"] == method and "cpu_seconds" in row),
            }
        )
    return sorted(found, key=lambda row: row["against"])


def duels(rows: Sequence[Row], ours: str = "sgfn") -> dict[str, tuple[int, int, int]]:
    """How often our WQL is smaller than that of each other method, within `TIED` of it, and larger, by data set."""
    scores, found = relative(rows, "wql"), dict[str, tuple[int, int, int]]()
    for other in sorted({method for row in scores.values() for method in row} - {ours}):
        ratios = np.array([row[ours] / max(row[other], 1e-12) for row in scores.values() if {ours, other} <= set(row)])
        if len(ratios):
            won, lost = int((ratios < 1 - TIED).sum()), int((ratios > 1 + TIED).sum())
            found[other] = (won, len(ratios) - won - lost, lost)
    return found


def _duels(rows: Sequence[Row]) -> str:
    """The duels in one sentence; empty where we were not run."""
    parts = [f"{other} {won}/{tied}/{lost}" for other, (won, tied, lost) in duels(rows).items()]
    return f"\n\nsgfn's data sets won, tied (within {TIED:.0%}) and lost: {', '.join(parts)}." if parts else ""


def _scorings(rows: Sequence[Row], classical: Sequence[str], ours: str = "sgfn") -> str:
    """Earlier scorings and the present one on the data sets that they share, in one sentence; empty where none are."""
    scores = relative(rows, "wql")
    names = sorted({method for row in scores.values() for method in row if method.endswith(SCORING)})
    shared = {data for data, row in scores.items() if {ours, *names} <= set(row)}
    if not names or not shared:
        return ""
    found = {row["method"]: row for row in summary([row for row in rows if row["data"] in shared], classical)}
    told = [f"{name} {found[name]['against']:.3f} and {found[name]['near']:.0%}" for name in (*names, ours)]
    return (
        f"\n\nOn the {len(shared)} data sets of all scorings, WQL relative to the best single method there, and the "
        f"share within 1.10 x the best of each: {', '.join(told)}."
    )


def _holds(row: Row) -> bool:
    return COVERED[0] <= row["coverage_80"] <= COVERED[1]


def breadth_table(rows: Sequence[Row], classical: Sequence[str] | None = None) -> str:
    """Two tables in Markdown: a row per method over all data sets, then WQL relative to seasonal naive by data set."""
    if not rows:
        return "no results yet"
    chosen = classical or [name for name in CLASSICAL if any(row["method"] == name for row in rows)]
    return f"{_overview(rows, chosen)}{_scorings(rows, chosen)}{_duels(rows)}\n\n{_by_data(rows)}"


def breadth_tables() -> str:
    """The tables of both halves and of the fresh part, as far as they were measured, for the page."""
    parts = []
    for half, words in {
        "development": "development half",
        "validation": "validation half",
        "fresh": "fresh part",
    }.items():
        path = RESULTS / f"forecast_breadth_{half}.json"
        if not path.is_file():
            parts.append(f"The {words}: not measured yet.")
            continue
        found = read_results(path.name)
        parts.append(f"The {words}. {' '.join(found['notes'])}\n\n{breadth_table(found['rows'])}")
    return "\n\n".join(parts)


def short_table() -> str:
    """The overview of the short series that were drawn for development, with the notes of their file."""
    if not (RESULTS / "forecast_short.json").is_file():
        return "not measured yet"
    found = read_results("forecast_short.json")
    return f"{_overview(found['rows'], CLASSICAL)}\n\n{' '.join(found['notes'])}"


def _overview(rows: Sequence[Row], classical: Sequence[str]) -> str:
    lines = [
        "| method | data sets | WQL | MASE | mean rank | WQL / best single | within 1.10 x the best of each "
        "| in 80 % (median) | 72 to 88 % | CPU s |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in summary(rows, classical):
        rank = "" if row["rank"] is None else f"{row['rank']:.1f}"
        covered = ("", "") if row["coverage"] is None else (f"{row['coverage']:.2f}", f"{row['covered']:.0%}")
        lines.append(
            f"| {row['method']} | {row['sets']} | {row['wql']:.3f} | {row['mase']:.3f} | {rank} | {row['against']:.3f} "
            f"| {row['near']:.0%} | {covered[0]} | {covered[1]} | {row['seconds']:,.0f} |"
        )
    return "\n".join(lines)


def _by_data(rows: Sequence[Row]) -> str:
    scores = relative(rows, "wql")
    methods = [m for m in (*CLASSICAL, "equal weights") if any(m in row for row in scores.values())]
    methods += sorted({m for row in scores.values() for m in row} - set(methods))
    base = {row["data"]: row["wql"] for row in rows if row["method"] == BASE and "wql" in row}
    lines = [f"| data | WQL of {BASE} | {' | '.join(methods[1:])} |", "|---" * (len(methods) + 1) + "|"]
    for data, found in sorted(scores.items()):
        least = min(found.values())
        cells = [_cell(found.get(method), least) for method in methods[1:]]
        lines.append(f"| {data} | {base[data]:.4f} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(value: float | None, least: float) -> str:
    if value is None:
        return ""
    return f"**{value:.2f}**" if value <= least else f"{value:.2f}"
