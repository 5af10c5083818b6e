"""Selection by distance and trade-off, distances against a plain table, wells, files."""

import csv
import itertools
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sgfn.design.distances import coded, distances, nearest
from sgfn.design.orders import OrderValue
from sgfn.design.plate import COLUMNS, well_names, write_fasta, write_plate
from sgfn.design.selection import select_plate


def edits_by_hand(one: str, other: str) -> int:
    line = list(range(len(other) + 1))
    for i, a in enumerate(one, start=1):
        before, line = line, [i]
        for j, b in enumerate(other, start=1):
            line.append(min(before[j - 1] + (a != b), before[j] + 1, line[j - 1] + 1))
    return line[-1]


words = st.lists(st.text("ACG", min_size=1, max_size=8), min_size=1, max_size=8)


@settings(max_examples=60, deadline=None)
@given(words)
def test_edit_distances_are_those_of_the_table(texts: list[str]) -> None:
    rows, blank = coded(texts)
    for text, row in zip(texts, rows, strict=True):
        assert distances(rows, row, blank, "edit").tolist() == [edits_by_hand(text, other) for other in texts]
    number, apart = nearest(rows, rows, blank, "edit")
    assert apart.tolist() == [0] * len(texts)
    assert [texts[i] for i in number.tolist()] == texts


def test_long_words_go_the_plain_way() -> None:
    texts = ["ACGT" * 20, "ACGT" * 15 + "A", "ACGG" + "ACGT" * 14]
    rows, blank = coded(texts)
    for text, row in zip(texts, rows, strict=True):
        assert distances(rows, row, blank, "edit").tolist() == [edits_by_hand(text, other) for other in texts]


@settings(max_examples=60, deadline=None)
@given(words.map(lambda texts: list(dict.fromkeys(texts))), st.integers(0, 4), st.floats(0, 1), st.integers(1, 6))
def test_no_two_orders_are_nearer_than_asked(texts: list[str], distance: int, tradeoff: float, n: int) -> None:
    values = [float(len(text)) for text in texts]
    found = select_plate(texts, values, n, distance=distance, tradeoff=tradeoff, taken=["ACA"])
    chosen = [texts[i] for i in found.chosen]
    apart = [edits_by_hand(a, b) for a, b in itertools.combinations(chosen, 2)]
    if len({len(text) for text in [*texts, "ACA"]}) > 1:
        assert all(gap >= distance for gap in apart)
        assert found.distance == (min(apart) if apart else None)
    assert len(set(found.chosen)) == len(found.chosen) <= n


def test_quality_and_diversity() -> None:
    texts = ["".join(letters) for letters in itertools.product("ACGT", repeat=4)]
    values = [text.count("A") + 0.01 * text.count("C") for text in texts]
    best = select_plate(texts, values, 5)
    assert [values[i] for i in best.chosen] == sorted(values, reverse=True)[:5]
    assert best.metric == "hamming"
    spread = select_plate(texts, values, 4, tradeoff=1.0)
    assert spread.distance == 4
    middle = select_plate(texts, values, 5, tradeoff=0.4)
    means = [np.mean([values[i] for i in found.chosen]) for found in (best, middle, spread)]
    assert means == sorted(means, reverse=True)
    assert len(select_plate(texts, values, 300, distance=4).chosen) == 4
    with pytest.raises(ValueError, match="values must be one for each of 256 candidates"):
        select_plate(texts, values[:5], 3)
    with pytest.raises(ValueError, match="values must be finite"):
        select_plate(["A"], [float("nan")], 1)


def test_forty_thousand_candidates_take_seconds() -> None:
    generator = np.random.default_rng(0)
    texts = ["".join(row) for row in np.array(list("ACGT"))[generator.integers(0, 4, (40_000, 20))]]
    begun = time.process_time()
    found = select_plate(texts, generator.random(40_000), 12, distance=5, tradeoff=0.2)
    assert time.process_time() - begun < 20
    assert len(found.chosen) == 12
    assert (found.distance or 0) >= 5


def test_wells() -> None:
    for size, last, rows in ((96, "H12", 8), (384, "P24", 16)):
        names = [well for _, well in well_names(size, size)]
        assert (names[0], names[-1], len(set(names))) == ("A1", last, size)
        assert len({name[0] for name in names}) == rows
        assert well_names(size + 1, size)[-1] == (2, "A1")
    with pytest.raises(ValueError, match="96 or 384"):
        well_names(3, 100)


def value(order: str) -> OrderValue:
    figures = {"expected": 1.23456789, "error": 0.0, "sd": 0.5, "intact": 0.25, "violates": 0.125}
    return OrderValue(order=order, **figures, score=2.0, score_sd=0.0, nearest="=ACG", distance=3)


def test_files_are_whole_and_safe_and_nothing_is_cut(tmp_path: Path) -> None:
    orders = ["A" * 300, "=CMD", "ACGT"]
    values = [value(order) for order in orders]
    write_plate(tmp_path / "plate.csv", values)
    with (tmp_path / "plate.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS
    assert COLUMNS[:3] == ("order", "plate", "well")
    assert [row["order"] for row in rows] == ["A" * 300, "'=CMD", "ACGT"]
    assert [row["well"] for row in rows] == ["A1", "A2", "A3"]
    assert (rows[0]["expected"], rows[0]["nearest"], rows[0]["violates"]) == ("1.23457", "'=ACG", "0.125")
    write_fasta(tmp_path / "plate.fasta", values, 384)
    lines = (tmp_path / "plate.fasta").read_text().splitlines()
    assert lines[0].startswith(">plate1_A1 ")
    assert lines[1::2] == orders
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plate.csv", "plate.fasta"]
