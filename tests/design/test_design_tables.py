"""Tables of a design: the alphabet that they show, and mistakes that name flags of the command."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sgfn.cli import main
from sgfn.config import NoiseConfig
from sgfn.config.tasks import ConstraintsConfig
from sgfn.design.designer import Designer
from sgfn.design.measured import shown_alphabet
from sgfn.design.sessions import begin
from sgfn.envs.constraints import Constraints
from sgfn.noise import UniformSlip


def table(folder: Path, *sequences: str) -> Path:
    file = folder / "t.csv"
    file.write_text("sequence,score\n" + "".join(f"{text},{n}.5\n" for n, text in enumerate(sequences)))
    return file


@pytest.mark.parametrize(
    ("sequences", "name"),
    [
        (("ACGT", "acca"), "dna"),
        (("ACGU",), "rna"),
        (("ACDEFGHIKL", "MKV"), "protein"),
        (("ACGT", "ACGN"), "dna"),  # more likely a mistake
        (("ACGT", "ACG1"), "dna"),
        (("ACDEFGHIKL", "MK*V"), "protein"),  # the line with the stop is told, not the first one
        (("ACGU", "ACGT", "UUCG"), "rna"),
        (("ACGU", "ACGT", "TTCG"), "dna"),
    ],
)
def test_the_alphabet_that_a_table_shows(sequences: tuple[str, ...], name: str, tmp_path: Path) -> None:
    assert shown_alphabet(table(tmp_path, *sequences), "sequence") == name


def test_a_strange_letter_is_told_with_the_flag_of_the_command(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"line 3, .*'ACGN' holds 'N', .* or set --alphabet protein"):
        begin(table(tmp_path, "ACGT", "ACGN"), {}, NoiseConfig(alpha=0.0), ConstraintsConfig())


def test_both_spellings_of_rna_are_read_and_told(tmp_path: Path) -> None:
    session = begin(table(tmp_path, "ACGU", "ACGT", "uucg", "uuta"), {}, NoiseConfig(alpha=0.0), ConstraintsConfig())
    assert session.designer.measured.sequence.tolist() == ["ACGU", "ACGU", "UUCG", "UUUA"]
    assert any("2 rows write T (the first on line 3): read as U" in notice for notice in session.notices)
    plain = begin(table(tmp_path, "ACGT", "ACGA", "TTCG", "TTCA"), {}, NoiseConfig(alpha=0.0), ConstraintsConfig())
    told = plain.designer.tell(pd.DataFrame({"sequence": ["GGGU"], "score": [1.0]}))
    assert told.measured.sequence.tolist()[-1] == "GGGT"
    with pytest.raises(ValueError, match=r"holds 'U', not in the alphabet ACGT"):
        Designer("dna").fit(pd.DataFrame({"sequence": ["ACGU", "ACGA"], "score": [1.0, 2.0]}))


def test_an_outlier_from_which_nothing_can_be_learned_is_told() -> None:
    texts = ["".join(letters) for letters in itertools.product("ACGT", repeat=3)]
    scores = [float(text.count("A")) for text in texts]
    found = Designer("dna", proxy="ridge").fit(pd.DataFrame({"sequence": texts[:40], "score": scores[:40]}))
    assert "far from all others" not in found.propose(4).note
    scores[7] = 1e6
    found = Designer("dna", proxy="ridge").fit(pd.DataFrame({"sequence": texts[:40], "score": scores[:40]}))
    assert "1e+06 of ACT is far from all others: correct it, or take transform rank" in found.propose(4).note


def test_letters_of_proteins_are_found_and_told(tmp_path: Path) -> None:
    session = begin(table(tmp_path, "ACDEFGHIKL", "MNPQRSTVWY"), {}, NoiseConfig(alpha=0.0), ConstraintsConfig())
    assert session.designer.config.alphabet == "ACDEFGHIKLMNPQRSTVWY"
    assert session.notices[0].endswith("letters of protein; choose by --alphabet")


# What may be said of the scores


def truth(text: str) -> float:
    return text.count("GA") + 0.5 * text.count("T")


@pytest.fixture(scope="module")
def library() -> pd.DataFrame:
    generator = np.random.default_rng(0)
    texts = sorted({"".join(generator.choice(list("ACGT"), 5)) for _ in range(90)})
    return pd.DataFrame({"sequence": texts, "score": [truth(text) + 0.1 for text in texts]})


def plate(frame: pd.DataFrame, count: int = 8, **settings: Any) -> pd.DataFrame:
    return Designer("dna", proxy="ridge", acquisition="greedy", **settings).fit(frame).propose(count).orders


def test_several_columns_are_added_with_their_weights(library: pd.DataFrame) -> None:
    generator = np.random.default_rng(1)
    other = generator.normal(size=len(library))
    split = library.assign(one=library.score + 2 * other, two=other).drop(columns="score")
    both = plate(split, scores={"one": 1.0, "two": -2.0})
    assert both.order.tolist() == plate(library).order.tolist()
    assert np.allclose(both.expected, plate(library).expected)
    assert both.order.tolist() == plate(split, scores="one=1,two=-2").order.tolist()
    assert both.order.tolist() != plate(split, score_column="one").order.tolist()  # the weights matter
    with pytest.raises(ValueError, match="column 'three'"):
        plate(split, scores={"one": 1.0, "three": 1.0})
    for wrong in ("one", "one=x", "one=0", "one=1,one=2", "=1"):
        with pytest.raises(ValueError, match=r"activity=1,toxicity=-0\.5"):
            Designer("dna", scores=wrong)
    with pytest.raises(ValueError, match="one of the two"):
        Designer("dna", scores="one=1", score_column="two")


@pytest.mark.parametrize("transform", ["log", "rank"])
def test_transforms_fit_other_values_and_tell_scores(library: pd.DataFrame, transform: str) -> None:
    bent = library.assign(score=np.exp(3 * library.score))
    found = plate(bent, transform=transform)
    assert np.mean([truth(order) for order in found.order]) > np.quantile([truth(t) for t in library.sequence], 0.9)
    assert found.expected.between(bent.score.median(), 10 * bent.score.max()).all()  # in the table's own units
    if transform == "log":
        straight = plate(library.assign(score=3 * library.score))
        assert found.order.tolist() == straight.order.tolist()
        assert np.allclose(found.expected, np.exp(straight.expected))
        with pytest.raises(ValueError, match="log needs scores above 0"):
            plate(library.assign(score=library.score - 1), transform="log")
    turned = plate(bent.assign(score=1 / bent.score), transform=transform, minimise=True)
    assert turned.order.tolist() == found.order.tolist()
    assert np.allclose(turned.expected, 1 / found.expected, rtol=1e-6 if transform == "log" else 0.5)


def test_under_noise_the_expectation_is_that_of_the_logarithm(library: pd.DataFrame) -> None:
    straight = plate(library.assign(score=3 * library.score), noise=0.2)
    found = plate(library.assign(score=np.exp(3 * library.score)), noise=0.2, transform="log")
    assert found.order.tolist() == straight.order.tolist()
    assert np.allclose(found.expected, np.exp(straight.expected))
    assert np.allclose(found.score, np.exp(straight.score))


def test_weights_and_replicates_count(library: pd.DataFrame) -> None:
    wrong = library.sample(30, random_state=0).assign(score=9.0)
    mixed = pd.concat([library.assign(w=1.0), wrong.assign(w=0.0)], ignore_index=True)
    assert np.allclose(plate(mixed, weight_column="w").expected, plate(library).expected, atol=0.05)
    assert not np.allclose(plate(mixed).expected, plate(library).expected, atol=0.5)  # replicates are averaged
    with pytest.raises(ValueError, match=r"row 2, column 'w': '-1' is no weight"):
        plate(mixed.assign(w=[1, -1, *[1] * (len(mixed) - 2)]), weight_column="w")
    with pytest.raises(ValueError, match="'v' is not in the header"):
        plate(mixed, weight_column="v")


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".csv.gz", ".parquet", ".xlsx", ".fasta"])
def test_every_kind_of_file_is_read_alike(library: pd.DataFrame, ending: str, tmp_path: Path) -> None:
    file, more = tmp_path / f"t{ending}", library.assign(sequence=library.sequence.str.lower(), batch=7)
    if ending == ".parquet":
        more.to_parquet(file)
    elif ending == ".xlsx":
        more.to_excel(file, index=False)
    elif ending == ".fasta":
        rows = enumerate(zip(more.sequence, more.score, strict=True))
        file.write_text("".join(f">a{number} score={score} batch=7\n{text}\n" for number, (text, score) in rows))
    else:
        more.to_csv(file, index=False, sep="\t" if ending == ".tsv" else ",")
    session = begin(file, {"proxy": "ridge"}, NoiseConfig(alpha=0.0), ConstraintsConfig())
    assert session.designer.measured.sequence.tolist() == library.sequence.tolist()
    assert np.allclose(session.designer.measured.score, library.score)
    assert any("not read" in notice and "batch" in notice for notice in session.notices)


def test_settings_of_scores_are_flags_and_are_carried_on(library: pd.DataFrame, tmp_path: Path) -> None:
    split = library.assign(one=np.exp(library.score), two=0.0, w=1.0, e=0.1).drop(columns="score")
    split.to_csv(tmp_path / "t.csv", index=False)
    flags = "--scores one=2,two=1 --transform log --weight-column w --sd-column e --minimise --proxy ridge --orders 4"
    assert main(["design", "propose", str(tmp_path / "t.csv"), *flags.split(), "--out", str(tmp_path / "1")]) == 0
    orders = pd.read_csv(tmp_path / "1/orders.csv")
    orders[["order"]].assign(one=1.0, two=0.0, w=0.5, e=0.2).to_csv(tmp_path / "new.csv", index=False)
    words = ["design", "propose", str(tmp_path / "1"), "--measured", str(tmp_path / "new.csv"), "--orders", "3"]
    assert main([*words, "--out", str(tmp_path / "2")]) == 0
    second = Designer.load(tmp_path / "2")
    assert second.config.score_parts == (("one", 2.0), ("two", 1.0))
    assert (second.config.transform, second.config.minimise) == ("log", True)
    assert second.measured.tail(4)[["score", "weight", "sd"]].to_numpy().tolist() == [[2.0, 0.5, 0.2]] * 4
    assert orders.expected.max() < np.quantile(2 * split.one, 0.5)  # low ones, in the units of the sum


def carried(folder: Path, first: str, then: str) -> Designer:
    """The designer of a second round, from the flags of both."""
    texts = ["ACGT", "CATG", "TAGA", "GGAC", "TTTA", "ACCA", "GATC", "CCGA"]
    (folder / "t.csv").write_text("sequence,score\n" + "".join(f"{text},{truth(text)}\n" for text in texts))
    words = ["design", "propose", "--proxy", "ridge", "--orders", "2", "--out"]
    with pytest.MonkeyPatch.context() as patch:  # drawing the page takes most of the time
        patch.setattr("sgfn.reports.pages.design.write_design_page", lambda path, *parts: path.write_text(""))
        assert main([*words, str(folder / "1"), *first.split(), str(folder / "t.csv")]) == 0
        assert main([*words, str(folder / "2"), *then.split(), str(folder / "1")]) == 0
    return Designer.load(folder / "2")


def test_a_flag_that_is_given_replaces_its_setting_and_no_other(tmp_path: Path) -> None:
    first = "--noise.alpha .2 --minimise --max-run 3 --sampler off --reach 3"
    second = carried(tmp_path, first, "--noise.alpha 0 --no-minimise --constraints.gc=0.2:0.8 --reach None")
    assert second.noise == UniformSlip(alpha=0.0)
    assert (second.config.minimise, second.config.sampler, second.config.reach) == (False, "off", None)
    assert second.constraints == Constraints(max_run=3, gc=(0.2, 0.8))


def test_constraints_are_replaced_or_lifted_one_by_one(tmp_path: Path) -> None:
    first = "--forbid AAA --gc .3:.7 --repeat --noise.alpha .1 --min-length 3"
    second = carried(tmp_path, first, "--max-run 2 --no-repeat --gc None --noise.no-stop --max-length 5")
    assert second.constraints == Constraints(forbid=("AAA",), max_run=2)
    assert second.noise == UniformSlip(alpha=0.1)
    assert (second.config.repeat, second.config.min_length, second.config.max_length) == (False, 3, 5)
