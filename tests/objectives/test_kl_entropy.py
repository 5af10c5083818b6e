"""The entropy-ratio objective: its KL on exact trees, its gradients, its weights, and what it refuses."""

import math
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
from balances import BALANCE
from exact_tables import PROPERTY, TINY, balanced
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import rel_entr
from small_runs import CPU, FLAGS, collected, complaint, contents, same_tensors, small, tiny_trainer, weights
from torch import Tensor
from torch.testing import assert_close

import sgfn
from sgfn.config import EntropyConfig, EntropyVariant, TrainConfig
from sgfn.envs.trajectories import Trajectories
from sgfn.landscapes.tasks import make_task
from sgfn.learning.methods import check_objective
from sgfn.learning.scoring import score, score_marginal
from sgfn.learning.trainer import Trainer
from sgfn.nets.heads import Heads
from sgfn.noise.operators import DenseKernel
from sgfn.objectives import OBJECTIVES, scored_as
from sgfn.objectives.entropy import ENTROPY_METERS, EntropyTerms, entropy_ratio, entropy_terms
from sgfn.objectives.kl_entropy import kl_entropy
from sgfn.objectives.making import make_objective
from sgfn.objectives.registry import bases
from sgfn.objectives.scores import Scores
from sgfn.objectives.trajectory_balance import trajectory_balance

CLAMP = 1e-10
VARIANTS = get_args(EntropyVariant)
every_variant = pytest.mark.parametrize("variant", VARIANTS)
BASED = [("kl", "marginal"), *[(base, form) for base in BALANCE for form in ("marginal", "published")]]
"""The outcome flow of `kl` has a form of its own."""
every_base = pytest.mark.parametrize(("base", "form"), BASED)
every_env = pytest.mark.parametrize("name", TINY)
FULL = ["fixed-L3-V2", "fixed-L2-V3", "forecast-H2-K3"]
"""Trees where slips reach every letter: no posterior has a zero."""


def scored(logits: Tensor, log_kernel: Tensor, realised: Tensor, valid: Tensor) -> tuple[Scores, Trajectories]:
    """The marginal form of any policy and kernel: no environment, rewards of one, flows of one."""
    batch, steps, _ = logits.shape
    states = torch.zeros(batch, steps + 1, 1, dtype=torch.int64)
    nothing = torch.zeros(batch, dtype=logits.dtype)
    data = Trajectories(intended=realised, realised=realised, valid=valid, states=states, log_reward=nothing)
    heads = Heads(log_policy=torch.log_softmax(logits, -1), log_flow=torch.zeros_like(logits[..., 0]))
    kernel = DenseKernel(log_kernel.expand(batch, steps, -1, -1), log=True)
    return score_marginal(heads, kernel, data, nothing[0]), data


def random_laws(*shape: int, seed: int) -> Tensor:
    noise = torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return torch.softmax(2 * noise, -1)


def log_slip(vocab: int, alpha: float, dtype: torch.dtype) -> Tensor:
    return ((1 - alpha) * torch.eye(vocab, dtype=dtype) + alpha / vocab).log()


def only(weight: str, variant: EntropyVariant = "quantile") -> EntropyConfig:
    """One of the two terms, without the other."""
    return replace(EntropyConfig(variant=variant, weight_kl=0.0, weight_dynamics=0.0), **{weight: 1.0})


def no_base(scores: Scores, batch: Trajectories) -> Tensor:
    return torch.zeros_like(batch.log_reward)


# The policy KL


@pytest.mark.parametrize("alpha", [0.0, 0.1, 0.5, 0.9])
@every_env
def test_policy_kl_is_that_of_scipy_at_every_step_of_every_trajectory(name: str, alpha: float) -> None:
    """Where an outcome rules an intention out, as all do at alpha = 0, the posterior counts as 1e-10 there."""
    scorer, batch, kernel = balanced(name, alpha, "marginal")
    policy = scorer.policy(batch.states[:, :-1])[batch.valid].numpy()
    column = kernel.matrix()[batch.valid].numpy()[np.arange(len(policy)), :, batch.realised[batch.valid].numpy()]
    posterior = policy * column / (policy * column).sum(-1, keepdims=True)
    clamped, known = (
        rel_entr(policy, posterior.clip(CLAMP)).sum(-1),
        np.asarray(stats.entropy(policy, posterior, axis=-1)),
    )
    full = np.isfinite(known)
    assert full.all() == (alpha > 0 and name in FULL)
    assert np.isfinite(clamped).all()
    assert np.abs(clamped - rel_entr(posterior, policy).sum(-1)).max() > 1e-5  # the other way round is another number
    for form in ("marginal", "published", "outcome"):
        found = entropy_terms(score(scorer, batch, form, kernel), batch, EntropyConfig()).policy_kl
        assert (found[~batch.valid] == 0).all()
        assert found[batch.valid].numpy() == pytest.approx(clamped, abs=1e-9)
        assert found[batch.valid].numpy()[full] == pytest.approx(known[full], abs=1e-9)


