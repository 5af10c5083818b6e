"""Tilted scenarios of `sgfn forecast`: tables of weighted paths, how far they can be trusted, and pictures."""

from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
from jaxtyping import Float64

from sgfn.config.files import nulls, write_json
from sgfn.config.user_code import brief, in_user_code
from sgfn.landscapes.function import load_function
from sgfn.reports.axes import save
from sgfn.reports.forecast_figure import file_names, scenario_chart
from sgfn.series.backtest import ProgressCallback, level_name
from sgfn.series.files import Outcome, Scenarios, write_table
from sgfn.series.forecaster import Forecaster
from sgfn.series.panel import Panel
from sgfn.series.settings import Settings
from sgfn.series.tilt import Cost, Tilted, checked_costs, tilt

SCENARIOS, SUMMARY, PREFIX = "scenarios.csv", "tilt.json", "tilt-"
LEAST = 2048
"""Scenarios drawn at least: the check by importance sampling lives on few of the forecast's own paths."""


def tilted(forecaster: Forecaster, settings: Settings, progress: ProgressCallback | None = None) -> list[Tilted]:
    """Scenarios at the end of each series, in proportion to p(path) exp(cost / T)."""
    cost, series = cost_of(settings), forecaster.fitted.data.panel.series
    options: dict[str, Any] = {
        "temperature": settings.temperature,
        "objective": settings.tilt_objective,
        "steps": settings.tilt_steps,
    }
    options |= {"samples": max(settings.samples, LEAST), "seed": forecaster.config.seed}
    found = []
    for done, one in enumerate(series, start=1):
        found.append(tilt(forecaster, cost, origin=(one.name, len(one)), **options))
        if progress:
            progress("tilt", done, len(series))
    return found


def cost_of(settings: Settings) -> Cost:
    """The cost function that the settings name; whatever it raises becomes a one-line ValueError."""
    function = cast(Cost, load_function(settings.tilt))

    def cost(paths: Float64[np.ndarray, "N H"]) -> Any:
        try:
            return function(paths)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # it may call sys.exit
            why = f"({brief(error)}){in_user_code(error)}"
            raise ValueError(f"tilt {settings.tilt} failed on paths of shape {paths.shape} {why}") from error

    return cost


def check_cost(settings: Settings, panel: Panel, horizon: int) -> None:
    """Call the cost on two paths, so that a wrong one is refused before training."""
    values = panel.series[0].values
    paths = np.resize(values[~np.isnan(values)], (2, horizon))
    checked_costs(cost_of(settings)(paths), len(paths), f"tilt {settings.tilt}")


def write_tilted(out: Path, found: list[Tilted], outcome: Outcome, settings: Settings) -> tuple[str, ...]:
    """Write scenarios.csv, tilt.json and a picture of each of the first series; returns names of the pictures."""
    write_table(out / SCENARIOS, pd.concat([scenario_table(one) for one in found], ignore_index=True))
    record = {"cost": settings.tilt, "temperature": settings.temperature, "objective": settings.tilt_objective}
    record |= {"series": summaries(found)}
    write_json(out / SUMMARY, nulls(record))
    files = file_names([one.name for one in found[: settings.figures]], PREFIX)
    scenarios = scenarios_of(found, settings)
    for name, file in files.items():
        save(scenario_chart(name, outcome, scenarios), out / file)
    return tuple(files.values())


def summaries(found: list[Tilted]) -> dict[str, dict[str, float]]:
    """Effective sample size and other checks of the scenarios of each series."""
    return {one.name: one.summary | {"samples": len(one.paths)} for one in found}


def scenario_table(found: Tilted) -> pd.DataFrame:
    """One row per path and step: unique_id, sample, ds, y, and the path's cost and weight."""
    samples, horizon = found.paths.shape
    return pd.DataFrame(
        {
            "unique_id": found.name,
            "sample": np.repeat(np.arange(samples), horizon),
            "ds": np.tile(found.stamps, samples),
            "y": found.paths.reshape(-1),
            "cost": np.repeat(found.cost, horizon),
            "weight": np.repeat(found.weight, horizon),
        }
    )


def weighted_quantiles(
    paths: Float64[np.ndarray, "N H"], weight: Float64[np.ndarray, " N"], levels: Float64[np.ndarray, " Q"]
) -> Float64[np.ndarray, "H Q"]:
    """The least value at each step below which the paths hold that share of the weight.

    >>> weighted_quantiles(np.array([[1.0], [2.0], [3.0]]), np.array([1.0, 1.0, 2.0]), np.array([0.5, 0.9])).tolist()
    [[2.0, 3.0]]
    """
    order = paths.argsort(0, kind="stable")
    share = weight[order].cumsum(0) / weight.sum()  # N H
    at = (share[:, :, None] < levels - 1e-12).sum(0).clip(max=len(paths) - 1)  # H Q
    steps = np.arange(paths.shape[1])[:, None]
    return paths[order[at, steps], steps]


def scenarios_of(found: list[Tilted], settings: Settings) -> Scenarios:
    """Weighted quantiles of each series with the checks of `summaries`, as figures and page need them."""
    tables = [scenario_quantiles(one, settings).assign(unique_id=one.name) for one in found]
    quantiles = pd.concat(tables, ignore_index=True)
    cost, heat = settings.tilt, settings.temperature
    return Scenarios(quantiles=quantiles, figures=summaries(found), cost=cost, temperature=heat)


def scenario_quantiles(found: Tilted, settings: Settings) -> pd.DataFrame:
    """Table of the weighted quantiles of one series: ds, and a column per quantile."""
    quantiles = weighted_quantiles(found.paths, found.weight, settings.array)
    columns = {level_name(level): quantiles[:, at] for at, level in enumerate(settings.levels)}
    return pd.DataFrame({"ds": found.stamps} | columns)
