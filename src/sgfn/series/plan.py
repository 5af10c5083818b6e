"""Plans: the settings of a forecaster, completed from the training data."""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float64

from sgfn.config.series import Reference, Scaling, SeriesConfig
from sgfn.series.calendar import features, season_length, typical_gap
from sgfn.series.holidays import unknown_years
from sgfn.series.panel import Panel

DAY = np.timedelta64(24 * 3600, "s")
YEAR = 365 * DAY + DAY // 4
PERIODS = {"day": DAY, "weekday": 7 * DAY}
"""Period of the calendar features, by the first word of their names; all others, holidays too, have a year."""
SHORTEST_CONTEXT, LONGEST_CONTEXT = 16, 512
LONGEST_SEASON = 100_000


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """Layout and scaling of a forecaster's windows, fixed by the training panel and applied to every later panel."""

    horizon: int
    context: int
    season: int
    cycles: int
    lags: tuple[int, ...]
    reference: Reference
    scaling: Scaling
    holidays: str
    irregular: bool
    gap: np.timedelta64
    """The time step, or the median gap of irregular stamps."""
    known_names: tuple[str, ...]
    past_names: tuple[str, ...]
    calendar_names: tuple[str, ...]
    known_moments: Float64[np.ndarray, "2 C"]
    past_moments: Float64[np.ndarray, "2 P"]
    absolute: bool
    scale_moments: Float64[np.ndarray, "2 2"] = field(default_factory=lambda: np.array([[0.0, 0.0], [1.0, 1.0]]))
    """Mean and deviation, over training windows, of the level and of the logarithm of the unit."""
    spread: float = 1.0
    """Mean absolute value of scaled training targets; units are multiplied by it, so that it becomes one."""

    @staticmethod
    def of(panel: Panel, config: SeriesConfig) -> "Plan":
        """Plan for a training panel, without the choices of `windows.plan_for`: reference, scaling and spread."""
        longest = max(panel.series, key=len)
        gap = typical_gap(longest.stamps, panel.step)
        season = config.season or (1 if panel.step is None else _season(gap))
        return Plan(
            horizon=config.steps_ahead,
            context=config.context or _context(config.steps_ahead, season),
            season=season,
            cycles=config.cycles,
            lags=_yearly(panel, config, gap, season) if config.given_lags is None else config.given_lags,
            reference=config.reference,
            scaling=config.scaling,
            holidays=config.holidays,
            irregular=panel.step is None,
            gap=gap,
            known_names=panel.known_names,
            past_names=panel.past_names,
            calendar_names=_covered(panel, config, gap) if config.calendar else (),
            known_moments=moments([series.known for series in panel.series]),
            past_moments=moments([series.past for series in panel.series]),
            absolute=config.absolute,
        )

    @property
    def history(self) -> int:
        """Number of values before the cut from which reference and unit are computed."""
        return self.season * self.cycles if self.season > 1 else self.context

    @property
    def features(self) -> int:
        """Width F of a row, without the value before it."""
        advance = len(self.known_names) + len(self.calendar_names)
        return advance + 2 * len(self.past_names) + 2 * len(self.lags) + 1 + 2 * self.irregular + 2 * self.absolute

    def clock(self, stamps: np.ndarray) -> Float64[np.ndarray, " N"]:
        """Times since the first stamp, in steps."""
        return (stamps - stamps[0]) / self.gap

    def known_scaled(self, rows: Float64[np.ndarray, "N C"]) -> Float64[np.ndarray, "N C"]:
        """Covariates known in advance, scaled to mean 0 and deviation 1 over the training panel."""
        return (rows - self.known_moments[0]) / self.known_moments[1]

    def past_scaled(self, rows: Float64[np.ndarray, "N P"]) -> Float64[np.ndarray, "N P"]:
        """Past-only covariates, scaled to mean 0 and deviation 1 over the training panel."""
        return (rows - self.past_moments[0]) / self.past_moments[1]


def _covered(panel: Panel, config: SeriesConfig, gap: np.timedelta64) -> tuple[str, ...]:
    """Calendar features whose period the data covers at least twice.

    Of a shorter record, the feature tells the position in the record and nothing that holds for the next period.
    Holidays are features of steps of a day or less.
    """
    country = None if config.holidays == "none" or gap > DAY else config.holidays
    names = features(panel.series[0].stamps[:1], gap, country)[1]
    return tuple(name for name in names if _span(panel) >= 2 * PERIODS.get(name.partition("_")[0], YEAR))


