"""The library in memory: exact laws and probabilities, own rewards, objectives and encoders, saved and loaded again."""

import inspect
import math
import os
import signal
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from small_fits import CONFUSED, NOISES, QUICK, WITHOUT_NET, count_a, encoder, fit, own_balance, refused
from torch import Tensor, nn
from torch.testing import assert_close

import sgfn
from sgfn.config import TrainConfig
from sgfn.envs import laws
from sgfn.landscapes.base import Landscape
from sgfn.noise import ByPosition, HiddenRate, Noise, UniformSlip
from sgfn.objectives.trajectory_balance import trajectory_balance
from sgfn.runs import progress as shows
from sgfn.runs.fit import given_parts
from sgfn.runs.parts import as_landscape
from sgfn.runs.spaces import as_noise

# Environments and noise


@pytest.mark.parametrize(
    ("alphabet", "length", "least", "objects"),
    [("ACGT", 3, None, 64), ("dna", 3, 3, 64), ("AB", 3, 1, 14), ("protein", 2, 2, 400)],
)
def test_sequences_are_counted(alphabet: str, length: int, least: int | None, objects: int) -> None:
    env = sgfn.Sequences(alphabet, length, least)
    assert env.num_objects == objects == len(set(env.decode(env.all_objects())))
    assert env.stop == (least is not None and least < length)
    assert env.noise == UniformSlip(alpha=0.0)


def test_wrong_environments_and_noise_are_named() -> None:
    for wrong, words in (
        (lambda: sgfn.Sequences("AA", 3), "alphabet 'AA' repeats 'A'"),
        (lambda: sgfn.Sequences("AC", 0), "length must lie in [1, 512], got 0"),
        (lambda: sgfn.Sequences("AC", 3, 4), "min_length must lie in [1, 3], got 4"),
        (lambda: sgfn.Sequences("AC", 3, noise=1.0), "noise must lie in [0, 1), got 1.0"),
        (lambda: sgfn.Sequences("ACG", 3, noise=CONFUSED), "the confusion matrix is for 2 actions, the task has 3"),
        (lambda: sgfn.Grid(2, 1), "side must lie in [2, 4096], got 1"),
        (lambda: as_noise("much"), "noise must be a rate such as 0.1 or an object of sgfn.noise, got str"),
        (lambda: fit(noise=ByPosition(alphas=(0.1,))), "noise by position has 1 rates, the task has 3 positions"),
        (lambda: fit(noise=UniformSlip(alpha=0.1, stop=True)), "this environment has no stop action"),
    ):
        with refused(words):
            wrong()


def test_noise_of_a_task_an_environment_and_an_argument() -> None:
    assert fit("grid", grid__side=3, noise=0.1).env.noise == UniformSlip(alpha=0.1)
    assert fit("grid", grid__side=3).env.noise == UniformSlip(alpha=0.25)  # as `sgfn train` has it
    assert fit("words", noise=HiddenRate(mean=0.1, concentration=2.0)).config.noise.kind == "hidden"
    model = fit(noise=CONFUSED)
    assert model.env.noise is CONFUSED
    env = sgfn.Sequences("AC", 3, noise=0.2)
    assert fit(env, noise=0.3).env.noise == UniformSlip(alpha=0.3)
    assert env.noise == UniformSlip(alpha=0.2)  # the caller's own stays as it is
    assert fit(env).config.noise.alpha == 0.2


# Rewards


