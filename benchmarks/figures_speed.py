"""Tables and a figure of speed, from committed results."""

from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from benchmarks.common import RESULTS, read_results, spread

AXES = {"length": "tokens of a sequence", "vocab": "tokens to choose from", "batch": "trajectories of a batch"}
NAMES = {"ours": "sgfn, compiled", "uncompiled": "sgfn", "jax": "JAX, one scan"}
"""Contestants as the tables call them; others by what they say of themselves."""
LOOKS = {"cpu": ("#0b3d91", "o"), "cuda": ("#c53030", "s")}


def name_of(row: dict[str, Any]) -> str:
    """Whose row it is."""
    who, about = str(row["who"]), str(row["about"])
    return NAMES.get(who, about.partition(",")[0])


def speed_table() -> str:
    """Updates per second on a CPU, and how many times as fast ours is."""
    result = read_results("speed_cpu.json")
    heads = [
        "hidden",
        "batch",
        "objective",
        "method",
        "updates/s [range]",
        "trajectories/s",
        "sgfn compiled is",
        "MiB",
        "start, s",
    ]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for row in (row for row in result["rows"] if "error" not in row):
        name = name_of(row)
        rate = "{updates_per_second:,.0f} [{lowest:,.0f}, {highest:,.0f}]".format(**row)
        cells = [row["hidden"], row["batch"], row["objective"], name, rate, f"{row['trajectories_per_second']:,}"]
        cells += [f"{row['ours_is_times']:.2f} x", f"{row['memory_mib']:,.0f}", f"{row['start_seconds']:.0f}"]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join([*lines, "", f"{result['machine']['device']}; torch {result['machine']['torch']}."])


def race_table() -> str:
    """Seconds to the goal, everything included, by the best setting of each."""
    result = read_results("race_cpu.json")
    lines = ["| method | batch | seconds [range] | updates |", "|---|---|---|---|"]
    for who in dict.fromkeys(row["who"] for row in result["rows"]):
        rows = [row for row in result["rows"] if row["who"] == who]
        batch = min({row["batch"] for row in rows}, key=lambda b: max(r["seconds"] for r in rows if r["batch"] == b))
        best = [row for row in rows if row["batch"] == batch]
        seconds = "{:.1f} [{:.1f}, {:.1f}]".format(*spread(row["seconds"] for row in best))
        reached = all(row["tv"] <= result["goal"] for row in best)
        updates = f"{spread(row['updates'] for row in best)[0]:,.0f}" if reached else "not reached"
        lines.append(f"| {name_of(best[0])} | {batch} | {seconds} | {updates} |")
    seeds = len({row["seed"] for row in result["rows"]})
    return "\n".join([*lines, "", f"Medians and ranges over {seeds} seeds; {result['machine']['device']}."])


def scaling_figure() -> Figure:
    """Seconds of an update against length, vocabulary and batch, both axes logarithmic."""
    figure = Figure(figsize=(11.5, 3.9), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(AXES), sharey=True)
    kinds = [kind for kind in LOOKS if (RESULTS / f"scaling_{kind}.json").is_file()]
    results = {kind: read_results(f"scaling_{kind}.json") for kind in kinds}
    for axis, (name, label) in zip(panels, AXES.items(), strict=True):
        sizes: list[int] = []
        for kind, result in results.items():
            rows = [row for row in result["rows"] if row["axis"] == name]
            sizes, (colour, marker) = [row[name] for row in rows], LOOKS[kind]
            times = [1e3 * row["seconds"] for row in rows]
            axis.plot(sizes, times, color=colour, marker=marker, linewidth=1.8, label=result["machine"]["device"])
        axis.set(xscale="log", yscale="log", xlabel=label)
        axis.set_xticks(sizes, [f"{size:,}" for size in sizes], fontsize=8)
        axis.minorticks_off()
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(color="#e4e7eb", linewidth=0.8)
    panels[0].set_ylabel("milliseconds of an update")
    panels[0].legend(frameon=False, fontsize=9, loc="upper left")
    return figure
