"""A walk from a table of measurements and constraints to a plate of orders, and what is refused on the way."""

import csv
import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from small_runs import ANYWHERE, complaint

from sgfn.cli.commands import Train, main, parse
from sgfn.cli.parsing import UsageError, read_parent
from sgfn.design.search import SearchConfig, deserved_reach
from sgfn.envs import Constraints
from sgfn.landscapes.measurements import ALPHABETS
from sgfn.landscapes.proxies.files import read_proxy
from sgfn.landscapes.proxies.honesty import ToldLaw

PROTEIN = ALPHABETS["protein"]
RULES = ["--forbid", "AC,GGN", "--gc", "0.2:0.8", "--max-run=2"]


def score(text: str) -> float:
    return 0.1 + text.count("T") / len(text)


@pytest.fixture(scope="module")
def measured_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("measured")
    texts = ["".join(letters) for letters in itertools.product("ACGT", repeat=5)][::5]
    rows = "".join(f"{text},{score(text)}\n" for text in texts)
    (folder / "table.csv").write_text(f"sequence,score\n{rows}")
    words = ["train", "table", "--table.file", str(folder / "table.csv"), "--out", str(folder / "run"), "--json"]
    assert main([*words, *RULES, "--noise.alpha", "0.2", *ANYWHERE, "--log.exact-every", "0"]) == 0
    return folder / "run"


@pytest.fixture(scope="module")
def peptide_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a table of peptides of 8 to 12 letters, low scores good, mapped to 0..1."""
    folder, generator = tmp_path_factory.mktemp("peptides"), np.random.default_rng(0)
    texts = sorted({"".join(generator.choice(list(PROTEIN), generator.integers(8, 13))) for _ in range(60)})
    rows = "".join(f"{text},{50 - 5 * (text.count('K') + text.count('L'))}\n" for text in texts)
    (folder / "table.csv").write_text(f"sequence,score\n{rows}")
    words = ["train", "table", "--table.file", str(folder / "table.csv"), "--table.alphabet", "protein", "--json"]
    words += ["--table.scale", "minmax", "--table.minimise", "--proxy.kind", "ridge", "--out", str(folder / "run")]
    assert main([*words, "--noise.alpha", "0", *ANYWHERE, "--log.exact-every", "0"]) == 0
    return folder / "run"


@pytest.fixture
def _small_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few samples to begin with and a tenth of the search."""
    monkeypatch.setattr("sgfn.design.ordering.STARTS", 32)
    monkeypatch.setattr("sgfn.design.ordering.SearchConfig", lambda **cost: SearchConfig(**{**cost, "scored": 800}))


def ordered(run: Path, tmp_path: Path, *words: str) -> list[dict[str, str]]:
    file = tmp_path / "plate.csv"
    assert main(["order", str(run), "-n", "12", "--device", "cpu", "--overwrite", "--out", str(file), *words]) == 0
    return read(file)


