"""Bins: exact laws over numbers, checked against scipy, numerical integration and each other."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from exact_tables import PROPERTY
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats
from torch.testing import assert_close

from sgfn.series.bins import Bins, neighbour_kernel

F64 = torch.float64


def tensor(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=F64)


@st.composite
def laws(draw: st.DrawFn) -> tuple[Bins, torch.Tensor]:
    """Bins of any widths and a law over them."""
    widths = draw(st.lists(st.floats(0.01, 10.0), min_size=0, max_size=8))
    start, tails = draw(st.floats(-50.0, 50.0)), draw(st.tuples(st.floats(0.01, 5.0), st.floats(0.01, 5.0)))
    bins = Bins(edges=torch.tensor([start, *widths], dtype=F64).cumsum(0), tails=tensor(*tails))
    weight = draw(st.lists(st.floats(0.001, 1.0), min_size=bins.count, max_size=bins.count))
    return bins, tensor(*weight) / sum(weight)


@given(laws(), st.lists(st.floats(0.001, 0.999), min_size=1, max_size=5))
@PROPERTY
def test_quantile_and_cdf_are_inverse(case: tuple[Bins, torch.Tensor], levels: list[float]) -> None:
    bins, law = case
    found = bins.quantile(law, tensor(*levels))
    assert_close(bins.cdf(law.expand(len(levels), -1), found), tensor(*levels), atol=1e-9, rtol=0)
    order = tensor(*levels).argsort()
    assert bool((found[order].diff() >= 0).all())
    assert float((bins.quantile(law, tensor(*levels) * 0.9) - found).max()) < 0  # another level, another value


@given(laws(), st.data())
@PROPERTY
def test_place_and_share_are_inverse(case: tuple[Bins, torch.Tensor], data: st.DataObject) -> None:
    bins, _ = case
    index = torch.arange(bins.count)
    share = tensor(*(data.draw(st.floats(0.01, 0.99)) for _ in index))
    values = bins.place(index, share)
    assert torch.equal(bins.index(values), index)
    assert_close(bins.share(values), share, atol=1e-6, rtol=0)


@given(laws())
@settings(PROPERTY, max_examples=15)
def test_density_integrates_to_the_cdf_and_the_mean(case: tuple[Bins, torch.Tensor]) -> None:
    bins, law = case
    far = torch.stack([bins.edges[0] - 60 * bins.tails[0], *bins.edges, bins.edges[-1] + 60 * bins.tails[1]])

    def density(x: float) -> float:
        return float(bins.log_density(law.log(), tensor(x)[0]).exp())

    pieces = list(pairwise(far.tolist()))
    masses = [integrate.quad(density, a + 1e-9, b - 1e-9, limit=200, epsrel=1e-10)[0] for a, b in pieces]
    assert np.allclose(masses, law.numpy(), atol=1e-6)
    mean = sum(integrate.quad(lambda x: x * density(x), a + 1e-9, b - 1e-9, limit=200)[0] for a, b in pieces)
    assert mean == pytest.approx(float(bins.mean(law)), abs=1e-4)


def test_draws_follow_the_law() -> None:
    bins, law = Bins(edges=tensor(-1.0, 0.0, 2.0), tails=tensor(0.5, 2.0)), tensor(0.1, 0.3, 0.4, 0.2)
    generator = torch.Generator().manual_seed(0)
    index = torch.multinomial(law, 20000, replacement=True, generator=generator)
    drawn = bins.place(index, torch.rand(20000, generator=generator, dtype=F64))
    cdf = lambda x: bins.cdf(law.expand(len(x), -1), torch.as_tensor(x)).numpy()  # noqa: E731
    wrong = lambda x: bins.cdf(law.flip(0).expand(len(x), -1), torch.as_tensor(x)).numpy()  # noqa: E731
    assert stats.kstest(drawn.numpy(), cdf).pvalue > 1e-3
    assert stats.kstest(drawn.numpy(), wrong).pvalue < 1e-6


@pytest.mark.parametrize("count", [2, 3, 16, 64])
def test_fitted_bins_hold_equal_mass(count: int) -> None:
    values = torch.randn(6400, generator=torch.Generator().manual_seed(1), dtype=F64)
    bins = Bins.fit(values, count)
    held = bins.index(values).bincount(minlength=count)
    assert bins.count == count
    assert int((held - 6400 // count).abs().max()) <= 2
    law = torch.full((1, count), 1 / count, dtype=F64)
    assert float(bins.quantile(law, tensor(0.05))[0, 0]) == pytest.approx(-1.645, abs=0.45 if count < 16 else 0.1)


@pytest.mark.parametrize(
    ("values", "count"), [([3.0], 2), ([1.0, 1.0, 1.0, 2.0], 2), ([0.0, 0.0, 0.0, 0.0, 0.0, 5.0, 6.0, 7.0], 4)]
)
def test_ties_merge_bins(values: list[float], count: int) -> None:
    bins = Bins.fit(tensor(*values), 8)
    assert 2 <= bins.count <= 8
    assert bins.count >= count
    assert bins.centres.isfinite().all()
    assert bool((bins.centres.diff() > 0).all())


def test_bins_of_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^bins need at least one finite value$"):
        Bins.fit(tensor(float("nan")), 4)
    with pytest.raises(ValueError, match=r"^bins need one edge or more, in increasing order$"):
        Bins(edges=tensor(1.0, 1.0), tails=tensor(1.0, 1.0))
    with pytest.raises(ValueError, match=r"^the tails of bins must have positive means"):
        Bins(edges=tensor(1.0), tails=tensor(0.0, 1.0))


def test_blur_is_the_gaussian_mass_of_each_bin() -> None:
    bins = Bins(edges=tensor(-1.0, 0.0, 2.0), tails=tensor(0.5, 2.0))
    kernel = bins.blur(tensor(0.7))[0]
    assert_close(kernel.sum(-1), torch.ones(4, dtype=F64))
    normal = stats.norm(float(bins.centres[1]), 0.7)
    assert float(kernel[1, 2]) == pytest.approx(normal.cdf(2.0) - normal.cdf(0.0), abs=1e-12)
    assert float(kernel[1, 0]) == pytest.approx(normal.cdf(-1.0), abs=1e-12)
    assert_close(bins.blur(tensor(0.0))[0], torch.eye(4, dtype=F64))
    assert float((kernel - bins.blur(tensor(0.8))[0]).abs().max()) > 0.01


def test_neighbours_are_the_reward_of_near_misses() -> None:
    law = neighbour_kernel(5, 1.5)
    assert_close(law.sum(-1), torch.ones(5, dtype=F64))
    assert float(law[2, 4] / law[2, 2]) == pytest.approx(np.exp(-0.5 * (2 / 1.5) ** 2))
    assert torch.equal(neighbour_kernel(5, 0.0), torch.eye(5, dtype=F64))


def test_draws_carried_to_another_law_follow_it_in_the_same_order() -> None:
    bins = Bins(edges=tensor(-1.0, 0.0, 2.0), tails=tensor(0.5, 2.0))
    source, target = tensor(0.1, 0.3, 0.4, 0.2), tensor(0.4, 0.1, 0.1, 0.4)
    generator = torch.Generator().manual_seed(0)
    index = torch.multinomial(source, 20000, replacement=True, generator=generator)
    share = torch.rand(20000, generator=generator, dtype=F64)
    before, after = bins.place(index, share), bins.transport(index, share, source, target)
    assert torch.equal(before.argsort(), after.argsort())
    cdf = lambda law: lambda x: bins.cdf(law.expand(len(x), -1), torch.as_tensor(x)).numpy()  # noqa: E731
    assert stats.kstest(after.numpy(), cdf(target)).pvalue > 1e-3
    assert stats.kstest(after.numpy(), cdf(source)).pvalue < 1e-6
    assert_close(bins.transport(index, share, source, source), before, atol=1e-9, rtol=0)
