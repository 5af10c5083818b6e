"""Kernels as operators answer as the matrix does, whatever they are made of."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from own_noise import Rotation
from torch import Tensor
from torch.testing import assert_close

from sgfn.nets.dynamics import MaskedTableKernel
from sgfn.noise import ByPosition, ConfusionMatrix, HiddenRate, Mixtures, Noise, UniformSlip
from sgfn.noise.operators import DenseKernel, Identity, Kernel, TableKernel, UniformSlipKernel, floored_log

STATES, ACTIONS, POSITIONS = 12, 5, 3


def laws(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).softmax(-1)


def slippable() -> Tensor:
    found = torch.rand(STATES, ACTIONS, generator=torch.Generator().manual_seed(3)) > 0.3
    found[0] = False
    return found


class LouderSlip(UniformSlip):
    """A slip whose subclass has a kernel of its own: the closed form of its rate must not be used."""

    def kernel(self, slippable: Tensor, dtype: torch.dtype, position: Tensor | None = None) -> Tensor:
        return UniformSlipKernel(slippable, 0.9, dtype).matrix()


def by_noise(noise: Noise) -> tuple[Kernel, Tensor]:
    position = torch.arange(STATES) % POSITIONS
    return noise.operator(slippable(), torch.float64, position), noise.kernel(slippable(), torch.float64, position)


def masked_table() -> tuple[Kernel, Tensor]:
    table, index = laws(POSITIONS, ACTIONS, 4), torch.arange(STATES) % POSITIONS
    possible = torch.rand(STATES, 4, generator=torch.Generator().manual_seed(5)) > 0.4
    possible[:, 0] = True
    kept = table[index] * possible[:, None]
    return MaskedTableKernel(TableKernel(table.log(), index, log=True), possible), kept / kept.sum(-1, keepdim=True)


def mixtures() -> tuple[Kernel, Tensor]:
    noise = Mixtures(matrix=laws(ACTIONS, 3))
    return by_noise(noise)


def table(rows: int, actions: int = ACTIONS, outcomes: int = 40, *, log: bool = False) -> tuple[Kernel, Tensor]:
    matrices, index = laws(rows, actions, outcomes), torch.arange(STATES) % rows
    return TableKernel(matrices.log() if log else matrices, index, log=log), matrices[index]


KERNELS: dict[str, Callable[[], tuple[Kernel, Tensor]]] = {
    "no noise": lambda: by_noise(UniformSlip(alpha=0.0)),
    "uniform": lambda: by_noise(UniformSlip(alpha=0.3)),
    "hidden rate": lambda: by_noise(HiddenRate(mean=0.2, concentration=4.0)),
    "by position": lambda: by_noise(ByPosition(alphas=(0.1, 0.5, 0.9))),
    "confusion": lambda: by_noise(ConfusionMatrix(matrix=laws(ACTIONS, ACTIONS))),
    "confusion by position": lambda: by_noise(ConfusionMatrix(matrix=laws(POSITIONS, ACTIONS, ACTIONS))),
    "a user's": lambda: by_noise(Rotation()),
    "a user's slip": lambda: by_noise(LouderSlip(alpha=0.1)),
    "mixtures, rectangular": mixtures,
    "dense logarithms": lambda: (DenseKernel(laws(STATES, ACTIONS, 3).log(), log=True), laws(STATES, ACTIONS, 3)),
    "shared table": lambda: table(1),
    "table": lambda: table(4),
    "large shared table": lambda: table(1, 40, 30),
    "large table of logarithms": lambda: table(2, 30, 40, log=True),
    "masked table": masked_table,
}


@pytest.mark.parametrize("name", KERNELS)
def test_every_answer_is_that_of_the_matrix(name: str) -> None:
    kernel, matrix = KERNELS[name]()
    matrix = matrix.expand(STATES, *matrix.shape[-2:])
    rows = torch.arange(STATES)
    assert_close(kernel.matrix().expand_as(matrix), matrix)
    for a in range(matrix.shape[-2]):
        assert_close(kernel.row(torch.full((STATES,), a)), matrix[:, a])
    log_policy = laws(STATES, matrix.shape[-2], seed=1).log()
    wanted = torch.einsum("na,nak->nk", log_policy.exp(), matrix)
    assert_close(kernel.outcome_law(log_policy).exp(), wanted, atol=1e-12, rtol=1e-9)
    for k in range(matrix.shape[-1]):
        outcome = torch.full((STATES,), k)
        assert_close(kernel.log_column(outcome).exp(), matrix[:, :, k])
        there = wanted[:, k] > 0
        log_law, posterior = kernel.posterior(log_policy, outcome)
        assert_close(log_law.exp()[there], wanted[there, k])
        assert_close(posterior.exp()[there], (log_policy.exp() * matrix[:, :, k])[there] / wanted[there, k, None])
        for a in range(matrix.shape[-2]):
            assert_close(kernel.log_prob(torch.full_like(outcome, a), outcome).exp(), matrix[rows, a, k])
    other = matrix.roll(1, -1)  # and the test can fail
    assert (
        float((kernel.outcome_law(log_policy).exp() - torch.einsum("na,nak->nk", log_policy.exp(), other)).abs().max())
        > 1e-3
    )


@pytest.mark.parametrize("name", KERNELS)
def test_expectations_and_laws_are_those_of_the_matrix(name: str) -> None:
    """Values of outcomes averaged under every intention, also as logarithms of which some are minus infinity."""
    kernel, matrix = KERNELS[name]()
    matrix = matrix.expand(STATES, *matrix.shape[-2:])
    policy = laws(STATES, matrix.shape[-2], seed=1)
    policy = torch.where(policy > policy.mean(), policy, 0.0)
    assert_close(kernel.outcome_probabilities(policy), torch.einsum("na,nak->nk", policy, matrix))
    values = torch.randn(STATES, matrix.shape[-1], generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    assert_close(kernel.expected(values), torch.einsum("nak,nk->na", matrix, values))
    log_values = torch.where(values > 1.0, -torch.inf, 5 * values)
    log_values[1] = -torch.inf
    wanted = torch.einsum("nak,nk->na", matrix, log_values.exp())
    assert_close(kernel.log_expected(log_values).exp(), wanted)
    assert not torch.allclose(kernel.log_expected(log_values.roll(1, -1)).exp(), wanted)  # and the test can fail
    assert not torch.allclose(kernel.expected(values.roll(1, -1)), torch.einsum("nak,nk->na", matrix, values))
    assert not torch.allclose(kernel.outcome_probabilities(policy.roll(1, -1)), kernel.outcome_probabilities(policy))


@pytest.mark.parametrize("name", KERNELS)
def test_gradients_of_expectations_are_those_of_the_matrix(name: str) -> None:
    """Finite ones, where a state has no outcome of any worth too."""
    kernel, matrix = KERNELS[name]()
    matrix = matrix.expand(STATES, *matrix.shape[-2:])
    values = torch.randn(STATES, matrix.shape[-1], generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    mask = values > 1.0
    mask[1] = True
    found = []
    for by in (kernel, DenseKernel(matrix)):
        leaf = values.clone().requires_grad_()
        got = by.log_expected(torch.where(mask, -torch.inf, leaf))
        torch.where(got > -torch.inf, got.square(), 0.0).sum().backward()
        assert leaf.grad is not None
        found.append(leaf.grad)
    assert_close(*found)
    assert bool((found[0][1] == 0).all())
    assert float(found[0].abs().max()) > 0.1


@pytest.mark.parametrize("noise", [UniformSlip(alpha=0.0), ConfusionMatrix(matrix=torch.eye(3).double())])
def test_a_small_flow_beside_a_large_one_is_kept(noise: Noise) -> None:
    """Without slips the expectation is the value itself, however far below the others it lies."""
    log_values = torch.tensor([[0.0, -200.0, -500.0]])
    kernel = noise.operator(torch.ones(1, 3, dtype=torch.bool), torch.float32, torch.zeros(1, dtype=torch.int64))
    assert_close(kernel.log_expected(log_values), log_values)
    assert bool((log_values.exp().log()[:, 1:] == -torch.inf).all())  # which sums of probabilities would lose


@pytest.mark.parametrize("name", KERNELS)
def test_outcomes_are_drawn_in_proportion(name: str) -> None:
    kernel, matrix = KERNELS[name]()
    outcomes, generator = matrix.shape[-1], torch.Generator().manual_seed(0)
    intention = torch.arange(STATES) % matrix.shape[-2]
    counts = torch.zeros(STATES, outcomes, dtype=torch.float64)
    draws = 4000
    for _ in range(draws):
        clock = torch.empty(STATES, outcomes).exponential_(generator=generator)
        counts[torch.arange(STATES), kernel.sample(intention, clock)] += 1
    wanted = matrix.expand(STATES, -1, -1)[torch.arange(STATES), intention]
    assert float((counts / draws - wanted).abs().max()) < 0.04
    assert bool((counts[wanted == 0] == 0).all())


@pytest.mark.parametrize("name", [n for n in KERNELS if "table" not in n and n != "dense logarithms"])
def test_projections_are_the_nearest_laws(name: str) -> None:
    """Forward KL of the projection is at most that of any other policy's law."""
    kernel, matrix = KERNELS[name]()
    matrix = matrix.expand(STATES, *matrix.shape[-2:])
    wanted = laws(STATES, matrix.shape[-1], seed=2)
    policy, law = kernel.project(wanted)
    assert_close(torch.einsum("na,nak->nk", policy, matrix), law, atol=1e-9, rtol=1e-6)
    best = (wanted * (wanted.log() - floored_log(law))).sum(-1)
    for seed in range(3, 40):
        other = torch.einsum("na,nak->nk", laws(STATES, matrix.shape[-2], seed=seed) ** 3, matrix)
        other = other / other.sum(-1, keepdim=True)
        assert bool(((wanted * (wanted.log() - floored_log(other))).sum(-1) >= best - 1e-7).all())


