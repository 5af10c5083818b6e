"""Figures and the README's tables, from the committed results alone: `make figures`."""

import math
from functools import partial
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from benchmarks.channel_tables import TABLES as CHANNEL_TABLES
from benchmarks.common import read_results, spread
from benchmarks.design_tables import TABLES as DESIGN_TABLES
from benchmarks.exploration_tables import TABLES as EXPLORATION_TABLES
from benchmarks.figures_kl import entropy_table, family_figure, family_table
from benchmarks.figures_published import (
    published_bits_table,
    published_grid_table,
    tfbind8_equal_table,
    tfbind8_figure,
    tfbind8_top_table,
    tfbind8_tv_table,
)
from benchmarks.figures_speed import (
    agreement_long_table,
    agreement_table,
    backends_table,
    compiled_quality_table,
    long_quality_table,
    race_table,
    sampling_table,
    scaling_figure,
    speed_gpu_table,
    speed_line,
    speed_table,
    two_trees_table,
)
from benchmarks.figures_speed_real import TABLES as REAL_SPEED_TABLES
from benchmarks.figures_tasks import confusion_line, forecast_table, motif_table, soft_table, thought_table
from benchmarks.forecast_breadth.slips import slips_table
from benchmarks.forecast_breadth.spreads import spreads_table
from benchmarks.forecast_breadth.strengths import strengths_table
from benchmarks.forecast_breadth.table import breadth_tables, short_table
from benchmarks.forecast_cost import cost_table
from benchmarks.libraries.tables import TABLES as LIBRARY_TABLES
from benchmarks.old_new import old_new_table
from benchmarks.scale.figures import TABLES as SCALE_TABLES
from benchmarks.scale.figures import scale_figure
from sgfn.config.files import replacing, write_text

ROOT = Path(__file__).parent.parent
NAMES = {
    ("marginal", "tb"): "marginal TB (default)",
    ("marginal", "db"): "marginal DB",
    ("published", "tb"): "published TB",
    ("published", "db"): "published DB",
    ("blind", "db"): "noise-blind DB",
}
COLOURS = dict(zip(NAMES, ("#0b6e99", "#66b2cc", "#b7791f", "#ecc06a", "#9aa5b1"), strict=True))
FLOOR = "#2f855a"


def group(rows: list[dict[str, Any]], key: str) -> dict[tuple[float, str, str], tuple[float, float, float]]:
    """(alpha, form, objective) -> median, lowest and highest of a figure over seeds."""
    cells: dict[tuple[float, str, str], list[float]] = {}
    for row in rows:
        cells.setdefault((row["alpha"], row["form"], row["objective"]), []).append(row[key])
    return {cell: spread(values) for cell, values in cells.items()}


def quality_table() -> str:
    """TV on TFBind8 by noise level and objective."""
    rows = read_results("tfbind8_quality.json")["rows"]
    cells, floors = group(rows, "tv"), {row["alpha"]: row["tv_floor"] for row in rows}
    seeds = len({row["seed"] for row in rows})
    lines = [
        "| noise | best reachable | " + " | ".join(NAMES.values()) + " |",
        "|---" * (len(NAMES) + 2) + "|",
    ]
    for alpha, floor in floors.items():
        values = [f"{cells[alpha, *method][0]:.3f}" for method in NAMES]
        best = min(values)
        marked = [f"**{v}**" if v == best else v for v in values]
        lines.append(f"| {alpha:.0%} | {floor:.3f} | " + " | ".join(marked) + " |")
    widest = math.ceil(1000 * max(high - low for _, low, high in cells.values())) / 1000
    lines.append("")
    lines.append(f"Medians over {seeds} seeds; no cell's seeds lie more than {widest:.3f} apart.")
    return "\n".join(lines)


def preset_rows() -> list[dict[str, Any]]:
    """All runs of the presets."""
    files = ("tfbind8_exact_tb.json", "tfbind8_exact_kl.json", "tfbind8_frugal_tb.json")
    return [row for file in files for row in read_results(file)["rows"]]


