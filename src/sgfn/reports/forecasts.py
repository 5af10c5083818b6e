"""`forecast`: train on a panel, judge the forecaster on its last windows beside baselines, forecast what follows."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sgfn.config import TrainConfig, differing
from sgfn.config.presets import PRESETS
from sgfn.config.series import SeriesConfig
from sgfn.reports.axes import save
from sgfn.reports.forecast_figure import OUR_METHOD, calibration_chart, calibration_of, fan_chart, file_names
from sgfn.reports.pages.forecast import write_forecast_page
from sgfn.reports.scenarios import PREFIX, SCENARIOS, SUMMARY, check_cost, scenarios_of, summaries, tilted, write_tilted
from sgfn.runs.copies import files_there, large_copies
from sgfn.runs.folder import Run
from sgfn.runs.table_files import kind_of
from sgfn.runs.train import absolute, train
from sgfn.series import datasets
from sgfn.series.backtest import (
    Forecasts,
    Told,
    backtest_table,
    baseline_forecasts,
    quantile_table,
    score,
    scores_by_series,
)
from sgfn.series.baselines import NEEDS, BaselineSettings, ets_is_there
from sgfn.series.data import before_end, columns_of
from sgfn.series.files import FILES, WRITERS, Outcome, history_table, nulls, path_table, write_table
from sgfn.series.forecaster import Forecaster
from sgfn.series.frames import Reading, read_panel
from sgfn.series.panel import Panel
from sgfn.series.plan import unread
from sgfn.series.prediction import Forecast
from sgfn.series.protocol import Origin, scales
from sgfn.series.settings import TESTED, Settings, fewer_windows, spares

TASK, REFIT, PAGE = "series", "refit", "report.html"
SHOWN_HORIZONS = 8
"""Horizons of history that pictures may need."""
JUDGED_BY = 1
"""Sample paths of a window of the backtest: scores are those of the law of each step, which needs none."""
Notice = Callable[[str], None]
TrainTold = Callable[[int, dict[str, Any]], None]


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Functions that are called while a forecast is made, to show how far it is; each may be left out."""

    notice: Notice = lambda _: None
    """Called with one line that the user should read."""
    training: TrainTold | None = None
    """Called with the step and the newest figures."""
    windows: Told | None = None
    """Called with a method, windows done and windows in all."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Forecasted:
    """Result of `forecast`: its run folder, its tables and scores, and the pictures that were drawn."""

    path: Path
    outcome: Outcome
    pictures: tuple[str, ...]
    tilt: dict[str, dict[str, float]] = field(default_factory=dict)
    """Figures of the scenarios of each series, where a tilt was asked for."""

    def summary(self) -> dict[str, Any]:
        """Scores and files, for JSON."""
        series = {"run": str(self.path), "series": len(self.outcome.names)}
        files = {"forecast": "forecast.csv", "backtest": "backtest.csv", "page": PAGE, "scenarios": SCENARIOS}
        files = {name: str(self.path / file) for name, file in files.items() if (self.path / file).is_file()}
        told = series | self.outcome.scores | ({"tilt": nulls(self.tilt)} if self.tilt else {})
        return told | {"files": files | {"pictures": [str(self.path / name) for name in self.pictures]}}


def forecast(
    config: TrainConfig,
    settings: Settings,
    out: Path,
    *,
    resume: bool = False,
    overwrite: bool = False,
    device: str = "auto",
    progress: Progress | None = None,
) -> Forecasted:
    """Forecast the data of `config.series` into the run folder `out`.

    With `resume` the network in the folder is trained to its end with its own configuration; everything else is done
    again, so that a finished run may be asked for other quantiles or windows' baselines.
    """
    progress, out = progress or Progress(), Path(out)
    check_output(settings, overwrite=overwrite, resume=resume)
    if resume:
        config = resumed(Run(path=out), config)
    else:
        Run(path=out).check(overwrite=overwrite)
    reading = read_series((Run(path=out).own_config() if resume else config).series)
    large = "" if resume else large_copies(files_there(config), out)
    for line in filter(None, (*reading.notices, large)):
        progress.notice(line)
    panel, origins = reading.panel, settings.origins(reading.panel, config.series.horizon)
    check_future(config.series, panel)
    if settings.tilt:
        check_cost(settings, panel, config.series.horizon)
    if resume and settings.windows is None:
        origins = kept_windows(origins, panel, config.series)
    config = kept_apart(config, origins, panel, resume=resume, out=out)
    for line in remarks(config.series, panel, origins, settings):
        progress.notice(line)
    trained(config, out, resume=resume, overwrite=overwrite, device=device, progress=progress)
    forecaster = Forecaster.load(out, device=device)
    found = judged(forecaster, origins, panel, settings, progress)
    if settings.refit and origins:
        forecaster = refitted(config, out / REFIT, device, progress)
    ahead = forecaster.predict(panel, samples=settings.samples, seed=config.seed)
    done = written(out, config, panel, origins, found, ahead, settings)
    return with_scenarios(done, forecaster, settings, progress) if settings.tilt else done


def with_scenarios(done: Forecasted, forecaster: Forecaster, settings: Settings, progress: Progress) -> Forecasted:
    """Write tilted scenarios of each series, and the page anew with them; returns the result with both."""
    found = tilted(forecaster, settings, progress.windows)
    pictures = write_tilted(done.path, found, done.outcome, settings)
    outcome = replace(done.outcome, scenarios=scenarios_of(found, settings))
    write_forecast_page(done.path / PAGE, *headline(forecaster.config, outcome), outcome)
    return replace(done, outcome=outcome, pictures=(*done.pictures, *pictures), tilt=summaries(found))


# Before


def remarks(config: SeriesConfig, panel: Panel, origins: tuple[Origin, ...], settings: Settings) -> list[str]:
    """Lines for the user about the backtest and the calendar, before training begins."""
    found = [*unread(before_end(panel, config.kept(len(panel))), config)]
    if not origins and settings.windows is None:
        why = f"no window in the last 1/{TESTED} of a series holds a value and has {settings.lag + 1} before it"
        found.append(f"no backtest: {why}; ask for one by --windows, or take a shorter --horizon")
    return [*found, *filter(None, [fewer_windows(panel, origins, settings.windows)])]


def read_series(config: SeriesConfig) -> Reading:
    """The configured file with what its reader should be told, or embedded data."""
    if config.file is None:
        return Reading(panel=datasets.load(config.dataset), notices=())
    return read_panel(config.file, columns_of(config))


def check_output(settings: Settings, *, overwrite: bool, resume: bool) -> None:
    """Refuse a file of paths that is there, or that cannot be written, before hours are spent."""
    if settings.paths is None:
        return
    kind_of(settings.paths, WRITERS)
    if settings.paths.exists() and not (overwrite or resume):
        raise ValueError(f"{settings.paths} exists: add --overwrite to replace it, or give --paths another name")


def resumed(run: Run, wanted: TrainConfig) -> TrainConfig:
    """The folder's own configuration; flags that ask for another are refused."""
    task, stored = run.read_config()
    if task != TASK:
        raise ValueError(f"{run.path} holds a run of {task}, not a forecast: give --out another name")
    mine = absolute(wanted).with_(series__spare=stored.series.spare, series__spares=stored.series.spares)
    wrong = set(differing(mine, stored)) & set(differing(mine, PRESETS["forecast"]))
    if wrong:
        flags = ", ".join(flag.replace("--series.", "--") for flag in sorted(wrong))
        raise ValueError(f"{run.path} continues with its own configuration: with --resume leave {flags} out")
    return stored


