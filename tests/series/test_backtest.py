"""Backtests: scores and tables of several methods on the same windows."""

import numpy as np
import pytest

from sgfn.evaluation.metrics import forecast as metrics
from sgfn.series.backtest import (
    Forecasts,
    backtest_table,
    baseline_forecasts,
    level_name,
    levels_in,
    score,
    scores_by_series,
)
from sgfn.series.baselines import BaselineSettings
from sgfn.series.panel import Panel, Series
from sgfn.series.protocol import Origin, rolling_origins


def windows() -> tuple[Panel, tuple[Origin, ...]]:
    """Two series of different length and noise, three windows each."""
    rng, made = np.random.default_rng(0), []
    for name, count, noise in (("a", 60, 1.0), ("b", 45, 5.0)):
        stamps = (np.datetime64("2024-01-01") + np.arange(count)).astype("datetime64[ns]")
        none = np.zeros((count, 0))
        made.append(Series(name=name, stamps=stamps, values=rng.normal(50, noise, count), known=none, past=none))
    panel = Panel(series=tuple(made), step=np.timedelta64(1, "D"))
    return panel, rolling_origins(panel, horizon=5, windows=3)


def test_scores_are_the_metrics_over_all_windows() -> None:
    panel, origins = windows()
    told: list[tuple[str, int, int]] = []
    found = baseline_forecasts("seasonal naive", origins, BaselineSettings.of(panel), lambda *args: told.append(args))
    truth = np.stack([one.truth for one in origins])
    scores = score(found, origins)
    assert scores["wql"] == metrics.wql(found.quantiles, truth)
    assert scores["mae"] == metrics.mae(found.quantiles[..., 4], truth)
    assert told == [("seasonal naive", done, 6) for done in range(1, 7)]
    by_series = scores_by_series(found, origins)
    assert by_series["b"]["mae"] > 2 * by_series["a"]["mae"]
    assert np.mean([one["mae"] for one in by_series.values()]) == pytest.approx(scores["mae"])  # as many windows each


def test_the_truth_itself_scores_best() -> None:
    _, origins = windows()
    truth = np.stack([one.truth for one in origins])
    perfect = Forecasts(
        method="oracle", levels=metrics.LEVELS, quantiles=np.repeat(truth[..., None], 9, -1), mean=truth
    )
    scores = score(perfect, origins)
    assert {key: scores[key] for key in ("mse", "mae", "mase", "wql")} == {"mse": 0, "mae": 0, "mase": 0, "wql": 0}
    assert scores["coverage_80"] == 1.0


def test_tables_hold_what_was_said_and_what_came() -> None:
    panel, origins = windows()
    setting = BaselineSettings.of(panel)
    found = [baseline_forecasts(name, origins, setting) for name in ("naive", "seasonal naive")]
    table = backtest_table(found, origins)
    assert len(table) == 2 * 6 * 5
    np.testing.assert_allclose(levels_in(table), metrics.LEVELS)
    one = table[(table.method == "naive") & (table.unique_id == "b")]
    assert one["ds"].min() > one["cutoff"].min()
    np.testing.assert_array_equal(one["y"].to_numpy()[-5:], panel["b"].values[-5:])
    np.testing.assert_allclose(one["q0.9"].to_numpy(), found[0].quantiles[3:, :, 8].ravel())
    assert [level_name(level) for level in (0.05, 0.5, 0.975)] == ["q0.05", "q0.5", "q0.975"]
