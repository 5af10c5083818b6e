"""The forecasting panel: data as they were published, halves that stay as they are, and the table's arithmetic."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from benchmarks.figures import TABLES
from benchmarks.forecast_breadth import panel, short, slips, table
from benchmarks.forecast_breadth.__main__ import notes_of, results_file
from benchmarks.forecast_breadth.boosting import row_of
from benchmarks.forecast_breadth.methods import interpolated, law
from benchmarks.forecast_breadth.recipes import RECIPES
from benchmarks.forecast_breadth.rows import counted, decimal_time, quarters_of, soi
from statsforecast.models import SeasonalNaive

from sgfn.config.files import read_json
from sgfn.series.baselines import seasonal_naive


def test_every_data_set_is_intact_and_says_where_it_is_from() -> None:
    for name, recipe in RECIPES.items():
        record = panel.provenance()[name]
        rows = panel.read_checked(name)
        assert rows.startswith(b"unique_id,ds,y\n")
        assert record["rows"] == rows.count(b"\n") - 1 >= 30
        assert recipe.member in record["source"]
        assert recipe.licence in record["licence"]


def test_a_changed_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    record = {"beer": panel.provenance()["beer"] | {"csv_sha256": "0" * 64}}
    monkeypatch.setattr(panel, "provenance", lambda: record)
    with pytest.raises(ValueError, match=r"beer\.csv\.gz: the checksum differs from provenance\.json"):
        panel.read_checked("beer")


def test_the_halves_have_all_kinds_and_stay_as_they_are() -> None:
    halves = panel.halves()
    development, validation = (set(halves[half]) for half in panel.HALVES)
    assert development | validation == set(RECIPES)
    assert not development & validation
    assert len(development) == len(validation) == 38
    assert {"beer", "lynx", "taylor", "trains"} <= development  # a data set never changes sides
    assert {"wine", "employment", "water", "prisoners"} <= validation
    for half in (development, validation):
        assert {RECIPES[name].freq for name in half} == set("AQMWDBHT")
        assert {"intermittent", "counts", "price", "proportion", "season", "seasons"} <= {
            RECIPES[name].kind for name in half
        }


@pytest.mark.parametrize("name", ["beer", "measles_london", "hepatitis"])
def test_windows_lie_at_the_end_and_leave_enough(name: str) -> None:
    data = panel.load(name)
    for origin in data.origins:
        assert origin.cut >= panel.LEFT * data.horizon
        assert not np.isnan(origin.truth).all()
    assert {len(one.series) - one.cut - data.horizon for one in data.origins} >= {0}
    assert len(data.spare) == len(data.panel)


# Rows


def test_rows_of_several_kinds() -> None:
    times = pd.DataFrame({"time": [1956.0, 1956.25, 1956.5], "value": [1.0, 2.0, 3.0]})
    assert decimal_time(times, "x", 4)["ds"].dt.month.tolist() == [1, 4, 7]
    events = counted(
        pd.Series(["a", "a", "b"]), pd.to_datetime(pd.Series(["2020-01-01", "2020-01-01", "2020-01-03"])), "D"
    )
    assert events[events["unique_id"] == "a"]["y"].tolist() == [2, 0, 0]
    assert events[events["unique_id"] == "b"]["y"].tolist() == [0, 0, 1]
    assert quarters_of(pd.Series(["1998 Q1", "1998 Q4"])).dt.month.tolist() == [1, 10]
    months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    index = soi(pd.DataFrame([[1900, *range(12)], [1901, *range(12, 24)]], columns=["Year", *months]))
    assert index["y"].tolist() == list(range(24))
    assert str(index["ds"].iloc[-1].date()) == "1901-12-01"


# Methods


def test_gaps_are_interpolated_and_constants_stay() -> None:
    assert interpolated(np.array([np.nan, 1.0, np.nan, 3.0])).tolist() == [1.0, 2.0, 3.0]
    assert (law(SeasonalNaive(season_length=1), np.full(9, 4.0), 3) == 4.0).all()


def test_the_rival_seasonal_naive_is_ours() -> None:
    values = np.random.default_rng(0).normal(size=40)
    assert np.allclose(law(SeasonalNaive(season_length=4), values, 6), seasonal_naive(values, 6, season=4))


# The table


def row(data: str, method: str, wql: float, **more: float) -> dict[str, object]:
    return (
        {"data": data, "method": method, "wql": wql, "mase": wql, "coverage_80": 0.8, "values": 200}
        | {"cpu_seconds": 1.0}
        | more
    )


def test_figures_of_the_table() -> None:
    rows = [row("a", "seasonal naive", 2.0), row("a", "AutoETS", 1.0), row("a", "sgfn", 1.05, coverage_80=0.5)]
    rows += [row("b", "seasonal naive", 1.0), row("b", "AutoETS", 4.0), row("b", "sgfn", 1.2)]
    rows.append({"data": "b", "method": "AutoARIMA", "values": 200, "skipped": "too slow"})
    found = {one["method"]: one for one in table.summary(rows, ("seasonal naive", "AutoETS", "AutoARIMA"))}
    assert found["AutoETS"]["wql"] == pytest.approx(np.sqrt(0.5 * 4.0))
    assert found["sgfn"]["wql"] == pytest.approx(np.sqrt(0.525 * 1.2))
    assert found["sgfn"]["against"] == pytest.approx(np.sqrt(0.525 * 1.2))  # seasonal naive is the best single one
    assert found["sgfn"]["near"] == 0.5  # 1.05 x AutoETS of a, 1.2 x seasonal naive of b
    assert found["sgfn"]["covered"] == 0.5
    assert found["sgfn"]["rank"] == 2.0
    assert "AutoARIMA" not in found
    text = table.breadth_table(rows)
    assert "| a | 2.0000 | **0.50** | 0.53 |" in text
    assert "| sgfn | 2 |" in text
    assert table.duels(rows) == {"AutoETS": (1, 0, 1), "seasonal naive": (1, 0, 1)}
    assert "won, tied (within 2%) and lost: AutoETS 1/0/1, seasonal naive 1/0/1." in text


def test_what_was_not_run_is_named() -> None:
    names = panel.halves()["development"]
    rows = [row(name, "AutoETS", 1.0) for name in names if name != "beer"]
    notes = notes_of("development", rows)
    assert "No method was run on beer." in notes
    assert any("chosen on this half" in line for line in notes)
    assert not any("chosen on this half: its" in line for line in notes_of("validation", rows))


def test_committed_notes_are_those_of_the_rows() -> None:
    for half in panel.HALVES:
        if (path := results_file(half)).is_file():
            found = read_json(path)
            assert tuple(found["notes"]) == notes_of(half, found["rows"])


def test_tables_of_the_page_are_those_of_the_results() -> None:
    page = Path("docs/forecast.md").read_text(encoding="utf-8")
    for name in ("breadth", "forecast", "forecast-cost"):
        found = page.partition(f"<!-- {name}: begin -->\n")[2].partition(f"\n<!-- {name}: end -->")[0]
        assert found == TABLES[name](), f"{name}: python -m benchmarks.figures"


def test_boosted_rows_know_nothing_of_their_step() -> None:
    values = np.arange(1.0, 31.0)
    first, size = row_of(values, 20, 3, 4, 5)
    later = values.copy()
    later[20:] = 99.0
    assert row_of(later, 20, 3, 4, 5) == (first, size)
    assert size == pytest.approx(values[15:20].mean())
    assert first[:5] == pytest.approx(values[15:20] / size)
    assert first[5:7] == pytest.approx(values[[19, 15]] / size)  # a season and two before step 23


def test_a_slip_changes_one_value_before_the_window() -> None:
    data = panel.load("lynx")
    origin = data.origins[0]
    found = slips.spoiled(data.panel, origin, 10.0).series[0].values
    changed = np.flatnonzero(found != data.panel.series[0].values)
    assert changed.tolist() == [origin.cut - 1]
    assert found[origin.cut - 1] == 10 * data.panel.series[0].values[origin.cut - 1]


def test_scorings_are_compared_on_the_data_sets_that_they_share() -> None:
    rows = [row(name, method, wql) for name in "ab" for method, wql in [("seasonal naive", 2.0), ("AutoETS", 1.0)]]
    rows += [row("a", "sgfn", 0.9), row("b", "sgfn", 3.0), row("a", "sgfn, first scoring", 1.2)]
    text = table.breadth_table(rows, ("seasonal naive", "AutoETS"))
    assert "On the 1 data sets of all scorings" in text
    assert "sgfn, first scoring 1.200 and 0%, sgfn 0.900 and 100%." in text
    assert "scorings" not in table.breadth_table(rows[:-1], ("seasonal naive", "AutoETS"))


def test_short_series_are_drawn_by_their_rule() -> None:
    """Rows of years, quarters and months; columns that are no counters; nothing twice, nor what moves with another."""
    years = pd.DataFrame(
        {"Year": np.arange(1950, 1990), "n": np.arange(40.0), "y": np.sin(np.arange(40.0)), "word": "a"}
    )
    assert short.times_of(years) == ("A", ["Year"])
    assert [name for name, _ in short.columns_of(years, ["Year"])] == ["y"]
    months = pd.DataFrame({"year": 60 + np.arange(48) // 12, "month": np.arange(48) % 12 + 1})
    assert short.times_of(months) == ("M", ["year", "month"])
    assert short.times_of(years.iloc[::-1]) == ("", [])
    assert short.times_of(years.iloc[:20]) == ("", [])
    values = years["y"].to_numpy()
    assert short.runs(values[3:20]) <= short.runs(values)
    assert short.runs(np.zeros(20)) == set()
    assert short.moves_with(values, -2 * values[5:] + 1)
    assert not short.moves_with(values, np.random.default_rng(0).normal(size=40))
    data = short.data_set("a", "A", values)
    assert (data.horizon, len(data.origins)) == (5, 5)
    assert short.data_set("a", "A", values[:39]).horizon == 4
