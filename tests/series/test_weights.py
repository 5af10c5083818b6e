"""Weights of a stack against laws whose best weights are known; spreads against laws of known error."""

import numpy as np
import pytest
from scipy import stats

from sgfn.series import weights
from sgfn.series.calibration import RULE, SpreadRule, spread_scores, step_spreads
from sgfn.series.quantile_laws import GRID, NODES
from sgfn.series.stack import learn_stack, tie_of
from sgfn.series.stack_plan import spans_of, stack_cuts, windows_of
from sgfn.series.weights import Evidence, learned_weights, tempered


def evidence(windows: int, shifts: list[float], widths: list[float], seed: int = 0) -> Evidence:
    """Standard normal values, and normal laws with given means and deviations."""
    truth = np.random.default_rng(seed).normal(size=(windows, 4))
    laws = [np.broadcast_to(m + s * NODES, (windows, 4, len(GRID))) for m, s in zip(shifts, widths, strict=True)]
    return Evidence(quantiles=np.stack(laws), truth=truth, scale=np.ones(windows))


def test_the_right_law_has_the_weight() -> None:
    equal = np.full(3, 1 / 3)
    found = learned_weights(evidence(400, [0.0, 3.0, -9.0], [1.0, 1.0, 1.0]), equal)
    assert found[0] > 0.75  # means of -9 and 3 in 1:3 cancel, so that not all of the weight is needed there
    assert found.sum() == pytest.approx(1.0)
    one = learned_weights(evidence(400, [0.0, 3.0], [1.0, 1.0]), np.full(2, 0.5))
    assert one[0] > 0.95


def test_opposite_errors_cancel() -> None:
    """Laws that lie one too high and one too low are worth as much as each other, and best together."""
    found = learned_weights(evidence(400, [1.0, -1.0], [1.0, 1.0]), np.array([0.5, 0.5]))
    np.testing.assert_allclose(found, 0.5, atol=0.05)


def test_few_windows_say_little() -> None:
    equal = np.full(2, 0.5)
    few, many = (learned_weights(evidence(n, [0.0, 0.6], [1.0, 1.0], seed=3), equal) for n in (1, 300))
    assert abs(few[0] - 0.5) < 0.45 < many[0]
    assert many[0] > 0.8


def test_weights_are_shrunk_towards_the_fourth_power_of_inverse_losses() -> None:
    some, prior = evidence(300, [0.0, 0.6, 0.0], [1.0, 1.0, 1.0]), np.array([0.4, 0.4, 0.2])
    some.quantiles[2, :150] = np.nan  # judged where it fits, beside the pool there: as good as the first
    levels = GRID[weights.DECILES]
    error = some.truth[..., None] - some.quantiles[..., weights.DECILES]
    loss = np.maximum(levels * error, (levels - 1) * error).mean((-1, -2))  # laws x windows
    wanted = prior[:2] / loss[:2].mean(1) ** 4
    strict = learned_weights(some, prior, strength=1e6)
    np.testing.assert_allclose(strict[:2] / strict[:2].sum(), wanted / wanted.sum(), rtol=0.01)
    assert strict[2] == pytest.approx(strict[0] / 2, rel=0.2)


def test_laws_that_do_not_fit_have_no_say() -> None:
    some = evidence(40, [0.0, 1.0], [1.0, 1.0])
    some.quantiles[0, :20] = np.nan
    stack = learn_stack(("a", "b"), some, ["s"] * 40, ["g"] * 40)
    law = stack.spread(stack.plain_law(some.quantiles, np.repeat(stack.weights[:, None], 40, 1)))
    np.testing.assert_allclose(law.values[:20, 0, 7], 1.0, atol=1e-9)
    assert np.abs(law.values[20:, 0, 7]).max() < 0.5
    nothing = learn_stack(("a", "b"), some[np.array([], dtype=int)], [], [])
    np.testing.assert_allclose(nothing.weights, 0.5)


def test_groups_may_differ() -> None:
    """In one half of the series the first law is right, in the other the second."""
    one, two = evidence(60, [0.0, 2.0], [1.0, 1.0]), evidence(60, [2.0, 0.0], [1.0, 1.0], seed=1)
    names = [f"s{at // 6}" for at in range(120)]
    stack = learn_stack(("a", "b"), one.joined(two), names, ["x"] * 60 + ["y"] * 60)
    assert stack.weights_of("new", "x")[0] > 0.8
    assert stack.weights_of("new", "y")[0] < 0.2
    assert 0.3 < stack.weights_of("new", "z")[0] < 0.7
    assert stack.weights_of("s0", "x")[0] > 0.8


@pytest.mark.parametrize("true", [0.5, 1.0, 2.0])
def test_spreads_repair_laws_that_are_too_narrow_or_too_wide(true: float) -> None:
    scores = true * np.random.default_rng(0).normal(size=(300, 6, 1))
    np.testing.assert_allclose(step_spreads(scores), true, rtol=0.1)
    scores[:, 3:] *= 2
    later = step_spreads(scores)
    assert later[-1] > 1.4 * later[0]
    assert np.abs(np.log(step_spreads(scores[:1]))).max() < np.abs(np.log(later)).max() + 0.5
    np.testing.assert_array_equal(step_spreads(scores[:0]), 1.0)


