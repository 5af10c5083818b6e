"""Panels about methods: what they learn over environment calls, and the scores of what comes out."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from sgfn.reports.axes import count_axis, name_axes
from sgfn.reports.curves import Curve, Scores
from sgfn.reports.looks import DASH_DOTTED, DASHED, DOTTED, GREY, MUTED, WHITE, LineStyle, Look

NAMES = {"tv": "total variation to the target", "log_reward": "mean log-reward of a batch"}
"""Columns of the metrics that are drawn over environment calls, in words."""
LEVEL_LINES: dict[str, LineStyle] = {"tv_floor": DASHED, "tv_blind": DASH_DOTTED, "tv_uniform": DOTTED}
SCORE_NAMES = {"target": "target", "law": "exact law of the trained policy", "samples": "samples from it"}


@dataclass(frozen=True, kw_only=True)
class LabelledCurve:
    """The curve of one method, how it looks, its entry in the legend (none if empty), and its id in an SVG."""

    curve: Curve
    look: Look
    label: str = ""
    gid: str = ""


@dataclass(frozen=True, kw_only=True)
class Level:
    """A value to compare curves with: its key in exact.json, and its entry in the legend."""

    key: str
    value: float
    label: str


def draw_learning(
    axes: Axes, curves: Sequence[LabelledCurve], levels: Sequence[Level], column: str, x: str = "environment calls"
) -> None:
    """Draw medians over seeds with bands, a mark at each end, and horizontal lines for the levels."""
    name_axes(axes, x, NAMES[column])
    for one in curves:
        _draw_curve(axes, one)
    for level in levels:
        line = LEVEL_LINES[level.key]
        axes.axhline(level.value, color=MUTED, linestyle=line, linewidth=1.3, zorder=1.5, label=level.label)
    count_axis(axes, max((float(one.curve.x[-1]) for one in curves), default=1.0))
    if column == "tv":
        axes.set_ylim(bottom=0)


def _draw_curve(axes: Axes, one: LabelledCurve) -> None:
    curve, look = one.curve, one.look
    if curve.count > 1 and len(curve.x) > 1:
        axes.fill_between(curve.x, curve.low, curve.high, color=look.colour, alpha=0.16, linewidth=0, gid=one.gid)
    mark = {"marker": look.marker, "markevery": [-1], "markersize": 6, "markeredgecolor": WHITE}
    style = {"color": look.colour, "linestyle": look.line, "linewidth": 1.8, "label": one.label or "_nolegend_"}
    axes.plot(curve.x, curve.middle, gid=one.gid, **style, **mark)


def draw_scores(axes: Axes, scores: Scores, colour: str, names: dict[str, str] | None = None) -> None:
    """Draw shares of scores: the target as a grey area, samples as a pale one, the exact law as a line."""
    names = SCORE_NAMES | (names or {})
    areas = {"target": {"color": GREY}, "samples": {"color": colour, "alpha": 0.3}}
    name_axes(axes, "score", "share of objects")
    for name, share in scores.known.items():
        style = {"fill": True} | areas[name] if name in areas else {"color": colour, "linewidth": 1.8}
        axes.stairs(share, scores.edges, label=names[name], **style)
    axes.set_xlim(float(scores.edges[0]), float(scores.edges[-1]))
