"""MLPs in half precision: outputs and gradients of the same network in single precision, at any size of gradients."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from sgfn.config import NetConfig, TrainConfig
from sgfn.envs.sequence import SequenceEnv
from sgfn.landscapes.tasks import make_task
from sgfn.learning.trainer import Trainer
from sgfn.nets import half
from sgfn.nets import heads as heads_module
from sgfn.nets.half import half_fits, half_outputs
from sgfn.nets.heads import FlowNets
from sgfn.noise import UniformSlip

CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "codes": ({"length": 6, "alphabet": "ACGT"}, {}),
    "variable length": ({"length": 6, "alphabet": "ACGT", "stop": True}, {}),
    "one layer": ({"length": 6, "alphabet": "ACGT"}, {"layers": 1}),
    "three layers, relu": ({"length": 6, "alphabet": "ACGT"}, {"layers": 3, "activation": "relu"}),
    "silu": ({"length": 6, "alphabet": "ACGT"}, {"activation": "silu"}),
}


def made(case: str) -> tuple[FlowNets, Tensor]:
    """Networks with heads that are not near zero, and states of whole trajectories."""
    shape, net = CASES[case]
    torch.manual_seed(0)
    env = SequenceEnv(**shape, noise=UniformSlip(alpha=0.1))
    nets = FlowNets(env, NetConfig(**{"hidden": 16, **net}), outcome_policy=True)
    for head in (nets.policy, nets.flow, nets.outcome):
        assert head is not None
        nn.init.normal_(head.weight, std=0.3)
    realised = torch.randint(env.outcomes, (9, env.length))
    return nets, env.unrolled(realised)[0]


def both(nets: FlowNets, states: Tensor, slopes: Tensor) -> list[tuple[Tensor, list[Tensor]]]:
    """Outputs and gradients, in half precision and in single."""
    heads = [nets.policy, nets.flow, nets.outcome]
    weights = [p for p in nets.parameters() if p is not nets.log_z]
    single = torch.cat([head(nets.represent_along(states)) for head in heads], -1)  # pyright: ignore[reportOptionalCall]
    found = half_outputs(nets.encoder, heads, nets.env, states)  # pyright: ignore[reportArgumentType]
    return [(out, list(torch.autograd.grad(out, weights, slopes))) for out in (found, single)]


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e7])
@pytest.mark.parametrize("case", CASES)
def test_gradients_are_those_of_single_precision_whatever_their_size(case: str, size: float) -> None:
    nets, states = made(case)
    outputs = 2 * nets.policy.out_features + 1
    slopes = size * torch.randn(*states.shape[:2], outputs)
    (found, gradients), (wanted, known) = both(nets, states, slopes)
    assert found.dtype == torch.float32
    assert_close(found, wanted, rtol=4e-3, atol=4e-3)
    assert not torch.equal(found, wanted)
    for mine, theirs in zip(gradients, known, strict=True):
        assert mine.dtype == torch.float32
        assert float((mine - theirs).norm() / theirs.norm()) < 4e-3


def test_without_a_scale_small_gradients_would_be_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    nets, states = made("codes")
    slopes = 1e-9 * torch.randn(*states.shape[:2], 9)
    monkeypatch.setattr(half, "LARGEST", 1e-9)  # as if they were left as they are
    (_, gradients), (_, known) = both(nets, states, slopes)
    assert float((gradients[0] - known[0]).norm() / known[0].norm()) > 0.5


@pytest.mark.parametrize("largest", [5e4, 2e5, 1e7])
@pytest.mark.parametrize("case", CASES)
def test_sums_beyond_half_precision_stay_numbers(case: str, largest: float) -> None:
    nets, states = made(case)
    first = nets.encoder.linear[0]  # pyright: ignore[reportAttributeAccessIssue]
    with torch.no_grad():
        grown = largest / first(nets.env.encode(states)).abs().max()
        first.weight *= grown
        first.bias *= grown
    slopes = torch.randn(*states.shape[:2], 2 * nets.policy.out_features + 1)
    (found, gradients), (wanted, known) = both(nets, states, slopes)
    assert all(torch.isfinite(values).all() for values in (found, *gradients))
    if largest < half.LIMIT:
        pairs = zip((found.detach(), *gradients), (wanted.detach(), *known), strict=True)
        assert all(float((mine - theirs).norm() / theirs.norm()) < 1e-2 for mine, theirs in pairs)


@pytest.mark.parametrize("case", ["codes", "silu"])
def test_gradients_beyond_half_precision_stay_numbers(case: str) -> None:
    """The slopes of GELU and SiLU are above one in places: what was cut would grow again."""
    nets, states = made(case)
    with torch.no_grad():
        nets.policy.weight.fill_(2e4)
        for layer in nets.encoder.linear:  # pyright: ignore[reportAttributeAccessIssue, reportGeneralTypeIssues]
            layer.bias.fill_(1.4)
    slopes = torch.ones(*states.shape[:2], 2 * nets.policy.out_features + 1)
    (_, gradients), _ = both(nets, states, slopes)
    assert all(torch.isfinite(values).all() for values in gradients)


def test_without_a_limit_they_would_be_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(half, "saturated", lambda values: values)
    with pytest.raises(AssertionError):
        test_sums_beyond_half_precision_stay_numbers("codes", 1e7)


def test_it_is_for_large_batches_on_a_gpu() -> None:
    nets, states = made("codes")
    assert not half_fits(nets.encoder, nets.env, states)
    many = torch.empty(half.HALF_FROM, *states.shape[1:], device="meta", dtype=torch.int64)
    assert not half_fits(nets.encoder, nets.env, many)


@pytest.mark.parametrize("objective", ["tb", "db", "kl"])
def test_a_run_learns_as_it_does_in_single_precision(objective: str, monkeypatch: pytest.MonkeyPatch) -> None:
    config = TrainConfig().with_(motif__length=16, net__hidden=16, batch=16, objective=objective, noise__alpha=0.25)
    task, found = make_task("motif", config), []
    for fits in (False, True):
        monkeypatch.setattr(heads_module, "half_fits", lambda *_, fits=fits: fits)
        trainer = Trainer(task, torch.device("cpu"))
        trainer.backend = trainer.general
        monkeypatch.setattr(trainer.general, "state_scorer", lambda _, nets=trainer.nets: nets)
        for _ in range(20):
            trainer.step()
        found.append((trainer.read_meters()["loss"], trainer.optimiser.values.clone()))
    assert found[0][0] == pytest.approx(found[1][0], rel=2e-3)
    assert not torch.equal(found[0][1], found[1][1])
