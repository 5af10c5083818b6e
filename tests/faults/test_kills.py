"""Commands killed as they touch a file: the next command goes on, and what comes out is that of a run left alone."""

import random
from pathlib import Path

import pytest
from benchmarks.soak.kills import SCENARIOS, Kills

QUICK = ("train", "train a chain", "evaluate", "sample")
CASES = [(name, seed) for name in SCENARIOS for seed in range(3 if name in QUICK else 1)]


@pytest.mark.parametrize(("name", "seed"), CASES)
def test_a_killed_command_goes_on_as_if_nothing_had_been(name: str, seed: int, kills: Kills, tmp_path: Path) -> None:
    moment = kills.kill(SCENARIOS[name], random.Random(f"{name} {seed}"))
    assert kills.disturbed(SCENARIOS[name], tmp_path, [moment]) == [], moment


def test_killed_again_and_again(kills: Kills, tmp_path: Path) -> None:
    chance, train = random.Random(0), SCENARIOS["train"]
    assert kills.disturbed(train, tmp_path, [kills.kill(train, chance) for _ in range(4)]) == []


@pytest.mark.parametrize("size", [0, 50, 3000, 30_000])
@pytest.mark.parametrize("name", ["train", "train further", "compare", "forecast again"])
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
