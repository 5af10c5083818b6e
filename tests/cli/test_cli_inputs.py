"""Files of other people on the command line: whatever they hold, the answer is a result or one line."""

import os
import subprocess
from pathlib import Path

import pytest
from small_runs import FLAGS, complaint

from sgfn.cli.commands import main

BRACKETS = "[" * 100_000


@pytest.mark.parametrize("file", ["config.json", "metrics.jsonl"])
def test_a_hundred_thousand_brackets(grid_run: Path, file: str, capsys: pytest.CaptureFixture[str]) -> None:
    (grid_run / file).write_text(f"{BRACKETS}\n" + '{"step": 1}\n')
    for words in (["report", str(grid_run)], ["train", "grid", "--resume", "--out", str(grid_run)]):
        assert complaint(capsys, words).startswith(f"{grid_run / file}")


def test_brackets_where_a_file_can_be_made_again(grid_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (grid_run / "exact.json").write_text(BRACKETS)
    assert complaint(capsys, ["report", str(grid_run)]).startswith(f"{grid_run / 'exact.json'}: not valid JSON")
    assert main(["evaluate", str(grid_run)]) == 0
    assert main(["report", str(grid_run)]) == 0


@pytest.mark.parametrize("flag", ["--noise.file", "--offline.file"])
def test_a_link_to_itself(tmp_path: Path, flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    (loop := tmp_path / "loop.csv").symlink_to(loop)
    kind = ["--noise.kind", "confusion"] if flag == "--noise.file" else ["--offline.share", "0.5"]
    for verb in ("train", "compare"):
        words = [verb, "words", *FLAGS[:-2], *kind, flag, str(loop), "--out", str(tmp_path / "out")]
        if verb == "compare":
            words = [*words, "--methods", "tb"]
        assert "cannot be read (Too many levels of symbolic links)" in complaint(capsys, words)
    assert not (tmp_path / "out").exists()


def test_files_of_no_size_that_can_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A hole of a terabyte takes no room on disk, and no time here."""
    with (tmp_path / "hole.csv").open("wb") as file:
        os.truncate(file.fileno(), 2**40)
    for verb in ("tasks", "train", "compare"):
        words = [verb, "table", "--table.file", str(tmp_path / "hole.csv")]
        words += [] if verb == "tasks" else ["--out", str(tmp_path / "out")]
        assert complaint(capsys, words).endswith(
            "hole.csv: has more than 1 GiB; keep only the columns and rows you need"
        )
    assert complaint(capsys, ["forecast", str(tmp_path / "hole.csv"), "--out", str(tmp_path / "out")]).startswith(
        f"{tmp_path / 'hole.csv'}: has more than 1 GiB"
    )


def test_printed_commands_can_be_run_as_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder's name may hold anything; what is printed leads to the same folder."""
    names = ["a b", "$(touch x)", "it's", "; echo", "-x", "a\nb"]
    for name in names:
        folder = tmp_path / name
        assert main(["train", "grid", *FLAGS, "--out", str(folder)]) == 0
        line = capsys.readouterr().out.rstrip("\n").rpartition("next: ")[2]
        told = subprocess.run(["bash", "-c", f"printf '%s\\0' {line}"], capture_output=True, check=True, cwd=tmp_path)
        assert told.stdout.decode().split("\0")[:-1] == ["sgfn", "evaluate", str(folder)]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)


def test_results_are_written_to_files_alone(grid_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A link to itself is there, though it leads nowhere."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (loop := tmp_path / "loop.csv").symlink_to(loop)
    kinds = {
        tmp_path / "pipe": "a pipe or a device",
        tmp_path / "folder": "a folder",
        Path("/dev/null"): "a pipe or a ",
    }
    for verb in ("sample", "report"):
        for path, what in kinds.items():
            for more in ([], ["--overwrite"]):
                line = complaint(capsys, [verb, str(grid_run), "--out", str(path), *more])
                assert line.startswith(f"{path} is {what}")
        assert complaint(capsys, [verb, str(grid_run), "--out", str(loop)]).startswith(
            f"{loop} exists: add --overwrite"
        )
    assert main(["sample", str(grid_run), "--out", str(loop), "--overwrite"]) == 0
    assert loop.is_file()
    assert not loop.is_symlink()
