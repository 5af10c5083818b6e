"""Tasks by name: what they are made of, what a wrong name gets, and each of them from training to samples."""

import csv
import json
import math
import random
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any, get_args

import pytest
import torch
from small_runs import ANYWHERE, complaint
from torch.testing import assert_close

import sgfn
from sgfn.cli.commands import main
from sgfn.config import TrainConfig
from sgfn.config import tasks as choices
from sgfn.config.tasks import CallableConfig
from sgfn.envs import GridEnv, SequenceEnv
from sgfn.evaluation.exact import target
from sgfn.evaluation.measure import reference_maxima
from sgfn.landscapes import bits, measured, motif, rna, tfbind8
from sgfn.landscapes.ehrlich import AMINO_ACIDS
from sgfn.landscapes.offline import known_objects, training_objects
from sgfn.landscapes.tasks import TASKS, make_task, task_names
from sgfn.runs.evaluate import evaluate

NEW = ["gb1", "mpsa", "motif", "bits", "ehrlich", "rna", "table", "callable", "series"]
SHIPPED = ["tfbind8", *[f"tfbind8-{n.lower()}" for n in tfbind8.EMBEDDED[1:]], "grid", "words"]
needs_vienna = pytest.mark.skipif(find_spec("RNA") is None, reason="ViennaRNA is not installed")


def share_of_a(texts: list[str]) -> list[float]:
    return [text.count("A") / max(1, len(text)) for text in texts]