def check_future(config: SeriesConfig, panel: Panel) -> None:
    """Refuse covariates known in advance that are not known as far as the horizon, before hours are spent."""
    for series in panel.series if panel.known_names else ():
        if len(series.future) < config.horizon:
            known, end = ", ".join(panel.known_names), np.datetime_as_string(series.stamps[-1], unit="s")
            raise ValueError(
                f"{config.file}: {known} must be known {config.horizon} steps past the last value of series "
                f"{series.name!r} ({end}), there are {len(series.future)}: add rows with {config.target_col} left "
                "empty, or take a shorter --horizon"
            )


def kept_windows(origins: tuple[Origin, ...], panel: Panel, config: SeriesConfig) -> tuple[Origin, ...]:
    """The windows that a trained run has not learned from."""
    names = [series.name for series in panel.series]
    kept = dict(zip(names, config.kept(len(names)), strict=True))
    return tuple(one for one in origins if len(one.series) - one.cut <= kept[one.series.name])


def kept_apart(
    config: TrainConfig, origins: tuple[Origin, ...], panel: Panel, *, resume: bool, out: Path
) -> TrainConfig:
    """The configuration with as many steps of each series kept from training as its backtest windows need."""
    kept = config.series.kept(len(panel))
    needed = tuple(map(max, kept, spares(origins, panel)))
    if resume and kept != needed:
        raise ValueError(
            f"{out} was trained with {max(kept)} steps kept from it, the backtest needs {max(needed)}: "
            f"take --windows {max(kept) // config.series.horizon}"
        )
    alike = len(set(needed)) == 1
    many = "" if alike else ",".join(map(str, needed))
    return config.with_(series__spare=needed[0] if alike else 0, series__spares=many)


