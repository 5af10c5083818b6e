"""Score methods on a half of the forecasting panel; what a file already holds is kept, so that a stopped run goes on.

    python -m benchmarks.forecast_breadth --half development
    python -m benchmarks.forecast_breadth --half development --methods sgfn --data beer lynx
    python -m benchmarks.forecast_breadth --half development --table        # print the table, run nothing

Data sets are measured one after the other, small ones first, each by all methods, so that a run that is stopped leaves
whole rows of the table. The validation half is scored once per release, with settings that were chosen on the
development half.
"""

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.common import RESULTS, add_cluster, each_cell, positive, rounded, write_results
from benchmarks.forecast_breadth.methods import ENSEMBLE, MEMBERS, METHODS, OURS, Quantiles, SkippedError, ensemble
from benchmarks.forecast_breadth.panel import PARTS, DataSet, Half, halves, load, provenance
from benchmarks.forecast_breadth.table import CLASSICAL, breadth_table
from sgfn.config.files import read_json
from sgfn.evaluation.metrics import forecast as metrics
from sgfn.evaluation.metrics.forecast import LEVELS
from sgfn.series.protocol import scales, truths

FORECASTS = Path(__file__).parent.parent / ".trained" / "breadth"
"""Quantiles of each data set and method, for the ensemble; not committed."""
PROTOCOL = (
    "Windows of data sets with many series were made fewer, and histories of AutoETS, AutoTheta and AutoARIMA shorter "
    "(1,000 values), before sgfn was measured on any.",
    "AutoARIMA is that of the pool (orders up to 3, seasonal ones up to 1, the last 400 values), fitted again when a "
    "history has grown by a tenth, where it is quick enough to be part of it.",
    "Quantiles of classical methods are as their packages give them, below zero too where no value is; sgfn's stay in "
    "the support.",
    "Seconds are CPU seconds on a shared machine. Ablations of sgfn share the fits of the whole forecaster; their "
    "seconds are those of pooling alone.",
)
"""What a reader of the figures should know, whatever was measured."""
POOLED = "Rows of sgfn are pooled from kept forecasts (benchmarks.forecast_breadth.pool), without seconds."
"""What to know where rows have no seconds of their own."""
FIRST, SECOND, THIRD, FOURTH = (f"sgfn, {place} scoring" for place in ("first", "second", "third", "fourth"))
CHOSEN = {
    "development": "Laws, weights before anything is known, strengths of the pool and of its calibration, and the "
    "steps of the network, were chosen on this half: its figures flatter sgfn.",
    "validation": "Nothing was chosen on this half. It is scored once for each state that is submitted, not to choose "
    f"by it: here for the fifth time; `{FIRST}`, `{SECOND}`, `{THIRD}` and `{FOURTH}` are those before, whose misses "
    "were known when sgfn was changed afterwards. AutoARIMA is among the rivals since the third. After the fourth had "
    "been looked at, the pretrained network was left out of long histories because of births, and the four data sets "
    "that this changed were scored again for that row (electricity_half_hours, sterling, stops, water).",
    "fresh": "Nothing was chosen on this part, which was drawn by a rule (benchmarks/forecast_breadth/fresh.py). "
    f"`{FIRST}` is what nobody had seen. It showed two defects, which were mended before `{SECOND}`: a harvest that "
    "grew below one was taken for a proportion (guinearice), and a law of logarithms had immense quantiles "
    f"(sunspotarea). `{THIRD}` had the first pretrained network; in the present state nothing was chosen by them, "
    "though their misses were known. All are short single series; some are near relatives of others (deaths, mdeaths "
    "and fdeaths; qgas and gas; sunspotarea and sunspots).",
}
ORDER = (*(name for name in CLASSICAL if name != "AutoARIMA"), *OURS, "AutoARIMA", ENSEMBLE, "lightgbm")
"""Order in which the methods of a data set are run; the ensemble reads what others left."""


def notes_of(half: Half, rows: list[dict[str, Any]]) -> tuple[str, ...]:
    """What a reader should know: the protocol, what was chosen here, and what was not run."""
    run = {row["data"] for row in rows if "wql" in row}
    missing = [name for name in halves()[half] if name not in run]
    lacking = f"No method was run on {', '.join(missing)}." if missing else ""
    pooled = any(row["method"] == "sgfn" and "wql" in row and "cpu_seconds" not in row for row in rows)
    lines = (*PROTOCOL, CHOSEN[half], "What is empty in the table was not run.", lacking)
    return (*filter(None, lines), *([POOLED] if pooled else []))


