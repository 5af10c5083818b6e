"""Lines of metrics: what is wrong is named with its line, a cut one is forgiven at the end, very many are thinned."""

import json
import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_runs import complaint, contents

import sgfn
from sgfn.cli.commands import main
from sgfn.runs import metrics
from sgfn.runs.metrics import FEW, last_row, newest, read_rows, rewind, row_of, thinned_rows

READERS: list[Callable[[Path], Any]] = [read_rows, thinned_rows, lambda file: rewind(file, 9)]
WRONG = {
    '{"step": "3"}': 'the step must be a whole number from 0 on, got "3"',
    '{"step": null}': "the step must be a whole number from 0 on, got null",
    '{"step": 1.5}': "the step must be a whole number from 0 on, got 1.5",
    '{"step": NaN}': "the step must be a whole number from 0 on, got NaN",
    '{"step": true}': "the step must be a whole number from 0 on, got true",
    '{"step": -1}': "the step must be a whole number from 0 on, got -1",
    '{"step": [1]}': "the step must be a whole number from 0 on, got [1]",
    '{"step": ' + "9" * 400 + "}": "the step must be a whole number from 0 on, got 999",
    '{"step": ' + "9" * 5000 + "}": "not valid JSON with a step",
    '{"step": 2, "loss": "low"}': '"loss" must be a finite number, got "low"',
    '{"step": 2, "loss": null}': '"loss" must be a finite number, got null',
    '{"step": 2, "loss": NaN}': '"loss" must be a finite number, got NaN',
    '{"step": 2, "loss": -Infinity}': '"loss" must be a finite number, got -Infinity',
    '{"step": 2, "loss": ' + "9" * 400 + "}": '"loss" must be a finite number, got 999',
    '{"step": 2, "loss": {"a": 1}}': '"loss" must be a finite number, got {"a": 1}',
    '{"loss": 2}': "not valid JSON with a step",
    '"step"': "not valid JSON with a step",
    "[1]": "not valid JSON with a step",
    "null": "not valid JSON with a step",
    "": "not valid JSON with a step",
    "[" * 100_000: "not valid JSON with a step",
    "{" + "[" * 100_000 + "}": "not valid JSON with a step",
}


def write(file: Path, *lines: str) -> Path:
    file.write_text("".join(f"{line}\n" for line in lines))
    return file


@pytest.mark.parametrize("wrong", WRONG, ids=lambda text: text[:30])
def test_what_is_no_row_is_named_with_its_line(wrong: str, tmp_path: Path) -> None:
    file = write(tmp_path / "m.jsonl", '{"step": 1, "loss": 0.5}', wrong, '{"step": 3, "loss": 0.5}')
    before = file.read_bytes()
    for read in READERS:
        with pytest.raises(ValueError, match=r"m\.jsonl, line 2: ") as caught:
            read(file)
        assert f"{file}, line 2: {WRONG[wrong]}" in str(caught.value)
        assert len(str(caught.value)) < 200 + len(str(file))
    assert file.read_bytes() == before
    assert last_row(file) == {"step": 3, "loss": 0.5}
    with pytest.raises(ValueError, match=r"m\.jsonl, last line: "):
        last_row(write(file, '{"step": 1}', wrong))


@pytest.mark.parametrize("tail", ['{"step": 25, "lo', '{"step": "x"}', "{", "\x00\x00\x00", '"', "25", "[" * 100_000])
def test_a_last_line_without_an_end_is_forgiven(tail: str, tmp_path: Path) -> None:
    file = write(tmp_path / "m.jsonl", '{"step": 1}', '{"step": 2}')
    whole = file.read_bytes()
    file.write_bytes(whole + tail.encode())
    assert read_rows(file) == thinned_rows(file) == [{"step": 1}, {"step": 2}]
    assert last_row(file) == {"step": 2}
    rewind(file, 9)
    assert file.read_bytes() == whole
    file.write_bytes(whole[:-1])  # whole but for its end
    assert read_rows(file) == [{"step": 1}, {"step": 2}]
    assert last_row(file) == {"step": 2}
    rewind(file, 9)
    assert file.read_bytes() == whole


def test_no_file_and_no_line(tmp_path: Path) -> None:
    for file in (tmp_path / "nothing", write(tmp_path / "m.jsonl")):
        assert (read_rows(file), thinned_rows(file), last_row(file)) == ([], [], None)
        rewind(file, 3)
    assert not (tmp_path / "nothing").exists()


def test_lines_end_as_on_windows_too(tmp_path: Path) -> None:
    file = tmp_path / "m.jsonl"
    file.write_bytes(b'{"step": 1}\r\n{"step": 2}\r\n')
    assert read_rows(file) == thinned_rows(file) == [{"step": 1}, {"step": 2}]
    assert last_row(file) == {"step": 2}


def test_a_line_without_end_is_not_read_into_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "BLOCK", 100)
    monkeypatch.setattr(metrics, "LONGEST", 1000)
    file = write(tmp_path / "m.jsonl", '{"step": 1}', '{"step": 2, "loss": ' + " " * 5000 + "1}")
    for read in READERS:
        with pytest.raises(ValueError, match=r"m\.jsonl, line 2: longer than 1,000 bytes"):
            read(file)


