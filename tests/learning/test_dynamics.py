"""Learning the kernel: likelihood and calibration by hand, and a network that learns it."""

import math
from functools import cache
from typing import Any

import pytest
import torch
from exact_tables import ENVS, KINDS, MIXED, TINY, errors, every_trajectory, inner_states, log_of, no_reward
from torch import Tensor
from torch.testing import assert_close

from sgfn.config import DynamicsConfig, OptimConfig, ThoughtConfig, TrainConfig
from sgfn.envs import SequenceEnv, laws
from sgfn.envs.base import Enumerable
from sgfn.envs.trajectories import Trajectories
from sgfn.landscapes.tasks import make_task
from sgfn.learning.dynamics import calibration, count_estimate, negative_log_likelihood
from sgfn.learning.optimisation import Optimiser, schedule
from sgfn.learning.rollout import rollout
from sgfn.learning.trainer import Trainer
from sgfn.nets.dynamics import FullNoiseModel, TableNoiseModel, model_kind
from sgfn.noise import ByPosition, ConfusionMatrix, HiddenRate, Noise, UniformSlip, bayes_filter
from sgfn.noise.operators import DenseKernel, Kernel


def play(env: Enumerable, batch: int = 200, seed: int = 0) -> Trajectories:
    generator = torch.Generator().manual_seed(seed)
    return rollout(env, log_of(laws.uniform_policy(env)), no_reward, batch=batch, generator=generator)


@pytest.mark.parametrize("name", ENVS)
def test_known_kernel_as_operator(name: str) -> None:
    env, states = ENVS[name](0.25), inner_states(ENVS[name](0.25))
    assert_close(env.operator(states).log_matrix().exp(), env.kernel(states))
    assert (env.operator(states).matrix() - ENVS[name](0.5).kernel(states)).abs().max() > 0.05 or name == "grid-1D-4"


def test_likelihood_by_hand() -> None:
    """Two trajectories of "AB" with stop: the padded steps count for nothing."""
    env = TINY["stop-L3-V2"](0.4)  # P(kept) = .8, P(slipped) = .2, stop is certain
    intended, realised = torch.tensor([[0, 1, 2], [1, 2, 0]]), torch.tensor([[1, 1, 2], [1, 2, 1]])
    states = torch.tensor([[[2, 2, 2], [1, 2, 2], [1, 1, 2], [1, 1, 3]], [[2, 2, 2], [1, 2, 2], [1, 3, 2], [1, 3, 2]]])
    valid = torch.tensor([[True, True, True], [True, True, False]])
    batch = Trajectories(intended=intended, realised=realised, valid=valid, states=states, log_reward=torch.zeros(2))
    found = float(negative_log_likelihood(env.operator(states[:, :-1]), batch))
    assert found == pytest.approx(-(math.log(0.2) + 2 * math.log(0.8)) / 5, abs=1e-6)
    wrong = float(negative_log_likelihood(TINY["stop-L3-V2"](0.8).operator(states[:, :-1]), batch))
    assert wrong == pytest.approx(-(math.log(0.4) + 2 * math.log(0.6)) / 5, abs=1e-6)


def test_likelihood_has_a_finite_gradient_where_padding_is_impossible() -> None:
    env = TINY["stop-L3-V2"](0.4)
    batch = play(env)
    log_kernel = env.kernel(batch.states[:, :-1]).log().requires_grad_()
    negative_log_likelihood(DenseKernel(log_kernel, log=True), batch).backward()
    assert log_kernel.grad is not None
    assert log_kernel.grad.isfinite().all()
    assert float(log_kernel.grad.sum()) == pytest.approx(-1.0, abs=1e-5)
    assert not log_kernel.grad[~batch.valid].any()


@pytest.mark.parametrize("name", TINY)
@pytest.mark.parametrize("alpha", [0.0, 0.3])
def test_the_true_kernel_is_perfectly_calibrated(name: str, alpha: float) -> None:
    env = TINY[name](alpha)
    batch = play(env)
    found = calibration(env, lambda states: env.operator(states, torch.float64), batch)
    assert found["dynamics_tv"] < 1e-15
    assert found["dynamics_nll"] == pytest.approx(found["dynamics_entropy"], abs=1e-12)
    assert (found["dynamics_entropy"] > 0.05) == (alpha > 0 and name != "grid-1D-4")


