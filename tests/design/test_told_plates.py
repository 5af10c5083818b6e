"""What may be told of a plate: wells that failed, sequences that nobody ordered, lengths that nobody has seen."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sgfn.cli import main
from sgfn.config import NoiseConfig
from sgfn.config.tasks import ConstraintsConfig
from sgfn.design.designer import Designer
from sgfn.design.sessions import Session, begin, carry_on


def truth(text: str) -> float:
    return text.count("GA") + 0.5 * text.count("T")


@pytest.fixture(scope="module")
def library() -> pd.DataFrame:
    generator = np.random.default_rng(0)
    texts = sorted({"".join(generator.choice(list("ACGT"), 6)) for _ in range(60)})
    return pd.DataFrame({"sequence": texts, "score": [truth(text) for text in texts]})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, library: pd.DataFrame) -> Path:
    made = Designer("dna", proxy="ridge").fit(library)
    made.propose(4)
    made.save(out := tmp_path_factory.mktemp("told") / "1")
    return out


def told(tmp_path: Path, *lines: str, header: str = "order,score") -> Path:
    file = tmp_path / "new.csv"
    file.write_text("\n".join([header, *lines]) + "\n")
    return file


@pytest.mark.parametrize("empty", ["", "NA", "n/a", "NaN"])
def test_a_failed_well_is_not_measured_and_stays_pending(folder: Path, tmp_path: Path, empty: str) -> None:
    orders = list(Designer.load(folder).pending)
    new = told(tmp_path, f"{orders[0]},1.5", f"{orders[1]},{empty}", f"{orders[2]},2")
    session = carry_on(folder, new, {})
    assert list(session.designer.pending) == [orders[1], orders[3]]
    assert session.designer.measured.sequence.tolist()[-2:] == [orders[0], orders[2]]
    assert any("1 row without a score" in notice and "line 3" in notice for notice in session.notices)
    with pytest.raises(ValueError, match=r"new\.csv.*no row has a score"):
        carry_on(folder, told(tmp_path, f"{orders[0]},{empty}"), {})
    with pytest.raises(ValueError, match=r"line 3, column 'score': 'high' is not a number"):
        carry_on(folder, told(tmp_path, f"{orders[0]},1", f"{orders[1]},high"), {})
    first = Designer("dna").fit(told(tmp_path, "ACGT,1", f"ACCT,{empty}", "AAAA,2", header="sequence,score"))
    assert first.measured.sequence.tolist() == ["ACGT", "AAAA"]
    assert first.notices == ("1 row without a score (the first on line 3): left out",)


def test_frames_may_hold_failed_wells(library: pd.DataFrame) -> None:
    made = Designer("dna", proxy="ridge").fit(library)
    orders = made.propose(3).orders.order
    made.tell(pd.DataFrame({"order": orders, "score": [1.0, np.nan, 2.0]}))
    assert list(made.pending) == [orders[1]]


def test_sequences_that_were_not_ordered_are_told(folder: Path, tmp_path: Path, library: pd.DataFrame) -> None:
    orders, known = list(Designer.load(folder).pending), library.sequence[0]
    strange = [text for text in ("AAAAAA", "CCCCCC", "ACCCCA") if text not in {*orders, *library.sequence}][:2]
    new = told(tmp_path, f"{orders[0]},1.5", f"{known},1", *(f"{text},0.2" for text in strange))
    session = carry_on(folder, new, {})
    wanted = f"2 rows were not ordered (the first on line 4: {strange[0]})"
    assert any(wanted in notice for notice in session.notices)
    assert set(strange) <= {*session.designer.measured.sequence}
    assert not any("not ordered" in n for n in carry_on(folder, told(tmp_path, f"{orders[0]},1.5"), {}).notices)


def test_a_length_that_nobody_has_seen_is_refused(folder: Path, tmp_path: Path) -> None:
    order = next(iter(Designer.load(folder).pending))
    new = told(tmp_path, f"{order},1.5", "ACGT,0.3")
    with pytest.raises(ValueError, match=r"new\.csv, line 3, column 'order': .*4 letters.* 6.*--min-length 4"):
        carry_on(folder, new, {})
    with pytest.raises(ValueError, match=r"row 1, column 'order': .*4 letters.* 6.*; .*min_length=4"):
        Designer.load(folder).tell(pd.DataFrame({"order": ["ACGT"], "score": [1.0]}))
    wide = carry_on(folder, new, {}, None, {"min_length": 4}).designer
    assert (wide.space.min_length, wide.space.max_length) == (4, 6)


def test_what_came_out_shorter_does_not_widen_what_is_ordered(folder: Path, tmp_path: Path) -> None:
    order = next(iter(Designer.load(folder).pending))
    made = carry_on(folder, told(tmp_path, f"{order},{order[:4]},0.3", header="order,sequence,score"), {}).designer
    assert (made.space.min_length, made.space.max_length) == (6, 6)
    assert made.propose(2).orders.order.str.len().tolist() == [6, 6]


def test_messages_name_flags_on_the_command_line_and_parameters_in_python(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = told(tmp_path, "ACGT,1", header="sequence,fitness")
    assert main(["design", "propose", str(file), "--out", str(tmp_path / "1")]) == 2
    assert "choose one with --score-column" in capsys.readouterr().err
    for source in (file, pd.read_csv(file)):
        with pytest.raises(ValueError, match=r"choose one with score_column=") as caught:
            Designer("dna").fit(source)
        assert "--" not in str(caught.value)
    with pytest.raises(ValueError, match=r"'v' is not in the header; choose it with weight_column="):
        Designer("dna", weight_column="v").fit(pd.DataFrame({"sequence": ["ACGT"], "score": [1.0]}))
    with pytest.raises(ValueError, match=r"alphabet='protein'|alphabet=protein"):
        Designer("dna").fit(pd.DataFrame({"sequence": ["ACGT", "MKVL"], "score": [1.0, 2.0]}))


def test_columns_are_found_whatever_the_case_of_their_names(tmp_path: Path) -> None:
    made = Designer("dna").fit(told(tmp_path, "ACGT,1", "ACCT,2", header="Sequence,SCORE"))
    assert made.measured[["sequence", "score"]].to_numpy().tolist() == [["ACGT", 1.0], ["ACCT", 2.0]]
    assert made.tell(told(tmp_path, "AAAA,3", header="Order,Score")).measured.order.iloc[-1] == "AAAA"
    with pytest.raises(ValueError, match="'sequence': not in the header"):  # which of the two is not for us to say
        Designer("dna").fit(told(tmp_path, "ACGT,ACGT,1", header="Sequence,SEQUENCE,score"))


def test_what_looks_like_errors_of_scores_is_told_with_the_flag_that_reads_it(tmp_path: Path) -> None:
    table = told(tmp_path, "ACGT,1,0.1", "ACCT,2,0.1", header="sequence,score,SD")
    assert any("columns not read: SD (--sd-column SD " in line for line in begun(table, {}).notices)
    assert not begun(table, {"sd_column": "SD"}).notices
    file = tmp_path / "new.fasta"
    file.write_text(">one score=1\nACGT\n>two score=2\nACCT\n")
    assert not begun(file, {}).notices


def begun(table: Path, settings: dict[str, str]) -> Session:
    """The first round of a table."""
    return begin(table, settings, NoiseConfig(alpha=0.0), ConstraintsConfig())


@pytest.mark.parametrize(("told_scores", "improved"), [([], []), ([2.5], [True]), ([1.0, 9.0], [False, True])])
def test_a_plate_with_a_new_best_is_known_as_one(told_scores: list[float], improved: list[bool]) -> None:
    made = Designer("dna").fit(pd.DataFrame({"sequence": ["ACGTACGT", "ACCTACGT"], "score": [1.0, 2.0]}))
    for number, score in enumerate(told_scores, start=1):
        made.round = number
        made.tell(pd.DataFrame({"sequence": ["AAAATTT" + "ACGT"[number]], "score": [score]}))
    assert made._improved() == improved
    made.config = replace(made.config, minimise=True)
    assert made._improved() == [False] * len(improved)


@pytest.mark.parametrize("cells", [("1", "2", "3"), ("7", "12", "40"), ("A1", "well 2", "x"), ("AA1", "AC2", "P24")])
def test_a_column_order_that_numbers_rows_is_not_read(folder: Path, tmp_path: Path, cells: tuple[str, ...]) -> None:
    orders = list(Designer.load(folder).pending)[:3]
    rows = [f"{cell},{order},{place}" for place, (cell, order) in enumerate(zip(cells, orders, strict=True))]
    session = carry_on(folder, told(tmp_path, *rows, header="Order,Sequence,score"), {})
    assert len(session.designer.pending) == 1
    assert session.designer.measured.order.tolist()[-3:] == orders
    assert any("columns not read: order" in notice for notice in session.notices)


def test_one_wrong_letter_among_orders_is_still_told(folder: Path, tmp_path: Path) -> None:
    orders = list(Designer.load(folder).pending)[:2]
    rows = [f"{orders[0]},{orders[0]},1", f"{orders[1][:-1]}X,{orders[1]},2"]
    with pytest.raises(ValueError, match=r"line 3, column 'order': .* holds 'X'"):
        carry_on(folder, told(tmp_path, *rows, header="order,sequence,score"), {})


@pytest.mark.parametrize("wrong", ["ACGTAN", "ACG-ACG", "NNNNNN", "ACG5TA"])
def test_a_wrong_letter_in_every_order_is_told(folder: Path, tmp_path: Path, wrong: str) -> None:
    """Else what came out would count as what was ordered."""
    rows = [f"{wrong},{order},1" for order in list(Designer.load(folder).pending)[:3]]
    with pytest.raises(ValueError, match=r"line 2, column 'order': .* holds '[N5-]'"):
        carry_on(folder, told(tmp_path, *rows, header="order,sequence,score"), {})


def test_decimal_commas_are_told_and_what_may_be_thousands_is_refused(folder: Path, tmp_path: Path) -> None:
    order, other = list(Designer.load(folder).pending)[:2]
    session = carry_on(folder, told(tmp_path, f"{order};1,5", f"{other};2,250", header="order;score"), {})
    assert session.designer.measured.score.tolist()[-2:] == [1.5, 2.25]
    assert any("new.csv: column 'score': commas are read as decimal commas" in line for line in session.notices)
    with pytest.raises(ValueError, match=r"new\.csv, line 2, column 'score': '1,500' .*write 1500 or 1\.500"):
        carry_on(folder, told(tmp_path, f"{order};1,500", f"{other};2", header="order;score"), {})


@pytest.mark.parametrize("rate", [0.0, 0.1])
def test_predictions_of_a_plate_are_no_measurements(tmp_path: Path, library: pd.DataFrame, rate: float) -> None:
    made = Designer("dna", proxy="ridge", noise=rate).fit(library)
    plate = made.propose(4).orders
    made.save(tmp_path / "1")
    sheet = tmp_path / "filled.csv"
    plate.to_csv(sheet, index=False)
    words = r"line 2, column 'score': 4 rows have the scores that were predicted of their orders.*--score-column"
    with pytest.raises(ValueError, match=words):
        carry_on(tmp_path / "1", sheet, {})
    with pytest.raises(ValueError, match=r"not measured ones.*score_column="):
        Designer.load(tmp_path / "1").tell(plate)
    plate.assign(score=[truth(order) for order in plate.order]).to_csv(sheet, index=False)
    session = carry_on(tmp_path / "1", sheet, {})
    assert session.notices == []  # the plate's own columns need no notice, and its `error` is none of a measurement
    plate.assign(score=["", "", *(truth(order) for order in plate.order[2:])], reader="a").to_csv(sheet, index=False)
    assert any(notice.endswith("columns not read: reader") for notice in carry_on(tmp_path / "1", sheet, {}).notices)


def test_a_plate_told_by_its_wells_alone_is_told_to_name_its_orders(folder: Path, tmp_path: Path) -> None:
    words = r"line 1: neither 'order' nor 'sequence' is in the header \(well, score\); write into a column order"
    with pytest.raises(ValueError, match=words):
        carry_on(folder, told(tmp_path, "A1,1", header="well,score"), {})
