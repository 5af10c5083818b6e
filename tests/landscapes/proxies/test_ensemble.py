"""Gradients of an ensemble that are written out, beside autograd's."""

import pytest
import torch

from sgfn.landscapes.proxies import ensemble
from sgfn.landscapes.proxies.base import TrainingSet
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


@pytest.mark.parametrize("window", [0, 3])
def test_training_follows_the_gradient(window: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fused Adam, which reads gradients as they lie in memory, learns what plain Adam learns."""
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(5, (30, 8), generator=generator)
    zeros, ones = torch.zeros(30).double(), torch.ones(30).double()
    rows = {"tokens": tokens, "targets": torch.randn(30, generator=generator).double(), "fold": torch.arange(30) % 3}
    data = TrainingSet(**rows, noise=zeros, weights=ones, alphabet="ACGT", seed=0)
    codes = short_codes("ACGT").shape[1]
    shape = Shape(letters=4, length=8, window=window, codes=codes, channels=5, hidden=6, members=3)
    plain, fused = torch.optim.AdamW, list[list[torch.Tensor]]()
    for unfused in (False, True):
        if unfused:
            monkeypatch.setattr(torch.optim, "AdamW", lambda weights, **how: plain(weights, **how | {"fused": False}))
        model = Ensemble.begin(shape, "ACGT", torch.Generator().manual_seed(2))
        ensemble._train(model, data, torch.ones(3, 30), 40, 512, generator)
        fused.append([weight.clone() for weight in model.weights])
    for ours, right in zip(*fused, strict=True):
        torch.testing.assert_close(ours, right, rtol=1e-3, atol=1e-4)
    begun = Ensemble.begin(shape, "ACGT", torch.Generator().manual_seed(2))
    assert all((ours - first).abs().max() > 0.01 for ours, first in zip(fused[0], begun.weights, strict=True))
