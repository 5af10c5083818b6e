"""The study of published settings: in parts, each with its command; a run that diverges costs no other."""

import math
import sys
from pathlib import Path
from typing import Any

import pytest
from benchmarks import published

from sgfn.config.files import read_json, write_json
from sgfn.learning.trainer import Trainer


def study(monkeypatch: pytest.MonkeyPatch, out: Path, *words: str) -> list[dict[str, Any]]:
    """A few steps on the smaller grid at one noise level."""
    flags = ["grid", "--device", "cpu", "--steps", "20", "--alphas", "0.25", "--out", str(out), *words]
    monkeypatch.setattr(sys, "argv", ["published", *flags])
    few = published.Study(task="grid", preset="published-grid", alphas=(0.25, 0.5), methods=("tb", "db", "random"))
    monkeypatch.setitem(published.STUDIES, "grid", few)
    published.main()
    return read_json(out)["rows"]


def test_parts_keep_their_commands_and_are_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "a.json"
    first = study(monkeypatch, out, "--methods", "random", "--seeds", "2")
    both = study(monkeypatch, out, "--methods", "tb", "random", "--seeds", "2")
    assert both[:2] == first
    start = "python -m benchmarks.published grid --device cpu --steps 20 --alphas 0.25 --methods"
    assert [(row["method"], row["seed"], row["command"]) for row in both] == [
        ("random", 0, f"{start} random --seeds 2"),
        ("random", 1, f"{start} random --seeds 2"),
        ("tb", 0, f"{start} tb random --seeds 2"),
        ("tb", 1, f"{start} tb random --seeds 2"),
    ]
    data = read_json(out)
    bare = [{key: value for key, value in row.items() if key != "command"} for row in both]
    write_json(out, data | {"rows": bare, "command": "python -m benchmarks.published grid"})  # as it was written before
    assert {row["command"] for row in published.rows_of(out)} == {"python -m benchmarks.published grid"}


def test_a_run_that_diverges_costs_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step, out = Trainer.step, tmp_path / "a.json"

    def diverge(trainer: Trainer) -> None:
        step(trainer)
        if trainer.config.objective == "db" and trainer.config.seed == 1 and float(trainer.index) == 13:
            next(trainer.nets.parameters()).data.fill_(math.nan)

    monkeypatch.setattr(Trainer, "step", diverge)
    rows = study(monkeypatch, out, "--seeds", "2")
    assert [(row["method"], row["seed"], "failed" in row) for row in rows] == [
        *(("tb", 0, False), ("tb", 1, False), ("db", 0, False), ("db", 1, True), ("random", 0, False)),
        ("random", 1, False),
    ]
    lost, whole = rows[3], rows[2]
    assert lost["failed"].startswith("training left the finite numbers near step 13 ")
    assert "tv" not in lost
    assert math.isfinite(whole["tv"])
    assert [calls for calls, _ in lost["curve"]] == [calls for calls, _ in whole["curve"]][: len(lost["curve"])]
    assert 0 < len(lost["curve"]) < len(whole["curve"])
    assert "NaN" not in out.read_text()
    assert study(monkeypatch, out, "--seeds", "2") == rows  # it would end in the same way


def test_equal_compute_gives_everyone_the_updates_network_and_trajectories_of_kl_replay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = next(published.STUDIES["tfbind8-equal"].cells(None))[1]
    ours = published.configured(base, "kl-replay", 0)
    assert published.UPDATES == ours.steps * (1 + ours.replay.updates) == 13_739
    for name in published.EQUAL:
        config = published.configured(base, name, 0)
        assert (config.net, config.optim, config.noise) == (ours.net, ours.optim, ours.noise)
        repeats = {"ppo": config.rl.epochs, "sac": config.rl.updates}.get(config.method, 1 + config.replay.updates)
        assert abs(config.steps * repeats / published.UPDATES - 1) < 0.001
        first = config.method == "gfn"  # one batch more, to guess log Z
        assert (config.steps + first) * config.batch == 80_000
        assert config.method == "ppo" or config.replay.batch == 1024
    small = {"net__hidden": 8, "net__layers": 1, "replay__batch": 8, "replay__capacity": 16, "batch": 4}
    few = {"replay__updates": 1, "rl__epochs": 2, "rl__updates": 2}
    cut = {
        name: changes | {key: value for key, value in (small | few).items() if key in changes}
        for name, changes in published.METHODS.items()
    }
    monkeypatch.setattr(published, "METHODS", cut)
    flags = ["--device", "cpu", "--steps", "2", "--alphas", "0.1", "--variants", "0", "--seeds", "1"]
    monkeypatch.setattr(sys, "argv", ["published", "tfbind8-equal", *flags, "--out", str(tmp_path / "a.json")])
    published.main()
    rows = read_json(tmp_path / "a.json")["rows"]
    assert {row["method"] for row in rows} == {"kl-replay", *published.EQUAL}
    assert all(0 < row["tv"] < 1 for row in rows)
