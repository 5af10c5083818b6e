"""Panels about one run beside its loss, its scores and its distance: the same in pictures and on pages."""

from collections.abc import Callable
from dataclasses import dataclass

from matplotlib.axes import Axes

from sgfn.objectives.registry import OBJECTIVES
from sgfn.reports.proxy_figure import draw_proxy, proxy_title
from sgfn.reports.sources import Source, number
from sgfn.reports.training_figures import (
    BALANCE_TERMS,
    LOSS_TERMS,
    NAMED,
    balance_names,
    columns_of,
    draw_alone,
    draw_entropies,
    draw_entropy_terms,
    draw_exponent,
    draw_kernels,
    draw_noise_loss,
    draw_ratio,
    draw_rewards,
    draw_terms,
    entropies_title,
    entropy_terms_title,
    own_columns,
    ratio_title,
)

OTHERS = {
    "log_z": ("Logarithm of the total flow", "log Z"),
    "length": ("Length of what came out", "steps"),
    "lag": ("Updates since a batch was asked for", "updates"),
    "acceptance": ("Proposals that are taken", "share"),
    "entropy": ("Mean entropy of the policy", "nats"),
    "value_error": ("Squared error of the critic", "mean of a batch"),
}
"""Columns of the metrics that have a panel each: its title, and the name of its vertical axis."""


@dataclass(frozen=True, kw_only=True)
class Panel:
    """Something to draw into axes, its title, and one sentence for those who cannot see it."""

    title: str
    draw: Callable[[Axes], None]
    said: str


def run_panels(source: Source) -> list[Panel]:
    """All that a run's files have: terms of the loss, of the balance, log Z, rewards, exponent, noise model, proxy,
    entropy, and what else was logged."""
    found = [_loss_terms(source), _balance_terms(source), _alone(source, "log_z"), _rewards(source), _exponent(source)]
    found += [_noise_loss(source), _kernels(source), _proxy(source), *_entropy(source)]
    found += [_alone(source, column) for column in OTHERS if column != "log_z"]
    return [panel for panel in found if panel is not None]


def term_weights(source: Source) -> dict[str, float]:
    """Weight of each term of the run's loss, by its name in the metrics."""
    config, found = source.config, dict[str, float]()
    names = [config.objective, *([config.entropy.base] if config.objective == "kl-entropy" else [])]
    for name in names:
        if name in OBJECTIVES:  # one that is not ours is not imported for a report
            found |= OBJECTIVES[name].weights(config)
    return found


def _loss_terms(source: Source) -> Panel | None:
    rows = source.rows
    weights = term_weights(source)
    terms = columns_of(rows, LOSS_TERMS) if source.terms_in_loss else []
    # the dynamics balance is also logged where the entropy is only watched
    columns = [name for name in terms if name != "dynamics_balance" or name in weights] + own_columns(rows)
    if not columns:
        return None
    return Panel(
        title="Terms of the loss, before their weights",
        draw=lambda axes: draw_terms(axes, rows, columns, NAMED, weights),
        said=f"Terms of the loss over steps: {_ends(source, columns)}",
    )


def _balance_terms(source: Source) -> Panel | None:
    rows, columns = source.rows, columns_of(source.rows, BALANCE_TERMS)
    if not columns:
        return None
    return Panel(
        title="Terms of the balance, means",
        draw=lambda axes: draw_terms(axes, rows, columns, balance_names(source.form), {}),
        said=f"Terms of the balance over steps: {_ends(source, columns)}",
    )


def _alone(source: Source, column: str) -> Panel | None:
    """One column by itself; left out where it is not logged, and a length that never varies too."""
    title, unit = OTHERS[column]
    rows = [row for row in source.rows if column in row]
    if not rows or (column == "length" and len({row[column] for row in rows}) < 2):
        return None
    said = f"{title} over steps: ends at {rows[-1][column]:.3g}"
    return Panel(title=title, draw=lambda axes: draw_alone(axes, rows, column, unit), said=said)


def _rewards(source: Source) -> Panel | None:
    """Rewards of batches; a method without a loss has them in its first panel."""
    rows = [row for row in source.rows if "reward" in row]
    if not rows or "loss" not in rows[-1]:
        return None
    columns = [name for name in ("reward", "best_reward") if name in rows[-1]]
    said = f"Rewards before the exponent over steps: {_ends(source, columns)}"
    return Panel(title="Rewards of what came out", draw=lambda axes: draw_rewards(axes, rows), said=said)


def _noise_loss(source: Source) -> Panel | None:
    """The loss of the noise model; left out where it is not learned."""
    rows = [row for row in source.rows if "dynamics_nll" in row]
    if not rows or source.config.dynamics.mode == "known":
        return None
    least = number(source.results.get("dynamics_entropy"))
    said = f"Loss of the noise model over steps: ends at {rows[-1]['dynamics_nll']:.3g}"
    return Panel(title="Loss of the noise model", draw=lambda axes: draw_noise_loss(axes, rows, least), said=said)


def _exponent(source: Source) -> Panel | None:
    rows = [row for row in source.rows if "beta" in row]
    if len({row["beta"] for row in rows}) < 2:  # a constant is no curve
        return None
    said = f"Reward exponent over steps: ends at {rows[-1]['beta']:.3g}"
    return Panel(title="Reward exponent", draw=lambda axes: draw_exponent(axes, rows), said=said)


def _kernels(source: Source) -> Panel | None:
    kernel = source.results.get("kernel")
    if kernel is None:
        return None
    error = source.results.get("dynamics_tv")
    tail = "" if error is None else f", mean TV {error:.4f}"
    title = f"Noise: true and {source.results.get('dynamics_model')} model{tail}"
    said = "Probabilities of what is realised for each intention, true and learned side by side"
    return Panel(title=title, draw=lambda axes: draw_kernels(axes, kernel), said=said)


def _proxy(source: Source) -> Panel | None:
    found = source.proxy
    if found is None:
        return None
    said = (
        f"Scores predicted by {found.kind} without having seen them, against measured ones: rank correlation "
        f"{found.spearman:.2f}, {found.coverage:.0%} inside 80 % intervals"
    )
    return Panel(title=proxy_title(found), draw=lambda axes: draw_proxy(axes, found), said=said)


def _entropy(source: Source) -> list[Panel]:
    rows, config = source.watched, source.config
    if not rows:
        return []
    last = rows[-1]
    return [
        Panel(
            title=entropies_title(config.entropy),
            draw=lambda axes: draw_entropies(axes, rows, config.entropy),
            said=f"Entropy of the policy over steps: ends at {last['H_mean']:.3g}",
        ),
        Panel(
            title=ratio_title(config),
            draw=lambda axes: draw_ratio(axes, rows, config),
            said=f"Entropy ratio over steps: ends at {last['r_gamma']:.3g}",
        ),
        Panel(
            title=entropy_terms_title(config),
            draw=lambda axes: draw_entropy_terms(axes, rows),
            said=f"Policy KL over steps: ends at {last['policy_kl']:.3g}",
        ),
    ]


def _ends(source: Source, columns: list[str]) -> str:
    return ", ".join(f"{name} ends at {source.rows[-1][name]:.3g}" for name in columns)
