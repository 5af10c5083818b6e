"""Files, forecasts and comparisons by somebody else: nothing outside their folder is opened, no code of theirs runs."""

import json
import shutil
from pathlib import Path

import pytest
from forecast_runs import small_config, write_csv
from small_runs import complaint, small
from strange_runs import CODE, CPU, FILES, SECRET, Payload, save_library, with_file, words_of

import sgfn
from sgfn.cli.commands import main
from sgfn.compare.comparison import PLAN
from sgfn.compare.worker_process import outcome
from sgfn.config import to_dict
from sgfn.config.files import read_json
from sgfn.runs import trust as trusting
from sgfn.series.forecaster import Forecaster

WAYS = ("no record", "no copy", "format 1", "absolute", "above", "link", "linked folder")


@pytest.mark.parametrize(
    ("field", "how"), [("table.file", how) for how in WAYS] + [(f, "no record") for f in FILES][1:]
)
def test_no_file_outside_the_folder_is_opened(
    field: str, how: str, strange_run: Path, secret: Path, opened: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    copies = {"absolute": str(secret), "above": f"../../{secret.parent.name}/{secret.name}", "link": "data/t.csv"}
    copies["linked folder"] = f"data/{secret.name}"
    if how == "link":
        (strange_run / "data").mkdir()
        (strange_run / "data" / "t.csv").symlink_to(secret)
    if how == "linked folder":
        (strange_run / "data").symlink_to(secret.parent)
    with_file(strange_run, field, secret, copies.get(how), how)
    told = {"absolute": "is not inside the folder", "above": "is not inside the folder"}
    told |= {"link": "is a link that leads out of", "linked folder": "is a link that leads out of"}
    for verb in ("evaluate", "sample", "report", "train"):
        line = complaint(capsys, words_of(verb, strange_run))
        assert "nobody's business" not in line
        if field != "series.file" or verb in ("sample", "train"):  # a forecast is not evaluated
            assert told.get(how, f"has no copy of a file that it names ({field} '{secret}'): name it again") in line
    with pytest.raises(
        ValueError, match="forecast" if field == "series.file" else told.get(how, "has no copy of a file")
    ):
        sgfn.load(strange_run)
    assert str(secret) not in opened


@pytest.mark.parametrize("name", ["config.json", "metrics.jsonl", "exact.json", "library.json", "checkpoint", ".lock"])
def test_links_out_of_the_folder_are_not_followed(
    name: str, strange_run: Path, secret: Path, opened: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    train, place = words_of("train", strange_run), strange_run / name
    shutil.rmtree(place, ignore_errors=True)
    place.unlink(missing_ok=True)
    place.symlink_to(secret.parent if name == "checkpoint" else secret)
    replacing = [word.replace("--resume", "--overwrite") for word in train]
    for words in (train, replacing, *(words_of(verb, strange_run) for verb in ("evaluate", "sample", "report"))):
        line = complaint(capsys, words)
        assert "is a link that leads out of" in line
        assert "nobody's business" not in line
    with pytest.raises(ValueError, match="is a link that leads out of"):
        sgfn.load(strange_run)
    assert str(secret) not in opened
    assert secret.read_text() == SECRET


def test_a_link_may_be_trusted(strange_run: Path, tmp_path: Path) -> None:
    """Somebody may keep checkpoints on another disk."""
    (strange_run / "checkpoint").rename(tmp_path / "elsewhere")
    (strange_run / "checkpoint").symlink_to(tmp_path / "elsewhere")
    assert main(["evaluate", str(strange_run), *CPU]) == 2
    for words in (["evaluate", "--samples", "16", *CPU], ["report"], ["sample", "-n", "4", *CPU]):
        assert main([words[0], str(strange_run), *words[1:], "--trust"]) == 0
    assert main(["train", "grid", "--resume", "--trust", "--out", str(strange_run), *CPU]) == 0
    linked = tmp_path / "link"
    linked.symlink_to(strange_run)
    (strange_run / "checkpoint").unlink()
    (tmp_path / "elsewhere").rename(strange_run / "checkpoint")
    assert main(["evaluate", str(linked), "--samples", "16", *CPU]) == 0  # the folder itself was named


def test_a_file_named_again_is_read(
    strange_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a run of sgfn 0.1, which kept no copies."""
    monkeypatch.chdir(tmp_path)
    rates = tmp_path / "rates.csv"
    rates.write_text("alpha\n" + "0.1\n" * 5)
    with_file(strange_run, "noise.file", rates, None, "no copy")
    words = ["evaluate", str(strange_run), "--samples", "16", *CPU]
    assert f"name it again with --noise.file {rates}, or add --trust" in complaint(capsys, words)
    assert "has noise.file" in complaint(capsys, [*words, "--noise.file", "other.csv"])
    assert main([*words, "--noise.file", "rates.csv"]) == 0
    train = words_of("train", strange_run)
    assert "name it again with --noise.file" in complaint(capsys, train)
    assert main([*train, "--noise.file", "rates.csv"]) == 0


# Forecasts


@pytest.fixture(scope="module")
def forecast_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("forecast")
    sgfn.train("series", small_config(write_csv(folder / "sales.csv")), folder / "run", device="cpu")
    return folder / "run"


def test_a_forecast_imports_nothing(
    payload: Payload, forecast_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Path(shutil.copytree(forecast_run, tmp_path / "run"))
    resume = ["forecast", "--resume", "--windows", "0", "--baselines", "seasonal-naive", "--out", str(run), *CPU]
    for field in ("objective", "noise.kind", "method"):
        CODE[field](run, payload.name)
        for words in (resume, ["sample", str(run), "-n", "2", "--out", "paths.csv", *CPU]):
            assert "names code that would be run" in complaint(capsys, words)
        with pytest.raises(ValueError, match="names code that would be run"):
            Forecaster.load(run)
    assert not payload.ran
    assert main([*resume, "--trust"]) == 2  # it is no learner
    assert payload.ran


def test_a_forecast_reads_its_own_copy(
    forecast_run: Path, tmp_path: Path, secret: Path, opened: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    run = Path(shutil.copytree(forecast_run, tmp_path / "run"))
    resume = [
        "forecast",
        "--resume",
        "--windows",
        "0",
        "--baselines",
        "seasonal-naive",
        "--figures",
        "0",
        "--out",
        str(run),
        *CPU,
    ]
    assert main(["sample", str(run), "-n", "2", "--out", str(tmp_path / "p.csv"), *CPU]) == 0
    with_file(run, "series.file", secret, None, "no copy")
    line = complaint(capsys, resume)
    assert f"has no copy of a file that it names (--file '{secret}'): name it again with --file {secret}" in line
    assert str(secret) not in opened


# Comparisons


def test_a_comparison_imports_no_method_that_was_not_asked_for(
    payload: Payload, stub: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = small(steps=20)
    how = {"seeds": 1, "samples": 8, "device": "cpu"}
    sgfn.compare("grid", config, stub, methods=["tb"], **how)
    plan = read_json(stub / PLAN)
    for method in (payload.name, f"published-{payload.name}", "../../elsewhere:f"):
        (stub / PLAN).write_text(json.dumps(plan | {"cells": [*plan["cells"], [method, 0.25, 0]]}))
        with pytest.raises(
            ValueError, match=f"names code that would be run .methods '{method}'.: name it again with --m"
        ):
            sgfn.compare("grid", config, stub, methods=["tb"], **how)
        assert not payload.ran
    (stub / PLAN).write_text(json.dumps(plan | {"cells": [*plan["cells"], [payload.name, 0.25, 0]]}))
    sgfn.compare("grid", config, stub, methods=["tb"], **how, trust=True)
    assert payload.ran
    sgfn.compare("grid", config, stub, methods=["tb", payload.name], **how)
    assert payload.ran
    sgfn.compare("grid", config, stub, methods=["tb"], **how)  # this process asked for it


def test_a_worker_trusts_what_its_job_names(payload: Payload, tmp_path: Path) -> None:
    """Its parent was told so, also where the cell goes on; a part that only the cell's folder names is refused."""
    config, cell = small(objective=payload.name), tmp_path / "cell"
    sgfn.train("grid", config, cell, device="cpu")
    trusting.CREATED.clear()
    job = {"task": "grid", "config": to_dict(config), "path": str(cell), "samples": 16, "copies": {}}
    job |= {"device": "cpu", "accelerate": "auto"}
    assert outcome(job) == 0
    assert payload.ran
    save_library(cell, reward={"name": "os:system", "label": ""})
    assert "was saved by model.save" in str(outcome(job))
    assert not payload.ran


def test_a_comparison_follows_no_links(stub: Path, secret: Path, opened: list[str]) -> None:
    config, how = small(steps=20), {"seeds": 1, "samples": 8, "device": "cpu", "methods": ["tb"]}
    sgfn.compare("grid", config, stub, **how)
    cell = stub / "tb" / "alpha0.25" / "seed0"
    for name in ("metrics.jsonl", "exact.json", "error.txt", "seconds.json"):
        kept = (cell / name).read_bytes() if (cell / name).is_file() else None
        (cell / name).unlink(missing_ok=True)
        (cell / name).symlink_to(secret)
        found = sgfn.compare("grid", config, stub, **how)
        assert "is a link that leads out of" in found.rows[0]["error"]
        (cell / name).unlink()
        (cell / "error.txt").unlink(missing_ok=True)
        if kept is not None:
            (cell / name).write_bytes(kept)
    cell.rename(secret.parent / "cell")
    cell.symlink_to(secret.parent / "cell")
    with pytest.raises(ValueError, match="is a link that leads out of"):
        sgfn.compare("grid", config, stub, **how)
    assert str(secret) not in opened
