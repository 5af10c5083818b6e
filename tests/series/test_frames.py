"""The long format: what is read, what is told, and one line for everything that is wrong."""

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from table_kinds import WRITERS, first_row, write_kind

from sgfn.series.frames import Columns, Reading, panel_of, read_panel


def read(text: str, tmp_path: Path, shortest: int = 2, **columns: object) -> Reading:
    file = tmp_path / "data.csv"
    file.write_text(text, encoding="utf-8")
    return read_panel(file, Columns(**columns), shortest)  # pyright: ignore[reportArgumentType]


# What is read


def test_one_series_without_a_name(tmp_path: Path) -> None:
    reading = read("ds,y\n2020-01-01,1\n2020-01-02,2.5\n2020-01-03,\n2020-01-04,4\n", tmp_path)
    (series,) = reading.panel.series
    assert series.name == "y"
    np.testing.assert_array_equal(series.values, [1, 2.5, np.nan, 4])
    assert reading.panel.step == np.timedelta64(1, "D")
    assert reading.notices == ()


def test_series_of_unequal_length_covariates_and_the_future(tmp_path: Path) -> None:
    """Rows after the last value are the future; what is seen only in the past ends with the values."""
    text = (
        "unique_id,ds,y,promo,heat,note\n"
        "b,2020-01-01,1,0,20,x\nb,2020-01-02,2,1,,\nb,2020-01-03,,1,22,\nb,2020-01-04,,0,,\n"
        "a,2020-02-01,5,true,1,\na,2020-02-02,6,False,2,\n"
    )
    panel = read(text, tmp_path, known=("promo",), ignore=("note",)).panel
    assert [series.name for series in panel.series] == ["b", "a"]
    assert (panel.known_names, panel.past_names) == (("promo",), ("heat",))
    b, a = panel.series
    assert (len(b), len(b.future), len(a), len(a.future)) == (2, 2, 2, 0)
    np.testing.assert_array_equal(b.known[:, 0], [0, 1, 1, 0])
    np.testing.assert_array_equal(b.past[:, 0], [20, np.nan])
    np.testing.assert_array_equal(a.known[:, 0], [1, 0])


def test_rows_out_of_order_are_sorted_with_a_notice(tmp_path: Path) -> None:
    reading = read("ds,y\n2020-01-03,3\n2020-01-01,1\n2020-01-02,2\n", tmp_path)
    np.testing.assert_array_equal(reading.panel.series[0].values, [1, 2, 3])
    assert [notice.split(": ")[1] for notice in reading.notices] == [
        "rows are not in the order of time; they were sorted"
    ]


def test_absent_rows_are_missing_values_and_known_covariates_repeat(tmp_path: Path) -> None:
    reading = read("ds,y,k,p\n2020-01-01,1,7,5\n2020-01-02,2,8,6\n2020-01-05,3,9,7\n", tmp_path, known=("k",))
    (series,) = reading.panel.series
    np.testing.assert_array_equal(series.values, [1, 2, np.nan, np.nan, 3])
    np.testing.assert_array_equal(series.known[:, 0], [7, 8, 8, 8, 9])
    np.testing.assert_array_equal(series.past[:, 0], [5, 6, np.nan, np.nan, 7])
    assert "2 steps have no row; their values count as missing" in reading.notices[0]