@pytest.mark.parametrize(("alpha", "beta"), [(0.3, 0.5), (0.6, 0.1)])
def test_calibration_of_a_wrong_kernel_by_hand(alpha: float, beta: float) -> None:
    """Three tokens: TV = |alpha - beta| (1 - 1/V), and NLL - entropy is the KL of one row."""
    env, other = TINY["fixed-L2-V3"](alpha), TINY["fixed-L2-V3"](beta)
    found = calibration(env, other.operator, play(env))
    p, q = ([1 - x + x / 3, x / 3, x / 3] for x in (alpha, beta))
    assert found["dynamics_tv"] == pytest.approx(abs(alpha - beta) * 2 / 3, abs=1e-6)
    assert found["dynamics_entropy"] == pytest.approx(-sum(x * math.log(x) for x in p), abs=1e-9)
    kl = sum(x * math.log(x / y) for x, y in zip(p, q, strict=True))
    assert found["dynamics_nll"] - found["dynamics_entropy"] == pytest.approx(kl, abs=1e-5)
    assert kl > 0.01


def test_intention_comes_first_and_outcome_second() -> None:
    """Drift from A to B, never back: the transposed kernel would call impossible what happens all the time."""
    env = TINY["drift-L2-V3"](0.3)
    batch = play(env)
    kernel = env.operator(batch.states[:, :-1])
    kept = float((batch.intended == batch.realised).double().mean())
    wanted = -kept * math.log(0.7) - (1 - kept) * math.log(0.3)
    assert float(negative_log_likelihood(kernel, batch)) == pytest.approx(wanted, abs=1e-5)
    assert calibration(env, env.operator, batch)["dynamics_tv"] < 1e-6

    def transposed(states: Tensor) -> Kernel:
        return DenseKernel(env.kernel(states).transpose(-1, -2))

    assert negative_log_likelihood(transposed(batch.states[:, :-1]), batch) == torch.inf
    assert calibration(env, transposed, batch)["dynamics_tv"] == pytest.approx(0.3)


def test_calibration_counts_valid_steps_only() -> None:
    env = TINY["stop-L3-V2"](0.3)
    batch = every_trajectory(env)

    def wrong_where_done(states: Tensor) -> Kernel:
        uniform = torch.full((*states.shape[:-1], 3, 3), 1 / 3, dtype=torch.float64)
        truth = env.kernel(states, torch.float64)
        return DenseKernel(torch.where(env.done(states)[..., None, None], uniform, truth))

    assert calibration(env, wrong_where_done, batch)["dynamics_tv"] < 1e-15
    everything = {**vars(batch), "valid": torch.ones_like(batch.valid)}
    assert calibration(env, wrong_where_done, Trajectories(**everything))["dynamics_tv"] > 0.01


@pytest.mark.parametrize("name", KINDS)
def test_what_the_history_tells_is_perfectly_calibrated(name: str) -> None:
    env = KINDS[name](0.3)
    batch = play(env)
    states = batch.states[:, :-1]
    truth = bayes_filter(env.noise, env.slippable(states), batch.intended, batch.realised, env.position(states))
    found = calibration(env, lambda _: DenseKernel(truth), batch)
    assert found["dynamics_tv"] < 1e-12
    assert found["dynamics_nll"] == pytest.approx(found["dynamics_entropy"], abs=1e-12)
    mean = calibration(env, lambda states: env.operator(states, torch.float64), batch)
    assert mean["dynamics_entropy"] == found["dynamics_entropy"]
    assert (mean["dynamics_tv"] > 0.005) == ("hidden" in name)  # a model of single steps is not enough then
    assert (mean["dynamics_nll"] > mean["dynamics_entropy"] + 1e-4) == ("hidden" in name)


@pytest.mark.parametrize("seed", range(3))
def test_counts_recover_a_random_confusion_matrix(seed: int) -> None:
    """Mean TV of rows at most .02 from 4,000 sequences of eight letters; from 40 it is not."""
    other = torch.rand(4, 4, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).fill_diagonal_(0.0)
    matrix = 0.75 * torch.eye(4, dtype=torch.float64) + 0.25 * other / other.sum(-1, keepdim=True)
    env = SequenceEnv(length=8, alphabet="ACGT", noise=ConfusionMatrix(matrix=matrix))
    missed = {}
    for n in (40, 4000):
        missed[n] = float((count_estimate(env, play(env, n, seed)) - matrix).abs().sum(-1).mean() / 2)
    assert missed[4000] < 0.02 < missed[40]
    assert float((count_estimate(env, play(env, 4000)) - matrix.T).abs().sum(-1).mean() / 2) > 0.02


