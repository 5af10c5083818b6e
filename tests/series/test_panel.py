"""Series and panels hold together, or say what does not."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sgfn.series.panel import Panel, Series

DAY = np.timedelta64(1, "D").astype("timedelta64[ns]")


def days(count: int, first: str = "2020-01-01") -> np.ndarray:
    return (np.datetime64(first) + np.arange(count) * np.timedelta64(1, "D")).astype("datetime64[ns]")


def small(**changes: Any) -> Series:
    parts = {
        "name": "a",
        "stamps": days(5),
        "values": np.arange(5.0),
        "known": np.zeros((7, 1)),
        "past": np.zeros((5, 2)),
        "future": days(2, "2020-01-06"),
    }
    return Series(**(parts | changes))


def test_until_forgets_what_came_later() -> None:
    """Only what is known in advance stays of the days after the cut."""
    whole = small(known=np.arange(7.0)[:, None])
    cut = whole.until(3)
    assert len(cut) == 3
    assert cut.past.shape == (3, 2)
    np.testing.assert_array_equal(cut.future, days(4, "2020-01-04"))
    np.testing.assert_array_equal(cut.known, whole.known)
    with pytest.raises(ValueError, match=r"cut must lie in \[1, 5\] for series 'a', got 6"):
        whole.until(6)


@given(count=st.integers(2, 20), data=st.data())
def test_until_twice_is_until_once(count: int, data: st.DataObject) -> None:
    first = data.draw(st.integers(1, count))
    second = data.draw(st.integers(1, first))
    none = np.zeros((count, 0))
    whole = Series(name="a", stamps=days(count), values=np.arange(count) * 1.0, known=none, past=none)
    twice, once = whole.until(first).until(second), whole.until(second)
    for part in ("stamps", "values", "known", "past", "future"):
        np.testing.assert_array_equal(getattr(twice, part), getattr(once, part))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"values": np.arange(4.0)}, "series 'a': values must number 5, got 4"),
        ({"known": np.zeros((5, 1))}, "series 'a': known must number 7, got 5"),
        ({"past": np.zeros((7, 2))}, "series 'a': past must number 5, got 7"),
        ({"values": np.arange(5)}, "values must be float64 with 1 dimensions, got int64 with 1"),
        ({"values": np.array([0, 1, np.inf, 3, 4.0])}, "infinite values"),
        ({"known": np.full((7, 1), np.nan)}, "known in advance must be finite"),
        ({"stamps": days(5)[::-1]}, "stamps must strictly increase, but 2020-01-05"),
        ({"stamps": days(5).astype("datetime64[s]"), "future": days(2).astype("datetime64[s]")}, "datetime64.ns., got"),
        ({"future": days(2)}, "stamps must strictly increase"),
    ],
)
def test_series_that_do_not_hold_together_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        small(**changes)


def test_panels_have_one_step_and_unique_names() -> None:
    one = small()
    names = {"known_names": ("k",), "past_names": ("p", "q")}
    assert Panel(series=(one,), step=DAY, **names)["a"] is one
    with pytest.raises(KeyError, match="no series 'b'; there are a"):
        Panel(series=(one,), step=DAY, **names)["b"]
    with pytest.raises(ValueError, match="'a' appears twice"):
        Panel(series=(one, one), step=DAY, **names)
    with pytest.raises(ValueError, match="columns of known must number 0, got 1"):
        Panel(series=(one,), step=DAY, past_names=("p", "q"))
    with pytest.raises(ValueError, match="is not one step of"):
        Panel(series=(one,), step=DAY * 2, **names)
    with pytest.raises(ValueError, match="at least one series"):
        Panel(series=(), step=None)
