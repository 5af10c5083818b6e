"""What a wrong last value does to forecasts: development sets of one series, with and without moving what stands apart.

The value right before each test window is made ten times as large, or a tenth, or zero; the forecaster (quick effort,
fitted to the data as they are) forecasts from there. WQL is divided by that of the same forecaster before the true
value. Data sets that are in the file already are kept, so that a stopped study goes on.

    python -m benchmarks.forecast_breadth.slips
"""

import argparse
import warnings
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import torch

from benchmarks.common import RESULTS, read_results, rounded, write_results
from benchmarks.forecast_breadth.panel import DataSet, halves, load, provenance
from benchmarks.forecast_breadth.table import Row, geometric_mean
from sgfn.config.files import read_json
from sgfn.evaluation.metrics import forecast as metrics
from sgfn.evaluation.metrics.forecast import LEVELS
from sgfn.series.forecaster import Forecaster
from sgfn.series.outliers import moved
from sgfn.series.panel import Panel
from sgfn.series.protocol import Origin, truths

OUT = RESULTS / "forecast_slips.json"
FACTORS = (10.0, 0.1, 0.0)
"""By what the last value is multiplied."""
MOST_ROWS = 700
"""Values of the data sets that are tried."""


def spoiled(panel: Panel, origin: Origin, factor: float) -> Panel:
    """A panel in which the last value before a window is multiplied."""
    values = origin.series.values.copy()
    values[origin.cut - 1] *= factor
    return replace(panel, series=(replace(panel.series[0], values=values),))


def wql_after(data: DataSet, forecaster: Forecaster, factor: float) -> float:
    """WQL over the test windows, each forecast from a history whose last value is multiplied."""
    found = []
    for one in data.origins:
        panel = spoiled(data.panel, one, factor)
        found.append(forecaster.predict(panel, origins=[(one.series.name, one.cut)], samples=2).quantiles()[0])
    return metrics.wql(np.stack(found), truths(data.origins), LEVELS)


def measure(name: str) -> Row:
    """WQL of a data set after each slip, over that without one; with what stands apart moved, and as it is."""
    data = load(name)
    forecaster = Forecaster(horizon=data.horizon, spares=",".join(map(str, data.spare)), effort="quick").fit(data.panel)
    plain = wql_after(data, forecaster, 1.0)
    ratios = {f"moved {factor:g}": wql_after(data, forecaster, factor) / plain for factor in FACTORS}
    forecaster.stacked.banks.clear()
    with patch("sgfn.series.bank.moved", lambda values, seasons=(): {}):
        ratios |= {f"as it is {factor:g}": wql_after(data, forecaster, factor) / plain for factor in FACTORS}
    seen = [origin.series.values[: origin.cut] for origin in data.origins]
    true = sum(len(values) - 1 in moved(values[~np.isnan(values)], data.seasons) for values in seen)
    return {"data": name, "windows": len(data.origins), "wql": plain, "true_values_moved": true} | ratios


def slips_table() -> str:
    """Geometric means over the data sets as a table in Markdown."""
    rows = read_results(OUT.name)["rows"] if OUT.is_file() else []
    lines = ["| last value | data sets | WQL / without the slip | with nothing moved |", "|---|---|---|---|"]
    for factor in FACTORS if rows else ():
        ours, plain = ([row[f"{kind} {factor:g}"] for row in rows] for kind in ("moved", "as it is"))
        lines.append(f"| x {factor:g} | {len(rows)} | {geometric_mean(ours):.2f} | {geometric_mean(plain):.2f} |")
    return "\n".join(lines)


def main() -> None:
    """Measure what is not there yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", help="data sets; by default all of one series and few values")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    facts = provenance()
    small = [n for n in halves()["development"] if facts[n]["series"] == 1 and facts[n]["rows"] <= MOST_ROWS]
    rows = read_json(OUT)["rows"] if OUT.is_file() else []
    for name in sorted(chosen.data or small, key=lambda one: facts[one]["rows"]):
        if name not in [row["data"] for row in rows]:
            rows.append(rounded(measure(name)))
            write_results(OUT, "forecast_breadth.slips", torch.device("cpu"), rows)
            print(rows[-1], flush=True)
    print(slips_table())


if __name__ == "__main__":
    main()
