"""Inputs that people have: columns found, ways to write time, words, several targets, constants, mixed steps, tails."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sgfn.series.calendar import features, following, numbers_of, season_length
from sgfn.series.categories import aligned
from sgfn.series.frames import Columns, Reading, read_panel


def read(text: str, tmp_path: Path, **columns: object) -> Reading:
    file = tmp_path / "data.csv"
    file.write_text(text, encoding="utf-8")
    return read_panel(file, Columns(**columns))  # pyright: ignore[reportArgumentType]


# Columns


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("month,passengers\n1949-01,112\n1949-02,118\n", "times in 'month'; values in 'passengers'"),
        ("Date,Value\n2020-01-01,1\n2020-01-02,2\n", "times in 'Date'; values in 'Value'"),
        ("when,kg,x\n2020-01-01,1,a\n2020-01-02,2,b\n", "times in 'when'; values in 'kg'"),
        ("rownames,time,value\n1,1956.0,284\n2,1956.25,213\n", "times in 'time'; values in 'value'"),
        ("ds,y,city\n2020-01-01,1,A\n2020-01-01,2,B\n2020-01-02,3,A\n2020-01-02,4,B\n", "names of series in 'city'"),
        ("store,day,sales,price\n1,2020-01-01,1,9\n1,2020-01-02,2,9\n", "'day'; names of series in 'store'; values in"),
        ("y\n1\n2\n", "no column of times, so that rows are steps in their order"),
    ],
)
def test_columns_are_found_and_told(text: str, told: str, tmp_path: Path) -> None:
    reading = read(text, tmp_path)
    assert told in reading.notices[0]
    assert "row" not in reading.panel.past_names


def test_columns_that_were_named_are_not_looked_for(tmp_path: Path) -> None:
    text = "date,other,y\n2020-01-01,2021-01-01,1\n2020-01-02,2021-02-01,2\n"
    reading = read(text, tmp_path, time_col="other", ignore=("date",))
    assert reading.panel.series[0].stamps[0] == np.datetime64("2021-01-01")
    assert reading.notices == ()
    with pytest.raises(ValueError, match="no column 'dat' among date, other, y; did you mean 'date'"):
        read(text, tmp_path, time_col="dat")


def test_customary_names_need_no_notice(tmp_path: Path) -> None:
    assert read("ds,y\n2020-01-01,1\n2020-01-02,2\n", tmp_path).notices == ()


# Times

MONTHS = ["2021-01-01", "2021-02-01", "2021-03-01"]
EPOCH = int(pd.Timestamp("2021-01-01").timestamp())


@pytest.mark.parametrize(
    ("cells", "days"),
    [
        (["1998Q1", "1998Q2", "1998Q3"], ["1998-01-01", "1998-04-01", "1998-07-01"]),
        (["Q1 1998", "Q2 1998", "Q3 1998"], ["1998-01-01", "1998-04-01", "1998-07-01"]),
        (["2021M01", "2021M02", "2021M03"], MONTHS),
        (["2021-01", "2021-02", "2021-03"], MONTHS),
        (["Jan 2021", "Feb 2021", "Mar 2021"], MONTHS),
        (["202101", "202102", "202103"], MONTHS),
        (["2021.0", "2021.0833333", "2021.166667"], MONTHS),
        (["2021-W01", "2021-W02", "2021-W03"], ["2021-01-04", "2021-01-11", "2021-01-18"]),
        ([str(EPOCH + 86_400 * day) for day in range(3)], ["2021-01-01", "2021-01-02", "2021-01-03"]),
        ([f"{EPOCH + 86_400 * day}000" for day in range(3)], ["2021-01-01", "2021-01-02", "2021-01-03"]),
        ([f"{EPOCH + 86_400 * day}000000000" for day in range(3)], ["2021-01-01", "2021-01-02", "2021-01-03"]),
        (["1998", "1999", "2000"], ["1998-01-01", "1999-01-01", "2000-01-01"]),
        (["20210101", "20210102", "20210103"], ["2021-01-01", "2021-01-02", "2021-01-03"]),
    ],
)
def test_ways_to_write_time(cells: list[str], days: list[str], tmp_path: Path) -> None:
    text = "ds,y\n" + "".join(f"{cell},{value}\n" for value, cell in enumerate(cells))
    panel = read(text, tmp_path).panel
    assert panel.series[0].stamps.astype("datetime64[D]").astype(str).tolist() == days
    assert panel.step is not None


@pytest.mark.parametrize(
    "cells",
    [
        ["04.01.2021", "05.01.2021", "31.01.2021"],
        ["04/01/2021", "05/01/2021", "31/01/2021"],
        ["04-01-2021 00:00", "05-01-2021 00:00", "31-01-2021 00:00"],
        ["04-Jan-2021", "05-Jan-2021", "31-Jan-2021"],
        ["04-JAN-2021", "05-JAN-2021", "31-JAN-2021"],
        ["4 January 2021", "5 January 2021", "31 January 2021"],
        ["Jan 4 2021", "Jan 5 2021", "Jan 31 2021"],
    ],
)
@pytest.mark.parametrize("name", ["Datum", "Zeit", "when", "ds"])
def test_dates_of_other_countries(cells: list[str], name: str, tmp_path: Path) -> None:
    reading = read(f"{name},kg\n" + "".join(f"{cell},{at}\n" for at, cell in enumerate(cells)), tmp_path)
    stamps = reading.panel.series[0].stamps.astype("datetime64[D]").astype(str).tolist()
    assert [stamps[0], stamps[1], stamps[-1]] == ["2021-01-04", "2021-01-05", "2021-01-31"]


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        (
            ["04.01.2021", "05.01.2021"],
            "'04.01.2021' may be 4 January 2021 (day.month.year) or 1 April 2021 (month.day.year)",
        ),
        (
            ["04-01-2021", "05-01-2021"],
            "'04-01-2021' may be 4 January 2021 (day-month-year) or 1 April 2021 (month-day-year)",
        ),
        (
            ["04.01.21", "31.02.21", "31.01.21"],
            "line 3, column 'when': '31.02.21' is not a time stamp, though it looks like a date",
        ),
        (
            ["04.01.2021", "31.02.2021", "31.01.2021"],
            "line 3, column 'when': '31.02.2021' is not a time stamp, though it looks like a date",
        ),
        (["04-Jan-2021", "soon", "06-Jan-2021"], "line 3, column 'when': 'soon' is not a time stamp"),
    ],
)
def test_dates_that_are_not_plain_are_told_of(cells: list[str], told: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        read("when,kg\n" + "".join(f"{cell},{at}\n" for at, cell in enumerate(cells)), tmp_path)
    assert told in str(caught.value)
    assert "ignore" not in str(caught.value)


def test_numbers_of_steps_have_no_calendar(tmp_path: Path) -> None:
    reading = read("ds,y\n3,1\n4,2\n7,3\n8,5\n9,4\n", tmp_path)
    series, step = reading.panel.series[0], reading.panel.step
    assert step is not None
    assert "numbers of steps" in reading.notices[0]
    found = numbers_of(series.stamps)
    assert found is not None
    assert found.tolist() == [3, 4, 5, 6, 7, 8, 9]  # and two steps have no row
    assert np.isnan(series.values[2:4]).all()
    assert season_length(step) == 1
    assert features(series.stamps, step)[1] == ()
    ahead = numbers_of(following(series.stamps, step, 2))
    assert ahead is not None
    assert ahead.tolist() == [10, 11]
    assert numbers_of(pd.date_range("1900-01-01", periods=3).to_numpy()) is None  # days are no numbers


def test_rows_without_times_are_steps_of_each_series(tmp_path: Path) -> None:
    panel = read("unique_id,y\na,1\nb,5\na,2\nb,6\n", tmp_path).panel
    for series in panel.series:
        numbers = numbers_of(series.stamps)
        assert numbers is not None
        assert numbers.tolist() == [0, 1]
    assert panel["b"].values.tolist() == [5.0, 6.0]


# Steps


def test_a_named_step_gathers_stamps(tmp_path: Path) -> None:
    text = "ds,y\n2020-01-03,1\n2020-02-01,2\n2020-04-28,4\n"
    panel = read(text, tmp_path, freq="M").panel
    assert panel.step == np.timedelta64(1, "M")
    np.testing.assert_array_equal(panel.series[0].values, [1.0, 2.0, np.nan, 4.0])
    assert read(text, tmp_path).panel.step == np.timedelta64(29, "D")
    with pytest.raises(ValueError, match="line 3, column 'ds': 2020-02-01 of series 'y' lies in one step of --freq"):
        read(text, tmp_path, freq="Q")
    with pytest.raises(ValueError, match="freq 'M' needs times, here are numbers of steps; leave --freq"):
        read("ds,y\n1,1\n2,2\n", tmp_path, freq="M")
    with pytest.raises(ValueError, match="freq 'fortnight' is unknown"):
        read(text, tmp_path, freq="fortnight")


def test_different_steps_are_refused_by_name(tmp_path: Path) -> None:
    days = "".join(f"day,2020-01-{day:02d},{day}\n" for day in range(1, 29))
    months = "".join(f"month,2020-{month:02d}-15,{month}\n" for month in range(1, 13))
    with pytest.raises(ValueError, match="series 'day' has steps of 1 day; series 'month' has steps of 1 month;"):
        read(f"unique_id,ds,y\n{days}{months}", tmp_path)


# Words


def test_words_become_indicators(tmp_path: Path) -> None:
    text = "ds,y,sky,kind\n2020-01-01,1,sun,a\n2020-01-02,2,rain,a\n2020-01-03,3,sun,\n2020-01-04,,rain,b\n"
    reading = read(text, tmp_path, known=("sky",))
    series = reading.panel.series[0]
    assert reading.panel.known_names == ("sky=rain", "sky=sun")
    assert reading.panel.past_names == ("kind=a", "kind=b")
    np.testing.assert_array_equal(series.known, [[0, 1], [1, 0], [0, 1], [1, 0]])
    np.testing.assert_array_equal(series.past, [[1, 0], [1, 0], [np.nan, np.nan]])
    assert "column 'sky': 2 words are read as an indicator each" in reading.notices[0]


def test_few_words_are_read_whatever_they_are(tmp_path: Path) -> None:
    text = "ds,y,note\n" + "".join(f"2020-01-{day:02d},{day},note {day}\n" for day in range(1, 29))
    assert "note=note 1" in read(text, tmp_path).panel.past_names


def test_a_table_of_sequences_is_no_series(tmp_path: Path) -> None:
    sequences = [f"ACG{a}T{b}" for a in "ACGT" for b in "ACGT"]
    for name, words in (("variant", sequences), ("sequence", [f"MKV{word}" for word in sequences])):
        frame = pd.DataFrame({name: words, "score": range(16)})
        with pytest.raises(ValueError, match=rf"column '{name}' holds sequences and .*\(--ignore {name}\)$"):
            read_panel(frame, Columns())
        assert len(read_panel(frame, Columns(ignore=(name,))).panel.series[0].values) == 16
    read_panel(pd.DataFrame({"seq": ["rising", "falling"] * 8, "score": range(16)}), Columns())  # words
    dated = pd.date_range("2024-01-01", periods=16)
    read_panel(pd.DataFrame({"variant": sequences, "ds": dated, "y": range(16)}), Columns())


def test_later_words_are_aligned_with_those_learned(tmp_path: Path) -> None:
    learned = read("ds,y,sky\n2020-01-01,1,sun\n2020-01-02,2,rain\n", tmp_path).panel
    later = read("ds,y,sky\n2020-01-01,1,snow\n2020-01-02,2,rain\n", tmp_path).panel
    found, told = aligned(later, learned.known_names, learned.past_names)
    assert found.past_names == ("sky=rain", "sky=sun")
    np.testing.assert_array_equal(found.series[0].past, [[0, 0], [1, 0]])
    assert told == ("column 'sky': 'snow' were not among what was learned from; they count as none of the known words",)
    other = read("ds,y,wind\n2020-01-01,1,hard\n2020-01-02,2,none\n", tmp_path).panel
    assert aligned(other, learned.known_names, learned.past_names)[0] is other  # refused by who compares the names


# Several targets, constants, tails


def test_several_targets_are_series(tmp_path: Path) -> None:
    text = "ds,a,b,c\n2020-01-01,1,10,5\n2020-01-02,2,20,6\n"
    reading = read(text, tmp_path, target_col="a,b")
    assert [one.name for one in reading.panel.series] == ["a", "b"]
    assert reading.panel["b"].values.tolist() == [10.0, 20.0]
    assert reading.panel.past_names == ("c",)
    assert "targets a, b are series of their own" in reading.notices[0]
    named = read(text.replace("ds,", "unique_id,ds,").replace("2020", "x,2020"), tmp_path, target_col="a,b").panel
    assert [one.name for one in named.series] == ["x a", "x b"]
    with pytest.raises(ValueError, match=r"no column 'z' among ds, a, b, c; choose one or several \(a,b\) with"):
        read(text, tmp_path, target_col="a,z")


def test_months_with_short_years_are_read(tmp_path: Path) -> None:
    """As spreadsheets write months; where the digits may be days they are refused."""
    reading = read("ds,y\nNov-98,1\nDec-98,2\nJan-99,4\n", tmp_path)
    months = reading.panel.series[0].stamps.astype("datetime64[M]")
    assert [str(month) for month in months] == ["1998-11", "1998-12", "1999-01"]
    assert "Nov-98 are read as November 1998" in reading.notices[0]
    with pytest.raises(ValueError, match="'Jan-30' is not a time stamp"):
        read("ds,y\nJan-30,1\nJan-31,2\nFeb-01,4\n", tmp_path)


def test_clocks_of_twelve_hours_are_read(tmp_path: Path) -> None:
    rows = "".join(f"01/31/2024 {hour}:00 {half},{number}\n" for number, (hour, half) in
                   enumerate([(11, "AM"), (12, "PM"), (1, "PM")]))  # fmt: skip
    stamps = read(f"ds,y\n{rows}", tmp_path).panel.series[0].stamps
    assert stamps.astype("datetime64[h]").astype(str).tolist() == ["2024-01-31T11", "2024-01-31T12", "2024-01-31T13"]


@pytest.mark.parametrize(("cell", "fix"), [("50.1%", "50.1"), ("$12.50", "12.50"), ("7 EUR", "7"), ("(3.5)", "-3.5")])
def test_numbers_with_signs_are_told_how_to_be_written(cell: str, fix: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"is not a number alone: write {fix}$"):
        read(f"ds,y\n2020-01-01,{cell}\n2020-01-02,{cell}\n", tmp_path)


def test_none_is_a_word_among_words_and_missing_among_numbers(tmp_path: Path) -> None:
    reading = read("ds,y,promo\n2020-01-01,1,none\n2020-01-02,none,sale\n2020-01-03,2,none\n", tmp_path)
    assert reading.panel.past_names == ("promo=none", "promo=sale")
    np.testing.assert_array_equal(reading.panel.series[0].past, [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    assert np.isnan(reading.panel.series[0].values[1])


def test_constant_series_stay_with_a_notice(tmp_path: Path) -> None:
    reading = read("unique_id,ds,y\na,2020-01-01,3\na,2020-01-02,3\nb,2020-01-01,1\nb,2020-01-02,2\n", tmp_path)
    assert len(reading.panel) == 2
    assert reading.notices[0].endswith("series 'a' is constant; the forecast is the constant")


def test_empty_values_at_the_end_are_the_future(tmp_path: Path) -> None:
    text = "ds,y,x\n2020-01-01,1,0\n2020-01-02,2,0\n2020-01-03,,1\n2020-01-04,,1\n"
    reading = read(text, tmp_path)
    assert len(reading.panel.series[0]) == 2
    assert len(reading.panel.series[0].future) == 2
    assert reading.notices[0].endswith("2 rows of series 'y' without values at the end; they are taken as the future, "
                                       "which is forecast")  # fmt: skip
    assert read(text, tmp_path, known=("x",)).notices == ()  # there it is meant


@given(st.lists(st.integers(0, 10**6), min_size=2, max_size=30, unique=True))
def test_numbers_come_back(numbers: list[int]) -> None:
    """Any whole numbers that are no years, months, days or epochs are numbers of steps, and come back as they were."""
    numbers = [number for number in numbers if number < 1_000] + [5_000, 5_001]
    frame = pd.DataFrame({"ds": numbers, "y": np.arange(len(numbers), dtype=float)})
    frame = frame.drop_duplicates("ds")
    panel = read_panel(frame, Columns()).panel
    found = numbers_of(panel.series[0].stamps)
    assert found is not None
    assert set(frame["ds"]) <= set(found.tolist())


def test_rows_that_are_there_twice_are_read_once_and_told_of() -> None:
    days = pd.date_range("2024-01-01", periods=8).astype(str)
    frame = pd.DataFrame({"date": days, "sold": np.arange(8.0)})
    found = read_panel(pd.concat([frame, frame.iloc[[2, 5]]]), Columns())
    assert found.panel.series[0].values.tolist() == list(range(8))
    assert any("2 rows are there twice, the same in every column" in line for line in found.notices)
    other = frame.iloc[[2]].assign(sold=99.0)
    with pytest.raises(ValueError, match="of series 'sold' is on row 2 already"):
        read_panel(pd.concat([frame, frame.iloc[[2]], other]), Columns())


def test_a_column_of_steps_is_found() -> None:
    found = read_panel(pd.DataFrame({"step": range(9), "reading": np.arange(9.0)}), Columns())
    assert "times in 'step'; values in 'reading'" in found.notices[0]
    numbers = numbers_of(found.panel.series[0].stamps)
    assert numbers is not None
    assert numbers.tolist() == list(range(9))


# Numbers that are not plain


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        (["1", "x", "3"], "line 3, column 'value': 'x' is not a number"),
        (
            ['"12,018"', '"13,500"', '"9,100"'],
            "line 2, column 'value': '12,018' has a thousands separator (12018) or a",
        ),
        (['"1,012,018"', "1", "2"], "line 2, column 'value': '1,012,018' has thousands separators: write 1012018"),
        (['"51,06"', '"7,5"', "3"], "line 2, column 'value': '51,06' has a decimal comma: write 51.06"),
    ],
)
@pytest.mark.parametrize("more", ["", ",temp"])
def test_the_fault_of_the_values_is_told(cells: list[str], told: str, more: str, tmp_path: Path) -> None:
    rows = [f"2020-01-0{day},{cell}{',8' if more else ''}\n" for day, cell in enumerate(cells, start=1)]
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        read(f"date,value{more}\n" + "".join(rows), tmp_path)
    assert told in str(caught.value)
    assert "ignore" not in str(caught.value)
    alone = "".join(rows).replace(",8", "") if more else "".join(rows)
    with pytest.raises(ValueError) as again:  # noqa: PT011
        read("date,kg\n" + alone, tmp_path)
    assert told.replace("value", "kg") in str(again.value)


def test_decimal_commas_between_semicolons_are_read_and_told(tmp_path: Path) -> None:
    text = "Datum;Wert;Preis\n04.01.2021;51,06;1,5\n05.01.2021;1.234,5;2\n13.01.2021;NA;2,25\n14.01.2021;7;3\n"
    reading = read(text, tmp_path, target_col="Wert")
    values = reading.panel.series[0].values
    assert values[~np.isnan(values)].tolist() == [51.06, 1234.5, 7.0]
    assert reading.panel.past_names == ("Preis",)
    assert sum("commas are read as decimal commas" in line for line in reading.notices) == 2
    with pytest.raises(ValueError, match=r"'12,018' has a thousands separator \(12018\) or a decimal comma \(12.018\)"):
        read("Datum;Wert\n2021-01-04;12,018\n2021-01-05;13,500\n", tmp_path)


# What a table of sales, a log and a spreadsheet have


def test_words_known_in_advance_may_be_empty_where_nothing_is_on(tmp_path: Path) -> None:
    text = "ds,y,promo\n2020-01-01,1,\n2020-01-02,2,sale\n2020-01-03,3,\n2020-01-04,,two for one\n"
    reading = read(text, tmp_path, known=("promo",))
    np.testing.assert_array_equal(reading.panel.series[0].known, [[0, 0], [1, 0], [0, 0], [0, 1]])
    assert "2 words are read as an indicator each; where the column is empty, none of them" in reading.notices[0]


def test_a_column_of_notes_is_left_out_with_a_notice(tmp_path: Path) -> None:
    text = "ds,y,note\n" + "".join(f"{1900 + n},{n},words {n}\n" for n in range(60))
    reading = read(text, tmp_path)
    assert reading.panel.past_names == ()
    assert "column 'note': 60 different words, and 50 are read as a covariate at most; it is left out" in str(
        reading.notices
    )
    with pytest.raises(ValueError, match=r"line 2, column 'note': 'words 0' is not a number.*60 different"):
        read(text, tmp_path, known=("note",))


def test_series_without_values_are_left_out_with_a_notice(tmp_path: Path) -> None:
    text = "unique_id,ds,y\na,2020-01-01,3\na,2020-01-02,4\nb,2020-01-01,\nb,2020-01-02,\nc,2020-01-02,1\n"
    reading = read(text, tmp_path)
    assert [one.name for one in reading.panel.series] == ["a"]
    assert reading.notices[0].endswith("series 'b', 'c' have fewer than 2 values; they are left out")
    with pytest.raises(ValueError, match="series 'b' has 0 values, 2 are needed; add some or remove the series"):
        read("unique_id,ds,y\nb,2020-01-01,\nc,2020-01-02,1\n", tmp_path)


STORES = "{a},{b},date,sales\n" + "".join(
    f"{store},{item},2020-01-0{day},{day}\n" for store in (1, 2) for item in ("milk", "tea") for day in (1, 2)
)


@pytest.mark.parametrize(("a", "b"), [("store", "item"), ("store_nbr", "product_id"), ("Store", "SKU_ID")])
def test_two_columns_name_series_together(a: str, b: str, tmp_path: Path) -> None:
    reading = read(STORES.format(a=a, b=b), tmp_path)
    assert [one.name for one in reading.panel.series] == ["1 milk", "1 tea", "2 milk", "2 tea"]
    assert reading.panel.past_names == ()
    assert f"names of series in '{a},{b}'" in reading.notices[0]


def test_columns_that_name_series_together_may_be_named(tmp_path: Path) -> None:
    text = STORES.format(a="where", b="what")
    with pytest.raises(ValueError, match=r"2020-01-01 of series '1' is on line 2 already; .*--id-col where,OTHER"):
        read(text, tmp_path, id_col="where")
    reading = read(text, tmp_path, id_col="what,where")
    assert [one.name for one in reading.panel.series] == ["milk 1", "tea 1", "milk 2", "tea 2"]
    with pytest.raises(ValueError, match=r"no column 'wher' among .* did you mean 'where'. Choose it with --id-col"):
        read(text, tmp_path, id_col="what,wher")
    with pytest.raises(ValueError, match=r"known and id_col both name the column 'what'|id_col and known both name"):
        Columns(id_col="what,where", known=("what",))


@pytest.mark.parametrize("name", ["ts", "event_time", "Unix Timestamp"])
def test_numbers_since_1970_are_times_by_a_word_of_their_name(name: str, tmp_path: Path) -> None:
    rows = "".join(f"{1704067200000 + 3600000 * n},{n % 7}.5\n" for n in range(9))
    reading = read(f"{name},cpu\n{rows}", tmp_path)
    assert reading.panel.series[0].stamps[0] == np.datetime64("2024-01-01")
    assert reading.targets == ("cpu",)
    told = read("time_spent,cpu\n" + "".join(f"{n % 5},{n}\n" for n in range(9)), tmp_path, target_col="cpu").notices
    assert "no column of times" in told[0]  # seconds spent are no times


@pytest.mark.parametrize(("cell", "fix"), [("50.1%", "50.1"), ("$12.50", "12.50")])
def test_numbers_with_signs_are_told_of_without_asking_for_the_column(cell: str, fix: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"column 'share': '.*' is not a number alone: write {fix}$"):
        read(f"date,share\n2020-01-01,{cell}\n2020-01-02,{cell}\n", tmp_path)


@pytest.mark.parametrize(
    ("first", "name"), [("2020-01-01,10", "2020-01-01"), ("01.01.2020;10", "01.01.2020"), ("a,10.5", "10.5")]
)
def test_a_file_without_a_header_is_refused(first: str, name: str, tmp_path: Path) -> None:
    rows = "".join(first.replace("01", f"{day:02d}", 1) + "\n" for day in range(1, 9)) if "2020" in first else ""
    with pytest.raises(ValueError, match=f"line 1: '{name}' is a value, not the name of a column; write a header"):
        read(f"{first}\n{rows or 'a,11.5' + chr(10)}", tmp_path)


def test_columns_may_be_called_by_years(tmp_path: Path) -> None:
    reading = read("ds,2020,2021\n2020-01-01,1,2\n2020-01-02,2,3\n", tmp_path, target_col="2020")
    assert reading.panel.past_names == ("2021",)


def test_the_sheet_that_is_read_is_named_where_there_are_several(tmp_path: Path) -> None:
    frame = pd.DataFrame({"date": pd.date_range("2020-01-01", periods=4), "sold": [1.0, 2.5, 3.0, 4.0]})
    with pd.ExcelWriter(tmp_path / "book.xlsx") as book:
        pd.DataFrame({"note": ["hello"]}).to_excel(book, sheet_name="about", index=False)
        frame.to_excel(book, sheet_name="data", index=False)
    with pytest.raises(ValueError, match=r"book\.xlsx, first sheet 'about': no column 'y' among note"):
        read_panel(tmp_path / "book.xlsx", Columns())
    with pd.ExcelWriter(tmp_path / "book.xlsx") as book:
        frame.to_excel(book, sheet_name="data", index=False)
        pd.DataFrame({"note": ["hello"]}).to_excel(book, sheet_name="about", index=False)
    assert (
        "book.xlsx, first sheet 'data': columns were found" in read_panel(tmp_path / "book.xlsx", Columns()).notices[0]
    )


def test_cells_of_a_frame_are_single_values() -> None:
    frame = pd.DataFrame({"ds": pd.date_range("2020-01-01", periods=3), "y": [1.0, 2.0, 4.0], "tags": [[], ["a"], []]})
    with pytest.raises(ValueError, match="DataFrame, row 0, column 'tags': a cell is a list, not one value; make it"):
        read_panel(frame, Columns())
