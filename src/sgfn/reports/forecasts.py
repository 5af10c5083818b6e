"""`forecast`: train on a panel, judge the forecaster on its last windows beside baselines, forecast what follows."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sgfn.config import TrainConfig
from sgfn.config.cluster import check_cluster_settings, checked_address, connect, ray_module
from sgfn.config.files import nulls
from sgfn.config.shell import command
from sgfn.config.staging import staging, take_over
from sgfn.reports.axes import save
from sgfn.reports.forecast_figure import (
    FAN,
    OUR_METHOD,
    SHOWN_PATHS,
    calibration_chart,
    calibration_of,
    fan_chart,
    file_names,
)
from sgfn.reports.forecast_plan import OUTPUTS, PAGE, TASK, Plan, planned
from sgfn.reports.pages.forecast import SHOWN_SERIES, write_forecast_page
from sgfn.reports.scenarios import PREFIX, SCENARIOS, scenarios_of, summaries, tilted, write_tilted
from sgfn.runs.folder import Run
from sgfn.runs.train import absolute, train
from sgfn.runs.trust import Trust, named
from sgfn.series.backtest import (
    Forecasts,
    ProgressCallback,
    backtest_table,
    baseline_forecasts,
    quantile_table,
    score,
    scores_by_series,
)
from sgfn.series.bank import ASKED, LawRunner, run_here
from sgfn.series.baselines import BaselineSettings
from sgfn.series.classical import NEEDS, has_statsforecast
from sgfn.series.cluster_laws import ClusterLaws
from sgfn.series.files import Outcome, history_table, path_table, replacing_table
from sgfn.series.forecaster import Forecaster
from sgfn.series.frames import plural
from sgfn.series.laid_laws import laid_into, laid_means
from sgfn.series.panel import Panel
from sgfn.series.prediction import Forecast, StackedForecast
from sgfn.series.protocol import Origin, scales, truths
from sgfn.series.quantile_laws import QuantileLaw
from sgfn.series.score_intervals import SMALL, score_intervals
from sgfn.series.seasons import CYCLES
from sgfn.series.settings import Settings
from sgfn.series.stacked import TOLD, time_text
from sgfn.series.tilt import Tilted

REFIT = "refit"
MANY_SERIES = 200
"""Series above which sample paths are drawn for the pictures alone, unless they are written."""
SHOWN_HORIZONS = 8
"""Horizons of history that pictures may need."""
JUDGED_BY = 1
"""Sample paths of a window of the backtest: scores are those of the law of each step, which needs none."""
Notice = Callable[[str], None]
TrainingCallback = Callable[[int, dict[str, Any]], None]


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Functions that are called while a forecast is made, to show how far it is; each may be left out."""

    notice: Notice = lambda _: None
    """Called with one line that the user should read."""
    training: TrainingCallback | None = None
    """Called with the step and the newest figures."""
    windows: ProgressCallback | None = None
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
    trust: bool = False,
    cluster: str | None = None,
    cluster_cpus: float = 1.0,
    cluster_gpus: float | None = None,
) -> Forecasted:
    """Forecast the data of `config.series` into the run folder `out`.

    With `resume` the network in the folder is trained to its end with its own configuration; everything else is done
    again, so that a finished run may be asked for other quantiles or windows' baselines. Files and code that only the
    folder names are not used unless it is trusted, or `config` names them again. With `cluster` the classical laws of
    series are computed by jobs of Ray, with the same numbers; the network and the weights are learned here.
    """
    progress, out = progress or Progress(), Path(out)
    laws = runner_of(cluster, cluster_cpus, cluster_gpus)
    trusted = trust or named(TASK, absolute(config))
    plan = planned(config, settings, out, resume=resume, overwrite=overwrite, trust=trusted)
    for line in plan.notices:
        progress.notice(line)
    with ExitStack() as locks:
        how: dict[str, Any] = {"device": device, "progress": progress, "trust": trusted}
        trained(plan.config, out, resume=resume, overwrite=overwrite, **how, locks=locks)
        if isinstance(laws, ClusterLaws):
            locks.enter_context(connect(laws.cluster))  # one connection for all laws
        return carried_out(plan, settings, out, laws, **how)


