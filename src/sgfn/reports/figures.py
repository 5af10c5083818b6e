"""Tables and figures, from the files of run folders only."""

import math
import textwrap
from pathlib import Path
from typing import Any

from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.gridspec import SubplotSpec
from matplotlib.layout_engine import ConstrainedLayoutEngine

from sgfn.config import EntropyConfig, TrainConfig
from sgfn.config.files import replacing
from sgfn.reports.sources import Rows, Source, read_source

INK, MUTED, OURS, TARGET, FLOOR = "#1f2933", "#7b8794", "#0b6e99", "#d9822b", "#2f855a"
NICE = [1, 2, 2.5, 5, 10]  # distances between ticks
LEVEL: dict[str, Any] = {"linestyle": "--", "linewidth": 1.4, "zorder": 1.5}  # below the curves


def report(runs: list[Path], out: Path | None = None) -> Path:
    """One picture per call: learning curve, scores of samples against the target, TV over time with the floor.

    A run that watched its entropy gets a second row: entropies, entropy ratio, policy KL with dynamics balance.
    """
    figure = lay_out(draw(runs))
    target = Path(runs[0]) / "report.png" if out is None else out
    with replacing(target) as aside:
        figure.savefig(aside, dpi="figure", format="png")
    return target


def draw(runs: list[Path]) -> Figure:
    """The picture itself, not yet laid out."""
    if not runs:
        raise ValueError("name at least one run folder")
    sources = [read_source(Path(path)) for path in runs]
    named = len(runs) > 1
    lines = sum(2 if source.watched else 1 for source in sources)
    layout = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08)
    figure = Figure(figsize=(13.5, 3.9 * lines + 0.3), dpi=130, layout=layout, facecolor="white")
    FigureCanvasAgg(figure)
    grid = figure.add_gridspec(lines, 3)
    cells = iter([[grid[line, column] for column in range(3)] for line in range(lines)])
    for source in sources:
        prefix = f"{source.name}: " if named else ""
        _draw_run(figure, next(cells), source, prefix)
        if source.watched:
            _draw_entropy_row(figure, next(cells), source, prefix)
    return figure


def lay_out(figure: Figure) -> Figure:
    """Place the panels for good, then raise the upper end of each by the height of its legend, which is now known."""
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
    figure.set_layout_engine("none")  # once is enough: it takes as long as drawing
    for axis in figure.axes:
        if legend := axis.get_legend():
            share = legend.get_window_extent().height / axis.bbox.height + 0.02
            scale = axis.yaxis.get_transform()
            low, high = scale.transform(axis.get_ylim())
            raised = scale.inverted().transform([low + (high - low) / (1 - min(share, 0.7))])
            axis.set_ylim(top=float(raised[0]))
    return figure


def _draw_run(figure: Figure, cells: list[SubplotSpec], source: Source, prefix: str) -> None:
    loss, scores, tv = (_panel(figure, cell) for cell in cells)
    _draw_loss(loss, source, prefix)
    _draw_scores(scores, source.results)
    _draw_tv(tv, source.rows, source.results)


def _draw_loss(axis: Axes, source: Source, prefix: str) -> None:
    rows, entropic = source.rows, source.config.objective == "kl-entropy"
    if "loss" not in rows[-1]:
        _label(axis, prefix + source.title, "mean log-reward of the batch")
        _curve(axis, rows, "log_reward", OURS)
        _steps(axis, rows)
        return
    plain = "balance loss" if source.config.method == "gfn" else "loss"
    _label(axis, prefix + source.title, "loss with entropy terms" if entropic else plain)
    _curve(axis, rows, "loss", OURS)
    _steps(axis, rows)
    values = [row["loss"] for row in rows]
    if min(values) > 0:  # entropy terms may take a loss below zero, where a logarithm would hide it
        _log_scale(axis, min(values) / 1.05, max(values) * 1.05)


def _draw_scores(axis: Axes, results: dict[str, Any]) -> None:
    shares = results.get("histogram")
    _label(axis, "Scores of what comes out", "share of objects", "score")
    if not shares:
        _say(axis, "run `sgfn evaluate` for this panel")
        return
    edges = shares["edges"]
    axis.stairs(shares["samples"], edges, fill=True, color=OURS, alpha=0.30, label=f"{results['samples']:,} samples")
    if "law" in shares:
        axis.stairs(shares["law"], edges, color=OURS, linewidth=1.8, label="policy, exact law")
    if "target" in shares:  # an enumerable task
        axis.stairs(shares["target"], edges, color=TARGET, linewidth=1.8, label="target")
    _legend(axis, columns=2)


