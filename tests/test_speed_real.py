"""The contest on real tasks: its cells are tasks of this package, and its tables say what was measured and no more."""

from argparse import Namespace
from pathlib import Path
from typing import Any, cast

import pytest
from benchmarks import figures_speed_real, scaling, speed, speed_real, two_trees
from benchmarks.contest import DEFAULT, Job
from benchmarks.speed_peers import either_tree
from benchmarks.speed_peers.ours import settings

from sgfn.landscapes.tasks import make_task
from sgfn.learning.execution import replayed
from sgfn.nets.dynamics import model_kind

CELLS = {f"{device}-{cell.name}": (device, cell) for device, cells in speed_real.CELLS.items() for cell in cells}


@pytest.mark.parametrize("name", CELLS)
def test_a_cell_is_the_task_that_its_job_describes(name: str) -> None:
    device, cell = CELLS[name]
    for batch, chunk in cell.chunks.items():
        config = settings(cast(Job, {**DEFAULT, **cell.job(batch, device)}))
        env = make_task(cell.task, config).env
        assert (env.actions, env.outcomes, env.horizon) == (cell.vocab, cell.vocab, cell.length)
        assert (config.batch, config.net.encoder, config.net.hidden) == (batch, cell.encoder, cell.hidden)
        assert config.noise.alpha == (0.25 if cell.noisy else 0.0)
        assert model_kind(env, config.dynamics) == "shared"  # as in the JAX scan
        assert device == "cpu" or chunk % replayed(cell.length) == 0  # whole replays of a captured graph


def test_both_trees_train_what_the_contest_trains() -> None:
    for name in two_trees.LONG:
        job = cast(Job, {**DEFAULT, **CELLS[f"cpu-{name}"][1].job(64, "cpu")})
        assert either_tree.settings(job) == settings(job)
    turns = [{"before": (2.0, 1.0), "compile": (8.0, 2.0)}, {"before": (1.0, 1.0), "compile": (5.0, 3.0)}]
    found = two_trees.long_row("protein50", "compile", turns)
    assert (found["updates_per_second"], found["times_updates_per_second"]) == (6.5, 4.5)
    assert found["range_updates_per_core_second"] == [2.0, 3.0]


def test_sizes_of_a_file_are_not_measured_again() -> None:
    asked = Namespace(device="cpu", cells=["motif30"], unroll=0)
    assert [turns.job["batch"] for turns in speed_real.missing(asked, [])] == [64]
    assert speed_real.missing(asked, [{"cell": "motif30", "batch": 64}]) == []


def row(who: str, rate: float, **more: Any) -> dict[str, Any]:
    size = {"cell": "bits", "task": "bits", "objective": "stochastic", "vocab": 256, "length": 15, "batch": 16}
    net = {"encoder": "transformer", "hidden": 64, "layers": 3, "who": who, "about": f"{who} 1 on a GPU"}
    rates = {"updates_per_second": rate, "lowest": rate, "highest": rate, "ours_is_times": 900.0 / rate}
    return {**size, **net, **rates, "memory_mib": 1, "device_memory_mib": 20.0, "start_seconds": 3.0, **more}


def test_the_table_shows_the_faster_way_of_jax_and_what_failed() -> None:
    machine = {"device": "some GPU", "torch": "2"}
    rows = [row("ours", 900), row("jax", 300), row("jax-loop", 450)]
    rows.append(
        {**{k: rows[0][k] for k in speed_real.SHOWN}, "who": "uncompiled", "about": "", "error": "out of memory"}
    )
    table = figures_speed_real.table_of("cuda", {"command": "python -m x", "machine": machine, "rows": rows})
    line = (
        "| bits, 256 letters, length 15 | transformer 64 x 3 | 16 | **900** [900, 900] | out of memory | 450 (2.00 x) |"
    )
    assert line in table
    assert "20 / - / 20" in table
    assert "300" not in table


def test_nothing_is_claimed_without_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures_speed_real, "RESULTS", tmp_path)
    assert (figures_speed_real.real_table(), figures_speed_real.growth_table()) == ("", "")
    assert figures_speed_real.two_trees_long_table() == ""


def test_slopes_are_exponents_and_cut_off_studies_are_balanced() -> None:
    rows = [{"encoder": "transformer", "axis": "length", "length": n, "seconds": 3 * n**1.5} for n in (8, 32, 512)]
    assert [(s["all"], s["last"]) for s in scaling.slopes(rows)] == [(1.5, 1.5)]
    assert [(s["all"] > 1.5, s["last"] > 1.5) for s in scaling.slopes([*rows[:2], rows[2] | {"seconds": 1e9}])] == [
        (True, True)
    ]
    order = scaling.sizes("cuda")
    assert {(axis, size["encoder"]) for axis, size in order[:6]} == {
        (a, e) for a in scaling.AXES for e in scaling.ENCODERS
    }
    assert len(order) == 42 > len(scaling.sizes("cpu"))


def test_sizes_of_the_growth_study_can_be_built() -> None:
    sizes = {tuple(size.items()): size for _, size in scaling.sizes("cuda")}
    for size in sizes.values():
        if size["encoder"] == "mlp" and size["batch"] == scaling.BASE["batch"]:
            task = scaling.task_of(size)
            assert (task.env.horizon, task.env.actions) == (size["length"], size["vocab"])
            assert task.landscape.scores(task.env.initial(2) * 0).shape == (2,)


def test_the_contest_ends_in_time_and_keeps_what_it_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 1.0, 61.0])
    monkeypatch.setattr(speed, "time", Namespace(monotonic=lambda: next(clock)))
    monkeypatch.setattr(speed, "present", lambda _: [])
    asked = Namespace(device="cpu", widths=[256], batches=[16], rounds=1, seconds=1.0, at_once=1, minutes=1.0)
    asked.out, shown = tmp_path, list[dict[str, Any]]()
    monkeypatch.setattr(speed.Turns, "take", lambda self, *_: shown.append(self.shown) or [])
    speed.contests(asked, "")
    assert [size["objective"] for size in shown] == ["tb"]  # the other was due after a minute
    assert (tmp_path / "speed_cpu.json").is_file()
