"""The picture: it is one, it shows what the files say, and it needs no more than the files."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

import sgfn
from sgfn.report import report
from small_runs import complaint, contents

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def picture(path: Path) -> np.ndarray:
    """Pixels of a file that must be a PNG with something drawn in each of its panels."""
    assert path.read_bytes().startswith(SIGNATURE)
    pixels = imread(path)[..., :3]
    for panel in np.array_split(pixels, 3, axis=1):
        assert panel.std() > 0.01
        assert (panel == 1.0).all(-1).mean() > 0.5  # on white
    return pixels


def test_one_run(grid_run: Path) -> None:
    sgfn.evaluate(grid_run, samples=50, device="cpu")
    path = report([grid_run])
    assert path == grid_run / "report.png"
    pixels = picture(path)
    again = picture(report([grid_run], grid_run / "again.png"))
    assert np.array_equal(pixels, again)


def test_several_runs_in_one_figure(grid_run: Path, words_run: Path, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "all.png"
    for runs, rows in (([words_run], 1), ([grid_run, words_run], 2)):
        height, width, _ = picture(report(runs, out)).shape
        assert round(height / width * 13.5 / 3.9) == rows
    assert not (grid_run / "report.png").exists()


def test_without_exact_figures_the_panels_say_so(grid_run: Path) -> None:
    bare = picture(report([grid_run]))
    sgfn.evaluate(grid_run, samples=50, device="cpu")
    full = picture(report([grid_run]))
    assert bare.shape == full.shape
    left, middle, right = (
        np.abs(a - b).mean()
        for a, b in zip(np.array_split(bare, 3, axis=1), np.array_split(full, 3, axis=1), strict=True)
    )
    assert min(middle, right) > 1e-3  # scores, and the lines of floor, blind and uniform
    assert left < min(middle, right)  # the loss is the same


def test_a_run_without_exact_evaluations(grid_run: Path) -> None:
    sgfn.evaluate(grid_run, samples=50, device="cpu", max_states=1)
    with_tv = picture(report([grid_run]))
    metrics = grid_run / "metrics.jsonl"
    rows = [json.loads(line) for line in metrics.read_text().splitlines()]
    metrics.write_text("".join(json.dumps({k: v for k, v in row.items() if k != "tv"}) + "\n" for row in rows))
    assert not np.array_equal(picture(report([grid_run])), with_tv)


def test_the_picture_follows_the_metrics(grid_run: Path) -> None:
    before = picture(report([grid_run]))
    metrics = grid_run / "metrics.jsonl"
    rows = [json.loads(line) for line in metrics.read_text().splitlines()]
    rows[1]["loss"] *= 10
    metrics.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert not np.array_equal(picture(report([grid_run])), before)


@pytest.mark.parametrize("content", [None, "", '{"step": 5, "lo'])
def test_a_run_without_metrics_is_refused_and_the_old_picture_stays(grid_run: Path, content: str | None) -> None:
    report([grid_run])
    if content is None:
        (grid_run / "metrics.jsonl").unlink()
    else:
        (grid_run / "metrics.jsonl").write_text(content)
    before = contents(grid_run)
    with pytest.raises(ValueError, match="has no metrics yet: train it first"):
        report([grid_run])
    assert contents(grid_run) == before


def test_nothing_to_draw() -> None:
    with pytest.raises(ValueError, match="name at least one run folder"):
        report([])


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("metrics.jsonl", '{"step": 1}\nnonsense\n{"step": 3}\n', "metrics.jsonl, line 2: not valid JSON"),
        ("exact.json", "{", "exact.json, line 1: not valid JSON"),
        ("config.json", "[]", "config.json was not written by sgfn"),
    ],
)
def test_broken_files_are_named(
    file: str, content: str, message: str, grid_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sgfn.evaluate(grid_run, samples=10, device="cpu")
    (grid_run / file).write_text(content)
    before = contents(grid_run)
    assert message in complaint(capsys, ["report", str(grid_run)])
    assert contents(grid_run) == before


def test_the_command_evaluates_what_is_missing_or_out_of_date(
    grid_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sgfn import cli

    seen: list[Path] = []
    evaluate = sgfn.evaluate
    monkeypatch.setattr(sgfn, "evaluate", lambda path: seen.append(path) or evaluate(path, samples=10))
    monkeypatch.setattr("sgfn.report.report", lambda runs, _: runs[0] / "report.png")  # drawn in other tests
    other = Path(shutil.copytree(grid_run, tmp_path / "other"))
    assert cli.main(["report", str(grid_run), str(other)]) == 0
    assert seen == [grid_run, other]
    assert cli.main(["report", str(grid_run), str(other)]) == 0
    assert seen == [grid_run, other]  # nothing is new
    exact = json.loads((other / "exact.json").read_text())
    (other / "exact.json").write_text(json.dumps(exact | {"step": 10}))  # as if the run had been resumed since
    assert cli.main(["report", str(grid_run), str(other)]) == 0
    assert seen == [grid_run, other, other]
    assert json.loads((other / "exact.json").read_text()) == exact