# Training


def trained(
    config: TrainConfig,
    out: Path,
    *,
    resume: bool,
    overwrite: bool,
    device: str,
    progress: Progress,
    copies: Mapping[str, Path] | None = None,
) -> None:
    """Train into a run folder, as `sgfn train series` does; a stop tells how to go on."""
    wanted = None if resume else config
    try:
        how = {"resume": resume, "overwrite": overwrite, "device": device, "copies": copies}
        train(TASK, wanted, out, **how, progress=progress.training)
    except KeyboardInterrupt as stop:
        name = config.series.file or config.series.dataset
        told = str(stop).replace(f"sgfn train {TASK}", f"sgfn forecast {name}")
        raise KeyboardInterrupt(told) from None


def refitted(config: TrainConfig, out: Path, device: str, progress: Progress) -> Forecaster:
    """A forecaster that learned from all data, in a run folder inside the first; one that is there is finished."""
    resume = (out / "config.json").is_file()
    whole = config.with_(series__spare=0, series__spares="")
    if resume and Run(path=out).read_config()[1] != absolute(whole):
        resume = False
    copies = None if resume else Run(path=out.parent).copies()
    trained(whole, out, resume=resume, overwrite=not resume, device=device, progress=progress, copies=copies)
    return Forecaster.load(out, device=device)


# The backtest


def judged(
    forecaster: Forecaster, origins: tuple[Origin, ...], panel: Panel, settings: Settings, progress: Progress
) -> list[Forecasts]:
    """Our forecasts of the windows, then those of the baselines."""
    if not origins:
        return []
    if unscaled := int((~(scales(origins, settings.lag) > 0)).sum()):
        progress.notice(f"MASE leaves out {unscaled} of {len(origins)} windows: nothing changes in the history before")
    cuts = [(one.series.name, one.cut) for one in origins]
    if progress.windows:
        progress.windows(OUR_METHOD, 0, len(origins))
    ours = forecaster.predict(panel, origins=cuts, samples=JUDGED_BY)
    found = [forecasts_of(ours, settings)]
    if progress.windows:
        progress.windows(OUR_METHOD, len(origins), len(origins))
    setting = BaselineSettings.of(panel, forecaster.config.series.season, settings.array)
    methods = ["seasonal naive"] + ["AutoETS"] * (settings.ets and ets_is_there())
    if settings.ets and not ets_is_there():
        progress.notice(NEEDS)
    return found + [baseline_forecasts(method, origins, setting, progress.windows) for method in methods]


