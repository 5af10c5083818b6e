"""Intervals of scores: how far a backtest of few windows can be trusted."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64

from sgfn.evaluation.metrics.forecast import ends, pinball
from sgfn.series.backtest import INTERVAL, Forecasts
from sgfn.series.protocol import Origin, scales, truths

SMALL = 30
"""Values of a backtest below which it is called small."""
DRAWS = 400
LEVEL = 0.9
"""Probability of an interval of a score."""


def score_intervals(found: Forecasts, origins: Sequence[Origin], lag: int = 1) -> dict[str, tuple[float, float] | None]:
    """Intervals of 90 % of WQL, MASE and coverage by a bootstrap over windows, over values where there is one window.

    Reference: Efron and Tibshirani (1993), An introduction to the bootstrap, chapter 13.
    """
    truth = truths(origins)
    low, high = ends(found.levels, INTERVAL)
    seen = ~np.isnan(truth)
    scale = scales(origins, lag)[:, None]
    scaled = seen & (scale > 0)
    parts = {
        "wql": (pinball(found.quantiles, truth, found.levels).mean(-1), np.abs(truth), seen),
        "mase": (np.abs(truth - found.median) / np.where(scale > 0, scale, 1.0), np.ones_like(truth), scaled),
        "coverage_80": (
            1.0 * ((found.quantiles[..., low] <= truth) & (truth <= found.quantiles[..., high])),
            np.ones_like(truth),
            seen,
        ),
    }
    return {
        name: bootstrap(*(_units(part, where) for part in (above, below)))
        for name, (above, below, where) in parts.items()
    }


def _units(part: Float64[np.ndarray, "N H"], where: np.ndarray) -> Float64[np.ndarray, " U"]:
    """Sums by window; the values themselves where there is one window."""
    return np.where(where, part, 0.0).sum(1) if len(part) > 1 else part[where]


def bootstrap(above: Float64[np.ndarray, " U"], below: Float64[np.ndarray, " U"]) -> tuple[float, float] | None:
    """Interval of a ratio of sums over units that are drawn with replacement; None where nothing is known of it."""
    if len(above) < 2 or not below.sum() > 0:
        return None
    counts = np.random.default_rng(0).multinomial(len(above), np.full(len(above), 1 / len(above)), size=DRAWS)
    total = counts @ below
    found = np.quantile((counts @ above)[total > 0] / total[total > 0], [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(found[0]), float(found[1])
