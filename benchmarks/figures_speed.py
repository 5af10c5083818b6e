"""Tables and a figure of speed, from committed results."""

import itertools
from itertools import product
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from benchmarks.common import RESULTS, read_results, spread

AXES = {"length": "tokens of a sequence", "vocab": "tokens to choose from", "batch": "trajectories of a batch"}
NAMES = {"ours": "sgfn, compiled", "uncompiled": "sgfn", "jax": "JAX, one scan"}
"""Contestants as the tables call them; others by what they say of themselves."""
LOOKS = {"cpu": ("#0b3d91", "o"), "cuda": ("#c53030", "s")}
LINES = {"mlp": "-", "transformer": "--"}


def name_of(row: dict[str, Any]) -> str:
    """Name of the contestant of a row."""
    who, about = str(row["who"]), str(row["about"])
    return NAMES.get(who, about.partition(",")[0])


def speed_table(kind: str = "cpu") -> str:
    """Updates per second of each, and how many times as fast ours is."""
    result = read_results(f"speed_{kind}.json")
    rows = [row for row in result["rows"] if "error" not in row]
    names = {row["who"]: name_of(row) for row in rows}
    memory = "device_memory_mib" if kind == "cuda" else "memory_mib"
    heads = ["hidden", "batch", "objective", "trajectories/s", *(f"{name}, updates/s" for name in names.values())]
    heads.append(f"MiB of {names['ours']} / JAX")
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for size in sorted({size_of(row) for row in rows}, key=lambda size: (*size[:2], size[2] != "tb")):
        found = {row["who"]: row for row in rows if size_of(row) == size}
        cells = [f"{size[0]:,}", f"{size[1]:,}", size[2], f"{found['ours']['trajectories_per_second']:,}"]
        cells += [rate_of(found[who]) if who in found else "" for who in names]
        cells.append(" / ".join(f"{found[who][memory]:,.0f}" for who in ("ours", "jax") if who in found))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(
        [*lines, "", starts(rows, names), f"{result['machine']['device']}; torch {result['machine']['torch']}."]
    )


def size_of(row: dict[str, Any]) -> tuple[int, int, str]:
    """Width, batch and objective of the job that was trained."""
    return row["hidden"], row["batch"], row["objective"]


def rate_of(row: dict[str, Any]) -> str:
    """Rate of a contestant as text: ours with its range, others with how many times as fast ours is."""
    digits = 0 if row["updates_per_second"] >= 100 else 1 if row["updates_per_second"] >= 1 else 2
    rate, low, high = (f"{row[key]:,.{digits}f}" for key in ("updates_per_second", "lowest", "highest"))
    return f"**{rate}** [{low}, {high}]" if row["who"] == "ours" else f"{rate} ({row['ours_is_times']:.2f} x)"


def starts(rows: list[dict[str, Any]], names: dict[str, str]) -> str:
    """Note below a table: what its cells mean, and how long each contestant takes before its first updates."""
    found = {name: spread(row["start_seconds"] for row in rows if row["who"] == who) for who, name in names.items()}
    told = ", ".join(f"{name} {low:.0f} to {high:.0f} s" for name, (_, low, high) in found.items())
    meaning = "[slowest, fastest turn]; (n x): compiled sgfn is n times as fast."
    return f"{meaning} Starts, nothing found in a cache: {told}."


def speed_gpu_table() -> str:
    """The same on a GPU."""
    return speed_table("cuda")


def speed_line() -> str:
    """In short, hidden 256: beside others on a CPU and on a GPU."""
    ratios: dict[tuple[str, str], list[float]] = {}
    for kind in LOOKS:
        for row in read_results(f"speed_{kind}.json")["rows"]:
            if row["hidden"] == 256 and "error" not in row:
                ratios.setdefault((kind, row["who"]), []).append(row["ours_is_times"])
    told = {key: f"{min(values):.1f} to {max(values):.1f} times" for key, values in ratios.items()}
    return (
        "Speed, compiled (as runs of 20,000 steps and more are, on a GPU of 100,000), layers of 256, batches of 16 to "
        "4,096: on one H200 "
        f"{told['cuda', 'jax']} that of a hand-written JAX scan of the same algorithm; on 2 CPU cores "
        f"{told['cpu', 'jax']} that scan, {told['cpu', 'gfnx']} gfnx, {told['cpu', 'torchgfn']} torchgfn."
    )


