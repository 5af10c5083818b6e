"""Breaks of level: found where they last and are sudden, and read through by all laws."""

import numpy as np
import pandas as pd
import pytest

from sgfn.reports.forecasts import breaks_line
from sgfn.series.bank import Bank
from sgfn.series.breaks import Break, level_break
from sgfn.series.forecaster import Forecaster
from sgfn.series.frames import panel_of
from sgfn.series.supports import Support

REAL = Support()
LEVELS = (0.1, 0.5, 0.9)


def noise(seed: int, count: int = 120) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=count)


def shifted(at: int = 80, change: float = 80.0, count: int = 120) -> np.ndarray:
    """White noise of deviation 1 around 50, and a level that changes once."""
    return 50 + noise(0, count) + np.where(np.arange(count) >= at, change, 0.0)


def table(values: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame({"ds": pd.date_range("2010-01-01", periods=len(values), freq="MS"), "y": values})


def test_place_and_change_of_a_break() -> None:
    found = level_break(shifted())
    assert found is not None
    assert found.place == 80
    assert found.change == pytest.approx(80.0, abs=1.0)
    later = level_break(np.r_[50 + noise(1, 1200), shifted()])
    assert later is not None
    assert later.place == 1280
    phase = 30 * np.sin(np.arange(120) * np.pi / 6)
    season = level_break(shifted() + phase, (12,))
    assert season is not None
    assert (season.place, season.change) == (80, pytest.approx(80.0, abs=1.0))


@pytest.mark.parametrize("seed", range(8))
def test_series_without_a_break(seed: int) -> None:
    """Noise, walks, trends that end, noise that grows with the level, breaks of the last values, short histories."""
    white, time = noise(seed), np.arange(120)
    assert level_break(white) is None
    assert level_break(np.cumsum(white)) is None
    assert level_break(np.minimum(time, 60) + white) is None
    assert level_break(np.where(time >= 80, 60 + 20 * white, white)) is None
    assert level_break(np.where(time >= 116, 60 + white, white)) is None
    assert level_break(np.where(time >= 80, 60 + white, white)[65:95]) is None
    assert level_break(np.where((time > 60) & (time < 64), 60 + white, white)) is None


def test_values_before_a_break_are_aligned_with_those_after_it() -> None:
    found = Break(place=3, change=10.4)
    values = np.array([1.0, np.nan, 3.0, 13.0])
    assert found.aligned(values) == {0: 11.4, 2: 13.4}
    assert found.aligned(values, whole=True) == {0: 11.0, 2: 13.0}


def test_a_bank_reads_through_a_break_once_it_lasted() -> None:
    values = shifted()
    bank = Bank(panel_of(table(values)), 6, [REAL])
    assert bank.level_break(0, 84) is None
    np.testing.assert_array_equal(bank.history((0, 84)).values, values[:84])
    read = bank.history((0, 120)).values
    np.testing.assert_array_equal(read[80:], values[80:])
    assert np.abs(read - 130).max() < 4.5
    assert bank.moved(0, 120) == {}
    assert bank.scale((0, 120)) < 2
    count = Bank(panel_of(table(np.where(values > 90, 7.0, 0.0))), 6, [REAL])
    assert count.level_break(0, 120) is None  # zeros and little else


def test_intervals_after_a_break_are_as_wide_as_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within a half of the width of the law that is right; five times that without."""
    right = 2 * 1.2816

    def width() -> float:
        fitted = Forecaster(horizon=6, laws="seasonal-naive,AutoTheta").fit(table(shifted()))
        low, middle, high = np.moveaxis(fitted.predict(samples=2).quantiles(LEVELS)[0], -1, 0)
        assert np.abs(middle - 130).max() < 5
        return float((high - low).mean())

    assert 0.7 * right < width() < 1.5 * right
    monkeypatch.setattr("sgfn.series.bank.level_break", lambda *_: None)
    assert width() > 5 * right


def test_a_break_is_told() -> None:
    frame = table(shifted())
    fitted = Forecaster(horizon=6, laws="seasonal-naive").fit(frame)
    line = breaks_line(fitted, panel_of(frame))
    assert "values before a break of level are read as if after it:" in line
    assert " 2016-09-01 by +80" in line or " 2016-09-01 by +79" in line
    assert breaks_line(fitted, panel_of(frame[:80])) == ""


def test_windows_that_did_not_know_of_a_break_end_before_it() -> None:
    stacked = Forecaster(horizon=6, laws="seasonal-naive").fit(table(shifted())).stacked
    found = stacked.evidence([(0, 70), (0, 76), (0, 80), (0, 90)], [120])
    assert (~np.isnan(found.truth)).sum(1).tolist() == [6, 4, 6, 6]
    early = stacked.evidence([(0, 76)], [84])
    assert not np.isnan(early.truth).any()
