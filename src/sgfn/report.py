"""Tables and figures, from the files of run folders only."""

from pathlib import Path
from typing import Any

from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from sgfn.files import read_json, replacing
from sgfn.runs import Run

INK, MUTED, OURS, TARGET, FLOOR = "#1f2933", "#7b8794", "#0b6e99", "#d9822b", "#2f855a"


def report(runs: list[Path], out: Path | None = None) -> Path:
    """One picture per call: learning curve, scores of samples against the target, TV over time with the floor."""
    if not runs:
        raise ValueError("name at least one run folder")
    folders = [Run(path=Path(path)) for path in runs]
    target = folders[0].path / "report.png" if out is None else out
    figure = Figure(figsize=(13.5, 3.9 * len(folders) + 0.3), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(folders), 3, squeeze=False)
    for folder, row in zip(folders, axes, strict=True):
        _draw_run(folder, list(row))
    with replacing(target) as aside:
        figure.savefig(aside, dpi=130, format="png")
    return target


def _draw_run(folder: Run, axes: list[Axes]) -> None:
    name, config = folder.read_config()
    rows = folder.rows()
    if not rows:
        raise ValueError(f"{folder.path} has no metrics yet: train it first")
    results = read_json(folder.path / "exact.json") if (folder.path / "exact.json").is_file() else {}
    noise = f"{config.noise.alpha:.0%} noise"
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(colors=INK, labelsize=9)
        axis.grid(axis="y", color="#e4e7eb", linewidth=0.8)
        axis.set_axisbelow(True)
    _draw_loss(axes[0], rows, f"{name}, {noise}: {config.scored_as} {config.objective}")
    _draw_scores(axes[1], results)
    _draw_tv(axes[2], rows, results)


def _draw_loss(axis: Axes, rows: list[dict[str, Any]], title: str) -> None:
    axis.plot([r["step"] for r in rows], [r["loss"] for r in rows], color=OURS, linewidth=1.8)
    axis.set_yscale("log")
    _label(axis, title, "step", "balance loss")


def _draw_scores(axis: Axes, results: dict[str, Any]) -> None:
    shares = results.get("histogram")
    _label(axis, "Scores of what comes out", "score", "share of objects")
    if not shares:
        _say(axis, "run `sgfn evaluate` for this panel\n(needs an enumerable task)")
        return
    edges = shares["edges"]
    axis.stairs(shares["samples"], edges, fill=True, color=OURS, alpha=0.30, label=f"{results['samples']:,} samples")
    axis.stairs(shares["law"], edges, color=OURS, linewidth=1.8, label="policy, exact law")
    axis.stairs(shares["target"], edges, color=TARGET, linewidth=1.8, label="target")
    axis.legend(frameon=False, fontsize=9)


def _draw_tv(axis: Axes, rows: list[dict[str, Any]], results: dict[str, Any]) -> None:
    seen = [(r["step"], r["tv"]) for r in rows if "tv" in r]
    _label(axis, "Distance to the target, exact", "step", "total variation")
    if not seen:
        _say(axis, "no exact evaluations in this run")
        return
    steps, values = zip(*seen, strict=True)
    axis.plot(steps, values, color=OURS, linewidth=1.8, marker="o", markersize=3.5, label="policy")
    lines = [("tv_uniform", "uniform policy", MUTED), ("tv_blind", "ignoring noise", TARGET)]
    for key, label, colour in [*lines, ("tv_floor", "best reachable", FLOOR)]:
        if results.get(key) is not None:
            axis.axhline(results[key], color=colour, linestyle="--", linewidth=1.4, label=f"{label} {results[key]:.3f}")
    axis.set_ylim(bottom=0)
    axis.legend(frameon=False, fontsize=9)


def _label(axis: Axes, title: str, x: str, y: str) -> None:
    axis.set_title(title, loc="left", fontsize=11, color=INK)
    axis.set_xlabel(x, color=INK, fontsize=10)
    axis.set_ylabel(y, color=INK, fontsize=10)
    axis.xaxis.set_major_locator(ticker.MaxNLocator(6))


def _say(axis: Axes, text: str) -> None:
    axis.text(0.5, 0.5, text, ha="center", va="center", transform=axis.transAxes, color=MUTED, fontsize=10)
