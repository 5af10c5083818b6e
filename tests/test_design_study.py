"""The studies of design: their matrix, their pairs of seeds and intervals, and tables from rows."""

import csv
from pathlib import Path

import numpy as np
import pytest
import torch
from benchmarks import (
    design,
    design_games,
    design_landscapes,
    design_mutants,
    design_recipes,
    design_tables,
    design_why,
)
from benchmarks.cells import perform
from benchmarks.design_games import LARGE, WIDE
from benchmarks.design_tables import paired, win_tie_loss
from benchmarks.exploration_tables import rows_of
from torch.testing import assert_close

import sgfn.noise
from sgfn.design.simulate import Truth
from sgfn.design.space import OrderSpace
from sgfn.design.values import exact_values
from sgfn.landscapes.tasks import make_task


@pytest.mark.parametrize("letters", ["ACGT", "ACGU"])
def test_the_matrix_of_error_prone_pcr_errs_once_in_ten_bases(letters: str, tmp_path: Path) -> None:
    with design_games.write_taq(tmp_path / "m.csv", letters).open() as file:
        rows = {row["intended"]: {letter: float(row[letter]) for letter in letters} for row in csv.DictReader(file)}
    assert [*rows] == [*letters]
    assert all(sum(row.values()) == pytest.approx(1.0, abs=1e-5) for row in rows.values())
    wrong = [1 - rows[letter][letter] for letter in letters]
    assert sum(wrong) / 4 == pytest.approx(0.1 * (1 - 0.089), abs=1e-4)  # frameshifts are left out
    assert rows["A"]["G"] == pytest.approx(2 * 0.1 * 0.642, abs=1e-6)
    assert rows["A"]["G"] > rows["G"]["A"]
    config = design_games.config_of(design_games.Cell(task="tfbind8", noise="taq", size="4 x 96", start=1), tmp_path)
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
    assert {*design.METHODS["p1"], *design.METHODS["p4"], *design.METHODS["wide"]} <= set(design_tables.NAMES)
    assert {cell.task for cell in design_games.cells("p2")} == set(design_games.TASKS)
    assert len(list(design_games.cells("p2"))) == 2 * len(design_games.TASKS) * len(design_games.NOISES)


def test_settings_are_chosen_on_other_spaces_than_they_are_shown_on() -> None:
    shown, chosen = ([str(sorted(part.items())) for part in parts.values()] for parts in (LARGE, WIDE))
    assert not {*shown} & {*chosen}
    scores = design_landscapes.coupled(["A" * 30, "C" + "A" * 29, "A" * 29 + "C", "C" + "A" * 28 + "C"])
    assert all(0.0 < score < 1.0 for score in scores)
    assert len({*scores}) == 4


@pytest.mark.parametrize(("name", "reach", "known"), [("ucb", None, 1), ("ucb_still", None, 0), ("ucb_free", 0, 1)])
def test_recipes_of_searches_differ_in_their_reach(name: str, reach: int | None, known: int) -> None:
    player = getattr(design_recipes, name)(OrderSpace(alphabet="AC", min_length=4, max_length=4), "ridge")
    player.bests.append(1.0)
    assert (player.config.acquisition, player.config.reach, len(player.bests)) == ("ucb", reach, known)


# The percentages of splice sites: which errors are counted decides


def test_the_value_of_a_splice_site_counts_errors_at_every_place() -> None:
    rate, order = 0.1, torch.tensor([[1, 0, 2, 2, 3, 0, 0, 2, 3]])  # CAGGUAAGU
    truth = Truth(
        make_task("mpsa", design_games.config_of(design_games.Cell(task="mpsa", noise=str(4 / 3 * rate)), Path()))
    )
    outcomes = truth.space.env.all_objects()
    chance = torch.where(outcomes == order, 1 - rate, rate / 3).double().prod(1)
    wanted = (chance * truth.scores(outcomes).double()).sum()
    assert float(truth.expected(order)[0]) == pytest.approx(float(wanted), rel=1e-5)
    within = chance[(outcomes[:, 3] == 2) & ((outcomes[:, 4] == 1) | (outcomes[:, 4] == 3))].sum()
    assert float(within) == pytest.approx(0.9 * (0.9 + 0.1 / 3))  # the rest is no splice site, and scores 0


def test_the_percentages_of_the_method_are_those_of_errors_within_the_table() -> None:
    found = [100 * design.gain_within(rate) for rate in design.RATES]
    assert found == pytest.approx([0.03, 4.65, 15.00, 23.52], abs=0.01)
    committed = {row["rate"]: 100 * row["gain"] for row in rows_of("design_gain.json") if row["task"] == "mpsa"}
    assert [committed[rate] for rate in design.RATES] == pytest.approx([0.03, 4.15, 13.94, 22.20], abs=0.01)