def test_without_noise_nothing_is_built() -> None:
    kernel = UniformSlip(alpha=0.0).operator(slippable(), torch.float32)
    assert isinstance(kernel, Identity)
    log_policy = laws(STATES, ACTIONS).log()
    assert kernel.outcome_law(log_policy) is log_policy


@pytest.mark.parametrize("noise", [UniformSlip(alpha=0.3), ConfusionMatrix(matrix=laws(256, 256))])
def test_large_alphabets_have_no_matrix_per_state(noise: Noise) -> None:
    """Memory that gradients keep grows with B A, not with B A K."""
    states = 512
    kernel = noise.operator(torch.ones(states, 256, dtype=torch.bool), torch.float32)
    log_policy = torch.randn(states, 256).log_softmax(-1).requires_grad_()
    kept = 0

    def pack(tensor: Tensor) -> Tensor:
        nonlocal kept
        kept = max(kept, tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        kernel.outcome_law(log_policy).sum().backward()
        kernel.posterior(log_policy, torch.zeros(states, dtype=torch.int64))[0].sum().backward()
        kernel.log_expected(log_policy).sum().backward()
    assert kept <= 2 * states * 256
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):  # a matrix per state would show
        DenseKernel(kernel.matrix()).outcome_law(log_policy).sum().backward()
    assert kept >= states * 256 * 256


