"""Files of a forecast that are there already: kept until there are new ones, and replaced together."""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from forecast_runs import FLAGS, small_config, write_csv
from forecast_tables import small_panel
from kills import killed_at
from small_runs import complaint, contents

from sgfn.cli.commands import main
from sgfn.reports import forecasts
from sgfn.reports.forecast_figure import file_names
from sgfn.reports.forecasts import forecast
from sgfn.runs.folder import Run
from sgfn.series.files import FILES, Outcome
from sgfn.series.settings import Settings

SETTINGS = Settings(windows=1, samples=4, baselines="seasonal-naive", figures=1)
FEWER = Settings(windows=1, samples=4, baselines="seasonal-naive", figures=0, levels=(0.1, 0.25, 0.5, 0.9))
MINE = {"notes.txt": b"mine", "fan-mine.csv": b"mine"}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_csv(tmp_path_factory.mktemp("data") / "sales.csv")


@pytest.fixture(scope="module")
def finished(data: Path) -> Path:
    folder = data.parent / "run"
    forecast(small_config(data), SETTINGS, folder, device="cpu")
    for name, content in MINE.items():
        (folder / name).write_bytes(content)
    return folder


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "run"))


def again(data: Path, run: Path, paths: Path | None = None) -> None:
    """Judge and write again, with other quantiles and without pictures."""
    settings = FEWER if paths is None else Settings(**(vars(FEWER) | {"paths": paths}))
    forecast(small_config(data), settings, run, device="cpu", resume=True)


