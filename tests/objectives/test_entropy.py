"""Entropy and its ratio: known values, bounds, what is logged of them, and the temperature that follows them."""

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any, get_args

import numpy as np
import pytest
import torch
from exact_tables import PROPERTY
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from small_runs import CPU, collected, small, tiny_trainer
from torch import Tensor
from torch.testing import assert_close

from sgfn.config import EntropyConfig, EntropyVariant
from sgfn.envs.base import Env
from sgfn.envs.trajectories import Episodes, Trajectories
from sgfn.landscapes.tasks import make_task
from sgfn.learning import general
from sgfn.learning.rollout import LogReward, Policy, RolloutDraws, behaviour
from sgfn.learning.trainer import METERS, Trainer
from sgfn.objectives.entropy import (
    ENDS,
    ENTROPY_METERS,
    TINY,
    EntropyRatio,
    entropy_parts,
    entropy_ratio,
    entropy_terms,
    masked_quantile,
    policy_entropy,
)
from sgfn.objectives.scores import Scores, masked_mean

VARIANTS = get_args(EntropyVariant)
every_variant = pytest.mark.parametrize("variant", VARIANTS)
DTYPES = st.sampled_from([torch.float32, torch.float64])
GAMMAS = st.floats(0.001, 0.999)
SEEDS = st.integers(0, 10**6)
REACH: dict[str, Any] = {"rate_high": 0.5, "rate_low": 3.0}
"""Rates of the exponential variant with the larger one below, so that r is above 1 there too."""


