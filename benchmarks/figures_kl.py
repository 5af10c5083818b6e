"""Tables and the figure of the KL family, from results/kl_family.json alone; `figures` calls them."""

import statistics
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from benchmarks.common import read_results, spread
from benchmarks.kl_family import ALPHAS, BETAS, METHODS

CELLS = [(beta, alpha) for beta in BETAS for alpha in ALPHAS]
BASE = "marginal TB"
SHOWN = {
    "marginal TB": ("marginal TB", "#0b6e99"),
    "kl, TB flow": ("kl, TB flow", "#c53030"),
    "entropy .5/.1/.1": ("kl-entropy, default", "#6b46c1"),
    "marginal DB": ("marginal DB", "#66b2cc"),
    "published TB": ("published TB", "#b7791f"),
    "published DB": ("published DB", "#ecc06a"),
    "eflow": ("eflow", "#9aa5b1"),
}
"""Methods of the table and the figure: name there, and colour."""


def rows() -> list[dict[str, Any]]:
    """All rows of the study."""
    return read_results("kl_family.json")["rows"]


def seeds(method: str, beta: float, alpha: float) -> list[dict[str, Any]]:
    """Rows of one cell, one per seed."""
    return [r for r in rows() if (r["method"], r["beta"], r["alpha"]) == (method, beta, alpha)]


def median(method: str, beta: float, alpha: float, key: str) -> float:
    """Median over seeds; `gap` is TV above the floor."""
    found = seeds(method, beta, alpha)
    return statistics.median(r["tv"] - r["tv_floor"] if key == "gap" else r[key] for r in found)


def family_table() -> str:
    """TV above the floor, by exponent, noise and method."""
    lines = ["| beta | noise | best reachable | " + " | ".join(name for name, _ in SHOWN.values()) + " |"]
    lines.append("|---" * (len(SHOWN) + 3) + "|")
    widest = 0.0
    for beta, alpha in CELLS:
        values = [f"{median(method, beta, alpha, 'gap'):.4f}" for method in SHOWN]
        marked = [f"**{v}**" if v == min(values) else v for v in values]
        floor = seeds(BASE, beta, alpha)[0]["tv_floor"]
        lines.append(f"| {beta:g} | {alpha:.0%} | {floor:.4f} | " + " | ".join(marked) + " |")
        ranges = [spread(r["tv"] for r in seeds(method, beta, alpha)) for method in SHOWN]
        widest = max([widest, *(high - low for _, low, high in ranges)])
    count = len({r["seed"] for r in rows()})
    lines += [
        "",
        f"Medians over {count} seeds of TV above the floor; no cell's seeds lie more than {widest:.3f} apart.",
    ]
    return "\n".join(lines)


def compared(method: str, key: str, beta: float) -> list[float]:
    """A figure beside marginal TB's at each noise level: ratios for distances and steps, differences for the rest."""
    pairs = [(median(method, beta, alpha, key), median(BASE, beta, alpha, key)) for alpha in ALPHAS]
    return [a / b if key in ("gap", "steps_to_90") else a - b for a, b in pairs]


def entropy_table() -> str:
    """Every method beside marginal TB, as means over the noise levels."""
    lines = [
        "| method | TV above the floor, ratio (beta 3 / 10) | expected reward, difference (3 / 10) "
        "| modes, difference (3 / 10) | steps to 90 %, ratio (3 / 10) |",
        "|---|---|---|---|---|",
    ]
    forms = {"gap": "{:.3f}", "expected_reward": "{:+.4f}", "modes_greedy": "{:+.1f}", "steps_to_90": "{:.2f}"}
    for method in METHODS:
        parts = [" / ".join(f.format(statistics.mean(compared(method, k, b))) for b in BETAS) for k, f in forms.items()]
        lines.append(f"| {method} | " + " | ".join(parts) + " |")
    return "\n".join(lines)


def family_figure() -> Figure:
    """TV above the floor against noise, one panel per exponent."""
    figure = Figure(figsize=(10.6, 4.4), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, len(BETAS))
    for axis, beta in zip(axes, BETAS, strict=True):
        _draw(axis, beta)
    axes[0].set_ylabel("total variation above the floor")
    figure.legend(*axes[0].get_legend_handles_labels(), frameon=False, fontsize=9, loc="outside right center")
    return figure


def _draw(axis: Axes, beta: float) -> None:
    for method, (name, colour) in SHOWN.items():
        gaps = [[r["tv"] - r["tv_floor"] for r in seeds(method, beta, alpha)] for alpha in ALPHAS]
        middle, low, high = zip(*(spread(gap) for gap in gaps), strict=True)
        wide = 2.6 if method in (BASE, "kl, TB flow") else 1.6
        axis.plot(ALPHAS, middle, color=colour, linewidth=wide, marker="o", markersize=4, label=name)
        axis.fill_between(ALPHAS, low, high, color=colour, alpha=0.22, linewidth=0)
    axis.set_title(f"TFBind8, reward exponent {beta:g}", loc="left", fontsize=11)
    axis.set(xlabel="noise: probability that a token slips", ylim=(0, None))
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(axis="y", color="#e4e7eb", linewidth=0.8)
