"""Files, pictures and page of a forecast, from tables that are known."""

import csv
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from forecast_tables import HORIZON, outcome, small_panel
from matplotlib import dates as mdates

from sgfn.config.csv_cells import marked
from sgfn.reports.axes import new_figure, save
from sgfn.reports.forecast_figure import (
    calibration_chart,
    calibration_of,
    fan_chart,
    file_names,
    places,
    rows_of,
    time_panel,
    unbroken,
)
from sgfn.reports.pages.forecast import behind_line, write_forecast_page
from sgfn.series.calendar import numbered_stamps
from sgfn.series.files import Outcome, write_table


def test_files_give_back_what_was_written(tmp_path: Path) -> None:
    written = outcome()
    written.write(tmp_path)
    found = Outcome.read(tmp_path)
    for name in ("history", "forecast", "backtest"):
        pd.testing.assert_frame_equal(getattr(found, name), getattr(written, name), rtol=1e-9, check_dtype=False)
    assert found.scores == written.scores
    assert (tmp_path / "forecast.csv").read_text().startswith("unique_id,ds,mean,q0.1,q0.2,")
    (tmp_path / "backtest.json").unlink()
    with pytest.raises(ValueError, match=r"has no backtest\.json: forecast first"):
        Outcome.read(tmp_path)


def test_names_that_a_spreadsheet_would_run(tmp_path: Path) -> None:
    """They are marked in every table, and come back as they were."""
    names = ("=1+1", "-2", "@a", "+b", "'=c", 'q"r, s', "a\rb")
    written = outcome(small_panel(names))
    written.write(tmp_path)
    for name in ("history", "forecast", "backtest"):
        with (tmp_path / f"{name}.csv").open(newline="") as file:
            cells = {row["unique_id"] for row in csv.DictReader(file)}
        assert cells == {marked(one) for one in names}
        pd.testing.assert_frame_equal(
            getattr(Outcome.read(tmp_path), name), getattr(written, name), rtol=1e-9, check_dtype=False
        )
    write_table(tmp_path / "a.parquet", written.forecast)
    assert set(pd.read_parquet(tmp_path / "a.parquet")["unique_id"]) == set(names)


def test_tables_by_their_ending(tmp_path: Path) -> None:
    table = outcome().forecast
    write_table(tmp_path / "a.parquet", table)
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "a.parquet"), table, check_dtype=False)
    with pytest.raises(ValueError, match=r"written as \.csv or \.parquet, not as '\.xlsx'"):
        write_table(tmp_path / "a.xlsx", table)


def test_fan_chart_draws_the_tables(tmp_path: Path) -> None:
    """Three backtest windows and the future; lines are the medians, and what was seen breaks at a gap."""
    found = outcome(small_panel(gap=True))
    paths = found.forecast.assign(sample=0, y=found.forecast["q0.5"] + 1)
    figure = fan_chart("a", replace(found, paths=paths))
    (axis,) = figure.axes
    ours = found.forecast[found.forecast["unique_id"] == "a"]
    lines = {str(line.get_label()): line for line in axis.lines}
    median = lines["forecast: median, intervals to 80%"]
    np.testing.assert_allclose(median.get_ydata(), ours["q0.5"])
    np.testing.assert_allclose(median.get_xdata(), mdates.date2num(ours["ds"]))
    np.testing.assert_allclose(lines["sample paths"].get_ydata(), ours["q0.5"] + 1)
    assert np.isnan(np.asarray(lines["observed"].get_ydata())).sum() == 1
    assert len(axis.collections) == 4 * (3 + 1)  # four bands each
    first = mdates.num2date(axis.dataLim.x0).date().isoformat()
    assert first == "2024-02-12"  # one horizon before the first of the windows, which knew the 18th
    assert save(figure, tmp_path / "fan.png").read_bytes()[:4] == b"\x89PNG"


def test_calibration_is_the_share_below(tmp_path: Path) -> None:
    rows = pd.DataFrame({"method": "sgfn", "y": [1.0, 2.0, 3.0, np.nan], "q0.1": 1.5, "q0.5": 2.5, "q0.9": 9.0})
    levels, shares = calibration_of(rows)
    assert levels.tolist() == [0.1, 0.5, 0.9]
    np.testing.assert_allclose(shares, [1 / 3, 2 / 3, 1.0])
    figure = calibration_chart(pd.concat([rows, rows.assign(method="other", **{"q0.5": 0.0})]))
    assert [str(line.get_label()) for line in figure.axes[0].lines][1:] == ["sgfn", "other"]
    assert save(figure, tmp_path / "calibration.png").stat().st_size > 1000


def test_file_names_are_safe_and_different() -> None:
    names = file_names(["a/b", "a b", "a_b", "Zürich 1"])
    assert names == {
        "a/b": "fan-a_b.png",
        "a b": "fan-a_b-2.png",
        "a_b": "fan-a_b-3.png",
        "Zürich 1": "fan-Zürich_1.png",
    }


