"""A disk that takes no more: every verb that writes leaves what was there, and says so in one line."""

import resource
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import stub_workers
from forecast_runs import FLAGS as FORECAST
from forecast_runs import write_csv
from small_runs import FLAGS, complaint, contents

import sgfn
from sgfn.cli.commands import main


@contextmanager
def files_no_larger_than(size: int) -> Iterator[None]:
    """The system refuses to write more: what a full disk or a quota does, for real."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def leftovers(folder: Path) -> list[str]:
    """Hidden files and folders, but for locks."""
    return [path.name for path in folder.rglob(".*") if path.name != ".lock"]


RUNS: dict[str, tuple[list[str], int, str]] = {
    "evaluate": (["evaluate", "RUN", "--samples", "50"], 300, "exact.json"),
    "sample csv": (["sample", "RUN", "-n", "2000", "--overwrite", "--out", "RUN/samples.csv"], 5000, "samples.csv"),
    "sample gz": (["sample", "RUN", "-n", "9000", "--overwrite", "--out", "RUN/s.csv.gz"], 5000, "s.csv.gz"),
    "sample parquet": (["sample", "RUN", "-n", "9000", "--overwrite", "--out", "RUN/s.parquet"], 5000, "s.parquet"),
    "report png": (["report", "RUN"], 5000, "report.png"),
    "report pdf": (["report", "RUN", "--overwrite", "--out", "RUN/r.pdf"], 5000, "r.pdf"),
    "report svg": (["report", "RUN", "--overwrite", "--out", "RUN/r.svg"], 5000, "r.svg"),
    "report html": (["report", "RUN", "--overwrite", "--out", "RUN/r.html"], 5000, "r.html"),
    "resume, config": (["train", "grid", "--resume", "--steps", "30", "--out", "RUN", "--json"], 300, "config.json"),
    "overwrite, config": (
        ["train", "grid", *FLAGS, "--seed", "1", "--overwrite", "--out", "RUN", "--json"],
        300,
        "config.json",
    ),
    "overwrite, checkpoint": (
        ["train", "grid", *FLAGS, "--seed", "1", "--overwrite", "--out", "RUN", "--json"],
        6000,
        "checkpoint/state.safetensors",
    ),
}


@pytest.mark.parametrize("name", RUNS)
def test_verbs_of_runs(name: str, words_run: Path, grid_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words, size, file = RUNS[name]
    run = words_run if name.startswith("sample") else grid_run
    words = [word.replace("RUN", str(run)) for word in words]
    sgfn.evaluate(run, samples=5, device="cpu")
    for old in ("samples.csv", "s.csv.gz", "s.parquet", "r.pdf", "r.svg", "r.html", "report.png"):
        (run / old).write_bytes(b"old")
    before = contents(run)
    with files_no_larger_than(size):
        line = complaint(capsys, words)
    assert line.startswith(f"{run / file}: ")
    assert "File too large" in line
    assert contents(run) == before
    assert leftovers(run) == []
    assert main(words) == 0
    assert (run / file).read_bytes() != before.get(file)


@pytest.fixture(scope="module")
def forecasted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("forecast")
    file = write_csv(folder / "sales.csv")
    assert main(["forecast", str(file), *FORECAST, "--figures", "1", "--out", str(folder / "run")]) == 0
    return folder


@pytest.mark.parametrize(("size", "what"), [(500, "backtest"), (5000, "fan-a.png"), (50_000, "report.html")])
def test_forecast(size: int, what: str, forecasted: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = Path(shutil.copytree(forecasted / "run", tmp_path / "run"))
    before = contents(run)
    with files_no_larger_than(size):
        line = complaint(
            capsys,
            ["forecast", "--resume", "--baselines", "seasonal-naive", "--figures", "1", "--json", "--out", str(run)],
        )
    assert line.startswith(f"{run}/")
    assert "File too large" in line
    assert contents(run) == before
    assert leftovers(run) == []


def test_paths_of_a_forecast(forecasted: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, paths = Path(shutil.copytree(forecasted / "run", tmp_path / "run")), tmp_path / "paths.csv"
    paths.write_text("old")
    before = contents(tmp_path)
    words = ["forecast", "--resume", "--baselines", "seasonal-naive", "--figures", "0", "--json", "--out", str(run)]
    with files_no_larger_than(200_000):
        assert main([*words, "--samples", "3000", "--paths", str(paths)]) == 2
    *notices, line = capsys.readouterr().err.splitlines()
    assert all("paths" in notice for notice in notices)  # how they were drawn
    assert line == f"sgfn: {paths}: File too large"
    assert contents(tmp_path) == before
    assert leftovers(tmp_path) == []


SAVES: dict[str, Callable[[Path], None]] = {
    "model": lambda folder: sgfn.load(folder).save(folder, overwrite=True),
    "forecaster": lambda folder: sgfn.Forecaster.load(folder).save(folder, overwrite=True),
}


@pytest.mark.parametrize("kind", SAVES)
def test_saved_models(kind: str, grid_run: Path, forecasted: Path, tmp_path: Path) -> None:
    run = grid_run if kind == "model" else Path(shutil.copytree(forecasted / "run", tmp_path / "run"))
    before = contents(run)
    for size in (300, 3000):
        with files_no_larger_than(size), pytest.raises(OSError, match="File too large"):
            SAVES[kind](run)
        assert contents(run) == before
        assert leftovers(run) == []


def test_compare(stub: Path) -> None:
    stub_workers.run(stub, ["tb"], seeds=1)
    before = contents(stub)
    with files_no_larger_than(150), pytest.raises(OSError, match="File too large") as caught:
        stub_workers.run(stub, ["tb"], seeds=2)
    assert caught.value.filename == str(stub / "compare.json")
    assert contents(stub) == before
    assert leftovers(stub) == []
    assert len(stub_workers.run(stub, ["tb"], seeds=2).rows) == 2
