"""A run of a table keeps its proxy: reading it fits nothing again, and samples tell what was measured."""

import csv
from itertools import product
from pathlib import Path

import pytest

from sgfn.config import TrainConfig
from sgfn.landscapes import builders, tasks
from sgfn.reports.run_panels import run_panels
from sgfn.reports.sources import read_source
from sgfn.runs.folder import Run
from sgfn.runs.sampling import sample
from sgfn.runs.train import train

TEXTS = ["".join(letters) for letters in product("ACGT", repeat=3)]


def test_a_run_keeps_its_proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.csv"
    rows = "".join(f"{text},{1 + text.count('A') + 2 * text.count('C')}\n" for text in TEXTS[::2])
    file.write_text("sequence,score\n" + rows + f"{TEXTS[1]},NA\n")
    config = TrainConfig(steps=2, batch=4).with_(
        table__file=file, proxy__kind="ridge", net__hidden=8, log__every=1, log__exact_every=0
    )
    told: list[str] = []
    progress = lambda _, row: told.extend([row["notice"]] if "notice" in row else [])  # noqa: E731
    run = train("table", config, tmp_path / "run", device="cpu", progress=progress)
    assert f"{file}: 1 row without a score (the first on line 34): left out" in told
    assert (run.path / "data" / "proxy.safetensors").is_file()
    file.unlink()

    def refused(*args: object, **named: object) -> None:
        raise AssertionError("a run that is read fits nothing")

    monkeypatch.setattr(builders, "fit_proxy", refused)
    assert sample(run.path, 40, tmp_path / "s.csv", device="cpu") == 40
    with (tmp_path / "s.csv").open() as found:
        drawn = list(csv.DictReader(found))
    assert {row["origin"] for row in drawn} == {"measured", "predicted"}
    assert all((row["origin"] == "measured") == (row["sequence"] in TEXTS[::2]) for row in drawn)
    train("table", None, run.path, resume=True, device="cpu")  # as it was trained
    with pytest.raises(AssertionError, match=r"fits nothing"):
        tasks.make_task("table", Run(path=run.path).own_config().with_(proxy__file=None))  # and the test can fail
    source = read_source(run.path)
    report = source.proxy
    assert report is not None
    assert report.kind == "ridge"
    assert any("rank correlation" in panel.title for panel in run_panels(source))
    (run.path / "data" / "proxy.safetensors").write_bytes(b"damaged")
    with pytest.raises(ValueError, match=r"--proxy\.file .* has changed since"):
        Run(path=run.path).task()
