"""Curves of one run's training: its loss and what that is made of, its exponent, the entropy of its policy."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from sgfn.config import EntropyConfig, TrainConfig
from sgfn.objectives.parts import TAKEN
from sgfn.reports.axes import add_legend, count_axis, ending, log_scale, name_axes
from sgfn.reports.looks import DASHED, FLOOR, INK, MUTED, OURS, RULE, TARGET, WHITE, look_of
from sgfn.reports.sources import Rows, Source

WIDE = 50
"""Ratio of the largest to the smallest value from which terms are drawn on a logarithmic scale."""
MOST_WRITTEN = 6
"""Letters up to which the probabilities of a kernel are written into its picture."""
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
    if source.config.objective in ("kl", "kl-entropy"):
        return "loss, all terms weighted"
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
    draw_column(axes, rows, "H_high", OURS, label=f"$H_{{high}}$ {high}", linewidth=3, markersize=10)
    draw_column(axes, rows, "H_low", TARGET, label=f"$H_{{low}}$ {low}", markersize=7)
    draw_column(axes, rows, "H_mean", INK, label="H, mean under $\\mu$", linestyle=(0, (3, 2)), markersize=4)
    least = min(row[key] for row in rows for key in ("H_high", "H_low", "H_mean"))
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
        "trajectory": (f"({q:g} quantile of each trajectory)", f"({1 - q:g} quantile)"),
        "per-state": ("= H, mean", "= min(H, 0.1 nat), mean"),
        "exponential": (f"= exp(\N{MINUS SIGN}{config.rate_high:g} H)", f"= exp(\N{MINUS SIGN}{config.rate_low:g} H)"),
    }[config.variant]


def draw_ratio(axes: Axes, rows: Rows, config: TrainConfig) -> None:
    """Draw the entropy ratio and its share on a log scale, with the bounds of the ratio where it has any."""
    gamma = config.entropy.gamma
    name_axes(axes, "step", "ratio and share, log scale")
    draw_column(axes, rows, "r_gamma", OURS, label="$r_\\gamma$")
    draw_column(axes, rows, "rho", FLOOR, label="$\\rho = \\gamma\\, r_\\gamma$")
    low, high = min(row["rho"] for row in rows), max(row["r_gamma"] for row in rows)
    if config.entropy.variant != "exponential":  # there the ratio may lie below 1
        low, high = min(low, gamma), max(high, 1 / gamma)
        bounds = f"bounds of $r_\\gamma$: 1 and $1/\\gamma$ = {1 / gamma:.3g}"
        axes.axhline(1, color=MUTED, **BOUND, label=bounds)
        axes.axhline(1 / gamma, color=MUTED, **BOUND)
    log_scale(axes, low / 1.05, high * 1.05)
    add_legend(axes)


def draw_entropy_terms(axes: Axes, rows: Rows) -> None:
    """Draw the policy's KL, the balance of the dynamics, and the reward less the KL."""
    name_axes(axes, "step", "nats; R before its exponent")
    draw_column(axes, rows, "policy_kl", OURS, label="policy KL")
    draw_column(axes, rows, "dynamics_balance", TARGET, label="dynamics balance")
    draw_column(axes, rows, "reward_minus_kl", FLOOR, label="mean R \N{MINUS SIGN} policy KL")
    axes.axhline(0, color=MUTED, linewidth=0.8)
    axes.ticklabel_format(axis="y", useOffset=False)
    add_legend(axes)


LOSS_TERMS = ("base_loss", "policy_kl_term", "dynamics_balance", "flow_loss", "projection_kl")
"""Terms that a loss is a weighted sum of, by their names in the metrics; where the base has terms, they come last."""
BALANCE_TERMS = ("log_flow", "log_pf", "log_dynamics", "log_pb", "end_flow", "log_policy", "log_expected")
"""Terms of a balance, by their names in the metrics."""
WITHIN_BASE = ("flow_loss", "projection_kl")
"""Terms of `kl`, which are those of the base where `kl-entropy` is built on it."""
NAMED = {
    "flow_loss": "flow loss",
    "projection_kl": "projection KL",
    "base_loss": "base",
    "policy_kl_term": "policy KL \N{MINUS SIGN} log $r_\\gamma$",
    "dynamics_balance": "dynamics balance",
    "log_flow": "log F(s)",
    "log_dynamics": "log P\N{MODIFIER LETTER CIRCUMFLEX ACCENT}(k|s,a)",
    "end_flow": "end flow, log $R^\\beta$",
    "log_policy": "log $\\pi$(a|s)",
    "log_expected": "log expected flow",
    "log_z": "log Z",
    "length": "mean length",
    "lag": "mean lag",
    "acceptance": "share taken",
    "entropy": "mean entropy",
    "value_error": "mean squared error",
}
"""Names of metrics in legends; log_pf and log_pb depend on the form."""
FORWARD = {"published": "log $\\pi$(a|s)", "blind": "log $\\pi$(k|s)", "outcome": "log c(k|s)"}
BACKWARD = {"published": "log $\\pi_B$(s,a|s\N{PRIME})"}