def carried_out(
    plan: Plan, settings: Settings, out: Path, laws: LawRunner, *, device: str, progress: Progress, trust: Trust
) -> Forecasted:
    """Judge the network in the folder on the plan's windows, forecast what follows, and write both."""
    config, panel, origins = plan.config, plan.panel, plan.origins
    forecaster = told(Forecaster.load(out, device=device, trust=trust), progress, laws)
    found = judged(forecaster, origins, panel, settings, progress)
    if settings.refit and origins:
        forecaster = told(refitted(config, out / REFIT, device, progress, trust), progress, laws)
    ahead = forecaster.predict(panel, samples=drawn_paths(settings, len(panel)), seed=config.seed)
    if settings.paths is not None and len(panel) > 1:
        progress.notice(paths_line(forecaster, ahead, panel))
    scenarios = tilted(forecaster, settings, progress.windows) if settings.tilt else []
    outcome = outcome_of(config, panel, origins, found, ahead, settings)
    if isinstance(ahead, StackedForecast):
        composition = forecaster.stacked.composition(ahead).to_json()
        outcome.scores["composition"] = composition | {"seasons": seasons_words(forecaster, panel)}
        for line in filter(None, [forecaster.stacked.moved_line(panel), breaks_line(forecaster, panel)]):
            progress.notice(line)
    return written(out, config, outcome, scenarios, settings)


def drawn_paths(settings: Settings, series: int) -> int:
    """Sample paths of each series: as many as were asked for, or those of pictures where nothing else reads them."""
    return settings.samples if settings.paths is not None or series <= MANY_SERIES else SHOWN_PATHS


def paths_line(forecaster: Forecaster, ahead: Forecast, panel: Panel) -> str:
    """Whether paths of different series are one outcome, and why not."""
    alone = "" if isinstance(ahead, StackedForecast) else "the network alone draws those of each series by itself"
    if why := alone or forecaster.stacked.why_apart(panel):
        return f"paths of different series are drawn independently: {why}"
    return "paths of series that end at the same time are joint: those of one number are one outcome of all"


def breaks_line(forecaster: Forecaster, panel: Panel) -> str:
    """One line about breaks of level that are read through, before the ends; empty where there are none."""
    bank, found = forecaster.stacked.bank(panel), list[str]()
    for number, one in enumerate(panel.series):
        if (broken := bank.level_break(number, len(one))) is not None:
            found.append(f"{one.name} {time_text(one.stamps[broken.place])} by {broken.change:+,.6g}")
    if not found:
        return ""
    more = f" and {len(found) - TOLD:,} more" if len(found) > TOLD else ""
    return f"values before a break of level are read as if after it: {'; '.join(found[:TOLD])}{more}"


