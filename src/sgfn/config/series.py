"""Settings of the `series` task: which data, how windows are cut and scaled, and what the forecaster's law is."""

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from sgfn.config.checks import in_range, nearest, one_of, require
from sgfn.config.extras import optional

Dataset = Literal["births", "weather", "glucose"]
Reference = Literal["auto", "best", "season", "trend", "level", "last", "none"]
Scaling = Literal["auto", "deviation", "size", "none"]
LONGEST_LAG = 10**7
Measurement = Literal["none", "known", "learned"]
Effort = Literal["quick", "default", "best"]
LAWS = (
    *("seasonal naive", "AutoETS", "AutoTheta", "log AutoTheta", "AutoARIMA", "log AutoARIMA", "MSTL", "log MSTL"),
    *("CrostonSBA", "ADIDA", "empirical", "seasonal counts", "Theta"),
    "regression",
    *("pretrained", "log pretrained"),
    "network",
)
"""Laws that a forecast may consist of; all but the last three are classical, and regression reads covariates."""
SUPPORTS = ("auto", "real", "nonnegative", "count", "unit")


@dataclass(frozen=True, kw_only=True)
class SeriesConfig:
    """The `series` task: forecasts of one series or many, regular or not."""

    dataset: Dataset = "births"
    """Embedded data, where no file is given."""
    file: Path | None = None
    """Table (CSV, TSV, Parquet or Excel) in the long format: unique_id, ds, y, and covariates."""
    time_col: str = "ds"
    """Column of the time stamps."""
    target_col: str = "y"
    """Column of what is forecast; several with commas between them are series of their own."""
    id_col: str = "unique_id"
    """Column that names the series; may be absent where there is one. Several with commas between them name it
    together."""
    known: str = ""
    """Covariates known in advance, by column, with commas between them."""
    ignore: str = ""
    """Columns that are no covariates."""
    freq: str = ""
    """Step of the stamps (30min, h, D, B, W, M, Q, Y), to which they are put; empty finds it from the stamps."""
    horizon: int | None = None
    """H: steps forecast. Unless given, it follows the step (48 of hours, 30 of days, 13 of weeks, 12 of months, 8 of
    quarters, 6 of years), and is a fifth of the series at most."""
    context: int = 0
    """L: values read before the forecast begins; 0 chooses two horizons or seasons, whichever is longer."""
    season: int = 0
    """Steps of a season; 0 is what the step suggests (7 of days, 24 of hours), 1 is none."""
    calendar: bool = True
    """Whether weekday, time of day and time of year are read."""
    holidays: str = "none"
    """Public holidays that are read, with the days around them: a country's code, such as US, DE or JP."""
    lags: str = "auto"
    """Older values read beside each step, by how many steps they lie back (`364,371`); `auto` takes those around one
    and two years where the data is long enough, `none` takes none. None may be shorter than the horizon."""
    reference: Reference = "auto"
    """What is taken off before binning: the `season`'s medians, these along a damped `trend`, the window's `level`, its
    `last` value, or nothing (`none`); `best` takes the one of the first four that leaves least of the training windows,
    `auto` passes over the trend."""
    cycles: int = 8
    """Seasons before the window of which reference and scale are made (all of the context where there is no season)."""
    scaling: Scaling = "auto"
    """What a window is divided by: its mean absolute `deviation` from the reference, the mean `size` of its values, or
    the same for all (`none`); `auto` takes the one of the first two under which training windows differ least."""
    absolute: bool = True
    """Whether the level and the unit of a window are read, beside its scaled values."""
    bins: int = 64
    """K: bins of the scaled value, at quantiles of the training windows."""
    smooth: float = 0.0
    """Width, in bins, of the reward for near misses that smooths the targets; 0 is none."""
    noise: Measurement = "none"
    """Measurement error: `none`, `known`, or `learned` (the widest one that the likelihood admits)."""
    deviation: float = 0.0
    """Standard deviation of the measurement error in units of the data; where it is learned, where learning begins."""
    laws: str = "auto"
    """Laws that the forecast consists of: `auto` takes all that fit the data, `classical` leaves the network out,
    `network` is the network alone; or names with commas between them (AutoETS,network)."""
    effort: Effort = "default"
    """How much is spent: `quick` has no network and no AutoARIMA, `best` a network as large as the data deserves."""
    support: str = "auto"
    """Where values can lie: `auto` looks at the data; real, nonnegative, count, unit (0 to 1), or LO:HI."""
    dropout: float = 0.2
    """Share of each block's output that training leaves out."""
    hide: float = 0.0
    """Share of the values that training hides, as if they were missing."""
    members: int = 3
    """Networks whose laws are averaged."""
    folds: int = 8
    """Parts of the time, in blocks, of which each member holds one out, to keep the weights that forecast it best; 0
    holds nothing out and keeps the last weights."""
    check: int = 25
    """Steps between looks at what is held out."""
    patience: int = 4
    """Looks without a better one before a member goes back to its best weights at a lower rate; the third time, it
    rests."""
    average: float = 0.98
    """Weights are judged and kept as a running mean, which keeps this share at each step; 0 is no mean."""
    recall: float = 8.0
    """Horizons over which the forecaster remembers how far it was off, to widen or narrow its law; 0 leaves the law as
    it was learned."""
    refresh: float | None = None
    """Share of the steps, at the end, in which the network learns from the windows that the weights of a pool were
    learned on, too, and holds nothing out; 0 never does. Unless given, .2 where the network is part of a pool."""
    spare: int = 0
    """Steps at the end of each series that are kept from training, for a backtest."""
    spares: str = ""
    """The same where series differ, in their order (`60,48`); empty is `spare` for all."""

    def __post_init__(self) -> None:
        one_of("series.dataset", self.dataset, get_args(Dataset))
        if self.holidays != "none":
            check_country("series.holidays", self.holidays)
        one_of("series.reference", self.reference, get_args(Reference))
        one_of("series.scaling", self.scaling, get_args(Scaling))
        one_of("series.noise", self.noise, get_args(Measurement))
        if self.freq:
            fits = re.fullmatch(r"[1-9]?\d*(min|h|H|D|B|W|M|MS|ME|Q|QS|QE|A|Y|YS|YE)", self.freq)
            require(fits is not None, "series.freq", "be one of 30min, h, D, B, W, M, Q or Y", self.freq)
        one_of("series.effort", self.effort, get_args(Effort))
        for name in () if self.laws in ("auto", "classical") else self.law_names:
            one_of("series.laws", name, LAWS)
        if self.support != "auto":
            parse_support(self.support)
        if self.horizon is not None:
            in_range("series.horizon", self.horizon, 1, 4096)
        in_range("series.context", self.context, 0, 16384)
        in_range("series.season", self.season, 0, 100_000)
        in_range("series.cycles", self.cycles, 1, 1000)
        in_range("series.bins", self.bins, 2, 4096)
        in_range("series.smooth", self.smooth, 0.0, 1e3)
        in_range("series.deviation", self.deviation, 0.0)
        in_range("series.dropout", self.dropout, 0.0, 1.0, open_high=True)
        in_range("series.hide", self.hide, 0.0, 1.0, open_high=True)
        in_range("series.members", self.members, 1, 256)
        in_range("series.folds", self.folds, 0, 1000)
        require(self.folds != 1, "series.folds", "be 0 or 2 or more: one fold would hold out everything", self.folds)
        in_range("series.check", self.check, 1, 10**9)
        in_range("series.patience", self.patience, 1, 10**9)
        in_range("series.average", self.average, 0.0, 1.0, open_high=True)
        in_range("series.recall", self.recall, 0.0, 1e6)
        in_range("series.refresh", self.refresh or 0.0, 0.0, 1.0, open_high=True)
        in_range("series.spare", self.spare, 0, 10**9)
        if self.spares:
            whole = all(word.strip().isdecimal() and len(word.strip()) < 10 for word in self.spares.split(","))
            require(whole, "series.spares", "be whole numbers with commas between them, like 60,48", self.spares)
        self._check_lags()
        if self.noise == "known":
            require(self.deviation > 0, "series.deviation", "be above 0 where series.noise is known", self.deviation)

    def _check_lags(self) -> None:
        if self.lags in ("auto", "none"):
            return
        words = self.lags.split(",")
        whole = all(word.strip().isdecimal() for word in words)
        require(whole, "series.lags", "be auto, none or like 364,371", self.lags)
        for lag in map(_whole, words):
            require(lag <= LONGEST_LAG, "series.lags", f"be at most {LONGEST_LAG:,}", lag)
            known = self.horizon is None or lag >= self.horizon
            require(known, "series.lags", f"be the horizon ({self.horizon}) or more, to be known", lag)

    def check_reach(self, longest: int) -> None:
        """Raise where a setting asks for more steps than the longest series has: nothing could be learned of it."""
        if longest < self.steps_ahead + 2:
            fix = "take a shorter horizon" if self.steps_ahead > 1 and longest > 2 else "give more values"
            needed = f"a horizon of {self.steps_ahead} needs {self.steps_ahead + 2} or more; {fix}"
            raise ValueError(f"no window to learn from: the longest series has {longest} steps, {needed}")
        has = f"the {longest:,} steps of the longest series"
        require(self.season < longest, "series.season", f"be below {has} (1 is none)", self.season)
        require(self.context <= longest, "series.context", f"be at most {has}", self.context)
        for lag in self.given_lags or ():
            require(lag < longest, "series.lags", f"be below {has}", lag)

    @property
    def steps_ahead(self) -> int:
        """The horizon, after it was given or chosen."""
        if self.horizon is None:
            raise ValueError("series.horizon is not chosen yet: `with_horizon` chooses it for a panel")
        return self.horizon

    @property
    def given_lags(self) -> tuple[int, ...] | None:
        """The lags as numbers; None where they are chosen from the data."""
        if self.lags in ("auto", "none"):
            return None if self.lags == "auto" else ()
        return tuple(map(int, self.lags.split(",")))

    def kept(self, series: int) -> tuple[int, ...]:
        """Steps kept from training at the end of each of so many series."""
        if not self.spares:
            return (self.spare,) * series
        found = tuple(map(int, self.spares.split(",")))
        require(len(found) == series, "series.spares", f"hold a number for each of {series} series", self.spares)
        return found

    @property
    def law_names(self) -> tuple[str, ...]:
        """Names of the laws that the forecast may consist of; a measurement error is known to the network alone."""
        if self.noise != "none" and self.laws == "auto":
            return ("network",)
        if self.laws in ("auto", "classical"):
            absent = {"pretrained", "log pretrained", "network"} if self.laws == "classical" else set[str]()
            absent |= {"AutoARIMA", "log AutoARIMA"} if self.effort == "quick" else set[str]()
            return tuple(name for name in LAWS if name not in absent)
        return tuple(name.replace("-", " ") for name in _names(self.laws))

    @property
    def known_columns(self) -> tuple[str, ...]:
        """Names of the covariates known in advance."""
        return _names(self.known)

    @property
    def ignored_columns(self) -> tuple[str, ...]:
        """Names of the columns that are no covariates."""
        return _names(self.ignore)


