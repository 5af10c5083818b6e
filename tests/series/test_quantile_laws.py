"""Laws by their quantiles: a normal law is exact, cdf and quantile are inverse, atoms have their mass."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sgfn.series.quantile_laws import GRID, NODES, QuantileLaw, pooled

LEVELS = np.array([0.001, 0.03, 0.37, 0.5, 0.88, 0.999])


def test_a_normal_law_is_exact() -> None:
    mean, deviation = np.array([3.0, -1.0]), np.array([2.0, 0.5])
    law = QuantileLaw.normal(mean, deviation)
    exact = stats.norm(mean[:, None], deviation[:, None])
    np.testing.assert_allclose(law.quantile(LEVELS), exact.ppf(LEVELS))
    at = np.array([7.5, -3.0])
    np.testing.assert_allclose(law.cdf(at), stats.norm.cdf(at, mean, deviation))
    np.testing.assert_allclose(law.log_density(at), stats.norm.logpdf(at, mean, deviation))
    np.testing.assert_allclose(law.mean, mean, atol=1e-9)
    wider = law.spread(np.array([2.0, 1.0]))
    np.testing.assert_allclose(wider.quantile(LEVELS), stats.norm(mean[:, None], [[4.0], [0.5]]).ppf(LEVELS))
    assert np.abs(wider.quantile(LEVELS) - law.quantile(LEVELS)).max() > 1  # and the test can fail


def test_the_pool_of_normal_laws_has_the_mean_of_their_deviations() -> None:
    """Quantile functions are averaged: N(0, 1) and N(4, 9) in equal parts are N(2, 4)."""
    parts = np.stack([QuantileLaw.normal(np.array([m]), np.array([s])).values for m, s in ((0.0, 1.0), (4.0, 3.0))])
    law = pooled(parts, np.full((2, 1), 0.5))
    np.testing.assert_allclose(law.quantile(LEVELS)[0], stats.norm(2, 2).ppf(LEVELS))
    assert law.quantile(LEVELS)[0, -1] < stats.norm(2, 3).ppf(LEVELS[-1])


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(0, 10), min_size=len(GRID), max_size=len(GRID)), st.floats(0.001, 0.999))
def test_cdf_and_quantile_are_inverse(steps: list[float], level: float) -> None:
    law = QuantileLaw(values=np.cumsum([steps], axis=1))
    value = law.quantile(np.array([level]))[:, 0]
    low, high = law.scores(value)
    assert stats.norm.cdf(low - 1e-6) <= level + 1e-6
    assert stats.norm.cdf(high + 1e-6) >= level - 1e-6
    assert (np.diff(law.quantile(LEVELS)) >= 0).all()


def test_atoms() -> None:
    """Six of ten values are zero: the law has that mass there, and nothing below."""
    law = QuantileLaw.of_samples(np.array([0.0] * 6 + [1.0, 2.0, 3.0, 4.0])[:, None])
    assert law.cdf(np.array([0.0]))[0] == pytest.approx(0.6, abs=0.01)
    assert law.cdf(np.array([-0.1]))[0] < 1e-9
    low, high = law.scores(np.array([0.0]))
    assert low[0] <= NODES[0]
    assert high[0] == pytest.approx(NODES[list(GRID).index(0.6)])


def test_quantiles_that_fall_are_refused() -> None:
    with pytest.raises(ValueError, match="must not fall"):
        QuantileLaw(values=-np.arange(float(len(GRID)))[None])
    with pytest.raises(ValueError, match="must be finite"):
        QuantileLaw(values=np.full((1, len(GRID)), np.nan))