@pytest.mark.parametrize("alpha", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("name", FULL)
def test_policy_kl_does_not_vanish_at_the_balanced_solution(name: str, alpha: float) -> None:
    scorer, batch, kernel = balanced(name, alpha, "marginal")
    blank = balanced(name, 1 - 1e-9, "marginal")  # outcomes that say next to nothing
    for form in ("marginal", "published", "outcome"):
        scores = score(scorer, batch, form, kernel)
        assert trajectory_balance(scores, batch).max() < 1e-18
        assert entropy_terms(scores, batch, EntropyConfig()).policy_kl[batch.valid].min() > 1e-4
        silent = entropy_terms(score(blank[0], blank[1], form, blank[2]), blank[1], EntropyConfig())
        assert silent.policy_kl.abs().max() < 1e-12


@pytest.mark.parametrize("alpha", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("name", FULL)
def test_policy_kl_over_the_outcomes_of_a_state_is_the_lautum_information(name: str, alpha: float) -> None:
    r"""Mean over outcomes: $\sum_k \bar P(k) KL(\pi\|\pi_B(\cdot|k)) = KL(\pi \bar P \| \pi P)$, product against joint.

    Mutual information is the other way round, joint against product. Palomar and Verdu (2008), Lautum information.
    """
    scorer, batch, kernel = balanced(name, alpha, "marginal")
    env = scorer.env
    found = entropy_terms(score(scorer, batch, "marginal", kernel), batch, EntropyConfig()).policy_kl
    states = env.index(batch.states[:, :-1])
    for number, state in enumerate(torch.cat(list(env.levels()))):
        here = states == env.index(state)
        kl = [float(found[here & (batch.realised == k)][0]) for k in range(env.actions)]
        joint = scorer.policy(state)[:, None].numpy() * env.kernel(state, torch.float64).numpy()
        product = joint.sum(1, keepdims=True) * joint.sum(0)
        assert joint.sum(0) @ kl == pytest.approx(rel_entr(product, joint).sum(), abs=1e-9), number
        assert abs(joint.sum(0) @ kl - rel_entr(joint, product).sum()) > 1e-7 * alpha, number


@PROPERTY
@given(size=st.integers(2, 8), seed=st.integers(0, 10**6))
def test_the_lautum_identity_holds_for_any_policy_and_kernel(size: int, seed: int) -> None:
    policy, kernel = random_laws(size, seed=seed), random_laws(size, size, seed=seed + 1)
    realised, valid = torch.arange(size)[:, None], torch.ones(size, 1, dtype=torch.bool)
    scores, batch = scored(policy.log().expand(size, 1, -1), kernel.log(), realised, valid)
    kl = entropy_terms(scores, batch, EntropyConfig()).policy_kl[:, 0].numpy()
    joint = (policy[:, None] * kernel).numpy()
    product = joint.sum(1, keepdims=True) * joint.sum(0)
    assert joint.sum(0) @ kl == pytest.approx(rel_entr(product, joint).sum(), abs=1e-9)
    assert joint.sum(0) @ kl != pytest.approx(rel_entr(joint, product).sum(), abs=1e-9)
    transposed = scored(policy.log().expand(size, 1, -1), kernel.T.log(), realised, valid)
    assert np.abs(entropy_terms(*transposed, EntropyConfig()).policy_kl[:, 0].numpy() - kl).max() > 1e-6


# The sum


@every_variant
@every_env
def test_the_objective_is_base_and_two_weighted_terms(name: str, variant: EntropyVariant) -> None:
    scorer, batch, kernel = balanced(name, 0.5, "marginal")
    scores = score(replace(scorer, log_z=scorer.log_z + 0.1), batch, "marginal", kernel)
    config = EntropyConfig(variant=variant, gamma=0.3, weight_kl=0.7, weight_dynamics=1.3)
    terms = entropy_terms(scores, batch, config)
    kl = (terms.policy_kl - terms.ratio.log_ratio * batch.valid).sum(1) / batch.length
    balance = terms.dynamics_balance.sum(1) / batch.length
    wanted = trajectory_balance(scores, batch) + 0.7 * kl + 1.3 * balance
    found = kl_entropy(scores, batch, trajectory_balance, config)
    assert_close(found, wanted)
    alone = kl_entropy(scores, batch, no_base, replace(config, weight_kl=0.0))
    assert float(alone.mean()) == pytest.approx(1.3 * float((terms.visits * terms.dynamics_balance).sum()))
    if len(batch.length.unique()) > 1:  # each state of the batch once would be another number
        once = terms.dynamics_balance.sum() / batch.valid.sum()
        assert float(alone.mean()) != pytest.approx(1.3 * float(once))
    for weight in ("weight_kl", "weight_dynamics"):
        assert not torch.allclose(kl_entropy(scores, batch, trajectory_balance, only(weight)), wanted)


@every_variant
def test_padded_steps_have_no_part_in_loss_or_gradient(variant: EntropyVariant) -> None:
    valid = torch.tensor([[True, True, True], [True, True, False], [True, False, False]])
    plain = random_laws(3, 3, 4, seed=0).log()
    config = EntropyConfig(variant=variant, weight_kl=1.0, weight_dynamics=1.0)

    def loss_and_slope(where: Tensor) -> tuple[Tensor, Tensor]:
        logits = torch.where(where[..., None], plain.flip(-1) * 3, plain).requires_grad_()
        scores, batch = scored(logits, log_slip(4, 0.3, torch.float64), torch.zeros(3, 3, dtype=torch.int64), valid)
        loss = kl_entropy(scores, batch, trajectory_balance, config)
        (slope,) = torch.autograd.grad(loss.sum(), logits)
        return loss.detach(), slope

    (loss, slope), (other, tilted) = loss_and_slope(torch.zeros_like(valid)), loss_and_slope(~valid)
    assert torch.equal(loss, other)
    assert torch.equal(slope, tilted)
    assert (slope[~valid] == 0).all()
    assert (slope[valid].abs().amax(-1) > 0).all()
    assert not torch.allclose(loss_and_slope(valid)[0], loss)


# Gradients


@every_variant
@pytest.mark.parametrize("weight", ["weight_kl", "weight_dynamics"])
def test_gradients_flow_through_the_ratio(
    weight: str, variant: EntropyVariant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the ratio held fixed the value is the same and the gradient is another; so is it without the ratio."""
    logits = random_laws(4, 3, 5, seed=1).log().requires_grad_()
    realised, valid = torch.zeros(4, 3, dtype=torch.int64), torch.ones(4, 3, dtype=torch.bool)

    def loss_and_slope() -> tuple[float, Tensor]:
        scores, batch = scored(logits, log_slip(5, 0.3, torch.float64), realised, valid)
        loss = kl_entropy(scores, batch, trajectory_balance, only(weight, variant)).mean()
        return float(loss.detach()), torch.autograd.grad(loss, logits)[0]

    value, slope = loss_and_slope()
    held = lambda high, low, gamma: entropy_ratio(high.detach(), low.detach(), gamma)  # noqa: E731
    flat = lambda high, low, gamma: entropy_ratio(torch.ones_like(high), torch.ones_like(low), gamma)  # noqa: E731
    monkeypatch.setattr("sgfn.objectives.entropy.entropy_ratio", held)
    fixed_value, fixed = loss_and_slope()
    assert fixed_value == value
    assert (fixed - slope).abs().max() > 1e-3
    monkeypatch.setattr("sgfn.objectives.entropy.entropy_ratio", flat)
    flat_value, without = loss_and_slope()
    assert abs(flat_value - value) > 1e-3
    assert (without - slope).abs().max() > 1e-3


POLICIES = ("one-hot", "peaked", "uniform", "random", "sharp")


def logits_of(kind: str, vocab: int, dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    """One-hot: all others are illegal. Peaked: all others underflow. Sharp: probabilities on both sides of 1e-10."""
    noise = torch.randn(3, 2, vocab, generator=generator, dtype=torch.float64).to(dtype)
    best = noise == noise.amax(-1, keepdim=True)
    made = {
        "one-hot": torch.where(best, 0.0, -torch.inf),
        "peaked": 1e4 * best,
        "uniform": torch.zeros_like(noise),
        "random": noise,
        "sharp": 15 * noise,
    }
    return made[kind].to(dtype)


@settings(PROPERTY, max_examples=120)
@given(
    kinds=st.lists(st.sampled_from(POLICIES), min_size=1, max_size=3),
    variant=st.sampled_from(VARIANTS),
    vocab=st.integers(2, 32),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    gamma=st.floats(0.001, 0.999),
    alpha=st.sampled_from([0.0, 0.3]),
    seed=st.integers(0, 10**6),
)
def test_loss_and_gradients_are_finite_for_every_policy(
    kinds: list[str], variant: EntropyVariant, vocab: int, dtype: torch.dtype, gamma: float, alpha: float, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.cat([logits_of(kind, vocab, dtype, generator) for kind in kinds]).requires_grad_()
    valid = torch.ones(logits.shape[:2], dtype=torch.bool)
    valid[0, 1] = False
    scores, batch = scored(logits, log_slip(vocab, alpha, dtype), logits.argmax(-1), valid)
    config = EntropyConfig(variant=variant, gamma=gamma, weight_kl=1.0, weight_dynamics=1.0)
    loss = kl_entropy(scores, batch, trajectory_balance, config)
    (slope,) = torch.autograd.grad(loss.sum(), logits)
    assert loss.dtype == dtype
    assert loss.isfinite().all()
    assert slope.isfinite().all()
    if {"random", "sharp"} & set(kinds):
        assert slope.abs().max() > 0


def test_the_plain_formula_is_not_finite_for_a_one_hot_policy() -> None:
    """What the clamp is for: 0 log 0."""
    logits = torch.tensor([0.0, -torch.inf], dtype=torch.float64, requires_grad=True)
    log_policy = torch.log_softmax(logits, -1)
    entropy = -(log_policy.exp() * log_policy).sum()
    (slope,) = torch.autograd.grad(entropy, logits)
    assert entropy.isnan()
    assert slope.isnan().any()


@pytest.mark.parametrize("vocab", [2, 4])
@every_variant
def test_gradients_are_those_of_finite_differences(variant: EntropyVariant, vocab: int) -> None:
    logits = random_laws(2, 2, vocab, seed=0).log().requires_grad_()
    valid = torch.tensor([[True, True], [True, False]])
    log_kernel = random_laws(vocab, vocab, seed=7).log()
    config = EntropyConfig(variant=variant, gamma=0.3, weight_kl=1.0, weight_dynamics=1.0)

    def loss(logits: Tensor, hold: bool = False) -> Tensor:
        scores, batch = scored(logits, log_kernel, torch.tensor([[0, 1], [1, 0]]), valid)
        assert scores.log_policy is not None
        held = replace(scores, log_policy=scores.log_policy.detach())
        return kl_entropy(held if hold else scores, batch, trajectory_balance, config)

    assert torch.autograd.gradcheck(loss, logits)
    assert not torch.autograd.gradcheck(partial(loss, hold=True), logits, raise_exception=False)


# Weights of zero


def build(task: str, **changes: Any) -> Trainer:
    if task == "grid":
        return Trainer(make_task(task, small(**changes)), CPU)
    return tiny_trainer("AB" if task == "tiny-stop" else "ABC", stop=task == "tiny-stop", **changes)


def gradients(trainer: Trainer, loss: Tensor) -> dict[str, Tensor]:
    names, parameters = zip(*trainer.nets.named_parameters(), strict=True)
    slopes = torch.autograd.grad(loss.mean(), parameters, retain_graph=True, allow_unused=True)
    return {name: slope for name, slope in zip(names, slopes, strict=True) if slope is not None}


def trained_weights(trainer: Trainer) -> Tensor:
    for _ in range(3):
        trainer.step()
    return weights(trainer)


NONE = {"entropy__weight_kl": 0.0, "entropy__weight_dynamics": 0.0}


@pytest.mark.parametrize("task", ["tiny", "tiny-stop", "grid"])
@every_base
def test_without_weights_loss_and_gradients_are_those_of_the_base(base: str, form: str, task: str) -> None:
    trainer = build(task, objective=base, form=form, noise__alpha=0.3)
    states, _, batch = collected(trainer)
    kernel = trainer.general.noise_kernel(batch.states[:, :-1])
    read = trainer.general.scored(states, batch, torch.tensor(2.0), kernel)
    loss = trainer.objective(*read)
    slopes = gradients(trainer, loss)
    config = trainer.config.with_(objective="kl-entropy", entropy__base=base, entropy__gamma=0.3, **NONE)
    for variant in VARIANTS:
        config = config.with_(entropy__variant=variant)
        same = make_objective(config)(*read)
        assert torch.equal(same, loss)
        assert same_tensors(gradients(trainer, same), slopes)
    for weight in NONE:
        other = make_objective(config.with_(**{weight: 0.1}))(*read)
        assert not torch.equal(other, loss)
        assert not torch.equal(gradients(trainer, other)["policy.weight"], slopes["policy.weight"])


@pytest.mark.parametrize("task", ["tiny-stop", "grid"])
@every_base
def test_without_weights_training_is_that_of_the_base(base: str, form: str, task: str) -> None:
    changes = {"form": form, "noise__alpha": 0.3, "optim__lr": 0.03}
    plain = trained_weights(build(task, objective=base, **changes))
    mixed = {"objective": "kl-entropy", "entropy__base": base, **changes}
    assert torch.equal(trained_weights(build(task, **mixed, **NONE)), plain)
    assert not torch.equal(trained_weights(build(task, **mixed)), plain)


@pytest.mark.parametrize("weight", NONE)
def test_each_weight_alone_changes_training(weight: str) -> None:
    plain, other = ({"objective": "kl-entropy"} | NONE | changes for changes in ({}, {weight: 0.01}))
    assert not torch.equal(trained_weights(build("tiny", **other)), trained_weights(build("tiny", **plain)))


# Configuration


@every_base
def test_config_chooses_base_and_weights(base: str, form: str) -> None:
    config = TrainConfig().with_(objective="kl-entropy", entropy__base=base, form=form, kl__flow="db", kl__weight=3.0)
    assert scored_as(config) == ("outcome" if base == "kl" else form)
    assert {"vargrad", *(name for name, _ in BASED)} == set(bases(OBJECTIVES["kl-entropy"]))
    scorer, batch, kernel = balanced("grid-2D-3", 0.5, "marginal")
    scores = score(replace(scorer, log_z=scorer.log_z + 0.1), batch, scored_as(config), kernel)
    plain = make_objective(config.with_(objective=base))(scores, batch)
    assert_close(make_objective(config)(scores, batch), kl_entropy(scores, batch, lambda *_: plain, config.entropy))
    other = "tb" if base == "db" else "db"
    if base != "kl":  # whose flow is the same detailed balance
        assert_close(plain, BALANCE[base](scores, batch))
        assert not torch.allclose(make_objective(config.with_(entropy__base=other))(scores, batch), plain)


BLIND = "objective 'kl-entropy' weighs intentions, which form 'blind' ignores: use marginal or published"
NOTHING = "objective 'kl-entropy' has no term left: entropy.base is none, policy_kl_term and dynamics_balance weigh 0"
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "gamma of 0": ({"entropy.gamma": 0.0}, "entropy.gamma must lie in [0.001, 0.999], got 0.0"),
    "gamma of 1": ({"entropy.gamma": 1.0}, "entropy.gamma must lie in [0.001, 0.999], got 1.0"),
    "quantile below": ({"entropy.quantile": 0.4}, "entropy.quantile must lie in [0.5, 1], got 0.4"),
    "quantile above": ({"entropy.quantile": 1.5}, "entropy.quantile must lie in [0.5, 1], got 1.5"),
    "weight": ({"entropy.weight_kl": -1.0}, "entropy.weight_kl must lie in [0, 1e+06], got -1.0"),
    "blind": ({"objective": "kl-entropy", "form": "blind"}, BLIND),
    "blind base": ({"objective": "kl-entropy", "form": "blind", "entropy.base": "db"}, BLIND),
    "nothing": (
        {"objective": "kl-entropy", "entropy.base": "none", "entropy.weight_kl": 0, "entropy.weight_dynamics": 0},
        NOTHING,
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_refused_is_said_in_one_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    changes, message = WRONG[name]
    with pytest.raises(ValueError, match=r".") as caught:
        check_objective(TrainConfig().with_(**{field.replace(".", "__"): value for field, value in changes.items()}))
    assert str(caught.value) == message
    monkeypatch.chdir(tmp_path)
    words = [w for field, value in changes.items() for w in (f"--{field.replace('_', '-')}", str(value))]
    assert complaint(capsys, ["train", "grid", *FLAGS, *words]) == message
    assert contents(tmp_path) == {}


def test_the_blind_form_is_refused_only_where_it_is_read() -> None:
    config = TrainConfig().with_(objective="kl-entropy", form="blind", entropy__base="kl")
    assert scored_as(config) == "outcome"
    check_objective(config)
    assert TrainConfig().with_(objective="tb", form="blind", exploration="entropy").watches_entropy
    assert not TrainConfig().with_(objective="tb").watches_entropy


def test_a_run_keeps_every_intermediate(tmp_path: Path) -> None:
    sgfn.train("grid", small(objective="kl-entropy", steps=10), tmp_path / "run", device="cpu")
    rows = sgfn.Run(path=tmp_path / "run").rows()
    assert len(rows) >= 2
    assert all(math.isfinite(row[name]) for row in rows for name in ENTROPY_METERS)
    assert all(1 <= row["r_gamma"] <= 2 and 0 < row["rho"] < 1 for row in rows)
    assert {"entropy", "ratio", "visits", "policy_kl", "dynamics_balance"} == set(EntropyTerms.__annotations__)