def draws(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def policies(batch: int, steps: int, vocab: int, seed: int) -> Tensor:
    """A one-hot trajectory, a uniform one, and random ones from flat to sharp; float64 probabilities."""
    noise = torch.randn(batch, steps, vocab, generator=draws(seed), dtype=torch.float64)
    law = torch.softmax(noise * torch.logspace(-1, 1.5, batch, dtype=torch.float64)[:, None, None], -1)
    law[0] = torch.eye(vocab, dtype=torch.float64)[torch.arange(steps) % vocab]
    law[1] = 1 / vocab
    return law


def judged(policy: Tensor, valid: Tensor, intention: Tensor | None = None) -> tuple[Scores, Trajectories]:
    """Scores that hold these laws, and trajectories of those lengths with rewards 1, 1/2, 1/3, ..."""
    batch, steps = valid.shape
    zeros, states = torch.zeros_like(valid, dtype=torch.int64), torch.zeros(batch, steps + 1, 1, dtype=torch.int64)
    nothing = torch.zeros_like(policy[..., 0])
    log_reward = -torch.arange(1, batch + 1).log().to(policy.dtype)
    log_flow, intention = torch.zeros(batch, steps + 1, dtype=policy.dtype), policy if intention is None else intention
    return (
        Scores(
            log_pf=nothing,
            log_dynamics=nothing,
            log_pb=nothing,
            log_flow=log_flow,
            log_z=torch.zeros((), dtype=policy.dtype),
            log_policy=policy.log(),
            log_intention=intention.log(),
        ),
        Trajectories(intended=zeros, realised=zeros, valid=valid, states=states, log_reward=log_reward),
    )


def ragged(batch: int, steps: int) -> Tensor:
    """Trajectories of all lengths from 1 to `steps`."""
    return torch.arange(steps) < (torch.arange(batch) % steps + 1)[:, None]


def ends_by_hand(
    entropy: np.ndarray, lengths: np.ndarray, vocab: int, config: EntropyConfig
) -> tuple[np.ndarray, np.ndarray]:
    if config.variant == "quantile":
        high, low = np.quantile(entropy, [config.quantile, 1 - config.quantile])
        return np.full_like(entropy, high), np.full_like(entropy, low)
    if config.variant == "trajectory":
        rows = np.split(entropy, np.cumsum(lengths)[:-1])
        ends = [np.quantile(row, [config.quantile, 1 - config.quantile]) for row in rows]
        high, low = np.repeat(ends, lengths, axis=0).T
        return high, low
    if config.variant == "per-state":
        return entropy, np.minimum(entropy, 0.1 / math.log(vocab))
    return np.exp(-config.rate_high * entropy), np.exp(-config.rate_low * entropy)


def figures_by_hand(scores: Scores, batch: Trajectories, config: EntropyConfig) -> dict[str, float]:
    """Every figure once more, from probabilities alone: the mean over each trajectory's states, then over those."""
    assert scores.log_policy is not None
    assert scores.log_intention is not None
    pi, meant = (log.detach().double().exp().numpy() for log in (scores.log_policy, scores.log_intention))
    valid = batch.valid.numpy()
    entropy = stats.entropy(pi[valid], axis=-1) / math.log(pi.shape[-1])
    kl = (pi * (np.log(pi.clip(TINY)) - np.log(meant.clip(TINY)))).sum(-1)
    high, low = (end.clip(TINY) for end in ends_by_hand(entropy, valid.sum(1), pi.shape[-1], config))
    ratio = high / (config.gamma * high + (1 - config.gamma) * low)
    rho, rest = config.gamma * ratio, (1 - config.gamma) * ratio * low / high
    balance = -entropy * (np.log(rho) + (1 - config.gamma) * (1 - entropy) * np.log(rest))
    weight = np.repeat(1 / valid.sum(1), valid.sum(1)) / len(valid)
    figures = {
        "H_high": high,
        "H_low": low,
        "H_mean": entropy,
        "r_gamma": ratio,
        "rho": rho,
        "policy_kl": kl[valid],
        "dynamics_balance": balance,
    }
    means = {name: float((weight * values).sum()) for name, values in figures.items()}
    return means | {"reward_minus_kl": float(batch.log_reward.double().exp().mean()) - means["policy_kl"]}


# Entropy


@PROPERTY
@given(vocab=st.integers(2, 32), dtype=DTYPES, seed=SEEDS)
def test_entropy_is_that_of_scipy_over_its_maximum(vocab: int, dtype: torch.dtype, seed: int) -> None:
    law = policies(6, 3, vocab, seed).to(dtype)
    found = policy_entropy(law.log())
    wanted = torch.from_numpy(stats.entropy(law.double().numpy(), axis=-1) / math.log(vocab))
    assert_close(found, wanted.to(dtype), atol=1e-6 if dtype == torch.float32 else 1e-8, rtol=0)
    assert ((found >= 0) & (found <= 1)).all()
    assert (found[0] == 0).all()
    assert_close(found[1], torch.ones(3, dtype=dtype))
    assert (policy_entropy(law[2:].sqrt().log()) - wanted[2:]).abs().max() > 1e-3  # of something that is no law


def test_entropy_counts_all_actions_and_is_written_by_hand() -> None:
    law = torch.tensor([0.5, 0.25, 0.25, 0.0], dtype=torch.float64)
    assert float(policy_entropy(law.log())) == pytest.approx(1.5 * math.log(2) / math.log(4))
    assert float(policy_entropy(law[:3].log())) == pytest.approx(1.5 * math.log(2) / math.log(3))


# Quantiles


@PROPERTY
@given(batch=st.integers(1, 6), steps=st.integers(1, 6), seed=SEEDS, q=st.floats(0.0, 1.0), dtype=DTYPES)
def test_quantiles_are_those_of_numpy(batch: int, steps: int, seed: int, q: float, dtype: torch.dtype) -> None:
    generator = draws(seed)
    values = torch.rand(batch, steps, generator=generator, dtype=torch.float64).to(dtype)
    mask = torch.rand(batch, steps, generator=generator) < 0.6
    mask[seed % batch, seed % steps] = True
    found = masked_quantile(values, mask, (q, 1 - q, 0.0, 1.0))
    wanted = np.quantile(values[mask].double().numpy(), [q, 1 - q, 0.0, 1.0])
    assert_close(found, torch.from_numpy(wanted).to(dtype), atol=1e-6 if dtype == torch.float32 else 1e-14, rtol=0)
    elsewhere = torch.where(mask, values, -5.0)
    assert torch.equal(masked_quantile(elsewhere, mask, (q, 1 - q, 0.0, 1.0)), found)
    assert mask.all() or float(masked_quantile(elsewhere, torch.ones_like(mask), (0.0,))) == -5.0


@PROPERTY
@given(batch=st.integers(1, 4), steps=st.integers(1, 4), seed=SEEDS, q=st.floats(0.0, 1.0))
def test_quantiles_share_their_gradient_between_two_neighbours(batch: int, steps: int, seed: int, q: float) -> None:
    generator = draws(seed)
    values = torch.randperm(batch * steps, generator=generator).double().view(batch, steps).requires_grad_()
    mask = torch.rand(batch, steps, generator=generator) < 0.6
    mask[seed % batch, seed % steps] = True
    (slope,) = torch.autograd.grad(masked_quantile(values, mask, (q,)).sum(), values)
    assert float(slope.sum()) == pytest.approx(1.0)
    assert (slope[~mask] == 0).all()
    assert (slope > 0).sum() <= 2
    assert float((slope * values).sum().detach()) == pytest.approx(float(masked_quantile(values, mask, (q,)).detach()))
    assert torch.autograd.gradcheck(lambda v: masked_quantile(v, mask, (q,)), values)


# The ratio


@PROPERTY
@given(vocab=st.integers(2, 32), gamma=GAMMAS, q=st.floats(0.5, 1.0), dtype=DTYPES, seed=SEEDS)
def test_ratio_and_share_keep_their_bounds(vocab: int, gamma: float, q: float, dtype: torch.dtype, seed: int) -> None:
    """1 <= r <= 1/gamma but for a few ulps; the exponential variant promises rho alone."""
    law, valid = policies(6, 4, vocab, seed).to(dtype), ragged(6, 4)
    for variant in VARIANTS:
        config = EntropyConfig(variant=variant, gamma=gamma, quantile=q, rate_high=20.0 * q, rate_low=20.0 * (1 - q))
        ratio = entropy_terms(*judged(law, valid), config).ratio
        assert ((ratio.rho > 0) & (ratio.rho < 1)).all()
        assert (ratio.log_rho.isfinite() & ratio.log_rest.isfinite()).all()
        slack = 4 * torch.finfo(dtype).eps
        above, below = ratio.log_ratio.min() >= -slack, ratio.log_ratio.max() <= -math.log(gamma) + slack
        assert (above and below) or variant == "exponential"


@PROPERTY
@given(high=st.floats(0.0, 1.0), low=st.floats(0.0, 1.0), gamma=GAMMAS)
def test_ratio_equals_exact_fractions(high: float, low: float, gamma: float) -> None:
    """Also where 1 - rho would vanish beside 1: log_rest has its own closed form."""
    found = entropy_ratio(torch.tensor(high, dtype=torch.float64), torch.tensor(low, dtype=torch.float64), gamma)
    up, down, share = Fraction(float(found.high)), Fraction(float(found.low)), Fraction(gamma)
    assert (float(up), float(down)) == (max(high, TINY), max(low, TINY))
    ratio = up / (share * up + (1 - share) * down)
    for log, wanted in ((found.log_ratio, ratio), (found.log_rho, share * ratio), (found.log_rest, 1 - share * ratio)):
        assert float(log) == pytest.approx(math.log(wanted), abs=2e-14, rel=1e-14)
    assert float(found.rho) == pytest.approx(float(share * ratio), rel=1e-13)
    assert (ratio >= 1) == (up >= down)
    swapped = entropy_ratio(found.low, found.high, gamma)
    assert up <= down * 2 or float(swapped.log_ratio) < float(found.log_ratio)


def test_ratio_by_hand() -> None:
    def ratio(high: float, low: float, gamma: float) -> EntropyRatio:
        return entropy_ratio(torch.tensor(high, dtype=torch.float64), torch.tensor(low, dtype=torch.float64), gamma)

    found = ratio(0.8, 0.2, 0.25)  # 0.8 / (0.2 + 0.15)
    assert float(found.log_ratio.exp()) == pytest.approx(16 / 7)
    assert float(found.rho) == pytest.approx(4 / 7)
    assert float(found.log_rest) == pytest.approx(math.log(3 / 7))
    assert float(ratio(0.3, 0.3, 0.25).log_ratio) == 0.0
    assert float(ratio(0.0, 0.0, 0.25).log_ratio) == 0.0
    assert float(ratio(1.0, 0.0, 0.25).log_ratio.exp()) == pytest.approx(4.0)
    lost = ratio(1.0, 0.0, 0.999)
    assert float(lost.log_rest) == pytest.approx(math.log(0.001 / 0.999 * TINY), abs=1e-9)
    assert abs(math.log(1 - float(lost.log_rho.exp())) - float(lost.log_rest)) > 1e-5  # the plain way has lost digits


@PROPERTY
@given(gamma=GAMMAS, seed=SEEDS)
def test_the_literal_formula_has_no_value_where_ours_has_one(gamma: float, seed: int) -> None:
    """What `entropy_ratio` says of log(1 - r): r > 1, so its logarithm is nan; that of 1 - rho is a number."""
    scores, batch = judged(policies(5, 3, 4, seed), ragged(5, 3))
    ratio = entropy_terms(scores, batch, EntropyConfig(gamma=gamma)).ratio
    assert torch.log(1 - ratio.log_ratio.exp()).isnan().all()
    assert ratio.log_rest.isfinite().all()
    assert (ratio.log_rest < 0).all()
    told = " ".join((entropy_ratio.__doc__ or "").split())
    assert "log(1 - r) has no real value" in told
    assert "log(1 - rho) stands wherever log(1 - r) was written" in told


# Variants


def test_variants_by_hand() -> None:
    entropy = torch.tensor([[0.02, 0.5, 0.9], [1.0, 0.3, 0.7]], dtype=torch.float64)
    valid = torch.tensor([[True, True, True], [True, True, False]])
    config = EntropyConfig(quantile=0.75, rate_high=2.0, rate_low=0.5)
    assert set(ENDS) == set(VARIANTS)
    ends = {name: make(entropy, valid, 3, config) for name, make in ENDS.items()}
    assert_close(ends["quantile"][0], torch.full_like(entropy, 0.9))  # of 0.02 0.3 0.5 0.9 1.0
    assert_close(ends["quantile"][1], torch.full_like(entropy, 0.3))
    assert ends["per-state"][0] is entropy
    capped = entropy.clone().clamp(max=0.1 / math.log(3))
    assert_close(ends["per-state"][1], capped)
    assert float(capped[0, 0]) == 0.02
    assert float(ends["exponential"][0][1, 0]) == pytest.approx(math.exp(-2.0))
    assert float(ends["exponential"][1][1, 0]) == pytest.approx(math.exp(-0.5))


@PROPERTY
@given(rates=st.tuples(st.floats(0.0, 20.0), st.floats(0.0, 20.0)), gamma=GAMMAS, seed=SEEDS)
def test_the_exponential_ratio_is_below_one_where_the_high_rate_is_higher(
    rates: tuple[float, float], gamma: float, seed: int
) -> None:
    scores, batch = judged(policies(5, 3, 4, seed), torch.ones(5, 3, dtype=torch.bool))
    config = EntropyConfig(variant="exponential", gamma=gamma, rate_high=rates[0], rate_low=rates[1])
    terms = entropy_terms(scores, batch, config)
    assert (terms.ratio.log_ratio[0] == 0).all()  # no entropy, no difference
    gap = rates[0] - rates[1]
    if abs(gap) > 1e-6:
        assert (terms.ratio.log_ratio[1].sign() == -math.copysign(1, gap)).all()
    else:
        assert terms.ratio.log_ratio.abs().max() < 1e-5


# Terms of a batch


def test_dynamics_balance_of_two_states_by_hand() -> None:
    """H = 1 and H = 0.469; the ends are both of them (q = 1), gamma = 1/4."""
    policy = torch.tensor([[[0.5, 0.5], [0.9, 0.1]]], dtype=torch.float64)
    scores, batch = judged(policy, torch.ones(1, 2, dtype=torch.bool))
    terms = entropy_terms(scores, batch, EntropyConfig(gamma=0.25, quantile=1.0))
    low = -(0.9 * math.log2(0.9) + 0.1 * math.log2(0.1))
    assert low == pytest.approx(0.4689955936)
    rho = 0.25 / (0.25 + 0.75 * low)
    assert terms.dynamics_balance[0].tolist() == pytest.approx(
        [-math.log(rho), -low * (math.log(rho) + 0.75 * (1 - low) * math.log(1 - rho))]
    )
    total = float((terms.visits * terms.dynamics_balance).sum())
    assert total == pytest.approx((0.8783756668 + 0.5122407091) / 2, abs=1e-9)  # in decimal arithmetic
    other = entropy_terms(scores, batch, EntropyConfig(gamma=0.3, quantile=1.0))
    assert abs(float((other.visits * other.dynamics_balance).sum()) - total) > 0.01


@every_variant
def test_padded_steps_take_no_part(variant: EntropyVariant) -> None:
    law, meant, valid = policies(7, 4, 5, 0), policies(7, 4, 5, 1).clamp(min=1e-3), ragged(7, 4)
    config = EntropyConfig(variant=variant, **REACH)
    terms = entropy_terms(*judged(law, valid, meant), config)
    assert float(terms.visits.sum()) == pytest.approx(1.0)
    assert terms.visits[valid].tolist() == pytest.approx((valid / valid.sum(1, keepdim=True) / 7)[valid].tolist())
    assert (terms.visits[~valid] == 0).all()

    def all_of(where: Tensor) -> list[Tensor]:
        other = [torch.where(where[..., None], x.flip(-1).roll(1, 0), x) for x in (law, meant)]
        scores, batch = judged(other[0], valid, other[1])
        found = entropy_terms(scores, batch, config)
        ratio = [torch.where(valid, x, 0.0) for x in (found.ratio.log_ratio, found.ratio.log_rest)]
        means = torch.stack(list(entropy_parts(found, batch).values()))
        return [*ratio, found.visits, found.policy_kl, found.dynamics_balance, means]

    plain = all_of(torch.zeros_like(valid))
    assert all(torch.equal(a, b) for a, b in zip(plain, all_of(~valid), strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(plain[3:], all_of(valid)[3:], strict=True))


@every_variant
def test_figures_are_means_by_hand(variant: EntropyVariant) -> None:
    scores, batch = judged(policies(7, 4, 5, 2), ragged(7, 4), policies(7, 4, 5, 3).clamp(min=1e-3))
    config = EntropyConfig(variant=variant, gamma=0.3, quantile=0.8, **REACH)
    found = torch.stack(list(entropy_parts(entropy_terms(scores, batch, config), batch).values()))
    wanted = figures_by_hand(scores, batch, config)
    assert tuple(wanted) == ENTROPY_METERS
    wanted.pop("reward_minus_kl")
    assert found.tolist() == pytest.approx(list(wanted.values()), rel=1e-5)
    same = variant == "per-state"  # there the high end is the entropy; no two others could be exchanged unnoticed
    assert len({round(value, 6) for value in wanted.values()}) == len(wanted) - same
    for name, wrong in (("gamma", 0.4), ("quantile", 0.7)):
        other = list(figures_by_hand(scores, batch, replace(config, **{name: wrong})).values())[:-1]
        quantiles = variant in ("quantile", "trajectory")
        assert (found.tolist() != pytest.approx(other, rel=1e-3)) == (name == "gamma" or quantiles)


def test_policy_kl_by_hand() -> None:
    """KL 0 and log 2 in the first trajectory, log 4 in the one step of the second: each trajectory counts once."""
    policy = torch.tensor([[[0.5, 0.5], [1.0, 0.0]], [[1.0, 0.0], [0.5, 0.5]]], dtype=torch.float64)
    meant = torch.tensor([[[0.5, 0.5], [0.5, 0.5]], [[0.25, 0.75], [0.1, 0.9]]], dtype=torch.float64)
    scores, batch = judged(policy, torch.tensor([[True, True], [True, False]]), meant)
    terms = entropy_terms(scores, batch, EntropyConfig())
    assert_close(terms.policy_kl, torch.tensor([[0.0, math.log(2)], [math.log(4), 0.0]], dtype=torch.float64))
    assert_close(masked_mean(terms.policy_kl, batch.valid), torch.tensor([0.5, 2.0], dtype=torch.float64) * math.log(2))
    assert float(entropy_parts(terms, batch)["policy_kl"]) == pytest.approx((math.log(2) / 2 + math.log(4)) / 2)


# Training


def build(task: str, **changes: Any) -> Trainer:
    if task == "grid":
        return Trainer(make_task(task, small(**changes)), CPU)
    return tiny_trainer("AB" if task == "tiny-stop" else "ABC", stop=task == "tiny-stop", **changes)


def watched(trainer: Trainer) -> list[tuple[Scores, Episodes]]:
    """What the objective reads, step by step, with the reward before its exponent."""
    seen, objective = [], trainer.objective

    def spy(scores: Scores, batch: Episodes) -> Tensor:
        seen.append((scores, replace(batch, log_reward=batch.log_reward / trainer.task.beta)))
        return objective(scores, batch)

    trainer.objective = spy
    seen.clear()  # it was asked once for the names of its parts
    return seen


@every_variant
@pytest.mark.parametrize("task", ["tiny", "tiny-stop", "grid"])
def test_all_intermediates_are_logged(task: str, variant: str) -> None:
    """As means over the steps since the last reading; R is the reward before its exponent."""
    changes = {"entropy__variant": variant, "beta": 2.0, "optim__lr": 0.1, "optim__warmup": 0}
    trainer = build(task, objective="kl-entropy", **changes)
    seen = watched(trainer)
    for _ in range(3):
        trainer.step()
    meters = trainer.read_meters()
    assert {*METERS, *ENTROPY_METERS, "log_z", "beta"} <= set(meters)
    assert all(math.isfinite(value) for value in meters.values())
    rows = [figures_by_hand(scores, batch, trainer.config.entropy) for scores, batch in seen]
    for name in ENTROPY_METERS:
        assert meters[name] == pytest.approx(sum(row[name] for row in rows) / 3, rel=1e-4, abs=1e-6)
        assert name == "H_low" or len({round(row[name], 9) for row in rows}) == 3


def test_a_tensor_for_a_temperature_is_a_float() -> None:
    log_policy, legal = policies(4, 2, 3, 0).log().flatten(0, 1), torch.ones(8, 3, dtype=torch.bool)
    for heat in (0.5, 1.0, 3.0):
        for explore in (0.0, 0.1):
            found = behaviour(log_policy, legal, explore, torch.tensor(heat, dtype=torch.float64))
            assert_close(found, behaviour(log_policy, legal, explore, heat), atol=1e-15, rtol=1e-15)
            assert (found - behaviour(log_policy, legal, explore, 2.0)).abs().max() > 0.01


@pytest.mark.parametrize(
    ("task", "objective", "variant"),
    [("tiny", "kl-entropy", "quantile"), ("grid", "tb", "per-state"), ("tiny-stop", "eflow", "exponential")],
)
def test_the_temperature_follows_the_ratio_of_the_batch_before(
    task: str, objective: str, variant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    act, heats = general.act, []

    def spy(env: Env, policy: Policy, log_reward: LogReward, draws: RolloutDraws) -> Trajectories:
        heats.append(float(draws.temperature))
        return act(env, policy, log_reward, draws)

    monkeypatch.setattr(general, "act", spy)
    changes = {"entropy__variant": variant, "temperature": 1.5, "optim__lr": 0.1, "optim__warmup": 0}
    trainer = build(task, objective=objective, exploration="entropy", replay__updates=1, **changes)
    seen = watched(trainer)
    if trainer.fixed_length is not None:
        assert trainer.backend is trainer.fixed_length
        draw = trainer.fixed_length.roller.draw
        monkeypatch.setattr(trainer.fixed_length.roller, "draw", lambda *a: heats.append(float(a[3])) or draw(*a))
    for _ in range(4):
        trainer.step()
    own = seen[::2]  # between them an update from the buffer, which the temperature does not follow
    ratios = [figures_by_hand(scores, batch, trainer.config.entropy)["r_gamma"] for scores, batch in own]
    assert heats[:2] == [1.5, 1.5]  # the guess of log Z and the first batch have none before them
    assert heats[2:] == pytest.approx([1.5 * ratio for ratio in ratios[:-1]], rel=1e-5)
    assert float(trainer.entropy_ratio) == pytest.approx(ratios[-1], rel=1e-5)
    assert len({round(ratio, 5) for ratio in ratios}) == 4
    other = build(task, objective=objective, exploration="entropy", replay__updates=1, **changes)
    assert float(other.entropy_ratio) == 1.0
    other.load({name: value.clone() for name, value in trainer.state().items()})
    assert torch.equal(other.entropy_ratio, trainer.entropy_ratio)


def test_constant_exploration_does_not_look_at_the_ratio() -> None:
    for exploration, looks in (("constant", False), ("entropy", True)):
        plain, heated = (tiny_trainer(objective="kl-entropy", exploration=exploration, batch=64) for _ in range(2))
        heated.entropy_ratio.fill_(1e-3)  # next to nothing of a law is left but its largest entry
        batches = [collected(trainer, 64)[1] for trainer in (plain, heated)]
        assert torch.equal(batches[0].intended, batches[1].intended) != looks
