"""The forecaster in Python: `Forecaster(horizon=30).fit(data).predict()`."""

import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float64, Int
from torch import Tensor

from sgfn.config import TrainConfig, differing
from sgfn.config.checks import in_range
from sgfn.config.files import resolved
from sgfn.config.presets import PRESETS
from sgfn.landscapes.tasks import make_task
from sgfn.learning.execution import pick_device, stepper
from sgfn.learning.unread import unread as unread_settings
from sgfn.runs.copies import DATA
from sgfn.runs.folder import Run
from sgfn.runs.table_files import write_csv
from sgfn.runs.trust import Trust
from sgfn.series import datasets
from sgfn.series.bins import Bins
from sgfn.series.constants import with_constants
from sgfn.series.data import columns_of, cuts_of, to_long
from sgfn.series.frames import panel_of
from sgfn.series.horizons import horizon_line, with_horizon
from sgfn.series.keywords import by_parameters, named_settings
from sgfn.series.learner import ForecastLearner
from sgfn.series.panel import Panel
from sgfn.series.past_scores import laws
from sgfn.series.plan import check_like, unread
from sgfn.series.prediction import DEFAULT_LEVELS, Forecast, NetworkForecast, check_levels
from sgfn.series.stack_plan import unused_covariates, with_effort
from sgfn.series.stacked import StackedForecaster
from sgfn.series.supports import REAL, named_shares
from sgfn.series.task import series_task
from sgfn.series.windows import Inputs, Windows

Data = Panel | pd.DataFrame | Path | str
"""Accepted data: a panel, a table in the long format (unique_id, ds, y, covariates), the name of a file (CSV, TSV,
Parquet, Excel), or of an embedded data set."""
Progress = Callable[[int, dict[str, float]], None]
"""Called with the step and the newest figures of the training log."""
SAVED = "data.csv"
"""Name of the data of a forecaster that was saved, in the run's data folder."""
LISTS = ("known", "ignore", "lags", "target_col", "id_col")
"""Settings that may be given as lists of names or numbers."""
MOST_DRAWN = 10**8
"""Values at most of all sample paths that are drawn at once."""


