"""Optimiser: schedule, clip, rates per group, and a state that continues identically."""

import math

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from sgfn.config import OptimConfig
from sgfn.learning.optimisation import Optimiser, schedule

CPU, ONE = torch.device("cpu"), torch.tensor(1.0)


def parameters(*shape: int) -> nn.Parameter:
    return nn.Parameter(torch.randn(*shape, generator=torch.Generator().manual_seed(0)))


@pytest.mark.parametrize("warmup", [0, 1, 10])
@pytest.mark.parametrize("final", [0.0, 0.1, 1.0])
def test_schedule_equals_the_formula(warmup: int, final: float) -> None:
    config = OptimConfig(warmup=warmup, final=final)
    for t in (0, 4, 9, 10, 50, 99, 100):
        cosine = final + (1 - final) * (1 + math.cos(math.pi * t / 100)) / 2
        wanted = min(1.0, (t + 1) / max(1, warmup)) * cosine
        assert float(schedule(torch.tensor(float(t)), 100, config)) == pytest.approx(wanted, abs=1e-6)
    slower = OptimConfig(warmup=20, final=final)
    assert float(schedule(torch.tensor(0.0), 100, config)) != float(schedule(torch.tensor(0.0), 100, slower))


@pytest.mark.parametrize("factor", [1.0, 0.25])
def test_each_group_moves_at_its_own_rate(factor: float) -> None:
    """Adam's first step is the rate itself, whatever the gradient."""
    body, log_z = parameters(5), parameters(1)
    start = body.detach().clone(), log_z.detach().clone()
    optimiser = Optimiser([([body], 1e-3), ([log_z], 2e-2)], 0.0, CPU)
    optimiser.step((3.0 * body).sum() - 0.01 * log_z.sum(), torch.tensor(factor))
    assert_close(body.detach(), start[0] - 1e-3 * factor, atol=1e-6, rtol=0)
    assert_close(log_z.detach(), start[1] + 2e-2 * factor, atol=1e-6, rtol=0)
    assert (log_z.detach() - start[1]).abs() > 10 * (body.detach() - start[0]).abs().max()


def test_the_factor_does_not_accumulate() -> None:
    weight = parameters(3)
    optimiser = Optimiser([([weight], 1e-2)], 0.0, CPU)
    for factor, wanted in ((0.5, 0.005), (0.5, 0.005), (1.0, 0.01)):
        before = weight.detach().clone()
        optimiser.step(weight.sum(), torch.tensor(factor))
        assert_close(before - weight.detach(), torch.full_like(before, wanted), atol=1e-6, rtol=0)


@pytest.mark.parametrize(("clip", "norm"), [(0.0, 5.0), (1.0, 1.0), (10.0, 5.0)])
def test_clip_acts_on_the_norm_of_all_groups(clip: float, norm: float) -> None:
    """Gradient (3, 4) over two groups; Adam's first moment is a tenth of what it was given."""
    first, second = parameters(1), parameters(1)
    optimiser = Optimiser([([first], 1e-3), ([second], 1e-3)], clip, CPU)
    optimiser.step(3.0 * first.sum() + 4.0 * second.sum(), ONE)
    moments = torch.cat([optimiser.state()[f"{i}.exp_avg"] for i in range(2)])
    assert_close(10 * moments, torch.tensor([3.0, 4.0]) * norm / 5, atol=1e-4, rtol=0)


def test_old_gradients_are_cleared() -> None:
    weight = parameters(2)
    weight.grad = torch.full((2,), 100.0)
    optimiser = Optimiser([([weight], 1e-3)], 0.0, CPU)
    optimiser.step(weight.sum(), ONE)
    assert_close(10 * optimiser.state()["0.exp_avg"], torch.ones(2))


def test_state_continues_identically() -> None:
    def train(weights: list[nn.Parameter], optimiser: Optimiser, steps: range) -> Tensor:
        for step in steps:
            loss = sum(((w - 1.0) ** 4).sum() for w in weights)
            optimiser.step(loss, schedule(torch.tensor(float(step)), 20, OptimConfig(warmup=3)))
        return torch.cat([w.detach().flatten() for w in weights])

    def make(values: list[Tensor] | None = None) -> tuple[list[nn.Parameter], Optimiser]:
        weights = [parameters(3, 2), parameters(4)]
        if values is not None:
            weights = [nn.Parameter(v.clone()) for v in values]
        return weights, Optimiser([(weights[:1], 0.1), (weights[1:], 0.3)], 1.0, CPU)

    weights, optimiser = make()
    train(weights, optimiser, range(10))
    values = [w.detach().clone() for w in weights]
    saved = {name: value.clone() for name, value in optimiser.state().items()}
    resumed, forgetful = make(values), make(values)
    resumed[1].load(saved)
    straight = train(weights, optimiser, range(10, 20))
    assert torch.equal(train(*resumed, range(10, 20)), straight)
    assert not torch.equal(train(*forgetful, range(10, 20)), straight)


def test_state_before_the_first_step_is_empty() -> None:
    weight = parameters(2)
    optimiser = Optimiser([([weight], 1e-3)], 0.0, CPU)
    assert optimiser.state() == {}
    optimiser.load({})
    optimiser.step(weight.sum(), ONE)
    assert set(optimiser.state()) == {"0.step", "0.exp_avg", "0.exp_avg_sq"}