def test_counts_by_hand() -> None:
    """Stop cannot slip, and C was never meant: both get certainty; padded steps count for nothing."""
    env = SequenceEnv(length=3, alphabet="ABC", noise=ConfusionMatrix(matrix=errors(3, 0.3)), stop=True)
    states = torch.tensor([[[3, 3, 3], [0, 3, 3], [0, 1, 3], [0, 1, 4]], [[3, 3, 3], [1, 3, 3], [1, 4, 3], [1, 4, 3]]])
    batch = Trajectories(
        intended=torch.tensor([[0, 0, 3], [0, 3, 1]]),
        realised=torch.tensor([[0, 1, 3], [1, 3, 2]]),
        valid=torch.tensor([[True, True, True], [True, True, False]]),
        states=states,
        log_reward=torch.zeros(2),
    )
    found = count_estimate(env, batch)
    assert_close(found[0], torch.tensor([1 / 3, 2 / 3, 0, 0], dtype=torch.float64))
    assert torch.equal(found[1:], torch.eye(4, dtype=torch.float64)[1:])


@pytest.mark.parametrize("name", MIXED)
def test_counts_where_intentions_are_another_set(name: str) -> None:
    env = MIXED[name](0.3)
    wanted = env.kernel(env.initial(1), torch.float64)[0]
    missed = {n: float((count_estimate(env, play(env, n)) - wanted).abs().sum(-1).mean() / 2) for n in (20, 5000)}
    assert missed[5000] < 0.03 < missed[20]


# The network


def network(env: Enumerable) -> FullNoiseModel:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return FullNoiseModel(env, DynamicsConfig(hidden=32))


@pytest.mark.parametrize("name", ENVS)
def test_network_is_a_law_over_legal_outcomes(name: str) -> None:
    env, states = ENVS[name](0.3), inner_states(ENVS[name](0.3))
    net = network(env)
    with torch.no_grad():
        net.outcome.weight.normal_(generator=torch.Generator().manual_seed(0))  # as after some training
        law = net.operator(states).matrix()
    assert_close(law.sum(-1), torch.ones(env.num_states, env.actions))
    legal = env.legal(states)[:, None, :].expand(law.shape)
    assert (law[legal] > 0).all()
    assert not law[~legal].any()
    assert (law[:1] - law[-1:]).abs().max() > 0.01  # it reads the state


@cache
def trained(name: str) -> tuple[dict[str, float], dict[str, float]]:
    """Calibration before and after 200 steps of maximum likelihood, at states from fresh rollouts."""
    env, steps, size = TINY[name](0.4), 200, 256
    data = play(env, steps * size)
    net, fresh = network(env), play(env, 1000, seed=99)
    before = calibration(env, net.operator, fresh)
    optimiser = Optimiser([(list(net.parameters()), 0.02)], 1.0, torch.device("cpu"))
    for step in range(steps):
        batch = Trajectories(**{field: rows[step * size : (step + 1) * size] for field, rows in vars(data).items()})
        loss = negative_log_likelihood(net.operator(batch.states[:, :-1]), batch)
        optimiser.step(loss, schedule(torch.tensor(float(step)), steps, OptimConfig(warmup=0)))
    return before, calibration(env, net.operator, fresh)


@pytest.mark.parametrize("name", ["fixed-L2-V3", "stop-L3-V2", "grid-2D-3"])
def test_network_learns_the_kernel(name: str) -> None:
    before, after = trained(name)
    assert before["dynamics_tv"] > 0.05
    assert after["dynamics_tv"] < 0.02
    assert before["dynamics_nll"] - before["dynamics_entropy"] > 0.005
    assert 0 <= after["dynamics_nll"] - after["dynamics_entropy"] < 0.003


