"""Figures of the page about runs: learning curves of a group, scores of a label, training of a single run."""

import numpy as np
from matplotlib.figure import Figure

from sgfn.reports.axes import add_legend, add_panel, new_figure
from sgfn.reports.curves import LEVELS, Scores, mean_scores, shared_edges
from sgfn.reports.learning_figures import NAMES, LabelledCurve, Level, draw_learning, draw_scores
from sgfn.reports.pages.entries import Group, Line
from sgfn.reports.pages.svg import Drawing, drawing
from sgfn.reports.run_panels import Panel
from sgfn.reports.sources import Source, number
from sgfn.reports.training_figures import draw_loss

MEDIUM, SMALL = (4.7, 3.3), (3.0, 2.2)
"""Width and height in inches; text has the same size in both."""


def columns_drawn(group: Group) -> list[str]:
    """Columns that are drawn over time: the exact distance where it is known, the reward where some label has none."""
    lines = [line for line in group.lines if line.sources]
    known = [any(number(row.get("tv")) is not None for s in line.sources for row in s.rows) for line in lines]
    return ["tv"] * any(known) + ["log_reward"] * (not all(known))


def learning_drawing(group: Group, column: str, key: str) -> Drawing | None:
    """All labels of a group over environment calls with the levels to compare with; None where nothing is known."""
    drawn = [(line, curve) for line in group.lines if (curve := line.learning(column)) is not None]
    if not drawn:
        return None
    endings = "; ".join(f"{line.label} ends at {curve.middle[-1]:.3g}" for line, curve in drawn)
    titles = {
        f"series-{line.series}": f"{line.label}: {curve.middle[-1]:.4g} after {curve.x[-1]:,.0f} calls, "
        f"seeds: {curve.count}"
        for line, curve in drawn
    }
    said = f"{group.name}, {NAMES[column]} against environment calls: {endings}"
    return drawing(learning_figure(group, column), key=key, said=said, titles=titles)


def learning_figure(group: Group, column: str) -> Figure:
    """The figure behind `learning_drawing`; its legend names the levels, the page's buttons name the labels."""
    figure = new_figure(*MEDIUM)
    axes = add_panel(figure)
    found = [(line, line.learning(column)) for line in group.lines]
    curves = [LabelledCurve(curve=curve, look=line.look, gid=f"series-{line.series}") for line, curve in found if curve]
    levels = median_levels(group) if column == "tv" else []
    draw_learning(axes, curves, levels, column)
    if levels:
        add_legend(axes)
    return figure


def median_levels(group: Group) -> list[Level]:
    """Levels that some run of the group knows, medians over runs."""
    known = [(key, label, group.values(key)) for key, label in LEVELS.items()]
    found = [(key, label, float(np.median(values))) for key, label, values in known if values]
    return [Level(key=key, value=value, label=f"{label} {value:.3f}") for key, label, value in found]


def score_drawings(group: Group, key: str) -> list[tuple[Line, Drawing]]:
    """The distribution of scores of each label that has one, all on the same axes."""
    edges = shared_edges([scores for line in group.lines for scores in line.scores])
    if edges is None:
        return []
    known = [(line, mean_scores(line.scores, edges)) for line in group.lines if line.scores]
    top = 1.05 * max(float(share.max()) for _, scores in known for share in scores.known.values())
    return [(line, _score_drawing(line, scores, top, f"{key}-{line.series}")) for line, scores in known]


def _score_drawing(line: Line, scores: Scores, top: float, key: str) -> Drawing:
    figure = new_figure(*SMALL)
    axes = add_panel(figure)
    draw_scores(axes, scores, line.look.colour)
    axes.set_ylim(0, top)
    means = ", ".join(f"mean of {name} {mean:.3f}" for name, mean in scores.means.items())
    return drawing(figure, key=key, said=f"Scores of {line.label}: {means}")


def loss_drawing(label: str, source: Source, key: str) -> Drawing:
    """The loss of one run over steps."""
    figure = new_figure(*MEDIUM)
    draw_loss(add_panel(figure), source)
    return drawing(figure, key=key, said=f"Loss of {label} over steps: ends at {source.rows[-1]['loss']:.3g}")


def panel_drawing(label: str, panel: Panel, key: str) -> Drawing:
    """One of a run's further panels."""
    figure = new_figure(*MEDIUM)
    panel.draw(add_panel(figure))
    return drawing(figure, key=key, said=f"{label}: {panel.said}")
