"""Parts of objectives: means by hand, sums that make up the loss, in every way that a step is run."""

import math
import sys
from types import ModuleType
from typing import Any

import pytest
import torch
from exact_tables import balanced
from hypothesis import given
from hypothesis import strategies as st
from small_runs import small_on
from torch import Tensor
from torch.testing import assert_close

import sgfn
from sgfn.config import TrainConfig
from sgfn.envs.trajectories import Episodes, Trajectories, WholeEpisodes
from sgfn.landscapes.tasks import make_task
from sgfn.learning.scoring import score
from sgfn.learning.trainer import METERS, Trainer
from sgfn.objectives.detailed_balance import detailed_balance
from sgfn.objectives.kl import outcome_flow_kl
from sgfn.objectives.kl_entropy import kl_entropy
from sgfn.objectives.making import loss_words, make_objective
from sgfn.objectives.parts import MEANINGS, explain, step_means
from sgfn.objectives.scores import Scores, log_ratio, masked_mean
from sgfn.objectives.vargrad import log_variance, log_z_part

CPU = torch.device("cpu")


def trainer(task: str, **changes: Any) -> Trainer:
    return Trainer(make_task(task, small_on(task, **changes)), CPU)


def test_step_means_count_every_trajectory_once() -> None:
    valid = torch.tensor([[True, True, False], [True, False, False]])
    zeros = torch.zeros(2, 3, dtype=torch.int64)
    batch = Episodes(intended=zeros, realised=zeros, valid=valid, log_reward=torch.zeros(2))
    values = torch.tensor([[1.0, 3.0, torch.inf], [10.0, torch.nan, 7.0]])
    found = step_means(batch, {"a": values, "b": 2 * values})
    assert {name: float(value) for name, value in found.items()} == {"a": 6.0, "b": 12.0}
    assert float(found["a"]) != pytest.approx(14 / 3)  # the mean over all steps of the batch


def test_step_means_without_padding_are_the_same() -> None:
    """A batch that is known to be whole has the shorter sum; with padding that would be another number."""
    zeros, values = torch.zeros(4, 3, dtype=torch.int64), torch.randn(4, 3)
    known = {"intended": zeros, "realised": zeros, "log_reward": torch.zeros(4)}
    every = torch.ones(4, 3, dtype=torch.bool)
    found = step_means(WholeEpisodes(valid=every, **known), {"a": values})["a"]
    torch.testing.assert_close(found, step_means(Episodes(valid=every, **known), {"a": values})["a"])
    padded = every.clone()
    padded[0, 1:] = False
    assert float(found) != pytest.approx(float(step_means(Episodes(valid=padded, **known), {"a": values})["a"]))


# One weighting of steps: detailed balance, projection, policy KL and dynamics balance


def test_steps_are_weighted_alike_on_variable_lengths() -> None:
    """A term that is the same number at every step of a trajectory has that number for its value, in all of them."""
    own = trainer("words", objective="kl-entropy", entropy__base="db", batch=16)
    batch = own.general.collect(own.nets, own.general.draw(own.generator, 1.0))[1]
    assert len(set(batch.length.tolist())) > 2
    each = torch.arange(1.0, 17.0)[:, None].expand(batch.valid.shape)
    zeros = torch.zeros_like(each)
    heads = {"log_pf": torch.where(batch.valid, each.sqrt(), 0.0), "log_dynamics": zeros, "log_pb": zeros}
    flow = torch.zeros(16, each.shape[1] + 1)
    scores = Scores(**heads, log_flow=flow, log_z=torch.zeros(()), projection=each)
    level = Trajectories(**(vars(batch) | {"log_reward": torch.zeros(16)}))
    assert_close(detailed_balance(scores, level), each[:, 0])
    assert_close(outcome_flow_kl(scores, level, lambda s, b: torch.zeros(16)), each[:, 0])
    assert_close(masked_mean(each, batch.valid), each[:, 0])


def test_the_dynamics_balance_of_a_trajectory_does_not_depend_on_its_batch() -> None:
    """With ends by state, where no quantile ties trajectories together."""
    own = trainer("words", objective="kl-entropy", batch=16)
    general = own.general
    batch = general.collect(own.nets, general.draw(own.generator, 1.0))[1]
    config = own.config.with_(
        entropy__variant="per-state", entropy__weight_kl=0.0, entropy__weight_dynamics=1.0
    ).entropy

    def losses(rows: slice) -> Tensor:
        part = Trajectories(**{name: value[rows] for name, value in vars(batch).items()})
        kernel = general.noise_kernel(part.states[:, :-1])
        scores = score(own.nets, part, "marginal", kernel)
        return kl_entropy(scores, part, lambda s, b: torch.zeros_like(b.log_reward), config)

    assert_close(losses(slice(0, 16))[:5], losses(slice(0, 5)))
    assert len({round(x, 5) for x in losses(slice(0, 16)).tolist()}) > 3


# Sums that make up the loss


