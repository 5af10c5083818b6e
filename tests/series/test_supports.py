"""Supports: found from the data, given, and never left."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sgfn.cli.commands import main
from sgfn.config.series import SeriesConfig, parse_support
from sgfn.series.count_laws import count_quantiles
from sgfn.series.laid_laws import laid_means
from sgfn.series.quantile_laws import NODES, QuantileLaw
from sgfn.series.supports import REAL, Support, check_support, find_support, supports_of

RNG = np.random.default_rng(0)
COUNTS, SHARES, PRICES, CHANGES = (
    RNG.poisson(2.0, 40).astype(float),
    RNG.beta(0.7, 0.5, 40),
    RNG.gamma(2.0, 9.0, 40),
    RNG.normal(size=40),
)


@pytest.mark.parametrize(
    ("values", "name"), [(COUNTS, "count"), (SHARES, "unit"), (PRICES, "nonnegative"), (CHANGES, "real")]
)
def test_the_data_says_where_values_lie(values: np.ndarray, name: str) -> None:
    gaps = np.where(np.arange(40) % 7 == 0, np.nan, values)
    assert find_support(gaps).name == name
    assert find_support(values).holds(values)
    assert find_support(values[:5]) == REAL  # too few to say


def test_kilowatts_below_one_are_no_proportions() -> None:
    """Solar power of a small plant: back to zero each night, its best days between .8 and 1."""
    hours, rng = np.arange(24 * 20), np.random.default_rng(2)
    sun = np.clip(np.sin((hours % 24 - 6) / 12 * np.pi), 0.0, None) * np.repeat(rng.uniform(0.3, 1.0, 20), 24)
    for most in (0.82, 0.95, 0.999):
        assert find_support(sun / sun.max() * most).name == "nonnegative"
    daily = sun.reshape(20, 24).sum(1)
    assert find_support(daily / daily.max() * 0.93).name == "nonnegative"
    assert find_support(np.minimum(1.3 * sun / sun.max(), 1.0)).name == "unit"  # cut off at 1, again and again


def test_what_is_called_a_share_is_one_while_values_allow_it() -> None:
    calm = 0.5 + 0.1 * np.sin(np.arange(40) / 3)
    assert [one.name for one in supports_of("auto", [calm, calm[:4]], shares=True)] == ["unit", "unit"]
    assert [one.name for one in supports_of("auto", [calm], shares=False)] == ["nonnegative"]
    assert [one.name for one in supports_of("auto", [calm + 0.6], shares=True)] == ["nonnegative"]


def test_what_grows_below_one_may_grow_past_it() -> None:
    """Thirty values from .26 to .65, as a rice harvest in megatonnes, are no proportions: it came to 1.5."""
    harvest = 0.26 * 1.032 ** np.arange(30)
    assert find_support(harvest).name == "nonnegative"
    assert find_support(np.where(np.arange(30) % 9 == 0, 1.0, harvest)).name == "unit"  # on the bound again and again


def test_fractions_that_lie_on_a_hundred_again_and_again_are_percentages() -> None:
    humidity = np.clip(np.round(90 + 12 * np.sin(np.arange(60) / 5), 1), 0.0, 100.0)
    assert (humidity == 100).sum() > 1
    assert find_support(humidity).name == "0:100"
    assert find_support(np.append(humidity, 100.2)).name == "nonnegative"
    assert find_support(PRICES / PRICES.max() * 100).name == "nonnegative"  # on it once
    assert [one.name for one in supports_of("auto", [humidity, PRICES])] == ["0:100", "0:100"]
    assert [one.name for one in supports_of("auto", [humidity, PRICES * 9])] == ["nonnegative"] * 2
    assert [one.name for one in supports_of("auto", [humidity, CHANGES])] == ["nonnegative", "real"]


def test_series_of_a_panel_share_what_they_measure() -> None:
    """One series with fractions: none are counts. One with losses: the others still never fall below zero.

    One that shows the bound of proportions shows it for another that stays in the middle, unless a value lies above it.
    """
    assert [one.name for one in supports_of("auto", [COUNTS, PRICES])] == ["nonnegative", "nonnegative"]
    assert [one.name for one in supports_of("auto", [PRICES, CHANGES])] == ["nonnegative", "real"]
    assert [one.name for one in supports_of("auto", [COUNTS, COUNTS[:3]])] == ["count", "count"]
    calm, grown = 0.5 + 0.1 * np.sin(np.arange(40) / 3), np.array([0.4, 1.2])
    assert [one.name for one in supports_of("auto", [SHARES, calm])] == ["unit", "unit"]
    assert [one.name for one in supports_of("auto", [calm])] == ["nonnegative"]
    assert [one.name for one in supports_of("auto", [SHARES, calm, grown])] == ["nonnegative"] * 3
    assert [one.name for one in supports_of("auto", [SHARES, CHANGES / 10])] == ["nonnegative", "real"]
    assert [one.name for one in supports_of("auto", [COUNTS[:3]])] == ["real"]
    assert [one.name for one in supports_of("-5:5", [COUNTS])] == ["-5:5"]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20),
    st.sampled_from(["real", "nonnegative", "count", "unit", "-3:7", "0:inf"]),
)
def test_projections_lie_inside_and_keep_the_order(values: list[float], name: str) -> None:
    low, high, whole = parse_support(name)
    support = Support(low=low, high=high, whole=whole)
    found = support.project(np.sort(np.array(values)))
    assert support.holds(found)
    assert (np.diff(found) >= 0).all()
    np.testing.assert_array_equal(support.project(found), found)


def test_what_is_refused() -> None:
    for wrong in ("positive", "3:1", "a:b", "0:0"):
        with pytest.raises(ValueError, match=r"^series\.support must be one of auto, real, .* or LO:HI"):
            SeriesConfig(support=wrong)
    with pytest.raises(ValueError, match=r"^series 'a' has the value -?\d.* outside support unit: take --support auto"):
        check_support(Support(low=0.0, high=1.0), "a", CHANGES)
    check_support(Support(low=0.0, high=1.0), "a", SHARES)


def test_a_support_that_values_leave_is_refused_before_a_run_begins(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "\n".join(f"2018-01-{day:02d},{day + 0.5}" for day in range(1, 29))
    (tmp_path / "y.csv").write_text(f"date,y\n{rows}\n", encoding="utf-8")
    words = ["forecast", str(tmp_path / "y.csv"), "--support", "count", "--out", str(tmp_path / "run")]
    assert main(words) == 2
    assert "outside support count" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_means_of_laws_within_a_support_are_not_their_medians() -> None:
    law = QuantileLaw(values=np.stack([[count_quantiles(0.4, 0.6)], [0.4 + NODES]]))
    ((croston,), (normal,)) = laid_means([Support(low=0.0, whole=True), REAL], law)
    assert croston == pytest.approx(0.4, abs=0.02)  # its median is 0
    assert normal == pytest.approx(0.4, abs=0.02)
    assert laid_means([Support(low=0.0, whole=True)] * 2, law)[1, 0] > 0.5  # what lies below zero counts as zero


def test_classical_laws_of_a_backtest_stay_in_the_support(tmp_path: Path) -> None:
    file, out = tmp_path / "s.csv", tmp_path / "f"
    rare = np.random.default_rng(1).poisson(0.4, 80)
    file.write_text("t,y\n" + "".join(f"{at},{value}\n" for at, value in enumerate(rare)))
    words = f"forecast {file} --horizon 4 --windows 1 --effort quick --laws CrostonSBA --baselines AutoETS,CrostonSBA"
    assert main([*words.split(), "--steps", "2", "--out", str(out)]) == 0
    rows = [line.split(",") for line in (out / "backtest.csv").read_text().splitlines()]
    place = {name: at for at, name in enumerate(rows[0])}
    lows = {row[place["method"]]: min(float(row[place["q0.1"]]), 0.0) for row in rows[1:]}
    assert lows == dict.fromkeys(lows, 0.0)
    assert {"AutoETS", "CrostonSBA"} <= set(lows)
    assert all(float(row[place["mean"]]) > 0.1 for row in rows[1:] if row[place["method"]] == "CrostonSBA")