def forecasts_of(found: Forecast, settings: Settings) -> Forecasts:
    """Our own forecast as a table of quantiles."""
    return Forecasts(
        method=OUR_METHOD, levels=settings.array, quantiles=found.quantiles(settings.levels), mean=found.mean
    )


def scores_of(found: list[Forecasts], origins: tuple[Origin, ...], settings: Settings) -> dict[str, Any]:
    """Scores of each method over all windows, and of each series."""
    return {
        "windows": len(origins),
        "lag": settings.lag,
        "levels": list(settings.levels),
        "methods": {one.method: score(one, origins, settings.lag) for one in found},
        "by_series": {one.method: scores_by_series(one, origins, settings.lag) for one in found},
    }


# What is written


def written(
    out: Path,
    config: TrainConfig,
    panel: Panel,
    origins: tuple[Origin, ...],
    found: list[Forecasts],
    ahead: Forecast,
    settings: Settings,
) -> Forecasted:
    """Write tables, scores, pictures and page, after removing those of an earlier forecast."""
    ours = [out / name for name in (*FILES, SCENARIOS, SUMMARY)]
    for old in [*ours, *out.glob("fan-*.png"), *out.glob(f"{PREFIX}*.png")]:
        old.unlink(missing_ok=True)
    future = quantile_table(list(ahead.names), ahead.stamps, forecasts_of(ahead, settings))
    backtest = backtest_table(found, origins) if found else empty_backtest(future)
    stamps = "known" if panel.step is None else "regular"
    scores = {"horizon": config.series.horizon, "future_stamps": stamps} | nulls(scores_of(found, origins, settings))
    if found:
        levels, shares = calibration_of(backtest[backtest["method"] == OUR_METHOD])
        scores["calibration"] = {f"{level:g}": float(share) for level, share in zip(levels, shares, strict=True)}
    paths = path_table(ahead)
    if settings.paths is not None:
        write_table(settings.paths, paths)
    rows = SHOWN_HORIZONS * config.series.horizon
    outcome = Outcome(
        history=history_table(panel, rows), forecast=future, backtest=backtest, scores=scores, paths=paths
    )
    outcome.write(out)
    pictures = drawn(out, outcome, settings.figures)
    write_forecast_page(out / PAGE, *headline(config, outcome), outcome)
    return Forecasted(path=out, outcome=outcome, pictures=pictures)


def empty_backtest(future: pd.DataFrame) -> pd.DataFrame:
    """A backtest table with all columns and no rows."""
    return future.iloc[:0].assign(method="", cutoff=future["ds"].iloc[:0], y=np.empty(0))


def drawn(out: Path, outcome: Outcome, figures: int) -> tuple[str, ...]:
    """Draw a fan chart of each of the first series, and the calibration if there is a backtest; returns file names."""
    files = file_names(outcome.names[:figures])
    for name, file in files.items():
        save(fan_chart(name, outcome), out / file)
    if not figures or not len(outcome.backtest):
        return tuple(files.values())
    save(calibration_chart(outcome.backtest), out / "calibration.png")
    return (*files.values(), "calibration.png")


def headline(config: TrainConfig, outcome: Outcome) -> tuple[str, str]:
    """Title and first line of the page."""
    series = config.series
    name = series.dataset if series.file is None else series.file.name
    many = f"{len(outcome.names):,} series" if len(outcome.names) > 1 else "one series"
    lead = f"{many} \N{MIDDLE DOT} {series.horizon} steps ahead \N{MIDDLE DOT} {config.steps:,} training steps"
    return f"Forecast of {name}", f"{lead} \N{MIDDLE DOT} seed {config.seed}"
