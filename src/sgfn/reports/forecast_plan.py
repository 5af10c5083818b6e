"""What a forecast will do: its data, windows and configuration, checked before anything is trained or written."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sgfn.config import TrainConfig, differing
from sgfn.config.files import check_writable, refuse_irregular, resolved
from sgfn.config.presets import PRESETS
from sgfn.config.series import SeriesConfig
from sgfn.reports.forecast_figure import file_names
from sgfn.reports.scenarios import PREFIX, SCENARIOS, SUMMARY, check_cost
from sgfn.runs.copies import DATA, files_there, large_copies
from sgfn.runs.folder import Run
from sgfn.runs.table_files import kind_of
from sgfn.runs.train import absolute
from sgfn.runs.trust import Trust
from sgfn.series import datasets
from sgfn.series.data import before_end, columns_of
from sgfn.series.files import FILES, WRITERS
from sgfn.series.frames import Reading, naming_file, read_panel
from sgfn.series.horizons import horizon_line, with_horizon
from sgfn.series.panel import Panel
from sgfn.series.plan import unread
from sgfn.series.protocol import Origin
from sgfn.series.settings import TESTED, Settings, fewer_windows, spares
from sgfn.series.stack_plan import network_left_out, unused_covariates, with_effort
from sgfn.series.tilt_checks import check_network

TASK, PAGE = "series", "report.html"
OUTPUTS = (*FILES, SCENARIOS, SUMMARY)
"""What a forecast writes into its folder besides the run itself and pictures of single series."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a forecast will do."""

    config: TrainConfig
    panel: Panel
    origins: tuple[Origin, ...]
    """Windows of the backtest."""
    notices: tuple[str, ...]
    """Lines for the user, before training begins."""


def planned(config: TrainConfig, settings: Settings, out: Path, *, resume: bool, overwrite: bool, trust: Trust) -> Plan:
    """Read the data and decide what is left to be decided; refuses whatever would fail later, and writes nothing."""
    check_paths(settings, replace=overwrite or resume)
    if resume:
        config = resumed(Run(path=out, trust=trust), config)
    else:
        Run(path=out).check(overwrite=overwrite)
    reading = read_series((own_config(Run(path=out, trust=trust)) if resume else config).series)
    large = "" if resume else large_copies(files_there(config), out)
    panel = reading.panel
    chosen = horizon_line(panel) if config.series.horizon is None else ""
    config = with_horizon(config, panel)
    origins = windows_of(config.series, panel, settings, resume=resume)
    check_future(config.series, panel, reading.targets)
    check_outputs(out, config.series, panel, settings)
    if settings.tilt:
        check_cost(settings, panel, config.series.steps_ahead)
    config = kept_apart(config, origins, panel, resume=resume, out=out)
    if settings.tilt:
        kept = config.series.kept(len(panel))
        parts = [len(one) - steps for one, steps in zip(panel.series, kept, strict=True)]
        check_network(network_left_out(config.series, parts))
    if not resume:
        config = with_effort(config, [len(one) for one in panel.series])
    told = (*reading.notices, large, chosen, *remarks(config.series, panel, origins, settings))
    return Plan(config=config, panel=panel, origins=origins, notices=tuple(filter(None, told)))


def windows_of(config: SeriesConfig, panel: Panel, settings: Settings, *, resume: bool) -> tuple[Origin, ...]:
    """Windows of the backtest; of a run that goes on those which it has not learned from, unless others are wanted."""
    with naming_file(config):
        if not resume:
            config.check_reach(max(len(one) for one in panel.series))
        origins = settings.origins(panel, config.steps_ahead)
    return kept_windows(origins, panel, config) if resume and settings.windows is None else origins


def remarks(config: SeriesConfig, panel: Panel, origins: tuple[Origin, ...], settings: Settings) -> list[str]:
    """Lines for the user about the backtest and the calendar, before training begins."""
    found = [
        *unread(before_end(panel, config.kept(len(panel))), config),
        *filter(None, [unused_covariates(panel, config)]),
    ]
    if not origins and settings.windows is None:
        why = f"no window in the last 1/{TESTED} of a series holds a value and has {settings.lag + 1} before it"
        found.append(f"no backtest: {why}; ask for one by --windows, or take a shorter --horizon")
    return [*found, *filter(None, [fewer_windows(panel, origins, settings.windows)])]


def read_series(config: SeriesConfig) -> Reading:
    """The configured file with what its reader should be told, or embedded data."""
    if config.file is None:
        return Reading(panel=datasets.load(config.dataset), notices=())
    return read_panel(config.file, columns_of(config))


def check_paths(settings: Settings, *, replace: bool) -> None:
    """Refuse a file of paths that is there, or that is no table."""
    if settings.paths is None:
        return
    kind_of(settings.paths, WRITERS)
    if settings.paths.exists() and not replace:
        raise ValueError(f"{settings.paths} exists: add --overwrite to replace it, or give --paths another name")


def check_outputs(out: Path, config: SeriesConfig, panel: Panel, settings: Settings) -> None:
    """Refuse whatever could not be written, or would be written over, before hours are spent."""
    names = [series.name for series in panel.series[: settings.figures]]
    ours = [out / name for name in (*OUTPUTS, *file_names(names).values(), *file_names(names, PREFIX).values())]
    for path in ours:
        refuse_irregular(path)
    check_writable(out / PAGE)
    if settings.paths is None:
        return
    target = resolved(settings.paths)
    if config.file is not None and target == resolved(config.file):
        raise ValueError(f"--paths {settings.paths} is the data: give --paths another name")
    if target.parent == resolved(out / DATA) or target in [resolved(path) for path in ours]:
        raise ValueError(f"--paths {settings.paths} is a file that the run itself writes: give --paths another name")
    check_writable(settings.paths)


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


def own_config(run: Run) -> TrainConfig:
    """The folder's own configuration with its copies; errors speak of flags as `sgfn forecast` has them."""
    try:
        return run.own_config()
    except ValueError as error:
        raise ValueError(str(error).replace("--series.", "--")) from None


def check_future(config: SeriesConfig, panel: Panel, targets: tuple[str, ...]) -> None:
    """Refuse covariates known in advance that are not known as far as the horizon, before hours are spent."""
    for series in panel.series if panel.known_names else ():
        if len(series.future) < config.steps_ahead:
            known, end = ", ".join(panel.known_names), np.datetime_as_string(series.stamps[-1], unit="s")
            empty = ", ".join(targets) or config.target_col
            raise ValueError(
                f"{config.file}: {known} must be known {config.steps_ahead} steps past the last value of series "
                f"{series.name!r} ({end}), there are {len(series.future)}: add rows with {empty} left "
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
            f"take --windows {max(kept) // config.series.steps_ahead}"
        )
    alike = len(set(needed)) == 1
    many = "" if alike else ",".join(map(str, needed))
    return config.with_(series__spare=needed[0] if alike else 0, series__spares=many)
