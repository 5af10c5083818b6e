"""CPU seconds and memory of `sgfn forecast` with its defaults: one long series, and panels of 100 to 5,000 series.

Each case is the whole command in a process of its own, with the backtest, pictures and the page, on one thread. Data
are made with a fixed seed: hourly values with two seasons, and monthly series of 90 to 120 values with a season.
Cases that are in the file already are kept, so that a stopped study goes on.

    python -m benchmarks.forecast_cost                    # all cases
    python -m benchmarks.forecast_cost one 100 --again
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from benchmarks.common import RESULTS, read_results, write_results
from sgfn.config.files import read_json

OUT = RESULTS / "forecast_cost.json"
LIMITS = {"one": 30, "100": 180, "1000": 900, "5000": 900}
"""CPU seconds that the default effort may take, by case."""
HOURS, HOURS_AHEAD, MONTHS, MONTHS_AHEAD = 5_000, 48, 120, 12


def hourly(count: int, rng: np.random.Generator) -> pd.DataFrame:
    """One series of hours with a day, a week, a wandering level and noise."""
    hour = np.arange(count)
    seasons = 20 * np.sin(2 * np.pi * hour / 24) + 8 * np.sin(2 * np.pi * hour / 168)
    values = 100 + seasons + np.cumsum(rng.normal(0, 0.3, count)) + rng.normal(0, 4, count)
    return pd.DataFrame({"ds": pd.date_range("2020-01-01", periods=count, freq="h"), "y": values.round(3)})


def monthly(series: int, rng: np.random.Generator) -> pd.DataFrame:
    """Series of months with levels of different sizes, trends, a season and noise."""
    parts = []
    for number in range(series):
        count, level = int(rng.integers(MONTHS * 3 // 4, MONTHS + 1)), float(np.exp(rng.normal(5, 1)))
        month = np.arange(count)
        shape = 1 + 0.003 * rng.normal() * month + 0.2 * np.sin(2 * np.pi * month / 12 + rng.normal())
        values = level * (shape + 0.1 * rng.normal(size=count) + np.cumsum(rng.normal(0, 0.03, count)))
        stamps = pd.date_range("2010-01-01", periods=count, freq="MS")
        parts.append(pd.DataFrame({"unique_id": f"s{number:05d}", "ds": stamps, "y": np.maximum(values, 0).round(2)}))
    return pd.concat(parts)


def measure(case: str) -> dict[str, Any]:
    """The row of a case: CPU and wall seconds, and the most memory, of the command."""
    rng = np.random.default_rng(0)
    frame, horizon = (hourly(HOURS, rng), HOURS_AHEAD) if case == "one" else (monthly(int(case), rng), MONTHS_AHEAD)
    with tempfile.TemporaryDirectory() as folder:
        data, out = Path(folder) / "data.csv", Path(folder) / "run"
        frame.to_csv(data, index=False)
        words = ["forecast", str(data), "--horizon", str(horizon), "--out", str(out), "--json"]
        started = time.monotonic()
        with (Path(folder) / "log").open("w") as log:
            child = subprocess.Popen([sys.executable, "-m", "sgfn", *words], stdout=log, stderr=log)
            _, status, used = os.wait4(child.pid, 0)
        if status:
            raise RuntimeError((Path(folder) / "log").read_text()[-2000:])
        told = read_json(out / "backtest.json")
    return {
        "case": case,
        "series": 1 if case == "one" else int(case),
        "values": len(frame),
        "horizon": horizon,
        "windows": told["windows"],
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 1),
        "seconds": round(time.monotonic() - started, 1),
        "limit_cpu_seconds": LIMITS[case],
        "memory_mib": round(used.ru_maxrss / 1024),
        "wql": round(told["methods"]["sgfn"]["wql"], 5),
        "weights": {name: round(weight, 3) for name, weight in told["composition"]["weights"].items()},
    }


def cost_table() -> str:
    """The cases as a table in Markdown."""
    lines = ["| series | values | CPU s | at most | memory, MiB |", "|---|---|---|---|---|"]
    for row in read_results(OUT.name)["rows"] if OUT.is_file() else []:
        cells = (row["series"], row["values"], row["cpu_seconds"], row["limit_cpu_seconds"], row["memory_mib"])
        lines.append(f"| {' | '.join(f'{cell:,}' for cell in cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Measure what is not there yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", choices=[[], *LIMITS], default=[])
    parser.add_argument("--again", action="store_true", help="measure cases again that are there")
    chosen = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    torch.set_num_threads(1)
    rows = {row["case"]: row for row in (read_json(OUT)["rows"] if OUT.is_file() else [])}
    for case in chosen.cases or LIMITS:
        if case not in rows or chosen.again:
            rows[case] = measure(case)
            ordered = [rows[name] for name in LIMITS if name in rows]
            note = "CPU seconds of the whole command on a shared machine; wall seconds depend on its other users."
            write_results(OUT, "forecast_cost", torch.device("cpu"), ordered, notes=(note,))
            print(rows[case], flush=True)
    print(cost_table())


if __name__ == "__main__":
    main()
