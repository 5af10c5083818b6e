"""Tables and JSON that the command line prints, from plain results alone."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.table import Table

from sgfn.cli.streams import Output, results
from sgfn.config.names import BLIND

out = Output()
DISTANCES = ("tv", "kl", "tv_floor")
"""Figures of a comparison that are no scores."""


def print_json(data: Any) -> None:
    """JSON to standard output."""
    with results() as stream:
        stream.write(json.dumps(data, indent=2) + "\n")


def print_catalogue(listed: Sequence[Mapping[str, Any]]) -> None:
    """All tasks, as a table."""
    table = Table(box=None, header_style="bold")
    for label in ("task", "objects", "letters", "exact", "beta"):
        table.add_column(label, no_wrap=True)
    table.add_column("what it is")
    for row in listed:
        letters = row["alphabet"] or "-"
        letters = letters if len(letters) <= 4 else str(len(letters))
        beta = "-" if row["beta"] is None else f"{row['beta']:g}"
        about = row["summary"] if row["needs"] is None else f"{row['summary']}; needs {row['needs']}{is_there(row)}"
        table.add_row(row["task"], count(row["objects"]), letters, row["exact"] or "-", beta, about)
    out.print(table)
    out.print("exact: yes by enumeration, or by a formula at any size; flags of each task: sgfn tasks --help")


def is_there(row: Mapping[str, Any]) -> str:
    """Whether an extra is installed; a flag speaks for itself."""
    return (" (installed)" if row["ready"] else " (missing)") if row["needs"].startswith("sgfn[") else ""


def count(value: int | None) -> str:
    """All digits of a number that one can read, the first three of a larger one."""
    if value is None:
        return "-"
    digits = str(value)
    return f"{value:,}" if len(digits) <= 9 else f"{digits[0]}.{digits[1:3]}e{len(digits) - 1}"


def print_facts(facts: Mapping[str, Any]) -> None:
    """What is known of a task, as a table."""
    table = Table(box=None, show_header=False, title=f"{facts['task']}: {facts['summary']}", title_justify="left")
    for label, text in fact_lines(facts):
        table.add_row(label, text)
    out.print(table)


def number(value: float | None) -> str:
    """Four decimals, or a dash for what is not known."""
    return "-" if value is None else f"{value:.4f}"


def score(value: float | None, decimals: int = 4) -> str:
    """A score with some decimals, or four digits where these say little: of very small and of very large ones.

    >>> score(0.5), score(0.5, 3), score(2.5e-9), score(1234567.0), score(None)
    ('0.5000', '0.500', '2.5e-09', '1.235e+06', '-')
    """
    if value is None:
        return "-"
    return f"{value:.{decimals}f}" if value == 0 or 0.01 <= abs(value) < 1e6 else f"{value:.4g}"


def fact_lines(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Facts of a task with their labels, line by line."""
    size = f"{count(facts['objects'])} ({count(facts['states'])} states, up to {facts['horizon']} steps)"
    best = "unknown" if facts["maximum"] is None else score(facts["maximum"])
    label = "best score, the lowest" if facts.get("minimise") else "highest score"
    lines = [("objects", size), ("letters", facts["alphabet"] or "-"), (label, best)]
    if "optimum" in facts:
        lines.append(("  reached by", facts["optimum"]))
    if not facts["exact"]:
        why = "too many states" if facts["listed"] else "the environment does not list its states and objects"
        return [*lines, ("enumerated", f"no: {why}"), *formula_lines(facts)]
    return [
        *lines,
        ("mean, top-100 mean", f"{score(facts['mean'])}, {score(facts['top100_mean'])}"),
        (f"at {facts['noise']}, beta {facts['beta']:g}:", ""),
        ("  best reachable TV", f"{number(facts['tv_floor'])}  ({facts['floor_kind']})"),
        ("  ignoring the noise", number(facts["tv_blind"])),
        ("  uniform policy", f"{facts['tv_uniform']:.4f}"),
        (
            "  expected score",
            f"{score(facts['floor_expected_reward'])} of the target's {score(facts['target_expected_reward'])}",
        ),
    ]


