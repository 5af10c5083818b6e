"""Templates: whatever a user may have written comes out as text, on every page; they travel in the wheel."""

import re
import tomllib
import zipfile
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest
from forecast_tables import outcome, small_panel
from jinja2 import UndefinedError
from page_entries import Page, entry

import sgfn.reports.pages
from sgfn.reports.pages import Entry, write_page
from sgfn.reports.pages.forecast import write_forecast_page
from sgfn.reports.pages.rendering import environment, render
from sgfn.series.files import Scenarios

PACKAGE = Path(sgfn.reports.pages.__file__).parent
TEMPLATES = sorted(PACKAGE.joinpath("templates").iterdir())


def nasty(number: int) -> str:
    """A script that must not run, told apart by its number."""
    return f"<script>alert({number})</script>\"'&{{{{{number}}}}}"


def safe(text: str) -> Page:
    """A page that runs no script but its own, taken to pieces."""
    assert "<script>alert" not in text
    assert text.count("<script") == 1
    page = Page(text)
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
    return page


def test_a_page_of_runs_escapes_every_text(tmp_path: Path) -> None:
    title, note, label, noise, task, folder, error, design, mode, rule, order, letters = map(nasty, range(12))
    results = {
        "alphabet": letters,
        "designs": [[design, 0.5]],
        "modes": [[mode, 0.5]],
        "modes_greedy_rule": rule,
        "orders": [{"order": order, "expected": 0.5, "intact": 0.5, "score": 0.5}],
    }
    runs = [entry(label, path=tmp_path / folder.replace("/", "|"), task=task, noise=noise, **results)]
    failed = Entry(label="x", source=None, noise=noise, seed=1, error=error)
    page = safe(write_page(tmp_path / "page.html", title, [*runs, failed], note).read_text())
    shown = "".join(page.texts)
    assert all(text in shown for text in (title, note, label, noise, task, error, mode, rule, order))
    assert folder.replace("/", "|") in shown
    assert any("most frequent letters" in (text or "") for text in page.values("aria-label"))
    assert any(label in (text or "") for text in page.values("aria-label"))


def test_a_page_of_a_forecast_escapes_every_text(tmp_path: Path) -> None:
    title, lead, series, cost, method = map(nasty, range(5))
    found = outcome(small_panel((series,)))
    scores = found.scores["methods"]
    figures = {series: {"samples": 64.0, "ess": 0.5}}
    tilted = Scenarios(quantiles=found.forecast, figures=figures, cost=cost, temperature=1.0)
    named = found.backtest.assign(method=found.backtest["method"].replace({"naive": method}))
    whole = replace(
        found,
        backtest=named,
        scenarios=tilted,
        scores=found.scores | {"methods": {"sgfn": scores["sgfn"], method: scores["naive"]}},
    )
    page = safe(write_forecast_page(tmp_path / "page.html", title, lead, whole).read_text())
    shown = "".join(page.texts)
    assert all(text in shown for text in (title, lead, series, cost, method))
    assert f"{series}: 64 paths count as 32" in page.texts
    assert page.texts.count(method) == 2  # in the table, and in the legend of the calibration


def test_escaping_cannot_be_left_out() -> None:
    assert environment().autoescape is True
    assert environment().from_string("{{ text }}").render(text="<b>") == "&lt;b&gt;"
    for path in TEMPLATES:
        assert path.name.endswith(".html.j2")
        assert not re.search(r"\|\s*safe\b|autoescape|Markup", path.read_text()), path.name
    trusted = {path.name for path in PACKAGE.glob("*.py") if "Markup(" in path.read_text()}
    assert trusted == {"svg.py", "rendering.py"}  # what matplotlib and this package wrote


def test_a_name_that_no_page_knows_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="lead"):
        render("page.html.j2", title="x", note="", sections=[])
    assert "<h1>x</h1>" in render("page.html.j2", title="x", lead="", note="", sections=[])


def test_templates_style_and_script_are_data_of_the_package(tmp_path: Path) -> None:
    assert len(TEMPLATES) >= 10
    assert all(files("sgfn.reports.pages").joinpath("templates", path.name).is_file() for path in TEMPLATES)
    root = PACKAGE.parents[3]
    wheel = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel == {"packages": ["src/sgfn"]}  # hatchling ships every file of it that git does not ignore
    builder = pytest.importorskip("hatchling.builders.wheel", reason="the build backend is not installed")
    (built,) = builder.WheelBuilder(str(root)).build(directory=str(tmp_path), versions=["standard"])
    names = set(zipfile.ZipFile(built).namelist())
    wanted = {f"templates/{path.name}" for path in TEMPLATES} | {"page.css", "page.js"}
    assert {f"sgfn/reports/pages/{name}" for name in wanted} <= names