@pytest.mark.parametrize("kind", [list, np.array, torch.tensor, pd.Series, tuple])
def test_rewards_of_every_kind_train_the_same(kind: Any) -> None:
    model = fit(reward=lambda texts: kind([1.0 + text.count("A") for text in texts]))
    assert torch.equal(model.policy([""]), fit().policy([""]))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda texts: [1.0], "gave 1 scores for"),
        (lambda texts: [math.nan if t.endswith("C") else 1.0 for t in texts], "C' the score nan"),
        (lambda texts: [-1.0 if t.endswith("C") else 1.0 for t in texts], "C' the score -1, must be 0 or above"),
        (lambda texts: ["high" if t.endswith("C") else 1.0 for t in texts], "C' the score 'high', must be a number"),
        (lambda texts: 1.0, "must return a list of floats, one per string, got float"),
        (lambda texts: {}[texts[0]], "failed on '"),
        ("nowhere:function", "no module 'nowhere'"),
    ],
)
def test_a_wrong_reward_is_one_line(wrong: Any, words: str) -> None:
    with refused(words):
        fit(reward=wrong)


def test_a_reward_that_is_zero_everywhere_is_told() -> None:
    with pytest.warns(UserWarning, match="the log-reward sits on its floor"):
        fit(reward=lambda texts: [0.0 for _ in texts])


def test_one_string_is_no_list_of_sequences() -> None:
    with refused("sequences must be a list of texts, got the text 'ACA': write ['ACA']"):
        fit().log_prob("ACA")


def test_a_reward_replaces_the_landscape_of_a_named_task() -> None:
    model = fit("words", reward=lambda texts: [float(len(text)) for text in texts], beta=2.0)
    drawn = model.sample(20, seed=0)
    assert drawn.scores.tolist() == [len(text) for text in drawn.sequences]
    assert model.task.beta == 2.0
    own = fit("callable", reward=count_a, callable__length=4, callable__alphabet="AB")
    assert own.env.num_objects == 16
    with refused("sequences has no reward: give reward=, a function from a list of strings to their scores"):
        fit(reward=None)


class CountA(Landscape):
    maximum, mode_level = 4.0, 4.0

    def scores(self, objects: Tensor) -> Tensor:
        return 1.0 + (objects == 0).sum(-1).float()


def test_a_landscape_is_a_reward_too() -> None:
    drawn = fit(reward=CountA()).sample(20, seed=0)
    assert drawn.scores.tolist() == [1.0 + text.count("A") for text in drawn.sequences]
    assert "tv" in fit(reward=CountA()).metrics  # its scores are cheap: training looks at the exact distance
    assert "tv" not in fit().metrics


# Laws and probabilities


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: type(noise).__name__)
@pytest.mark.parametrize("least", [3, 1])
def test_log_prob_sums_to_one_and_equals_the_law(noise: Noise, least: int) -> None:
    model = fit(sgfn.Sequences("AC", 3, least, noise=noise))
    law = model.law()
    log_prob = model.log_prob(law["sequence"].tolist())
    expected = laws.law(model.env, lambda states: model.policy(states).double().exp())
    assert float(log_prob.exp().sum()) == pytest.approx(1.0, abs=1e-6)
    assert_close(log_prob.exp(), expected, atol=1e-7, rtol=1e-5)
    assert_close(torch.from_numpy(law["probability"].to_numpy()), expected, atol=1e-7, rtol=1e-5)
    blind = laws.law(model.env, lambda states: model.policy(states).double().exp(), noisy=False)
    assert (blind - expected).abs().max() > 1e-4  # and the noise matters


def test_the_law_has_the_target_beside_it() -> None:
    law = fit(beta=2.0).law()
    scores = np.array(count_a(law["sequence"].tolist()))
    assert law["score"].tolist() == scores.tolist()
    np.testing.assert_allclose(law["target"], scores**2 / (scores**2).sum(), rtol=1e-5)
    assert list(fit().law(target=False)) == ["sequence", "probability"]


def test_log_prob_on_a_graph_is_read_from_the_law() -> None:
    model = fit(sgfn.Grid(2, 3, noise=0.2), reward=lambda texts: [1.0 + text.count("2") for text in texts])
    law = model.law()
    assert_close(
        model.log_prob(["0,2", "1,1"]).exp().tolist(), law.set_index("sequence")["probability"][["0,2", "1,1"]].tolist()
    )
    with refused("entry 1 ('0,3')"):
        model.log_prob(["0,3"])
    large = fit(sgfn.Grid(8, 8), reward=lambda texts: [1.0] * len(texts))
    with refused("log_prob needs one path to each sequence or a space of at most 2,000,000 states"):
        large.log_prob(["0,0,0,0,0,0,0,0"])
    with refused("the exact answer needs"):
        large.law()


