"""Measurements beyond one column: frames, replicates, deviations, several scores, transforms, FASTA."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from exact_tables import PROPERTY
from hypothesis import given
from hypothesis import strategies as st

from sgfn.landscapes.measurements import guess_alphabet, read_measurements
from sgfn.landscapes.replicates import merge_replicates
from sgfn.landscapes.transforms import ScoreTransform

ROWS = st.lists(st.tuples(st.sampled_from(["A", "C", "G"]), st.floats(-5, 5), st.floats(0.1, 2)), min_size=1)


@PROPERTY
@given(rows=ROWS)
def test_replicates_against_pandas(rows: list[tuple[str, float, float]]) -> None:
    texts, scores, sd = (list(column) for column in zip(*rows, strict=True))
    found = merge_replicates(texts, np.array(scores), np.array(sd))
    frame = pd.DataFrame({"text": texts, "score": scores, "variance": np.square(sd)}).groupby("text", sort=False)
    np.testing.assert_allclose(found.scores, frame["score"].mean(), atol=1e-12)
    np.testing.assert_array_equal(found.counts, frame.size())
    assert found.sd is not None
    np.testing.assert_allclose(found.sd, np.sqrt(frame["variance"].sum()) / frame.size())
    alone = merge_replicates(texts, np.array(scores))
    assert (alone.sd is None) == (len(set(texts)) == len(texts))  # without replicates nothing tells the error


def test_a_frame_with_several_scores_replicates_and_deviations() -> None:
    frame = pd.DataFrame(
        {"peptide": ["AC", "AG", "AC"], "kd": [2.0, 3.0, 4.0], "tox": [1.0, 0.0, 1.0], "e": [0.3, 0.1, 0.4], "id": 1}
    )
    columns = {"sequence_column": "peptide", "score_column": ["kd", "tox"], "sd_column": "e"}
    found = read_measurements(frame, **columns, weights=[1.0, -0.5], duplicates="mean", minimise=True)
    assert found.sequences == ["AC", "AG"]
    np.testing.assert_allclose(found.scores, [2.5, 3.0])
    np.testing.assert_allclose(found.values, [-2.5, -3.0])  # lower is better
    assert found.sd is not None
    assert found.counts is not None
    np.testing.assert_allclose(found.sd, [0.25, 0.1])
    assert found.counts.tolist() == [2, 1]
    assert found.ignored == ("id",)
    assert found.alphabet == "ACGT"
    with pytest.raises(ValueError, match=r"1 weights for 2 score columns"):
        read_measurements(frame, **columns, weights=[1.0], duplicates="mean")
    with pytest.raises(ValueError, match=r"measurements, row 2, column 'e': '-1' is no standard deviation"):
        read_measurements(frame.assign(e=[1, -1, 1]), **columns, duplicates="mean")
    with pytest.raises(ValueError, match=r"--table.sd-column"):
        read_measurements(frame, **{**columns, "sd_column": "error"}, duplicates="mean")


def test_fasta_with_scores_in_its_headers(tmp_path: Path) -> None:
    file = tmp_path / "a.fasta"
    file.write_text(">one of ours score=1.5 sd=0.1\nACD\nEF\n\n>two score=2 sd=0.2\nacdw\n")
    found = read_measurements(file, "protein", sd_column="sd")
    assert list(zip(found.sequences, found.scores, strict=True)) == [("ACDEF", 1.5), ("ACDW", 2.0)]
    assert found.ignored == ("name",)
    file.write_text(">one\nACD\n>two score=2\nAC\n")
    found = read_measurements(file, "protein")
    assert (found.sequences, found.notice) == (["AC"], "1 row without a score (the first on line 1): left out")
    file.write_text("ACD\n>two score=2\nAC\n")
    with pytest.raises(ValueError, match=r"a\.fasta, line 1: not FASTA"):
        read_measurements(file, "protein")


@pytest.mark.parametrize("kind", ["none", "log", "rank"])
@pytest.mark.parametrize("minimise", [False, True])
def test_transforms_keep_the_order_and_come_back(kind: str, minimise: bool) -> None:
    scores = np.array([0.5, 3.0, 1.0, 3.0, 20.0])
    shape = ScoreTransform.of(scores, kind, minimise=minimise)  # pyright: ignore[reportArgumentType]
    values = shape.values(scores)
    np.testing.assert_allclose(shape.scores(values), scores)
    order = np.argsort(-scores if minimise else scores, kind="stable")
    assert (np.diff(values[order]) >= 0).all()
    sd = shape.value_sd(scores, np.full(5, 1e-4))
    assert sd is not None
    assert (sd > 0).all()
    with pytest.raises(ValueError, match=r"transform log needs scores above 0"):
        ScoreTransform.of(np.array([0.0, 1.0]), "log", minimise=False)


def test_values_in_the_units_of_the_table(tmp_path: Path) -> None:
    frame = pd.DataFrame({"sequence": ["A", "C", "G"], "score": [1.0, 10.0, 100.0]})
    logs = read_measurements(frame, transform="log", minimise=True)
    np.testing.assert_allclose(logs.values, [0.0, -math.log(10), -math.log(100)], atol=1e-12)
    scaled = read_measurements(frame, scale="minmax", minimise=True)
    np.testing.assert_allclose(scaled.values, [1.0, 10 / 11, 0.0])
    np.testing.assert_allclose(scaled.transform.scores(scaled.values), scaled.scores)
    assert scaled.scores.tolist() == [1.0, 10.0, 100.0]
    mean, sd = scaled.transform.predictions(scaled.values, np.full(3, 0.1))
    np.testing.assert_allclose(mean, scaled.scores)
    np.testing.assert_allclose(sd, 9.9)


def test_letters_that_sequences_show() -> None:
    assert guess_alphabet(["acgu"]) == "ACGU"
    assert guess_alphabet(["01", "2"]) == "012"
