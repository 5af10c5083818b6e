"""Arguments of the library that are wrong, in one line each."""

import re
from collections.abc import Iterator

import jaxtyping
import numpy as np
import pytest
import torch

import sgfn
from sgfn.envs import SequenceEnv

WRONG = {
    "a text for a length": (lambda: sgfn.Sequences("ACG", "3"), "length must be a whole number, got '3'"),
    "a number for letters": (lambda: sgfn.Sequences(3.5, 3), "alphabet must be a text"),
    "a list for letters": (lambda: sgfn.Sequences(["A", "C"], 3), "alphabet must be a text"),
    "half a coordinate": (lambda: sgfn.Grid(1.5, 3), "ndim must be a whole number, got 1.5"),
    "words for a matrix": (lambda: sgfn.ConfusionMatrix(matrix=[["a"]]), "a confusion matrix must be a table of num"),
    "a row for a matrix": (lambda: sgfn.Mixtures(matrix=[0.5, 0.5]), "a matrix of mixtures must be a table"),
    "a rate for a noise": (lambda: SequenceEnv(length=3, alphabet="AC", noise=0.1), "noise must be a noise object"),
    "a word for progress": (lambda: sgfn.fit("words", progress="yes"), "progress must be True, False or a function"),
    "layers of no net": (lambda: fit(method="random", net__hidden=512), "net__hidden does nothing here"),
    "chains with a net": (lambda: fit(method="mh", net__hidden=512), "net__hidden does nothing here"),
    "dynamics of ppo": (lambda: fit(method="ppo", dynamics__mode="known"), "dynamics__mode does nothing here"),
    "ppo by a table": (
        lambda: fit(method="ppo", net__encoder="table"),
        "method 'ppo' reads states one by one: use net__encoder mlp",
    ),
    "an objective of scores alone": (lambda: fit(objective=lambda scores: scores), "objective "),
    "a word for a seed": (lambda: fit().sample(2, seed="a"), "seed must be a whole number, got 'a'"),
    "a word for a count": (lambda: fit().sample("3"), "n must be a whole number, got '3'"),
    "half a seed": (lambda: fit().sample(2, seed=0.5), "seed must be a whole number, got 0.5"),
    "a word for greedy": (lambda: fit().sample(2, greedy="no"), "greedy must be True or False, got 'no'"),
    "a word for states": (lambda: fit().law(max_states="2"), "max_states must be a whole number, got '2'"),
    "a number for a device": (lambda: fit(device=7), "device must be a name (auto, cpu, cuda), got 7"),
    "a text for a width": (lambda: fit(net__hidden="64"), "net__hidden must be a whole number, got '64'"),
    "no width": (lambda: fit(net__hidden=0), "net__hidden must lie in [1, 65536], got 0"),
    "a width of nothing": (lambda: fit(hidden=5), "argument 'hidden' is unknown; did you mean 'net__hidden' or"),
    "a slip": (lambda: fit(net__hiden=5), "argument 'net__hiden' is unknown: choose from net__encoder, net__hidden"),
    "a default that nothing reads": (lambda: fit(kl__flow="tb"), "kl__flow does nothing here: it is read with"),
    "nothing for prefixes": (lambda: fit().policy(None), "prefixes must be a list of texts, got NoneType"),
    "numbers for prefixes": (lambda: fit().policy([1]), "prefixes must be texts, got 1"),
    "a number for sequences": (lambda: fit().log_prob(3), "sequences must be a list of texts, got int"),
    "a list for states": (lambda: fit().policy_module([[0]]), "states of SequenceEnv must be a tensor of integers"),
    "a number for a folder": (lambda: fit().save(3), "path must be the name of a folder, got 3"),
    "no folder": (lambda: fit().save(""), "path must be the name of a folder, got ''"),
    "nothing for a folder": (lambda: sgfn.load(None), "path must be the name of a folder, got None"),
    "a number for an environment": (lambda: sgfn.load("here", env=5), "env must be an environment, got int"),
    "a class for an encoder": (lambda: sgfn.load("here", encoder=dict), "encoder must be a torch module, got type"),
    "a column of scores": (
        lambda: fit(reward=lambda texts: torch.ones(len(texts), 1)),
        "test_fit:<lambda>.<locals>.<lambda> must return a list of floats, one per string, got Tensor of shape [2, 1]",
    ),
    "nothing for a count": (lambda: fit().evaluate(samples=None), "samples must be a whole number, got None"),
    "numbers for sequences": (lambda: fit().log_prob([1, 2]), "sequences must be texts, got 1"),
    "nothing for a score": (
        lambda: fit(reward=lambda texts: [None] * len(texts)),
        "test_fit:<lambda>.<locals>.<lambda> gave ",
    ),
    "a dictionary for settings": (lambda: sgfn.train("grid", {}, "nowhere"), "config must be a TrainConfig, got dict"),
    "a text for methods": (
        lambda: sgfn.compare("grid", sgfn.TrainConfig(), "nowhere", methods="tb"),
        "methods must be a list of names, got the text 'tb': write ['tb']",
    ),
    "stop without noise": (
        lambda: fit(noise__alpha=0.0, noise__stop=True),
        "noise__stop does nothing here: it is read with noise__alpha above 0",
    ),
}