def test_page_holds_every_series_and_score(tmp_path: Path) -> None:
    found = outcome()
    text = write_forecast_page(tmp_path / "report.html", "Forecast of two series", "seven days", found).read_text()
    assert "b &lt;&amp;&gt; c" in text
    assert text.count('class="chart wide"') == 2
    assert text.count("backtest: as it was forecast then") == 2
    assert "Every method forecast the same 8 windows of 7 steps" in text
    wql = found.scores["methods"]["sgfn"]["wql"]
    assert f"{wql:.4g}" in text
    best = re.findall(r'class="best"><strong>([^<]*)<', text)
    assert best[0] == f"{min(one['wql'] for one in found.scores['methods'].values()):.4g}"
    assert not re.search(r'(?:src|href)="(?!#|data:)', text)  # nothing is fetched
    worse = replace(found, scores=found.scores | {"methods": {"sgfn": found.scores["methods"]["naive"]}})
    other = write_forecast_page(tmp_path / "other.html", "t", "l", worse).read_text()
    assert f"{wql:.4g}" not in other


@pytest.mark.usefixtures("sketched")
def test_page_tells_of_a_method_that_is_ahead(tmp_path: Path) -> None:
    """Which method, by how much, and what to do; nothing where ours is best, or better by less than is written."""
    found = outcome()
    rows = found.scores["methods"]
    for other, told in ((0.5, "Behind log MSTL in the backtest"), (0.996, ""), (1.5, "")):
        ahead = rows["sgfn"] | {"wql": other * rows["sgfn"]["wql"]}
        scores = found.scores | {"methods": {"sgfn": rows["sgfn"], "log MSTL": ahead}}
        page = write_forecast_page(tmp_path / "page.html", "t", "l", replace(found, scores=scores)).read_text()
        assert ("Behind log MSTL" in page) == bool(told)
        assert told in page
        line = behind_line(scores)
        assert bool(line) == bool(told)
        if line:
            assert "is 50% less; the best of 2 methods on 8 windows is partly luck" in line
            assert line.endswith("--laws log-MSTL forecasts by it alone")
    assert behind_line({"methods": {}}) == ""


@pytest.mark.usefixtures("sketched")
def test_only_the_first_of_many_series_are_drawn(tmp_path: Path) -> None:
    many = outcome(small_panel(tuple(f"s{at}" for at in range(30))))
    text = write_forecast_page(tmp_path / "report.html", "many", "", many).read_text()
    assert text.count('class="chart wide"') == 24
    assert "The first 24 of 30 series" in text
    assert len(many.forecast) == 30 * HORIZON


def test_weekends_of_working_days_are_no_gaps() -> None:
    """A line runs from Friday to Monday, and breaks where values are missing."""
    days = pd.bdate_range("2024-01-01", periods=20)
    seen = pd.DataFrame({"ds": days, "y": np.arange(20.0)})
    assert len(unbroken(seen)) == 1
    seen.loc[8:14, "y"] = np.nan
    assert [len(times) for times, _ in unbroken(seen)] == [8, 5]
    assert unbroken(seen.iloc[:1])[0][1].tolist() == [0.0]


def test_days_are_written_with_their_month() -> None:
    """From June into July: nobody takes the 22nd for one of July."""
    first, last = (float(mdates.date2num(pd.Timestamp(day))) for day in ("2023-06-22", "2023-07-26"))
    figure = new_figure(11.0, 4.2)
    axes = time_panel(figure)
    axes.set_xlim(first, last)
    figure.draw_without_rendering()
    texts = [label.get_text() for label in axes.get_xticklabels()]
    assert texts[0] in ("22 Jun", "25 Jun")
    assert all(text.endswith(("Jun", "Jul")) for text in texts)
    assert axes.xaxis.get_offset_text().get_text() == "2023"


def test_numbered_steps_are_numbers_along_the_axis(tmp_path: Path) -> None:
    """No dates of 1900, neither on the axis nor in the text of a picture."""
    dated, origin = outcome(), pd.Timestamp("2020-01-01")
    numbered = {
        name: getattr(dated, name).assign(
            **{
                column: numbered_stamps(((getattr(dated, name)[column] - origin) // pd.Timedelta("1h")).to_numpy())
                for column in ("ds", "cutoff")
                if column in getattr(dated, name).columns
            }
        )
        for name in ("history", "forecast", "backtest")
    }
    one = replace(dated, **numbered)
    axes = fan_chart(one.names[0], one).axes[0]
    numbers = one.forecast["ds"].map(lambda time: int(places(time)))
    first, last = axes.get_xlim()
    assert places(one.history["ds"]).min() - 9 < first < numbers.max() <= last < numbers.max() + 9
    text = write_forecast_page(tmp_path / "report.html", "steps", "", one).read_text()
    assert not re.search(r"1900-|>\s*1900|Jan 1900", text)
    assert f"step {rows_of(one.forecast, one.names[0])['ds'].map(lambda t: int(places(t))).max():,}" in text
