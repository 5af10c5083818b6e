"""Weights of later windows: learned from what had ended before each, and evened out where that is little."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from sgfn.series import following, stack
from sgfn.series.following import Held, weights_over_time
from sgfn.series.quantile_laws import QuantileLaw
from sgfn.series.stack import independent_windows, usual_weights
from sgfn.series.weights import Evidence

NAMES = ("good", "wide")


def windows(count: int, *, first: int = 0, turned: bool = False) -> Held:
    """Windows of one series side by side, forecast by a law that is right and by one that is far off."""
    rng = np.random.default_rng(first)
    truth = rng.normal(size=(count, 4))
    laws = [QuantileLaw.normal(np.full((count, 4), mean), np.ones((count, 4))).values for mean in (0.0, 3.0)]
    evidence = Evidence(quantiles=np.stack(laws[::-1] if turned else laws), truth=truth, scale=np.ones(count))
    return Held(
        evidence=evidence, series=["a"] * count, groups=["g"] * count, ended=np.arange(first, first + count) + 1.0
    )


def test_each_window_reads_what_had_ended_before_it() -> None:
    """The first has the stack's weights; the last those of all windows before; later values change no earlier one."""
    held, later = windows(3), windows(4, first=3, turned=True)
    own = held.stack(NAMES)
    starts = later.ended - 1
    found = weights_over_time(own, held, later, starts)
    np.testing.assert_array_equal(found[:, 0], own.weights)
    np.testing.assert_array_equal(found[:, 3], held.joined(later, [0, 1, 2]).stack(NAMES).weights)
    assert found[0, 3] < found[0, 0] - 0.1  # the law that was good is not any more
    shorter = Held(evidence=later.evidence[np.arange(2)], series=["a"] * 2, groups=["g"] * 2, ended=later.ended[:2])
    np.testing.assert_array_equal(weights_over_time(own, held, shorter, starts[:2]), found[:, :2])


def test_many_values_are_read_again_when_they_have_grown(monkeypatch: pytest.MonkeyPatch) -> None:
    held, later = windows(8), windows(4, first=8, turned=True)
    monkeypatch.setattr(following, "MANY_VALUES", 0)
    found = weights_over_time(held.stack(NAMES), held, later, later.ended - 1)
    np.testing.assert_array_equal(found[:, 1], found[:, 0])
    assert found[0, 2] < found[0, 1]


def test_equal_weights_count_where_windows_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four windows side by side, squared, count as much as equal weights do, in logarithms; four that overlap less."""
    held = windows(4)
    monkeypatch.setattr(stack, "EVEN", 1e-12)
    plain = held.stack(NAMES).weights
    monkeypatch.setattr(stack, "EVEN", 16.0)
    odds = plain[0] / plain[1]
    half = held.stack(NAMES).weights
    assert half[0] / half[1] == pytest.approx(odds**0.5)
    near = Held(evidence=held.evidence, series=held.series, groups=held.groups, ended=np.linspace(1, 2, 4))
    fifth = near.stack(NAMES).weights
    assert fifth[0] / fifth[1] == pytest.approx(odds ** (1 / 5))
    assert independent_windows(["a", "b"], np.array([1.0, 1.0])) == 2


def test_of_many_windows_weights_stay_as_they_are_learned() -> None:
    """They are shrunk by their values: sixteen windows of long horizons lost a twentieth of what they told."""
    usual, learned = np.array([0.2, 0.8]), np.array([0.9, 0.1])
    plain = stack.Stack(names=NAMES, weights=learned, spreads=np.ones(4), tie=0.0, windows=16)
    np.testing.assert_allclose(stack.nearer_to_usual(plain, usual, 16.0).weights, learned, atol=0.005)
    assert stack.nearer_to_usual(plain, usual, 1.0).weights[0] == pytest.approx(0.6)


def with_a_new_law(held: Held, known: Sequence[int]) -> Held:
    """Windows with a third law, as good as the first, that fits some of them alone."""
    third = np.full_like(held.evidence.quantiles[:1], np.nan)
    third[:, known] = held.evidence.quantiles[0, known]
    return replace(held, evidence=replace(held.evidence, quantiles=np.concatenate([held.evidence.quantiles, third])))


def test_a_law_counts_as_far_as_there_is_something_to_judge_it_by() -> None:
    """A law that no window that ended tells of has no weight, though it fits the next; it gains with each window."""
    names = (*NAMES, "new")
    held, later = with_a_new_law(windows(7), []), with_a_new_law(windows(4, first=7), [0, 1, 2, 3])
    found = weights_over_time(held.stack(names), held, later, later.ended - 1)
    assert found[2, 0] == 0
    assert (np.diff(found[2]) > 0).all()
    later.evidence.truth[0] = np.nan
    found = weights_over_time(held.stack(names), held, later, later.ended - 1)
    assert found[2, 1] == 0  # a window without values tells of nothing
    none = with_a_new_law(windows(2), [])
    none.evidence.quantiles[:] = np.nan
    np.testing.assert_array_equal(none.stack(names).weights, np.full(3, 1 / 3))


def test_windows_by_which_a_law_is_judged_count_side_by_side() -> None:
    """One of eight that overlap is more than one of eight apart; a law of some series alone is judged by those."""
    names, held = (*NAMES, "new"), with_a_new_law(windows(8), [7])
    found = usual_weights(names, held.evidence, held.series, held.ended)
    np.testing.assert_allclose(found, np.array([64, 64, 1]) / 129)
    near = usual_weights(names, held.evidence, held.series, np.linspace(1, 2, 8))
    np.testing.assert_allclose(near, np.array([4, 4, 1]) / 9)
    other = usual_weights(names, held.evidence, ["a"] * 7 + ["b"], held.ended)
    np.testing.assert_allclose(other, np.full(3, 1 / 3))