@pytest.mark.parametrize("name", ["DNA 15, sum", "DNA 15, random", "protein 12, floor", "peptides, random"])
def test_libraries_of_mutants_are_near_their_parent_and_random_ones_are_not(name: str) -> None:
    setting = design_mutants.SETTINGS[name]
    game, other = design_mutants.game_of(setting, 0), design_mutants.game_of(setting, 1)
    assert len({*game.texts}) == len(game.texts) >= setting.rows - 1
    assert design_mutants.differences(game.texts) < 8.0 or not setting.mutants
    assert design_mutants.differences(game.texts) > 8.0 or setting.mutants
    assert game.texts != other.texts
    figures = game.figures([game.texts])
    assert figures["mean"] == pytest.approx([0.0], abs=1e-9)
    assert figures["best"][0] == figures["best"][1] > 1.0


def test_a_rival_climbs_to_the_best_of_a_sum_of_effects() -> None:
    setting = design_mutants.Setting(letters="ACGT", length=6, rows=200, error=0.0, mutants=False)
    game = design_mutants.game_of(setting, 0)
    table = game.measured(game.texts, np.random.default_rng(0))
    plate = design_mutants.rival_plate(game, table, "ridge", 0)
    assert len({*plate} - {*game.texts}) == design_mutants.WELLS
    assert game.figures([plate])["mean"][0] > 1.0


# Studies in processes


def test_games_that_a_file_has_are_not_played_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    played = []

    def fake(cell: design_games.Cell, method: str, seed: int, proxy: str, device: str) -> dict[str, object]:
        played.append((cell.name, method, seed))
        return {"cell": cell.name, "method": method, "seed": seed, "best": [0.5]}

    monkeypatch.setattr(design_games, "play_one", fake)

    def play(seeds: int) -> None:
        perform([design_games.games_of("p1", range(seeds), "ridge", ("random", "default"), tmp_path / "games.json")])

    play(2)
    assert [(method, seed) for _, method, seed in played] == [
        ("random", 0),
        ("default", 0),
        ("random", 1),
        ("default", 1),
    ]
    play(2)
    assert len(played) == 4
    play(3)
    assert len(played) == 6


def test_a_game_of_a_large_space_begins_with_feasible_sequences() -> None:
    for cell in design_games.cells("p4"):
        if cell.task.startswith("ehrlich 32"):
            task = design_games.task_of(cell, 0, Path())
            first = design_games.first_of(task, cell, 0)
            assert first is not None
            assert bool(task.landscape.feasible(first.tokens).all())
            assert float(first.scores.min()) >= 0.0
            assert len(first.tokens) > 100


def test_made_up_landscapes_are_skewed_as_measured_ones() -> None:
    shares = [(design_landscapes.scores(number) > 0.1).mean() for number in (1, 3, 5, 7)]
    assert all(0.01 < share < 0.15 for share in shares)
    assert design_landscapes.scores(1).max() == 1.0
    assert not np.array_equal(design_landscapes.scores(1), design_landscapes.scores(3))


# Why a proxy gains little from knowing the noise


def test_noise_shrinks_what_k_places_make_together_by_the_k_th_power() -> None:
    """V = sum over k of (1 - a)^k f_k, so that noise never reorders a sum over places."""
    rate, table = 0.2, torch.rand(3, 3, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    space = OrderSpace(alphabet="ABC", min_length=3, max_length=3, noise=sgfn.noise.UniformSlip(alpha=rate))
    parts = design_why.parts_by_order(table)
    assert_close(torch.stack(parts).sum(0), table)
    shrunk = torch.stack([(1 - rate) ** k * part for k, part in enumerate(parts)]).sum(0)
    assert_close(exact_values(space, table.reshape(1, -1))[0], shrunk.reshape(-1))
    alone = (parts[0] + parts[1]).reshape(-1)
    assert exact_values(space, alone[None])[0].argsort().equal(alone.argsort())
    assert not exact_values(space, table.reshape(1, -1))[0].argsort().equal(table.reshape(-1).argsort())


def test_a_plate_by_the_truth_gains_from_knowing_the_noise_and_one_by_its_sums_over_places_does_not() -> None:
    truth, noise = design_why.noisy("mpsa", "0"), design_why.noisy("mpsa", "0.2").space
    scores = truth.scores(truth.space.env.all_objects()).double()
    allowed = truth.space.allowed(truth.space.env.all_objects())
    alone = torch.zeros_like(scores)
    alone[allowed] = torch.stack(design_why.parts_by_order(design_why.as_cube(truth, scores))[:2]).sum(0).reshape(-1)
    known, sums = (design_why.plate_values(noise, scores, belief) for belief in (scores, alone))
    assert known["aware"] == known["best"] > 1.05 * known["unaware"]
    assert sums["aware"] == pytest.approx(sums["unaware"], rel=1e-6)