BY_POSITION = torch.eye(9, dtype=torch.float64).expand(3, 9, 9)
NOISES: dict[str, tuple[Noise, str]] = {
    "uniform": (UniformSlip(alpha=0.1), "shared"),
    "rates by position": (ByPosition(alphas=(0.1, 0.6, 0.0)), "positional"),
    "a matrix for each position": (ConfusionMatrix(matrix=BY_POSITION), "positional"),
    "one matrix": (ConfusionMatrix(matrix=BY_POSITION[0]), "shared"),
}


@pytest.mark.parametrize("noise", NOISES)
def test_which_model_is_learned_where_matrices_are_large(noise: str) -> None:
    given, wanted = NOISES[noise]
    assert model_kind(SequenceEnv(length=3, alphabet="ABCDEFGHI", noise=given), DynamicsConfig()) == wanted
    assert model_kind(SequenceEnv(length=3, alphabet="ABCDEFGHI", noise=given, stop=True), DynamicsConfig()) == "full"


SMALL_MATRICES: dict[str, tuple[dict[str, Any], str, str]] = {
    "uniform": ({}, "full", "shared"),
    "by position": ({"noise": ByPosition(alphas=(0.1,) * 30)}, "full", "positional"),
    "hidden rate": ({"noise": HiddenRate(mean=0.2, concentration=4.0)}, "full", "full"),
    "variable length": ({"stop": True}, "full", "full"),
}


@pytest.mark.parametrize("case", SMALL_MATRICES)
def test_small_matrices_are_learned_by_a_network_where_states_can_be_listed(case: str) -> None:
    changes, listed, unlisted = SMALL_MATRICES[case]
    for length, wanted in ((3, listed), (10, listed), (30, unlisted)):
        env = SequenceEnv(**{"length": length, "alphabet": "ABCD", "noise": UniformSlip(alpha=0.1)} | changes)
        assert model_kind(env, DynamicsConfig()) == wanted
        assert model_kind(env, DynamicsConfig(model="full")) == "full"
    assert laws.enumerable(SequenceEnv(length=10, alphabet="ABCD", noise=UniformSlip(alpha=0.1)))


class Sticky(SequenceEnv):
    """Noise that depends on the state."""

    def kernel(self, state: Tensor, dtype: torch.dtype = torch.float32, rate: object = None) -> Tensor:
        return super().kernel(state, dtype)


def test_noise_by_state_or_history_takes_a_network_at_any_length() -> None:
    noise = UniformSlip(alpha=0.1)
    assert model_kind(Sticky(length=30, alphabet="ABCD", noise=noise), DynamicsConfig()) == "full"
    plain = SequenceEnv(length=30, alphabet="ABCD", noise=noise)
    assert model_kind(plain, DynamicsConfig(), ThoughtConfig(layers=1)) == "full"


def test_evaluation_names_the_model_and_tables_of_long_sequences_learn() -> None:
    """On motifs of length 30: nearer to the kernel in 60 steps than the network that was learned there before."""
    found = {}
    for model in ("auto", "full"):
        changes: dict[str, Any] = {"motif__length": 30, "noise__alpha": 0.25, "dynamics__model": model}
        config = TrainConfig().with_(**changes, steps=60, batch=32, net__hidden=8, optim__warmup=5)
        trainer = Trainer(make_task("motif", config), torch.device("cpu"))
        for _ in range(60):
            trainer.step()
        found[model] = trainer.calibrated(64, 0)
    assert [found[model]["dynamics_model"] for model in found] == ["shared", "full"]
    assert 2 * found["auto"]["dynamics_tv"] < found["full"]["dynamics_tv"]


def test_tables_learn_as_fast_as_they_can(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the rate of a network a table would stay near where it began."""
    flags = {"ehrlich__vocab": 9, "ehrlich__length": 4, "ehrlich__motifs": 1, "noise__alpha": 0.2}
    config = TrainConfig().with_(**flags, steps=80, batch=32, net__hidden=8, optim__warmup=5)

    def far() -> float:
        trainer = Trainer(make_task("ehrlich", config), torch.device("cpu"))
        for _ in range(80):
            trainer.step()
        kernel = trainer.dynamics.operator(trainer.env.initial(1)).detach().matrix()
        return float((kernel - trainer.env.operator(trainer.env.initial(1)).matrix()).abs().sum(-1).mean() / 2)

    quick = far()
    monkeypatch.setattr(TableNoiseModel, "rate_factor", 1.0)
    assert 3 * quick < far()
