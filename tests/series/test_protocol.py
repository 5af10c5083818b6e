"""Rolling origins against the published figures of GIFT-Eval, and against hand-counted windows."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sgfn.config.files import read_json
from sgfn.evaluation.metrics import forecast as metrics
from sgfn.series import baselines, datasets
from sgfn.series.panel import Panel, Series
from sgfn.series.protocol import rolling_origins, scales, truths

DAY = np.timedelta64(1, "D")


def line(count: int, name: str = "a", first: str = "2020-01-01") -> Series:
    stamps = (np.datetime64(first) + np.arange(count) * DAY).astype("datetime64[ns]")
    none = np.zeros((count, 0))
    return Series(name=name, stamps=stamps, values=np.arange(count) * 1.0, known=none, past=none)


def test_naive_on_births_gives_the_published_figures() -> None:
    """GIFT-Eval lists MASE 1.8648 and WQL .11953 for Naive; seasonal naive with m = 7 gives .596 and .0333."""
    origins = rolling_origins(datasets.load("births"), horizon=30, windows=20)
    truth, scale = truths(origins), scales(origins)
    flat = np.stack([baselines.naive(one.history.values, 30) for one in origins])
    assert round(metrics.mase(flat[..., 4], truth, scale), 4) == 1.8648
    assert round(metrics.wql(flat, truth), 5) == 0.11953
    weekly = np.stack([baselines.seasonal_naive(one.history.values, 30, season=7) for one in origins])
    assert round(metrics.mase(weekly[..., 4], truth, scale), 3) == 0.596
    assert round(metrics.wql(weekly, truth), 4) == 0.0333
    early = rolling_origins(datasets.load("births"), horizon=30, windows=19)  # and another protocol is noticed
    assert round(metrics.wql(flat[1:], truths(early)), 5) != 0.11953


@given(
    count=st.integers(2, 60),
    horizon=st.integers(1, 10),
    windows=st.integers(1, 8),
    stride=st.integers(1, 12) | st.none(),
)
def test_windows_end_with_the_series_and_lie_a_stride_apart(
    count: int, horizon: int, windows: int, stride: int | None
) -> None:
    panel = Panel(series=(line(count),), step=DAY)
    if count < horizon + 2:
        with pytest.raises(ValueError, match=f"no window of horizon {horizon} fits"):
            rolling_origins(panel, horizon, windows, stride)
        return
    origins = rolling_origins(panel, horizon, windows, stride)
    cuts = [one.cut for one in origins]
    assert cuts[-1] == count - horizon
    assert set(np.diff(cuts)) <= {stride or horizon}
    assert len(cuts) == min(windows, (count - horizon - 2) // (stride or horizon) + 1)
    for one in origins:
        assert one.history.values[-1] + 1 == one.truth[0]
        assert len(one.truth) == len(one.stamps) == horizon


def test_every_series_has_its_windows_and_gaps_are_passed_over() -> None:
    short, gappy = line(10), line(20, "b")
    gappy.values[10:14] = np.nan
    stamps = gappy.stamps.copy()
    stamps[16:] += np.timedelta64(9, "D")
    late = Series(name="b", stamps=stamps, values=gappy.values, known=gappy.known, past=gappy.past)
    panel = Panel(series=(short, late), step=None)
    assert [(one.series.name, one.cut) for one in rolling_origins(panel, 2, 3)] == [
        ("a", 4), ("a", 6), ("a", 8), ("b", 14), ("b", 16), ("b", 18),
    ]  # fmt: skip
    within = rolling_origins(panel, 2, 3, span=np.timedelta64(3, "D"))
    assert [(one.series.name, one.cut) for one in within][3:] == [("b", 8), ("b", 14), ("b", 18)]
    assert scales(within).tolist() == [1.0] * 6


def test_committed_baselines_on_births_are_the_published_ones() -> None:
    """GIFT-Eval prints .518/.0267 for AutoETS and .596/.0333 for seasonal naive; AutoETS takes minutes, so its row."""
    rows = read_json(Path(__file__).parents[2] / "benchmarks" / "results" / "forecast.json")["rows"]
    found = {row["method"]: (round(row["mase"], 3), round(row["wql"], 4)) for row in rows if row["data"] == "births"}
    assert found["AutoETS"] == (0.518, 0.0267)
    assert found["seasonal naive"] == (0.596, 0.0333)
    assert found["naive"] == (1.865, 0.1195)
