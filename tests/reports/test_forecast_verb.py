"""`sgfn forecast` from end to end on small data: files, scores, what it tells, stops and continues."""

import json
import shutil
import signal
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from forecast_runs import FLAGS, small_config, write_csv
from forecast_tables import small_panel
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from sgfn.cli.commands import main
from sgfn.cli.forecast import Board, print_behind
from sgfn.reports.forecasts import Progress, forecast
from sgfn.reports.scenarios import weighted_quantiles
from sgfn.runs.folder import Run
from sgfn.series import classical
from sgfn.series.ensemble import DrawnPaths
from sgfn.series.files import Outcome
from sgfn.series.forecaster import Forecaster
from sgfn.series.learner import ForecastLearner
from sgfn.series.settings import Settings, spares
from sgfn.series.windows import Inputs


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_csv(tmp_path_factory.mktemp("data") / "sales.csv")


@pytest.fixture(scope="module")
def run(data: Path) -> Path:
    """A finished forecast of two series."""
    folder = data.parent / "run"
    words = ["forecast", str(data), *FLAGS, "--out", str(folder), "--paths", str(data.parent / "paths.csv")]
    assert main(words) == 0
    return folder


# What is written


def test_files_of_a_forecast(run: Path, data: Path) -> None:
    """Four steps after the last day of each series, quantiles in order, two windows judged, pictures and a page."""
    outcome = Outcome.read(run)
    assert outcome.names == ["a", "b"]
    table = pd.read_csv(data, parse_dates=["ds"])
    for name in outcome.names:
        ahead = outcome.forecast[outcome.forecast["unique_id"] == name]
        last = table[table["unique_id"] == name]["ds"].max()
        assert ahead["ds"].tolist() == [last + pd.Timedelta(days=day) for day in range(1, 5)]
    quantiles = outcome.forecast.filter(regex="^q").to_numpy()
    assert (np.diff(quantiles, axis=1) >= 0).all()
    assert list(outcome.scores["methods"]) == ["sgfn", "seasonal naive"]
    assert outcome.scores["windows"] == 4
    assert set(outcome.scores["by_series"]["sgfn"]) == {"a", "b"}
    for name in ("fan-a.png", "fan-b.png", "calibration.png"):
        assert (run / name).read_bytes()[:4] == b"\x89PNG"
    assert "Forecast of sales.csv" in (run / "report.html").read_text()
    assert Run(path=run).read_config()[1].series.spare == 8
    assert Run(path=run).rows()[-1]["step"] == 6


def test_paths_agree_with_the_forecast(run: Path, data: Path) -> None:
    """Sixteen paths of each series; their mean lies near the mean of the law."""
    paths, outcome = pd.read_csv(data.parent / "paths.csv", parse_dates=["ds"]), Outcome.read(run)
    assert list(paths.columns) == ["unique_id", "sample", "ds", "y"]
    assert len(paths) == 2 * 16 * 4
    middle = paths.groupby(["unique_id", "ds"])["y"].mean().to_numpy()
    spread = (outcome.forecast["q0.9"] - outcome.forecast["q0.1"]).to_numpy()
    assert (np.abs(middle - outcome.forecast["mean"].to_numpy()) < spread).all()


@pytest.mark.usefixtures("no_page")
def test_backtest_knows_only_what_came_before(data: Path, tmp_path: Path) -> None:
    """Values after the first window's beginning are changed: what was said of that window stays."""
    table = pd.read_csv(data, parse_dates=["ds"])
    cut = table["ds"].max() - pd.Timedelta(days=8)
    table.loc[table["ds"] > cut, "y"] += 30
    table.to_csv(tmp_path / "other.csv", index=False)
    said = []
    for file in (data, tmp_path / "other.csv"):
        settings = Settings(windows=2, samples=16, baselines="seasonal-naive", figures=0)
        found = forecast(small_config(file), settings, tmp_path / file.stem, device="cpu")
        backtest = found.outcome.backtest
        said.append(backtest[backtest["cutoff"] == cut].filter(regex="^(q|mean)").to_numpy())
    np.testing.assert_array_equal(said[0], said[1])
    assert len(said[0]) == 2 * 2 * 4


