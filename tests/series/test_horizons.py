"""Default horizons: by the step, within a fifth of the series, and told."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sgfn.config.presets import PRESETS
from sgfn.reports.forecasts import Progress, forecast
from sgfn.series.datasets import load
from sgfn.series.forecaster import Forecaster
from sgfn.series.frames import Columns, read_panel
from sgfn.series.horizons import chosen_horizon, horizon_line
from sgfn.series.panel import Panel
from sgfn.series.settings import Settings


def made(count: int, freq: str) -> pd.DataFrame:
    stamps = np.arange(count) if freq == "numbers" else pd.date_range("2000-01-01", periods=count, freq=freq)
    return pd.DataFrame({"ds": stamps, "y": 20 + np.arange(count) * 7 % 5})


def of(frame: pd.DataFrame, **columns: tuple[str, ...]) -> Panel:
    return read_panel(frame, Columns(**columns)).panel  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("count", "freq", "horizon"),
    [
        (500, "h", 48),
        (500, "D", 30),
        (500, "B", 30),
        (200, "W", 13),
        (60, "MS", 12),
        (144, "ME", 12),
        (60, "QS", 8),
        (100, "YS", 6),
        (500, "numbers", 30),
        (60, "numbers", 12),
        (60, "D", 12),  # a fifth
        (20, "MS", 4),
        (3, "MS", 1),
    ],
)
def test_the_horizon_follows_step_and_length(count: int, freq: str, horizon: int) -> None:
    assert chosen_horizon(of(made(count, freq))) == horizon


def test_benchmarks_of_embedded_data_have_the_default_horizon() -> None:
    assert {name: chosen_horizon(load(name)) for name in ("births", "weather")} == {"births": 30, "weather": 48}


def test_what_is_known_in_advance_bounds_the_horizon() -> None:
    frame = made(60, "MS").assign(y=lambda t: t["y"].where(t.index < 55), price=1.0)
    assert chosen_horizon(of(frame, known=("price",))) == 5


def test_the_choice_is_told_and_kept(tmp_path: Path) -> None:
    made(60, "MS").to_csv(tmp_path / "months.csv", index=False)
    told: list[str] = []
    config = PRESETS["forecast"].with_(series__file=tmp_path / "months.csv", series__laws="seasonal-naive")
    settings = Settings(figures=0, baselines="none", samples=4)
    found = forecast(config, settings, tmp_path / "run", device="cpu", progress=Progress(notice=told.append))
    line = "12 steps ahead are forecast, chosen for steps of 1 month and 60 values (--horizon chooses others)"
    assert line in told
    assert len(found.outcome.forecast) == 12
    assert found.outcome.scores["windows"] == 1
    assert Forecaster.load(tmp_path / "run").config.series.horizon == 12


def test_python_is_told_by_its_parameter() -> None:
    with pytest.warns(UserWarning, match=r"steps of 1 day and 40 values \(horizon chooses others\)"):
        fitted = Forecaster(laws="seasonal-naive").fit(made(40, "D"))
    assert fitted.config.series.horizon == 8
    assert "numbered steps" in horizon_line(of(made(40, "numbers")), "horizon")