LINES = [b'{"step": 1}\n', b'{"step": 22, "tv": 0.5}\n', b"x\n"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(st.sampled_from(LINES), max_size=9), block=st.integers(1, 60))
def test_blocks_do_not_matter(lines: list[bytes], block: int, tmp_path: Path) -> None:
    (tmp_path / "m.jsonl").write_bytes(b"".join(lines))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metrics, "BLOCK", block)
        assert [line + b"\n" for _, line in metrics.whole_lines(tmp_path / "m.jsonl")] == lines


# Thinning


def many(count: int, judged: int) -> list[str]:
    """Lines of so many steps, every so many of them with an exact evaluation."""
    rows = [{"step": step, "loss": step / 8} for step in range(1, count + 1)]
    rows = [row | ({"tv": 0.5} if row["step"] % judged == 0 else {}) for row in rows]
    return [json.dumps(row) for row in rows]


def test_few_lines_are_all_kept(tmp_path: Path) -> None:
    file = write(tmp_path / "m.jsonl", *many(2 * FEW, 7))
    assert thinned_rows(file) == read_rows(file)


@pytest.mark.parametrize("judged", [1, 3, 500, 10**9])
def test_many_lines_are_thinned_evenly(judged: int, tmp_path: Path) -> None:
    file = write(tmp_path / "m.jsonl", *many(50_001, judged))
    whole, thin = read_rows(file), thinned_rows(file)
    by_step = {row["step"]: row for row in whole}
    assert all(by_step[row["step"]] == row for row in thin)
    steps = [row["step"] for row in thin]
    assert steps == sorted(set(steps))
    assert (steps[0], steps[-1]) == (1, 50_001)
    assert len(thin) <= 4 * FEW + 2
    for has in (True, False):
        kind, kept = ([row["step"] for row in rows if ("tv" in row) == has] for rows in (whole, thin))
        assert len(kept) >= min(len(kind), FEW)
        if kind:
            assert (kept[0], kept[-1]) == (kind[0], kind[-1])
            gaps = {later - earlier for earlier, later in pairwise(kept[:-1])}
            assert max(gaps) <= 2 * max(1, min(gaps))


def test_rewinding_many_lines_keeps_their_bytes(tmp_path: Path) -> None:
    lines = many(5000, 7)
    file = write(tmp_path / "m.jsonl", *lines)
    rewind(file, 4321)
    assert file.read_text() == "".join(f"{line}\n" for line in lines[:4321])


def test_the_newest_figures(tmp_path: Path) -> None:
    lines = [b'{"step": 1, "loss": 4, "tv": 0.5}', b"cut", b'{"step": 2, "loss": 3}', b'{"step": "x"}']
    assert newest(lines) == {"step": 2, "loss": 3, "tv": 0.5}
    assert newest([]) == {}
    assert newest([*lines, b'{"step": 3, "tv": 0.25}']) == {"step": 3, "loss": 3, "tv": 0.25}


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.integers() | st.text(), st.lists, max_leaves=3))
def test_a_row_has_numbers_alone(value: Any) -> None:
    number = type(value) in (int, float) and -1e300 <= value <= 1e300
    for row, right in (({"step": 1, "loss": value}, number), ({"step": value}, number and type(value) is int)):
        line = json.dumps(row).encode()
        if right and (row["step"] or 0) >= 0 and row["step"] <= 2**53:
            assert row_of(line) == row
        else:
            with pytest.raises(ValueError, match=r"must be a (finite|whole) number"):
                row_of(line)


# In a folder


@pytest.mark.parametrize("step", ['"x"', "null", "NaN", "1e999", "[]"])
def test_verbs_name_a_wrong_step(step: str, grid_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sgfn.evaluate(grid_run, samples=5, device="cpu")
    file = grid_run / "metrics.jsonl"
    file.write_text(file.read_text().replace('"step": 20', f'"step": {step}'))
    before = contents(grid_run)
    for words in (["report", str(grid_run)], ["train", "grid", "--resume", "--device", "cpu", "--out", str(grid_run)]):
        line = complaint(capsys, words)
        assert line.startswith(f"{file}, ")
        assert "the step must be a whole number from 0 on, got" in line
        assert contents(grid_run) == before


@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_lines_are_written_to_a_file_of_ours_alone(
    kind: str, grid_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A pipe would never be read, and a link may lead to anybody's file."""
    file, mine = grid_run / "metrics.jsonl", tmp_path / "mine.txt"
    file.unlink()
    if kind == "pipe":
        os.mkfifo(file)
    else:
        mine.write_text("")
        file.symlink_to(mine)
    words = ["train", "grid", "--resume", "--device", "cpu", "--steps", "30", "--json"]
    words += ["--out", str(grid_run)]
    assert complaint(capsys, words).startswith(f"{file}")
    if kind == "link":
        assert mine.read_text() == ""
    file.unlink()
    assert main(words) == 0