def _draw_tv(axis: Axes, rows: Rows, results: dict[str, Any]) -> None:
    seen = [row for row in rows if "tv" in row]
    _steps(axis, rows)
    if not seen:  # nothing can be enumerated, or nobody asked for it
        _label(axis, "Reward while training (no exact evaluations)", "mean log-reward of the batch")
        _curve(axis, rows, "log_reward", OURS)
        return
    _label(axis, "Distance to the target, exact", "total variation")
    _curve(axis, seen, "tv", OURS, label="policy", marker="o", markersize=3.5)
    lines = [("tv_uniform", "uniform policy", MUTED), ("tv_blind", "ignoring noise", TARGET)]
    for key, label, colour in [*lines, ("tv_floor", "best reachable", FLOOR)]:
        if results.get(key) is not None:
            axis.axhline(results[key], color=colour, **LEVEL, label=f"{label} {results[key]:.3f}")
    axis.set_ylim(bottom=0)
    _legend(axis, columns=2)


def _draw_entropy_row(figure: Figure, cells: list[SubplotSpec], source: Source, prefix: str) -> None:
    rows, config = source.watched, source.config
    halves = cells[1].subgridspec(2, 1, height_ratios=(5, 1))
    _draw_entropies(_panel(figure, cells[0]), rows, prefix, config.entropy)
    ratio = _panel(figure, halves[0])
    _draw_ratio(ratio, rows, config)
    _draw_visits(_panel(figure, halves[1], below=ratio), rows)
    _draw_terms(_panel(figure, cells[2]), rows, config)


def _draw_entropies(axis: Axes, rows: Rows, prefix: str, config: EntropyConfig) -> None:
    high, low = _ends(config)
    unit = "H, and exponentials of it" if config.variant == "exponential" else "normalised entropy"
    entropy = "entropy" if prefix else "Entropy"
    _label(axis, f"{prefix}{entropy} of the policy, {config.variant} ends", unit)
    # thick, thin and dashed: a policy that is still uniform has three curves in one place
    _curve(axis, rows, "entropy_high", OURS, label=f"$H_{{high}}$ {high}", linewidth=3, markersize=10)
    _curve(axis, rows, "entropy_low", TARGET, label=f"$H_{{low}}$ {low}", markersize=7)
    _curve(axis, rows, "entropy", INK, label="H, mean under $\\mu$", linestyle=(0, (3, 2)), markersize=4)
    least = min(row[key] for row in rows for key in ("entropy_high", "entropy_low", "entropy"))
    axis.set_ylim(min(math.floor(10 * least), 9) / 10, 1)
    _steps(axis, rows)
    _legend(axis)


def _ends(config: EntropyConfig) -> tuple[str, str]:
    """What the two ends are, in words or in a formula."""
    q = config.quantile
    return {
        "quantile": (f"({q:g} quantile)", f"({1 - q:g} quantile)"),
        "per-state": ("= H, mean", "= min(H, 0.1 nat), mean"),
        "exponential": (f"= exp(\N{MINUS SIGN}{config.rate_high:g} H)", f"= exp(\N{MINUS SIGN}{config.rate_low:g} H)"),
    }[config.variant]


def _draw_ratio(axis: Axes, rows: Rows, config: TrainConfig) -> None:
    gamma = config.entropy.gamma
    title = "Ratio that sets the temperature" if config.exploration == "entropy" else "Entropy ratio"
    _label(axis, f"{title}, \N{GREEK SMALL LETTER GAMMA} = {gamma:g}", "ratio and share, log scale", x="")
    _curve(axis, rows, "ratio", OURS, label="$r_\\gamma$")
    _curve(axis, rows, "rho", FLOOR, label="$\\rho = \\gamma\\, r_\\gamma$")
    low, high = min(row["rho"] for row in rows), max(row["ratio"] for row in rows)
    if config.entropy.variant != "exponential":  # there the ratio may lie below 1
        low, high = min(low, gamma), max(high, 1 / gamma)
        bounds = f"bounds of $r_\\gamma$: 1 and $1/\\gamma$ = {1 / gamma:.3g}"
        axis.axhline(1, color=MUTED, **LEVEL, label=bounds)
        axis.axhline(1 / gamma, color=MUTED, **LEVEL)
    _log_scale(axis, low / 1.05, high * 1.05)
    _legend(axis)