@pytest.mark.usefixtures("no_page")
def test_paths_are_drawn_of_the_future_alone(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores are those of the law of each step: a thousand series' windows would wait for paths nobody reads."""
    asked: list[int] = []
    draw = ForecastLearner.draw_paths

    def recorded(self: ForecastLearner, inputs: Inputs, samples: int, seed: int) -> DrawnPaths:
        asked.append(len(inputs.unit) * samples)
        return draw(self, inputs, samples, seed)

    monkeypatch.setattr(ForecastLearner, "draw_paths", recorded)
    settings = Settings(windows=2, samples=16, baselines="seasonal-naive", figures=0)
    found = forecast(small_config(data), settings, tmp_path / "run", device="cpu")
    assert asked == [2 * 2, 2 * 16]
    assert found.outcome.paths is not None
    assert len(found.outcome.paths) == 2 * 16 * 4


@pytest.mark.usefixtures("no_page")
def test_a_run_goes_on_forecasting_when_its_file_has_grown(data: Path, tmp_path: Path) -> None:
    """The run keeps what it was trained on; the same name may hold newer data, which it then forecasts from."""
    file, folder = tmp_path / "sales.csv", tmp_path / "run"
    shutil.copy(data, file)
    settings = Settings(windows=2, samples=4, baselines="seasonal-naive", figures=0)
    before = forecast(small_config(file), settings, folder, device="cpu").outcome.forecast
    copy = folder / "data" / "sales.csv"
    assert copy.read_bytes() == data.read_bytes()
    table = pd.read_csv(file, parse_dates=["ds"])
    last = table.groupby("unique_id").tail(1)
    pd.concat([table, last.assign(ds=last["ds"] + pd.Timedelta(days=1))]).to_csv(file, index=False)
    loaded = Forecaster.load(folder)
    assert np.allclose(loaded.predict(samples=4).mean.reshape(-1), before["mean"])
    newer = loaded.predict(file, samples=4)
    assert (newer.stamps[:, 0] == loaded.predict(samples=4).stamps[:, 1]).all()
    for _ in ("edited", "gone"):
        again = forecast(small_config(file), settings, folder, resume=True, device="cpu").outcome.forecast
        pd.testing.assert_frame_equal(again, before)
        file.unlink(missing_ok=True)
    copy.write_text(copy.read_text() + "\n")
    with pytest.raises(ValueError, match=r"sales\.csv has changed since .* was begun"):
        Forecaster.load(folder)


def test_a_forecast_of_0_1_is_read_from_the_copy_beside_its_configuration(run: Path, tmp_path: Path) -> None:
    """The layout of format 1: a checksum alone in config.json, and data.csv."""
    old = shutil.copytree(run, tmp_path / "run")
    settings = json.loads((old / "config.json").read_text())
    record = settings["files"]["series.file"]
    (old / record["copy"]).rename(old / "data.csv")
    settings |= {"format": 1, "files": {"series.file": record["sha256"]}}
    settings["config"]["series"]["file"] = str(tmp_path / "gone.csv")
    (old / "config.json").write_text(json.dumps(settings))
    one, two = (Forecaster.load(folder).predict(samples=4).paths for folder in (run, old))
    np.testing.assert_array_equal(one, two)
    (old / "data.csv").unlink()
    with pytest.raises(ValueError, match=r"gone\.csv is missing, and .* is of sgfn 0\.1, which kept no copy"):
        Forecaster.load(old, trust=True)


@pytest.mark.usefixtures("no_page")
def test_json(run: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A finished run is judged again with other quantiles; the old pictures go."""
    run = shutil.copytree(run, tmp_path / "run")
    words = ["forecast", str(data), *FLAGS, "--out", str(run), "--resume", "--json", "--figures", "1"]
    assert main([*words, "--levels", "0.05", "0.1", "0.5", "0.9", "0.95"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert err == ""
    assert (found["series"], found["horizon"], found["windows"]) == (2, 4, 4)
    assert [Path(name).name for name in found["files"]["pictures"]] == ["fan-a.png", "calibration.png"]
    assert not (run / "fan-b.png").exists()
    assert "q0.05" in Path(found["files"]["forecast"]).read_text().splitlines()[0]


def test_without_a_backtest(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["forecast", str(data), *FLAGS, "--windows", "0", "--out", str(tmp_path / "run"), "--figures", "1"]
    assert main(words) == 0
    assert "WQL" not in capsys.readouterr().out
    outcome = Outcome.read(tmp_path / "run")
    assert (len(outcome.backtest), outcome.scores["methods"]) == (0, {})
    assert not (tmp_path / "run" / "calibration.png").exists()
    assert "Calibration" not in (tmp_path / "run" / "report.html").read_text()


@pytest.mark.usefixtures("no_page")
def test_refit_learns_from_the_last_windows_too(data: Path, tmp_path: Path) -> None:
    settings = Settings(windows=2, samples=8, baselines="seasonal-naive", figures=0, refit=True)
    found = forecast(small_config(data), settings, tmp_path / "run", device="cpu")
    whole = Run(path=tmp_path / "run" / "refit")
    assert whole.read_config()[1].series.spare == 0
    plain = forecast(small_config(data), replace(settings, refit=False), tmp_path / "plain", device="cpu")
    pd.testing.assert_frame_equal(found.outcome.backtest, plain.outcome.backtest)
    assert not found.outcome.forecast["mean"].equals(plain.outcome.forecast["mean"])
    again = forecast(small_config(data), settings, tmp_path / "run", device="cpu", resume=True)
    pd.testing.assert_frame_equal(again.outcome.forecast, found.outcome.forecast)


def test_scenarios(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cost that likes high paths raises them; tables, figures and pictures tell how far to trust it."""
    (tmp_path / "liking.py").write_text("def high(paths):\n    return paths.mean(1)\n")
    monkeypatch.chdir(tmp_path)
    run = shutil.copytree(run, tmp_path / "run")
    words = ["forecast", "--resume", "--out", str(run), "--tilt", "liking:high", "--tilt-steps", "2", "--figures", "1"]
    monkeypatch.setattr("sgfn.reports.scenarios.LEAST", 64)
    assert main([*words, "--baselines", "seasonal-naive", "--samples", "16", "--windows", "2"]) == 0
    assert "scenarios of b: 64 paths count as" in capsys.readouterr().out
    table, outcome = pd.read_csv(run / "scenarios.csv"), Outcome.read(run)
    assert list(table.columns) == ["unique_id", "sample", "ds", "y", "cost", "weight"]
    assert len(table) == 2 * 64 * 4
    first = table[(table["unique_id"] == "b") & (table["sample"] == 0)]
    assert len(set(first["weight"])) == 1
    told = json.loads((run / "tilt.json").read_text())["series"]["b"]
    assert (0 < told["ess"] <= 1, told["shift"] > 0, told["samples"]) == (True, True, 64)
    assert [file.name for file in run.glob("tilt-*.png")] == ["tilt-a.png"]
    assert outcome.names == ["a", "b"]
    page = (run / "report.html").read_text()
    assert "Scenarios of b: the median ends at" in page
    assert "the cost liking:high" in page


@pytest.mark.usefixtures("no_page")
def test_scenarios_by_kl(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The objective reaches the trainer: the record names it, and weights differ."""
    (tmp_path / "fondness.py").write_text("def high(paths):\n    return paths.mean(1)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sgfn.reports.scenarios.LEAST", 64)
    words = [
        "--tilt",
        "fondness:high",
        "--tilt-steps",
        "3",
        "--figures",
        "0",
        "--baselines",
        "seasonal-naive",
        "--samples",
        "16",
    ]
    weights = []
    for objective in ("tb", "kl"):
        folder = shutil.copytree(run, tmp_path / objective)
        resumed = ["forecast", "--resume", "--out", str(folder), "--windows", "2"]
        assert main([*resumed, *words, "--tilt-objective", objective]) == 0
        assert json.loads((folder / "tilt.json").read_text())["objective"] == objective
        weights.append(pd.read_csv(folder / "scenarios.csv")["weight"].to_numpy())
    assert not np.array_equal(*weights)
    capsys.readouterr()
    assert main(["forecast", "--out", str(run), "--tilt-objective", "lk"]) == 2
    assert "--tilt-objective 'lk' is unknown: choose from tb, kl; did you mean 'kl'?" in capsys.readouterr().err


@pytest.mark.usefixtures("no_page")
def test_stamps_of_nanoseconds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Forty values in forty nanoseconds are forecast; whole numbers are read as such, and this is said."""
    table = pd.DataFrame({"ds": [f"2024-01-01T00:00:00.{i:09d}" for i in range(40)], "y": np.sin(np.arange(40.0))})
    table.to_csv(tmp_path / "ns.csv", index=False)
    words = [*FLAGS, "--figures", "0", "--out", str(tmp_path / "run")]
    assert main(["forecast", str(tmp_path / "ns.csv"), *words]) == 0
    assert Outcome.read(tmp_path / "run").forecast["ds"].iloc[0] == pd.Timestamp("2024-01-01T00:00:00.000000040")
    table.assign(ds=10**18 + np.arange(40)).to_csv(tmp_path / "whole.csv", index=False)
    assert main(["forecast", str(tmp_path / "whole.csv"), *words, "--overwrite"]) == 0
    told = f"{tmp_path / 'whole.csv'}, column 'ds': numbers are read as nanoseconds since 1970 in universal time"
    assert told in capsys.readouterr().err
    assert Outcome.read(tmp_path / "run").forecast["ds"].iloc[0] == pd.Timestamp(10**18 + 40)


@pytest.mark.usefixtures("no_page")
def test_resuming_takes_the_windows_that_were_kept(run: Path, data: Path, tmp_path: Path) -> None:
    """A run that kept two windows of each series is judged on these, though there is room for more."""
    run = shutil.copytree(run, tmp_path / "run")
    settings = Settings(samples=4, baselines="seasonal-naive", figures=0)
    assert len(settings.origins(small_panel(("a", "b")), 4)) > 4
    assert forecast(small_config(data), settings, run, device="cpu", resume=True).outcome.scores["windows"] == 4


def test_irregular_stamps_of_the_windows_are_said_to_be_known(data: Path, run: Path, tmp_path: Path) -> None:
    table = pd.read_csv(data, parse_dates=["ds"])
    table["ds"] += pd.to_timedelta(np.random.default_rng(0).integers(0, 300, len(table)), unit="min")
    table.to_csv(tmp_path / "uneven.csv", index=False)
    settings = Settings(windows=2, samples=4, baselines="seasonal-naive", figures=0)
    found = forecast(small_config(tmp_path / "uneven.csv"), settings, tmp_path / "run", device="cpu")
    assert found.outcome.scores["future_stamps"] == "known"
    assert "every method was told when the values of a window came" in (tmp_path / "run" / "report.html").read_text()
    assert Outcome.read(run).scores["future_stamps"] == "regular"
    assert "was told when" not in (run / "report.html").read_text()


@given(st.integers(1, 20), st.integers(1, 4), st.integers(0, 99))
def test_equal_weights_give_plain_quantiles(count: int, horizon: int, seed: int) -> None:
    paths = np.random.default_rng(seed).normal(size=(count, horizon))
    levels = np.array([0.1, 0.5, 0.9])
    found = weighted_quantiles(paths, np.ones(count), levels)
    np.testing.assert_allclose(found, np.quantile(paths, levels, axis=0, method="inverted_cdf").T)
    heavy = weighted_quantiles(paths, np.where(np.arange(count) == 0, 1e9, 1.0), levels)
    np.testing.assert_allclose(heavy, np.repeat(paths[0][:, None], 3, 1))


# Other verbs


def test_sample_draws_paths(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Three paths of each series from its end on; another seed draws others."""
    for seed in ("0", "1"):
        assert main(["sample", str(run), "-n", "3", "--out", str(tmp_path / f"{seed}.csv"), "--seed", seed]) == 0
    assert f"6 samples in {tmp_path / '0.csv'}" in capsys.readouterr().out
    one, two = (pd.read_csv(tmp_path / f"{seed}.csv") for seed in ("0", "1"))
    assert list(one.columns) == ["unique_id", "sample", "ds", "y"]
    assert len(one) == 2 * 3 * 4
    assert not one["y"].equals(two["y"])


@pytest.mark.parametrize("verb", ["evaluate", "report"])
def test_verbs_of_exact_answers_point_to_the_forecast(verb: str, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb, str(run)]) == 2
    assert f"`sgfn forecast --resume --out {run}` writes them again" in capsys.readouterr().err


@pytest.mark.usefixtures("no_page")
def test_training_alone_says_how_to_go_on(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = [
        "--series.laws",
        "network",
        "--series.horizon",
        "4",
        "--series.members",
        "1",
        "--series.bins",
        "8",
        "--series.context",
        "8",
    ]
    flags += ["--net.hidden", "8", "--net.layers", "1", "--net.heads", "2", "--steps", "2", "--batch", "4"]
    folder = str(tmp_path / "run")
    words = ["train", "series", "--preset", "forecast", "--series.file", str(data), *flags, "--out", folder]
    assert main([*words, "--log.every", "1", "--device", "cpu"]) == 0
    line = capsys.readouterr().out.splitlines()[-1]
    assert line == f"next: sgfn forecast --resume --windows 0 --out {folder}"
    assert main([*line.split()[2:], "--samples", "4", "--figures", "0"]) == 0
    assert len(Outcome.read(tmp_path / "run").forecast) == 8


# What is told


@pytest.mark.usefixtures("no_page")
def test_table_and_notices(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = pd.read_csv(data)
    table.iloc[::-1].to_csv(tmp_path / "back.csv", index=False)
    words = ["forecast", str(tmp_path / "back.csv"), *FLAGS, "--out", str(tmp_path / "run"), "--figures", "0"]
    assert main(words) == 0
    out, err = capsys.readouterr()
    assert "rows are not in the order of time; they were sorted" in err
    assert "4 windows" in out
    assert "seasonal naive" in out
    assert f"2 series, 4 steps ahead: {tmp_path / 'run' / 'forecast.csv'}" in out


@pytest.mark.usefixtures("no_page")
def test_absence_of_statsforecast_is_told_once(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sgfn.reports.forecasts.has_statsforecast", lambda: False)
    monkeypatch.setattr("sgfn.series.classical.has_statsforecast", lambda: False)
    told: list[str] = []
    settings = Settings(windows=1, samples=4, figures=0)
    found = forecast(
        small_config(data), settings, tmp_path / "run", device="cpu", progress=Progress(notice=told.append)
    )
    assert told == [classical.NEEDS]
    assert list(found.outcome.scores["methods"]) == ["sgfn", "seasonal naive", "Theta", "pretrained", "log pretrained"]


@pytest.mark.usefixtures("no_page")
def test_auto_ets_is_judged_beside_us(data: Path, tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    progress = Progress(windows=lambda *args: seen.append(args))
    settings = Settings(windows=1, samples=4, figures=0, baselines="seasonal-naive,AutoETS")
    found = forecast(small_config(data), settings, tmp_path / "run", device="cpu", progress=progress)
    assert list(found.outcome.scores["methods"]) == ["sgfn", "seasonal naive", "AutoETS"]
    assert seen[-1] == ("AutoETS", 2, 2)
    assert found.outcome.scores["small"]


@pytest.mark.usefixtures("no_page")
def test_every_law_of_the_pool_has_a_row_and_one_that_is_ahead_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the composition names is in the table; a line of the command names a method with less WQL than ours."""
    time = np.arange(48)
    values = 50 + 10 * np.sin(np.pi * time / 6) + time % 5
    stamps = pd.date_range("2020-01-01", periods=48, freq="MS").astype(str)
    pd.DataFrame({"ds": stamps, "y": values}).to_csv(tmp_path / "m.csv", index=False)
    words = ["forecast", str(tmp_path / "m.csv"), "--horizon", "3", "--windows", "1", "--figures", "0"]
    words += ["--effort", "quick", "--samples", "4", "--out", str(tmp_path / "run"), "--json"]
    assert main(words) == 0
    scores = json.loads(capsys.readouterr().out)
    assert {"log MSTL", "log AutoTheta"} <= set(scores["methods"])
    assert set(scores["composition"]["weights"]) <= set(scores["methods"])
    row = scores["methods"]["sgfn"]
    print_behind(scores | {"methods": {"sgfn": row, "MSTL": row | {"wql": 0.9 * row["wql"]}}})
    assert "behind MSTL in the backtest: its WQL of" in capsys.readouterr().out
    print_behind(scores | {"methods": {"sgfn": row}})
    assert capsys.readouterr().out == ""


def test_bars(tmp_path: Path) -> None:
    screen = StringIO()
    with Board(Console(file=screen, force_terminal=True, width=120), 6) as board:
        board.training(0, {})
        board.training(6, {"loss": 1.25, "held_out": 1.5, "rate": 3.0})
        board.windows("AutoETS", 1, 2)
    text = screen.getvalue()
    assert "loss 1.250" in text
    assert "AutoETS" in text


# Runs that are there


def test_runs_that_are_there(run: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def refused(*words: str) -> str:
        assert main(["forecast", str(data), *FLAGS, "--out", str(run), *words]) == 2
        return capsys.readouterr().err

    assert "already holds a run: add --resume to continue it, --overwrite to replace it" in refused()
    assert "with --resume leave --steps out" in refused("--resume", "--steps", "9")
    assert "with --resume leave --horizon out" in refused("--resume", "--horizon", "5")
    assert "was trained with 8 steps kept from it, the backtest needs 12" in refused("--resume", "--windows", "3")
    (tmp_path / "p.csv").write_text("mine")
    assert "p.csv exists: add --overwrite" in refused("--paths", str(tmp_path / "p.csv"))
    assert main(["train", "grid", "--steps", "1", "--out", str(tmp_path / "grid")]) == 0
    capsys.readouterr()
    assert main(["forecast", str(data), "--resume", "--out", str(tmp_path / "grid")]) == 2
    assert "holds a run of grid, not a forecast" in capsys.readouterr().err


@pytest.mark.usefixtures("no_page")
def test_a_stop_tells_how_to_go_on_and_going_on_ends_alike(
    run: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], stopping_at: Callable[[int], Any]
) -> None:
    """Stopped after two steps and continued, the forecast is that of a run without a stop."""
    folder = tmp_path / "run"
    settings = Settings(windows=2, samples=16, baselines="seasonal-naive", figures=0)
    with pytest.raises(KeyboardInterrupt, match=r"continue with: sgfn forecast .*sales\.csv --resume --out"):
        forecast(small_config(data), settings, folder, device="cpu", progress=Progress(training=stopping_at(2)))
    capsys.readouterr()
    assert main(["forecast", str(data), *FLAGS, "--out", str(folder), "--resume", "--figures", "0"]) == 0
    capsys.readouterr()
    pd.testing.assert_frame_equal(Outcome.read(folder).forecast, Outcome.read(run).forecast)


@pytest.fixture
def stopping_at() -> Callable[[int], Any]:
    """Someone who presses Ctrl-C at a step."""

    def at(wanted: int) -> Callable[[int, dict[str, Any]], None]:
        def told(step: int, _: dict[str, Any]) -> None:
            if step == wanted:
                signal.raise_signal(signal.SIGINT)

        return told

    return at


# Settings


def test_windows_by_default() -> None:
    """Up to twenty in the last fifth of the shortest series, one where three horizons are there, none otherwise."""
    assert len(Settings().origins(small_panel(("a",), count=700), 7)) == 20
    assert len(Settings().origins(small_panel(("a",), count=140), 7)) == 4
    assert len(Settings().origins(small_panel(("a",), count=30), 7)) == 1
    assert Settings().origins(small_panel(("a",), count=20), 7) == ()
    assert Settings(windows=0).origins(small_panel(), 7) == ()
    assert spares(Settings(windows=3).origins(small_panel(), 7), small_panel()) == (21, 21)
    assert spares((), small_panel()) == (0, 0)
