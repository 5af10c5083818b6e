"""Panels about the training of one run: its loss, and the entropy of its policy where that was measured."""

import math
from typing import Any

from matplotlib.axes import Axes

from sgfn.config import EntropyConfig, TrainConfig
from sgfn.reports.axes import add_legend, count_axis, ending, log_scale, name_axes
from sgfn.reports.looks import FLOOR, INK, MUTED, OURS, TARGET
from sgfn.reports.sources import Rows, Source

BOUND: dict[str, Any] = {"linestyle": "--", "linewidth": 1.4, "zorder": 1.5}  # below the curves


def draw_loss(axes: Axes, source: Source) -> None:
    """Draw the loss over steps; the mean log-reward where the method has no loss."""
    rows = source.rows
    column = "loss" if "loss" in rows[-1] else "log_reward"
    name_axes(axes, "step", _loss_name(source) if column == "loss" else "mean log-reward of a batch")
    draw_column(axes, rows, column, OURS)
    values = [row[column] for row in rows]
    if column == "loss" and min(values) > 0:  # entropy terms may take a loss below zero, which a logarithm would hide
        log_scale(axes, min(values) / 1.05, max(values) * 1.05)


def _loss_name(source: Source) -> str:
    if source.config.objective == "kl-entropy":
        return "loss with entropy terms"
    return "balance loss" if source.config.method == "gfn" else "loss"


def draw_column(axes: Axes, rows: Rows, column: str, colour: str, **style: Any) -> None:
    """Draw a column of the metrics over steps; the legend tells where it ends, and a single point gets a mark."""
    values = [row[column] for row in rows]
    label = style.pop("label", None)
    if label is not None:
        style["label"] = f"{label} {ending(values[-1])}"
    style = {"linewidth": 1.8, "marker": "o" if len(rows) == 1 else "", "markersize": 5} | style
    axes.plot([row["step"] for row in rows], values, color=colour, gid=column, **style)
    count_axis(axes, float(rows[-1]["step"]))


def draw_entropies(axes: Axes, rows: Rows, config: EntropyConfig) -> None:
    """Draw both ends of the policy's entropy and its mean."""
    high, low = _ends(config)
    name_axes(axes, "step", "H, and exponentials of it" if config.variant == "exponential" else "normalised entropy")
    # thick, thin and dashed: a policy that is still uniform has three curves in one place
    draw_column(axes, rows, "entropy_high", OURS, label=f"$H_{{high}}$ {high}", linewidth=3, markersize=10)
    draw_column(axes, rows, "entropy_low", TARGET, label=f"$H_{{low}}$ {low}", markersize=7)
    draw_column(axes, rows, "entropy", INK, label="H, mean under $\\mu$", linestyle=(0, (3, 2)), markersize=4)
    least = min(row[key] for row in rows for key in ("entropy_high", "entropy_low", "entropy"))
    axes.set_ylim(min(math.floor(10 * least), 9) / 10, 1)
    add_legend(axes)


def entropies_title(config: EntropyConfig) -> str:
    """Title of the panel that `draw_entropies` draws."""
    return f"Entropy of the policy, {config.variant} ends"


def ratio_title(config: TrainConfig) -> str:
    """Title of the panel that `draw_ratio` draws."""
    title = "Ratio that sets the temperature" if "entropy" in config.explorations else "Entropy ratio"
    return f"{title}, \N{GREEK SMALL LETTER GAMMA} = {config.entropy.gamma:g}"


def entropy_terms_title(config: TrainConfig) -> str:
    """Title of the panel that `draw_entropy_terms` draws."""
    weights = f"\N{GREEK SMALL LETTER LAMDA} {config.entropy.weight_kl:g} and {config.entropy.weight_dynamics:g}"
    part = weights if config.objective == "kl-entropy" else "not in the loss"
    return f"Policy KL, dynamics balance: {part}"


def _ends(config: EntropyConfig) -> tuple[str, str]:
    """What the high and the low end of the entropy are, in words or in a formula."""
    q = config.quantile
    return {
        "quantile": (f"({q:g} quantile)", f"({1 - q:g} quantile)"),
        "per-state": ("= H, mean", "= min(H, 0.1 nat), mean"),
        "exponential": (f"= exp(\N{MINUS SIGN}{config.rate_high:g} H)", f"= exp(\N{MINUS SIGN}{config.rate_low:g} H)"),
    }[config.variant]


def draw_ratio(axes: Axes, rows: Rows, config: TrainConfig) -> None:
    """Draw the entropy ratio and its share on a log scale, with the bounds of the ratio where it has any."""
    gamma = config.entropy.gamma
    name_axes(axes, "", "ratio and share, log scale")
    draw_column(axes, rows, "ratio", OURS, label="$r_\\gamma$")
    draw_column(axes, rows, "rho", FLOOR, label="$\\rho = \\gamma\\, r_\\gamma$")
    low, high = min(row["rho"] for row in rows), max(row["ratio"] for row in rows)
    if config.entropy.variant != "exponential":  # there the ratio may lie below 1
        low, high = min(low, gamma), max(high, 1 / gamma)
        bounds = f"bounds of $r_\\gamma$: 1 and $1/\\gamma$ = {1 / gamma:.3g}"
        axes.axhline(1, color=MUTED, **BOUND, label=bounds)
        axes.axhline(1 / gamma, color=MUTED, **BOUND)
    log_scale(axes, low / 1.05, high * 1.05)
    add_legend(axes)


def draw_visits(axes: Axes, rows: Rows) -> None:
    """Draw the weight of each visited state, which is one over their number."""
    last, most = rows[-1]["mu"], max(row["mu"] for row in rows)
    draw_column(axes, rows, "mu", MUTED)
    axes.set_ylim(0, 2.4 * most)
    axes.set_yticks([0, most], ["0", f"{most:.3g}"])
    name_axes(axes, "step", "$\\mu$")
    about = "" if math.isclose(1 / last, round(1 / last), rel_tol=1e-5) else "about "
    text = f"$\\mu$ {ending(last)}, weight of each of {about}{1 / last:,.0f} visited states"
    axes.text(0.02, 0.97, text, ha="left", va="top", transform=axes.transAxes, color=INK, fontsize=9)


def draw_entropy_terms(axes: Axes, rows: Rows) -> None:
    """Draw the policy's KL, the balance of the dynamics, and the reward less the KL."""
    name_axes(axes, "step", "nats; R before its exponent")
    draw_column(axes, rows, "policy_kl", OURS, label="policy KL")
    draw_column(axes, rows, "dynamics_balance", TARGET, label="dynamics balance")
    draw_column(axes, rows, "reward_minus_kl", FLOOR, label="R \N{MINUS SIGN} KL per trajectory")
    axes.axhline(0, color=MUTED, linewidth=0.8)
    axes.ticklabel_format(axis="y", useOffset=False)
    add_legend(axes)
