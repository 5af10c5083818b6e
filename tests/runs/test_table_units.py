"""Scores of tables are told in the tables' own units, whatever is maximised inside."""

import csv
import itertools
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_runs import ANYWHERE

import sgfn
from sgfn.cli.commands import main
from sgfn.cli.report import evaluated
from sgfn.cli.tables import print_result
from sgfn.envs import laws
from sgfn.evaluation.measure import reference
from sgfn.landscapes.tasks import make_task
from sgfn.reports.pages.entries import Entry, grouped
from sgfn.reports.sources import read_source

TEXTS = ["".join(letters) for letters in itertools.product("ACGT", repeat=4)]
UNITS = {
    "fluorescence": (lambda text: 3000.25 + 1500 * text.count("G") - 10 * text.count("A"), []),
    "ic50, log": (
        lambda text: round(12.5 * 4.0 ** text.count("G") + text.count("A"), 2),
        ["--table.minimise", "--table.transform", "log"],
    ),
}


@pytest.fixture(scope="module", params=list(UNITS))
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a table of half of all sequences, in its own units."""
    score, flags = UNITS[request.param]
    folder = tmp_path_factory.mktemp("units")
    rows = "".join(f"{text},{score(text)}\n" for text in TEXTS[::2])
    (folder / "table.csv").write_text(f"sequence,score\n{rows}")
    words = ["train", "table", "--table.file", str(folder / "table.csv"), "--table.scale", "minmax", *flags, "--json"]
    assert main([*words, "--proxy.kind", "ridge", "--noise.alpha", "0.1", "--out", str(folder / "run"), *ANYWHERE]) == 0
    assert main(["evaluate", str(folder / "run"), "--samples", "256", "--device", "cpu", "--json"]) == 0
    return folder / "run"


def table_of(run: Path) -> dict[str, float]:
    with (run.parent / "table.csv").open() as file:
        return {row["sequence"]: float(row["score"]) for row in csv.DictReader(file)}


def results(run: Path) -> dict[str, Any]:
    return json.loads((run / "exact.json").read_text())


def test_samples_have_the_scores_of_the_table(run: Path, tmp_path: Path) -> None:
    table = table_of(run)
    sgfn.sample(run, 300, tmp_path / "s.csv", device="cpu")
    with (tmp_path / "s.csv").open() as file:
        rows = list(csv.DictReader(file))
    known = [row for row in rows if row["origin"] == "measured"]
    assert len(known) > 50
    assert all(float(row["score"]) == pytest.approx(table[row["sequence"]], rel=1e-5) for row in known)
    low, high = min(table.values()), max(table.values())
    assert all(float(row["score"]) >= 0.5 * low for row in rows)
    drawn = sgfn.load(run, device="cpu").sample(50, seed=1)
    frame = drawn.to_frame()
    assert list(frame) == list(rows[0])
    measured = frame[frame.origin == "measured"]
    np.testing.assert_allclose(measured.score, [table[text] for text in measured.sequence], rtol=1e-6)
    assert high > 1000


def test_evaluate_tells_the_units_of_the_table(run: Path) -> None:
    found, table = results(run), table_of(run)
    low, high = min(table.values()), max(table.values())
    names = ("expected_reward", "target_expected_reward", "floor_expected_reward", "sample_mean", "top100_mean")
    assert all(low <= found[name] <= 1.05 * high for name in names)
    law = sgfn.load(run, device="cpu").law()
    assert found["target_expected_reward"] == pytest.approx(float((law.target * law.score).sum()), rel=1e-6)
    assert found["expected_reward"] == pytest.approx(float((law.probability * law.score).sum()), rel=1e-6)
    known = law[law.sequence.isin(table)]
    np.testing.assert_allclose(known.score, [table[text] for text in known.sequence], rtol=1e-6)
    better = np.less_equal if found["minimise"] else np.greater_equal
    designs = [score for _, score in found["designs"]]
    assert better(designs[:-1], designs[1:]).all()  # best first
    assert better(found["top100_mean"], found["sample_mean"])
    assert found["top100_mean"] == pytest.approx(np.mean(designs))
    edges = found["histogram"]["edges"]
    assert low * 0.5 <= edges[0] < edges[-1] <= 2 * high
    expected = [order["expected"] for order in found["orders"]]
    assert all(low <= one <= high for one in expected)


def test_distances_are_those_of_the_rewards(run: Path) -> None:
    """Units change no law: the target is that of what is maximised."""
    task = sgfn.Run(path=run).task()
    known = reference(task)
    log_reward = task.log_target(laws.check_size(task.env).all_objects()).double()
    torch.testing.assert_close(known.target, torch.softmax(task.beta * log_reward, 0))


def test_levels_are_in_units_of_the_table(run: Path) -> None:
    level = sorted(table_of(run).values(), reverse=not results(run)["minimise"])[20]
    found = sgfn.load(run, device="cpu").evaluate(samples=256, mode_level=level, mode_distance=0)
    sign = "<=" if found["minimise"] else ">="
    assert found["modes_greedy_rule"] == f"score {sign} {level:g}, hamming distance > 0"
    scores = [score for _, score in found["modes"]]
    assert 0 < found["modes_greedy"] < found["unique"]
    assert all(score <= level * 1.0001 if found["minimise"] else score >= level * 0.9999 for score in scores)


def test_the_table_and_the_page_of_a_run(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = results(run)
    print_result(found)
    shown = capsys.readouterr().out
    assert f"{found['expected_reward']:.4f}" in shown
    assert ("low ones are good" in shown) == found["minimise"]
    source = read_source(run)
    assert source.proxy is not None
    table = table_of(run)
    np.testing.assert_allclose(source.proxy.measured, [table[text] for text in source.proxy.sequences], rtol=1e-6)
    (group,) = grouped([Entry(label="run", source=source, noise="", seed=0)])
    scores = [one.score for one in group.lines[0].pooled("designs", 20)]
    assert scores == sorted(scores, reverse=not found["minimise"])


def test_a_report_evaluates_again_what_was_told_scaled(run: Path, tmp_path: Path) -> None:
    old = tmp_path / "run"
    shutil.copytree(run, old)
    assert evaluated(old, trust=False)
    found = {name: value for name, value in results(old).items() if name != "minimise"}
    (old / "exact.json").write_text(json.dumps(found))
    assert not evaluated(old, trust=False)


def test_facts_of_a_task_are_in_units_of_its_table(run: Path) -> None:
    config, table = sgfn.Run(path=run).own_config(), table_of(run)
    facts = sgfn.describe("table", config.with_(table__unseen="nearest"))
    best = min(table.values()) if facts.minimise else max(table.values())
    assert facts.maximum == pytest.approx(best)
    assert facts.mean is not None
    assert facts.top100_mean is not None
    assert (facts.top100_mean < facts.mean) == facts.minimise


def test_an_aim_is_in_units_of_the_table(run: Path) -> None:
    config, table = sgfn.Run(path=run).own_config(), table_of(run)
    best = min(table.values()) if config.table.minimise else max(table.values())
    landscape = make_task("table", config).landscape
    assert landscape.score_transform.value(best) == pytest.approx(1.0)
    assert landscape.score_transform.score(1.0) == pytest.approx(best)