class Forecaster:
    """A model that forecasts one or many series by calibrated sample paths.

    Settings are the fields of `SeriesConfig` (horizon, season, holidays, ...) and `steps`, `batch` and `seed`; all
    others are set in `config`, which is the preset `forecast` by default.

    >>> Forecaster(horizon=12, holidays="US")
    Forecaster(horizon=12, holidays='US')
    """

    def __init__(self, config: TrainConfig | None = None, *, device: str = "cpu", **settings: Any) -> None:
        lists = {name: ",".join(map(str, v)) for name, v in settings.items() if isinstance(v, list | tuple)}
        settings = settings | {name: text for name, text in lists.items() if name in LISTS}
        self.config = (config or PRESETS["forecast"]).with_(**named_settings(settings))
        nothing_reads = {name.replace(".", "__") for name in unread_settings("series", self.config)} & set(settings)
        if nothing_reads:
            raise ValueError(f"Forecaster does not read {sorted(nothing_reads)[0]}: leave it out")
        self.device = pick_device(device)
        self.learner: ForecastLearner | None = None
        self._stacked: StackedForecaster | None = None

    def __repr__(self) -> str:
        flags = [flag.removeprefix("--") for flag in differing(self.config, PRESETS["forecast"])]
        return f"Forecaster({', '.join(f'{_short(flag)}={self._value(flag)!r}' for flag in flags)})"

    def _value(self, flag: str) -> Any:
        value: Any = self.config
        for part in flag.split("."):
            value = getattr(value, part)
        return value

    # fitting

    def fit(self, data: Data, *, progress: Progress | None = None) -> "Forecaster":
        """Make plan and bins from the data and train the networks; returns self."""
        panel = self.read(data)
        if self.config.series.horizon is None:
            warnings.warn(by_parameters(horizon_line(panel)), UserWarning, stacklevel=2)
            self.config = with_horizon(self.config, panel)
        self.config.series.check_reach(max(len(one) for one in panel.series))
        self.config = with_effort(self.config, [len(one) for one in panel.series])
        learner = ForecastLearner(series_task(panel, self.config), self.device)
        unused = unused_covariates(panel, self.config.series)
        for line in (*unread(learner.data.training, self.config.series), *filter(None, [unused])):
            warnings.warn(by_parameters(line), UserWarning, stacklevel=2)
        advance, every = stepper(learner), self.config.log.every
        while learner.done < self.config.steps:
            advance()
            learner.done += 1
            if learner.done % every == 0 or learner.done == self.config.steps:
                figures = learner.read_meters()
                if progress:
                    progress(learner.done, figures)
        self.learner, self._stacked = learner, None
        return self

    def read(self, data: Data) -> Panel:
        """Data in any accepted form, as a panel."""
        if isinstance(data, Panel):
            return data
        check_data(data)
        if isinstance(data, str) and data in datasets.NAMES:
            return datasets.load(data)
        return panel_of(data, columns_of(self.config.series), told_at=4)

    # forecasting

    def predict(
        self,
        data: Data | None = None,
        *,
        origins: Sequence[tuple[str, int]] | None = None,
        samples: int = 256,
        seed: int = 0,
        latent: bool = False,
        levels: Sequence[float] = DEFAULT_LEVELS,
    ) -> Forecast:
        """Forecast the steps after the training data, or after other data.

        Windows begin at the end of each series, or at `origins`: the name of a series and how many of its values come
        before. With a measurement error, `latent` forecasts the values without it. `levels` are the quantiles that
        `quantiles()` and `to_frame()` give when they are asked for no others.
        """
        check_levels(levels)
        learner = self.fitted
        in_range("samples", samples, 1, 10**6)
        in_range("seed", seed, 0, 2**63 - 1)
        panel = learner.data.panel if data is None else self.read(data)
        check_like(learner.data.plan, panel)
        windows = Windows(panel, learner.data.plan)
        cuts = windows.ends() if origins is None else cuts_of(panel, list(origins))
        check_drawn(len(cuts), samples, learner.data.plan.horizon)
        if learner.settings.law_names == ("network",) or latent:
            found = self._by_network(windows, cuts, samples, seed, latent=latent)
        else:
            places = [(number, cut) for number, cut in cuts.tolist()]
            found = self.stacked.predict(windows, places, samples, seed, final=origins is None)
        return replace(with_constants(found, panel), levels=tuple(levels))

    def _by_network(
        self, windows: Windows, cuts: Int[Tensor, "W 2"], samples: int, seed: int, *, latent: bool
    ) -> NetworkForecast:
        """Forecasts of the network alone."""
        learner, inputs = self.fitted, windows.inputs(cuts)
        drawn, bins = learner.draw_paths(inputs, samples, seed), learner.data.bins
        drawn_law, law = laws(learner, windows, cuts, drawn, latent=latent)
        paths = (drawn.intended if latent else drawn.realised).cpu()
        supports = [REAL] * len(windows.panel) if latent else self.stacked.supports(windows.panel)
        found = NetworkForecast(
            names=tuple(windows.panel.series[number].name for number in cuts[:, 0].tolist()),
            cuts=tuple(cuts[:, 1].tolist()),
            stamps=windows.stamps_at(cuts),
            paths=paths_in_units(paths, bins, inputs, drawn_law, law, seed),
            supports=tuple(supports[number] for number in cuts[:, 0].tolist()),
            law=law,
            bins=bins,
            reference=inputs.reference,
            unit=inputs.unit,
        )
        return replace(found, paths=found.inside(found.paths))

    @property
    def stacked(self) -> StackedForecaster:
        """The stack on top of the network; its weights are learned when they are first needed."""
        if self._stacked is None:
            self._stacked = StackedForecaster(self.fitted)
        return self._stacked

    @property
    def fitted(self) -> ForecastLearner:
        """The trained learner; raises before `fit`."""
        if self.learner is None:
            raise ValueError("this forecaster has not learned anything yet: call fit(data) first")
        return self.learner

    # folders

    def save(self, path: Path | str, *, overwrite: bool = False) -> Run:
        """Write a run folder with configuration, data and checkpoint."""
        learner, run = self.fitted, Run(path=Path(path))
        if not overwrite and (run.path / "config.json").is_file():
            raise ValueError(f"{run.path} already holds a run: save(..., overwrite=True) replaces it")
        panel = learner.data.panel
        columns = {"id_col": "unique_id", "time_col": "ds", "target_col": "y", "known": ",".join(panel.known_names)}
        columns = {f"series__{name}": column for name, column in columns.items()}
        config = self.config.with_(**columns, series__ignore="", series__file=resolved(run.path) / DATA / SAVED)
        if config.series.support == "auto" and named_shares(panel):
            config = config.with_(series__support="unit")  # the saved column is y, whatever it was called
        run.check(overwrite=overwrite)
        with run.locked(), tempfile.TemporaryDirectory() as aside:
            file = Path(aside) / SAVED
            write_csv(file, to_long(panel))
            copies = {"series.file": file}
            with run.replacement(copies, overwrite=overwrite) as new:
                new.create("series", config, copies=copies)
                new.save(learner)
        return run

    @classmethod
    def load(cls, path: Path | str, *, device: str = "cpu", trust: Trust = False) -> "Forecaster":
        """Read a fitted forecaster from a run folder of task `series`; see `sgfn.evaluate` for `trust`."""
        run = Run(path=Path(path), trust=trust)
        task = run.read_config()[0]
        if task != "series":
            raise ValueError(f"{run.path} holds a run of {task}, not of series: give the folder of a forecast")
        made = cls(run.own_config(), device=device)  # plan and bins are made of the copy anew
        learner = run.load(made.device, make_task("series", made.config))
        assert isinstance(learner, ForecastLearner)
        made.learner = learner
        return made


def check_drawn(windows: int, samples: int, horizon: int) -> None:
    """Raise where sample paths would hold more values than memory should be asked for."""
    fit = MOST_DRAWN // (windows * horizon)
    if samples > max(fit, 1):
        what = f"{samples:,} paths of {windows:,} windows and {horizon:,} steps are more than {MOST_DRAWN:,} values"
        raise ValueError(f"{what}: draw at most {max(fit, 1):,}")


def check_data(data: Any) -> None:
    """Raise for data without times, such as an array or a single column."""
    if not isinstance(data, pd.DataFrame | Path | str):
        fix = "put the values into a column y beside their times, ds"
        raise ValueError(f"data must be a DataFrame, a file or a panel, got {type(data).__name__}: {fix}")


def paths_in_units(
    found: Int[Tensor, "W N H"],
    bins: Bins,
    inputs: Inputs,
    drawn_law: Float64[Tensor, "W H K"],
    law: Float64[Tensor, "W H K"],
    seed: int,
) -> Float64[np.ndarray, "W N H"]:
    """Paths in units of the data, drawn within their bins and mapped to the forecast law of each step.

    `drawn_law` is the law of each step under which the paths were drawn, `law` the one that is forecast.
    """
    generator = torch.Generator().manual_seed(seed)
    share = torch.rand(found.shape, generator=generator, dtype=torch.float64)
    scaled = bins.transport(found.transpose(1, 2), share.transpose(1, 2), drawn_law, law)
    return inputs.in_units(scaled.transpose(1, 2)).numpy()


def _short(flag: str) -> str:
    return flag.removeprefix("series.").replace(".", "__")
