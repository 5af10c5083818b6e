"""Tables of the studies on noise and long sequences: motif, hidden rate, confusion matrix; `figures` calls them."""

from typing import Any

from benchmarks.common import read_results, spread


def told(values: list[float], digits: int = 4) -> str:
    """Median and range."""
    return "{:.{d}f} [{:.{d}f}, {:.{d}f}]".format(*spread(values), d=digits)


def motif_table() -> str:
    """KL and expected score at length 30, beside the exact answers."""
    rows = read_results("motif.json")["rows"]
    lines = [
        "| beta | objective | KL from the target | least reachable | ignoring noise | expected score | best reachable "
        "| target | log Z (exact) |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for beta, objective in dict.fromkeys((r["beta"], r["objective"]) for r in rows):
        runs = [r for r in rows if (r["beta"], r["objective"]) == (beta, objective)]
        first = runs[0]
        kl, score = told([r["kl"] for r in runs]), told([r["score"] for r in runs], 3)
        known = f"{first['kl_floor']:.4f} | {first['kl_blind']:.4f} | {score} | {first['floor_score']:.3f}"
        log_z = f"{spread(r['log_z'] for r in runs)[0]:.2f} ({first['log_z_exact']:.2f})"
        lines.append(f"| {beta:g} | `{objective}` | {kl} | {known} | {first['target_score']:.3f} | {log_z} |")
    errors = max(r["kl_error"] for r in rows), max(r["score_error"] for r in rows)
    count = read_results("motif.json")["samples"]
    note = f"Medians and ranges over 3 seeds. Standard errors of single estimates ({count:,} samples) are at most "
    return "\n".join([*lines, "", note + "{:.4f} for KL and {:.3f} for the score.".format(*errors)])


def thought_table() -> str:
    """With and without a memory under a hidden rate."""
    rows = read_results("thought.json")["rows"]
    cells = [{key: r[key] for key in ("task", "explore", "objective")} for r in rows if r["method"] == "target"]
    lines = [
        "| task | objective | uniform intentions | thought encoder | TV | expected score (target) "
        "| NLL of the noise model | NLL of the exact filter |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for cell in cells:
        wanted = next(r["expected_score"] for r in rows if {**cell, "method": "target"}.items() <= r.items())
        for method in ("without", "with"):
            runs = [r for r in rows if {**cell, "method": method}.items() <= r.items()]
            tv = told([r["tv"] for r in runs]) if "tv" in runs[0] else "too many histories"
            score = told([r.get("expected_score", r.get("sample_mean")) for r in runs])
            nll = told([r["dynamics_nll"] for r in runs])
            filtered = spread(r["dynamics_entropy"] for r in runs)[0]
            described = f"`{cell['task']}` | `{cell['objective']}` | {cell['explore']:.0%} | {method}"
            lines.append(f"| {described} | {tv} | {score} ({wanted:.4f}) | {nll} | {filtered:.4f} |")
    return "\n".join(lines)


def confusion_line() -> str:
    """How well a confusion matrix is recovered."""
    rows: list[dict[str, Any]] = read_results("confusion.json")["rows"]
    network, counts = told([r["dynamics_tv"] for r in rows]), told([r["tv_counts"] for r in rows])
    return f"Mean TV to the true matrix: network {network}, counts of 4,096 trajectories {counts}; {len(rows)} seeds."


def soft_table() -> str:
    """Where soft reinforcement learning ends at best."""
    rows = read_results("soft_optimum.json")["rows"]
    lines = [
        "| noise | `tau = 1` | nearest `tau` (in tenths) | best reachable law |",
        "|---|---|---|---|",
    ]
    for alpha in dict.fromkeys(row["alpha"] for row in rows):
        mine = [row for row in rows if row["alpha"] == alpha]
        best, plain = min(mine, key=lambda row: row["tv"]), next(row for row in mine if row["temperature"] == 1.0)
        nearest = f"{best['tv']:.4f} at {best['temperature']:.1f}"
        lines.append(f"| {alpha:.0%} | {plain['tv']:.4f} | {nearest} | {plain['tv_floor']:.4f} |")
    return "\n".join(lines)


def forecast_table() -> str:
    """The forecaster beside the baselines on the same windows."""
    rows = read_results("forecast.json")["rows"]
    lines = [
        "| data | method | MASE | WQL | in 80 % | training, CPU minutes |",
        "|---|---|---|---|---|---|",
    ]
    for data, method in dict.fromkeys((r["data"], r["method"]) for r in rows):
        runs = [r for r in rows if (r["data"], r["method"]) == (data, method)]
        figures = [[r[key] for r in runs] for key in ("mase", "wql", "coverage_80")]
        if method.startswith("sgfn"):
            cells = [told(figures[0], 3), told(figures[1], 4), told(figures[2], 3)]
            minutes = f"{spread(r['cpu_seconds'] for r in runs)[0] / 60:.1f}"
        else:
            cells, minutes = [f"{figures[0][0]:.3f}", f"{figures[1][0]:.4f}", f"{figures[2][0]:.3f}"], ""
        lines.append(f"| {data} | {method} | " + " | ".join([*cells, minutes]) + " |")
    seeds = len({r["seed"] for r in rows if r["method"] == "sgfn"})
    device = read_results("forecast.json")["machine"]["device"]
    return "\n".join([*lines, "", f"Medians and ranges over {seeds} seeds; {device}."])
