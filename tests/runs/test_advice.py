"""What a run says of itself when it has learned little."""

import json
from pathlib import Path

import pytest
import torch
from small_runs import FLAGS, small_on

import sgfn
from sgfn.cli.commands import main
from sgfn.landscapes.tasks import make_task
from sgfn.learning.trainer import Trainer
from sgfn.runs.advice import NO_REWARD, advice, no_distance, on_floor

FLOOR = "the log-reward sits on its floor: hardly any sample scores above --reward.minimum"


def told(task: str, row: dict[str, float], **changes: object) -> list[str]:
    """Advice on a trainer that has not been trained, given a line of metrics."""
    return advice(Trainer(make_task(task, small_on(task, **changes)), torch.device("cpu")), row)


def test_rewards_on_their_floor_are_told() -> None:
    task = make_task("ehrlich", small_on("ehrlich"))
    floor = float(torch.tensor(task.config.reward.minimum).log())
    assert on_floor(task, floor + 0.01).startswith(FLOOR)
    assert on_floor(task, floor + 0.5) == on_floor(task, None) == ""
    assert on_floor(make_task("motif", small_on("motif")), -1e9) == ""  # nothing is clipped there


def test_a_law_near_the_uniform_one_is_told() -> None:
    assert told("tfbind8", {"log_reward": -1.0, "tv": 0.40})[0].startswith(
        "TV 0.400 is near that of a uniform policy (0.403)"
    )
    assert told("tfbind8", {"log_reward": -1.0, "tv": 0.2}) == []
    assert told("tfbind8", {"log_reward": -1.0}) == []


def test_terms_without_a_base_are_told_that_they_do_not_know_the_reward() -> None:
    row, changes = {"log_reward": -1.0, "tv": 0.40}, {"objective": "kl-entropy", "entropy__base": "none"}
    assert told("tfbind8", row, **changes) == [NO_REWARD]
    assert told("tfbind8", row, objective="kl-entropy")[0].startswith("TV 0.400 is near")


def test_why_there_is_no_distance_is_told_where_histories_are_too_many() -> None:
    changes = {"thought__layers": 1, "thought__width": 4, "noise__kind": "hidden"}
    (line,) = told("tfbind8", {"log_reward": -1.0}, **changes)
    assert line == "no TV to the target: the policy remembers, and 4.29e+09 histories are more than 2,000,000"
    plain = Trainer(make_task("tfbind8", small_on("tfbind8")), torch.device("cpu"))
    assert no_distance(plain) == plain.why_no_law == ""


def test_a_run_says_it_at_its_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In words, and as JSON; closing lines name the terms of the loss."""
    words = [
        "train",
        "grid",
        *FLAGS,
        "--steps",
        "1",
        "--grid.side",
        "6",
        "--noise.alpha",
        "0.1",
        "--out",
        str(tmp_path / "run"),
    ]
    assert main([*words, "--objective", "kl-entropy"]) == 0
    said = capsys.readouterr()
    assert "is near that of a uniform policy" in said.err
    assert "loss = base_loss (marginal tb) + 0.1 policy_kl_term + 0.1 dynamics_balance\n" in said.out
    assert main([*words, "--overwrite", "--json"]) == 0
    (notice,) = json.loads(capsys.readouterr().out)["notices"]
    assert "is near that of a uniform policy" in notice


def test_modes_by_a_rule_of_ones_own(tmp_path: Path) -> None:
    """The rule is named in the results, and a lower level or a smaller distance finds more of them."""
    sgfn.train("tfbind8", small_on("tfbind8", steps=1), tmp_path / "run", device="cpu")

    def modes(**rule: float) -> tuple[int, str]:
        found = sgfn.evaluate(tmp_path / "run", samples=200, device="cpu", max_states=1, **rule)
        assert found["tv_absent"] == "87,381 states and objects are more than 1"
        return found["modes_greedy"], found["modes_greedy_rule"]

    many, few = modes(mode_level=0.3, mode_distance=1), modes(mode_level=0.3, mode_distance=4)
    assert many[0] > few[0] > modes(mode_level=0.95, mode_distance=4)[0]
    assert many[1] == "score >= 0.3, hamming distance > 1"
    assert modes()[1] == "score >= 0.9, hamming distance > 2"
    for wrong, said in (
        ({"mode_distance": -1}, "mode_distance must lie in"),
        ({"mode_level": float("nan")}, "mode_level"),
    ):
        with pytest.raises(ValueError, match=said):
            modes(**wrong)