def test_killed_anywhere_a_forecast_is_all_old_or_all_new(
    data: Path, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables, scores, pictures, page and the file of paths."""
    paths = tmp_path / "paths.csv"
    paths.write_text("old")
    before, outcomes, after = contents(run), [], None
    ready = forecasts.Forecaster.load(run)
    monkeypatch.setattr(forecasts.Forecaster, "load", lambda *_, **__: ready)  # what is written is under test
    for change in range(1, 150, 8):
        folder = Path(shutil.copytree(run, tmp_path / "tried"))
        paths.write_text("old")
        killed = killed_at(change, lambda folder=folder: again(data, folder, paths))
        Outcome.read(folder)  # whoever reads it brings it to its place
        with Run(path=folder).locked():
            found = contents(folder)
        outcomes.append(found != before)
        after = found if outcomes[-1] and after is None else after
        assert found in (before, after)
        assert paths.read_text() == "old" or outcomes[-1]
        shutil.rmtree(folder)
        if not killed:
            break
    assert outcomes == sorted(outcomes)
    assert 1 < sum(outcomes) < len(outcomes) - 3
    assert after is not None
    assert {name: after[name] for name in MINE} == MINE
    assert before.keys() - after.keys() == {"fan-a.png", "calibration.png"}
    assert b"q0.25" in after["forecast.csv"]
    assert paths.read_text().startswith("unique_id,sample,ds,y")
    again(data, run, paths)
    assert contents(run) == after
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]  # beside the paths


@pytest.mark.parametrize("name", ["drawn", "write_forecast_page", "judged", "take_over"])
def test_one_that_fails_leaves_the_old_one(name: str, data: Path, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = contents(run)

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device", f"{run}/.sgfn-new/x.png")

    monkeypatch.setattr(forecasts, name, fail)
    with pytest.raises(OSError, match="No space left on device") as caught:
        again(data, run)
    assert name == "judged" or caught.value.filename == f"{run}/x.png"
    assert contents(run) == before
    assert not (run / ".sgfn-new").exists()


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        ("DATA", "is the data: give --paths another name"),
        ("RUN/forecast.csv", "is a file that the run itself writes"),
        ("RUN/data/sales.csv", "is a file that the run itself writes"),
        ("RUN/notes.txt/x.csv", "Not a directory"),
        ("RUN/data", "tables are written as .csv or .parquet"),
        ("folder.csv", "not a regular file"),
        ("x" * 252 + ".csv", "File name too long"),
    ],
)
def test_paths_that_cannot_be_written_are_told_before_training(
    paths: str, message: str, data: Path, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "folder.csv").mkdir()
    file = data if paths == "DATA" else tmp_path / paths.replace("RUN", str(run))
    before = contents(tmp_path)
    for how in (["--resume"], [str(data), "--overwrite"]):
        words = ["forecast", *how, "--out", str(run), "--paths", str(file), *(FLAGS if len(how) == 2 else [])]
        assert message in complaint(capsys, words)
        assert contents(tmp_path) == before


@pytest.mark.parametrize("name", ["backtest.json", "fan-a.png", "report.html"])
def test_outputs_that_are_in_the_way_are_told_before_training(
    name: str, data: Path, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (run / name).unlink()
    (run / name).mkdir()
    before = contents(run)
    line = complaint(capsys, ["forecast", "--resume", "--out", str(run), "--baselines", "seasonal-naive"])
    assert line == f"{run}/{name}: not a regular file, give another name"
    assert contents(run) == before


def test_a_second_forecast_into_a_folder_is_refused_until_the_first_is_written(
    data: Path, run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    judged = forecasts.judged

    def meanwhile(*args: object) -> object:
        monkeypatch.setattr(forecasts, "judged", judged)
        seen.append(complaint(capsys, ["forecast", "--resume", "--out", str(run), "--baselines", "seasonal-naive"]))
        return judged(*args)  # pyright: ignore

    monkeypatch.setattr(forecasts, "judged", meanwhile)
    again(data, run)
    assert seen == [f"another process is training in {run}: wait for it, or give --out another name"]


def test_an_old_forecast_stays_until_the_new_network_has_one(
    data: Path, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--overwrite`, and no way to the end: old tables and their page stay together."""
    before = contents(run)

    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(forecasts, "judged", fail)
    with pytest.raises(MemoryError):
        forecast(small_config(data, seed=3), SETTINGS, run, device="cpu", overwrite=True)
    assert Run(path=run).read_config()[1].seed == 3
    kept = [*FILES, *MINE, "fan-a.png"]
    assert {name: contents(run)[name] for name in kept} == {name: before[name] for name in kept}


def test_a_network_refitted_to_other_data_is_trained_again(data: Path, tmp_path: Path) -> None:
    """The same settings and the same file's name, but not the same values."""
    file, settings = (
        tmp_path / "sales.csv",
        Settings(windows=1, samples=4, baselines="seasonal-naive", figures=0, refit=True),
    )
    shutil.copy(data, file)
    forecast(small_config(file), settings, tmp_path / "run", device="cpu")
    table = pd.read_csv(file)
    table.assign(y=table["y"][::-1].to_numpy() * 3).to_csv(file, index=False)
    found = forecast(small_config(file), settings, tmp_path / "run", device="cpu", overwrite=True)
    fresh = forecast(small_config(file), settings, tmp_path / "fresh", device="cpu")
    np.testing.assert_array_equal(found.outcome.forecast["mean"], fresh.outcome.forecast["mean"])


# Names of pictures

ODD = ["x_-2", "x/", "x?", "X?", "../x", ".", "", "\N{CJK UNIFIED IDEOGRAPH-65E5}" * 90]


def test_pictures_of_oddly_named_series_are_all_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = tuple(name for name in ODD if name)
    file = write_csv(tmp_path / "odd.csv", small_panel(names))
    words = ["forecast", str(file), *FLAGS, "--windows", "0", "--out", str(tmp_path / "run"), "--json"]
    assert main(words) == 0
    out, err = capsys.readouterr()
    assert err == ""
    pictures = [Path(name) for name in json.loads(out)["files"]["pictures"]]
    assert len(set(pictures)) == len(names)
    assert {path.name for path in pictures} == {path.name for path in (tmp_path / "run").glob("fan-*.png")}
    page = (tmp_path / "run" / "report.html").read_text()
    assert all(f"Fan chart of {name}: " in page for name in names)


def test_names_of_pictures_are_different_short_and_safe() -> None:
    accented = ["e\N{COMBINING ACUTE ACCENT}", "\N{LATIN SMALL LETTER E WITH ACUTE}"]
    names = [*ODD, *(f"{'y' * 100}{n}" for n in range(50)), *accented]
    found = file_names(names)
    assert list(found) == names
    assert len({name.casefold() for name in found.values()}) == len(names)
    assert all(len(name.encode()) < 100 and "/" not in name and not name.startswith(".") for name in found.values())
