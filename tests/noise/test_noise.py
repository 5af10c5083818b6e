"""Noise kernels, the nearest law that each allows, and the files they are read from."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from exact_tables import PROPERTY
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import brentq, minimize
from torch import Tensor
from torch.testing import assert_close

from sgfn.config import NoiseConfig
from sgfn.noise import (
    ByPosition,
    ConfusionMatrix,
    HiddenRate,
    Noise,
    UniformSlip,
    bayes_filter,
    beta_quadrature,
    make_noise,
)
from sgfn.noise.projection import nearest_law, water_fill

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
    found, law = UniformSlip(alpha=alpha).operator(everything(c), c.dtype).project(c)
    assert_close(found[0], torch.from_numpy(policy(nu)), atol=1e-9, rtol=0)
    assert_close(law[0], torch.from_numpy(np.maximum(nu * shares, floor)), atol=1e-9, rtol=0)
    assert np.abs(policy(nu * 0.9) - found[0].numpy()).max() > 1e-3  # any other nu is another policy


@PROPERTY
@given(weights=WEIGHTS, alpha=ALPHAS, mask=st.lists(st.booleans(), min_size=5, max_size=5))
def test_project_is_feasible_and_optimal(weights: list[float], alpha: float, mask: list[bool]) -> None:
    """Karush-Kuhn-Tucker: g_a = sum_k c_k P(k|a)/law_k is at most 1, and 1 where pi_a > 0. No optimiser needed."""
    c, slippable = normalised(weights), torch.tensor([mask[: len(weights)]])
    noise = UniformSlip(alpha=alpha)
    policy, law = noise.operator(slippable, c.dtype).project(c)
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
    _, law = UniformSlip(alpha=alpha).operator(slippable, c.dtype).project(c)
    assert_close(law[0], torch.from_numpy(result.x @ kernel), atol=1e-6, rtol=0)
    start = torch.from_numpy(np.full(4, 0.25) @ kernel)
    assert cross_entropy(c, law) < cross_entropy(c, start[None]) - 1e-4


@PROPERTY
@given(weights=st.lists(st.floats(1e-3, 1.0), min_size=2, max_size=5), alpha=ALPHAS)
def test_project_reproduces_what_is_satisfiable(weights: list[float], alpha: float) -> None:
    c = normalised(weights)
    possible = alpha / len(weights) + (1 - alpha) * c  # the law of the policy c itself
    policy, law = UniformSlip(alpha=alpha).operator(everything(c), possible.dtype).project(possible)
    assert_close(law, possible, atol=1e-12, rtol=0)
    assert_close(policy, c, atol=1e-9, rtol=0)
    least = torch.zeros_like(c)
    least[0, 0] = 1.0  # certainty is out of reach
    _, law = UniformSlip(alpha=alpha).operator(everything(c), least.dtype).project(least)
    assert float(law[0, 0]) == pytest.approx(1 - alpha + alpha / len(weights), abs=1e-12)


def test_stop_keeps_its_mass() -> None:
    """Tokens share what stop leaves: by hand, alpha = .5, two tokens, conditional (.48, .12, .4)."""
    c = torch.tensor([[0.48, 0.12, 0.4]], dtype=torch.float64)
    noise, tokens = UniformSlip(alpha=0.5), torch.tensor([[True, True, False]])
    policy, law = noise.operator(tokens, c.dtype).project(c)  # shares .8 and .2 against a floor of .25: pinned at .25
    assert_close(law, torch.tensor([[0.45, 0.15, 0.4]], dtype=torch.float64), atol=1e-15, rtol=0)
    assert_close(policy, torch.tensor([[0.6, 0.0, 0.4]], dtype=torch.float64), atol=1e-15, rtol=0)
    _, together = noise.operator(everything(c), c.dtype).project(c)
    assert float(together[0, 2]) != pytest.approx(0.4, abs=1e-3)


@pytest.mark.parametrize("alpha", [0.0, 0.3])
def test_project_edges(alpha: float) -> None:
    """All mass outside the set, an empty set, and no noise."""
    c = torch.tensor([[0.0, 0.0, 1.0], [0.2, 0.3, 0.5], [0.2, 0.3, 0.5]], dtype=torch.float64)
    slippable = torch.tensor([[True, True, False], [False] * 3, [True] * 3])
    policy, law = UniformSlip(alpha=alpha).operator(slippable, c.dtype).project(c)
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


# Confusion matrix, position, hidden rate


def spread_out(size: int, seed: int, wrong: float = 0.4) -> Tensor:
    """A random confusion matrix with some outcomes that never happen."""
    generator = torch.Generator().manual_seed(seed)
    other = torch.rand(size, size, generator=generator, dtype=torch.float64)
    other = (other * (other > 0.2)).fill_diagonal_(1e-3)
    return (1 - wrong) * torch.eye(size, dtype=torch.float64) + wrong * other / other.sum(-1, keepdim=True)


def test_a_letter_that_cannot_come_out_stays_as_intended() -> None:
    """Rows and columns outside the set are silent; what would have left the set stays where it was."""
    matrix = torch.tensor([[0.7, 0.2, 0.1], [0.3, 0.6, 0.1], [0.0, 0.5, 0.5]], dtype=torch.float64)
    masks = torch.tensor([[1, 1, 1], [1, 1, 0], [0, 0, 1], [0, 0, 0]], dtype=torch.bool)
    kernel = ConfusionMatrix(matrix=matrix, stop=True).kernel(masks, torch.float64)
    eye = torch.eye(3, dtype=torch.float64)
    inner = torch.tensor([[0.8, 0.2, 0.0], [0.3, 0.7, 0.0], [0.0, 0.0, 1.0]], dtype=torch.float64)
    assert_close(kernel, torch.stack([matrix, inner, eye, eye]))
    wider = ConfusionMatrix(matrix=matrix).kernel(torch.tensor([True, True, True, False]), torch.float64)
    assert_close(wider[:3, :3], matrix)
    assert wider[3].tolist() == [0.0, 0.0, 0.0, 1.0]
    assert wider[:3, 3].tolist() == [0.0, 0.0, 0.0]


def test_position_chooses_the_kernel() -> None:
    noise, everywhere = ByPosition(alphas=(0.0, 0.5)), torch.ones(4, 2, dtype=torch.bool)
    kernel = noise.kernel(everywhere, torch.float64, torch.tensor([0, 1, 2, 1]))  # the last rate serves what is done
    half = [[0.75, 0.25], [0.25, 0.75]]
    assert_close(kernel, torch.tensor([[[1.0, 0.0], [0.0, 1.0]], half, half, half], dtype=torch.float64))
    c = torch.tensor([[0.9, 0.1]], dtype=torch.float64).expand(4, 2)
    law = noise.operator(everywhere, c.dtype, torch.tensor([0, 1, 2, 1])).project(c)[1]
    assert_close(law[0], c[0])
    assert_close(law[1:], torch.tensor([[0.75, 0.25]], dtype=torch.float64).expand(3, 2))
    matrices = torch.stack([spread_out(2, 0), spread_out(2, 1)])
    chosen = ConfusionMatrix(matrix=matrices).kernel(everywhere, torch.float64, torch.tensor([1, 0, 1, 5]))
    assert_close(chosen, matrices[[1, 0, 1, 1]])
    for nowhere in (noise, ConfusionMatrix(matrix=matrices)):
        with pytest.raises(ValueError, match="needs to know the position"):
            nowhere.kernel(everywhere, torch.float64)


def certificate(c: Tensor, kernel: Tensor, policy: Tensor) -> float:
    """max_a sum_k c_k P(k|a)/law_k - 1: by convexity no policy is nearer than this."""
    law = torch.einsum("na,nak->nk", policy, kernel)
    pull = torch.einsum("nak,nk->na", kernel, torch.where(c > 0, c / law.clamp(min=1e-300), 0.0))
    return float(pull.max()) - 1.0


@PROPERTY
@given(weights=WEIGHTS, seed=st.integers(0, 10**6), wrong=st.floats(0.0, 0.99))
def test_any_kernel_is_projected_onto(weights: list[float], seed: int, wrong: float) -> None:
    c, kernel = normalised(weights), spread_out(len(weights), seed, wrong)
    policy, law = ConfusionMatrix(matrix=kernel).operator(everything(c), c.dtype).project(c)
    assert policy.min() >= 0
    assert float(policy.sum()) == pytest.approx(1.0, abs=1e-12)
    assert_close(law, policy @ kernel, atol=1e-14, rtol=0)
    assert certificate(c, kernel[None], policy) < 1e-9
    shifted = 0.5 * policy + 0.5 * policy.roll(1, -1)
    if not torch.allclose(shifted @ kernel, law, atol=1e-3):
        assert certificate(c, kernel[None], shifted) > 1e-9


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("size", [2, 4, 6])
def test_projection_equals_a_numerical_optimiser(size: int, seed: int) -> None:
    kernel = spread_out(size, seed)
    c = torch.softmax(2 * torch.randn(1, size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64), -1)
    target, matrix = c[0].numpy(), kernel.numpy()
    result = minimize(
        lambda x: -(target * np.log(np.maximum(x @ matrix, 1e-12))).sum(),
        np.full(size, 1 / size),
        jac=lambda x: -matrix @ (target / np.maximum(x @ matrix, 1e-12)),
        bounds=[(0.0, 1.0)] * size,
        constraints={"type": "eq", "fun": lambda x: x.sum() - 1.0, "jac": np.ones_like},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    _, law = ConfusionMatrix(matrix=kernel).operator(everything(c), c.dtype).project(c)
    assert_close(law[0], torch.from_numpy(result.x @ matrix), atol=1e-6, rtol=0)
    assert cross_entropy(c, law) <= result.fun + 1e-10
    assert (
        cross_entropy(c, law) < cross_entropy(c, torch.full((1, size), 1 / size, dtype=torch.float64) @ kernel) - 1e-3
    )


@PROPERTY
@given(weights=WEIGHTS, alpha=ALPHAS, mask=st.lists(st.booleans(), min_size=5, max_size=5))
def test_iteration_agrees_with_water_filling(weights: list[float], alpha: float, mask: list[bool]) -> None:
    c, slippable = normalised(weights), torch.tensor([mask[: len(weights)]])
    noise = UniformSlip(alpha=alpha)
    _, law = nearest_law(c, noise.kernel(slippable, torch.float64))
    _, wanted = noise.operator(slippable, c.dtype).project(c)
    assert_close(law, wanted, atol=1e-5, rtol=0)  # a KL of 1e-10 is a distance of 1e-5
    assert cross_entropy(c, law) == pytest.approx(cross_entropy(c, wanted), abs=1e-9)
    _, other = UniformSlip(alpha=alpha * 0.9).operator(slippable, c.dtype).project(c)
    if not torch.allclose(other, wanted, atol=1e-3):
        assert not torch.allclose(law, other, atol=1e-4)


def test_outcomes_that_never_happen_are_left_out() -> None:
    """B never comes out: A is intended for what was wanted of A, C for C; and where only B is wanted, anything goes."""
    kernel = torch.tensor([[[1.0, 0.0, 0.0], [0.5, 0.0, 0.5], [0.0, 0.0, 1.0]]], dtype=torch.float64)
    c = torch.tensor([[0.3, 0.5, 0.2], [0.0, 1.0, 0.0]], dtype=torch.float64)
    policy, law = nearest_law(c, kernel.expand(2, 3, 3))
    assert_close(law, torch.tensor([[0.6, 0.0, 0.4], [0.5, 0.0, 0.5]], dtype=torch.float64), atol=1e-5, rtol=0)
    assert_close(policy.sum(-1), torch.ones(2, dtype=torch.float64))


def test_many_nodes_are_projected_in_little_time() -> None:
    """As many nodes as TFBind8 has prefixes."""
    generator = torch.Generator().manual_seed(0)
    c = torch.softmax(3 * torch.randn(21845, 4, generator=generator, dtype=torch.float64), -1)
    kernel = spread_out(4, 0).expand(21845, 4, 4)
    policy, _ = nearest_law(c, kernel)
    assert certificate(c, kernel, policy) < 1e-9
    assert certificate(c, kernel, c) > 0.1


@PROPERTY
@given(mean=st.floats(0.01, 0.99), concentration=st.floats(0.1, 1e6), count=st.integers(1, 12))
def test_quadrature_has_the_moments_of_the_beta_law(mean: float, concentration: float, count: int) -> None:
    a, b = mean * concentration, (1 - mean) * concentration
    nodes, weights = beta_quadrature(a, b, count)
    moment = 1.0
    for power in range(2 * count):
        assert float(weights @ nodes**power) == pytest.approx(moment, rel=1e-8, abs=1e-14)
        moment *= (a + power) / (a + b + power)
    assert nodes.min() >= 0
    assert nodes.max() <= 1
    spread = moment - float(weights @ nodes ** (2 * count))  # one degree more is one too many
    assert spread > 0 or concentration > 100 or count > 6


@pytest.mark.parametrize(("mean", "concentration"), [(0.25, 4.0), (0.5, 1.0), (0.1, 100.0)])
def test_rates_are_drawn_from_the_beta_law(mean: float, concentration: float) -> None:
    noise = HiddenRate(mean=mean, concentration=concentration)
    rates = noise.draw_rates(20000, torch.Generator().manual_seed(0))
    law = stats.beta(mean * concentration, (1 - mean) * concentration)
    assert rates.dtype == torch.float32
    assert stats.kstest(rates.double().numpy().clip(1e-12, 1 - 1e-12), law.cdf).pvalue > 1e-3
    other = stats.beta(mean * concentration * 1.2, (1 - mean) * concentration * 1.2)
    assert stats.kstest(rates.double().numpy(), other.cdf).pvalue < 1e-3
    assert torch.equal(rates, noise.draw_rates(20000, torch.Generator().manual_seed(0)))
    assert UniformSlip(alpha=0.3).draw_rates(5, torch.Generator()) is None
    assert not HiddenRate(mean=0.0, concentration=4.0).draw_rates(5, torch.Generator()).any()


def by_grid(noise: HiddenRate, slippable: Tensor, intended: Tensor, realised: Tensor) -> Tensor:
    """The Bayes filter on a fine grid of the quantiles of the rate."""
    law = stats.beta(noise.mean * noise.concentration, (1 - noise.mean) * noise.concentration)
    rates = law.ppf((np.arange(40000) + 0.5) / 40000)
    weight, found = np.ones_like(rates), []
    for t in range(intended.shape[0]):
        inside, size = slippable[t].double().numpy(), max(int(slippable[t].sum()), 1)
        eye = np.eye(len(inside))
        kernels = eye * (1 - rates[:, None, None] * inside[:, None])
        kernels = kernels + rates[:, None, None] * inside[:, None] * inside / size
        found.append((weight[:, None, None] * kernels).sum(0) / weight.sum())
        weight = weight * kernels[:, int(intended[t]), int(realised[t])]
    return torch.from_numpy(np.stack(found))


def test_the_bayes_filter_equals_integration() -> None:
    noise = HiddenRate(mean=0.3, concentration=2.5)
    slippable = torch.tensor([[True, True, True]] * 4 + [[True, True, False], [False, False, False]])
    intended, realised = torch.tensor([0, 1, 2, 0, 2, 1]), torch.tensor([0, 1, 0, 0, 2, 1])
    found = bayes_filter(noise, slippable[None], intended[None], realised[None])
    assert_close(found[0], by_grid(noise, slippable, intended, realised), atol=1e-4, rtol=0)
    assert_close(found[0, 0], noise.kernel(slippable[0], torch.float64))  # nothing is known at first
    kept = [float(found[0, t, 0, 0]) for t in range(4)]
    assert kept[0] < kept[1] < kept[2] > kept[3]  # every hit raises the hope, a slip lowers it
    rates = noise.posterior_rates(slippable[None], intended[None], realised[None])
    assert rates[0, 4] == pytest.approx(float(rates[0, 5]), abs=1e-15)  # what cannot slip says nothing


@pytest.mark.parametrize("slips", [1, 5, 30])
def test_after_slips_alone_the_posterior_is_conjugate(slips: int) -> None:
    noise, t = HiddenRate(mean=0.2, concentration=5.0), slips + 1
    slippable, zeros = torch.ones(1, t, 4, dtype=torch.bool), torch.zeros(1, t, dtype=torch.int64)
    rates = noise.posterior_rates(slippable, zeros, zeros + 1)
    assert_close(rates[0], torch.tensor([(1 + n) / (5 + n) for n in range(t)], dtype=torch.float64), atol=1e-9, rtol=0)
    assert noise.highest(slips) == pytest.approx(float(rates[0, -1]), abs=1e-9)
    assert noise.posterior_rates(slippable, zeros, zeros)[0, -1] < 0.2
    assert UniformSlip(alpha=0.2).posterior_rates(slippable, zeros, zeros) is None
    plain = bayes_filter(UniformSlip(alpha=0.2), slippable, zeros, zeros)
    assert_close(plain, UniformSlip(alpha=0.2).kernel(slippable, torch.float64))


# Files

MATRIX = ",C,A\nA,.2,.8\nC,.9,.1\n"


def written(tmp_path: Path, text: str | bytes) -> Path:
    file = tmp_path / "noise.csv"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def confusion(file: Path, stop: bool = False) -> Noise:
    return make_noise(NoiseConfig(kind="confusion", file=file, stop=stop), "AC", 3)


def test_a_matrix_is_read_in_any_order(tmp_path: Path) -> None:
    wanted = torch.tensor([[0.8, 0.2], [0.1, 0.9]], dtype=torch.float64)
    for text in (MATRIX, "\ufeffintended, A , C\n\nC,.1,.9\nA,0.8,2e-1\n", MATRIX.replace("\n", "\r\n")):
        noise = confusion(written(tmp_path, text))
        assert isinstance(noise, ConfusionMatrix)
        assert_close(noise.matrix, wanted)
        assert noise.summary == "confusion matrix, 15.0% errors"
    assert_close(confusion(written(tmp_path, MATRIX.replace(".8", ".80000001"))).matrix.sum(-1), torch.ones(2).double())
    whole = confusion(written(tmp_path, ",A,C,stop\nstop,.1,.1,.8\nA,.8,.2,0\nC,.5,.5,0\n"), stop=True)
    assert whole.stop
    assert whole.matrix[2].tolist() == pytest.approx([0.1, 0.1, 0.8])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (MATRIX.replace(".8", ".7"), r", line 2: row 'A' sums to 0\.9, it must sum to 1$"),
        (MATRIX.replace(".8", ".83"), r", line 2: row 'A' sums to 1\.03, it must sum to 1$"),
        (MATRIX.replace(".8", "0").replace(".2", "0"), r", line 2: row 'A' sums to 0, it must sum to 1$"),
        (MATRIX.replace(".8", "80").replace(".2", "20"), r", line 2: row 'A' sums to 100, it must sum to 1$"),
        (MATRIX.replace(".8", "nan"), r", line 2, column 'A': nan is no probability in \[0, 1\]$"),
        (MATRIX.replace(".8", "-0.8"), r", line 2, column 'A': -0\.8 is no probability in \[0, 1\]$"),
        (MATRIX.replace(".8", "inf"), r", line 2, column 'A': inf is no probability"),
        (MATRIX.replace(".8", "often"), r", line 2, column 'A': 'often' is not a number$"),
        (MATRIX.replace(".8", ""), r", line 2, column 'A': '' is not a number$"),
        (MATRIX.replace(",.8", ""), r", line 2: 2 fields where the header has 3; fill in what is missing$"),
        (MATRIX.replace("C,.9,.1\n", ""), r", the first column lacks 'C'; it needs each of A C once$"),
        (MATRIX.replace("C,.9", "A,.9"), r", the first column lacks 'C'"),
        (MATRIX + "C,.9,.1\n", r", the first column repeats 'C'"),
        (MATRIX.replace(",C,A", ",C,G"), r", line 1: the header has the unknown 'G'; it needs each of A C once$"),
        (MATRIX.replace("C,.9", "stop,.9"), r", the first column has the unknown 'stop'"),
        (",C\nA,1\nC,1\n", r", line 1: the header lacks 'A'"),
        ("", r": the file is empty; write a header and one row for each intended letter$"),
        (",A,C\n", r": a header and no rows; add one row for each intended letter$"),
        (b"\xff\xfe\x00\x01", r": the text is in UTF-16; save the table as CSV in UTF-8$"),
    ],
)
def test_a_wrong_matrix_is_told_in_one_line(text: str | bytes, message: str, tmp_path: Path) -> None:
    file = written(tmp_path, text)
    with pytest.raises(ValueError, match=rf"^noise\.file {re.escape(str(file))}{message}") as caught:
        confusion(file)
    assert "\n" not in str(caught.value)
    confusion(written(tmp_path, MATRIX))  # and the right one passes


def test_rates_by_position_are_read(tmp_path: Path) -> None:
    config = NoiseConfig(kind="position", file=written(tmp_path, "position,alpha\n1,0\n2,.5\n3,.25\n4,.1\n"))
    noise = make_noise(config, "AC", 3)
    assert noise == ByPosition(alphas=(0.0, 0.5, 0.25, 0.1))
    assert noise.summary == "uniform slip by position, 0 to 0.5"
    assert make_noise(config, None, 4) == noise


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("alpha\n.1\n.2\n", r" has 2 positions, the task has 3: add rows$"),
        ("rate\n.1\n.2\n.3\n", r", line 1: the header has no column 'alpha'$"),
        ("alpha\n.1\n1\n.3\n", r", line 3, column 'alpha': must lie in \[0, 1\), got 1$"),
        ("alpha\n.1\n1.5\n.3\n", r", line 3, column 'alpha': 1\.5 is no probability"),
        ("alpha\n.1\nNaN\n.3\n", r", line 3, column 'alpha': NaN is no probability"),
        ("alpha\n.1\nx\n.3\n", r", line 3, column 'alpha': 'x' is not a number$"),
        ("position,alpha\n1,.1\n3,.1\n2,.3\n", r", line 3, column 'position': expected 2, got 3$"),
        ("position,alpha\n1,.1\n2\n3,.3\n", r", line 3: 1 field where the header has 2; fill in what is missing$"),
    ],
)
def test_wrong_rates_are_told_in_one_line(text: str, message: str, tmp_path: Path) -> None:
    file = written(tmp_path, text)
    with pytest.raises(ValueError, match=rf"^noise\.file {re.escape(str(file))}{message}"):
        make_noise(NoiseConfig(kind="position", file=file), "AC", 3)


def test_a_configuration_makes_its_noise(tmp_path: Path) -> None:
    assert make_noise(NoiseConfig(alpha=0.3, stop=True), "AC", 3) == UniformSlip(alpha=0.3, stop=True)
    hidden = make_noise(NoiseConfig(kind="hidden", alpha=0.3, concentration=7.0), "AC", 3)
    assert hidden == HiddenRate(mean=0.3, concentration=7.0)
    assert hidden.summary == "hidden slip rate, mean 0.3, concentration 7"
    with pytest.raises(ValueError, match=r"^noise\.file .*absent\.csv: no such file; check the path$"):
        confusion(tmp_path / "absent.csv")
    with pytest.raises(ValueError, match=r"^noise\.kind 'confusion' reads a table and noise\.file is not given"):
        make_noise(NoiseConfig(kind="confusion"), "AC", 3)
    with pytest.raises(ValueError, match=r"^noise\.file is given and noise\.kind is 'uniform'"):
        make_noise(NoiseConfig(file=tmp_path), "AC", 3)
    with pytest.raises(ValueError, match=r"^noise\.kind 'confusion' needs letters and this task has none"):
        make_noise(NoiseConfig(kind="confusion", file=written(tmp_path, MATRIX)), None, 3)