@pytest.mark.parametrize(
    ("stamps", "step"),
    [
        (["2020-01-31", "2020-02-29", "2020-03-31", "2020-05-31"], np.timedelta64(1, "M")),
        (["2020-01-15", "2020-02-15", "2020-03-15"], np.timedelta64(1, "M")),
        (["2020-01-01", "2020-04-01", "2020-07-01"], np.timedelta64(3, "M")),
        (["1990", "1991", "1992"], np.timedelta64(12, "M")),
        (["2020-01-06", "2020-01-13", "2020-01-20"], np.timedelta64(7, "D")),
        (["2020-01-01 00:00", "2020-01-01 00:05", "2020-01-01 00:15"], np.timedelta64(5, "m")),
        (["2020-01-01 00:00", "2020-01-01 00:05", "2020-01-01 00:07"], None),
        (["2020-01-01T00:00:00Z", "2020-01-01T03:00:00+02:00", "2020-01-01T02:00:00Z"], np.timedelta64(1, "h")),
        (["13/1/2020", "14/1/2020", "15/1/2020"], np.timedelta64(1, "D")),
        (["1/13/2020", "1/14/2020", "1/15/2020"], np.timedelta64(1, "D")),
        (["20200113", "20200114", "20200115"], np.timedelta64(1, "D")),
    ],
)
def test_steps_and_ways_to_write_time(stamps: list[str], step: np.timedelta64 | None, tmp_path: Path) -> None:
    rows = "".join(f"{stamp},{at}\n" for at, stamp in enumerate(stamps))
    panel = read("ds,y\n" + rows, tmp_path).panel
    assert panel.step == step
    assert len(panel.series[0]) == len(stamps) + (len(stamps) == 4) + ("00:15" in stamps[-1])


def test_words_that_come_again_are_a_covariate_where_there_are_no_times(tmp_path: Path) -> None:
    """Months by name, twice each: half as many words as rows, and none names a row."""
    months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    panel = read("mon,y\n" + "".join(f"{mon},{at}\n" for at, mon in enumerate(months * 2)), tmp_path).panel
    assert len(panel.past_names) == len(months)


def test_separators_marks_and_packed_files(tmp_path: Path) -> None:
    semicolon = read("\ufeffds;y\r\n2020-01-01;1\r\n\r\n2020-01-02;NA\r\n2020-01-03;3\r\n", tmp_path).panel
    np.testing.assert_array_equal(semicolon.series[0].values, [1, np.nan, 3])
    frame = pd.DataFrame({"ds": ["2020-01-01", "2020-01-02"], "y": [1, 2]})
    frame.to_csv(tmp_path / "a.csv.gz", index=False)
    frame.to_parquet(tmp_path / "a.parquet")
    for name in ("a.csv.gz", "a.parquet"):
        np.testing.assert_array_equal(panel_of(tmp_path / name).series[0].values, [1, 2])


@pytest.mark.parametrize("kind", sorted(WRITERS))
def test_every_kind_of_file(tmp_path: Path, kind: str) -> None:
    """Times as times, series named by numbers, an empty value, and a covariate that is true or false."""
    days = pd.date_range("2020-01-01", periods=3)
    frame = pd.DataFrame({"unique_id": 7, "ds": days, "y": [1.5, np.nan, 3.0], "open": [True, False, True]})
    panel = panel_of(write_kind(tmp_path, frame, kind))
    np.testing.assert_array_equal(panel["7"].values, [1.5, np.nan, 3.0])
    np.testing.assert_array_equal(panel["7"].stamps, days.to_numpy())
    np.testing.assert_array_equal(panel["7"].past[:, 0], [1, 0, 1])
    wrong = write_kind(tmp_path, frame.assign(y=["many", "1", "2"]), kind)
    with pytest.raises(ValueError, match=rf"{first_row(kind)}, column 'y': 'many' is not a number"):
        panel_of(wrong)
    twice = write_kind(tmp_path, frame.assign(ds=days[0]), kind)
    with pytest.raises(ValueError, match=rf"of series '7' is on {first_row(kind)} already; remove one"):
        panel_of(twice)


def test_frames_with_types_of_their_own() -> None:
    frame = pd.DataFrame(
        {
            "shop": pd.Categorical(["x", "x", "x"]),
            "when": pd.date_range("2020-01-01", periods=3, tz="Europe/Berlin"),
            "sales": pd.array([1, None, 3], dtype="Int64"),
            "open": [True, False, True],
        },
        index=[5, 5, 5],
    )
    with pytest.warns(UserWarning, match="stamps are local time"):
        panel = panel_of(frame, Columns(id_col="shop", time_col="when", target_col="sales"))
    np.testing.assert_array_equal(panel["x"].values, [1, np.nan, 3])
    np.testing.assert_array_equal(panel["x"].past[:, 0], [1, 0, 1])
    assert str(panel["x"].stamps[0])[:16] == "2020-01-01T00:00"
    frame = frame.assign(when=frame["when"].dt.tz_localize(None))
    with pytest.warns(UserWarning, match="rows are not in the order of time"):
        panel_of(frame.iloc[::-1], Columns(id_col="shop", time_col="when", target_col="sales"))