def presets_table() -> str:
    """What the presets reach."""
    lines = [
        "| preset | objective | noise | TV, median [range] | best reachable | trajectories | seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    names = {"tb": "marginal TB", "kl": "`kl`"}
    for case in dict.fromkeys((r["preset"], r["objective"], r["alpha"]) for r in preset_rows()):
        rows = [r for r in preset_rows() if (r["preset"], r["objective"], r["alpha"]) == case]
        tv = "{:.4f} [{:.4f}, {:.4f}]".format(*spread(row["tv"] for row in rows))
        seconds = spread(row["seconds"] for row in rows)[0]
        count, floor = f"{rows[0]['trajectories']:,}", f"{rows[0]['tv_floor']:.4f}"
        preset, objective, alpha = case
        head = f"| `{preset}` | {names[objective]} | {alpha:.0%} | {tv} | "
        lines.append(f"{head}{floor} | {count} | {seconds:.0f} |")
    seeds = len({row["seed"] for row in preset_rows()})
    device = read_results("tfbind8_exact_tb.json")["machine"]["device"]
    lines += ["", f"{seeds} seeds, one {device}, set-up included."]
    return "\n".join(lines)


def subtb_table() -> str:
    """Sub-trajectory balance beside its neighbours."""
    rows = read_results("subtb.json")["rows"]
    alphas = sorted({row["alpha"] for row in rows})
    lines = ["| method | " + " | ".join(f"TV at {alpha:.0%} noise, median [range]" for alpha in alphas) + " |"]
    lines.append("|---" * (len(alphas) + 1) + "|")
    for method in dict.fromkeys(row["method"] for row in rows):
        cells = [spread(r["tv"] for r in rows if (r["method"], r["alpha"]) == (method, alpha)) for alpha in alphas]
        lines.append(f"| {method} | " + " | ".join("{:.4f} [{:.4f}, {:.4f}]".format(*cell) for cell in cells) + " |")
    return "\n".join(lines)


def demo_line() -> str:
    """What `make demo` trains to, and how long."""
    result = read_results("demo_cpu.json")
    rows = result["rows"]
    seconds, (tv, low, high) = spread(row["seconds"] for row in rows)[0], spread(row["tv"] for row in rows)
    beside = (
        f"best reachable {rows[0]['tv_floor']:.3f}, solved perfectly but ignoring the noise {rows[0]['tv_blind']:.3f}"
    )
    took = f"The demo's training takes {seconds:.0f} s on {result['machine']['device']}"
    seen = f"{rows[0]['trajectories']:,} trajectories, median and range of {len(rows)} seeds"
    return f"{took}, to a TV of {tv:.3f} [{low:.3f}, {high:.3f}] ({beside}; {seen})."


TABLES = {
    **SCALE_TABLES,
    "demo": demo_line,
    "quality": quality_table,
    "presets": presets_table,
    "published-tv": tfbind8_tv_table,
    "published-equal": tfbind8_equal_table,
    "published-top": tfbind8_top_table,
    "grid": published_grid_table,
    "bits": published_bits_table,
    "speed-line": speed_line,
    "speed": speed_table,
    "speed-gpu": speed_gpu_table,
    "sampling": sampling_table,
    "agreement": agreement_table,
    "agreement-long": agreement_long_table,
    "long-quality": long_quality_table,
    "long-quality-cpu": partial(long_quality_table, "cpu"),
    "compiled-quality": compiled_quality_table,
    "race": race_table,
    "backends": backends_table,
    "two-trees": two_trees_table,
    "old-new": old_new_table,
    "family": family_table,
    "entropy": entropy_table,
    "subtb": subtb_table,
    "motif": motif_table,
    "thought": thought_table,
    "confusion": confusion_line,
    "soft": soft_table,
    "forecast": forecast_table,
    "breadth": breadth_tables,
    "forecast-short": short_table,
    "spreads": spreads_table,
    "slips": slips_table,
    "strengths": strengths_table,
    "forecast-cost": cost_table,
    **EXPLORATION_TABLES,
    **DESIGN_TABLES,
    **REAL_SPEED_TABLES,
    **LIBRARY_TABLES,
    **CHANNEL_TABLES,
}
PAGES = (
    *("README.md", "docs/results.md", "docs/objectives.md", "docs/peers.md", "docs/forecast.md"),
    *("docs/exploration.md", "docs/design.md", "docs/libraries.md", "docs/scale.md"),
)


def with_tables(text: str) -> str:
    """A page with every marked table written anew."""
    for name, table in TABLES.items():
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        if begin in text:
            head, _, rest = text.partition(begin)
            text = f"{head}{begin}\n{table()}\n{end}{rest.partition(end)[2]}"
    return text


def quality_figure() -> Figure:
    """TV above the floor against noise, all objectives."""
    rows = read_results("tfbind8_quality.json")["rows"]
    cells, floors = group(rows, "tv"), {row["alpha"]: row["tv_floor"] for row in rows}
    figure = Figure(figsize=(8.2, 4.3), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    axis = figure.subplots()
    alphas = list(floors)
    for method, name in NAMES.items():
        middle, low, high = zip(*(cells[alpha, *method] for alpha in alphas), strict=True)
        wide = 2.6 if "default" in name else 1.7
        axis.plot(alphas, middle, color=COLOURS[method], linewidth=wide, marker="o", markersize=4, label=name)
        axis.fill_between(alphas, low, high, color=COLOURS[method], alpha=0.25, linewidth=0)
    _presets_points(axis)
    axis.fill_between(alphas, 0, list(floors.values()), color=FLOOR, alpha=0.12, linewidth=0)
    axis.plot(alphas, list(floors.values()), color=FLOOR, linestyle="--", linewidth=1.6, label="best reachable")
    axis.set(xlabel="noise: probability that a token slips", ylabel="total variation to the target", ylim=(0, 0.36))
    axis.set_title("TFBind8, 12,000 updates of 256: exact distance to the target", loc="left", fontsize=11)
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(axis="y", color="#e4e7eb", linewidth=0.8)
    axis.legend(frameon=False, fontsize=9, loc="upper left", ncols=2)
    return figure


def _presets_points(axis: Axes) -> None:
    for preset, objective, marker in (("exact", "tb", "*"), ("exact", "kl", "P"), ("frugal", "tb", "D")):
        rows = [r for r in preset_rows() if (r["preset"], r["objective"]) == (preset, objective)]
        alphas = sorted({row["alpha"] for row in rows})
        medians = [spread(r["tv"] for r in rows if r["alpha"] == a)[0] for a in alphas]
        size, name = 90 if marker == "*" else 42, f"preset `{preset}`" + (", kl" if objective == "kl" else "")
        axis.scatter(alphas, medians, marker=marker, s=size, color="#c53030", zorder=5, label=name)


PICTURES = {
    "tfbind8_quality": quality_figure,
    "kl_family": family_figure,
    "published_tfbind8": tfbind8_figure,
    "scaling": scaling_figure,
    "scale": scale_figure,
}


def main() -> None:
    """Rebuild everything that is drawn from committed results."""
    for name, picture in PICTURES.items():
        with replacing(ROOT / "docs" / "figures" / f"{name}.png") as aside:
            picture().savefig(aside, dpi=140, format="png")
    for page in (ROOT / page for page in PAGES):
        write_text(page, with_tables(page.read_text(encoding="utf-8")))
    print("figures and tables are up to date")


if __name__ == "__main__":
    main()
