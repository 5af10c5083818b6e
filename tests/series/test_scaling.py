"""Scaling against numpy, window by window."""

import numpy as np
import pytest
import torch
from exact_tables import PROPERTY
from hypothesis import given
from hypothesis import strategies as st

from sgfn.series.scaling import mean_changes, scale_of

OFFSETS = torch.arange(-5, 9)


@st.composite
def histories(draw: st.DrawFn) -> np.ndarray:
    """Two seasons and more, some values missing, at least one seen."""
    size = draw(st.integers(6, 20))
    values = draw(st.lists(st.one_of(st.just(np.nan), st.floats(-100, 100)), min_size=size, max_size=size))
    values[draw(st.integers(0, size - 1))] = 1.5
    return np.array(values)


def lower_median(values: np.ndarray) -> float:
    """Of an even number of values the lower one in the middle, as torch has it."""
    seen = np.sort(values[~np.isnan(values)])
    return seen[(len(seen) - 1) // 2] if len(seen) else np.nan


def reference_by_hand(history: np.ndarray, offset: int, kind: str, season: int) -> float:
    if kind == "none":
        return 0.0
    if kind == "last":
        return history[~np.isnan(history)][-1]
    same = [v for back, v in enumerate(history[::-1], start=1) if (-back - offset) % season == 0]
    same = same[: len(history) // season]  # whole seasons only
    found = lower_median(np.array(same)) if kind == "season" else np.nan
    return lower_median(history) if np.isnan(found) else found


@pytest.mark.parametrize("kind", ["season", "level", "last", "none"])
@given(histories(), st.integers(2, 5))
@PROPERTY
def test_references_are_those_of_numpy(kind: str, history: np.ndarray, season: int) -> None:
    found = scale_of(torch.tensor(history)[None], OFFSETS, reference=kind, scaling="deviation", season=season)
    wanted = [reference_by_hand(history, int(o), kind, season) for o in OFFSETS]
    assert np.allclose(found.reference[0].numpy(), wanted)


@pytest.mark.parametrize("kind", ["deviation", "size", "none"])
@given(histories())
@PROPERTY
def test_units_are_those_of_numpy(kind: str, history: np.ndarray) -> None:
    found = scale_of(torch.tensor(history)[None], OFFSETS, reference="level", scaling=kind, season=1)
    size, deviation = np.nanmean(np.abs(history)), np.nanmean(np.abs(history - lower_median(history)))
    wanted = {"size": size, "deviation": max(deviation, 1e-3 * size), "none": 1.0}[kind]
    assert float(found.unit[0]) == pytest.approx(wanted)
    later = history * 2 + 1
    other = scale_of(torch.tensor(later)[None], OFFSETS, reference="level", scaling="deviation", season=1)
    assert kind != "deviation" or deviation < 0.1 or float(other.unit[0]) == pytest.approx(2 * wanted)


def test_a_flat_history_has_a_unit_all_the_same() -> None:
    zeros = scale_of(torch.zeros(1, 8).double(), OFFSETS, reference="level", scaling="deviation", season=1)
    flat = scale_of(torch.full((1, 8), 50.0).double(), OFFSETS, reference="level", scaling="deviation", season=1)
    assert (float(zeros.unit[0]), float(flat.unit[0])) == (1.0, pytest.approx(0.05))


def test_a_history_without_values_says_so() -> None:
    found = scale_of(torch.full((1, 8), torch.nan).double(), OFFSETS, reference="season", scaling="size", season=4)
    assert found.reference.isnan().all()
    assert found.level.isnan().all()


# The trend, and the floor of the unit


def test_a_season_on_a_straight_line_is_followed() -> None:
    """Half of the slope goes on, from the middle of the last cycle; the season's shape is that of the values."""
    shape, slope, cycles = np.array([0.0, 4.0, -2.0]), 0.5, 6
    time = np.arange(3 * cycles)
    history = torch.from_numpy(10 + np.tile(shape, cycles) + slope * np.repeat(np.arange(cycles) * 3.0, 3))[None]
    found = scale_of(history, torch.arange(3), reference="trend", scaling="size", season=3).reference[0].numpy()
    last = 10 + slope * 3 * (cycles - 1)
    ahead = np.arange(3) + 2.0  # from the middle of the last cycle
    np.testing.assert_allclose(found, last + shape + 0.5 * slope * ahead, atol=1e-9)
    flat = scale_of(history, torch.arange(3), reference="season", scaling="size", season=3).reference[0].numpy()
    truth = 10 + shape + slope * 3 * cycles
    assert np.abs(found - truth).max() < np.abs(flat - truth).max() / 4
    assert len(time) == history.shape[1]


def test_a_history_with_gaps_has_a_trend() -> None:
    history = torch.full((1, 12), torch.nan, dtype=torch.float64)
    history[0, 4] = 3.0
    found = scale_of(history, torch.arange(4), reference="trend", scaling="size", season=3)
    assert bool(found.reference.isfinite().all())
    assert found.reference[0, 0] == 3.0


@pytest.mark.parametrize("scaling", ["deviation", "size"])
def test_a_flat_history_has_the_unit_of_earlier_changes(scaling: str) -> None:
    flat, before = torch.zeros(1, 6, dtype=torch.float64), torch.tensor([2.0], dtype=torch.float64)
    settings = {"reference": "level", "scaling": scaling, "season": 1}
    assert float(scale_of(flat, torch.arange(2), least=before, **settings).unit) == 2.0
    assert float(scale_of(flat, torch.arange(2), **settings).unit) == 1.0  # nothing is known


def test_changes_are_those_before_each_position() -> None:
    values = torch.tensor([5.0, 1.0, 6.0, torch.nan, 6.0, 9.0], dtype=torch.float64)
    found = mean_changes(values, 2).tolist()
    assert found == [0.0, 0.0, 0.0, 1.0, 1.0, 0.5, 0.5]
    changed = values.clone()
    changed[4] = 100.0
    assert mean_changes(changed, 2).tolist()[:5] == found[:5]  # nothing later is read
