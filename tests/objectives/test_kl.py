"""The KL objective: zero at the exact solution; its projection is the water-filling optimum."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from balances import BALANCE
from exact_tables import TINY, balanced
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from torch import Tensor
from torch.testing import assert_close

from sgfn.config import TrainConfig
from sgfn.envs.trajectories import Trajectories
from sgfn.learning.scoring import kl_divergence, score, score_outcome
from sgfn.nets.heads import Heads
from sgfn.noise import UniformSlip
from sgfn.noise.operators import DenseKernel
from sgfn.objectives import scored_as
from sgfn.objectives.kl import outcome_flow_kl
from sgfn.objectives.making import make_objective

ONE_STEP = Trajectories(
    intended=torch.zeros(1, 1, dtype=torch.int64),
    realised=torch.zeros(1, 1, dtype=torch.int64),
    valid=torch.ones(1, 1, dtype=torch.bool),
    states=torch.zeros(1, 2, 1, dtype=torch.int64),
    log_reward=torch.zeros(1, dtype=torch.float64),
)


def projection_loss(log_policy: Tensor, conditional: Tensor, kernel: Tensor) -> Tensor:
    """The projection as training computes it, at one state."""
    zero = torch.zeros(1, 1, dtype=torch.float64)
    heads = Heads(log_policy=log_policy[None, None], log_flow=zero, log_outcome=conditional.log()[None, None])
    scores = score_outcome(heads, DenseKernel(kernel[None, None]), ONE_STEP, zero[0, 0])
    assert scores.projection is not None
    return scores.projection[0, 0]


def projected(conditional: Tensor, kernel: Tensor) -> Tensor:
    """The outcome law of the policy that descent on the projection finds.

    Weights are squares: where the best policy leaves an intention out, logits would have to run to minus infinity.
    """
    root = torch.ones(kernel.shape[0], dtype=torch.float64, requires_grad=True)
    limits: dict[str, float] = {"tolerance_grad": 1e-13, "tolerance_change": 1e-18}
    for _ in range(5):  # a fresh start forgets curvature from far away
        optimiser = torch.optim.LBFGS([root], max_iter=500, line_search_fn="strong_wolfe", **limits)

        def closure(optimiser: torch.optim.Optimizer = optimiser) -> Tensor:
            optimiser.zero_grad()
            loss = projection_loss((root.square() / root.square().sum()).log(), conditional, kernel)
            loss.backward()
            return loss

        optimiser.step(closure)
    policy = (root.square() / root.square().sum()).detach()
    return policy @ kernel


def random_law(size: int, seed: int) -> Tensor:
    weight = torch.rand(size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return (weight**3 + 1e-3) / (weight**3 + 1e-3).sum()


@pytest.mark.parametrize("flow", BALANCE)
@pytest.mark.parametrize("alpha", [0.0, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("name", TINY)
def test_vanishes_only_where_flow_and_projection_do(name: str, alpha: float, flow: str) -> None:
    scorer, batch, kernel = balanced(name, alpha, "marginal")
    scores = score(scorer, batch, "outcome", kernel)
    assert outcome_flow_kl(scores, batch, BALANCE[flow]).abs().max() < 1e-9
    assert scores.projection is not None
    apart = replace(scores, projection=scores.projection + 0.1 * batch.valid)
    assert_close(outcome_flow_kl(apart, batch, BALANCE[flow], 2.0), torch.full_like(batch.log_reward, 0.2))
    unbalanced = replace(batch, log_reward=batch.log_reward + 0.1)
    assert outcome_flow_kl(scores, unbalanced, BALANCE[flow]).min() > 1e-6


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.0, 0.9), st.integers(2, 6))
def test_projection_is_water_filling_under_uniform_slip(seed: int, alpha: float, size: int) -> None:
    conditional, everything = random_law(size, seed), torch.ones(1, size, dtype=torch.bool)
    noise = UniformSlip(alpha=alpha)
    best = noise.operator(everything, conditional.dtype).project(conditional[None])[1][0]
    found = projected(conditional, noise.kernel(everything, torch.float64)[0])
    assert kl_divergence(conditional.log(), found.log()) - kl_divergence(conditional.log(), best.log()) < 1e-6
    assert_close(found, best, atol=1e-6, rtol=0)
    worse = 0.9 * best + 0.1 * torch.eye(size, dtype=torch.float64)[int(conditional.argmin())]
    assert kl_divergence(conditional.log(), worse.log()) > kl_divergence(conditional.log(), best.log()) + 1e-6


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 5))
def test_projection_is_the_convex_optimum_for_any_kernel(seed: int, size: int) -> None:
    conditional = random_law(size, seed)
    kernel = torch.stack([random_law(size, seed + 1 + a) for a in range(size)])
    c, p = conditional.numpy(), kernel.numpy()
    solved = minimize(
        lambda pi: -(c * np.log(pi @ p)).sum(),
        [1 / size] * size,
        jac=lambda pi: -(p @ (c / (pi @ p))),
        bounds=[(0, 1)] * size,
        constraints={"type": "eq", "fun": lambda pi: pi.sum() - 1},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    best = torch.from_numpy(solved.x @ p)
    found = projected(conditional, kernel)
    gap = kl_divergence(conditional.log(), found.log()) - kl_divergence(conditional.log(), best.log())
    assert abs(float(gap)) < 1e-6
    assert_close(found, best, atol=1e-4, rtol=0)  # the solver's own accuracy; flat where two rows are nearly alike


def test_gradients_are_finite_where_an_outcome_is_impossible() -> None:
    """On a grid a move off the border has probability zero for every intention: its column is minus infinity."""
    scorer, batch, kernel = balanced("grid-2D-3", 0.5, "marginal")
    heads = scorer.heads(batch.states)
    logits = torch.zeros_like(heads.log_policy, requires_grad=True)
    legal = scorer.env.legal(batch.states)
    log_policy = torch.log_softmax(logits.masked_fill(~legal, -torch.inf), -1)

    class Learner:
        log_z, reads_final = scorer.log_z, True

        def heads(self, state: Tensor) -> object:
            return replace(heads, log_policy=log_policy)

    scores = score(Learner(), batch, "outcome", kernel)  # pyright: ignore[reportArgumentType]
    assert scores.projection is not None
    scores.projection.sum().backward()
    assert logits.grad is not None
    assert logits.grad.isfinite().all()
    assert logits.grad.abs().max() > 0


def test_config_chooses_flow_and_weight() -> None:
    scorer, batch, kernel = balanced("grid-2D-3", 0.5, "marginal")
    scores = score(scorer, batch, "outcome", kernel)
    assert scores.projection is not None
    scores = replace(scores, projection=scores.projection + batch.valid, log_pf=scores.log_pf + 0.1)
    config = TrainConfig().with_(objective="kl", kl__flow="db", kl__weight=3.0)
    assert scored_as(config) == "outcome"
    wanted = BALANCE["db"](scores, batch) + 3.0
    assert_close(make_objective(config)(scores, batch), wanted)
    assert not torch.allclose(make_objective(config.with_(kl__flow="tb"))(scores, batch), wanted)
