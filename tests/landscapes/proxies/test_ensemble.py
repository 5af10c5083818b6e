"""Gradients of an ensemble that are written out, beside autograd's."""

import pytest
import torch

from sgfn.landscapes.proxies.ensemble import Ensemble, Shape, gradients, gradients_by_autograd
from sgfn.landscapes.proxies.letters import short_codes


@pytest.mark.parametrize("alphabet", ["ACGT", "ACDEFGHIKLMNPQRSTVWY"])
def test_written_gradients_are_those_of_autograd(alphabet: str) -> None:
    generator = torch.Generator().manual_seed(0)
    sizes = {"letters": len(alphabet), "length": 5, "codes": short_codes(alphabet).shape[1]}
    model = Ensemble.begin(Shape(**sizes, window=0, channels=6, hidden=7, members=3), alphabet, generator)
    tokens = torch.randint(len(alphabet) + 1, (40, 5), generator=generator)  # blanks too
    inputs, targets = model.inputs(tokens), torch.randn(40, generator=generator)
    counts = torch.rand(3, 40, generator=generator) * (torch.rand(3, 40, generator=generator) > 0.2)
    wanted = gradients_by_autograd(model, inputs, targets, counts)
    found = gradients(model, inputs, targets, counts)
    for slope, right, weight in zip(found, wanted, model.weights, strict=True):
        assert slope.shape == weight.shape
        torch.testing.assert_close(slope, right, rtol=1e-5, atol=1e-6)
    wrong = gradients(model, inputs, targets, counts.flip(0))
    assert (wrong[0] - wanted[0]).abs().max() > 1e-3  # and the test can fail