def test_local_days_stay_days_where_clocks_change(tmp_path: Path) -> None:
    """Midnight in New York over the change of clocks: days of 23 and 25 hours are days; hours take universal time."""
    days = pd.date_range("2024-03-08", periods=6, tz="America/New_York")
    for source in (pd.DataFrame({"ds": days, "y": range(6)}), pd.DataFrame({"ds": days.astype(str), "y": range(6)})):
        source.to_csv(tmp_path / "days.csv", index=False)
        for one in (source, tmp_path / "days.csv"):
            reading = read_panel(one, Columns())
            assert reading.panel.step == np.timedelta64(1, "D")
            assert str(reading.panel.series[0].stamps[3])[:16] == "2024-03-11T00:00"
            assert "column 'ds': offsets from universal time are left out" in reading.notices[0]
    hours = pd.date_range("2024-11-03", periods=6, freq="h", tz="America/New_York")  # 01:00 comes twice
    reading = read_panel(pd.DataFrame({"ds": hours, "y": range(6)}), Columns())
    assert reading.panel.step == np.timedelta64(1, "h")
    assert str(reading.panel.series[0].stamps[0])[:16] == "2024-11-03T04:00"
    assert "universal time" in reading.notices[0]
    fixed = pd.DataFrame({"ds": pd.date_range("2024-03-09", periods=60, freq="h", tz="UTC"), "y": range(60)})
    assert read_panel(fixed, Columns()).notices == ()


def test_some_stamps_with_an_offset(tmp_path: Path) -> None:
    text = "ds,y\n2020-01-01T00:00Z,1\n2020-01-02 00:00,2\n"
    with pytest.raises(ValueError, match=r"line 3, column 'ds': '2020-01-02 00:00' has no offset.*'2020-01-01T00:00Z'"):
        read(text, tmp_path)


def test_an_index_is_named(tmp_path: Path) -> None:
    """Times or names in the index: the error says how they become columns; a Parquet file needs nothing."""
    frame = pd.DataFrame({"unique_id": "a", "ds": pd.date_range("2020-01-01", periods=3), "y": [1.0, 2.0, 4.0]})
    with pytest.raises(ValueError, match=r"'ds' is the index, not a column; give data.reset_index\(\)"):
        read_panel(frame.set_index("ds"), Columns())
    with pytest.raises(ValueError, match="'ds' is the index"):
        read_panel(frame.set_index("ds").rename_axis(None), Columns())
    with pytest.raises(ValueError, match="'unique_id' is the index"):
        read_panel(frame.set_index("unique_id"), Columns())
    frame.set_index("ds").to_parquet(tmp_path / "indexed.parquet")
    np.testing.assert_array_equal(panel_of(tmp_path / "indexed.parquet")["a"].values, [1, 2, 4])


def test_a_column_of_names_that_was_asked_for(tmp_path: Path) -> None:
    """Absent, it is no reason to take all rows for one series."""
    text = "stores,ds,y\n1,2020-01-01,3\n1,2020-01-02,4\n"
    with pytest.raises(ValueError, match=r"no column 'store' among stores, ds, y; did you mean 'stores'"):
        read(text, tmp_path, id_col="store")
    assert read(text, tmp_path, id_col="stores").panel.series[0].name == "1"