@pytest.fixture(autouse=True)
def unchecked() -> Iterator[None]:
    """Types are checked in tests alone: users see the messages of the package."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


def fit(**settings) -> sgfn.Model:
    return sgfn.fit("words", steps=1, batch=2, progress=False, log__exact_every=0, **settings)


@pytest.mark.parametrize("name", WRONG)
def test_one_line_says_what_is_wrong(name: str) -> None:
    call, words = WRONG[name]
    with pytest.raises(ValueError, match="^" + re.escape(words)) as found:
        call()
    assert "\n" not in str(found.value)


def test_what_is_read_is_taken() -> None:
    assert fit(noise__alpha=0.1, noise__stop=True).env.noise.stop
    assert fit(noise=sgfn.UniformSlip(alpha=0.0, stop=True)).env.noise.stop  # an object, as a loop over rates has it
    assert fit(method="ppo", net__hidden=32).config.net.hidden == 32


@pytest.mark.parametrize("make", [list, np.array, lambda rows: torch.tensor(rows)])
def test_matrices_may_be_lists_and_arrays(make) -> None:
    rows = [[0.9, 0.1], [0.2, 0.8]]
    noise = sgfn.ConfusionMatrix(matrix=make(rows))
    assert noise.matrix.dtype == torch.float64
    assert sgfn.Sequences("AC", 2, noise=noise).kernel(torch.full((1, 2), 2))[0, 1].tolist() == pytest.approx(rows[1])


def test_no_prefixes_and_half_samples() -> None:
    model = fit()
    assert model.policy([]).shape == (0, 5)
    assert model.policy([""]).shape == (1, 5)
    with pytest.raises(ValueError, match=r"n must be a whole number, got 1.5"):
        model.sample(1.5)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    "state", [[9, 9, 9, 9, 9, 9, 9], [-1, 4, 4, 4, 4, 4, 4], [4, 0, 4, 4, 4, 4, 4], [5, 0, 4, 4, 4, 4, 4]], ids=str
)
def test_what_is_no_state_gets_no_answer(state: list[int]) -> None:
    """Numbers of a table, or features of what cannot be, would be those of another state."""
    model = fit()
    for ask in (model.policy, model.policy_module, model.learner.policy):
        with pytest.raises(ValueError, match=r"is no state of SequenceEnv$"):
            ask(torch.tensor([state]))
    with pytest.raises(ValueError, match=r"states of SequenceEnv must be integers, got torch\.float32"):
        model.policy_module(torch.full((1, 7), 4.0))
    assert model.policy_module(torch.full((2, 3, 7), 4)).shape == (2, 3, 5)


def test_a_frozen_encoder_stays_as_it_is() -> None:
    """Its features are those of another training, say; policy and flow on top of it learn."""
    env = sgfn.Sequences("AC", 3)
    encoder = torch.nn.Sequential(torch.nn.Linear(env.features, 8).requires_grad_(False), torch.nn.Linear(8, 4))
    frozen, own = encoder[0].weight.clone(), encoder[1].weight.clone()
    before = sgfn.fit(env, reward=count_a, encoder=encoder, steps=1, progress=False).policy([""])
    model = sgfn.fit(env, reward=count_a, encoder=encoder, steps=30, progress=False)
    assert torch.equal(encoder[0].weight, frozen)
    assert not torch.equal(encoder[1].weight, own)
    assert not torch.equal(model.policy([""]), before)


def count_a(texts: list[str]) -> list[float]:
    return [1.0 + text.count("A") for text in texts]


def test_warnings_name_arguments() -> None:
    with pytest.warns(UserWarning, match=r"above reward__minimum .* \(offline__file with offline__share 0\.25\)"):
        fit(reward=lambda texts: [0.0] * len(texts))
