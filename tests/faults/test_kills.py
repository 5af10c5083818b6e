"""Commands killed as they touch a file: the next command goes on, and what comes out is that of a run left alone."""

import random
from pathlib import Path

import pytest
from benchmarks.soak.kills import SCENARIOS, Kills

SEEDS = 3
"""Kills of each scenario, of which `make test` runs the first."""
DISKS = [
    (name, size) for name in ("train", "train further", "compare", "forecast again") for size in (0, 50, 3000, 30_000)
]
QUICK_DISKS = [("train", 50), ("train", 3000), ("train further", 30_000), ("compare", 3000), ("forecast again", 3000)]
VARIANTS = ("compare more", "forecast over an old one", "sample paths", "sample into parquet")
"""Scenarios much like others, which `make test` leaves out."""
KILLS = [(name, seed) for name in SCENARIOS for seed in range(SEEDS)]


@pytest.mark.parametrize(
    ("name", "seed"),
    [pytest.param(*kill, marks=[pytest.mark.long] * (kill[1] > 0 or kill[0] in VARIANTS)) for kill in KILLS],
)
def test_a_killed_command_goes_on_as_if_nothing_had_been(name: str, seed: int, kills: Kills, tmp_path: Path) -> None:
    moment = kills.kill(SCENARIOS[name], random.Random(f"{name} {seed}"))
    assert kills.disturbed(SCENARIOS[name], tmp_path, [moment]) == [], moment


def test_killed_again_and_again(kills: Kills, tmp_path: Path) -> None:
    chance, train = random.Random(0), SCENARIOS["train"]
    assert kills.disturbed(train, tmp_path, [kills.kill(train, chance) for _ in range(4)]) == []


@pytest.mark.parametrize(
    ("name", "size"), [pytest.param(*disk, marks=[pytest.mark.long] * (disk not in QUICK_DISKS)) for disk in DISKS]
)
def test_a_full_disk_loses_nothing(name: str, size: int, kills: Kills, tmp_path: Path) -> None:
    assert kills.disturbed(SCENARIOS[name], tmp_path, [{"file_size": size}]) == []


def test_a_kill_that_is_not_survived_is_seen(kills: Kills, tmp_path: Path) -> None:
    """The checks themselves: a file that is gone, one that is left, and one that is another."""
    kills.lay(SCENARIOS["train further"], tmp_path)
    (tmp_path / "run" / ".metrics.jsonl.x").write_text("")
    (tmp_path / "run" / "exact.json").unlink()
    (tmp_path / "stranger.txt").write_text("")
    found = kills.gone_on(SCENARIOS["train further"], tmp_path)
    assert found == ["wrong result: run/exact.json", "wrong result: stranger.txt"]  # what begins as ours does is swept
    kills.lay(SCENARIOS["sample packed"], tmp_path)
    (tmp_path / "run" / ".report.png.x").write_text("")
    assert "left file: run/.report.png.x" in kills.gone_on(SCENARIOS["sample packed"], tmp_path)
