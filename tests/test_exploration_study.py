"""The study of exploration: its runs, their order, what is counted, and what its sentences say."""

import argparse
from pathlib import Path
from typing import Any

import pytest
import torch
from benchmarks import exploration, exploration_tables, published
from benchmarks.exploration_ways import (
    KNOWN,
    LONGER,
    STARTED,
    TASKS,
    WAYS,
    Discoveries,
    corner,
    explored,
    fits,
    modes_of,
    ways_config,
)

from sgfn.config.files import read_json
from sgfn.landscapes.tasks import make_task
from sgfn.learning.methods import check


@pytest.mark.parametrize("cell", [*TASKS, *KNOWN])
def test_every_run_of_the_study_has_settings_that_are_read(cell: str) -> None:
    refused = []
    ways = [way for way in WAYS if fits(cell, way, 0.1) and (cell in TASKS or "method" not in WAYS[way])]
    for way in ways:
        try:
            check(make_task({**TASKS, **KNOWN}[cell]["task"], ways_config(cell, way, 0.1, 20)))
        except ValueError as error:
            refused.append((way, str(error)))
    assert [way for way, _ in refused] == (["mars"] if "4 x 12" in cell else []), refused


def test_trajectories_a_step_are_equal() -> None:
    for cell in TASKS:
        for way in (way for way in WAYS if fits(cell, way, 0.0)):
            config = ways_config(cell, way, 0.0, 20)
            proposals = config.local.count * config.local.rounds if "local" in config.explorations else 0
            assert config.batch + proposals == 64
            assert config.steps == round(TASKS[cell]["steps"] * (LONGER if way.startswith("constant") else 1))


FLAGS = {"seeds": 1, "jobs": 1, "device": "cpu", "steps": 1, "alphas": [0.0], "cells": None, "ways": ["best"]}


