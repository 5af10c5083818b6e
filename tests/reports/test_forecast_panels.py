"""`sgfn forecast` on panels that are not plain: series that differ, gaps, covariates, odd names, a history at rest."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from forecast_runs import FLAGS, small_config, write_csv
from forecast_tables import small_panel

from sgfn.cli.commands import main
from sgfn.reports.forecasts import Progress, forecast
from sgfn.runs.folder import Run
from sgfn.series.files import Outcome
from sgfn.series.panel import Panel
from sgfn.series.settings import Settings


def test_series_of_unequal_length_have_the_windows_that_fit(tmp_path: Path) -> None:
    """Each series keeps its own windows from training; a short one has fewer, and that is told."""
    long, short = small_panel(("long", "short"), count=70).series
    shift = np.timedelta64(100, "D")
    short = replace(short.until(9), stamps=short.stamps[:9] + shift, future=short.future[:0], known=short.known[:9])
    file, told = write_csv(tmp_path / "two.csv", Panel(series=(long, short), step=np.timedelta64(1, "D"))), list[str]()
    settings = Settings(windows=3, samples=4, baselines="seasonal-naive", figures=0)
    progress = Progress(notice=told.append)
    found = forecast(small_config(file), settings, tmp_path / "run", device="cpu", progress=progress)
    assert found.outcome.backtest.groupby("unique_id")["cutoff"].nunique().to_dict() == {"long": 3}
    assert told == [
        "the backtest has fewer than 3 windows of series 'short': too short, too many values missing, or gaps "
        "between stamps"
    ]
    config = Run(path=tmp_path / "run").read_config()[1].series
    assert (config.spare, config.spares, config.kept(2)) == (0, "12,0", (12, 0))
    again = forecast(small_config(file), settings, tmp_path / "run", device="cpu", resume=True)
    pd.testing.assert_frame_equal(again.outcome.backtest, found.outcome.backtest)


def test_windows_pass_over_gaps_and_stay_in_the_last_fifth() -> None:
    """Where windows at the end are empty, older ones are taken, but none that training needs."""
    (one,) = small_panel(("a",), count=140).series
    values = one.values.copy()
    values[-14:] = np.nan
    panel = Panel(series=(replace(one, values=values),), step=np.timedelta64(1, "D"))
    assert [origin.cut for origin in Settings().origins(panel, 7)] == [112, 119]
    assert [origin.cut for origin in Settings(windows=3).origins(panel, 7)] == [105, 112, 119]


def test_a_history_that_never_changes_has_no_scale(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing was sold until the last windows: MASE is told of, is null in JSON, and a dash in table and page."""
    (one,) = small_panel(("a",), count=40).series
    values = np.where(np.arange(40) < 36, 0.0, np.arange(40.0))
    file = write_csv(tmp_path / "zero.csv", Panel(series=(replace(one, values=values),), step=np.timedelta64(1, "D")))
    words = ["forecast", str(file), *FLAGS, "--windows", "1", "--figures", "0", "--out", str(tmp_path / "run")]
    assert main(words) == 0
    out, err = capsys.readouterr()
    assert "MASE leaves out 1 of 1 windows: nothing changes in the history before" in err
    assert "\N{EN DASH}" in out
    text = (tmp_path / "run" / "backtest.json").read_text()
    assert json.loads(text)["methods"]["sgfn"]["mase"] is None
    assert "NaN" not in text
    assert "Infinity" not in text


def test_series_may_be_called_na(tmp_path: Path) -> None:
    """In what is read back, too: only what is empty is missing."""
    file = write_csv(tmp_path / "countries.csv", small_panel(("NA", "007")))
    settings = Settings(windows=2, samples=4, baselines="seasonal-naive", figures=0)
    forecast(small_config(file), settings, tmp_path / "run", device="cpu")
    outcome = Outcome.read(tmp_path / "run")
    assert outcome.names == ["NA", "007"]
    assert outcome.history["y"].isna().sum() == pd.read_csv(tmp_path / "run" / "history.csv")["y"].isna().sum()


def test_covariates_irregular_stamps_and_gaps(tmp_path: Path) -> None:
    """Known and past-only covariates, rows of the future, missing values and uneven time."""
    rng = np.random.default_rng(1)
    stamps = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.cumsum(rng.integers(3, 8, 80)), unit="min")
    frame = pd.DataFrame(
        {"ds": stamps, "y": rng.normal(5, 1, 80), "dose": rng.integers(0, 2, 80), "heat": rng.normal(size=80)}
    )
    frame.loc[[10, 11, 40], "y"] = np.nan
    frame.loc[76:, ["y", "heat"]] = np.nan
    frame.to_csv(tmp_path / "g.csv", index=False)
    words = [
        "forecast",
        str(tmp_path / "g.csv"),
        *FLAGS,
        "--known",
        "dose",
        "--out",
        str(tmp_path / "run"),
        "--figures",
        "0",
    ]
    assert main(words) == 0
    ahead = Outcome.read(tmp_path / "run").forecast
    assert ahead["ds"].tolist() == stamps[76:].tolist()  # the stamps that the file gives
