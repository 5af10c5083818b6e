"""Tables of the studies of channels, from the committed results alone."""

from typing import Any

import numpy as np

from benchmarks.design_tables import compared
from benchmarks.exploration_tables import Rows, groups, rows_of, table

FRESH = 100
"""The first of the repeats that were run after the intervals were settled."""
MODELS = {"uniform": "one rate of each kind", "letter": "rates by letter"}


def coverage(rows: Rows) -> dict[str, float]:
    """Share of repeats in which each rate lay in its interval."""
    names = list(rows[0]["rates"]) if rows else []
    found = {name: [row["rates"][name] for row in rows] for name in names}  # true, estimate, low, high
    return {name: float(np.mean([low <= true <= high for true, _, low, high in own])) for name, own in found.items()}


def rates_table() -> str:
    """How often intervals of 90 % hold the true rates, over the repeats of each channel."""
    lines = []
    for model, words in MODELS.items():
        rows = [row for row in rows_of("channels_rates.json") if row["model"] == model]
        lines += [_rates_line(f"{words}, {seen}", part) for seen, part in parts(rows).items() if part]
    head = ["channel", "repeats", "rates", "substitutions", "deletions", "insertions", "mean of all rates"]
    return table([*head, "worst rate"], lines)


def parts(rows: Rows) -> dict[str, Rows]:
    """Repeats that the intervals were corrected on, and those that nobody had looked at."""
    return {
        "first repeats": [row for row in rows if row["seed"] < FRESH],
        "fresh repeats": [row for row in rows if row["seed"] >= FRESH],
    }


def _rates_line(words: str, rows: Rows) -> list[str]:
    held = coverage(rows)
    worst = min(held, key=lambda name: held[name])
    kinds = [held[name] for name in ("substitution", "deletion", "insertion")]
    every = [f"{np.mean(list(held.values())):.0%}", f"{held[worst]:.0%} ({worst})"]
    return [words, str(len(rows)), str(len(held)), *(f"{value:.0%}" for value in kinds), *every]


def exact_table() -> str:
    """Plates by value and by score if intact, and single orders beside stepwise policies, all exact."""
    lines = []
    for row in rows_of("channels_exact.json"):
        gain = 100 * (row["aware"] / row["unaware"] - 1)
        plates = [f"{row['aware']:.3f}", f"{row['unaware']:.3f}", f"{gain:.1f} %"]
        ways = [f"{row[name]:.3f}" for name in ("best_order", "stepwise_0", "stepwise_2")]
        lines.append([row["cell"], *plates, *ways])
    head = ["setting", "plate, aware", "unaware", "gain", "best order", "stepwise", "stepwise, 2 spare cycles"]
    return table(head, lines)


def orders_table() -> str:
    """Expected realised score of plates from a proxy, aware of the channel and not, and their regret."""
    rows, lines = rows_of("channels_orders.json"), []
    for cell in dict.fromkeys(row["cell"] for row in rows):
        found = {
            method: {row["seed"]: row for row in rows if (row["cell"], row["method"]) == (cell, method)}
            for method in ("greedy", "greedy-unaware")
        }
        seeds = sorted(found["greedy"].keys() & found["greedy-unaware"].keys())
        if not seeds:
            continue
        aware, unaware = ([_of(found[name], seeds, "expected")] for name in found)
        regrets = [np.mean(_of(found[name], seeds, "regret")) for name in found]
        means = [f"{np.mean(part):.3f}" for part in (aware, unaware)]
        lines.append([cell, str(len(seeds)), *means, *(f"{r:.3f}" for r in regrets), *compared(aware[0], unaware[0])])
    head = ["setting", "seeds", "aware", "unaware", "regret, aware", "unaware"]
    return table([*head, "aware wins/ties/losses", "difference (95 %)"], lines)


def steps_table() -> str:
    """A trained stepwise sampler, its designs as whole orders, and the best policy and order there are."""
    known, lines = {row["cell"]: row for row in rows_of("channels_exact.json")}, []
    for (cell, spare), rows in groups(rows_of("channels_steps.json"), ("cell", "spare")).items():
        mean = {key: float(np.mean([row[key] for row in rows])) for key in ("stepwise", "as_orders", "whole", "tv")}
        ends = [row["stepwise"] for row in rows]
        sampled = f"{mean['stepwise']:.3f} ({min(ends):.3f} to {max(ends):.3f})"
        exact = [f"{known[cell][name]:.3f}" for name in (f"stepwise_{spare}", "best_order")]
        intact = [f"{mean['as_orders']:.3f}", f"{100 * mean['whole']:.0f} %", f"{mean['tv']:.2f}"]
        lines.append([cell, str(spare), str(len(rows)), sampled, *intact, *exact])
    head = ["setting", "spare cycles", "seeds", "sampler, step by step", "its designs as orders", "whole", "TV"]
    return table([*head, "best policy", "best order"], lines)


def _of(rows: dict[int, dict[str, Any]], seeds: list[int], name: str) -> list[float]:
    return [rows[seed][name] for seed in seeds]


TABLES = {
    "channels-rates": rates_table,
    "channels-exact": exact_table,
    "channels-orders": orders_table,
    "channels-steps": steps_table,
}
