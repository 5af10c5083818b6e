"""exact.json as it may be found: what pages and comparisons cannot use is named, the rest is read."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from small_runs import complaint, contents

import sgfn
from sgfn.cli.commands import main
from sgfn.reports.pages import report_html
from sgfn.runs.folder import Run
from sgfn.runs.results import read_results


@pytest.fixture(scope="module")
def evaluated(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = shutil.copytree(trained / "words", tmp_path_factory.mktemp("evaluated") / "words")
    return dict(sgfn.evaluate(folder, samples=20, device="cpu"))


def put(folder: Path, text: str) -> Path:
    (folder / "exact.json").write_text(text)
    return folder


WRONG = {
    "[1]": "an object is expected, got list",
    "null": "an object is expected, got NoneType",
    '{"step": "20", "samples": 5}': "step must be a whole number from 0 on, got '20'",
    '{"step": null, "samples": 5}': "step must be a whole number from 0 on, got 'None'",
    '{"step": NaN, "samples": 5}': "step must be a whole number from 0 on, got 'nan'",
    '{"step": -3, "samples": 5}': "step must be a whole number from 0 on, got '-3'",
    '{"step": 1e999, "samples": 5}': "step must be a whole number from 0 on, got 'inf'",
    '{"step": ' + "9" * 99 + ', "samples": 5}': "step must be a whole number from 0 on, got '999",
    '{"samples": 5}': "step must be a whole number from 0 on, got 'None'",
    '{"step": 20, "samples": "many"}': "samples must be a whole number from 1 on, got 'many'",
    '{"step": 20, "samples": 5, "tv": "small"}': "tv must be a number or null, got str",
    '{"step": 20, "samples": 5, "histogram": [1]}': "histogram must be edges in rising order",
    '{"step": 20, "samples": 5, "histogram": {"edges": [0, 1], "law": [1, 1]}}': "histogram must be edges",
    '{"step": 20, "samples": 5, "histogram": {"edges": [1, 0], "law": [1]}}': "histogram must be edges",
    '{"step": 20, "samples": 5, "designs": [["A"]]}': "designs must be a list of texts with their scores",
    '{"step": 20, "samples": 5, "modes": [[1, 2]]}': "modes must be a list of texts with their scores",
    '{"step": 20, "samples": 5, "orders": [{"order": "A"}]}': "orders must be a list of orders with expected",
    '{"step": 20, "samples": 5, "alphabet": 4}': "alphabet must be a text",
    '{"step": 20, "samples": 5, "extra": {}}': "extra must be a number or null, got dict",
}


@pytest.mark.parametrize("text", WRONG, ids=lambda text: text[:60])
def test_what_is_wrong_is_named(text: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"exact\.json: ") as caught:
        read_results(put(tmp_path, text))
    assert str(caught.value).startswith(f"{tmp_path}/exact.json: {WRONG[text]}")
    assert str(caught.value).endswith("; remove it and evaluate the run again")


def test_what_evaluate_writes_is_read(evaluated: dict[str, Any], tmp_path: Path) -> None:
    text = json.dumps(evaluated, allow_nan=False)
    assert read_results(put(tmp_path, text)) == evaluated
    assert read_results(put(tmp_path, text.replace(f'"tv": {evaluated["tv"]}', '"tv": NaN')))["tv"] is None
    assert read_results(tmp_path / "nowhere") == {}


def test_a_report_names_it_and_writes_nothing(grid_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(grid_run, '{"step": null}')
    before = contents(grid_run)
    assert complaint(capsys, ["report", str(grid_run)]).startswith(f"{grid_run}/exact.json: step must be")
    assert contents(grid_run) == before


JUNK = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=3), st.lists, max_leaves=3
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=8)
@given(name=st.integers(0, 10**6), junk=JUNK)
def test_whatever_a_field_holds_there_is_a_page_or_one_line(
    name: int, junk: Any, words_run: Path, evaluated: dict[str, Any]
) -> None:
    field = sorted(evaluated)[name % len(evaluated)]
    put(words_run, json.dumps(evaluated | {field: junk}))
    try:
        read_results(words_run)
    except ValueError:
        return
    assert report_html([words_run]).stat().st_size > 1000


def test_weights_that_are_too_large_give_no_figures(grid_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Finite, but what comes out of them is not: there is no JSON for it."""
    file = Run(path=grid_run).checkpoint
    save_file({n: v * (1e30 if n.startswith("nets") and v.ndim == 2 else 1) for n, v in load_file(file).items()}, file)
    before = contents(grid_run)
    line = complaint(capsys, ["evaluate", str(grid_run), "--device", "cpu"])
    assert "their weights are too large" in line
    assert contents(grid_run) == before


# Formats of reports


@pytest.mark.parametrize(
    ("name", "start"), [("r.pdf", b"%PDF-"), ("R.PNG", b"\x89PNG"), ("r.svg", b"<?xml"), ("r.html", b"<!doctype html>")]
)
def test_a_report_has_the_format_of_its_name(name: str, start: bytes, grid_run: Path, tmp_path: Path) -> None:
    assert main(["report", str(grid_run), "--out", str(tmp_path / name)]) == 0
    assert (tmp_path / name).read_bytes()[: len(start)].lower() == start.lower()


@pytest.mark.parametrize("name", ["r.jpg", "r", "r.pdf.txt", "r.csv"])
def test_other_formats_are_refused_before_anything_is_done(
    name: str, grid_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(tmp_path)
    line = complaint(capsys, ["report", str(grid_run), "--out", str(tmp_path / name)])
    assert line.startswith(f"{tmp_path / name}: reports are written as .png, .pdf, .svg, .html or .htm, not as ")
    assert contents(tmp_path) == before  # not even evaluated


@pytest.mark.parametrize(
    ("histogram", "right"),
    [
        ({}, True),
        ({"edges": [0.0, 0.5, 1.0], "target": [0.5, 0.5], "samples": [1.0, 0.0]}, True),
        ({"edges": [0.0, 0.5, 0.5], "target": [0.5, 0.5]}, False),
        ({"edges": [0.0, 1.0], "target": [-1.0]}, False),
        ({"edges": [0.0, 10**400], "target": [1.0]}, False),
        ({"edges": [0.0, 1.0], "others": [1.0]}, False),
        ({"edges": [1.0], "target": []}, False),
        ({"edges": [], "target": [1.0]}, False),
    ],
)
def test_a_histogram_can_be_drawn(histogram: dict[str, list[float]], right: bool, tmp_path: Path) -> None:
    (tmp_path / "exact.json").write_text(json.dumps({"step": 1, "samples": 1, "histogram": histogram, "tv": 10**400}))
    if right:
        assert read_results(tmp_path) == {"step": 1, "samples": 1, "histogram": histogram, "tv": None}
    else:
        with pytest.raises(ValueError, match="histogram must be edges in rising order"):
            read_results(tmp_path)
