"""The studies of design: their matrix, their pairs of seeds and intervals, and tables from rows."""

import csv
from pathlib import Path

import pytest
from benchmarks import design, design_tables
from benchmarks.design_tables import paired, win_tie_loss

import sgfn.noise


@pytest.mark.parametrize("letters", ["ACGT", "ACGU"])
def test_the_matrix_of_error_prone_pcr_errs_once_in_ten_bases(letters: str, tmp_path: Path) -> None:
    with design.write_taq(tmp_path / "m.csv", letters).open() as file:
        rows = {row["intended"]: {letter: float(row[letter]) for letter in letters} for row in csv.DictReader(file)}
    assert [*rows] == [*letters]
    assert all(sum(row.values()) == pytest.approx(1.0, abs=1e-5) for row in rows.values())
    wrong = [1 - rows[letter][letter] for letter in letters]
    assert sum(wrong) / 4 == pytest.approx(0.1 * (1 - 0.089), abs=1e-4)  # frameshifts are left out
    assert rows["A"]["G"] == pytest.approx(2 * 0.1 * 0.642, abs=1e-6)
    assert rows["A"]["G"] > rows["G"]["A"]
    config = design.config_of(design.Cell(task="tfbind8", noise="taq", size="4 x 96", start=1), tmp_path)
    assert isinstance(sgfn.noise.make_noise(config.noise, "ACGT", 8), sgfn.noise.ConfusionMatrix)


def test_wins_are_counted_over_seeds_that_both_have_played() -> None:
    games = [
        {"method": name, "seed": seed, "best": [0.1, value], "expected": [value, 0.0]}
        for name, values in (("a", {0: 1.0, 1: 0.5, 2: 0.7}), ("b", {1: 0.5, 2: 0.9, 3: 0.1}))
        for seed, value in values.items()
    ]
    assert paired(games, "a", "b", "best") == ([0.5, 0.7], [0.5, 0.9])
    assert paired(games, "a", "b", "expected") == ([0.25, 0.35], [0.25, 0.45])
    said = win_tie_loss([0.5, 0.7], [0.5, 0.9])
    assert (said["win"], said["tie"], said["loss"]) == (0, 1, 1)
    assert said["difference"] == pytest.approx(-0.1)
    assert said["interval"] == pytest.approx([-0.1 - 12.706 * 0.1, -0.1 + 12.706 * 0.1], abs=1e-3)  # t, one degree


def test_every_method_of_a_study_has_a_name_in_its_table() -> None:
    assert set(design.METHODS["p1"]) == set(design_tables.NAMES)
    assert {cell.task for cell in design.cells("p2")} == set(design.TASKS)
    assert len(list(design.cells("p2"))) == 2 * len(design.TASKS) * len(design.NOISES)