def _span(panel: Panel) -> np.timedelta64:
    return max(series.stamps[-1] - series.stamps[0] for series in panel.series)


def unread(panel: Panel, config: SeriesConfig) -> tuple[str, ...]:
    """Warnings about settings that have no effect on a training panel, one line each."""
    if config.holidays == "none":
        return ()
    longest = max(panel.series, key=len)
    if not config.calendar:
        return (f"holidays {config.holidays} are not read: the calendar is left out (--no-calendar)",)
    if typical_gap(longest.stamps, panel.step) > DAY:
        return (f"holidays {config.holidays} are not read: steps are longer than a day",)
    if (years := _span(panel) / YEAR) < 2:
        return (f"holidays {config.holidays} are not read: there are {years:.1f} years to learn from, 2 are needed",)
    ends = np.concatenate([series.stamps[[0, -1]] for series in panel.series]).astype("datetime64[Y]")
    first, last = (int(end.astype(np.int64)) + 1970 for end in (ends.min(), ends.max()))
    return tuple(filter(None, [unknown_years(config.holidays, first, last + 1)]))


def check_like(plan: Plan, panel: Panel) -> None:
    """Raise where a panel has another time step than the one the plan was made for."""
    longest = max(panel.series, key=len)
    gap = typical_gap(longest.stamps, panel.step)
    if plan.irregular or (panel.step is not None and gap == plan.gap):
        return
    has = "irregular stamps" if panel.step is None else f"steps of {in_words(gap)}"
    raise ValueError(
        f"the forecaster was fitted to steps of {in_words(plan.gap)}, this data has {has}: "
        "give data with the same step, missing values left empty, or fit another forecaster"
    )


def in_words(gap: np.timedelta64) -> str:
    """A time step as text.

    >>> [in_words(np.timedelta64(*gap)) for gap in [(1, "h"), (90, "m"), (7, "D"), (2, "s")]]
    ['1 hour', '1.5 hours', '7 days', '2 seconds']
    """
    units = {"day": DAY, "hour": DAY // 24, "minute": DAY // 1440, "second": DAY // 86_400}
    name = next((name for name, size in units.items() if gap >= size), "second")
    count = f"{gap / units[name]:.4g}"
    return f"{count} {name}{'' if count == '1' else 's'}"


def _season(gap: np.timedelta64) -> int:
    """Steps of the season that one expects; none where a day has more of them than a season may."""
    found = season_length(gap)
    return found if found <= LONGEST_SEASON else 1


def _context(horizon: int, season: int) -> int:
    """Default length of the context: two horizons or seasons, whichever is longer, within limits."""
    return min(max(SHORTEST_CONTEXT, 2 * horizon, min(2 * season, 64)), max(LONGEST_CONTEXT, horizon))


def _yearly(panel: Panel, config: SeriesConfig, gap: np.timedelta64, season: int) -> tuple[int, ...]:
    """Default lags: whole seasons near one and two years back, with their neighbours where a year has many seasons."""
    longest = max(len(series) for series in panel.series)
    year = round(YEAR / gap / season) * season
    if panel.step is None or year < 2:
        return ()
    around = (-season, 0, season) if year >= 8 * season else (0,)
    lags = [years * year + shift for years in (1, 2) if longest >= (years + 1) * year for shift in around]
    return tuple(lag for lag in lags if lag >= config.steps_ahead)


def moments(parts: list[Float64[np.ndarray, "_ C"]]) -> Float64[np.ndarray, "2 C"]:
    """Mean and deviation of each column over its observed entries; 0 and 1 where there are none, or all are equal."""
    rows = np.concatenate(parts)
    seen = ~np.isnan(rows)
    count = np.maximum(seen.sum(0), 1)
    mean = np.where(seen, rows, 0.0).sum(0) / count
    deviation = np.sqrt((np.where(seen, rows - mean, 0.0) ** 2).sum(0) / count)
    return np.stack([mean, np.where(deviation > 0, deviation, 1.0)])
