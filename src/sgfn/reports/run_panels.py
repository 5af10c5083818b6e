"""Panels about one run beside its loss, its scores and its distance: the same in pictures and on pages."""

from collections.abc import Callable
from dataclasses import dataclass

from matplotlib.axes import Axes

from sgfn.objectives.registry import OBJECTIVES
from sgfn.reports.proxy_figure import draw_proxy, proxy_title
from sgfn.reports.sources import Source
from sgfn.reports.training_figures import (
    BALANCE_TERMS,
    LOSS_TERMS,
    NAMED,
    balance_names,
    columns_of,
    draw_entropies,
    draw_entropy_terms,
    draw_exponent,
    draw_kernels,
    draw_ratio,
    draw_terms,
    entropies_title,
    entropy_terms_title,
    own_columns,
    ratio_title,
)


@dataclass(frozen=True, kw_only=True)
class Panel:
    """Something to draw into axes, its title, and one sentence for those who cannot see it."""

    title: str
    draw: Callable[[Axes], None]
    said: str


def run_panels(source: Source) -> list[Panel]:
    """All that a run's files have: terms of the loss, terms of the balance, exponent, noise model, proxy, entropy."""
    found = [_loss_terms(source), _balance_terms(source), _exponent(source), _kernels(source), _proxy(source)]
    return [panel for panel in found if panel is not None] + _entropy(source)


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
    if columns in ([], ["log_z"]):
        return None
    return Panel(
        title="Terms of the balance, means",
        draw=lambda axes: draw_terms(axes, rows, columns, balance_names(source.form), {}),
        said=f"Terms of the balance over steps: {_ends(source, columns)}",
    )


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
