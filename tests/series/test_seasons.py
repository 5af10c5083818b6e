"""Seasons: those that the step suggests, where the data shows them."""

import numpy as np
import pytest

from sgfn.series.calendar import numbered_stamps
from sgfn.series.seasons import candidates, seasons_of, shows

HOUR, DAY, MONTH = np.timedelta64(1, "h"), np.timedelta64(1, "D"), np.timedelta64(30, "D")


def wave(count: int, steps: int, size: float = 3.0, seed: int = 0) -> np.ndarray:
    noise = np.random.default_rng(seed).normal(size=count)
    return noise + size * np.sin(2 * np.pi * np.arange(count) / steps) + 0.05 * np.arange(count)


def test_two_seasons_are_found_and_none_that_is_not_there() -> None:
    values = wave(24 * 7 * 6, 24) + wave(24 * 7 * 6, 168, seed=1)
    assert seasons_of(values, HOUR) == (24, 168)
    assert seasons_of(wave(120, 12), MONTH) == (12,)
    rng = np.random.default_rng(0)
    noise, walks = rng.normal(size=(200, 120)), rng.normal(size=(200, 120)).cumsum(1)
    assert np.mean([bool(seasons_of(one, MONTH)) for one in noise]) < 0.06
    assert np.mean([bool(seasons_of(one, MONTH)) for one in walks]) < 0.06


@pytest.mark.parametrize("values", [np.full(60, 3.0), np.full(60, np.nan), np.arange(60.0), np.zeros(5)])
def test_odd_histories_have_none(values: np.ndarray) -> None:
    assert seasons_of(values, MONTH) == ()
    assert not shows(values, 12)


def test_gaps_and_given_seasons() -> None:
    values = wave(120, 12)
    values[::9] = np.nan
    assert seasons_of(values, MONTH) == (12,)
    assert seasons_of(values, MONTH, given=7) == (7,)
    assert seasons_of(values, MONTH, given=1) == ()
    assert seasons_of(values[:20], MONTH) == ()  # less than two and a half
    assert candidates(DAY) == (7, 365)


def test_numbers_of_steps_suggest_no_season() -> None:
    gap = np.diff(numbered_stamps(np.arange(2)))[0]
    assert candidates(gap) == ()
    wave = np.sin(np.arange(240) * 2 * np.pi / 60)
    assert seasons_of(wave, gap) == ()
    assert seasons_of(wave, np.timedelta64(1, "m")) == (60,)
    assert seasons_of(wave, gap, given=60) == (60,)