def _whole(word: str) -> int:
    """A whole number; one of more digits than anybody needs becomes a large one."""
    return int(word) if len(word.strip()) < 18 else 10**18


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def parse_support(text: str) -> tuple[float, float, bool]:
    """Least value, greatest value and whether values are whole numbers, of a named support or LO:HI.

    >>> parse_support("unit"), parse_support("-1:inf")
    ((0.0, 1.0, False), (-1.0, inf, False))
    """
    named = {
        "real": (-math.inf, math.inf, False),
        "nonnegative": (0.0, math.inf, False),
        "count": (0.0, math.inf, True),
        "unit": (0.0, 1.0, False),
    }
    if text in named:
        return named[text]
    low, colon, high = text.partition(":")
    try:
        ends = float(low), float(high)
    except ValueError:
        ends = math.nan, math.nan
    what = f"be one of {', '.join(SUPPORTS)}, or LO:HI with LO below HI such as 0:100"
    require(bool(colon) and ends[0] < ends[1], "series.support", what, text)
    return (*ends, False)


# Holidays


def holiday_package(name: str) -> Any:
    """The package that knows the holidays of all countries; `name` is the field that asks for it."""
    return optional("holidays", name)


def check_country(name: str, code: str) -> None:
    """Raise unless the package knows a country's code, and suggest the nearest code, or that of the nearest name."""
    package = holiday_package(name)
    if code in package.list_supported_countries():
        return
    codes = {word.upper(): entry[1] for entry in package.registry.COUNTRIES.values() for word in entry}
    near = nearest(code.strip(), codes)
    hint = f"; did you mean {codes[near]!r}?" if near else ""
    raise ValueError(f"{name} {code!r} is unknown: write none, or a country's code such as US, DE or JP{hint}")
