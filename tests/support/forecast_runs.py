"""Small forecasts for tests: a file, and the flags and the configuration of a run that takes a moment."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from forecast_tables import small_panel

from sgfn.config import TrainConfig
from sgfn.config.presets import PRESETS
from sgfn.series.files import Outcome
from sgfn.series.panel import Panel

FLAGS = ["--horizon", "4", "--steps", "6", "--batch", "4", "--members", "1", "--folds", "0", "--bins", "8"]
FLAGS += ["--net.hidden", "8", "--net.layers", "1", "--net.heads", "2", "--samples", "16", "--context", "8"]
FLAGS += ["--laws", "network"]
FLAGS += [
    "--log.every",
    "2",
    "--log.checkpoint-every",
    "2",
    "--windows",
    "2",
    "--baselines",
    "seasonal-naive",
    "--device",
    "cpu",
]


@pytest.fixture
def no_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """A forecast's page is its title, lead and table: drawing it takes longer than a small forecast."""

    def write(path: Path, title: str, lead: str, outcome: Outcome) -> Path:
        path.write_text(f"{title}\n{lead}\n{outcome.forecast.to_csv()}")
        return path

    monkeypatch.setattr("sgfn.reports.forecasts.write_forecast_page", write)


def write_csv(path: Path, panel: Panel | None = None, **columns: object) -> Path:
    """A panel as a file in the long format."""
    parts = [
        pd.DataFrame({"unique_id": one.name, "ds": one.stamps, "y": one.values}).assign(**columns)
        for one in (panel or small_panel(("a", "b"))).series
    ]
    pd.concat(parts).to_csv(path, index=False)
    return path


def small_config(file: Path, **changes: Any) -> TrainConfig:
    """The configuration that FLAGS spell."""
    config = PRESETS["forecast"].with_(steps=6, batch=4, net__hidden=8, net__layers=1, net__heads=2)
    config = config.with_(log__every=2, log__checkpoint_every=2, series__file=file, series__horizon=4)
    series = {
        "series__members": 1,
        "series__folds": 0,
        "series__bins": 8,
        "series__context": 8,
        "series__laws": "network",
    }
    return config.with_(**series).with_(**changes)