def write(folder: Path, text: str, name: str = "a.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_names_are_the_builders_and_the_tables_at_hand(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert task_names() == [*SHIPPED, *NEW]
    assert {name.partition("-")[0] for name in task_names()} == set(TASKS)
    assert {name for name, entry in TASKS.items() if entry.variants} == {"tfbind8", "motif"}
    monkeypatch.setenv("SGFN_CACHE", str(tmp_path))
    for name in ("PAX7_REF_R1", "NO_SUCH_TABLE"):
        (tmp_path / f"{name}.bin").write_bytes(b"")
        (tmp_path / f"{name}.json").write_bytes(b"")
    assert task_names() == [*SHIPPED[:-2], "tfbind8-pax7_ref_r1", "grid", "words", *NEW]


@pytest.mark.parametrize("name", SHIPPED)
def test_tasks_take_noise_and_exponent_from_the_configuration(name: str) -> None:
    plain, changed = (
        make_task(name, TrainConfig().with_(noise__alpha=a, beta=b)) for a, b in ((0.1, None), (0.3, 7.0))
    )
    assert (plain.env.noise.alpha, changed.env.noise.alpha) == (0.1, 0.3)
    assert (plain.beta, changed.beta) == (3.0 if name.startswith("tfbind8") else 1.0, 7.0)
    assert plain.name == name
    assert plain.summary


def test_sizes() -> None:
    config = TrainConfig().with_(grid__ndim=3, grid__side=5)
    sizes = {name: make_task(name, config).env.num_objects for name in SHIPPED}
    assert sizes == dict.fromkeys(SHIPPED, 4**8) | {"grid": 5**3, "words": sum(4**n for n in range(1, 8))}
    assert make_task("grid", TrainConfig()).env.num_objects == 64
    grid, words = make_task("grid", config).env, make_task("words", config).env
    assert isinstance(grid, GridEnv)
    assert isinstance(words, SequenceEnv)
    assert (words.stop, words.min_length) == (True, 1)


def test_tables_differ_and_the_bare_name_is_six6() -> None:
    objects = torch.randint(4, (500, 8), generator=torch.Generator().manual_seed(0))
    scores = {name: make_task(name, TrainConfig()).landscape.scores(objects) for name in SHIPPED[:-2]}
    assert_close(make_task("tfbind8-six6_ref_r1", TrainConfig()).landscape.scores(objects), scores["tfbind8"])
    assert not torch.allclose(scores["tfbind8-crx_ref_r1"], scores["tfbind8"])


def test_log_reward_is_clipped_and_divided() -> None:
    config = TrainConfig().with_(reward__minimum=0.3, reward__norm=0.5, beta=4.0)
    task = make_task("words", config)
    assert isinstance(task.env, SequenceEnv)
    near, far = task.env.parse(["CAT", "GGGGGGG"])
    assert float(task.log_reward(near)) == pytest.approx(math.log(1.0 / 0.5))  # the exponent comes later
    assert float(task.log_reward(far)) == pytest.approx(math.log(0.3 / 0.5))
    assert float(task.landscape.scores(far)) < 0.3


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gird", "task 'gird' is unknown: .*did you mean 'grid'?"),
        ("grid-2", "task 'grid-2' is unknown: .*did you mean 'grid'?"),
        ("word", "task 'word' is unknown: .*did you mean 'words'?"),
        ("tfbind", "task 'tfbind' is unknown: .*did you mean 'tfbind8'?"),
        ("", "task '' is unknown: choose from tfbind8"),
        ("tfbind8-", "task 'tfbind8-' is unknown: .*did you mean 'tfbind8'?"),
        ("motif-", "task 'motif-' is unknown: .*did you mean 'motif'?"),
        ("tfbind8- ", "task 'tfbind8- ' is unknown: .*did you mean 'tfbind8'?"),
        ("tfbind8-six", "unknown TFBind8 table 'six'; nearest names: SIX"),
        ("motiv", "task 'motiv' is unknown: .*did you mean 'motif'?"),
        ("bits-4", "task 'bits-4' is unknown: .*did you mean 'bits'?"),
        ("motif-ctcff", "^unknown JASPAR factor or matrix 'ctcff'; nearest names: .*CTCF"),
        ("tfbind8-pax7_ref_r1", "PAX7_REF_R1 is not in .*; get it with `sgfn data fetch PAX7_REF_R1`"),
    ],
)
def test_an_unknown_name_suggests_the_nearest(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_task(name, TrainConfig())
    assert make_task("grid", TrainConfig()).name == "grid"


# The landscapes in their environments


def test_choices_of_the_configuration_are_those_of_the_landscapes() -> None:
    assert get_args(choices.MotifScore) == motif.SCORES
    assert set(get_args(choices.BitsDistance)) == set(bits.DISTANCES)
    assert set(get_args(choices.RnaMode)) == set(rna.ENERGIES)
    assert set(get_args(choices.TableUnseen)) == {*measured.UNSEEN, "auto"}


def test_facts_name_the_noise_they_hold_for() -> None:
    assert sgfn.describe("words", TrainConfig().with_(noise__alpha=0.1))["noise"] == "uniform slip 0.1"
    hidden = TrainConfig().with_(noise__kind="hidden", noise__alpha=0.3)
    assert sgfn.describe("words", hidden)["noise"].startswith("hidden slip rate, mean 0.3")


def test_sizes_that_no_machine_word_holds() -> None:
    """A length of 512 letters, whose counts have hundreds of digits, must not reach a tensor."""
    config = TrainConfig().with_(motif__length=512, ehrlich__length=512, ehrlich__vocab=62)
    sizes = {name: dict(sgfn.describe(name, config)) for name in ("motif", "bits", "ehrlich")}
    assert sizes["motif"]["objects"] == 4**512
    assert sizes["bits"]["objects"] == 2**120
    assert sizes["ehrlich"]["objects"] == 62**512
    assert not any(facts["exact"] for facts in sizes.values())
    assert json.loads(json.dumps(sizes))["motif"]["states"] == (4**512 - 1) // 3


def test_a_factor_by_flag_or_by_name() -> None:
    config = TrainConfig().with_(motif__factor="Arnt", motif__length=6)
    named, flagged = make_task("motif-ARNT", TrainConfig().with_(motif__length=6)), make_task("motif", config)
    assert isinstance(named.env, SequenceEnv)
    objects = named.env.parse(["CACGTG", "AAAAAA"])
    assert_close(named.landscape.scores(objects), flagged.landscape.scores(objects))
    assert float(named.landscape.scores(objects)[0]) == pytest.approx(named.landscape.maximum)
    assert not torch.allclose(
        make_task("motif-MA0006", config).landscape.scores(objects), named.landscape.scores(objects)
    )
    assert (named.name, named.beta) == ("motif-ARNT", 3.0)


def test_a_negative_score_is_worth_its_exponential() -> None:
    config = TrainConfig().with_(motif__factor="Arnt", motif__length=6, reward__norm=2.0)
    task = make_task("motif", config)
    objects = task.env.all_objects()
    scores, log_reward = task.landscape.scores(objects), task.log_reward(objects)
    assert float(scores.min()) < 0
    assert_close(log_reward, scores - math.log(2.0))
    facts = sgfn.describe("motif", config)
    assert facts["log_z"] == pytest.approx(float((3.0 * log_reward.double()).logsumexp(0)), rel=1e-6)
    assert facts["log_z"] != pytest.approx(sgfn.describe("motif", config.with_(reward__norm=1.0))["log_z"])
    wanted = float(target(log_reward, 3.0) @ scores.double())
    assert facts["target_expected_reward"] == pytest.approx(wanted, rel=1e-6)


def test_formula_and_enumeration_agree_on_the_floor() -> None:
    """The landscape's own facts are replaced by enumeration where that is possible, and change nothing."""
    task = make_task("motif", TrainConfig().with_(motif__factor="Arnt", motif__length=7, noise__alpha=0.3))
    by_formula = task.landscape.facts(task.beta, task.env.noise)
    enumerated = sgfn.describe("motif", task.config)
    assert enumerated["exact"]
    for key in ("target_expected_reward", "floor_expected_reward"):
        assert by_formula[key] == pytest.approx(enumerated[key], rel=1e-5)
    assert by_formula["floor_kl"] > 0.0
    hidden = make_task("motif", TrainConfig().with_(noise__kind="hidden"))
    assert set(hidden.landscape.facts(3.0, hidden.env.noise)) == {"log_z", "target_expected_reward"}
    assert make_task("motif", TrainConfig().with_(motif__score="best")).landscape.facts(3.0, task.env.noise) == {}


def test_known_modes_of_bits_are_counted() -> None:
    task = make_task("bits", TrainConfig())
    found = task.landscape.modes_known(task.landscape.modes[:1])
    assert found is not None
    assert 1 <= found[0] < found[1] == 60
    assert task.landscape.modes_known(task.landscape.modes) == (60, 60)
    assert make_task("ehrlich", TrainConfig()).landscape.modes_known(torch.zeros(1, 15, dtype=torch.int64)) is None


def test_the_optimum_is_told_and_is_one() -> None:
    for name in ("ehrlich", *["rna"] * (find_spec("RNA") is not None)):
        task, facts = make_task(name, TrainConfig()), sgfn.describe(name, TrainConfig())
        score = task.landscape.scores(task.env.parse([facts["optimum"]]))
        assert float(score) == pytest.approx(facts["maximum"])
        other = facts["optimum"][1:] + facts["optimum"][:1]
        assert float(task.landscape.scores(task.env.parse([other]))) < facts["maximum"]


def test_a_plain_of_zeros_has_no_maxima(tmp_path: Path) -> None:
    file = write(tmp_path, "sequence,score\nAAAA,0\nCCCC,2\nGGGG,1\n")
    maxima = reference_maxima(make_task("table", TrainConfig().with_(table__file=file, table__unseen="lowest")))
    assert maxima is not None
    assert maxima.tolist() == [[1, 1, 1, 1], [2, 2, 2, 2]]


def test_what_a_formula_tells_stands_beside_the_samples(tmp_path: Path) -> None:
    config = TrainConfig().with_(motif__length=20, steps=1, batch=4, net__hidden=8)
    result = evaluate(sgfn.train("motif", config, tmp_path / "run", device="cpu").path, samples=8, device="cpu")
    facts = sgfn.describe("motif", config)
    assert not facts["exact"]
    for key in ("target_expected_reward", "floor_expected_reward", "floor_kind"):
        assert result[key] == facts[key]
    assert result["tv"] is None
    assert result["target_expected_reward"] > result["sample_mean"]


# A table of measurements


def test_a_table_decides_alphabet_and_lengths(tmp_path: Path) -> None:
    mixed = write(tmp_path, "sequence,score\nACD,1\nWY,2\n")
    config = TrainConfig().with_(table__file=mixed, table__alphabet="protein")
    env = make_task("table", config).env
    assert isinstance(env, SequenceEnv)
    assert (env.length, env.min_length, env.stop, env.alphabet) == (3, 2, True, AMINO_ACIDS)
    same = make_task("table", config.with_(table__file=write(tmp_path, "sequence,score\nACD,1\nWYY,2\n", "b.csv")))
    assert isinstance(same.env, SequenceEnv)
    assert (same.env.length, same.env.stop, same.env.num_objects) == (3, False, 20**3)


def test_scores_that_are_all_clipped_are_refused(tmp_path: Path) -> None:
    config = TrainConfig().with_(table__file=write(tmp_path, "sequence,score\nAC,1e-6\nGT,1e-3\n"))
    with pytest.raises(
        ValueError, match=r"a\.csv: no score is above --reward\.minimum \(0\.001\), the highest is 0\.001"
    ):
        make_task("table", config)
    assert make_task("table", config.with_(reward__minimum=1e-7)).landscape.maximum == pytest.approx(1e-3)
    assert make_task("table", config.with_(table__scale="minmax")).landscape.maximum == 1.0


def test_measured_sequences_are_known_beforehand(tmp_path: Path) -> None:
    file, listed = write(tmp_path, "sequence,score\nAC,1\nGT,2\n"), write(tmp_path, "TT\n", "b.txt")
    config = TrainConfig().with_(table__file=file)
    task = make_task("table", config)
    assert training_objects(task) is None  # no share was asked for
    known = known_objects(task)
    assert known is not None
    assert task.env.decode(known) == ["AC", "GT"]
    shared = make_task("table", config.with_(offline__share=0.5))
    assert torch.equal(training_objects(shared), known)
    other = training_objects(make_task("table", config.with_(offline__share=0.5, offline__file=listed)))
    assert other is not None
    assert task.env.decode(other) == ["TT"]
    with pytest.raises(ValueError, match=r"^offline\.share is positive but offline\.file is not given"):
        training_objects(make_task("words", TrainConfig().with_(offline__share=0.5)))


# A function


def test_a_function_at_hand(tmp_path: Path) -> None:
    settings = sgfn.function_config(share_of_a, length=3, alphabet="AC", min_length=2)
    assert settings == CallableConfig(function="test_tasks:share_of_a", length=3, alphabet="AC", min_length=2)
    config = TrainConfig().with_(callable=settings, steps=2, batch=4, net__hidden=8, log__exact_every=1)
    task = make_task("callable", config)
    assert task.env.decode(task.env.all_objects()) == ["".join(w) for n in (2, 3) for w in product("AC", repeat=n)]
    assert task.landscape.scores(task.env.parse(["AC", "AAA"])).tolist() == [0.5, 1.0]
    result = evaluate(sgfn.train("callable", config, tmp_path / "run", device="cpu").path, samples=8, device="cpu")
    assert result["tv"] is not None
    assert result["modes_reference_total"] == 2  # AA and AAA, though nobody said how high scores go
    with pytest.raises(ValueError, match="cannot be found again by name"):
        sgfn.function_config(lambda texts: [1.0] * len(texts))


def test_an_unknown_maximum_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["tasks", "callable", "--callable.function", "test_tasks:share_of_a", "--callable.length", "3"]
    assert main(words) == 0
    assert "unknown" in capsys.readouterr().out
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["maximum"] is None
    assert main([*words, "--callable.maximum", "1"]) == 0
    assert "unknown" not in capsys.readouterr().out


# From training to samples, through the command line

QUICK = [*ANYWHERE, "--steps", "3", "--log.every", "1"]
EVERY: dict[str, list[str]] = {
    "tfbind8": [],
    "grid": ["--grid.side", "3"],
    "words": [],
    "motif-gata1": ["--motif.length", "20"],
    "motif": ["--motif.score", "best"],
    "bits": ["--bits.length", "40"],
    "ehrlich": ["--ehrlich.length", "6", "--ehrlich.vocab", "5", "--ehrlich.motifs", "1"],
    "rna": ["--rna.target", "GGGAAACCC", "--rna.length", "12"],
    "table": ["--table.file", "a.csv", "--offline.share", "0.25", "--table.alphabet", "rna"],
    "callable": ["--callable.function", "scores_for_a_test:share_of_a", "--callable.length", "5"],
}


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a table and a function in it."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "sequence,score\nACGU,1\nGU,2\nUUU,0\n")
    write(tmp_path, "def share_of_a(texts):\n    return [t.count('A') / 9 for t in texts]\n", "scores_for_a_test.py")
    yield tmp_path
    sys.modules.pop("scores_for_a_test", None)


def told(capsys: pytest.CaptureFixture[str], words: list[str]) -> Any:
    capsys.readouterr()
    assert main([*words, "--json", "--device", "cpu"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", [pytest.param(n, marks=needs_vienna) if n == "rna" else n for n in EVERY])
def test_every_task_trains_evaluates_and_samples(
    name: str, workplace: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = str(workplace / "run")
    assert told(capsys, ["train", name, *QUICK, *EVERY[name], "--out", run])["step"] == 3
    elsewhere = workplace / "elsewhere"
    elsewhere.mkdir()
    if name != "callable":  # a module is looked for in the current folder
        monkeypatch.chdir(elsewhere)
    result = told(capsys, ["evaluate", run, "--samples", "16"])
    assert (result["task"], result["step"]) == (name, 3)
    assert math.isfinite(result["sample_mean"])
    assert len(result["orders"]) == (0 if name == "grid" else min(10, len({o["order"] for o in result["orders"]})))
    assert (result["novelty"] is not None) == (name == "table")
    assert told(capsys, ["sample", run, "-n", "5"])["samples"] == 5
    with Path(run, "samples.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == 5


def test_every_kind_of_task_is_among_them() -> None:
    assert {name.partition("-")[0] for name in EVERY} == set(TASKS) - {
        *("series", "gb1", "mpsa")  # see test_forecast_verb.py and test_complete_tables.py
    }


def test_five_thousand_peptides(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A user's table: mixed lengths, train, evaluate and sample."""
    draw = random.Random(0)
    peptides = {"".join(draw.choices(AMINO_ACIDS, k=draw.randint(8, 12))) for _ in range(5000)}
    rows = [f"{peptide},{peptide.count('W') + draw.random():.3f}" for peptide in sorted(peptides)]
    assert len(rows) == 5000
    file, run = write(tmp_path, "\n".join(["sequence,score", *rows])), str(tmp_path / "run")
    flags = [
        "--table.file",
        str(file),
        "--table.alphabet",
        "protein",
        "--offline.share",
        "0.5",
        "--proxy.kind",
        "ridge",
    ]
    told(capsys, ["train", "table", *QUICK, *flags, "--out", run])
    result = told(capsys, ["evaluate", run, "--samples", "32"])
    assert result["tv"] is None
    assert result["novelty"] > 0
    assert all(8 <= len(order["order"]) <= 12 for order in result["orders"])
    told(capsys, ["sample", run, "-n", "20"])
    with Path(run, "samples.csv").open(newline="") as samples:
        drawn = list(csv.DictReader(samples))
    assert {8 <= len(row["sequence"]) <= 12 for row in drawn} == {True}
    lowest = min(float(row.split(",")[1]) for row in rows)
    assert all(float(row["score"]) >= lowest - 1e-6 for row in drawn)


MALFORMED: dict[str, tuple[str | None, str]] = {
    "no file": (None, ": no such file; check the path"),
    "empty": ("", ": the file is empty; write a header"),
    "header only": ("sequence,score\n", ": a header and no rows; add one row"),
    "wrong column": ("seq,score\nAC,1\n", ", line 1, column 'sequence': not in the header (seq, score); did you"),
    "too few fields": ("sequence,score\nAC,1\nGT\n", ", line 3: 1 field where the header has 2; fill in"),
    "letter": ("sequence,score\nAC,1\nAXG,1\n", ", line 3, column 'sequence': 'AXG' holds 'X', not in the alphabet"),
    "word": ("sequence,score\nAC,high\n", ", line 2, column 'score': 'high' is not a number; write it like"),
    "nan": ("sequence,score\nAC,nan\n", ", column 'score': no row has a score; fill in those that were measured"),
    "negative": ("sequence,score\nAC,-1\n", ", line 2, column 'score': '-1' is negative; scale all scores"),
    "twice": ("sequence,score\nAC,1\nAC,2\n", ", line 3, column 'sequence': 'AC' is on line 2 already"),
    "open quote": ('sequence,score\n"AC,1\n', ", line 2: not valid CSV (unexpected end of data); close each quote"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_table_gets_one_line(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, message = MALFORMED[name]
    file = tmp_path / "a.csv"
    if text is not None:
        file.write_text(text)
    words = ["train", "table", *QUICK, "--out", str(tmp_path / "run"), "--table.file", str(file)]
    assert complaint(capsys, words).startswith(f"table.file {file}{message}")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["table"], "task 'table' needs a CSV of sequences and scores: name it with --table.file"),
        (["callable"], "task 'callable' needs a function: name it with --callable.function module:function"),
        (["callable", "--callable.function", "x"], "callable.function 'x': must be module:function"),
        (["callable", "--callable.function", "math:sqrt", "--callable.alphabet", "A"], "callable.alphabet 'A' is too"),
        (["motif", "--motif.length", "5"], "motif.length 5 is too short for CTCF (MA0139.2) of 15 positions"),
        (["bits", "--bits.k", "7"], "bits.k must divide length (120), got 7"),
        (["ehrlich", "--ehrlich.length", "3"], "ehrlich.length must be at least motifs * motif_length = 8, got 3"),
    ],
)
def test_flags_that_do_not_fit_are_named(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert complaint(capsys, ["train", *words]).startswith(message)
    assert complaint(capsys, ["tasks", *words]).startswith(message)


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "RNA", None)
    monkeypatch.setattr("sgfn.landscapes.tasks.find_spec", lambda _: None)
    assert complaint(capsys, ["train", "rna"]) == "task 'rna' needs ViennaRNA: install it with pip install 'sgfn[rna]'"
    (row,) = [row for row in sgfn.catalogue(TrainConfig()) if row["task"] == "rna"]
    assert (row["needs"], row["ready"], row["objects"]) == ("sgfn[rna]", False, None)
