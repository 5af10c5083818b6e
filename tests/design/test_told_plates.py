"""What may be told of a plate: wells that failed, sequences that nobody ordered, lengths that nobody has seen."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sgfn.cli import main
from sgfn.config.tasks import ConstraintsConfig
from sgfn.design.designer import Designer
from sgfn.design.sessions import carry_on


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
    with pytest.raises(ValueError, match=r"line 3, column 'score'"):
        Designer("dna").fit(told(tmp_path, "ACGT,1", f"ACCT,{empty}", header="sequence,score"))


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
    wide = carry_on(folder, new, {}, None, ConstraintsConfig(min_length=4)).designer
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