def test_policy_after_prefixes() -> None:
    model = fit(sgfn.Sequences("AC", 3, 2))
    found = model.policy(["", "A", "AC"])
    assert model.actions == ["A", "C", "stop"]
    assert_close(found.exp().sum(-1), torch.ones(3))
    assert found[:2, 2].tolist() == [-math.inf, -math.inf]  # too short to stop
    assert float(found[2, 2]) > -math.inf
    states = torch.tensor([[2, 2, 2], [0, 2, 2], [0, 1, 2]])
    assert torch.equal(model.policy(states), found)
    assert torch.equal(model.policy(["AC", ""]), found[[2, 0]])
    for wrong, words in (
        (["", "AG"], "entry 2 ('AG'): letters ['G'] are not in the alphabet AC"),
        (["ACAC"], "entry 1 ('ACAC'): 4 letters, a sequence has at most 3"),
        (["ACA"], "entry 1 ('ACA') is finished"),
        ("AC", "prefixes must be a list of texts"),
        (states[:, :2], "states must have the shape [N, 3], got [3, 2]"),
    ):
        with refused(words):
            model.policy(wrong)


def test_policy_on_a_grid() -> None:
    model = fit("grid", grid__side=3)
    assert model.actions == ["+0", "+1", "stop"]
    assert model.policy(["0,2"])[0, 1] == -math.inf
    assert model.policy(["0,1"])[0, 1] > -math.inf


# Samples


def test_samples_are_tensors_texts_and_a_table() -> None:
    model = fit(sgfn.Sequences("AC", 3, 1, noise=0.2))
    drawn = model.sample(50, seed=1)
    assert len(drawn) == 50
    assert drawn.sequences == model.env.decode(drawn.tokens)
    assert drawn.scores.tolist() == count_a(drawn.sequences)
    frame = drawn.to_frame()
    assert list(frame) == ["sequence", "score", "intended"]
    assert frame["intended"].tolist() == drawn.intended
    assert torch.equal(model.sample(50, seed=1).tokens, drawn.tokens)
    assert not torch.equal(model.sample(50, seed=2).tokens, drawn.tokens)
    torch.manual_seed(5)
    first, second = model.sample(50), model.sample(50)
    torch.manual_seed(5)
    assert torch.equal(model.sample(50).tokens, first.tokens)
    assert not torch.equal(second.tokens, first.tokens)


def test_greedy_intends_what_is_most_probable() -> None:
    model = fit(noise=0.5, steps=30)
    drawn = model.sample(200, greedy=True, seed=0)
    for step in range(3):
        best = model.policy([text[:step] for text in drawn.sequences]).argmax(-1)
        assert torch.equal(drawn.intentions[:, step], best)
    assert len(set(drawn.sequences)) > 1  # the noise acts all the same
    assert not torch.equal(model.sample(200, seed=0).intentions, drawn.intentions)


def test_temperature_tempers_the_policy() -> None:
    model = fit(noise=0.0, steps=30)
    heat, count = 0.5, 4000
    first = model.sample(count, heat, seed=0).tokens[:, 0]
    chance = torch.softmax(model.policy([""])[0] / heat, -1)
    share = float((first == 0).double().mean())
    error = math.sqrt(float(chance[0] * chance[1]) / count)
    assert abs(share - float(chance[0])) < 4 * error
    assert abs(share - float(model.policy([""])[0, 0].exp())) > 4 * error
    for wrong in ({"n": 0}, {"n": 1, "temperature": 0.0}, {"n": 1, "seed": -1}):
        with pytest.raises(ValueError, match="must"):
            model.sample(**wrong)


