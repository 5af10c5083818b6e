"""Tables and a figure of the published settings: ours beside peers, the reported values and the exact limits.

Reported values are read from the figures of Pan et al. (2023), UAI. A cell that was not run yet stays empty.
"""

from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from benchmarks.common import read_results, spread
from benchmarks.figures_tasks import told
from sgfn.compare.figure import STYLES

Rows = list[dict[str, Any]]
ORDER = (
    *("kl-replay", "kl", "tb", "published-db", "blind-db", "eflow", "a2c", "ppo", "sac", "mh", "mars", "random"),
    *("tb-equal", "published-db-equal", "blind-db-equal", "ppo-equal", "sac-equal"),
)
FIGURES = {"top100_mean": 4, "modes_greedy": 0, "modes_reference": 0}
"""What 2,048 samples show, and with how many digits."""
REPORTED_TOP100 = {
    "blind-db": (0.921, 0.884, 0.883),
    "published-db": (0.955, 0.958, 0.946),
    "a2c": (0.84, 0.85, 0.83),
    "sac": (0.90, 0.89, 0.89),
    "mh": (0.81, 0.81, 0.76),
}
REPORTED_TFBIND8_MODES = {
    "blind-db": (18.3, 18.3, 19.7),
    "published-db": (32.7, 30.7, 32.0),
    "a2c": (9.7, 9.0, 8.0),
    "sac": (12.3, 11.0, 11.0),
    "mh": (7.3, 6.0, 4.3),
}
REPORTED_L1 = {
    "blind-db": (0.0111, 0.0128, 0.0137),
    "published-db": (0.00139, 0.0035, 0.0112),
    "ppo": (0.0187, 0.0184, 0.0173),
    "mh": (0.0164, 0.0169, 0.0155),
}
REPORTED_L1_TB = {"noise-blind TB": (0.0076, 0.0127, 0.0148), "stochastic TB": (0.00138, None, 0.0128)}
"""Of methods that were not run in the form they were reported in."""
REPORTED_MODES = {
    (4, "stochastic"): (17.8, 17.6, 17.0),
    (2, "stochastic"): (14.4, 15.4, 12.4),
    (4, "noise-blind"): (9.3, 12.6, 9.8),
    (2, "noise-blind"): (1.6, 0.8, 1.0),
}


def chosen(rows: Rows, **wanted: Any) -> Rows:
    """Rows with the given values; `__` in a name stands for a point."""
    named = {name.replace("__", "."): value for name, value in wanted.items()}
    return [row for row in rows if named.items() <= row.items() and "failed" not in row]


def figure_of(rows: Rows, key: str, digits: int) -> str:
    """Median and range of a figure as text; a dash where there is none."""
    values = [row[key] for row in rows if row.get(key) is not None]
    return told(values, digits) if values else "—"


def lines_of(header: list[str], body: list[list[str]]) -> str:
    """A table in Markdown."""
    return "\n".join("| " + " | ".join(row) + " |" for row in [header, ["---"] * len(header), *body])


def methods_in(rows: Rows) -> list[str]:
    """Methods that were run, ours first."""
    there = {row["method"] for row in rows}
    return [name for name in ORDER if name in there]


def tfbind8_tv_table() -> str:
    """Exact distance on the published budget."""
    return tv_table("tfbind8") + " Chains have no law of a policy to measure."


def tfbind8_equal_table() -> str:
    """Exact distance with the network, the replay and the number of updates of `kl-replay` for everybody."""
    return tv_table("tfbind8-equal")


def tv_table(study: str) -> str:
    """Exact distance by method, exponent and noise."""
    rows = chosen(read_results(f"published_{study}.json")["rows"])
    cells = sorted({(row["beta"], row["alpha"]) for row in rows})
    here = {(beta, alpha): chosen(rows, beta=beta, alpha=alpha) for beta, alpha in cells}
    floors = [next(row["tv_floor"] for row in here[cell] if row.get("tv_floor") is not None) for cell in cells]
    body = [["best reachable", *(f"{floor:.4f}" for floor in floors)]]
    for method in methods_in(rows):
        shown = [figure_of(chosen(here[cell], method=method), "tv", 4) for cell in cells]
        if shown != ["—"] * len(shown):
            body.append([f"`{method}`", *shown])
    counts = [
        len(found) for cell in cells for method in methods_in(rows) if (found := chosen(here[cell], method=method))
    ]
    fewest, most = min(counts), max(counts)
    seeds = f"Medians and ranges over {most if fewest == most else f'{fewest} to {most}'} seeds."
    header = ["method", *(f"exponent {beta:g}, {alpha:.0%} noise" for beta, alpha in cells)]
    return lines_of(header, body) + "\n\n" + seeds


