"""Data sets of the forecasting panel as they are committed: panels, test windows, and the two halves."""

import gzip
import hashlib
import io
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, get_args

import pandas as pd

from benchmarks.forecast_breadth.fresh import FRESH
from benchmarks.forecast_breadth.recipes import RECIPES, SEASONS, Recipe
from sgfn.config.files import read_json
from sgfn.landscapes.tfbind8_tables import sha256
from sgfn.series.frames import Columns, read_panel
from sgfn.series.panel import Panel
from sgfn.series.protocol import Origin, rolling_origins

DATA = Path(__file__).parent.parent / "data" / "breadth"
PROVENANCE = DATA / "provenance.json"
Half = Literal["development", "validation", "fresh"]
PARTS: tuple[Half, ...] = get_args(Half)
HALVES = PARTS[:2]
"""The two halves of the panel; the third part was drawn later, by the rule of `fresh`."""
EVERY = RECIPES | FRESH
MOST_WINDOWS = 6
"""Most test windows of one series."""
MOST_TESTED = 60
"""Most test windows of a data set, as long as each series has one."""
MANY_SERIES = 30
MANY_ROWS = 3_000
LEFT = 3
"""A series keeps at least this many times its horizon before its first test window."""


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """One data set of the panel."""

    name: str
    recipe: Recipe
    panel: Panel
    origins: tuple[Origin, ...]
    """Test windows, side by side at the end of each series; those of one series lie together, oldest first."""

    @property
    def horizon(self) -> int:
        """Steps ahead."""
        return self.recipe.horizon

    @property
    def seasons(self) -> tuple[int, ...]:
        """Seasons in steps, the one of seasonal naive first."""
        return SEASONS[self.recipe.freq]

    @property
    def spare(self) -> tuple[int, ...]:
        """Steps at the end of each series that are kept from training."""
        found = {series.name: 0 for series in self.panel.series}
        for one in self.origins:
            found[one.series.name] = max(found[one.series.name], len(one.series) - one.cut)
        return tuple(found.values())


def halves() -> dict[Half, list[str]]:
    """Names of the two halves: of like size, frequency and kind, in the order of a hash, every second one.

    The turn goes on from group to group, so that the halves have the same number of data sets. The fresh part has its
    own rule.
    """
    order = sorted(RECIPES, key=lambda name: (*_group(name), hashlib.sha256(name.encode()).hexdigest()))
    found: dict[Half, list[str]] = {half: [] for half in HALVES}
    for turn, name in enumerate(order):
        found[HALVES[turn % 2]].append(name)
    found["fresh"] = list(FRESH)
    return {half: sorted(names) for half, names in found.items()}


def _group(name: str) -> tuple[int, int, str, str]:
    """Like data sets: in number of series (1, some, 30 or more), in rows (over 3,000 or not), frequency, and kind."""
    series, rows = provenance()[name]["series"], provenance()[name]["rows"]
    return (series > 1) + (series >= MANY_SERIES), int(rows > MANY_ROWS), RECIPES[name].freq, RECIPES[name].kind


@cache
def provenance() -> dict[str, Any]:
    """Where every data set came from, with checksums."""
    return read_json(PROVENANCE)["data"]


def read_checked(name: str) -> bytes:
    """A committed data set as CSV, after its checksum was compared."""
    rows = gzip.decompress((DATA / f"{name}.csv.gz").read_bytes())
    if sha256(rows) != provenance()[name]["csv_sha256"]:
        raise ValueError(f"{DATA / name}.csv.gz: the checksum differs from {PROVENANCE.name}; get the file anew")
    return rows


def load(name: str) -> DataSet:
    """A data set with its test windows."""
    recipe = EVERY[name]
    frame = pd.read_csv(io.BytesIO(read_checked(name)), dtype={"unique_id": str}, parse_dates=["ds"])
    panel = read_panel(frame, Columns()).panel
    return DataSet(name=name, recipe=recipe, panel=panel, origins=test_windows(panel, recipe.horizon))


def test_windows(panel: Panel, horizon: int) -> tuple[Origin, ...]:
    """The last windows of each series that leave it enough to learn from, fewer where there are many series."""
    count = max(1, min(MOST_WINDOWS, MOST_TESTED // len(panel)))
    found: list[Origin] = []
    for _, some in groupby(rolling_origins(panel, horizon, count), key=lambda one: one.series.name):
        windows = list(some)
        found += [one for one in windows if one.cut >= LEFT * horizon] or windows[-1:]
    return tuple(found)
