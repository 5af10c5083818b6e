"""Forecasts of all laws on the development half, kept in files, so that weights and spreads can be chosen in seconds.

For each data set, whole and shortened to three quarters and a half (as it was known earlier), the forecaster is fitted
once; what its laws say of the held-out windows and of the test windows is kept, with what came. `cases` reads them.

    python -m benchmarks.forecast_breadth.replay            # fit what is not kept yet; small data sets first
"""

import argparse
import time
import warnings
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int64

from benchmarks.forecast_breadth.methods import places
from benchmarks.forecast_breadth.panel import DataSet, halves, load, provenance, test_windows
from sgfn.config.series import LAWS
from sgfn.series.data import cuts_of
from sgfn.series.following import Held
from sgfn.series.forecaster import Forecaster
from sgfn.series.panel import NO_STAMPS
from sgfn.series.stack import group_of
from sgfn.series.stacked import StackedForecaster
from sgfn.series.supports import REAL, Support
from sgfn.series.weights import Evidence
from sgfn.series.window_times import window_times

KEPT = Path(__file__).parent.parent / ".trained" / "replay"
"""Folder of the files; not committed."""
SHORTENED = {"whole": 1.0, "earlier": 0.75, "half": 0.5}
"""Share of each series that is read."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Windows:
    """Windows that were forecast by all laws."""

    evidence: Evidence
    series: list[str]
    groups: list[str]
    starts: Int64[np.ndarray, " N"]
    """Time before each window, in nanoseconds."""
    over: Int64[np.ndarray, " N"]
    """Time of the last value of each window."""

    def held(self, span: float) -> Held:
        """These windows with their ends in horizons, of a given time."""
        return Held(evidence=self.evidence, series=self.series, groups=self.groups, ended=self.over / span)


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """One data set: held-out windows of its training part, and test windows."""

    name: str
    names: tuple[str, ...]
    """Names of the laws."""
    held: Windows
    test: Windows
    supports: list[Support]
    """Of each test window."""


def shortened(data: DataSet, share: float) -> DataSet:
    """A data set of which the first part of each series is read."""
    if share == 1.0:
        return data
    series = []
    for one in data.panel.series:
        first = one.until(round(share * len(one)))
        series.append(replace(first, future=NO_STAMPS, known=first.known[: len(first)]))
    panel = replace(data.panel, series=tuple(series))
    return replace(data, panel=panel, origins=test_windows(panel, data.horizon))


def kept_windows(stacked: StackedForecaster, cuts: Sequence[tuple[int, int]], ends: Sequence[int]) -> dict[str, Any]:
    """What all laws say of windows, as arrays."""
    panel, bank, horizon = stacked.data.panel, stacked.bank(stacked.data.panel), stacked.data.plan.horizon
    evidence = stacked.evidence(cuts, ends)
    starts, over = window_times(panel, cuts, horizon, ends)
    return {
        "quantiles": evidence.quantiles,
        "truth": evidence.truth,
        "scale": evidence.scale,
        "series": np.array([panel.series[number].name for number, _ in cuts]),
        "groups": np.array([group_of(bank, *cut) for cut in cuts]),
        "starts": starts,
        "over": over,
    }


def keep(name: str, part: str) -> float:
    """Fit a data set and keep what its laws say; returns CPU seconds."""
    began = time.process_time()
    data = shortened(load(name), SHORTENED[part])
    spares = ",".join(map(str, data.spare))
    stacked = Forecaster(horizon=data.horizon, spares=spares).fit(data.panel).stacked
    tested = [(number, cut) for number, cut in cuts_of(data.panel, places(data)).tolist()]
    held = kept_windows(stacked, stacked.cuts(final=False), stacked.lengths)
    test = kept_windows(stacked, tested, [len(one) for one in stacked.data.panel.series])
    supports = [stacked.bank(stacked.data.panel).supports[number] for number, _ in tested]
    KEPT.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(
        KEPT / f"{name}-{part}.npz",
        names=np.array(stacked.names),
        bounds=np.array([(one.low, one.high, one.whole) for one in supports]),
        **{f"held_{key}": value for key, value in held.items()},
        **{f"test_{key}": value for key, value in test.items()},
    )
    return time.process_time() - began


def read_case(path: Path, without: Collection[str] = ()) -> Case:
    """A case from its file, without some laws."""
    kept = np.load(path)
    laws = [at for at, name in enumerate(kept["names"].tolist()) if name in LAWS and name not in without]

    supports = [Support(low=low, high=high, whole=bool(whole)) for low, high, whole in kept["bounds"].tolist()]
    by_series = dict(zip(kept["test_series"].tolist(), supports, strict=True))

    def windows(kind: str) -> Windows:
        return Windows(
            evidence=Evidence(
                quantiles=kept[f"{kind}_quantiles"][laws],
                truth=kept[f"{kind}_truth"],
                scale=kept[f"{kind}_scale"],
                supports=tuple(by_series.get(name, REAL) for name in kept[f"{kind}_series"].tolist()),
            ),
            series=kept[f"{kind}_series"].tolist(),
            groups=kept[f"{kind}_groups"].tolist(),
            starts=kept[f"{kind}_starts"],
            over=kept[f"{kind}_over"],
        )

    names = tuple(kept["names"][laws].tolist())
    return Case(name=path.stem, names=names, held=windows("held"), test=windows("test"), supports=supports)


def cases(parts: Collection[str] = ("whole", "earlier")) -> Iterator[Case]:
    """All cases of some parts that are kept."""
    yield from (read_case(path) for path in sorted(KEPT.glob("*.npz")) if path.stem.rsplit("-", 1)[1] in parts)


def main() -> None:
    """Keep what is not kept yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", help="data sets of the development half; all by default")
    parser.add_argument("--part", choices=SHORTENED, help="one of the parts; all by default")
    parser.add_argument("--again", action="store_true")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    names = sorted(chosen.data or halves()["development"], key=lambda one: provenance()[one]["rows"])
    for name in names:
        for part in [chosen.part] if chosen.part else SHORTENED:
            if chosen.again or not (KEPT / f"{name}-{part}.npz").is_file():
                try:
                    print(name, part, round(keep(name, part), 1), flush=True)
                except ValueError as error:  # a series may be too short once it is shortened
                    print(name, part, error, flush=True)


if __name__ == "__main__":
    main()
