"""Run folders of sgfn 0.1 are read, continued and brought to the present format, or refused in one line."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save_file
from small_runs import complaint, contents

from sgfn.cli.commands import main
from sgfn.config.files import read_json
from sgfn.runs import formats
from sgfn.runs.copies import checksum
from sgfn.runs.folder import Run
from sgfn.runs.formats import FORMAT, Migration, migrated

DATA = Path(__file__).parent / "data"
SHORT = ["--device", "cpu", "--json"]
AGAIN = {"table": ["--table.file", "table-0.1.csv"], "words": []}
"""What 0.1 kept no copy of must be named again."""


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folders of 0.1 and the table that one was trained on, by its full path as ever; the current folder."""
    shutil.copytree(DATA, tmp_path, dirs_exist_ok=True)
    file = tmp_path / "table-0.1" / "config.json"
    file.write_text(file.read_text().replace('"table-0.1.csv"', json.dumps(str(tmp_path / "table-0.1.csv"))))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def told(capsys: pytest.CaptureFixture[str], words: list[str]) -> dict[str, Any]:
    capsys.readouterr()
    assert main([*words, *SHORT]) == 0
    return json.loads(capsys.readouterr().out)


def evaluated(capsys: pytest.CaptureFixture[str], run: str, *words: str) -> dict[str, Any]:
    return told(capsys, ["evaluate", run, "--samples", "16", *words])


@pytest.mark.parametrize("task", ["words", "table"])
def test_a_run_of_0_1_is_what_it_was(task: str, workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, known = f"{task}-0.1", read_json(workplace / f"{task}-0.1.json")
    before = contents(workplace / run)
    found = evaluated(capsys, run, *AGAIN[task])
    assert {name: found[name] for name in known} == pytest.approx(known, abs=1e-5)
    assert told(capsys, ["sample", run, "-n", "5", *AGAIN[task]])["samples"] == 5
    assert main(["report", run]) == 0
    after = contents(workplace / run)
    assert {name: after[name] for name in before} == before  # who reads it does not rewrite it
    checkpoint = Run(path=Path(run)).checkpoint
    save_file({name: v * (-1 if v.is_floating_point() else 1) for name, v in load_file(checkpoint).items()}, checkpoint)
    assert evaluated(capsys, run, *AGAIN[task])["kl"] != pytest.approx(known["kl"], abs=1e-5)  # the weights count


@pytest.mark.parametrize("task", ["words", "table"])
def test_a_run_of_0_1_goes_on_and_is_brought_up_to_date(
    task: str, workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Run(path=workplace / f"{task}-0.1")
    first = run.rows()
    told(capsys, ["train", task, "--resume", "--steps", "30", "--out", str(run.path), *AGAIN[task]])
    manifest = run.manifest()
    assert (manifest.format, manifest.config.steps) == (FORMAT, 30)
    assert run.rows()[: len(first)] == first
    assert run.rows()[-1]["step"] == 30
    if task == "table":
        table = workplace / "table-0.1.csv"
        assert (run.path / "data" / table.name).read_bytes() == table.read_bytes()
        assert manifest.files["table.file"].sha256 == checksum(table)
        table.unlink()  # not needed any more
    assert evaluated(capsys, str(run.path))["step"] == 30


def test_a_table_that_0_1_did_not_copy_must_be_there_as_it_was(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, fix = workplace / "table-0.1.csv", "put the old file back, or begin again with another --out"
    text = table.read_text()
    line = complaint(capsys, ["evaluate", "table-0.1"])
    assert line.startswith(f"table-0.1 has no copy of a file that it names (table.file '{table}'): name it again with")
    table.write_text(text.replace("0.5", "0.6"))
    line = complaint(capsys, ["evaluate", "table-0.1", *AGAIN["table"]])
    assert line == f"--table.file {table} has changed since table-0.1 was begun: {fix}"
    table.unlink()
    line = complaint(capsys, ["evaluate", "table-0.1", *AGAIN["table"]])
    why = "table-0.1 is of sgfn 0.1, which kept no copy"
    assert line == f"--table.file {table} is missing, and {why}: {fix}"
    table.write_text(text)
    evaluated(capsys, "table-0.1", "--trust")


def rewrite(folder: Path, **changes: Any) -> None:
    """Change fields of the configuration in config.json."""
    file = folder / "config.json"
    data = read_json(file)
    data["config"] |= changes
    file.write_text(json.dumps(data))


def test_fields_are_carried_over_by_the_table(
    workplace: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = workplace / "words-0.1"
    config = read_json(folder / "config.json")["config"]
    rewrite(folder, learners=1, noise={"rate": 0.25} | {k: v for k, v in config["noise"].items() if k != "alpha"})
    line = complaint(capsys, ["evaluate", "words-0.1"])
    assert line.startswith("words-0.1/config.json of sgfn 0.1 cannot be read (config")
    assert line.endswith("): use sgfn 0.1, or begin again with another --out")
    table = Migration(version="0.1", renamed={"noise.rate": "noise.alpha"}, dropped={"learners": 1})
    monkeypatch.setitem(formats.MIGRATIONS, 1, table)
    assert evaluated(capsys, "words-0.1")["kl"] == pytest.approx(
        read_json(workplace / "words-0.1.json")["kl"], abs=1e-5
    )
    rewrite(folder, learners=2)
    line = complaint(capsys, ["evaluate", "words-0.1"])
    assert "(config.learners is no more, and 2 is not what is done without it (1)): use sgfn 0.1, or" in line


def test_what_a_migration_does_to_a_configuration() -> None:
    table = Migration(version="0.1", renamed={"a.b": "c.d", "e": "f"}, dropped={"g.h": 0}, added={"i.j": 5})
    old = {"a": {"b": 1, "k": 2}, "g": {"h": 0}, "l": 3}
    assert migrated(old, table) == {"a": {"k": 2}, "c": {"d": 1}, "g": {}, "l": 3, "i": {"j": 5}}
    assert old["a"] == {"b": 1, "k": 2}  # untouched
    with pytest.raises(ValueError, match=r"^config\.g\.h is no more, and 1 is not"):
        migrated(old | {"g": {"h": 1}}, table)
    assert migrated([1], table) == [1]


def test_a_checkpoint_of_0_1_that_does_not_fit(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = Run(path=Path("words-0.1"))
    save_file({name: v for name, v in load_file(run.checkpoint).items() if name != "self.generator"}, run.checkpoint)
    before = contents(run.path)
    line = complaint(capsys, ["train", "words", "--resume", "--out", "words-0.1", "--device", "cpu"])
    assert line.endswith("it was written by sgfn 0.1: go on with that, or train the run again with --overwrite")
    assert contents(run.path) == before


def test_the_copy_of_a_forecast_of_0_1_is_found(tmp_path: Path) -> None:
    """It lay beside config.json, by the ending of the original."""
    data = {"files": {"series.file": "ab"}, "config": {"series": {"file": "x/sales.tsv.gz"}}}
    assert formats.files_of_format_1(data, tmp_path)["series.file"] == {"sha256": "ab", "copy": None}
    (tmp_path / "data.tsv.gz").write_bytes(b"")
    assert formats.files_of_format_1(data, tmp_path)["series.file"] == {"sha256": "ab", "copy": "data.tsv.gz"}
    early = {"config": data["config"]}
    assert formats.files_of_format_1(early, tmp_path)["series.file"] == {"sha256": None, "copy": "data.tsv.gz"}


def test_every_earlier_format_has_its_line() -> None:
    assert list(formats.MIGRATIONS) == list(range(1, FORMAT))