def formula_lines(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Facts that need no enumeration."""
    if "log_z" not in facts:
        return []
    return [
        (f"at {facts['noise']}, beta {facts['beta']:g}, by formula:", ""),
        ("  log Z", f"{facts['log_z']:.4f}"),
        ("  least reachable KL", number(facts.get("floor_kl"))),
        (
            "  expected score",
            f"{score(facts.get('floor_expected_reward'))} of the target's {score(facts['target_expected_reward'])}",
        ),
    ]


def print_result(result: Mapping[str, Any]) -> None:
    """The table of a run's figures."""
    table = Table("", "policy", "best reachable", "target", box=None, header_style="bold", title_justify="left")
    for line in result_lines(result):
        table.add_row(*line)
    out.print(table)
    out.print(f"greedy modes: {result['modes_greedy_rule']}; best reachable: {result.get('floor_kind', 'not known')}")
    if result["tv"] is not None and result["tv_blind"] is not None:
        out.print(f"ignoring noise: {BLIND}", soft_wrap=True)
    if result.get("tv_absent"):
        out.print(f"no TV to the target: {result['tv_absent']}", soft_wrap=True)
    if result.get("minimise"):
        out.print(
            "scores are those of the table, low ones are good: the best, and the top 100, are the lowest",
            soft_wrap=True,
        )
    if result["novelty"] is not None:
        out.print("novelty: mean distance of a sample to the nearest object known beforehand", soft_wrap=True)
    if not result["bound_by_floor"]:
        out.print("a chain looks at what came out before it accepts: the best reachable law does not bind it")


def result_lines(r: Mapping[str, Any]) -> list[tuple[str, str, str, str]]:
    """Rows of the table of a run's figures."""
    lines = []
    if r["tv"] is not None:
        gap = None if r["tv_floor"] is None else r["tv"] - r["tv_floor"]
        lines += [
            ("TV to target", f"{r['tv']:.4f}", number(r["tv_floor"]), "0"),
            *([("gap to best reachable", number(gap), "0", "")] if r["bound_by_floor"] else []),
            ("  ignoring noise / uniform", f"{number(r['tv_blind'])} / {number(r['tv_uniform'])}", "", ""),
            (
                "expected score",
                score(r["expected_reward"]),
                score(r["floor_expected_reward"]),
                score(r["target_expected_reward"]),
            ),
        ]
    else:
        floor, wanted = r["floor_expected_reward"], r["target_expected_reward"]
        lines.append(("mean score of samples", score(r["sample_mean"]), score(floor), score(wanted)))
        if r["kl"] is not None:
            lines.append(
                ("KL from target, estimate", f"{r['kl']:.4f} +- {r['kl_error']:.4f}", number(r["kl_floor"]), "0")
            )
    modes = "" if r["modes_reference"] is None else f"{r['modes_reference']} of {r['modes_reference_total']}"
    return [
        *lines,
        (
            f"top-100 mean, median of {r['samples']:,}",
            f"{score(r['top100_mean'])}, {score(r['top100_median'])}",
            "",
            "",
        ),
        ("modes, greedy", number(r["modes_greedy"]) if r["modes_greedy"] is None else str(r["modes_greedy"]), "", ""),
        ("modes, known ones found", modes, "", ""),
        *([] if r["diversity"] is None else [("diversity, mean distance of two", number(r["diversity"]), "", "")]),
        *([] if r["novelty"] is None else [("novelty", number(r["novelty"]), "", "")]),
        ("noise model, mean TV to truth", number(r["dynamics_tv"]), "", ""),
    ]


def print_orders(result: Mapping[str, Any]) -> None:
    """Print the best orders and what to expect of each."""
    if not result["orders"]:
        return
    rows = [(o["order"], score(o["expected"], 3), f"{o['intact']:.0%}", score(o["score"], 3)) for o in result["orders"]]
    out.print("\nBest new ones to order (expect: mean score of what comes out under the noise)", soft_wrap=True)
    print_aligned(("order", "expect", "comes out intact", "score if intact"), rows)


def print_aligned(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    """Rows under a header, in columns as wide as they need: no sequence is cut, however narrow the terminal."""
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]
    for row in (header, *rows):
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        out.print(f" {line}", soft_wrap=True, markup=False, highlight=False, style="bold" if row is header else None)


def print_comparison(summary: list[dict[str, Any]]) -> None:
    """Medians over seeds with both ends, one row per method and noise level."""
    from sgfn.evaluation.seeds import rule  # numpy is slow to import

    exact = any(row["tv"] for row in summary)
    figures = {"TV to target": "tv"} if exact else {"mean score": "sample_mean"}
    if not exact and any(row["kl"] for row in summary):
        figures["KL from target"] = "kl"
    single = {"best": "tv_floor", "score": "expected_reward"} if exact else {}
    single |= {"top-100": "top100_mean", "modes": "modes_reference"}
    table = Table(box=None, header_style="bold", padding=(0, 1, 0, 0))  # fits into 80 columns
    table.add_column("method", no_wrap=True)
    for label in ("noise", "seeds", *figures, *single):
        table.add_column(label, justify="right", no_wrap=True)
    for row in summary:
        spreads = [spread(row[key], number if key in DISTANCES else score) for key in figures.values()]
        noise = "-" if row["alpha"] is None else f"{row['alpha']:g}"
        medians = [middle(row, key) for key in single.values()]
        table.add_row(row["method"], noise, seeds(row), *spreads, *medians)
    out.print(table)
    best = "best: reachable TV, score: expected, " if exact else ""
    ends = rule(row["done"] for row in summary)
    out.print(f"medians over seeds{f' [{ends}]' if ends else ''}; {best}modes: known ones found", soft_wrap=True)


def seeds(row: dict[str, Any]) -> str:
    """How many seeds are done, of how many where some are not."""
    return str(row["done"]) if row["done"] == row["seeds"] else f"{row['done']} of {row['seeds']}"


def middle(row: dict[str, Any], key: str) -> str:
    """The median of a figure; of a count without decimals."""
    value = row[key] and row[key]["median"]
    if value is not None and key.startswith("modes"):
        return f"{value:g}"
    return number(value) if key in DISTANCES else score(value)


def spread(value: dict[str, float] | None, text: Callable[[float], str] = number) -> str:
    """A median with both ends, where there are several values."""
    if value is None:
        return "-"
    median, low, high = (text(value[key]) for key in ("median", "low", "high"))
    return median if low == high else f"{median} [{low}, {high}]"