SUMS = {
    "kl": ({"kl__weight": 0.3}, lambda m: m["flow_loss"] + 0.3 * m["projection_kl"]),
    "kl-entropy": (
        {"entropy__weight_kl": 0.2, "entropy__weight_dynamics": 0.4},
        lambda m: m["base_loss"] + 0.2 * m["policy_kl_term"] + 0.4 * m["dynamics_balance"],
    ),
    "kl-entropy on kl": (
        {"objective": "kl-entropy", "entropy__base": "kl", "entropy__weight_kl": 0.2},
        lambda m: m["flow_loss"] + m["projection_kl"] + 0.2 * m["policy_kl_term"] + 0.1 * m["dynamics_balance"],
    ),
    "kl-entropy alone": (
        {"objective": "kl-entropy", "entropy__base": "none", "entropy__weight_kl": 0.2},
        lambda m: 0.2 * m["policy_kl_term"] + 0.1 * m["dynamics_balance"],
    ),
}


@pytest.mark.parametrize("task", ["words", "tfbind8"])
@pytest.mark.parametrize("name", SUMS)
def test_logged_terms_add_up_to_the_loss(name: str, task: str) -> None:
    """On variable lengths by the general backend, on one length by the other."""
    changes, total = SUMS[name]
    own = trainer(task, **({"objective": name} | changes), optim__lr=0.05, optim__warmup=0)
    for _ in range(3):
        own.step()
    meters = own.read_meters()
    assert meters["loss"] == pytest.approx(total(meters), rel=1e-5)
    assert set(meters) <= {*METERS, *MEANINGS, "beta"}
    assert ("log_pf" in meters) == ("alone" not in name)
    assert "mu" not in meters
    if "policy_kl" in meters and own.config.entropy.variant == "quantile" and task == "tfbind8":
        ratio = meters["policy_kl"] - meters["policy_kl_term"]  # log r_gamma is nearly the same at all three steps
        assert ratio == pytest.approx(math.log(meters["r_gamma"]), abs=1e-3)


def test_terms_alone_learn_nothing_of_the_reward() -> None:
    """Why the policy KL cannot stand alone: whatever the reward, the weights become the same."""

    def trained(base: str, seed_reward: float) -> Tensor:
        own = trainer("words", objective="kl-entropy", entropy__base=base, reward__minimum=seed_reward)
        for _ in range(3):
            own.step()
        return torch.cat([p.flatten() for p in own.nets.parameters() if p.ndim])

    assert torch.equal(trained("none", 1e-3), trained("none", 0.4))
    assert not torch.equal(trained("tb", 1e-3), trained("tb", 0.4))


@pytest.mark.parametrize(
    ("form", "names"),
    [
        ("marginal", {"log_flow", "log_pf", "end_flow"}),
        ("published", {"log_flow", "log_pf", "log_dynamics", "log_pb", "end_flow"}),
        ("blind", {"log_flow", "log_pf", "end_flow"}),
    ],
)
def test_terms_of_the_balance_are_logged_and_no_constants(form: str, names: set[str]) -> None:
    own = trainer("words", objective="db", form=form)
    own.step()
    meters = own.read_meters()
    assert set(meters) - {*METERS, "log_z", "beta"} == names
    assert all(meters[name] != 0 for name in names)
    assert meters["end_flow"] == pytest.approx(meters["log_reward"] * own.task.beta, rel=1e-5)


def test_entropy_is_logged_on_request_for_any_objective() -> None:
    own = trainer("tfbind8", objective="tb", log__entropy=True)
    other = trainer("tfbind8", objective="tb")
    for one in (own, other):
        one.step()
    meters, plain = own.read_meters(), other.read_meters()
    assert {"r_gamma", "H_high", "H_low", "policy_kl"} <= set(meters) - set(plain)
    assert 1 <= meters["r_gamma"] <= 2
    assert all(meters[name] == pytest.approx(plain[name], rel=1e-6) for name in plain)  # to look changes nothing


def test_the_exponent_is_logged_as_it_ramps() -> None:
    own = trainer("tfbind8", beta=3.0, reward__ramp=2.0)
    seen = []
    for _ in range(3):
        own.step()
        seen.append(own.read_meters()["beta"])
    assert seen == pytest.approx([1 + 2 * (1 - 1 / (1 + t / 2)) for t in (1, 2, 3)])


# Objectives of others


def two_terms(scores: Scores, batch: Episodes) -> tuple[Tensor, dict[str, Tensor]]:
    """Trajectory balance and a term of its own, which it tells of."""
    square, size = (scores.log_z + log_ratio(scores, batch)).square(), scores.log_pf.square().mean(1)
    return square + 0.5 * size, {"square": square, "size": size}


@pytest.mark.parametrize("task", ["words", "tfbind8"])
def test_an_objective_of_others_tells_its_parts(task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("own_parts")
    module.__file__, module.two_terms = __file__, two_terms  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "own_parts", module)
    for changes in ({"objective": "own_parts:two_terms"}, {"objective": two_terms}):
        model = sgfn.fit(task, steps=2, batch=8, progress=False, net__hidden=8, log__every=1, **changes)
        for row in model.rows:
            assert row["loss"] == pytest.approx(row["square"] + 0.5 * row["size"], rel=1e-5)
            assert row["square"] > 0 < row["size"]
    assert loss_words(TrainConfig(objective="own_parts:two_terms")) == "loss = own_parts:two_terms"