def forecasts_file(data: str, method: str) -> Path:
    """File of a method's quantiles."""
    return FORECASTS / f"{data}-{method.replace(' ', '_')}.npz"


def quantiles_of(data: DataSet, method: str) -> Quantiles:
    """Forecasts of a method, kept in a file for the ensemble."""
    if method == ENSEMBLE:
        return ensemble([path for one in MEMBERS if (path := forecasts_file(data.name, one)).exists()])
    found = METHODS[method](data)
    FORECASTS.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(forecasts_file(data.name, method), quantiles=found)
    return found


def scores(data: DataSet, quantiles: Quantiles) -> dict[str, Any]:
    """WQL, MASE by the season's change, coverage of the 80 % interval, and the share of quantiles below all data."""
    truth, season = truths(data.origins), data.seasons[0]
    lags = scales(data.origins, season if min(one.cut for one in data.origins) > season else 1)
    lowest = min(float(np.nanmin(series.values)) for series in data.panel.series)
    return {
        "wql": metrics.wql(quantiles, truth, LEVELS),
        "mase": metrics.mase(quantiles[..., len(LEVELS) // 2], truth, lags),
        "coverage_80": metrics.coverage(quantiles, truth, LEVELS),
        "below_zero": float((quantiles < -1e-9).mean()) if lowest >= 0 else 0.0,
    }


def measure(name: str, method: str) -> dict[str, Any]:
    """The row of a data set and a method."""
    data = load(name)
    row = {"data": name, "method": method, "windows": len(data.origins)}
    row |= {"values": int((~np.isnan(truths(data.origins))).sum())}
    started = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            quantiles = quantiles_of(data, method)
    except SkippedError as reason:
        return row | {"skipped": str(reason)}
    except Exception as error:  # a rival that fails on a data set is a result, and the others go on
        return row | {"failed": f"{type(error).__name__}: {error}"[:300]}
    seconds = time.process_time() - started
    return row | rounded(scores(data, quantiles)) | {"cpu_seconds": round(seconds, 2)}


def results_file(half: Half) -> Path:
    """File of a half's results."""
    return RESULTS / f"forecast_breadth_{half}.json"


def kept(path: Path) -> list[dict[str, Any]]:
    """Rows that are there already."""
    return read_json(path)["rows"] if path.is_file() else []


def main() -> None:
    """Measure what is not there yet, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=PARTS, default="development")
    parser.add_argument("--methods", nargs="+", choices=[*METHODS, ENSEMBLE], default=list(ORDER))
    parser.add_argument("--data", nargs="+", help="data sets of the half; all by default")
    parser.add_argument("--jobs", type=positive, default=1)
    add_cluster(parser)
    parser.add_argument("--again", action="store_true", help="measure cells again that are there")
    parser.add_argument("--out", type=Path, help="file of the results; by default that of the half")
    parser.add_argument("--table", action="store_true", help="print the table of what is there, run nothing")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    out, names = chosen.out or results_file(chosen.half), halves()[chosen.half]
    if unknown := set(chosen.data or []) - set(names):
        parser.error(f"not in the {chosen.half} half: {', '.join(sorted(unknown))}")
    names = sorted(
        (name for name in names if name in (chosen.data or names)), key=lambda one: provenance()[one]["rows"]
    )
    wanted = [(name, method) for name in names for method in chosen.methods]
    have = set() if chosen.again else {(row["data"], row["method"]) for row in kept(out)}
    lacking = [] if chosen.table else [cell for cell in wanted if cell not in have]
    if chosen.cluster and any(method == ENSEMBLE for _, method in lacking):
        print(f"{ENSEMBLE} is left out: it reads forecasts that methods left on this machine", flush=True)
        lacking = [cell for cell in lacking if cell[1] != ENSEMBLE]

    def keep(_: str, row: dict[str, Any]) -> None:
        cell = (row["data"], row["method"])
        rows = [one for one in kept(out) if (one["data"], one["method"]) != cell] + [row]
        rows.sort(key=lambda one: (one["data"], one["method"]))
        write_results(out, "forecast_breadth", torch.device("cpu"), rows, notes=notes_of(chosen.half, rows))
        print({key: row[key] for key in row if key not in ("windows", "values")}, flush=True)

    each_cell({str(cell): cell for cell in lacking}, measure, keep, chosen.cluster, jobs=chosen.jobs)
    print(breadth_table(kept(out)))


if __name__ == "__main__":
    main()
