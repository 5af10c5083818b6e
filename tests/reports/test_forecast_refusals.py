"""What `sgfn forecast` refuses in one line, before anything is trained or written."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from forecast_runs import FLAGS, write_csv
from forecast_tables import small_panel
from small_runs import complaint

from sgfn.cli.commands import main
from sgfn.series.forecaster import Forecaster


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_csv(tmp_path_factory.mktemp("data") / "sales.csv")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("raise KeyError('stock')", "tilt dislike:cost failed on paths of shape (2, 4) (KeyError: 'stock')"),
        ("raise SystemExit(0)", "failed on paths of shape (2, 4) (SystemExit: 0) in dislike.py, line 2"),
        ("return paths", "tilt dislike:cost must give one number for each of 2 paths, got shape (2, 4)"),
        ("return paths.mean(1) / 0 * float('inf')", "tilt dislike:cost must be finite, got"),
        ("return None", "tilt dislike:cost must"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_a_wrong_cost_is_told_before_training(
    body: str,
    message: str,
    data: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "dislike.py").write_text(f"def cost(paths):\n    {body}\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "dislike", raising=False)
    assert main(["forecast", str(data), *FLAGS, "--out", str(tmp_path / "run"), "--tilt", "dislike:cost"]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.usefixtures("no_page")
def test_a_future_that_ends_too_early_is_told_before_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = pd.read_csv(write_csv(tmp_path / "promo.csv", small_panel(("a",)), promo=1.0))
    table.loc[len(table) - 3 :, "y"] = np.nan
    table.to_csv(tmp_path / "promo.csv", index=False)
    words = ["forecast", str(tmp_path / "promo.csv"), *FLAGS, "--known", "promo", "--out", str(tmp_path / "run")]
    assert main(words) == 2
    told = "promo must be known 4 steps past the last value of series 'a' (2024-03-07T00:00:00), there are 3: add rows"
    assert told in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
    assert main([*words, "--horizon", "3", "--figures", "0"]) == 0


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            ["--season", "10000"],
            "series.season must be below the 70 steps of the longest series (1 is none), got 10000",
        ),
        (["--season", "70"], "series.season must be below the 70 steps of the longest series (1 is none), got 70"),
        (["--context", "71"], "series.context must be at most the 70 steps of the longest series, got 71"),
        (["--lags", "9,70"], "series.lags must be below the 70 steps of the longest series, got 70"),
        (["--windows", "99"], "series 'a' has 70 steps: --windows 99 of horizon 4 leave none to learn from"),
    ],
)
def test_settings_that_reach_further_than_the_data(
    flags: list[str], message: str, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = ["--out", str(tmp_path / "run")]
    assert complaint(capsys, ["forecast", str(data), *FLAGS, *folder, *flags]).startswith(
        f"{data}: {message.replace('series.', '--')}"
    )
    assert not (tmp_path / "run").exists()
    if flags[0] != "--windows":
        name = flags[0].removeprefix("--")
        words = ["train", "series", "--preset", "forecast", "--series.file", str(data), f"--series.{name}", flags[1]]
        assert message in complaint(capsys, [*words, "--series.horizon", "4", *folder])
        settings = {name: int(flags[1]) if flags[1].isdecimal() else flags[1]}
        with pytest.raises(ValueError, match=f"^series.{name} must be"):
            Forecaster(horizon=4, **settings).fit(data)


@pytest.mark.usefixtures("no_page")
def test_refusals_come_before_notices_and_name_flags_and_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Columns were found, which is a notice, and nothing but the fault is said."""
    days = pd.date_range("2024-01-01", periods=40).astype(str)
    file = tmp_path / "shop.csv"
    pd.DataFrame({"date": days, "sold": np.arange(40) % 7, "temp": np.arange(40) % 3}).to_csv(file, index=False)
    words = ["forecast", str(file), "--target-col", "sold", "--effort", "quick", "--out", str(tmp_path / "run")]
    line = complaint(capsys, [*words, "--horizon", "200"])
    assert line.startswith(f"{file}: no window to learn from: the longest series has 40 steps, a horizon of 200 needs")
    assert "add rows with sold left empty" in complaint(capsys, [*words, "--known", "temp"])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "liking.py").write_text("def high(paths):\n    return paths.sum(1)\n")
    for more, why in (([], "effort is quick"), (["--effort", "default"], "windows to learn from, 300 are needed")):
        line = complaint(capsys, [*words, *more, "--tilt", "liking:high"])
        assert line.startswith("scenarios tilt the network's law, and the network is left out (")
        assert f"{why}): add --laws network" in line
    unread = "--temperature, --tilt-steps do nothing here: read with --tilt; leave them out"
    assert unread in complaint(capsys, [*words, "--temperature", "3", "--tilt-steps", "5"])
    for horizon in ("-3", "0"):
        assert f"--horizon must lie in [1, 4096], got {horizon}" in complaint(capsys, [*words, "--horizon", horizon])
    assert main([*words, "--figures", "0", "--samples", "4", "--baselines", "none"]) == 0
    told = "temp is not used: only the network reads covariates of the past, and it is left out (effort is quick); name"
    assert told in capsys.readouterr().err
    assert main(["order", str(tmp_path / "run")]) == 2
    assert "holds a forecast, and orders are for runs of sequences" in capsys.readouterr().err


def test_lags_that_no_number_holds(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = complaint(capsys, ["forecast", str(data), "--lags", "9" * 30, "--out", str(tmp_path / "run")])
    assert line.startswith("--lags must be at most 10,000,000")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["birhts"], "DATA 'birhts' is unknown: choose from births, weather, glucose; did you mean 'births'?"),
        (["nowhere.csv"], "nowhere.csv: no such file; check the path"),
        (["DATA", "--windows", "99"], "--windows 99 of horizon 4 leave none to learn from; take --windows 16 or fewer"),
        (["DATA", "--lag", "90"], "no window holds a value and has 91 before it; take a shorter --lag or --horizon"),
        (["DATA", "--known", "promo"], "no column 'promo' among unique_id, ds, y; choose one with --known"),
        (["DATA", "--levels", "0.5", "0.1"], "levels must rise within (0, 1)"),
        (["DATA", "--levels", "0.25", "0.5"], "levels must hold 0.1, 0.5 and 0.9"),
        (["DATA", "--samples", "1"], "samples must lie in [2, 1e+06], got 1"),
        (["DATA", "--paths", "a.txt"], "a.txt: tables are written as .csv or .parquet, not as '.txt'"),
        (["DATA", "--holidays", "Germany"], "--holidays 'Germany' is unknown: write none, or a country's"),
        (["DATA", "--horizon", "-1"], "--horizon must lie in [1, 4096], got -1"),
        (["DATA", "--horizon", "90", "--windows", "0"], "no window to learn from"),
        (["DATA", "--file", "other.csv"], "name different data: give one of them"),
        (["DATA", "--resume"], "does not exist"),
        (["DATA", "--tilt", "nowhere:cost"], "no module 'nowhere' here or installed"),
        (["DATA", "--temperature", "0"], "temperature must lie in [1e-09, inf), got 0"),
    ],
)
def test_refusals_are_one_line(
    words: list[str], message: str, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [str(data) if word == "DATA" else word for word in words]
    assert main(["forecast", given[0], *FLAGS, "--out", str(tmp_path / "run"), *given[1:]]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert message in err
    assert not (tmp_path / "run").exists()
