"""What a round says of itself, printed and on its page: like is set beside like, and the best come first."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PathCollection

from sgfn.cli import main
from sgfn.config import NoiseConfig
from sgfn.config.tasks import ConstraintsConfig
from sgfn.design.designer import Designer
from sgfn.design.search import SearchConfig
from sgfn.design.sessions import begin
from sgfn.reports.design_figures import LEVELS, coverage, interval, plate_figure, predicted_figure
from sgfn.reports.pages.design import plate_table


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Inhibitory concentrations: low ones are good, all lie above zero."""
    generator = np.random.default_rng(0)
    texts = sorted({"".join(generator.choice(list("ACGT"), 6)) for _ in range(70)})
    scores = [40 * 0.6 ** (text.count("GA") + 0.5 * text.count("T")) for text in texts]
    file = tmp_path_factory.mktemp("words") / "mic.csv"
    pd.DataFrame({"sequence": texts, "score": scores}).to_csv(file, index=False)
    return file


@pytest.fixture(autouse=True)
def _without_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages take seconds; `test_designer` writes two."""
    monkeypatch.setattr("sgfn.reports.pages.design.write_design_page", lambda path, *_: path.write_text("a page"))


def printed(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["design", "propose", *words]) == 0
    return capsys.readouterr().out


def test_a_round_says_like_with_like(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--proxy", "ridge", "--minimise", "--transform", "log", "--noise.alpha", "0.1", "--orders", "14"]
    said = printed([str(table), *flags, "--out", str(tmp_path / "1")], capsys)
    orders = pd.read_csv(tmp_path / "1/orders.csv").set_index("order")
    shown = [word for word in said.split() if word in orders.index]
    assert shown == orders.sort_values("expected", kind="stable").index[:10].tolist()  # low ones are good
    assert "the 10 of 14 orders with the best expected scores" in said
    assert "x or /" in said  # a deviation of a logarithm is a factor
    assert "+-" not in said
    found = re.search(r"by the proxy: (\S+) now, (\S+) after this plate \(best measured (\S+), luck included\)", said)
    assert found is not None
    assert float(found[2]) <= float(found[1])
    assert f"--measured new.csv --out {tmp_path / '2'}" in said
    history = json.loads((tmp_path / "1/design.json").read_text())["history"][0]
    assert "orders chosen by ucb (mean plus 3 standard deviations), valued under uniform slip 0.1" in said
    assert history["noise"] == "uniform slip 0.1"
    assert "proxy ridge: rank correlation" in said
    assert (history["acquisition"], history["kappa"], history["proxy"]["asked"]) == ("ucb", 3.0, "ridge")
    assert history["outlook"]["mean"] == pytest.approx(orders.expected.mean(), rel=1e-6)  # of scores, not of logarithms


def test_what_the_default_stands_for_is_said() -> None:
    """In a search `auto` is another acquisition, and a pool is named by its kinds."""
    generator = np.random.default_rng(1)
    texts = sorted({"".join(generator.choice(list("ACGT"), generator.integers(13, 18))) for _ in range(30)})
    frame = pd.DataFrame({"sequence": texts, "score": [text.count("G") + generator.normal() for text in texts]})
    designer = Designer("dna", search=SearchConfig(scored=500)).fit(frame)
    designer.proxy = designer._fit("pool", *designer._training())
    plate = designer.propose(3)
    assert (
        plate.chosen
        == "tempered (draws of the proxy's members, from its mean in the first well to draws in full in the last)"
    )
    assert set(plate.to_json()["proxy"]["kinds"]) <= {"ridge", "gp", "convolution"}
    assert plate.proxy_told == f"pool (of {', '.join(plate.proxy['kinds'])}; by --proxy design)"


def test_the_next_round_has_as_many_orders(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed([str(table), "--proxy", "ridge", "--orders", "7", "--out", str(tmp_path / "1")], capsys)
    printed([str(tmp_path / "1"), "--out", str(tmp_path / "2")], capsys)
    printed([str(tmp_path / "2"), "--orders", "3", "--out", str(tmp_path / "3")], capsys)
    assert [len(pd.read_csv(tmp_path / name / "orders.csv")) for name in "123"] == [7, 7, 3]


@pytest.mark.parametrize(
    ("settings", "advised"),
    [({"minimise": True}, True), ({}, False), ({"minimise": True, "transform": "none"}, False)],
)
def test_logarithms_are_taken_where_low_positive_scores_are_good(table: Path, settings: dict, advised: bool) -> None:
    session = begin(table, settings, NoiseConfig(alpha=0.0), ConstraintsConfig())
    assert any("logarithms are designed for" in notice for notice in session.notices) == advised
    assert session.designer.config.transform == ("log" if advised else "none")


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_best_wells_are_darkest_and_numbers_fit(sign: float) -> None:
    values = np.array([-1.234e-5, 0.5, 1234.5, 98765.4, 1.2345e8, -12345.6])
    figure = plate_figure(pd.DataFrame({"expected": values}), sign)
    axes = figure.axes[0]
    full = [part for part in axes.collections if isinstance(part, PathCollection)][-1]
    darkness = -np.asarray(full.get_facecolor())[:, :3].sum(1)
    best, worst = np.argmax(sign * values), np.argmin(sign * values)
    assert darkness[best] == darkness.max() > darkness[worst] == darkness.min()
    FigureCanvasAgg(figure).draw()
    disc = np.sqrt(full.get_sizes()[0]) * figure.dpi / 72
    assert max(text.get_window_extent().width for text in axes.texts) <= disc


def test_intervals_of_logarithms_are_those_of_logarithms() -> None:
    """Scores over five decades, normal in logarithms with the deviation that was predicted."""
    generator = np.random.default_rng(0)
    middle, sd = generator.uniform(-6, 6, 4000), 1.5
    scores = np.exp(middle + sd * generator.normal(size=4000))
    told = pd.DataFrame({"predicted": np.exp(middle), "predicted_sd": np.exp(middle) * np.sinh(sd), "score": scores})
    assert np.abs(coverage(told, log=True) - LEVELS).max() < 0.03
    assert np.abs(coverage(told) - LEVELS).max() > 0.1  # as normal in the scores themselves
    below, above = interval(told, log=True)
    inside = (told.score > told.predicted - below) & (told.score < told.predicted + above)
    assert abs(inside.mean() - 0.8) < 0.03
    drawn = predicted_figure(told.head(50).assign(round=1), log=True).axes[0]
    assert (drawn.get_xscale(), drawn.get_yscale()) == ("log", "log")
    orders = pd.DataFrame({"well": ["A1"], "order": ["ACGT"], "expected": [2.0], "sd": [2 * np.sinh(np.log(3.0))]})
    assert plate_table(orders, log=True).rows == [["A1", "ACGT", "2", "3"]]
    assert plate_table(orders).rows == [["A1", "ACGT", "2", "2.67"]]