# Objectives and encoders


@pytest.mark.parametrize("least", [3, 1])
def test_an_own_trajectory_balance_gives_the_numbers_of_tb(least: int) -> None:
    env = sgfn.Sequences("AC", 3, least, noise=0.2)
    own, named = fit(env, objective=own_balance), fit(env, objective="tb")
    assert_close(own.metrics["loss"].tolist(), named.metrics["loss"].tolist(), rtol=1e-4, atol=1e-6)
    assert_close(own.policy([""]), named.policy([""]), rtol=1e-4, atol=1e-5)
    other = fit(env, objective=lambda scores, batch: 0.5 * own_balance(scores, batch))
    assert abs(other.metrics["loss"][0] - named.metrics["loss"][0]) > 1e-3


def test_a_wrong_objective_is_one_line() -> None:
    for wrong, words in (
        (lambda scores, batch: scores.log_pf, "must return a tensor of shape [8], one loss each, got shape [8, 3]"),
        (lambda scores, batch: trajectory_balance(scores, batch).mean(), "got shape []"),
        (lambda scores, batch: 1.0, "got float"),
        (lambda scores, batch: batch.log_reward, "returned losses without a gradient"),
        ("tbb", "did you mean 'tb'?"),
    ):
        with refused(words):
            fit(objective=wrong)
    with refused("method 'ppo' takes no objective of your own: use method gfn"):
        sgfn.fit("grid", method="ppo", steps=1, progress=False, objective=own_balance)


def test_an_own_encoder_is_trained_in_place() -> None:
    env = sgfn.Sequences("AC", 3, noise=0.2)
    module = encoder(env.features)
    before = module[0].weight.detach().clone()
    model = sgfn.fit(env, reward=count_a, encoder=module, **WITHOUT_NET)
    assert not torch.equal(module[0].weight, before)
    assert torch.equal(model.policy([""]), model.policy([""]))  # no dropout after training
    assert float(model.log_prob(env.decode(env.all_objects())).exp().sum()) == pytest.approx(1.0, abs=1e-6)


def test_a_wrong_encoder_is_one_line() -> None:
    env = sgfn.Sequences("AC", 3, noise=0.2)
    for wrong, words in (
        (nn.Linear(3, 4), f"the encoder must map features [*, {env.features}] to [*, H]; on [2, 3, {env.features}]"),
        (nn.Flatten(0), "it made ["),
        ("mpl", "did you mean 'mlp'?"),
    ):
        with refused(words):
            sgfn.fit(env, reward=count_a, encoder=wrong, **WITHOUT_NET)
    with refused("net__hidden would be ignored: the encoder is given as a module, leave it out"):
        sgfn.fit(env, reward=count_a, encoder=encoder(env.features), **QUICK)


def test_the_policy_module_learns_in_other_code() -> None:
    model = fit(steps=2)
    module, states = model.policy_module, model.env.initial(4)
    assert_close(module(states)[0], model.policy([""])[0])
    optimiser = torch.optim.Adam(module.parameters(), lr=0.05)
    before = float(model.policy([""])[0, 1])
    for _ in range(10):
        optimiser.zero_grad()
        (-module(states)[:, 1].mean()).backward()
        optimiser.step()
    assert float(model.policy([""])[0, 1]) > before + 0.5
    assert "dynamics" not in dict(module.named_children())["networks"]


# Settings, progress and stops


def test_the_defaults_are_those_of_the_command_line() -> None:
    given = inspect.signature(sgfn.fit).parameters
    for name in ("steps", "batch", "seed", "objective"):
        assert given[name].default == getattr(TrainConfig(), name)


