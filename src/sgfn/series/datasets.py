"""Embedded data sets: packed CSV files in the long format, with their provenance beside them.

`births`: births in the United States per day, 1969 to 1988 (7,305 days). `weather`: hourly temperature at the three
airports of New York in 2013, with dew point, pressure, rain and wind. `glucose`: one person's glucose about every five
minutes from March to October 2010, with gaps, and the sensor's current.
"""

import gzip
import io
import json
import zlib
from functools import cache
from pathlib import Path

import pandas as pd

from sgfn.config.checks import one_of
from sgfn.landscapes.tfbind8_tables import sha256
from sgfn.series.frames import Columns, read_panel
from sgfn.series.panel import Panel

__all__ = ["DATA", "NAMES", "frame", "load", "provenance"]

NAMES: tuple[str, ...] = ("births", "weather", "glucose")
DATA = Path(__file__).parent / "data"
PROVENANCE = "provenance.json"


@cache
def load(name: str) -> Panel:
    """An embedded data set as a panel.

    >>> births = load("births")
    >>> len(births.series[0]), str(births.step)
    (7305, '86400000000000 nanoseconds')
    """
    return read_panel(frame(name), Columns()).panel


def frame(name: str) -> pd.DataFrame:
    """An embedded data set as a table in the long format: unique_id, ds, y, and past-only covariates."""
    one_of("data set", name, NAMES)
    return pd.read_csv(io.BytesIO(read_checked(name)), parse_dates=["ds"])


def provenance(name: str, folder: Path = DATA) -> dict[str, str]:
    """Source, licence, checksums and changes of a data set."""
    return json.loads((folder / PROVENANCE).read_text(encoding="utf-8"))[name]


def read_checked(name: str, folder: Path = DATA) -> bytes:
    """CSV text of a data set, after its checksum is verified."""
    path = folder / f"{name}.csv.gz"
    try:
        table, expected = gzip.decompress(path.read_bytes()), provenance(name, folder)["csv_sha256"]
    except (OSError, EOFError, ValueError, KeyError, zlib.error) as error:
        raise ValueError(f"{path}: the data set or its checksum cannot be read ({error!r}); reinstall sgfn") from error
    if sha256(table) != expected:
        raise ValueError(f"{path}: checksum mismatch, the file is damaged; reinstall sgfn")
    return table