@given(st.floats(0.01, 0.95), st.integers(2, 6), st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
def test_gradients_of_the_closed_form_are_those_of_the_matrix(alpha: float, actions: int, seed: int) -> None:
    inside = torch.rand(7, actions, generator=torch.Generator().manual_seed(seed)) > 0.3
    closed = UniformSlipKernel(inside, alpha, torch.float64)
    found = []
    for kernel in (closed, DenseKernel(closed.matrix())):
        log_policy = laws(7, actions, seed=seed).log().requires_grad_()
        kernel.outcome_law(log_policy).square().sum().backward()
        assert log_policy.grad is not None
        found.append(log_policy.grad)
    assert_close(*found)


def test_one_matrix_for_all_states_needs_no_position_and_one_for_each_does() -> None:
    """An environment that does not count its steps takes the first and is told what the second lacks."""
    assert not ConfusionMatrix(matrix=laws(ACTIONS, ACTIONS)).by_position
    stacked = ConfusionMatrix(matrix=laws(POSITIONS, ACTIONS, ACTIONS))
    assert stacked.by_position
    with pytest.raises(ValueError, match="noise by position needs to know the position"):
        stacked.operator(slippable(), torch.float64)


@pytest.mark.parametrize("actions", [3, 9])
def test_entries_of_a_learned_table_have_the_gradients_of_a_look_up(actions: int) -> None:
    """Few entries are selected by comparison, more are looked up."""
    generator = torch.Generator().manual_seed(0)
    table = torch.randn(1, actions, actions, generator=generator, dtype=torch.float64).log_softmax(-1).requires_grad_()
    intention, outcome = torch.randint(actions, (2, 40, 2), generator=generator)
    weights = torch.randn(40, 2, generator=generator, dtype=torch.float64)
    found = TableKernel.shared(table[0], intention.shape, log=True).log_prob(intention, outcome)
    wanted = table[0, intention, outcome]
    torch.testing.assert_close(found, wanted)
    (slope,) = torch.autograd.grad((found * weights).sum(), table)
    (right,) = torch.autograd.grad((wanted * weights).sum(), table)
    torch.testing.assert_close(slope, right)
    (wrong,) = torch.autograd.grad((table[0, outcome, intention] * weights).sum(), table)
    assert (wrong - right).abs().max() > 0.1  # and the test can fail
