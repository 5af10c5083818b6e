"""Picture of a proxy: what it predicted of sequences that it had not seen, against what was measured."""

import numpy as np
from matplotlib.axes import Axes

from sgfn.landscapes.proxies import ProxyReport
from sgfn.reports.axes import name_axes
from sgfn.reports.looks import FLOOR, OURS

MOST_POINTS = 2_000
"""Points that are drawn at most, evenly taken from all."""


def proxy_title(report: ProxyReport) -> str:
    """Title of the picture: kind, rank correlation and coverage."""
    return f"Proxy ({report.kind}): rank correlation {report.spearman:.2f}, {report.coverage:.0%} in 80 % intervals"


def draw_proxy(axes: Axes, report: ProxyReport, *, log: bool = False) -> None:
    """Draw predictions out of fold with their standard deviations over measurements, and the diagonal.

    `log`: on axes of logarithms, in which predictions are normal.
    """
    step = -(-len(report.measured) // MOST_POINTS)
    measured, predicted, sd = (values[::step] for values in (report.measured, report.predicted, report.sd))
    bars = {"fmt": "o", "markersize": 3, "linewidth": 0.6, "alpha": 0.5}
    away = np.arcsinh(sd / predicted) if log else sd
    reach = predicted * np.stack([-np.expm1(-away), np.expm1(away)]) if log else sd
    axes.errorbar(measured, predicted, yerr=reach, color=OURS, gid="proxy", **bars)
    ends = [float(np.min(report.measured)), float(np.max(report.measured))]
    axes.plot(ends, ends, color=FLOOR, linewidth=1.2, linestyle="--", gid="diagonal")
    name_axes(axes, "measured", "predicted, its fold left out")
    if log:
        axes.set(xscale="log", yscale="log")