def test_recent_windows_decide_the_spread() -> None:
    """Laws that were right long ago and are too narrow now are widened; in the other order of time they are not."""
    rng = np.random.default_rng(0)
    old, new = rng.normal(size=(40, 4, 1)), 2.0 * rng.normal(size=(40, 4, 1))
    ended = np.repeat([0.0, 20.0], 40)
    np.testing.assert_allclose(step_spreads(np.concatenate([old, new]), ended), 2.0, rtol=0.2)
    np.testing.assert_allclose(step_spreads(np.concatenate([new, old]), ended), 1.0, rtol=0.2)
    both = step_spreads(np.concatenate([old, new]))
    assert 1.2 < both.min() <= both.max() < 1.8
    np.testing.assert_allclose(step_spreads(np.concatenate([old, new]), ended + 7.0), step_spreads(new), rtol=1e-3)


def test_the_spread_of_few_windows_is_that_of_all_steps() -> None:
    """Three windows say little of single steps: these stay near the spread of all; of 300 windows each has its own."""
    scores = np.random.default_rng(1).normal(size=(300, 6, 1))
    scores[:, 3:] *= 3
    few, many = step_spreads(scores[:3]), step_spreads(scores)
    assert few[-1] / few[0] < 1.4 < many[-1] / many[0]


def test_scores_of_an_atom_are_spread_over_it() -> None:
    found = spread_scores(np.array([-np.inf, 0.3]), np.array([0.0, 0.3]))
    np.testing.assert_allclose(stats.norm.cdf(found[0]), [0.05, 0.15, 0.25, 0.35, 0.45], atol=1e-6)
    np.testing.assert_allclose(found[1], 0.3)


def test_ties_of_steps() -> None:
    rng = np.random.default_rng(0)
    scores = np.repeat(rng.normal(size=(300, 1)), 5, 1)
    assert tie_of(scores) > 0.97
    assert tie_of(rng.normal(size=(300, 5))) < 0.1
    assert tie_of(np.full((3, 5), np.nan)) == 0.5


def test_windows_lie_inside_the_training_part() -> None:
    for length in (5, 9, 30, 200):
        for network in (False, True):
            cuts = stack_cuts(length, 10, 6, network=network)
            assert cuts == sorted(set(cuts))
            assert all(4 <= cut < length for cut in cuts)
    lengths = [60] * 500
    found = windows_of(lengths, 12, "default", network=True)
    assert len(found) <= 160
    spans = spans_of(lengths, 12, "default")
    assert all(60 - spans[number] <= cut for number, cut in found)  # a network does not learn from any of them
    assert sum(span > 0 for span in spans) <= 160


def test_the_gradient_is_that_of_the_loss() -> None:
    some = evidence(30, [0.0, 1.0, -0.5], [1.0, 2.0, 0.7])
    some.quantiles[1, :10] = np.nan
    rows = weights._rows(some, np.ones(3, dtype=bool))
    logits = np.log([0.5, 0.2, 0.3])
    _, slope = weights._loss(rows, np.exp(logits))
    shift = 1e-6 * np.eye(3)
    apart = [weights._loss(rows, np.exp(logits + s))[0] - weights._loss(rows, np.exp(logits - s))[0] for s in shift]
    np.testing.assert_allclose(slope, np.array(apart) / 2e-6, atol=1e-6)
    assert np.abs(slope).max() > 1e-3


def test_a_window_with_a_break_does_not_decide_alone() -> None:
    """Nine windows in which the first law is right, one with a jump that the second foresaw by chance."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(10, 4))
    truth[4] += 200.0
    laws = np.stack([np.broadcast_to(NODES, (10, 4, len(GRID))), np.broadcast_to(NODES + 12, (10, 4, 15))])
    evidence = Evidence(quantiles=laws.copy(), truth=truth, scale=np.ones(10))
    prior = np.array([0.5, 0.5])
    assert learned_weights(evidence, prior)[0] > 0.8
    capped = tempered(evidence, prior)
    assert np.flatnonzero(capped.scale > 1).tolist() == [4]
    unbroken = Evidence(quantiles=laws[:, :4].copy(), truth=truth[:4], scale=np.ones(4))
    np.testing.assert_array_equal(tempered(unbroken, prior).scale, 1.0)


def test_windows_of_few_steps_move_the_spread_by_their_values() -> None:
    """Eight windows of four steps have the weight of their values, not of eight windows of a long horizon."""
    ended = np.zeros(8)

    def spread(steps: int, rule: SpreadRule) -> float:
        even = stats.norm.ppf((np.arange(8 * steps) + 0.5) / (8 * steps))
        return float(step_spreads(2.0 * even.reshape(steps, 8, 1).swapaxes(0, 1), ended, rule).mean())

    assert 1.3 < spread(4, RULE) < 1.75
    assert 1.8 < spread(48, RULE) < 2.0
    np.testing.assert_allclose(spread(4, SpreadRule(least=0.0)), spread(48, RULE), rtol=0.05)  # as if none were few
