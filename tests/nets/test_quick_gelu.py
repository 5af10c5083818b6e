"""The polynomials of GELU and its slope, in PyTorch and in GPU kernels, beside GELU itself."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from sgfn.nets import quick_gelu
from sgfn.nets.half import HalfNet

X = torch.linspace(-8, 8, 100_001, dtype=torch.float64)


def test_values_and_slopes_are_nearer_than_half_precision_rounds() -> None:
    x = X.clone().requires_grad_()
    wanted = nn.functional.gelu(x)
    (slope,) = torch.autograd.grad(wanted.sum(), x)
    assert (quick_gelu.quick_gelu(X.float()).double() - wanted).abs().max() < 2.5e-5
    assert (quick_gelu.quick_gelu_backward(torch.ones_like(X.float()), X.float()).double() - slope).abs().max() < 7e-5
    coarse = nn.functional.gelu(X, approximate="tanh")
    assert (coarse - wanted).abs().max() > 2e-4  # and the test can fail: the usual approximation is not as near
    assert quick_gelu.quick_gelu(torch.tensor([-1e4, 1e4])).isfinite().all()


def test_compiled_layers_take_the_polynomial_and_others_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    rows, weights = torch.randn(64, 8).half(), [torch.randn(8, 8), torch.randn(8), torch.randn(8, 8), torch.randn(8)]
    for weight in weights:
        weight.requires_grad_()

    def found(activation: nn.Module) -> list[torch.Tensor]:
        out = HalfNet.apply(activation, rows, *weights)
        return [out, *torch.autograd.grad(out.square().sum(), weights)]

    plain, rectified = found(nn.GELU()), found(nn.ReLU())
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    compiled = found(nn.GELU())
    for one, other in zip(compiled, plain, strict=True):
        assert_close(one, other, rtol=5e-3, atol=5e-2)
        assert not torch.equal(one, other)
    assert all(torch.equal(one, other) for one, other in zip(found(nn.ReLU()), rectified, strict=True))