def agreement_table() -> str:
    """How far captured and compiled steps on a GPU are from eager ones."""
    heads = ("objective", "batch", "captured", "compiled", "compiled, noise model", "another seed", "two streams")
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for row in read_results("agreement_cuda.json")["rows"]:
        shown = [row[key] for key in ("graph", "compile", "compile_nll", "other_seed", "overlap")]
        if row["objective"] == "tb":
            shown[2] = None  # there is no noise model
        told = ["" if value is None else "0" if value == 0.0 else f"{value:.1g}" for value in shown]
        lines.append("| " + " | ".join([row["objective"], f"{row['batch']:,}", *told]) + " |")
    meaning = (
        "Largest relative difference from the mean losses of eager steps; last column: compiled with a second stream, "
        "where there is one, from the same in one stream, any number of the state after all steps. In batches of 4,096 "
        "gradients are added up in no fixed order."
    )
    return "\n".join([*lines, "", meaning])


def agreement_long_table() -> str:
    """The same on long sequences, of every objective."""
    heads = ("task, objective", "captured", "compiled", "compiled, noise model", "another seed")
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for row in read_results("agreement_long_cuda.json")["rows"]:
        shown = [row[key] for key in ("graph", "compile", "compile_nll", "other_seed")]
        lines.append(
            "| " + " | ".join([row["case"], *("0" if value == 0.0 else f"{value:.1g}" for value in shown)]) + " |"
        )
    return "\n".join(lines)


LONG_WAYS = {
    "cuda": {"letters": "letter by letter, captured", "graph": "rollouts by a kernel, captured", "compile": "compiled"},
    "cpu": {"compile-float32": "compiled, all products in float32", "compile": "compiled"},
}


def long_quality_table(device: str = "cuda") -> str:
    """What runs of a transformer come to, by the way that their steps are run."""
    rows, ways = read_results(f"long_quality_{device}.json")["rows"], LONG_WAYS[device]
    lines = ["| task | figure | " + " | ".join(ways.values()) + " |", "|---" * (2 + len(ways)) + "|"]
    names = {"motif": "motif, length 30", "ehrlich": "Ehrlich, length 15"}
    figures = {
        "mean_score": "mean score",
        "loss": "mean loss of the last 400 steps",
        "dynamics_nll": "noise model's loss",
    }
    for task, figure in itertools.product(names, figures):
        cells = [spread(row[figure] for row in rows if (row["task"], row["way"]) == (task, way)) for way in ways]
        told = " | ".join("{:.4f} [{:.4f}, {:.4f}]".format(*cell) for cell in cells)
        lines.append(f"| {names[task]} | {figures[figure]} | {told} |")
    return "\n".join(lines)


def compiled_quality_table() -> str:
    """TV of compiled runs on a CPU beside those of the first study."""
    first, compiled = (read_results(name)["rows"] for name in ("tfbind8_quality.json", "compiled_quality.json"))
    lines = ["| noise | objective | compiled on a CPU | the first study, on a GPU |", "|---" * 4 + "|"]
    for alpha, objective in dict.fromkeys((row["alpha"], row["objective"]) for row in compiled):
        cell = {"alpha": alpha, "objective": objective, "form": "marginal"}
        found = [[row["tv"] for row in rows if cell.items() <= row.items()] for rows in (compiled, first)]
        told = ["{:.4f} [{:.4f}, {:.4f}]".format(*spread(values)) for values in found]
        lines.append(f"| {alpha:.0%} | marginal {objective.upper()} | {told[0]} | {told[1]} |")
    return "\n".join(lines)


def sampling_table() -> str:
    """Sequences per second from a model, on both kinds of machine."""
    lines = [
        "| device | what | sequences | per second [slowest, fastest] | memory beyond that of 1,000, MiB |",
        "|---" * 5 + "|",
    ]
    for kind in LOOKS:
        result = read_results(f"sampling_{kind}.json")
        for row in result["rows"]:
            rate = "{sequences_per_second:,} [{slowest:,}, {fastest:,}]".format(**row)
            what = {"draw": "drawn"}.get(row["what"], f"into {row['what']}")
            cells = (result["machine"]["device"], what, f"{row['sequences']:,}", rate, row["more_than_for_1000_mib"])
            lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