@pytest.mark.parametrize(
    ("parts", "words"),
    [([1], "must be \\(losses, parts\\) with parts a dict"), ({"loss": torch.ones(1)}, "'loss': choose a word")],
)
def test_wrong_parts_are_refused_in_one_line(parts: Any, words: str) -> None:
    def wrong(scores: Scores, batch: Episodes) -> Any:
        return two_terms(scores, batch)[0], parts

    with pytest.raises(ValueError, match=words):
        sgfn.fit("words", objective=wrong, steps=1, batch=8, progress=False, net__hidden=8)


# What a loss is made of, in words


WORDS = {
    "loss = marginal tb": {},
    "loss = published db": {"objective": "db", "form": "published"},
    "loss = flow_loss (db over outcomes) + 2 projection_kl": {
        "objective": "kl",
        "kl__flow": "db",
        "kl__weight": 2.0,
    },
    "loss = base_loss (marginal tb) + 0.1 policy_kl_term + 0.1 dynamics_balance": {"objective": "kl-entropy"},
    "loss = base_loss (published db) + 0.1 policy_kl_term; off: dynamics_balance": {
        "objective": "kl-entropy",
        "form": "published",
        "entropy__base": "db",
        "entropy__weight_dynamics": 0.0,
    },
    "loss = 0.1 policy_kl_term + 0.1 dynamics_balance": {"objective": "kl-entropy", "entropy__base": "none"},
}


@pytest.mark.parametrize("words", WORDS)
def test_the_loss_in_words(words: str) -> None:
    config = TrainConfig().with_(**WORDS[words])
    assert loss_words(config) == words
    make_objective(config)


# VarGrad


@pytest.mark.parametrize("form", ["marginal", "published", "blind"])
@pytest.mark.parametrize("name", ["fixed-L3-V2", "grid-2D-3"])
def test_the_variance_vanishes_only_at_the_exact_solution(name: str, form: str) -> None:
    """For every trajectory there, and log Z is the exact one; one wrong step is noticed by all of the batch."""
    scorer, batch, kernel = balanced(name, 0.3, form)
    scores = score(scorer, batch, form, kernel)
    assert log_variance(scores, batch).max() < 1e-18
    assert float(log_z_part(scores, batch)["log_z"]) == pytest.approx(float(scorer.log_z), abs=1e-9)
    wrong = scores.log_pf.clone()
    wrong[0, 0] += 0.1
    bad = Scores(**(vars(scores) | {"log_pf": wrong}))
    assert log_variance(bad, batch).min() > 1e-12
    lifted = Trajectories(**(vars(batch) | {"log_reward": batch.log_reward + 5.0}))
    assert log_variance(scores, lifted).max() < 1e-16  # another Z changes nothing
    assert float(log_z_part(scores, lifted)["log_z"]) == pytest.approx(float(scorer.log_z) + 5.0, abs=1e-9)


@given(st.integers(2, 9), st.integers(0, 99))
def test_its_gradient_is_that_of_balance_with_the_best_log_z(count: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    valid = torch.ones(count, 3, dtype=torch.bool)
    zeros = torch.zeros(count, 3, dtype=torch.int64)
    reward = torch.randn(count, generator=generator, dtype=torch.float64)
    batch = Episodes(intended=zeros, realised=zeros, valid=valid, log_reward=reward)
    log_pf = torch.randn(count, 3, generator=generator, dtype=torch.float64).requires_grad_()
    nothing = torch.zeros_like(log_pf)
    scores = Scores(log_pf=log_pf, log_dynamics=nothing, log_pb=nothing, log_flow=None, log_z=nothing[0, 0])
    (found,) = torch.autograd.grad(log_variance(scores, batch).mean(), log_pf)
    best = -log_ratio(scores, batch).detach().mean()
    (wanted,) = torch.autograd.grad((best + log_ratio(scores, batch)).square().mean(), log_pf)
    assert_close(found, wanted)
    (off,) = torch.autograd.grad((best + 0.5 + log_ratio(scores, batch)).square().mean(), log_pf)
    assert not torch.allclose(off, wanted)


def test_it_trains_without_log_z_and_refuses_a_single_trajectory() -> None:
    own = trainer("tfbind8", objective="vargrad", optim__warmup=0)
    before = own.nets.log_z.detach().clone()
    own.step()
    assert torch.equal(own.nets.log_z, before)
    assert own.read_meters()["log_z"] != float(before)
    explained = explain(make_objective(own.config), *_scored(own))
    assert set(explained.parts) == {"log_z"}
    with pytest.raises(ValueError, match="'vargrad' compares trajectories of a batch: set batch to 2 or more"):
        sgfn.fit("words", objective="vargrad", batch=1, steps=1, progress=False)


def _scored(own: Trainer) -> tuple[Scores, Episodes]:
    general = own.general
    batch = general.collect(own.nets, general.draw(own.generator, 1.0))[1]
    kernel = general.noise_kernel(batch.states[:, :-1])
    return general.scored(own.nets, batch, torch.tensor(1.0), kernel)
