"""Models of the library evaluated, saved and loaded again."""

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from small_fits import CONFUSED, NOISES, QUICK, WITHOUT_NET, count_a, encoder, fit, own_balance, refused
from small_runs import CPU, complaint, contents
from torch import Tensor, nn

import sgfn
from sgfn.cli.commands import main
from sgfn.config import TrainConfig
from sgfn.envs import SequenceEnv
from sgfn.noise import Noise, UniformSlip
from sgfn.runs.folder import Run
from sgfn.runs.parts import FILE


def test_evaluate_has_the_figures_of_the_command_line(tmp_path: Path) -> None:
    model = fit("words")
    model.save(tmp_path / "run")
    assert model.evaluate(samples=64) == sgfn.evaluate(tmp_path / "run", samples=64, device="cpu")


def test_a_fitted_task_is_the_trained_one(tmp_path: Path) -> None:
    """`sgfn.train` and `sgfn.fit` run the same loop: the folders are equal, bit for bit."""
    settings = {name: value for name, value in QUICK.items() if name not in ("progress", "device")}
    sgfn.train("words", TrainConfig().with_(**settings), tmp_path / "trained", device="cpu")
    fit("words").save(tmp_path / "fitted")
    assert contents(tmp_path / "trained") == contents(tmp_path / "fitted")
    fit("words", seed=1).save(tmp_path / "other")
    assert contents(tmp_path / "trained") != contents(tmp_path / "other")


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: type(noise).__name__)
@pytest.mark.parametrize("least", [3, 1])
def test_saved_and_loaded_it_draws_the_same(noise: Noise, least: int, tmp_path: Path) -> None:
    model = fit(sgfn.Sequences("AC", 3, least, noise=noise))
    model.save(tmp_path / "run")
    again = sgfn.load(tmp_path / "run")
    assert torch.equal(again.sample(100, seed=3).tokens, model.sample(100, seed=3).tokens)
    assert torch.equal(again.policy([""]), model.policy([""]))
    assert again.evaluate(samples=64) == model.evaluate(samples=64)
    assert again.metrics.equals(model.metrics)
    again.save(tmp_path / "copy")
    wanted, found = contents(tmp_path / "run"), contents(tmp_path / "copy")
    assert b'"model": "auto"' in wanted["config.json"]  # a copy names the noise model that it holds
    wanted["config.json"] = wanted["config.json"].replace(b'"model": "auto"', b'"model": "full"')
    assert found == wanted


def test_a_lambda_is_asked_for_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = fit(reward=lambda texts: count_a(texts))
    model.save(tmp_path / "run")
    wanted = f"give it again, sgfn.load('{tmp_path / 'run'}', reward=...)"
    with refused(wanted):
        sgfn.load(tmp_path / "run")
    assert wanted in complaint(capsys, ["evaluate", str(tmp_path / "run")])
    again = sgfn.load(tmp_path / "run", reward=count_a)
    assert again.sample(30, seed=0).to_frame().equals(model.sample(30, seed=0).to_frame())
    assert b"pickle" not in b"".join(contents(tmp_path / "run").values())


def test_the_command_line_reads_a_saved_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_scores.py").write_text("def ones_and_as(texts):\n    return [1 + t.count('A') for t in texts]\n")
    monkeypatch.chdir(tmp_path)
    run = tmp_path / "run"
    fit(reward="own_scores:ones_and_as", noise=CONFUSED, objective=own_balance).save(run)
    assert main(["evaluate", str(run), "--device", "cpu"]) == 0
    assert main(["sample", str(run), "-n", "5", "--out", "drawn.csv", "--device", "cpu"]) == 0
    assert main(["report", str(run)]) == 0
    drawn = pd.read_csv("drawn.csv")
    assert drawn["score"].tolist() == count_a(drawn["sequence"].tolist())
    source = __import__("sgfn.reports.sources", fromlist=["read_source"]).read_source(run)
    assert source.noise == "confusion matrix, 25.0% errors"
    assert source.objective.endswith(":own_balance")
    refused = complaint(capsys, ["train", "sequences", "--resume", "--out", str(run)])
    assert "was saved by model.save with Python objects of its own" in refused


def test_a_folder_is_not_overwritten_unasked(tmp_path: Path) -> None:
    fit().save(tmp_path / "run")
    before = contents(tmp_path / "run")
    with pytest.raises(ValueError, match="already holds a run"):
        fit(seed=1).save(tmp_path / "run")
    assert contents(tmp_path / "run") == before
    fit("words").save(tmp_path / "run", overwrite=True)
    assert FILE not in contents(tmp_path / "run")


class NoRepeats(SequenceEnv):
    """Sequences without a letter twice in a row: an environment of one's own."""

    def legal(self, state: Tensor) -> Tensor:
        begun = (self.written(state) > 0) & ~self.done(state)
        last = torch.arange(self.actions, device=state.device) == self.last(state)[..., None]
        return super().legal(state) & ~(last & begun[..., None])

    def slippable(self, state: Tensor) -> Tensor:
        return super().slippable(state) & self.legal(state)


def test_an_own_environment_is_given_again(tmp_path: Path) -> None:
    env = NoRepeats(length=4, alphabet="ABC", noise=UniformSlip(alpha=0.1))
    model = fit(env)
    assert all(a != b for text in model.sample(50, seed=0).sequences for a, b in pairwise(text))
    model.save(tmp_path / "run")
    with refused("an environment that cannot be found by name (test_saved_model:NoRepeats): give it again"):
        sgfn.load(tmp_path / "run")
    again = sgfn.load(tmp_path / "run", env=env)
    assert torch.equal(again.sample(50, seed=0).tokens, model.sample(50, seed=0).tokens)
    with refused("was trained on an environment with horizon 4, the one given has 5"):
        sgfn.load(tmp_path / "run", env=NoRepeats(length=5, alphabet="ABC", noise=UniformSlip(alpha=0.1)))


def test_an_own_encoder_is_given_again(tmp_path: Path) -> None:
    env = sgfn.Sequences("AC", 3, noise=0.2)
    model = sgfn.fit(env, reward=count_a, encoder=encoder(env.features), **WITHOUT_NET)
    model.save(tmp_path / "run")
    with refused("an encoder that cannot be found by name (torch.nn.modules.container:Sequential)"):
        sgfn.load(tmp_path / "run")
    again = sgfn.load(tmp_path / "run", encoder=encoder(env.features))
    assert torch.equal(again.policy(["", "A"]), model.policy(["", "A"]))
    with refused("does not fit"):
        sgfn.load(tmp_path / "run", encoder=nn.Linear(env.features, 3))


def test_trained_runs_are_models_too(words_run: Path) -> None:
    model = sgfn.load(words_run)
    assert model.step == 20
    assert torch.equal(model.sample(40, seed=5).tokens, Run(path=words_run).load(CPU).draw(40, 5).objects)


@pytest.mark.parametrize("damage", [("noise", "alpha", "x"), ("noise", "alpha", None), ("reward", "name", ...)])
def test_damage_of_what_is_saved_is_one_line(damage: tuple[str, str, Any], tmp_path: Path) -> None:
    fit(noise=0.2).save(tmp_path / "run")
    file = tmp_path / "run" / FILE
    data = json.loads(file.read_text())
    part, name, value = damage
    assert name in data[part]
    data[part] = {key: old for key, old in data[part].items() if key != name} | ({} if value is ... else {name: value})
    file.write_text(json.dumps(data))
    with pytest.raises(ValueError, match=re.escape(str(file))) as error:
        sgfn.evaluate(tmp_path / "run", samples=4, device="cpu")
    assert "\n" not in str(error.value)
