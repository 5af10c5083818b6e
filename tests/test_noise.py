"""The slip kernel, and the nearest law that it allows."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize
from torch import Tensor
from torch.testing import assert_close

from exact_tables import PROPERTY
from sgfn.noise import UniformSlip, water_fill

ALPHAS = st.floats(0.01, 0.95)
WEIGHTS = st.lists(st.just(0.0) | st.floats(1e-3, 1.0), min_size=2, max_size=5).filter(any)


def normalised(weights: list[float]) -> Tensor:
    return torch.tensor([weights], dtype=torch.float64) / sum(weights)


def everything(law: Tensor) -> Tensor:
    return torch.ones_like(law, dtype=torch.bool)


def cross_entropy(conditional: Tensor, law: Tensor) -> float:
    """KL up to a constant: what the projection minimises."""
    return float(-torch.where(conditional > 0, conditional * law.log(), 0.0).sum())


# Kernel


@pytest.mark.parametrize("alpha", [0.0, 0.25, 0.7])
@pytest.mark.parametrize("mask", [[1, 1], [1, 1, 1, 0], [0, 1, 0, 1], [0, 0, 0], [1, 0]])
def test_kernel_entry_by_entry(alpha: float, mask: list[int]) -> None:
    kernel = UniformSlip(alpha=alpha).kernel(torch.tensor(mask, dtype=torch.bool), torch.float64)
    for a, row in enumerate(kernel.tolist()):
        slip = alpha / sum(mask) if mask[a] else 0.0
        wanted = [(1 - alpha * mask[a]) * (a == k) + slip * mask[k] for k in range(len(mask))]
        assert row == pytest.approx(wanted, abs=1e-15)
    assert_close(kernel.sum(-1), torch.ones(len(mask), dtype=torch.float64), atol=1e-15, rtol=0)
    quiet = torch.equal(kernel, torch.eye(len(mask), dtype=torch.float64))
    assert quiet == (alpha == 0.0 or sum(mask) < 2)


@PROPERTY
@given(alpha=st.floats(0.0, 0.99), mask=st.lists(st.booleans(), min_size=1, max_size=6))
def test_kernel_is_a_law_and_batches(alpha: float, mask: list[bool]) -> None:
    noise, slippable = UniformSlip(alpha=alpha), torch.tensor([mask, [True] * len(mask)])
    kernel = noise.kernel(slippable, torch.float64)
    assert kernel.min() >= 0
    assert_close(kernel.sum(-1), torch.ones(2, len(mask), dtype=torch.float64), atol=1e-14, rtol=0)
    assert_close(kernel[0], noise.kernel(slippable[0], torch.float64), atol=0, rtol=0)
    outside = ~slippable[0]
    assert torch.equal(kernel[0][outside], torch.eye(len(mask), dtype=torch.float64)[outside])
    assert not kernel[0][:, outside][~outside].any()  # nothing slips out of the set


# Projection


@PROPERTY
@given(weights=WEIGHTS, alpha=ALPHAS)
def test_project_equals_the_closed_form(weights: list[float], alpha: float) -> None:
    """pi_k = max(0, (nu c_k - alpha/V)/(1-alpha)), with nu found by scipy."""
    c = normalised(weights)
    floor, shares = alpha / len(weights), c[0].numpy()

    def policy(nu: float) -> np.ndarray:
        return np.maximum(0.0, (nu * shares - floor) / (1 - alpha))

    nu = brentq(lambda x: policy(x).sum() - 1.0, 0.0, 1.0 + 1e-9, xtol=1e-15)
    found, law = UniformSlip(alpha=alpha).project(c, everything(c))
    assert_close(found[0], torch.from_numpy(policy(nu)), atol=1e-9, rtol=0)
    assert_close(law[0], torch.from_numpy(np.maximum(nu * shares, floor)), atol=1e-9, rtol=0)
    assert np.abs(policy(nu * 0.9) - found[0].numpy()).max() > 1e-3  # any other nu is another policy


@PROPERTY
@given(weights=WEIGHTS, alpha=ALPHAS, mask=st.lists(st.booleans(), min_size=5, max_size=5))
def test_project_is_feasible_and_optimal(weights: list[float], alpha: float, mask: list[bool]) -> None:
    """Karush-Kuhn-Tucker: g_a = sum_k c_k P(k|a)/law_k is at most 1, and 1 where pi_a > 0. No optimiser needed."""
    c, slippable = normalised(weights), torch.tensor([mask[: len(weights)]])
    noise = UniformSlip(alpha=alpha)
    policy, law = noise.project(c, slippable)
    kernel = noise.kernel(slippable, torch.float64)[0]
    assert policy.min() >= 0
    assert float(policy.sum()) == pytest.approx(1.0, abs=1e-12)
    assert_close(policy @ kernel, law, atol=1e-12, rtol=0)
    assert_close(law[~slippable], c[~slippable], atol=0, rtol=0)  # what cannot slip keeps its mass

    def gradient(law: Tensor) -> Tensor:
        return kernel @ torch.where(c > 0, c / law.clamp(min=1e-300), 0.0)[0]

    slope = gradient(law)
    assert slope.max() <= 1 + 1e-9
    assert_close(slope[policy[0] > 1e-9], torch.ones_like(slope[policy[0] > 1e-9]), atol=1e-9, rtol=0)
    shifted = 0.5 * policy + 0.5 * policy.roll(1, -1)  # and a law that is not optimal is told apart
    if not torch.allclose(shifted @ kernel, law, atol=1e-3):
        assert gradient(shifted @ kernel).max() > 1 + 1e-9


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("alpha", [0.2, 0.6, 0.9])
def test_project_beats_a_numerical_optimiser(alpha: float, seed: int) -> None:
    """SLSQP over the simplex of policies reaches the same law; its start does not."""
    generator = torch.Generator().manual_seed(seed)
    c = torch.softmax(2 * torch.randn(1, 4, generator=generator, dtype=torch.float64), -1)
    slippable = torch.tensor([[True, True, True, seed % 2 == 0]])
    kernel = UniformSlip(alpha=alpha).kernel(slippable, torch.float64)[0].numpy()
    target = c[0].numpy()
    result = minimize(
        lambda x: -(target * np.log(np.maximum(x @ kernel, 1e-12))).sum(),
        np.full(4, 0.25),
        jac=lambda x: -kernel @ (target / np.maximum(x @ kernel, 1e-12)),
        bounds=[(0.0, 1.0)] * 4,
        constraints={"type": "eq", "fun": lambda x: x.sum() - 1.0, "jac": np.ones_like},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    _, law = UniformSlip(alpha=alpha).project(c, slippable)
    assert_close(law[0], torch.from_numpy(result.x @ kernel), atol=1e-6, rtol=0)
    start = torch.from_numpy(np.full(4, 0.25) @ kernel)
    assert cross_entropy(c, law) < cross_entropy(c, start[None]) - 1e-4


@PROPERTY
@given(weights=st.lists(st.floats(1e-3, 1.0), min_size=2, max_size=5), alpha=ALPHAS)
def test_project_reproduces_what_is_satisfiable(weights: list[float], alpha: float) -> None:
    c = normalised(weights)
    possible = alpha / len(weights) + (1 - alpha) * c  # the law of the policy c itself
    policy, law = UniformSlip(alpha=alpha).project(possible, everything(c))
    assert_close(law, possible, atol=1e-12, rtol=0)
    assert_close(policy, c, atol=1e-9, rtol=0)
    least = torch.zeros_like(c)
    least[0, 0] = 1.0  # certainty is out of reach
    _, law = UniformSlip(alpha=alpha).project(least, everything(c))
    assert float(law[0, 0]) == pytest.approx(1 - alpha + alpha / len(weights), abs=1e-12)


def test_stop_keeps_its_mass() -> None:
    """Tokens share what stop leaves: by hand, alpha = .5, two tokens, conditional (.48, .12, .4)."""
    c = torch.tensor([[0.48, 0.12, 0.4]], dtype=torch.float64)
    noise, tokens = UniformSlip(alpha=0.5), torch.tensor([[True, True, False]])
    policy, law = noise.project(c, tokens)  # shares .8 and .2 against a floor of .25: pinned at .25
    assert_close(law, torch.tensor([[0.45, 0.15, 0.4]], dtype=torch.float64), atol=1e-15, rtol=0)
    assert_close(policy, torch.tensor([[0.6, 0.0, 0.4]], dtype=torch.float64), atol=1e-15, rtol=0)
    _, together = noise.project(c, everything(c))
    assert float(together[0, 2]) != pytest.approx(0.4, abs=1e-3)


@pytest.mark.parametrize("alpha", [0.0, 0.3])
def test_project_edges(alpha: float) -> None:
    """All mass outside the set, an empty set, and no noise."""
    c = torch.tensor([[0.0, 0.0, 1.0], [0.2, 0.3, 0.5], [0.2, 0.3, 0.5]], dtype=torch.float64)
    slippable = torch.tensor([[True, True, False], [False] * 3, [True] * 3])
    policy, law = UniformSlip(alpha=alpha).project(c, slippable)
    assert torch.equal(policy[:2], c[:2])
    assert torch.equal(law[:2], c[:2])
    assert torch.allclose(policy[2], c[2], atol=1e-12) == (alpha == 0.0)


def test_water_fill_by_hand() -> None:
    share = torch.tensor([[0.7, 0.2, 0.1], [0.7, 0.2, 0.1], [0.0, 0.0, 0.0]], dtype=torch.float64)
    floor = torch.tensor([[0.0], [0.15], [0.15]], dtype=torch.float64).expand(3, 3)
    filled = water_fill(share, floor)
    wanted = [[0.7, 0.2, 0.1], [0.85 * 7 / 9, 0.85 * 2 / 9, 0.15], [0.0, 0.0, 0.0]]
    assert_close(filled, torch.tensor(wanted, dtype=torch.float64), atol=1e-15, rtol=0)
    clipped = torch.maximum(share, floor)[1] / torch.maximum(share, floor)[1].sum()
    assert cross_entropy(share[1], filled[1]) < cross_entropy(share[1], clipped) - 1e-4 or float(clipped.min()) < 0.15


def test_water_fill_pins_one_after_another() -> None:
    """Pinning the third entry pushes the second below its floor: one round is not enough."""
    share = torch.tensor([[0.6, 0.26, 0.14, 0.0]], dtype=torch.float64)
    floor = torch.full((1, 4), 0.2, dtype=torch.float64)
    filled = water_fill(share, floor)
    assert_close(filled, torch.tensor([[0.4, 0.2, 0.2, 0.2]], dtype=torch.float64), atol=1e-15, rtol=0)
    once = torch.where(share < floor, floor, share * 0.6 / 0.86)  # only what was low at first
    assert once[0, 1] < 0.2
