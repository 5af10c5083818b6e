"""Classical forecasts of a panel's windows, each computed once and shared by the stack and the backtest."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from jaxtyping import Float64

from sgfn.series.breaks import Break, level_break
from sgfn.series.calendar import never_on_weekends, typical_gap
from sgfn.series.classical import REGRESSION, History, filled, forecasts, is_intermittent, left_out
from sgfn.series.outliers import moved, with_moved
from sgfn.series.panel import Panel
from sgfn.series.quantile_laws import GRID
from sgfn.series.seasons import candidates, seasons_of
from sgfn.series.supports import Support

Cut = tuple[int, int]
"""A window: the number of its series, and how many values come before it."""
WindowProgress = Callable[[str, int, int], None]
"""Called with a law's name, windows done, and windows in all."""
ASKED = 40
"""Most series whose seasons decide what the others have."""
AGREED = 0.5
"""Share of the series that must show a season for all to have it."""
WORKING_DAYS = 5
LONGEST_SUGGESTED = 24
"""Longest season by which a series is decomposed though it does not show it."""
MANY_SERIES = 500
"""Series above which models are searched among fewer forms."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LawCall:
    """One law of one series at its origins, in increasing order: all that `forecasts` reads."""

    name: str
    values: Float64[np.ndarray, " T"]
    cuts: list[int]
    horizon: int
    seasons: list[tuple[int, ...]]
    whole: bool
    of_many: bool
    suggested: int = 1
    moved: list[dict[int, float]] = field(default_factory=list)
    """At each origin, places of values that are not read as they are, and what is read instead; none given is none."""
    known: Float64[np.ndarray, "M C"] | None = None
    """Covariates known in advance, in rows of the values and of steps after them, for the law that reads them."""

    def run(self) -> Float64[np.ndarray, "C H Q"]:
        """Quantiles at the levels of the grid, for each origin."""
        how: dict[str, Any] = {"whole": self.whole, "of_many": self.of_many, "suggested": self.suggested}
        return forecasts(
            self.name, self.values, self.cuts, self.horizon, self.seasons, moved=self.moved, known=self.known, **how
        )


LawRunner = Callable[[list[LawCall], Callable[[int], None]], list[Float64[np.ndarray, "C H Q"]]]
"""Computes laws of series, each from its call alone; is told a function to call with the number of windows done."""


def run_here(calls: list[LawCall], tell: Callable[[int], None]) -> list[Float64[np.ndarray, "C H Q"]]:
    """Compute laws in this process, one after the other."""
    found = []
    for call in calls:
        found.append(call.run())
        tell(len(call.cuts))
    return found


class Bank:
    """Classical forecasts of windows of a panel; nothing after a window's cut is read for it."""

    def __init__(
        self,
        panel: Panel,
        horizon: int,
        supports: Sequence[Support],
        season: int = 0,
        runner: LawRunner = run_here,
    ) -> None:
        self.panel, self.horizon, self.supports, self.given = panel, horizon, supports, season
        self.runner = runner
        self.kept: dict[tuple[str, Cut], Float64[np.ndarray, "H Q"]] = {}
        self.found_seasons: dict[Cut, tuple[int, ...]] = {}
        self.found_moved: dict[Cut, dict[int, float]] = {}
        self.found_breaks: dict[Cut, Break | None] = {}
        longest = max(panel.series, key=len)
        self.gap = typical_gap(longest.stamps, panel.step)
        self.among: tuple[int, ...] | None = None
        if panel.step is None:
            working = len(longest) > 1 and never_on_weekends(longest.stamps, np.diff(longest.stamps))
            self.among = (WORKING_DAYS,) if working else ()

    def quantiles(
        self,
        name: str,
        cuts: Sequence[Cut],
        progress: WindowProgress | None = None,
        seasons: tuple[int, ...] | None = None,
    ) -> Float64[np.ndarray, "N H Q"]:
        """Quantiles of a law at the levels of the grid, for each window; nan where the law does not fit.

        `seasons` are those that most series have; without them they are found from these windows.
        """
        wanted = self._wanted(name, cuts)
        shared = self.shared_seasons(cuts) if seasons is None else seasons
        done = len(cuts) - sum(map(len, wanted.values()))
        calls = [self._call(name, number, places, shared) for number, places in wanted.items()]

        def tell(windows: int) -> None:
            nonlocal done
            done += windows
            if progress:
                progress(name, done, len(cuts))

        for (number, places), found in zip(wanted.items(), self.runner(calls, tell), strict=True):
            self.kept |= {(name, (number, cut)): found[at] for at, cut in enumerate(places)}
        return np.stack([self.kept[name, cut] for cut in cuts]) if cuts else np.empty((0, self.horizon, len(GRID)))

    def forget(self, cuts: Sequence[Cut]) -> None:
        """Keep nothing of what laws said of some windows, nor of the seasons before them."""
        gone = set(cuts)
        self.kept = {key: law for key, law in self.kept.items() if key[1] not in gone}
        for cut in gone:
            self.found_seasons.pop(cut, None)

    def _call(self, name: str, number: int, places: list[int], shared: tuple[int, ...]) -> LawCall:
        """A law of a series at some cuts; what stands apart may be what covariates explain, where they are read."""
        reads = name == REGRESSION
        return LawCall(
            name=name,
            values=self.panel.series[number].values,
            cuts=places,
            horizon=self.horizon,
            seasons=[self.seasons(number, cut, shared) for cut in places],
            whole=self.supports[number].whole,
            of_many=len(self.panel) > MANY_SERIES,
            suggested=self.suggested,
            moved=[] if reads else [self.read_as(number, cut) for cut in places],
            known=self.panel.series[number].known if reads else None,
        )

    def _wanted(self, name: str, cuts: Sequence[Cut]) -> dict[int, list[int]]:
        """Cuts that are not kept yet, by series, in increasing order."""
        found: dict[int, set[int]] = {}
        for number, cut in cuts:
            if (name, (number, cut)) not in self.kept:
                found.setdefault(number, set()).add(cut)
        return {number: sorted(places) for number, places in found.items()}

    def history(self, cut: Cut, shared: tuple[int, ...] = ()) -> History:
        """What the laws know of a window."""
        one = self.panel.series[cut[0]]
        values = with_moved(one.values[: cut[1]], self.read_as(*cut))
        return History(
            values=filled(values),
            seasons=self.seasons(*cut, shared),
            whole=self.supports[cut[0]].whole,
            suggested=self.suggested,
            observed=one.values[: cut[1]],
            known=one.known[: cut[1] + self.horizon],
        )

    @property
    def periods(self) -> tuple[int, ...]:
        """Seasons that are given, or that the step of time suggests."""
        return (self.given,) if self.given else candidates(self.gap) if self.among is None else self.among

    @property
    def suggested(self) -> int:
        """The shortest of them that is no longer than two dozen steps; 1 where there is none."""
        return next((steps for steps in self.periods if 1 < steps <= LONGEST_SUGGESTED), 1)

    def moved(self, number: int, cut: int) -> dict[int, float]:
        """Values before a cut that stand apart from all others, by their places, and what laws read instead.

        Intermittent series have none: their values are zero mostly, and apart from that where they are not.
        """
        if (number, cut) not in self.found_moved:
            before = self.panel.series[number].values[:cut]
            values = filled(before)
            places = {} if is_intermittent(values) else moved(values, self.periods)
            self.found_moved[number, cut] = {at: read for at, read in places.items() if not np.isnan(before[at])}
        return self.found_moved[number, cut]

    def level_break(self, number: int, cut: int) -> Break | None:
        """The break of level before a cut, of values without those that stand apart; intermittent series have none."""
        if (number, cut) not in self.found_breaks:
            values = filled(self.panel.series[number].values[:cut])
            moved = with_moved(values, self.moved(number, cut))
            self.found_breaks[number, cut] = None if is_intermittent(values) else level_break(moved, self.periods)
        return self.found_breaks[number, cut]

    def read_as(self, number: int, cut: int) -> dict[int, float]:
        """Values before a cut that are not read as they are, and what is read instead.

        Those that stand apart are read as if nearer, those before a break of level as if after it.
        """
        apart, found = self.moved(number, cut), self.level_break(number, cut)
        if found is None:
            return apart
        values = with_moved(self.panel.series[number].values[:cut], apart)
        return apart | found.aligned(values, whole=self.supports[number].whole)

    def as_read(self, cuts: Sequence[Cut]) -> Panel:
        """A panel with a series for each window, named by its place, with its values as they are read."""
        found = []
        for at, (number, cut) in enumerate(cuts):
            one = self.panel.series[number]
            found.append(replace(one, name=str(at), values=with_moved(one.values, self.read_as(number, cut))))
        return replace(self.panel, series=tuple(found))

    def seasons(self, number: int, cut: int, shared: tuple[int, ...] = ()) -> tuple[int, ...]:
        """Seasons of a series before a cut: its own, and those that most series of the panel have."""
        if (number, cut) not in self.found_seasons:
            values = with_moved(self.panel.series[number].values[:cut], self.read_as(number, cut))
            self.found_seasons[number, cut] = seasons_of(values, self.gap, self.given, self.among)
        own = self.found_seasons[number, cut]
        return tuple(sorted({*own, *(steps for steps in shared if 2 * steps <= cut)}))

    def shared_seasons(self, cuts: Sequence[Cut]) -> tuple[int, ...]:
        """Seasons that half of the series or more show, before the first of the given windows of each."""
        first: dict[int, int] = {}
        for number, cut in cuts:
            first[number] = min(cut, first.get(number, cut))
        some = list(first.items())[:: max(1, len(first) // ASKED)]
        if len(some) < 2:
            return ()
        counts = Counter(steps for one in some for steps in self.seasons(*one))
        return tuple(sorted(steps for steps, count in counts.items() if count >= AGREED * len(some)))

    def why_not(self, name: str, cuts: Sequence[Cut]) -> str:
        """Why a law fits none of some windows; empty where it fits one."""
        shared = self.shared_seasons(cuts)
        reasons = [
            left_out(name, self.history(cut, shared), self.horizon) for cut in cuts[:: max(1, len(cuts) // ASKED)]
        ]
        return "" if not reasons or "" in reasons else Counter(reasons).most_common(1)[0][0]

    def scale(self, cut: Cut) -> float:
        """Mean change over the main season before a window: the size of errors that are easy to reach."""
        history = self.history(cut)
        values, steps = history.values, history.season
        change = float(np.abs(values[steps:] - values[:-steps]).mean()) if len(values) > steps else 0.0
        size = float(np.abs(values).mean())
        return max(change, 1e-3 * size, 1e-12)
