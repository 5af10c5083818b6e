"""Files that a forecast writes into its run folder: four tables and the scores of the backtest."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sgfn.config.csv_cells import unmarked
from sgfn.config.files import read_json, replacing, write_json
from sgfn.config.shell import flag
from sgfn.runs.folder import Run
from sgfn.runs.table_files import kind_of, write_csv
from sgfn.series.calendar import numbered_stamps, numbers_of
from sgfn.series.panel import Panel
from sgfn.series.prediction import Forecast

FORECAST, BACKTEST, HISTORY, SCORES = "forecast.csv", "backtest.csv", "history.csv", "backtest.json"
FILES = (FORECAST, BACKTEST, HISTORY, SCORES, "calibration.png", "report.html")
DIGITS = "%.10g"
WRITERS: dict[str, Callable[[pd.DataFrame, Path], None]] = {
    ".csv": lambda table, path: write_csv(path, table, DIGITS),
    ".parquet": lambda table, path: table.to_parquet(path, index=False),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Scenarios:
    """Tilted scenarios, as figures and pages show them."""

    quantiles: pd.DataFrame
    """unique_id, ds and a column per quantile of the weighted paths."""
    figures: dict[str, dict[str, float]]
    """By series, how far its scenarios can be trusted: see `Tilted.summary`."""
    cost: str
    temperature: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Outcome:
    """Results of `sgfn forecast`: tables in the long format, and scores by method."""

    history: pd.DataFrame
    """unique_id, ds, y: observed values, as far back as figures show them."""
    forecast: pd.DataFrame
    """unique_id, ds, mean and a column per quantile."""
    backtest: pd.DataFrame
    """method, unique_id, cutoff, ds, y, mean and a column per quantile."""
    scores: dict[str, Any]
    paths: pd.DataFrame | None = None
    """unique_id, sample, ds, y: sample paths, where they were asked for."""
    scenarios: Scenarios | None = None

    @property
    def names(self) -> list[str]:
        """Names of the series, in order."""
        return list(dict.fromkeys(self.forecast["unique_id"]))

    def write(self, folder: Path) -> None:
        """Write tables and scores to a folder, each file complete or absent."""
        for name, table in ((HISTORY, self.history), (FORECAST, self.forecast), (BACKTEST, self.backtest)):
            write_table(folder / name, table)
        write_json(folder / SCORES, self.scores)

    @staticmethod
    def read(folder: Path) -> "Outcome":
        """Read the results that `write` wrote."""
        Run(path=folder).settle()
        for name in (HISTORY, FORECAST, BACKTEST, SCORES):
            if not (folder / name).is_file():
                raise ValueError(f"{folder} has no {name}: forecast first (sgfn forecast ... {flag('out', folder)})")
        return Outcome(
            history=read_table(folder / HISTORY),
            forecast=read_table(folder / FORECAST),
            backtest=read_table(folder / BACKTEST),
            scores=read_json(folder / SCORES),
        )


def history_table(panel: Panel, rows: int) -> pd.DataFrame:
    """The last rows of each series in the long format."""
    parts = [
        pd.DataFrame({"unique_id": one.name, "ds": one.stamps[-rows:], "y": one.values[-rows:]}) for one in panel.series
    ]
    return pd.concat(parts, ignore_index=True)


def path_table(ahead: Forecast, most: int | None = None) -> pd.DataFrame:
    """Sample paths in the long format, of all series or of the first ones: unique_id, sample, ds, y."""
    paths, stamps = ahead.paths[:most], ahead.stamps[:most]
    windows, samples, horizon = paths.shape
    return pd.DataFrame(
        {
            "unique_id": np.repeat(np.array(ahead.names[:most], dtype=object), samples * horizon),
            "sample": np.tile(np.repeat(np.arange(samples), horizon), windows),
            "ds": np.repeat(stamps[:, None], samples, axis=1).reshape(-1),
            "y": paths.reshape(-1),
        }
    )


def with_numbers(table: pd.DataFrame) -> pd.DataFrame:
    """A table whose times stand for numbers of steps, with the numbers; any other as it is."""
    stamps = [name for name in ("ds", "cutoff") if name in table.columns]
    found = {name: numbers_of(table[name].to_numpy(dtype="datetime64[ns]")) for name in stamps}
    return table if any(one is None for one in found.values()) else table.assign(**found)


def write_table(path: Path, table: pd.DataFrame) -> None:
    """Write a CSV or Parquet file, by the name's ending; the file is complete or absent."""
    with replacing_table(path, table):
        pass


@contextmanager
def replacing_table(path: Path, table: pd.DataFrame) -> Iterator[None]:
    """Write the same aside; it takes its place when the block ends well."""
    kind = kind_of(path, WRITERS)
    with replacing(path) as aside:
        WRITERS[kind](with_numbers(table), aside)
        yield


def read_table(path: Path) -> pd.DataFrame:
    """Read a CSV that `write_table` wrote; only empty fields are missing, as a series may be called NA."""
    table = pd.read_csv(path, dtype={"unique_id": str, "method": str}, keep_default_na=False, na_values=[""])
    for name in {"unique_id", "method"} & set(table.columns):
        table[name] = table[name].map(unmarked)
    for name in {"ds", "cutoff"} & set(table.columns):
        counted = pd.api.types.is_integer_dtype(table[name])
        times = numbered_stamps(table[name].to_numpy()) if counted else pd.to_datetime(table[name], format="ISO8601")
        table[name] = times
    return table
