"""Forecasts of births, weather and glucose on rolling windows, beside the naive ones and AutoETS.

US births by the protocol of GIFT-Eval: horizon 30, the last 20 windows side by side, nine quantiles, lag-1 MASE scale.
Weather: hourly temperature at three stations, 48 hours ahead. Glucose: irregular stamps, 12 values (one hour) ahead. Of
these two the last fifth is tested, in windows side by side. Each forecaster is trained once, on what came before the
first window; cells already in the file are kept, so that a study that was stopped goes on.

    python -m benchmarks.forecast all --seeds 3 --device cpu
"""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks.common import arguments, rounded, spread, write_results
from sgfn.files import read_json
from sgfn.forecast_settings import longest_span
from sgfn.metrics.forecast import LEVELS
from sgfn.series.backtest import Forecasts, baseline_forecasts, score
from sgfn.series.baselines import Setting
from sgfn.series.datasets import load
from sgfn.series.forecaster import Forecaster
from sgfn.series.protocol import Origin, rolling_origins


@dataclass(frozen=True, kw_only=True)
class Study:
    """One data set: how far ahead, on how many windows, and what is set for it."""

    horizon: int
    windows: int
    settings: dict[str, Any]


STUDIES = {
    "births": Study(horizon=30, windows=20, settings={"holidays": "US"}),
    "weather": Study(horizon=48, windows=36, settings={}),
    "glucose": Study(horizon=12, windows=871, settings={}),
}
BASELINES = ("naive", "seasonal naive", "AutoETS")
SAMPLES = 2
"""Paths of each window: the scores are those of the marginal laws."""


def windows_of(name: str) -> tuple[Origin, ...]:
    """The windows of a study."""
    study, panel = STUDIES[name], load(name)
    span = longest_span(panel, study.horizon)
    return rolling_origins(panel, study.horizon, study.windows, span=span)


def baseline(name: str, method: str) -> dict[str, Any]:
    """Scores of a baseline."""
    origins, started = windows_of(name), time.monotonic()
    found = score(baseline_forecasts(method, origins, Setting.of(load(name))), origins)
    seconds = round(time.monotonic() - started, 1)
    return {"data": name, "method": method, "seed": None, **rounded(found), "seconds": seconds}


def ours(name: str, seed: int, device: str, steps: int | None) -> dict[str, Any]:
    """Train on what came before the first window of each series, forecast every window."""
    study, panel, origins = STUDIES[name], load(name), windows_of(name)
    spare = max(len(origin.series) - origin.cut for origin in origins)
    changes: dict[str, Any] = study.settings | ({} if steps is None else {"steps": steps})
    forecaster = Forecaster(horizon=study.horizon, seed=seed, spare=spare, device=device, **changes)
    started, cpu = time.monotonic(), time.process_time()
    forecaster.fit(panel)
    seconds, cpu = time.monotonic() - started, time.process_time() - cpu
    found = forecaster.predict(origins=[(origin.series.name, origin.cut) for origin in origins], samples=SAMPLES)
    mine = Forecasts(method="sgfn", levels=LEVELS, quantiles=found.quantiles(), mean=found.mean)
    used = {"settings": study.settings, "seconds": round(seconds, 1), "cpu_seconds": round(cpu, 1)}
    return {"data": name, "method": "sgfn", "seed": seed, **rounded(score(mine, origins)), **used}


def kept(out: Path) -> list[dict[str, Any]]:
    """What an earlier run of the study left."""
    return read_json(out)["rows"] if out.is_file() else []


def run(name: str, seeds: int, device: str, steps: int | None, out: Path) -> None:
    """Run the cells of a study that are missing, and write after each."""
    have = {(row["data"], row["method"], row["seed"]) for row in kept(out)}
    wanted: list[tuple[str, int | None]] = [(method, None) for method in BASELINES]
    wanted += [("sgfn", seed) for seed in range(seeds)]
    for method, seed in [cell for cell in wanted if (name, *cell) not in have]:
        row = baseline(name, method) if seed is None else ours(name, seed, device, steps)
        write(out, device, [*kept(out), row])
    for key in ("mase", "wql", "coverage_80"):
        values = [row[key] for row in kept(out) if (row["data"], row["method"]) == (name, "sgfn")]
        print(f"  {name} {key}: median %.4f [%.4f, %.4f]" % spread(values), flush=True)


def write(out: Path, device: str, rows: list[dict[str, Any]]) -> None:
    """The rows in order."""
    rows = sorted(rows, key=lambda row: ([*STUDIES].index(row["data"]), row["method"], row["seed"] or 0))
    write_results(out, "forecast", torch.device(device), rows)


def main() -> None:
    """One study, or all of them."""
    chosen = arguments(__doc__ or "", "forecast.json", data=["all", *STUDIES])
    for name in STUDIES if chosen.data == "all" else [chosen.data]:
        run(name, chosen.seeds, chosen.device, chosen.steps, chosen.out)
    write(chosen.out, chosen.device, kept(chosen.out))


if __name__ == "__main__":
    main()