def test_numbers_as_days_with_one_empty() -> None:
    """A column of 20240131 with an empty cell holds floats: the empty cell is blamed, not the first."""
    frame = pd.DataFrame({"ds": [20240101.0, 20240102.0, np.nan], "y": [1.0, 2.0, 3.0]})
    with pytest.raises(ValueError, match="row 2, column 'ds': the time stamp is empty"):
        read_panel(frame, Columns())
    assert str(read_panel(frame.iloc[:2], Columns()).panel.series[0].stamps[1])[:10] == "2024-01-02"


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"known": ("y",)}, "target_col and known both name the column 'y'"),
        ({"ignore": ("ds",)}, "time_col and ignore both name the column 'ds'"),
        ({"known": ("unique_id",)}, "id_col and known both name"),
        ({"known": ("a", "b"), "ignore": ("b",)}, "ignore and known both name the column 'b'"),
        ({"known": ("a", "a")}, "known and known both name"),
        ({"time_col": "y"}, "target_col and time_col both name"),
    ],
)
def test_a_column_has_one_role(names: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Columns(**names)  # pyright: ignore[reportArgumentType]
    Columns(known=("a", "b"), ignore=("c",))


@given(
    values=st.lists(st.floats(-1e6, 1e6) | st.none(), min_size=3, max_size=30),
    names=st.lists(
        st.text("abc 1", min_size=1, max_size=3).map(str.strip).filter(bool), min_size=1, max_size=3, unique=True
    ),
    seed=st.integers(0, 9),
)
@settings(deadline=None)
def test_a_frame_and_its_shuffle_give_one_panel(values: list[float | None], names: list[str], seed: int) -> None:
    """Rows may come in any order: the panel is the same, series by series."""
    values[0], values[-1] = 1.0, 2.0
    stamps = pd.date_range("2021-03-01", periods=len(values), freq="h")
    parts = [pd.DataFrame({"unique_id": name, "ds": stamps, "y": values}) for name in names]
    frame = pd.concat(parts)
    sorted_panel = read_panel(frame, Columns()).panel
    shuffled = read_panel(frame.sample(frac=1.0, random_state=seed), Columns()).panel
    assert {one.name for one in shuffled.series} == set(names)
    for one in sorted_panel.series:
        np.testing.assert_array_equal(one.values, np.array(values, dtype=float))
        np.testing.assert_array_equal(one.values, shuffled[one.name].values)
        np.testing.assert_array_equal(one.stamps, shuffled[one.name].stamps)


# What is wrong


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "data.csv: the file is empty"),
        ("\n\n", "data.csv: the file is empty"),
        ("ds,y\n", "data.csv: a header and no rows; add one row for each observed value"),
        (
            "ds,amount,sold\n2020-01-01,1,2\n",
            "no column 'y' among ds, amount, sold; choose one or several \\(a,b\\) with --target-col",
        ),
        ("ds,value,sales\n2020-01-01,1,2\n", "no column 'y' among ds, value, sales; did you mean 'value'. Choose it"),
        ("ds,y\n2020-01-01,1\n2020-13-02,2\n", "line 3, column 'ds': '2020-13-02' is not a time stamp"),
        ("ds,y\n1998Q1,1\n1998Q5,2\n", "line 2, column 'ds': '1998Q1' is not a time stamp; write 2024-01-31"),
        ("ds,y\n1998M01,1\n1998M13,2\n", "line 2, column 'ds': '1998M01' is not a time stamp"),
        ("ds,y\n,1\n2020-01-02,2\n", "line 2, column 'ds': the time stamp is empty"),
        (
            "ds,y\n1/2/2020,1\n2/2/2020,2\n",
            r"line 2, column 'ds': '1/2/2020' may be 1 February 2020 \(day/month/year\) or 2 January 2020",
        ),
        (
            "ds,y\n2020-01-01,1\n2020-01-01,2\n",
            "line 3, column 'ds': 2020-01-01 of series 'y' is on line 2 already; name",
        ),
        ("unique_id,ds,y\na,2020-01-01,1\na,2020-01-01,2\n", "of series 'a' is on line 2 already; remove one"),
        (
            "ds,y\n2023-10-29 01:00,1\n2023-10-29 02:00,2\n2023-10-29 02:00,3\n",
            "is on line 3 already; name .*; where clocks went back, write offsets .* or universal time",
        ),
        (
            "sequence,score\n" + "".join(f"{a}{b}GT,0.{i}\n" for i, (a, b) in enumerate(product("ACGT", "ACGT"))),
            "column 'sequence': 16 of 16 rows have words of their own here, and no column has times: a table of seq",
        ),
        (
            "unique_id,ds,y\na,2020-01-01,1\n,2020-01-01,2\n",
            "line 3, column 'unique_id': the name of the series is empty",
        ),
        ("ds,y\n2020-01-01,1\n\n2020-01-02,many\n", "line 4, column 'y': 'many' is not a number"),
        ('ds,y\n2020-01-01,1\n2020-01-02,"2,5"\n', "line 3, column 'y': '2,5' has a decimal comma: write 2.5"),
        ("ds,y\n2020-01-01,inf\n2020-01-02,2\n", "line 2, column 'y': inf is not finite"),
        ("ds,y\n2020-01-01,1e40\n2020-01-02,2\n", "line 2, column 'y': 1e40 is too large; write a number within"),
        (
            "ds,y,x\n2020-01-01,1,Easter\n2020-01-02,2,7\n",
            "line 2, column 'x': 'Easter' is not a number.*--ignore x",
        ),
        ("ds,y\n2020-01-01,3\n2020-01-02,\n", "series 'y' has 1 value, 2 are needed"),
        ("ds,y\n2020-01-01,\n2020-01-02,\n", "series 'y' has 0 values, 2 are needed"),
        ("item_id,ds,y\na1,2020-01-01,3\n7,2020-01-02,3\n", r"'a1' is not a number.*by it \(--id-col item_id\)"),
        (
            "store,ds,y\n1,2020-01-01,3\n2,2020-01-01,3\n",
            "is on line 2 already; name each series in a column 'unique_id', or choose 'store' with --id-col",
        ),
        ("ds,y,y\n2020-01-01,1,2\n", "line 1, column 'y': 2 columns have this name; rename all but one"),
        ("ds,y\n2020-01-01,1,2\n", "line 2: 3 fields where the header has 2"),
        ('ds,y\n2020-01-01,1\n"2020-01-01,2\n', "line 3: not valid CSV"),
    ],
)
def test_wrong_tables_get_one_line(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        read(text, tmp_path)
    assert "\n" not in str(caught.value)
    assert "data.csv" in str(caught.value)


def test_wrong_known_columns(tmp_path: Path) -> None:
    text = "ds,y,promo\n2020-01-01,1,0\n2020-01-02,2,\n"
    with pytest.raises(ValueError, match="line 3, column 'promo': empty, yet it is known in advance"):
        read(text, tmp_path, known=("promo",))
    with pytest.raises(
        ValueError, match=r"no column 'prom' among ds, y, promo; did you mean 'promo'. Choose it with --known"
    ):
        read(text, tmp_path, known=("prom",))


def test_wrong_files(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"absent\.csv: no such file"):
        panel_of(tmp_path / "absent.csv")
    with pytest.raises(ValueError, match=r"absent\.parquet: no such file"):
        panel_of(tmp_path / "absent.parquet")
    with pytest.raises(ValueError, match="a folder, not a file"):
        panel_of(tmp_path)
    for name in ("not.parquet", "not.csv.gz"):
        (tmp_path / name).write_text("ds,y\n")
        with pytest.raises(ValueError, match=f"{name}: (not a readable|cannot be read)"):
            panel_of(tmp_path / name)
    (tmp_path / "latin.csv").write_bytes("ds,y,ä\n".encode("latin-1"))
    with pytest.raises(ValueError, match=r"latin\.csv, line 1: byte 0xe4 is not UTF-8"):
        panel_of(tmp_path / "latin.csv")
    frame = pd.DataFrame({"ds": ["2020-01-01", "x"], "y": [1, 2]})
    with pytest.raises(ValueError, match="DataFrame, row 1, column 'ds': 'x' is not a time stamp"):
        panel_of(frame)
