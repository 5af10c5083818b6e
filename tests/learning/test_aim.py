"""The exponent that is found while training: exact on a law that follows at once, and kept by checkpoints."""

import json
from pathlib import Path

import pytest
import torch
from small_runs import complaint, small_on

import sgfn
from sgfn.cli.commands import aimed
from sgfn.config import TrainConfig, from_dict, to_dict
from sgfn.landscapes.tasks import make_task
from sgfn.learning.aim import MOST, AimedExponent
from sgfn.learning.trainer import Trainer

SCORES = torch.linspace(0.05, 2.0, 40, dtype=torch.float64)


def mean_score(beta: float) -> float:
    """Mean score under R^beta / Z on forty objects."""
    return float((torch.softmax(beta * SCORES.log(), 0) * SCORES).sum())


def settled(exponent: AimedExponent, steps: int = 2000) -> float:
    """Where an exponent ends if the policy follows it at once; its batches are quantiles of the law, 4,000 each."""
    for step in range(steps):
        law = torch.softmax(exponent.beta * SCORES.log(), 0)
        rows = torch.searchsorted(law.cumsum(0), (torch.arange(4000, dtype=torch.float64) + 0.5) / 4000).clamp(max=39)
        exponent.update(SCORES[rows].log() - 1.0, torch.tensor(float(step)))
    return float(exponent.beta)


@pytest.mark.parametrize(("aim", "begin"), [(1.2, 8.0), (1.8, 3.0)])  # below, and above
def test_the_mean_score_is_the_one_that_was_asked_for(aim: float, begin: float) -> None:
    """Rewards are scores over e, so that units matter."""
    exponent = AimedExponent(aim, begin, norm=float(torch.tensor(1.0).exp()), steps=2000)
    beta = settled(exponent)
    assert mean_score(beta) == pytest.approx(aim, rel=0.01)
    assert abs(mean_score(begin) - aim) > 0.05
    assert exponent.missed() == ""
    wrong = AimedExponent(aim, begin, norm=1.0, steps=2000)  # scores in other units end elsewhere
    assert mean_score(settled(wrong)) != pytest.approx(aim, rel=0.05)


def test_auto_aims_half_way_and_an_unreachable_level_is_told() -> None:
    exponent = AimedExponent("auto", 1.0, norm=float(torch.tensor(1.0).exp()), steps=2000)
    beta = settled(exponent)
    assert mean_score(beta) == pytest.approx((mean_score(1.0) + 2.0) / 2, rel=0.02)
    far = AimedExponent(3.0, 1.0, norm=float(torch.tensor(1.0).exp()), steps=2000)
    assert 50 < settled(far) <= MOST
    assert far.missed().startswith("aim 3 is not reached: the mean score of samples is ")


def test_it_is_held_in_the_last_quarter_and_kept_by_checkpoints() -> None:
    def trainer() -> Trainer:
        task = make_task("tfbind8", small_on("tfbind8", aim=0.9, steps=8))
        return Trainer(task, torch.device("cpu"))

    own, betas = trainer(), []
    for _ in range(8):
        own.step()
        betas.append(own.read_meters()["beta"])
    assert betas == sorted(betas)
    assert len(set(betas[:6])) == 6
    assert len(set(betas[5:])) == 1
    assert own.exponent == pytest.approx(betas[-1])
    other = trainer()
    assert other.exponent == pytest.approx(3.0)
    other.load_networks({name: value.clone() for name, value in own.state().items()})
    assert other.exponent == own.exponent


def test_distances_are_to_the_target_of_the_exponent_that_was_found(tmp_path: Path) -> None:
    config = small_on("tfbind8", aim=0.9, steps=20)
    run = sgfn.train("tfbind8", config, tmp_path / "run", device="cpu")
    found = sgfn.evaluate(tmp_path / "run", samples=20, device="cpu")
    assert found["beta"] == pytest.approx(run.rows()[-1]["beta"])
    assert found["tv"] == pytest.approx(run.rows()[-1]["tv"])
    plain = sgfn.describe("tfbind8", TrainConfig())
    assert found["target_expected_reward"] > plain["target_expected_reward"] + 0.05
    assert run.read_config()[1] == config


def test_what_is_wrong_is_said_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert aimed(["train", "--beta", "auto"]) == ["train", "--aim", "auto"]
    assert aimed(["--beta=auto", "--beta", "3"]) == ["--aim=auto", "--beta", "3"]
    assert from_dict(TrainConfig, json.loads(json.dumps(to_dict(TrainConfig(aim="auto"))))).aim == "auto"
    said = complaint(capsys, ["train", "grid", "--aim", "x", "--out", str(tmp_path / "a")])
    assert said == "--aim must be a number, auto or None, got 'x'"
    said = complaint(capsys, ["train", "grid", "--aim", "1", "--reward.ramp", "3", "--out", str(tmp_path / "a")])
    assert said == "aim finds the exponent, and reward.ramp sets it: leave one of them out"
    said = complaint(capsys, ["train", "motif", "--aim", "1", "--out", str(tmp_path / "a")])
    assert said == "aim reads scores off rewards, and motif has its own rule for them: give --beta instead"
    said = complaint(capsys, ["train", "grid", "--method", "ppo", "--aim", "1", "--out", str(tmp_path / "a")])
    assert said.startswith("--aim does nothing here: it is read with --method gfn")