def test_wrong_settings_are_named() -> None:
    for wrong, words in (
        ({"net__hiden": 4}, "did you mean 'net__hidden'?"),
        ({"betta": 3}, "did you mean 'beta'?"),
        ({"noise__alpha": 0.1}, "noise__alpha would be ignored: give noise= alone, leave it out"),
        ({"grid__side": 4}, "grid__side would be ignored: the environment is given, leave it out"),
        ({"device": "tpu"}, "device 'tpu' is unknown"),
        ({"task": "gird"}, "did you mean 'grid'?"),
        ({"task": "series"}, "task 'series' is learned by sgfn.Forecaster, not by sgfn.fit"),
    ):
        with refused(words):
            fit(**wrong)


def test_arguments_of_a_wrong_type_are_named() -> None:
    """Asked of the parts: in tests the public function's own types are checked before."""
    arguments = {"task": "grid", "reward": None, "noise": None, "objective": "tb", "encoder": None}
    assert given_parts(**arguments).plain
    for wrong, words in (
        ({"task": 3}, "task must be a name or an environment such as sgfn.Sequences, got int"),
        ({"objective": 3}, "objective must be a name or a function, got int"),
        ({"encoder": 3}, "encoder must be a name or a torch module, got int"),
    ):
        with refused(words):
            given_parts(**(arguments | wrong))
    with refused("reward must be a function from a list of strings to as many scores, got float"):
        as_landscape(3.0, sgfn.Sequences("AC", 3))


def test_progress_is_silent_a_function_or_a_bar(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fit()
    fit(progress=True)  # no terminal
    assert capfd.readouterr() == ("", "")
    heard: list[tuple[int, dict[str, Any]]] = []
    model = fit(progress=lambda step, row: heard.append((step, row)))
    assert [step for step, _ in heard] == [2, 4, 6] == model.metrics["step"].tolist()
    assert heard[0][1]["loss"] == model.metrics["loss"][0]
    monkeypatch.setenv("FORCE_COLOR", "1")
    fit(progress=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert "sequences" in err
    assert "6/6" in err


def test_a_notebook_bar_replaces_its_output(monkeypatch: pytest.MonkeyPatch) -> None:
    IPython = pytest.importorskip("IPython")  # noqa: N806
    shown: list[dict[str, str]] = []

    class Handle:
        def update(self, bundle: dict[str, str], *, raw: bool) -> None:
            shown.append(bundle)

    def display(bundle: dict[str, str], *, raw: bool, display_id: bool) -> Handle:
        shown.append(bundle)
        return Handle()

    assert not shows.in_notebook()
    monkeypatch.setattr(shows, "in_notebook", lambda: True)
    monkeypatch.setattr(IPython.display, "display", display)
    fit(progress=True)
    assert shown[0]["text/plain"] == "sequences  0/6"
    assert shown[-1]["text/plain"].startswith("sequences  6/6  loss ")
    assert 'value="6" max="6"' in shown[-1]["text/html"]


def test_ctrl_c_returns_what_was_trained() -> None:
    def interrupt(step: int, row: dict[str, Any]) -> None:
        if step == 4:
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    model = fit(steps=1000, progress=interrupt)
    assert model.step == 4
    assert "step 4 of 1,000" in repr(model)
    assert len(model.sample(3, seed=0)) == 3
    assert signal.getsignal(signal.SIGINT) is before

    calls = []

    def slow(texts: list[str]) -> list[float]:
        calls.append(len(texts))
        if len(calls) == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return count_a(texts)

    with pytest.warns(UserWarning, match="stopped at step 1 of 1,000: the model is what was trained so far"):
        fit(sgfn.Sequences("AC", 30), reward=slow, steps=1000)


def test_sequences_of_one_letter() -> None:
    """The smallest states there are: one integer wide, as numbered states are."""
    model = fit(sgfn.Sequences("ACG", 1, noise=0.3))
    policy = model.policy([""])[0].double().exp()
    assert_close(model.log_prob(["A", "C", "G"]).exp(), 0.7 * policy + 0.1, atol=1e-6, rtol=1e-5)
