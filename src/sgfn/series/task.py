"""The task `series`: forecasts of the steps after the end of each series."""

from dataclasses import replace

from sgfn.config import TrainConfig
from sgfn.config.checks import require
from sgfn.config.series import SeriesConfig
from sgfn.landscapes.tasks import Task, assemble
from sgfn.series.classical import NO_COVARIATES, REGRESSION
from sgfn.series.data import forecast_env, paths_of, read_data, series_data
from sgfn.series.frames import naming_file
from sgfn.series.horizons import with_horizon
from sgfn.series.panel import Panel
from sgfn.series.supports import check_given


def make(name: str, config: TrainConfig) -> Task:
    """The task of the configured series."""
    with naming_file(config.series):
        return series_task(read_data(config.series), config)


def check_laws(config: SeriesConfig, panel: Panel) -> None:
    """Raise where a law was asked for by its name that has nothing to read."""
    if config.laws in ("auto", "classical") or REGRESSION not in config.law_names or panel.known_names:
        return
    require(False, "series.laws", f"leave {REGRESSION} out: {NO_COVARIATES} (--known names them)", config.laws)


def series_task(panel: Panel, config: TrainConfig) -> Task:
    """Task of forecasting the steps after the end of each series of a panel."""
    check_given(config.series.support, panel)
    check_laws(config.series, panel)
    config = with_horizon(config, panel)
    data = series_data(panel, config.series)
    inputs, deviation = data.inputs_at_ends(), config.series.deviation if config.series.noise == "known" else 0.0
    env, landscape = forecast_env(data.bins, inputs, deviation), paths_of(data.bins, inputs)
    summary = f"{len(panel):,} series, {env.horizon} steps ahead, {env.bins} bins"
    return replace(assemble("series", config, env, landscape, 1.0, summary), series=data)