def columns_of(rows: Rows, names: tuple[str, ...]) -> list[str]:
    """Those of some columns that the last line of metrics has."""
    return [name for name in names if name in rows[-1]]


def own_columns(rows: Rows) -> list[str]:
    """Columns that are not ours: parts of an objective of somebody's own."""
    return [name for name in rows[-1] if name not in TAKEN]


def draw_terms(
    axes: Axes, rows: Rows, columns: list[str], names: Mapping[str, str], weights: Mapping[str, float]
) -> None:
    """Draw columns of the metrics together; a weight, where there is one, is told in the legend."""
    name_axes(axes, "step", "mean of a batch")
    based = "base_loss" in columns  # of which other terms may be nearly all: dashed, both are seen
    for at, column in enumerate(columns):
        weight = f", weight {weights[column]:g}" if column in weights else ""
        look = look_of(at)
        line = DASHED if based and column in WITHIN_BASE else look.line
        there = [row for row in rows if column in row]
        draw_column(axes, there, column, look.colour, label=names.get(column, column) + weight, linestyle=line)
    values = [row[column] for row in rows for column in columns if column in row]
    if min(values) > 0 and max(values) > WIDE * min(values):  # else the small ones lie on the axis
        log_scale(axes, min(values) / 1.2, max(values) * 1.2)
    else:
        axes.axhline(0, color=MUTED, linewidth=0.8)
        axes.ticklabel_format(axis="y", useOffset=False)
    add_legend(axes)


def balance_names(form: str) -> dict[str, str]:
    """Names of a balance's terms in a form."""
    forward, backward = FORWARD.get(form, "log $\\bar P$(k|s)"), BACKWARD.get(form, "log $P_B$(s|s\N{PRIME})")
    return NAMED | {"log_pf": forward, "log_pb": backward}


def draw_alone(axes: Axes, rows: Rows, column: str, unit: str) -> None:
    """Draw one column of the metrics over steps; the legend tells where it ends."""
    name_axes(axes, "step", unit)
    draw_column(axes, rows, column, OURS, label=NAMED.get(column, column))
    axes.ticklabel_format(axis="y", useOffset=False)
    add_legend(axes)


def draw_exponent(axes: Axes, rows: Rows) -> None:
    """Draw the reward exponent over steps."""
    name_axes(axes, "step", "exponent $\\beta_t$")
    draw_column(axes, rows, "beta", OURS)


def draw_noise_loss(axes: Axes, rows: Rows, least: float | None) -> None:
    """Draw the loss of the noise model over steps, and the least that it can be, where that is known."""
    name_axes(axes, "step", "nats per step")
    draw_column(axes, rows, "dynamics_nll", OURS, label=f"\N{MINUS SIGN}{NAMED['log_dynamics']}")
    if least is not None:
        axes.axhline(least, color=MUTED, **BOUND, label=f"entropy of the true noise {least:.3g}")
    axes.ticklabel_format(axis="y", useOffset=False)
    add_legend(axes)


def draw_rewards(axes: Axes, rows: Rows) -> None:
    """Draw the mean reward of batches over steps, and the best one so far, where it is logged."""
    name_axes(axes, "step", "R before its exponent")
    draw_column(axes, rows, "reward", OURS, label="mean of a batch")
    if "best_reward" in rows[-1]:
        there = [row for row in rows if "best_reward" in row]
        draw_column(axes, there, "best_reward", TARGET, label="best so far", linestyle=DASHED)
    axes.ticklabel_format(axis="y", useOffset=False)
    add_legend(axes)


def draw_kernels(axes: Axes, kernel: Mapping[str, Any]) -> None:
    """Draw the true and the learned noise side by side as tables of colours: rows intended, columns realised."""
    true, learned = (np.array(kernel[name], dtype=float) for name in ("true", "learned"))
    rows, columns = true.shape
    for table, start in ((true, 0), (learned, columns + 1)):
        for (row, column), value in np.ndenumerate(table):
            shade = np.nan_to_num(value)
            box = (start + column, rows - 1 - row)
            axes.add_patch(
                Rectangle(box, 0.96, 0.92, facecolor=OURS, alpha=float(shade), edgecolor=RULE, linewidth=0.6)
            )
            if max(rows, columns) <= MOST_WRITTEN and np.isfinite(value):
                ink = WHITE if shade > 0.5 else INK
                axes.text(
                    box[0] + 0.48,
                    box[1] + 0.46,
                    f"{value:.2f}".lstrip("0"),
                    ha="center",
                    va="center",
                    color=ink,
                    fontsize=8,
                )
    axes.set_xlim(-0.1, 2 * columns + 1.1)
    axes.set_ylim(-0.1, rows + 0.1)
    names = list(kernel["outcomes"])
    places = [start + at + 0.48 for start in (0, columns + 1) for at in range(columns)]
    axes.set_xticks(places, names + names)
    axes.set_yticks([rows - 1 - at + 0.46 for at in range(rows)], list(kernel["intentions"]))
    axes.grid(visible=False)
    axes.tick_params(length=0)
    axes.spines[["left", "bottom"]].set_visible(False)
    name_axes(axes, "realised: true noise on the left, learned on the right", "intended")