def _draw_visits(axis: Axes, rows: Rows) -> None:
    last, most = rows[-1]["mu"], max(row["mu"] for row in rows)
    _curve(axis, rows, "mu", MUTED)
    axis.set_ylim(0, 2.4 * most)
    axis.set_yticks([0, most], ["0", f"{most:.3g}"])
    axis.set_ylabel("$\\mu$", color=INK, fontsize=10)
    axis.set_xlabel("step", color=INK, fontsize=10)
    _steps(axis, rows)
    about = "" if math.isclose(1 / last, round(1 / last), rel_tol=1e-5) else "about "
    text = f"$\\mu$ {_ending(last)}, weight of each of {about}{1 / last:,.0f} visited states"
    axis.text(0.02, 0.97, text, ha="left", va="top", transform=axis.transAxes, color=INK, fontsize=9)


def _draw_terms(axis: Axes, rows: Rows, config: TrainConfig) -> None:
    weights = f"\N{GREEK SMALL LETTER LAMDA} {config.entropy.weight_kl:g} and {config.entropy.weight_dynamics:g}"
    part = weights if config.objective == "kl-entropy" else "not in the loss"
    _label(axis, f"Policy KL, dynamics balance: {part}", "nats; R before its exponent")
    _curve(axis, rows, "policy_kl", OURS, label="policy KL")
    _curve(axis, rows, "dynamics_balance", TARGET, label="dynamics balance")
    _curve(axis, rows, "reward_minus_kl", FLOOR, label="R \N{MINUS SIGN} KL per trajectory")
    axis.axhline(0, color=MUTED, linewidth=0.8)
    axis.ticklabel_format(axis="y", useOffset=False)
    _steps(axis, rows)
    _legend(axis)


def _panel(figure: Figure, cell: SubplotSpec, below: Axes | None = None) -> Axes:
    axis = figure.add_subplot(cell, sharex=below)
    axis.spines[["top", "right"]].set_visible(False)
    axis.tick_params(colors=INK, labelsize=9)
    axis.grid(axis="y", color="#e4e7eb", linewidth=0.8)
    axis.set_axisbelow(True)
    if below is not None:
        below.tick_params(labelbottom=False)
    return axis


def _curve(axis: Axes, rows: Rows, key: str, colour: str, **style: Any) -> None:
    """A column of the metrics over steps; the legend tells where it ends, and a single point is seen."""
    values = [row[key] for row in rows]
    label = style.pop("label", None)
    if label is not None:
        style["label"] = f"{label} {_ending(values[-1])}"
    style = {"linewidth": 1.8, "marker": "o" if len(rows) == 1 else "", "markersize": 5} | style
    axis.plot([row["step"] for row in rows], values, color=colour, gid=key, **style)


def _ending(value: float) -> str:
    """Where a curve ends, to three digits."""
    return f"\N{RIGHTWARDS ARROW} {value:#.3g}".replace("-", "\N{MINUS SIGN}")


def _steps(axis: Axes, rows: Rows) -> None:
    """Steps are whole numbers, from the start of training to the last line of metrics."""
    axis.set_xlim(0, 1.03 * max(rows[-1]["step"], 1))
    axis.xaxis.set_major_locator(ticker.MaxNLocator(6, integer=True, steps=NICE))


def _log_scale(axis: Axes, low: float, high: float) -> None:
    """A log scale with plain numbers at its ticks, however short it is."""
    axis.set_yscale("log")
    axis.set_ylim(low, high)
    decades = math.log10(high / low)
    subs = (1.0, 2.0, 5.0) if decades < 3 else (1.0,)
    axis.yaxis.set_major_locator(ticker.MaxNLocator(6, steps=NICE) if decades < 1 else ticker.LogLocator(subs=subs))
    axis.yaxis.set_major_formatter(ticker.StrMethodFormatter("{x:g}"))
    axis.yaxis.set_minor_locator(ticker.NullLocator())


def _legend(axis: Axes, columns: int = 1) -> None:
    """Above the curves; no tick is to stand in the room that it will be given there."""
    low, high = axis.get_ylim()
    axis.set_yticks([tick for tick in axis.get_yticks() if low <= tick <= high])
    axis.set_ylim(low, high)
    axis.legend(frameon=False, fontsize=9, loc="upper left", ncols=columns, borderaxespad=0.1, columnspacing=1.2)


def _label(axis: Axes, title: str, y: str, x: str = "step") -> None:
    wrapped = textwrap.fill(title, 48)
    axis.set_title(wrapped, loc="left", fontsize=11, color=INK, parse_math=False)  # a folder's name is no formula
    axis.set_xlabel(x, color=INK, fontsize=10)
    axis.set_ylabel(y, color=INK, fontsize=10)


def _say(axis: Axes, text: str) -> None:
    axis.text(0.5, 0.5, text, ha="center", va="center", transform=axis.transAxes, color=MUTED, fontsize=10)