def seasons_words(forecaster: Forecaster, panel: Panel) -> str:
    """Which seasons the series show at their ends, and what to do where none does; empty where none is looked for."""
    bank, most = forecaster.stacked.bank(panel), max(map(len, panel.series))
    looked = [steps for steps in bank.periods if CYCLES * steps <= most]
    some = list(range(len(panel)))[:: max(1, len(panel) // ASKED)]
    shown = [bank.seasons(number, len(panel.series[number])) for number in some]
    counts = {steps: sum(steps in one for one in shown) for steps in sorted({steps for one in shown for steps in one})}
    if counts and len(some) == 1:
        return f"season of {' and '.join(f'{steps:,}' for steps in counts)} steps"
    if counts:
        parts = ", ".join(f"{steps:,} steps in {count:,}" for steps, count in counts.items())
        return f"seasons of {parts} of {len(some):,} series that were asked"
    return f"no season shows (--season {looked[0]} takes one)" if looked and not bank.given else ""


def told(forecaster: Forecaster, progress: Progress, laws: LawRunner = run_here) -> Forecaster:
    """A forecaster whose stack tells how far it is, and computes classical laws by `laws`."""
    forecaster.stacked.progress, forecaster.stacked.runner = progress.windows, laws
    return forecaster


def runner_of(cluster: str | None, cpus: float, gpus: float | None) -> LawRunner:
    """What computes classical laws: this process, or a cluster, whose package must be installed."""
    check_cluster_settings(cluster, cpus, gpus)
    if gpus:
        raise ValueError("classical laws run on CPUs: leave --cluster-gpus out")
    if cluster is None:
        return run_here
    ray_module()
    return ClusterLaws(cluster=checked_address(cluster), cpus=cpus)


# Training


def trained(
    config: TrainConfig,
    out: Path,
    *,
    resume: bool,
    overwrite: bool,
    device: str,
    progress: Progress,
    trust: Trust,
    copies: Mapping[str, Path] | None = None,
    locks: ExitStack | None = None,
) -> None:
    """Train into a run folder, as `sgfn train series` does; a stop tells how to go on."""
    wanted = None if resume else config
    try:
        how = {"resume": resume, "overwrite": overwrite, "device": device, "copies": copies, "trust": trust}
        how["locks"] = locks
        tell, total = progress.training, config.steps
        shown = None if tell is None else lambda step, row: tell(step, row | {"steps": total})
        train(TASK, wanted, out, **how, progress=shown)
    except KeyboardInterrupt as stop:
        again = command("forecast", config.series.file or config.series.dataset)
        told = str(stop).replace(command("train", TASK), again, 1)
        raise KeyboardInterrupt(told) from None


def refitted(config: TrainConfig, out: Path, device: str, progress: Progress, trust: Trust) -> Forecaster:
    """A forecaster that learned from all data, in a run folder inside the first; one that is there is finished."""
    whole, run = config.with_(series__spare=0, series__spares=""), Run(path=out, trust=trust)
    first = Run(path=out.parent, trust=trust)
    resume = (out / "config.json").is_file() and run.read_config()[1] == absolute(whole)
    resume = resume and run.manifest().files == first.manifest().files  # other data, another network
    how = {"resume": resume, "overwrite": not resume, "device": device, "progress": progress, "trust": trust}
    trained(whole, out, **how, copies=None if resume else first.copies())
    return Forecaster.load(out, device=device, trust=trust)


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
    return found + baselines_of(forecaster, origins, panel, settings, progress)


def baselines_of(
    forecaster: Forecaster, origins: tuple[Origin, ...], panel: Panel, settings: Settings, progress: Progress
) -> list[Forecasts]:
    """Forecasts of the classical laws that fit the windows, laid into the supports of the series as ours are.

    A window that one does not fit has seasonal naive's.
    """
    setting = BaselineSettings.of(panel, forecaster.config.series.season, settings.array)
    bank, numbers = forecaster.stacked.bank(panel), {one.name: at for at, one in enumerate(panel.series)}
    cuts = [(numbers[one.series.name], one.cut) for one in origins]
    every = forecaster.stacked.supports(panel)
    supports = [every[number] for number, _ in cuts]
    naive = baseline_forecasts("seasonal naive", origins, setting)
    naive = replace(naive, quantiles=laid_into(supports, naive.quantiles), mean=laid_into(supports, naive.mean))
    found = [naive] if "seasonal naive" in settings.baseline_names else []
    wanted = [name for name in settings.baseline_names if name != "seasonal naive"]
    if wanted and not has_statsforecast():
        progress.notice(NEEDS)
    asked = settings.baselines != "auto"
    for name in wanted:
        why = bank.why_not(name, cuts) or ("" if asked else forecaster.stacked.too_slow.get(name, ""))
        if asked and why:
            progress.notice(f"baseline {name} is left out: {why}")
        if not why:
            law = bank.quantiles(name, cuts, progress.windows)
            there = ~np.isnan(law).any((1, 2))
            quantiles, mean = naive.quantiles.copy(), naive.mean.copy()
            fitted, its = QuantileLaw(values=law[there]), [supports[at] for at in np.flatnonzero(there)]
            quantiles[there] = laid_into(its, fitted.quantile(settings.array))
            mean[there] = laid_means(its, fitted)
            found.append(Forecasts(method=name, levels=settings.array, quantiles=quantiles, mean=mean))
    return found


def forecasts_of(found: Forecast, settings: Settings) -> Forecasts:
    """Our own forecast as a table of quantiles."""
    return Forecasts(
        method=OUR_METHOD, levels=settings.array, quantiles=found.quantiles(settings.levels), mean=found.mean
    )


def scores_of(found: list[Forecasts], origins: tuple[Origin, ...], settings: Settings) -> dict[str, Any]:
    """Scores of each method over all windows, and of each series."""
    values = int((~np.isnan(truths(origins))).sum()) if origins else 0
    return {
        "windows": len(origins),
        "values": values,
        "small": bool(origins) and values < SMALL,
        "intervals": {one.method: score_intervals(one, origins, settings.lag) for one in found},
        "lag": settings.lag,
        "levels": list(settings.levels),
        "methods": {one.method: score(one, origins, settings.lag) for one in found},
        "by_series": {one.method: scores_by_series(one, origins, settings.lag) for one in found},
    }


# What is written


def outcome_of(
    config: TrainConfig,
    panel: Panel,
    origins: tuple[Origin, ...],
    found: list[Forecasts],
    ahead: Forecast,
    settings: Settings,
) -> Outcome:
    """Tables and scores of a forecast."""
    future = quantile_table(list(ahead.names), ahead.stamps, forecasts_of(ahead, settings))
    backtest = backtest_table(found, origins) if found else empty_backtest(future)
    stamps = "known" if panel.step is None else "regular"
    scores = {"horizon": config.series.steps_ahead, "future_stamps": stamps} | nulls(
        scores_of(found, origins, settings)
    )
    if found:
        levels, shares = calibration_of(backtest[backtest["method"] == OUR_METHOD])
        scores["calibration"] = {f"{level:g}": float(share) for level, share in zip(levels, shares, strict=True)}
    paths = path_table(ahead, None if settings.paths is not None else max(SHOWN_SERIES, settings.figures))
    history = history_table(panel, SHOWN_HORIZONS * config.series.steps_ahead)
    return Outcome(history=history, forecast=future, backtest=backtest, scores=scores, paths=paths)


def written(out: Path, config: TrainConfig, outcome: Outcome, found: list[Tilted], settings: Settings) -> Forecasted:
    """Write tables, scores, scenarios, pictures and page, which then take the places of an earlier forecast together.

    The caller has locked the folder. The file of paths may lie elsewhere, and follows in the same moment.
    """
    with staging(out) as new:
        outcome.write(new)
        pictures = drawn(new, outcome, settings.figures)
        if found:
            pictures += write_tilted(new, found, outcome, settings)
            outcome = replace(outcome, scenarios=scenarios_of(found, settings))
        write_forecast_page(new / PAGE, *headline(config, outcome), outcome)
        old = [path.name for prefix in (FAN, PREFIX) for path in out.glob(f"{prefix}*.png") if path.is_file()]
        assert outcome.paths is not None
        with nullcontext() if settings.paths is None else replacing_table(settings.paths, outcome.paths):
            take_over(out, [*OUTPUTS, *old])
    return Forecasted(path=out, outcome=outcome, pictures=pictures, tilt=summaries(found))


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
    without = "network" in outcome.scores.get("composition", {}).get("left_out", {})
    learned = "no network trained" if without else f"network of {plural(config.steps, 'step', 'steps')}"
    dot = " \N{MIDDLE DOT} "
    lead = dot.join([many, f"{plural(series.steps_ahead, 'step', 'steps')} ahead", learned, f"seed {config.seed}"])
    return f"Forecast of {name}", lead