@pytest.mark.usefixtures("_small_search")
def test_orders_of_a_table_are_near_it_and_in_its_units(
    peptide_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    proxy = read_proxy(peptide_run / "data" / "proxy.safetensors")
    deserved = deserved_reach(12, proxy.report.spearman, varies=True)
    rows = ordered(peptide_run, tmp_path)
    assert all(1 <= int(row["distance"]) <= deserved for row in rows)
    assert f"within the {deserved} that a rank correlation of {proxy.report.spearman:.2f} deserves (--reach)" in (
        capsys.readouterr().out
    )
    low = min(float(row["score"]) for row in read(peptide_run.parent / "table.csv"))
    high = max(float(row["score"]) for row in read(peptide_run.parent / "table.csv"))
    found = proxy.predict([row["order"] for row in rows])  # 0..1, the highest best
    mean, sd = ToldLaw.of(proxy)(found.mean.clip(min=0), found.sd)
    np.testing.assert_allclose([float(row["score"]) for row in rows], high - (high - low) * mean, rtol=1e-4)
    np.testing.assert_allclose([float(row["score_sd"]) for row in rows], (high - low) * sd, rtol=1e-4)
    expected = [float(row["expected"]) for row in rows]
    assert expected == sorted(expected)  # low ones are good
    free = ordered(peptide_run, tmp_path, "--reach", "0")
    assert max(int(row["distance"]) for row in free) > deserved
    assert f"take expected scores for guesses, or give --reach {deserved}" in capsys.readouterr().out


@pytest.mark.usefixtures("_small_search")
def test_orders_keep_constraints_that_are_given(peptide_run: Path, tmp_path: Path) -> None:
    orders = [row["order"] for row in ordered(peptide_run, tmp_path, "--charge", "2:3", "--forbid", "LL")]
    charges = [sum(a in "KR" for a in order) - sum(a in "DE" for a in order) for order in orders]
    assert {*charges} <= {2, 3}
    assert not any("LL" in order for order in orders)


@pytest.mark.usefixtures("_small_search")
def test_a_reach_needs_something_measured(
    words_run: Path, peptide_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "nothing was in this run" in complaint(capsys, ["order", str(words_run), "--reach", "2", "--device", "cpu"])
    line = complaint(capsys, ["order", str(peptide_run), "--reach", "-1", "--device", "cpu"])
    assert "reach must lie in [0" in line


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_plate_of_new_and_different_orders(
    measured_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["order", str(measured_run), "-n", "7", "--distance", "2", "--device", "cpu"]
    files = ["--out", str(tmp_path / "plate.csv"), "--fasta", str(tmp_path / "plate.fasta"), "--plate", "384"]
    assert main([*words, *files]) == 0
    shown = capsys.readouterr().out
    made = Constraints(forbid=("AC", "GGN"), gc=(0.2, 0.8), max_run=2).compile("ACGT", 5, 5)
    assert f"from all {made.size:,.0f} orders that satisfy --forbid AC,GGN, --gc 0.2:0.8, --max-run 2" in shown
    noise = "under uniform slip 0.2"
    assert f"expected scores {noise} are exact means of what a proxy predicts, whose uncertainty is sd" in shown
    rows = read(tmp_path / "plate.csv")
    orders = [row["order"] for row in rows]
    measured = {row["sequence"] for row in read(measured_run.parent / "table.csv")}
    assert len(orders) == 7
    assert all(made.accepts(order) for order in orders)
    assert not {*orders} & measured
    assert all(int(row["distance"]) >= 1 for row in rows)
    assert all(sum(a != b for a, b in zip(*pair, strict=True)) >= 2 for pair in itertools.combinations(orders, 2))
    assert [row["well"] for row in rows] == [f"A{i}" for i in range(1, 8)]
    values = [float(row["expected"]) for row in rows]
    assert values == sorted(values, reverse=True)
    assert all(0 < float(row["violates"]) < 1 and float(row["intact"]) == pytest.approx(0.85**5) for row in rows)
    assert (tmp_path / "plate.fasta").read_text().splitlines()[1::2] == orders
    assert main([*words, *files]) == 2  # nothing is replaced unasked
    assert "--overwrite" in capsys.readouterr().err


def test_the_uncertainty_of_logarithms_is_told_as_a_factor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = ["".join(letters) for letters in itertools.product("ACGT", repeat=4)][::4]
    rows = "".join(
        f"{text},{10.0 ** (text.count('T') - text.count('A') + 0.3 * (i % 3)):g}\n" for i, text in enumerate(texts)
    )
    (tmp_path / "table.csv").write_text(f"sequence,score\n{rows}")
    words = ["train", "table", "--table.file", str(tmp_path / "table.csv"), "--table.transform", "log", "--json"]
    words += ["--table.scale", "minmax", "--proxy.kind", "ridge", "--out", str(tmp_path / "run")]
    assert main([*words, "--noise.alpha", "0", *ANYWHERE, "--log.exact-every", "0"]) == 0
    capsys.readouterr()
    plate = ordered(tmp_path / "run", tmp_path)
    shown = capsys.readouterr().out
    assert "x or /" in shown
    assert "whose uncertainty is a factor (x or /)" in shown
    told = {
        line.split()[0]: float(line.split()[2])
        for line in shown.splitlines()
        if line.split()[:1] and line.split()[0] in texts_of(plate)
    }
    assert len(told) == 10
    for row in plate[:10]:
        factor = np.exp(np.arcsinh(float(row["sd"]) / float(row["expected"])))
        assert told[row["order"]] == pytest.approx(factor, rel=0.06)
        assert factor > 1


def texts_of(rows: list[dict[str, str]]) -> list[str]:
    return [row["order"] for row in rows]


def test_repeated_orders_and_json(measured_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["order", str(measured_run), "-n", "2000", "--device", "cpu", "--json", "--out", str(tmp_path / "a.csv")]
    assert main(words) == 0
    new = json.loads(capsys.readouterr().out)
    assert main([*words, "--repeat", "--overwrite"]) == 0
    both = json.loads(capsys.readouterr().out)
    assert new["listed"]
    assert new["noise"] == "uniform slip 0.2"
    assert new["exact"]
    assert new["predicted"]
    assert all(row["sd"] > 0 and row["score_sd"] > 0 for row in new["orders"])
    assert all((row["score_sd"] == 0) == (row["distance"] == 0) for row in both["orders"])
    assert {row["order"] for row in new["orders"]} < {row["order"] for row in both["orders"]}
    assert not any(row["distance"] == 0 for row in new["orders"])
    assert any(row["distance"] == 0 for row in both["orders"])
    assert list(new["orders"][0])[:3] == ["order", "plate", "well"]
    assert new["orders"][100]["plate"] == 2


def test_evaluate_lists_new_orders_as_order_does(
    measured_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", str(measured_run), "--samples", "64", "--device", "cpu", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    measured = {row["sequence"] for row in read(measured_run.parent / "table.csv")}
    assert len(result["orders"]) == 10
    assert not {order["order"] for order in result["orders"]} & measured
    assert all(order["error"] == 0 < order["violates"] for order in result["orders"])
    words = ["order", str(measured_run), "-n", "200", "--device", "cpu", "--json", "--out", str(tmp_path / "b.csv")]
    assert main(words) == 0
    expected = {row["order"]: row["expected"] for row in json.loads(capsys.readouterr().out)["orders"]}
    for order in result["orders"]:
        assert order["expected"] == pytest.approx(expected[order["order"]], rel=1e-5)


def test_a_search_where_not_all_can_be_listed(
    words_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sgfn.design.ordering.MOST_LISTED", 10)
    monkeypatch.setattr("sgfn.design.ordering.MOST_DRAWN", 10)
    monkeypatch.setattr("sgfn.design.ordering.SHORTLIST", 16)
    assert main(["order", str(words_run), "-n", "5", "--out", str(tmp_path / "a.csv"), "--samples", "32"]) == 0
    assert "orders that a local search met" in capsys.readouterr().out
    found = read(tmp_path / "a.csv")
    assert len(found) == 5
    assert max(float(row["score"]) for row in found) == 1.0  # one of the three hidden words


def test_a_grid_has_nothing_to_order(grid_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["order", str(grid_run), "--device", "cpu"]) == 2
    assert "letter by letter" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ["tfbind8", "--forbid", "GATA", "--pattern", "NNGATANN"],
            "--forbid GATA and --pattern NNGATANN are in conflict",
        ),
        (["tfbind8", "--gc", "0.6"], "gc must be LOW:HIGH"),
        (["tfbind8", "--max-mutations", "3"], "--parent and --max-mutations are given together"),
        (["tfbind8", "--parent", "no/such.txt", "--max-mutations", "3"], "--parent no/such.txt: no such file"),
        (["grid", "--max-run", "3"], "--constraints.max-run does nothing here"),
        (["tfbind8", "--method", "mh", "--max-run", "3"], "keeps no constraints"),
        (["bits", "--gc", "0.4:0.6"], "--gc counts the letters G and C"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(
    words: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", *words, "--steps", "2", "--out", str(tmp_path / "run")]) == 2
    error = capsys.readouterr().err
    assert told in error
    assert error.count("\n") == 1


def test_the_parent_is_read_from_its_file(tmp_path: Path) -> None:
    file = tmp_path / "parent.fasta"
    file.write_text(">a parent\nACGT\nACGT\n")
    assert read_parent(str(file)) == "ACGTACGT"
    found = parse(Train, "train", ["tfbind8", "--parent", str(file), "--max-mutations", "1"]).config.constraints
    assert (found.parent, found.max_mutations) == ("ACGTACGT", 1)
    for text in ("ACGT\nACGT\n", ">a\nAC\n>b\nGT\n", "\n", "AC GT"):
        file.write_text(text)
        with pytest.raises(UsageError, match="one sequence of letters"):
            read_parent(str(file))


def test_a_noise_that_the_run_was_not_trained_with_is_refused(
    measured_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = complaint(capsys, ["order", str(measured_run), "--noise.file", "channel.csv", "--device", "cpu"])
    fix = "--noise.file names again what a run was made with, and changes nothing in it; leave it out"
    assert line == f"{measured_run} names no noise.file, not 'channel.csv': {fix}"


def test_the_folder_of_a_round_is_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("design.json", "orders.csv"):
        (tmp_path / name).write_text("{}")
    told = f"{tmp_path} holds a round of design, not a run: its plate is in {tmp_path / 'orders.csv'}; the next plate"
    for words in (["order"], ["evaluate"], ["sample"]):
        assert f"{told} is made by `sgfn design propose {tmp_path} --measured new.csv`" in complaint(
            capsys, [*words, str(tmp_path)]
        )