BACKENDS = {
    "fixed": "fixed length, compiled",
    "uncompiled": "fixed length",
    "general": "general",
    "autograd": "plain autograd, compiled",
}


def backends_table() -> str:
    """Updates per second of each backend, and of a short step by autograd, on the machines that were timed."""
    lines = ["| machine | batch | " + " | ".join(BACKENDS.values()) + " |", "|---" * (len(BACKENDS) + 2) + "|"]
    for kind in ("cuda", "cpu"):
        if not (RESULTS / f"backends_{kind}.json").is_file():
            continue
        found = read_results(f"backends_{kind}.json")
        for batch in dict.fromkeys(row["batch"] for row in found["rows"]):
            rows = {row["who"]: row for row in found["rows"] if row["batch"] == batch}
            cells = [_backend_cell(rows[who]) for who in BACKENDS]
            lines.append(f"| {found['machine']['device']} | {batch:,} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _backend_cell(row: dict[str, Any]) -> str:
    return "failed" if "failed" in row else f"{row['updates']:,.0f} ({row['of_fixed']:.2f})"


def two_trees_table() -> str:
    """Updates per second of the package before its present layout and after."""
    titles = ("machine", "objective", "batch", "before", "after", "after / before", "in an earlier run")
    lines = ["| " + " | ".join(titles) + " |", "|---" * len(titles) + "|"]
    for kind in ("cuda", "cpu"):
        found = read_results(f"two_trees_{kind}.json")
        for row, earlier in zip(found["rows"], found.get("earlier", [None] * len(found["rows"])), strict=True):
            cells = [row["objective"], f"{row['batch']:,}", f"{row['before']:,.0f}", f"{row['now']:,.0f}"]
            cells += [f"{row['ratio']:.2f}", "-" if earlier is None else f"{earlier:.2f}"]
            lines.append(f"| {found['machine']['device']} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def race_table() -> str:
    """Seconds to the goal, everything included, by the best setting of each."""
    result = read_results("race_cpu.json")
    lines = ["| method | batch | seconds [range] | updates |", "|---|---|---|---|"]
    for who in dict.fromkeys(row["who"] for row in result["rows"]):
        rows = [row for row in result["rows"] if row["who"] == who]
        batch = min({row["batch"] for row in rows}, key=lambda b: max(r["seconds"] for r in rows if r["batch"] == b))
        best = [row for row in rows if row["batch"] == batch]
        seconds = "{:.1f} [{:.1f}, {:.1f}]".format(*spread(row["seconds"] for row in best))
        reached = [row["updates"] for row in best if row["tv"] <= result["goal"]]
        updates = f"{spread(reached)[0]:,.0f}" if reached else "not reached"
        updates += "" if len(reached) in (0, len(best)) else f" (reached with {len(reached)} of {len(best)} seeds)"
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
        ticks: set[int] = set()
        for (kind, result), (encoder, line) in product(results.items(), LINES.items()):
            rows = [row for row in result["rows"] if (row["axis"], row.get("encoder", "mlp")) == (name, encoder)]
            rows = [row for row in rows if "error" not in row]
            sizes, (colour, marker) = [row[name] for row in rows], LOOKS[kind]
            ticks |= set(sizes)
            if rows:
                label_of = f"{result['machine']['device']}, {encoder}"
                times = [1e3 * row["seconds"] for row in rows]
                axis.plot(sizes, times, line, color=colour, marker=marker, linewidth=1.8, label=label_of)
        axis.set(xscale="log", yscale="log", xlabel=label)
        axis.set_xticks(sorted(ticks), [f"{size:,}" for size in sorted(ticks)], fontsize=8)
        axis.minorticks_off()
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(color="#e4e7eb", linewidth=0.8)
    panels[0].set_ylabel("milliseconds of an update")
    figure.legend(*panels[0].get_legend_handles_labels(), frameon=False, loc="outside upper left", ncols=2)
    return figure
