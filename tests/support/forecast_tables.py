"""Forecasts that no network made: tables as a backtest would leave them, for tests of files, pictures and page."""

import numpy as np

from sgfn.evaluation.metrics.forecast import LEVELS
from sgfn.series.backtest import Forecasts, backtest_table, baseline_forecasts, quantile_table, score
from sgfn.series.baselines import BaselineSettings, seasonal_naive
from sgfn.series.calendar import following
from sgfn.series.files import Outcome, history_table
from sgfn.series.panel import Panel, Series
from sgfn.series.protocol import rolling_origins

HORIZON = 7


def small_panel(names: tuple[str, ...] = ("a", "b <&> c"), count: int = 70, *, gap: bool = False) -> Panel:
    """Daily waves; with a gap, the first series lacks some days."""
    rng, made = np.random.default_rng(0), []
    for name in names:
        stamps = (np.datetime64("2024-01-01") + np.arange(count)).astype("datetime64[ns]")
        values = 50 + 5 * np.sin(np.arange(count) * 2 * np.pi / 7) + rng.normal(0, 1, count)
        none = np.zeros((count, 0))
        made.append(Series(name=name, stamps=stamps, values=values, known=none, past=none))
    if gap:
        made[0].values[-10:-6] = np.nan
    return Panel(series=tuple(made), step=np.timedelta64(1, "D"))


def outcome(panel: Panel | None = None) -> Outcome:
    """Seasonal naive posing as a network, beside naive."""
    panel = panel or small_panel()
    origins, setting = rolling_origins(panel, HORIZON, 4), BaselineSettings.of(panel)
    found = [baseline_forecasts(name, origins, setting) for name in ("seasonal naive", "naive")]
    ours = Forecasts(method="sgfn", levels=LEVELS, quantiles=found[0].quantiles, mean=found[0].mean)
    ahead = np.stack([seasonal_naive(one.values, HORIZON, season=7) for one in panel.series])
    now = Forecasts(method="sgfn", levels=LEVELS, quantiles=ahead, mean=ahead[..., 4])
    stamps = np.stack([following(one.stamps, panel.step, HORIZON) for one in panel.series])
    methods = {one.method: score(one, origins) for one in (ours, found[1])}
    return Outcome(
        history=history_table(panel, 60),
        forecast=quantile_table([one.name for one in panel.series], stamps, now),
        backtest=backtest_table([ours, found[1]], origins),
        scores={"horizon": HORIZON, "windows": len(origins), "methods": methods},
    )
