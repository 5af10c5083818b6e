"""Tables of the studies of libraries, from the committed results alone."""

from typing import Any

from benchmarks.exploration_tables import Rows, rows_of, table

HOW = {
    "coordinate": "coordinate ascent",
    "pairs": "two sites at once",
    "flow": "flow network, its best draw",
    "flow+pairs": "two sites at once from its best draws",
    "percent": "percent, steps of 10",
}


def spread(rows: Rows, key: str, value: Any, figure: str, digits: int = 3) -> str:
    """Median of a figure over seeds, and its range."""
    found = sorted(float(row[figure]) for row in rows if row[key] == value)
    middle = (found[(len(found) - 1) // 2] + found[len(found) // 2]) / 2
    return f"{middle:.{digits}f} ({found[0]:.{digits}f} to {found[-1]:.{digits}f})"


def count(rows: Rows, key: str, value: Any) -> str:
    """How many seeds there are."""
    return str(sum(row[key] == value for row in rows))


def known_table() -> str:
    """E[f] of each search with the whole table known."""
    rows, lines = rows_of("libraries_known.json"), []
    for how, name in HOW.items():
        if any(row["how"] == how for row in rows):
            best = max((row for row in rows if row["how"] == how), key=lambda row: row["expected"])
            seconds = spread(rows, "how", how, "cpu_seconds", 0).partition(" ")[0]
            figures = [count(rows, "how", how), spread(rows, "how", how, "expected", 4), seconds]
            lines.append([name, *figures, best["codons"] if how != "percent" else "in the file"])
    return table(["search", "seeds", "E[f], median (range)", "CPU s", "best library"], lines)


def rounds_table() -> str:
    """What a second library brings after 96 clones of NNK."""
    rows, lines = rows_of("libraries_rounds.json"), []
    for name in dict.fromkeys(row["library"] for row in rows):
        here = [row for row in rows if row["library"] == name]
        mean, half = interval([row["best"] for row in here])
        figures = [f"{mean:.3f}" + (f" ± {half:.3f}" if half > 5e-4 else "")]
        figures += [spread(rows, "library", name, figure) for figure in ("best", "clones_best", "all_best")]
        lines.append([name, str(len(here)), *figures])
    heads = ["second library", "seeds", "E[best of 96], mean", "median (range)", "best of 96 clones drawn"]
    return table([*heads, "best of all 192"], lines)


def interval(values: list[float]) -> tuple[float, float]:
    """Mean and half the width of its 95 % interval, by the normal law."""
    mean = sum(values) / len(values)
    if len(values) < 2:
        return mean, 0.0
    variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return mean, 1.96 * (variance / len(values)) ** 0.5


def pools_table() -> str:
    """Divergence of pools from the target."""
    rows = rows_of("libraries_pools.json")
    lines = []
    for number in dict.fromkeys(row["libraries"] for row in rows):
        name = "stepwise network" if number == 0 else str(number)
        figures = [spread(rows, "libraries", number, figure) for figure in ("kl", "tv")]
        lines.append([name, count(rows, "libraries", number), *figures])
    return table(["libraries", "seeds", "KL to p*, nats, median (range)", "total variation"], lines)


TABLES = {"libraries-known": known_table, "libraries-rounds": rounds_table, "libraries-pools": pools_table}