def test_seeds_come_one_after_the_other_and_a_study_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = exploration.STUDIES["grids"]
    seeds = [cell["seed"] for cell in study.cells(2, {"way": ["best", "ppo"]})]
    assert seeds == sorted(seeds)
    assert len(seeds) == 2 * (2 * 7 * 3 + 1)  # of the longest function `best` alone, without noise
    assert {cell["way"] for cell in study.cells(1, {}) if "Ehrlich" not in cell["cell"]} == {*WAYS} - {STARTED}
    made = []

    def stopped(study: str, cell: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
        if len(made) in (2, 5):
            made.append(None)
            raise KeyboardInterrupt
        made.append(cell["cell"])
        return cell | {"found": more["steps"]}

    monkeypatch.setattr(exploration, "one", stopped)
    monkeypatch.setattr("sys.argv", ["exploration", "grids"])
    args = argparse.Namespace(**FLAGS, out=tmp_path / "a.json", cluster=None, minutes=1.0)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            exploration.run("grids", args)
    assert [cell for cell in made if cell] == list(TASKS)[:4]
    rows = read_json(tmp_path / "a.json")["rows"]
    assert [(row["cell"], row["seed"], row["found"]) for row in rows] == [(cell, 21, 1) for cell in list(TASKS)[:4]]
    args.minutes = 0.0
    exploration.run("grids", args)
    assert len(made) == 6


def test_no_run_is_begun_after_the_time() -> None:
    units: Any = [({"alpha": a}, None, [("tb", 0), ("db", 0), ("tb", 1)]) for a in (0.1, 0.3)]
    parts = list(published.seed_by_seed(units))
    assert [(cell["alpha"], runs) for cell, _, runs in parts] == [
        *((a, [("tb", 0), ("db", 0)]) for a in (0.1, 0.3)),
        *((a, [("tb", 1)]) for a in (0.1, 0.3)),
    ]
    assert list(published.until(0.0, iter(parts))) == []


def test_a_run_counts_every_call() -> None:
    row = explored("lure 3 x 10, R0 1e-5", 0.1, "local", 3, steps=2)
    assert row["calls"] == 16 * 3 + 48 * 2  # one batch of rollouts guesses log Z
    assert 0 < row["tv"] <= 1
    assert corner(torch.tensor([[0, 9], [9, 9], [0, 0]]), 10).tolist() == [2, 3, 0]


def test_modes_are_counted_when_they_are_hit_first() -> None:
    task = make_task("bits", ways_config("bits 64, beta 100", "local", 0.0, 3))
    modes, hits = modes_of(task)
    found = Discoveries(hits)
    found.watch(task)
    known = task.landscape.modes  # pyright: ignore[reportAttributeAccessIssue]
    assert modes == len(known) == 6
    wrong = known[:1].clone()
    wrong[0, 0] = (wrong[0, 0] + 1) % 16
    task.landscape.scores(wrong)
    task.landscape.scores(known[2:4])
    task.landscape.scores(known[2:5])
    assert found.first_call == {2: 3, 3: 3, 4: 6}
    assert found.calls == 6


def rows(**calls: list[int | None]) -> list[dict[str, Any]]:
    """Rows of one task and noise level: calls of each seed by way."""
    names = {"constant_low": "constant .01", "constant_high": "constant .1"}
    return [
        {"cell": "corners 1 x 2", "alpha": 0.0, "way": names.get(way, way), "seed": seed, "calls": 9000}
        | {"calls_to_all_modes": value, "calls_to_goal": None}
        for way, values in calls.items()
        for seed, value in enumerate(values)
    ]


def test_factors_are_those_of_medians_and_never_count_more_than_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    three = rows(
        constant_low=[3000, 6000, None], constant_high=[None, None, 100], local=[1000, 2000, 9000], ppo=[10, 10, 10]
    )
    monkeypatch.setattr(exploration_tables, "hard_rows", lambda: three)
    assert exploration_tables.factor("corners 1 x 2", 0.0, "found") == 3.0
    assert exploration_tables.factor("corners 1 x 2", 0.0, "near") == 0.0
    assert "noise 0 on 1 of 1 tasks (corners 1 x 2)" in exploration_tables.thirds_line()
    assert (
        "| 6,000 (3,000 to never) | local | 2,000 (1,000 to 9,000) | 3.0 | ppo 10 |" in exploration_tables.best_table()
    )
    never = rows(constant_low=[None, None, 5], constant_high=[None] * 3, local=[1000, 2000, None], ppo=[None] * 3)
    monkeypatch.setattr(exploration_tables, "hard_rows", lambda: never)
    assert "| over 9,000 | local | 2,000 (1,000 to never) | at least 4.5 | none |" in exploration_tables.best_table()


def test_how_many_seeds_each_way_has_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    few = rows(constant_low=[1, 2, 3], local=[1, 2, 3], entropy=[4, 5], ppo=[None])
    monkeypatch.setattr(exploration_tables, "hard_rows", lambda: few)
    assert (
        "`constant .01`, `local`: 3 seeds; `entropy`: 2 seeds; `ppo`: 1 seed. A way" in exploration_tables.seeds_line()
    )
    elsewhere = [row | {"alpha": 0.1} for row in few if row["way"] == "local"]
    monkeypatch.setattr(exploration_tables, "hard_rows", lambda: few + elsewhere)
    assert "| ppo | - / . |" in exploration_tables.ways_table()
    assert exploration_tables.peer_said("corners 1 x 2", 0.0, "found") == "none"
    assert exploration_tables.peer_said("corners 1 x 2", 0.1, "found") == "not run"
    monkeypatch.setattr(exploration_tables, "hard_rows", list)
    assert exploration_tables.seeds_line() == "Not run yet."


def test_the_ways_of_most_interest_are_two_seeds_ahead_of_the_others(tmp_path: Path) -> None:
    wanted = exploration.study_of("grids", range(21, 26), tmp_path / "a.json")
    order = sorted(wanted.cells, key=lambda cell: cell.turn)
    place = {
        (cell.key["way"], cell.key["cell"], cell.key["alpha"], cell.key["seed"]): i for i, cell in enumerate(order)
    }
    grid = ("corners 4 x 8, R0 1e-4", 0.1)
    assert place["constant .01", *grid, 21] < place["local+best", *grid, 21] < place["local", *grid, 21]
    assert place["local", *grid, 23] < place["ppo", *grid, 21] < place["local", *grid, 24]


def test_a_function_is_solved_at_its_level_and_not_below() -> None:
    task = make_task("ehrlich", ways_config("Ehrlich V 20, length 15", "local", 0.0, 3))
    _, hits = modes_of(task)
    assert hits(torch.zeros(3, 15), torch.tensor([0.5, 0.75, 1.0])).tolist() == [0, 0]
