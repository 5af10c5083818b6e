"""Levels and lines by discounted least squares, beside weighted least squares of each place by itself."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from sgfn.series.smoothed import LEVELS, LINES, SHRUNK, smoothed


def by_itself(values: np.ndarray, discount: float, slope: bool) -> tuple[float, float]:
    """End and slope of a line through some values, or their level, by weighted least squares."""
    age = np.arange(len(values))[::-1]
    weights = discount**age
    if not slope:
        return float(weights @ values / weights.sum()), 0.0
    design = np.stack([np.ones(len(values)), -age], 1)
    square = design.T @ (weights[:, None] * design) + np.diag([0.0, SHRUNK])
    end, found = np.linalg.solve(square, design.T @ (weights * values))
    return float(end), float(found)


@given(st.integers(3, 30), st.integers(0, 5), st.integers(0, 10**6))
def test_levels_and_lines_are_those_of_least_squares(count: int, before: int, seed: int) -> None:
    values = np.random.default_rng(seed).normal(size=before + count)
    known = torch.arange(before + count) >= before
    found = smoothed(torch.from_numpy(values)[None], known[None])
    own = values[before:]
    for discounts, ends, slopes, errors in (
        (LEVELS, found.levels, torch.zeros(1, len(LEVELS)), found.level_errors),
        (LINES, found.ends, found.slopes, found.line_errors),
    ):
        for at, discount in enumerate(discounts):
            end, slope = by_itself(own, discount, discounts is LINES)
            np.testing.assert_allclose([float(ends[0, at]), float(slopes[0, at])], [end, slope], rtol=1e-6, atol=1e-9)
            foreseen = [sum(by_itself(own[:place], discount, discounts is LINES)) for place in range(2, count)]
            np.testing.assert_allclose(float(errors[0, at]), np.abs(own[2:] - foreseen).mean(), rtol=1e-6)


def test_a_line_foresees_growth_and_a_level_does_not() -> None:
    values = torch.arange(40, dtype=torch.float64)[None]
    found = smoothed(values, torch.ones(1, 40, dtype=torch.bool))
    torch.testing.assert_close(found.ends + found.slopes, torch.full((1, len(LINES)), 40.0).double(), atol=0.1, rtol=0)
    assert float((found.levels - 39).abs().min()) > 0.1
    assert float(found.line_errors.max()) < float(found.level_errors.min())
