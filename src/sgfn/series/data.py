"""Data of a `series` task: the panel, its training part, and the plan and bins made from that part."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float64, Int
from torch import Tensor

from sgfn.config.series import SeriesConfig
from sgfn.envs.forecast import ForecastEnv
from sgfn.landscapes.paths import ForecastPaths
from sgfn.noise import ConfusionMatrix, Noise, UniformSlip
from sgfn.series.bins import Bins
from sgfn.series.datasets import load
from sgfn.series.frames import Columns, read_panel
from sgfn.series.panel import Panel
from sgfn.series.plan import Plan
from sgfn.series.stack_plan import held_back
from sgfn.series.windows import Inputs, Windows, plan_for

BINNED = 20_000
"""Most windows whose targets are used to fit the bins."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SeriesData:
    """A panel with the plan and the bins that were made from its training part."""

    panel: Panel
    """The whole panel, with the steps that are kept from training."""
    training: Panel
    """What the network learns from, until the weights of a pool can be learned on the rest."""
    known: Panel
    """All that may be learned from."""
    plan: Plan
    bins: Bins

    def inputs_at_ends(self) -> Inputs:
        """Inputs of the window after the end of each series.

        Where covariates known in advance do not reach that far, the window begins earlier.
        """
        windows = Windows(self.panel, self.plan)
        cuts = windows.ends()
        if self.plan.known_names:
            ahead = torch.tensor([len(series.future) for series in self.panel.series])
            cuts[:, 1] = (cuts[:, 1] - (self.plan.horizon - ahead).clamp(min=0)).clamp(min=1)
        return windows.inputs(cuts)


def read_data(config: SeriesConfig) -> Panel:
    """The panel of the configured file or embedded data set."""
    if config.file is None:
        return load(config.dataset)
    return read_panel(config.file, columns_of(config)).panel


def columns_of(config: SeriesConfig) -> Columns:
    """Names of a table's columns, from the configuration."""
    return Columns(
        id_col=config.id_col,
        time_col=config.time_col,
        target_col=config.target_col,
        known=config.known_columns,
        ignore=config.ignored_columns,
        freq=config.freq,
    )


def series_data(panel: Panel, config: SeriesConfig) -> SeriesData:
    """A panel with the plan and the bins made from the part of it that may be learned from."""
    kept = config.kept(len(panel))
    lengths = [len(series) - steps for series, steps in zip(panel.series, kept, strict=True)]
    held = held_back(config, lengths) if min(lengths) > 0 else kept
    training = before_end(panel, tuple(map(sum, zip(kept, held, strict=True))))
    known = before_end(panel, kept) if any(held) else training
    plan = plan_for(training, config)
    windows = Windows(training, plan)
    cuts = windows.cuts()
    some = torch.linspace(0, len(cuts) - 1, min(BINNED, len(cuts))).round().long()
    bins = Bins.fit(windows.targets(cuts[some]).flatten(), config.bins)
    return SeriesData(panel=panel, training=training, known=known, plan=plan, bins=bins)


def before_end(panel: Panel, kept: tuple[int, ...]) -> Panel:
    """A panel without the last `kept` steps of each series."""
    parts = list(zip(panel.series, kept, strict=True))
    for series, steps in parts:
        if len(series) <= steps:
            raise ValueError(
                f"series.spare keeps {steps} steps of series {series.name!r} from training, which has {len(series)}: "
                "take fewer or shorter test windows"
            )
    return replace(panel, series=tuple(series.until(len(series) - steps) for series, steps in parts))


def measurement(bins: Bins, deviation: Float64[Tensor, " W"] | None) -> Noise:
    """Noise of W windows with a Gaussian measurement error of these deviations, in scaled units; none where None."""
    return UniformSlip(alpha=0.0) if deviation is None else ConfusionMatrix(matrix=bins.blur(deviation))


def forecast_env(bins: Bins, inputs: Inputs, deviation: float) -> ForecastEnv:
    """Environment of some windows, with a measurement error of a deviation in units of the data."""
    windows, horizon = inputs.reference.shape
    spread = deviation / inputs.unit.cpu() if deviation > 0 else None
    return ForecastEnv(horizon=horizon, bins=bins.count, noise=measurement(bins, spread), windows=windows)


def paths_of(bins: Bins, inputs: Inputs) -> ForecastPaths:
    """Landscape of paths of some windows, where a bin stands for its centre."""
    centres = bins.centres.to(inputs.unit.device)
    return ForecastPaths(centres * inputs.unit[:, None, None] + inputs.reference[..., None])


def cuts_of(panel: Panel, origins: list[tuple[str, int]]) -> Int[Tensor, "N 2"]:
    """Windows (series number, cut) from origins, given by a series' name and how many of its values come before."""
    numbers = {series.name: number for number, series in enumerate(panel.series)}
    rows = []
    for name, cut in origins:
        if name not in numbers:
            raise ValueError(f"no series {name!r} in the panel: there are {', '.join(list(numbers)[:8])}")
        values = panel.series[numbers[name]].values
        if not 1 <= cut <= len(values):
            raise ValueError(f"series {name!r} has {len(values)} values: no origin after {cut}")
        if np.isnan(values[:cut]).all():
            raise ValueError(f"series {name!r} has no value in its first {cut} steps: a forecast needs one before it")
        rows.append([numbers[name], cut])
    return torch.tensor(rows, dtype=torch.int64).reshape(-1, 2)


def to_long(panel: Panel) -> pd.DataFrame:
    """A panel as a table in the long format, with the future rows of covariates known in advance."""
    parts = []
    for series in panel.series:
        ahead = len(series.future)
        columns = {
            "unique_id": series.name,
            "ds": np.concatenate([series.stamps, series.future]),
            "y": np.pad(series.values, (0, ahead), constant_values=np.nan),
        }
        known = dict(zip(panel.known_names, series.known.T, strict=True))
        past = np.pad(series.past, ((0, ahead), (0, 0)), constant_values=np.nan)
        parts.append(pd.DataFrame(columns | known | dict(zip(panel.past_names, past.T, strict=True))))
    return pd.concat(parts, ignore_index=True)
