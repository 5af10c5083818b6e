"""Dates whose order of day, month and year the column tells, or does not."""

import numpy as np
import pandas as pd
import pytest

from sgfn.series.frames import Columns, read_panel

DAYS, MONTHS = pd.date_range("2024-01-29", periods=40), pd.date_range("2022-11-01", periods=16, freq="MS")


def read(cells: list[str]) -> tuple[list[str], str]:
    """Days of a column, and what is told of it."""
    found = read_panel(pd.DataFrame({"ds": cells, "y": np.arange(float(len(cells)))}), Columns())
    return found.panel.series[0].stamps.astype("datetime64[D]").astype(str).tolist(), " ".join(found.notices)


@pytest.mark.parametrize(
    "form", ["%d/%m/%y", "%m/%d/%y", "%d.%m.%y", "%d-%m-%y", "%y-%m-%d", "%d-%b-%y", "%d/%m/%y %H:%M"]
)
@pytest.mark.parametrize("turned", [False, True])
def test_years_of_two_digits_are_read_where_the_column_tells_the_order(form: str, turned: bool) -> None:
    days = DAYS[::-1] if turned else DAYS
    found, told = read(days.strftime(form).tolist())
    assert found == DAYS.strftime("%Y-%m-%d").tolist()
    assert f"are read as {days[0].day} {days[0]:%B %Y} (" in told


@pytest.mark.parametrize(
    ("form", "readings"),
    [
        ("%d/%m/%y", ("1 February 2024 (day/month/year)", "2 January 2024 (month/day/year)")),
        ("%y-%m-%d", ("1 February 2024 (year-month-day)", "24 February 2001 (day-month-year)")),
        ("%d/%m/%Y", ("1 February 2024 (day/month/year)", "2 January 2024 (month/day/year)")),
    ],
)
def test_where_it_does_not_both_readings_are_named(form: str, readings: tuple[str, str]) -> None:
    cells = pd.date_range("2024-02-01", periods=9).strftime(form).tolist()
    with pytest.raises(ValueError, match=r"write all dates as 2024-01-31$") as caught:
        read(cells)
    assert all(one in str(caught.value) for one in readings)


@pytest.mark.parametrize("form", ["%d/%m/%Y", "%d/%m/%y"])
def test_the_first_of_each_month_is_no_run_of_days_in_january(form: str) -> None:
    """Sixteen months, or the first days of three Januaries: only one leaves no step without a row."""
    found, told = read(MONTHS.strftime(form).tolist())
    assert found == MONTHS.strftime("%Y-%m-%d").tolist()
    assert "(day/month/year)" in told


def test_rows_in_no_order_are_read_by_their_days_alone() -> None:
    mixed = pd.DatetimeIndex(np.random.default_rng(0).permutation(DAYS))
    for form in ("%d/%m/%Y", "%d/%m/%y", "%y-%m-%d"):
        assert read(mixed.strftime(form).tolist())[0] == DAYS.strftime("%Y-%m-%d").tolist()


@pytest.mark.parametrize("form", ["%m/%d/%Y %I:%M %p", "%m/%d/%y %H:%M", "%d/%m/%Y %H:%M"])
def test_hours_of_nine_days_are_no_nine_months(form: str) -> None:
    """Hour after hour in one order, a day of each month in the other."""
    hours = pd.date_range("2023-01-01", periods=200, freq="h")
    assert read(hours.strftime(form).tolist())[0] == hours.strftime("%Y-%m-%d").tolist()


def test_visits_at_any_hour_are_not_plain() -> None:
    """Nine days in a row, or the first of nine months, each with an hour of its own."""
    visits = pd.date_range("2023-01-01", periods=9) + pd.to_timedelta(
        np.random.default_rng(0).integers(480, 1080, 9), "min"
    )
    with pytest.raises(ValueError, match="write all dates as"):
        read(visits.strftime("%m/%d/%Y %H:%M").tolist())


def test_a_date_that_differs_between_orders_is_told() -> None:
    with pytest.raises(ValueError, match=r"row 1, column 'ds': '02/01/2023' may be 2 January 2023 .* or 1 February"):
        read([f"{day:02d}/01/2023" for day in range(1, 9)])