def tfbind8_top_table() -> str:
    """The best hundred among 2,048 samples, and modes by both definitions."""
    rows, exact = (read_results(f"published_{name}.json")["rows"] for name in ("tfbind8", "ceiling"))
    body = []
    for beta in sorted({row["beta"] for row in rows}):
        for i, alpha in enumerate(sorted({row["alpha"] for row in rows})):
            best = chosen(exact, beta=beta, alpha=alpha)
            shown = [figure_of(best, key, digits) for key, digits in FIGURES.items()]
            body.append([f"{beta:g}", f"{alpha:.0%}", "exact law", shown[0], "", *shown[1:], ""])
            for method in methods_in(chosen(rows, beta=beta, alpha=alpha)):
                runs = chosen(rows, beta=beta, alpha=alpha, method=method)
                known = method in REPORTED_TOP100 and beta == 3.0
                reported = f"{REPORTED_TOP100[method][i]:.3f}" if known else ""
                modes = f"{REPORTED_TFBIND8_MODES[method][i]:g}" if known else ""
                shown = [figure_of(runs, key, digits) for key, digits in FIGURES.items()]
                body.append([f"{beta:g}", f"{alpha:.0%}", f"`{method}`", shown[0], reported, *shown[1:], modes])
    header = ["beta", "noise", "method", "top-100 mean", "as reported", "modes, greedy", "modes, reference"]
    return lines_of([*header, "modes as reported"], body)


def published_grid_table() -> str:
    """Mean L1 of the exact law on the hypergrid."""
    rows = read_results("published_grid.json")["rows"]
    body = []
    for side in sorted({row["grid.side"] for row in rows}):
        mine = chosen(rows, grid__side=side)
        for i, alpha in enumerate(sorted({row["alpha"] for row in mine})):
            floor = next(row["tv_floor"] for row in chosen(mine, alpha=alpha))
            body.append([f"{side}", f"{alpha:.0%}", "optimum (linear programme)", f"{2 * floor / side**2:.5f}", ""])
            for method in methods_in(chosen(mine, alpha=alpha)):
                runs = chosen(mine, alpha=alpha, method=method)
                reported = f"{REPORTED_L1[method][i]:g}" if side == 8 and method in REPORTED_L1 else ""
                body.append([f"{side}", f"{alpha:.0%}", f"`{method}`", figure_of(runs, "l1_mean", 5), reported])
            for name, values in REPORTED_L1_TB.items() if side == 8 else ():
                body += [[f"{side}", f"{alpha:.0%}", name, "", f"{values[i]:g}"]] if values[i] is not None else []
    return lines_of(["side", "noise", "method", "mean L1", "as reported"], body)


def published_bits_table() -> str:
    """Modes that some trajectory of the training came near to, beside the reported counts."""
    rows = read_results("published_bits.json")["rows"]
    alphas = sorted({row["alpha"] for row in rows})
    body = []
    for k in (4, 2):
        for beta in sorted({row["beta"] for row in chosen(rows, method="tb")}, reverse=True):
            runs = [chosen(rows, method="tb", bits__k=k, beta=beta, alpha=alpha) for alpha in alphas]
            calls, found = (
                f"{round(runs[0][0]['calls'], -3):,}",
                [figure_of(run, "modes_discovered", 0) for run in runs],
            )
            body.append([f"{k}", f"`tb`, exponent {beta:g}", calls, *found])
        for who in ("stochastic", "noise-blind"):
            body.append([f"{k}", f"reported, {who}", "800,000", *(f"{found:g}" for found in REPORTED_MODES[k, who])])
    drawn = chosen(rows, method="random")
    found = [figure_of(drawn, "modes_discovered", 0)] * len(alphas)  # uniform intentions come out uniform
    body.append(["any", "`random`", f"{round(drawn[0]['calls'], -3):,}", *found])
    header = ["bits a token", "method", "environment calls", *(f"modes at {alpha:.0%} noise" for alpha in alphas)]
    return lines_of(header, body)


def tfbind8_figure() -> Figure:
    """Distance against environment calls at the published budget, one panel per noise level."""
    rows = chosen(read_results("published_tfbind8.json")["rows"], beta=3.0)
    alphas = [alpha for alpha in sorted({row["alpha"] for row in rows}) if chosen(rows, alpha=alpha, method="tb")]
    figure = Figure(figsize=(4.3 * len(alphas) + 1.6, 4.0), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    for axis, alpha in zip(figure.subplots(1, len(alphas), sharey=True, squeeze=False)[0], alphas, strict=True):
        for method in methods_in(chosen(rows, alpha=alpha)):
            curves = [row["curve"] for row in chosen(rows, alpha=alpha, method=method) if row.get("curve")]
            if curves and method != "random":
                _draw(axis, method, curves)
        floor = next(row["tv_floor"] for row in chosen(rows, alpha=alpha) if row.get("tv_floor") is not None)
        axis.axhline(floor, color="#2f855a", linestyle="--", linewidth=1.4, label="best reachable")
        axis.set(xlabel="environment calls (thousands)", ylim=(0, 0.45))
        axis.set_title(f"{alpha:.0%} noise", loc="left", fontsize=11)
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(axis="y", color="#e4e7eb", linewidth=0.8)
    figure.axes[0].set_ylabel("total variation to the target")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), frameon=False, fontsize=9, loc="outside right center")
    return figure


def _draw(axis: Any, method: str, curves: list[list[list[float]]]) -> None:
    colour, line = ("#0b3d91", "-") if method == "kl-replay" else STYLES[method]
    calls = [point[0] / 1000 for point in curves[0]]
    middle, low, high = zip(*(spread(curve[i][1] for curve in curves) for i in range(len(calls))), strict=True)
    axis.plot(
        calls, middle, color=colour, linestyle=line, linewidth=2.6 if method == "kl-replay" else 1.6, label=method
    )
    axis.fill_between(calls, low, high, color=colour, alpha=0.18, linewidth=0)
