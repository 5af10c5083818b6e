"""Classical forecast laws of one series at several origins, each by its name, as quantiles at the levels of a grid.

Models come from statsforecast. A model is fitted at the first origin and again when the history has grown by a tenth;
in between its parameters are kept and only its state is brought up to the origin, from values before it alone. Without
statsforecast, seasonal naive and a Theta method of our own are left, and the pretrained network, which stands here
because it is computed as they are.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from importlib import import_module
from typing import Any

import numpy as np
from jaxtyping import Float64

from sgfn.series.baselines import quantile_name, seasonal_naive
from sgfn.series.breaks import level_break
from sgfn.series.count_laws import FEWEST, as_counts, count_quantiles, counted, dispersion, seasonal_counts
from sgfn.series.decomposition import KeptSeasons
from sgfn.series.outliers import moved, with_moved
from sgfn.series.own_theta import own_theta
from sgfn.series.pretrained import HORIZON as LONGEST_HORIZON
from sgfn.series.pretrained import pretrained_quantiles
from sgfn.series.quantile_laws import GRID, ordered
from sgfn.series.regression import LONGEST_SEASON as LONGEST_PHASES
from sgfn.series.regression import Effects, effects_of
from sgfn.series.seasons import shows
from sgfn.series.shown import CONTEXT, LONGEST_SEASON
from sgfn.series.shown import CYCLES as LEAST_CYCLES

Values = Float64[np.ndarray, " T"]
Grid = Float64[np.ndarray, "H Q"]
Law = Callable[["History", int], Grid]

INTERVALS = sorted({round(abs(200 * level - 100), 6) for level in GRID} - {0.0})
REFIT, REFIT_LONG = 1.1, 1.25
"""Growth of the history after which a model is fitted again; that of a long history, of which it reads the end."""
QUICK_VALUES = {**dict.fromkeys(("AutoTheta", "log AutoTheta", "MSTL", "log MSTL"), 600), "AutoETS": 300}
"""Models that are fitted again at each origin of histories of up to so many values: in milliseconds, and in a tenth of
a second, of seasons of up to `QUICK_SEASON` steps and unless the series is one of very many, for AutoETS."""
QUICK_SEASON = 12
LONG = 1_000
"""Values from which on a history is long."""
LONGEST_ETS_SEASON, LONGEST_ARIMA_SEASON = 24, 24
"""Longest seasons of exponential smoothing and ARIMA, whose states have a value for each step of a season."""
READ = {
    **{"AutoETS": 600, "AutoTheta": 600, "log AutoTheta": 600, "AutoARIMA": 400, "log AutoARIMA": 400},
    **{"MSTL": 1_500, "log MSTL": 1_500},
}
"""Values, from the end, to which each model is fitted; at least `CYCLES` seasons of those that it reads."""
CYCLES = 4
LOG = "log "
"""Beginning of the name of a law that is fitted to logarithms."""
SHORTEST = 8
"""Least number of values to which a model is fitted."""
INTERMITTENT = 0.3
"""Share of zeros from which on a series is intermittent."""
SEASONAL_COUNTS, PRETRAINED, REGRESSION = "seasonal counts", "pretrained", "regression"
FEWEST_REGRESSED = 12
"""Least number of observed values from which effects of covariates are learned."""
NO_COVARIATES = "no covariate is known in advance"
SMALL_COUNTS = 20.0
"""Mean up to which counts are small: laws that are normal suit larger ones."""
COUNTED = ("CrostonSBA", "ADIDA", "empirical", SEASONAL_COUNTS)
"""Laws that are laws of counts already, where values are counts."""
REMEMBERED = 100
"""Values, from the end, that the empirical law counts."""
MOST_VALUES = 2_000
"""Values above which the pretrained network, which reads the end of a history, is left out: the others know more."""
NOT_POSITIVE = "values are not all above zero"
BEYOND = 3.0
"""How far quantiles may lie outside the range of the history, in widths of that range."""
HIGH = 0.9
"""Share of the highest value from which on the last one is near it."""
FAILURES = (ValueError, ArithmeticError, LookupError, RuntimeError, TypeError, AssertionError, np.linalg.LinAlgError)
"""Errors of a model's fit after which seasonal naive stands in for it."""
NEEDS = (
    "statsforecast is absent: of the classical laws only seasonal naive and Theta are left, beside the networks; "
    "install it with `pip install 'sgfn[forecast]'`"
)


@dataclass(frozen=True, kw_only=True, eq=False)
class History:
    """What is known of a series at an origin: its values, and its seasons, shortest first."""

    values: Values
    """Observed values, gaps filled by straight lines, and by the last value at the end."""
    seasons: tuple[int, ...]
    """Seasons, shortest first; empty where there is none."""
    whole: bool = False
    """Whether values are counts."""
    of_many: bool = False
    """Whether the series is one of very many: models are then searched among fewer forms."""
    suggested: int = 1
    """Season that the step of time suggests, whether it shows or not; 1 where there is none."""
    observed: Values | None = None
    """Values as they are, nan where missing, where a law reads covariates."""
    known: Float64[np.ndarray, "M C"] | None = None
    """Covariates known in advance, of the history and of the steps ahead, where a law reads them."""

    @property
    def season(self) -> int:
        """The season over which values change least; 1 where there is none."""
        return min(self.seasons, key=lambda steps: self._change(steps), default=1)

    def _change(self, steps: int) -> float:
        if len(self.values) <= steps:
            return np.inf
        return float(np.abs(self.values[steps:] - self.values[:-steps]).mean())

    @property
    def decomposed(self) -> tuple[int, ...]:
        """Seasons by which MSTL decomposes: those that show, else the one that the step suggests."""
        return self.seasons or ((self.suggested,) if self.suggested > 1 else ())

    @property
    def small_counts(self) -> bool:
        """Whether values are counts, few at a time."""
        return self.whole and float(self.values.mean()) <= SMALL_COUNTS

    @property
    def intermittent(self) -> bool:
        """Whether values are never negative and often zero."""
        return is_intermittent(self.values)


def is_intermittent(values: Values) -> bool:
    """Whether values are never negative and often zero."""
    return bool(values.min() >= 0 and (values == 0).mean() >= INTERMITTENT)


def filled(values: Values) -> Values:
    """Values with gaps bridged by straight lines; at the ends the nearest value is repeated.

    >>> filled(np.array([np.nan, 1.0, np.nan, 3.0, np.nan])).tolist()
    [1.0, 1.0, 2.0, 3.0, 3.0]
    """
    seen = np.flatnonzero(~np.isnan(values))
    if len(seen) == 0:
        raise ValueError("a classical law needs at least one observed value before the window")
    return np.interp(np.arange(len(values)), seen, values[seen])


# Which laws fit a history


@lru_cache(1)
def has_statsforecast() -> bool:
    """Whether statsforecast can be imported."""
    try:
        import_module("statsforecast.models")
    except ImportError:
        return False
    return True


def left_out(name: str, history: History, horizon: int = 1) -> str:
    """Why a law is not used for a history and so many steps ahead; empty where it is."""
    seasons = {"MSTL": history.decomposed, "log MSTL": history.seasons}.get(name)
    cycle = history.season if history.seasons else history.suggested
    short = len(history.values) < max(SHORTEST, 2 * cycle + 2 if seasons else 0)
    if name == "seasonal naive":
        return ""
    if name == "Theta":
        return "statsforecast has AutoTheta" if has_statsforecast() else ""
    if name in ("CrostonSBA", "ADIDA", "empirical") and not history.intermittent:
        return "the series is not intermittent"
    if name == SEASONAL_COUNTS:
        return "values are no small counts with a season" if not history.small_counts or not history.seasons else ""
    if name.removeprefix(LOG) == PRETRAINED:
        return pretrained_left_out(history, horizon, log=name.startswith(LOG))
    if name != "empirical" and not has_statsforecast():
        return "statsforecast is not installed"
    if name == REGRESSION:
        return regression_left_out(history, horizon)
    if short:
        return "the history is too short"
    if seasons == ():
        return "there is no season"
    if name.startswith(LOG) and history.values.min() <= 0:
        return NOT_POSITIVE
    limits = {"AutoETS": LONGEST_ETS_SEASON, "AutoARIMA": LONGEST_ARIMA_SEASON}
    if history.season > limits.get(name.removeprefix(LOG), history.season):
        return f"a season of {history.season} steps is too long for it"
    return ""


def pretrained_left_out(history: History, horizon: int, *, log: bool = False) -> str:
    """Why the pretrained network does not forecast a history, or its logarithms; empty where it does."""
    if len(history.values) < SHORTEST:
        return "the history is too short"
    if len(history.values) > MOST_VALUES:
        return f"it reads {CONTEXT} values, too few of a history of more than {MOST_VALUES:,}"
    if history.intermittent:
        return "the series is intermittent"
    if horizon > LONGEST_HORIZON:
        return f"it forecasts {LONGEST_HORIZON} steps at most"
    if history.seasons and min(history.seasons) > LONGEST_SEASON:
        return f"a season of {min(history.seasons)} steps is too long for it"
    return NOT_POSITIVE if log and history.values.min() <= 0 else ""


def regression_left_out(history: History, horizon: int) -> str:
    """Why no effects of covariates are learned from a history; empty where they are."""
    if history.known is None or history.observed is None or not history.known.shape[1]:
        return NO_COVARIATES
    seen = ~np.isnan(history.observed)
    if len(history.known) < len(seen) + horizon:
        return "covariates do not reach the horizon"
    if seen.sum() < FEWEST_REGRESSED:
        return "the history is too short"
    return "" if np.ptp(history.known[: len(seen)][seen], axis=0).any() else "no covariate has changed yet"


# Laws


def forecasts(
    name: str,
    values: Values,
    cuts: Sequence[int],
    horizon: int,
    seasons: Sequence[tuple[int, ...]],
    *,
    whole: bool = False,
    of_many: bool = False,
    suggested: int = 1,
    moved: Sequence[dict[int, float]] = (),
    known: Float64[np.ndarray, "M K"] | None = None,
) -> Float64[np.ndarray, "C H Q"]:
    """Quantiles at the levels of the grid, at several origins in increasing order; nan where the law does not fit.

    Each origin has its own seasons: a young series may not show yet what it shows later. Values that stand apart are
    read as `moved` has them, also by origin. Of covariates `known` in advance, rows up to the horizon are read.
    """
    found, histories = np.full((len(cuts), horizon, len(GRID)), np.nan), dict[int, History]()
    for at, (cut, here) in enumerate(zip(cuts, seasons, strict=True)):
        before = with_moved(values[:cut], moved[at] if moved else {})
        history = History(values=filled(before), seasons=here, whole=whole, of_many=of_many, suggested=suggested)
        if known is not None:
            history = replace(history, observed=values[:cut], known=known[: cut + horizon])
        if not left_out(name, history, horizon):
            histories[at] = history
    at_once = {PRETRAINED: pretrained_laws, LOG + PRETRAINED: log_pretrained_laws, REGRESSION: regression_laws}
    laws = at_once.get(name, partial(refitted_laws, name))
    for (at, history), quantiles in zip(histories.items(), laws(list(histories.values()), horizon), strict=True):
        found[at] = sane(quantiles, history, horizon, above=room_above(name, history.values))
        if whole and name not in COUNTED:
            found[at] = as_counts(found[at], history.values)
    return found


def refitted_laws(name: str, histories: Sequence[History], horizon: int) -> list[Grid]:
    """Quantiles of a law at the origins of one series, whose model is fitted again as it grows; one for each season."""
    fits = dict[tuple[int, ...], Refitted]()
    return [fits.setdefault(one.seasons, Refitted(name))(one, horizon) for one in histories]


def logarithmic(law: Law) -> Law:
    """A law of the logarithm, as a law of the values themselves: seasons and errors then grow with the level."""

    def found(history: History, horizon: int) -> Grid:
        return exponential(law(replace(history, values=np.log(history.values)), horizon))

    return found


def exponential(logarithms: Grid) -> Grid:
    """Exponentials that are finite."""
    return np.exp(np.clip(logarithms, -700, 700))


def room_above(name: str, values: Values) -> float:
    """How far quantiles of a law may lie above the range of a history, in widths of that range.

    Exponentials of wide laws of logarithms are immense: they have `BEYOND` only where the last value is near the
    highest, as in what grows. The pretrained network, which no fit holds near a history, never has.

    >>> [room_above("log AutoARIMA", np.array(values)) for values in ([1.0, 2.0, 4.0], [4.0, 2.0, 1.0])]
    [3.0, 1.0]
    """
    if name.removeprefix(LOG) == PRETRAINED:
        return 1.0
    grows = not name.startswith(LOG) or values[-1] >= HIGH * values.max()
    return BEYOND if grows else 1.0


def sane(quantiles: Grid, history: History, horizon: int, above: float = BEYOND) -> Grid:
    """Quantiles in order and near the range of the history; those of seasonal naive where a model broke down."""
    if not np.isfinite(quantiles).all():
        quantiles = naive_law(history, horizon)
    low, high = history.values.min(), history.values.max()
    width = max(high - low, 1e-9 * max(abs(low), abs(high)))
    return ordered(np.clip(quantiles, low - BEYOND * width, high + above * width))


class Refitted:
    """A law that keeps its fitted model from origin to origin of one series, and fits it again as the history grows."""

    def __init__(self, name: str) -> None:
        self.name, self.model, self.fitted, self.read = name, None, 0, 0

    def __call__(self, history: History, horizon: int) -> Grid:
        """Quantiles at an origin."""
        if self.name not in MODELS:
            return LAWS[self.name](history, horizon)
        if self.name.startswith(LOG):
            return logarithmic(self._fitted)(history, horizon)
        return self._fitted(history, horizon)

    def _fitted(self, history: History, horizon: int) -> Grid:
        longest = max(history.decomposed, default=1) if "MSTL" in self.name else history.season
        read = history.values[-max(READ[self.name], CYCLES * longest) :]
        if np.ptp(read) == 0:
            return np.repeat(read[-1:, None], horizon, 0).repeat(len(GRID), 1)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return self._quantiles(read, history, horizon)

    def _quantiles(self, read: Values, history: History, horizon: int) -> Grid:
        try:
            if self.model is None or self._is_old(history):
                self.model = MODELS[self.name](history).fit(read)
                self.fitted, self.read = len(history.values), len(read)
                found = self.model.predict(h=horizon, level=INTERVALS)
            elif isinstance(self.model, KeptSeasons):
                shift = len(history.values) - self.fitted
                found = self.model.later(read[-self.read - shift :], shift, horizon, INTERVALS)
            else:
                found = self.model.forward(y=read[self._ahead(read, history) :], h=horizon, level=INTERVALS)
        except FAILURES:  # a model that fails on odd data must not stop the others
            return naive_law(history, horizon)
        return np.stack([np.asarray(found[quantile_name(level)], dtype=np.float64) for level in GRID], axis=1)

    def _is_old(self, history: History) -> bool:
        """Whether the model should be fitted again."""
        slow = self.name == "AutoETS" and (history.of_many or history.season > QUICK_SEASON)
        if len(history.values) <= QUICK_VALUES.get(self.name, 0) and not slow:
            return len(history.values) > self.fitted
        return len(history.values) > (REFIT_LONG if self.fitted >= LONG else REFIT) * self.fitted

    def _ahead(self, read: Values, history: History) -> int:
        """Values to leave out at the beginning, so that a fitted model meets its season at the phase of its fit."""
        began, begins = self.fitted - self.read, len(history.values) - len(read)
        return (began - begins) % history.season


def naive_law(history: History, horizon: int) -> Grid:
    """Seasonal naive, over the season in which values change least."""
    return seasonal_naive(history.values, horizon, GRID, history.season)


def empirical_law(history: History, horizon: int) -> Grid:
    """The law of the last values, the same for each step."""
    if history.whole:
        return np.tile(counted(history.values[-REMEMBERED:]), (horizon, 1))
    return np.tile(np.quantile(history.values[-REMEMBERED:], GRID, method="inverted_cdf"), (horizon, 1))


def demand_law(name: str) -> Law:
    """Law of intermittent demand whose mean is a point forecast of statsforecast.

    Counts are negative binomial with the dispersion of the history; other values have the empirical law, rescaled.
    """

    def law(history: History, horizon: int) -> Grid:
        model = getattr(import_module("statsforecast.models"), name)()
        mean = float(np.asarray(model.forecast(history.values, h=1)["mean"])[0])
        past = history.values[-REMEMBERED:]
        if not history.whole:
            scale = mean / past.mean() if past.mean() > 0 else 1.0
            return empirical_law(history, horizon) * scale
        ratio = dispersion(past - past.mean(), np.full_like(past, past.mean()))
        return np.tile(count_quantiles(max(mean, FEWEST), ratio), (horizon, 1))

    return law


def seasonal_count_law(history: History, horizon: int) -> Grid:
    """Counts with the season over which values change least."""
    return seasonal_counts(history.values, history.season, horizon)


def regression_laws(histories: Sequence[History], horizon: int) -> list[Grid]:
    """Quantiles of what covariates explain with a model of what they leave, at the origins of one series."""
    return [regression_law(one, horizon) for one in histories]


def regression_law(history: History, horizon: int) -> Grid:
    """Effects of covariates, and quantiles of MSTL of what they leave; of AutoETS where there is no season."""
    effects, left = explained(history)
    if unfit := left_out("MSTL", left):
        left = replace(left, seasons=())
    found = refitted_laws("AutoETS" if unfit else "MSTL", [left], horizon)[0]
    return effects.added(sane(found, left, horizon, above=1.0 if effects.log else BEYOND))


def explained(history: History) -> tuple[Effects, History]:
    """Effects of covariates, and the history without them, in which a season may show that they hid."""
    assert history.observed is not None
    assert history.known is not None
    values, seasons = history.observed, history.seasons
    season = max((steps for steps in seasons if steps <= LONGEST_PHASES), default=1)
    effects = effects_of(values, history.known, season)
    apart = {} if history.intermittent else moved_rows(effects.rest(values), history.decomposed)
    if apart:
        values = effects.replaced(values, apart)
        effects = effects_of(values, history.known, season)
    if not seasons and 1 < history.suggested <= LONGEST_PHASES and shows(effects.rest(values), history.suggested):
        seasons = (history.suggested,)
        effects = effects_of(values, history.known, history.suggested)
    rest = effects.rest(values)
    broken = None if history.intermittent else level_break(filled(rest), seasons)
    rest = with_moved(rest, broken.aligned(rest) if broken else {})
    return effects, replace(history, values=filled(rest), seasons=seasons, whole=False)


def moved_rows(rest: Values, seasons: Sequence[int]) -> dict[int, float]:
    """Observed rows that stand apart in what covariates leave, and what is read instead."""
    return {at: read for at, read in moved(filled(rest), seasons).items() if not np.isnan(rest[at])}


def pretrained_laws(histories: Sequence[History], horizon: int) -> list[Grid]:
    """Quantiles of the network that comes with the package, all histories at once."""
    seasons = [pretrained_season(one) for one in histories]
    return list(pretrained_quantiles([one.values for one in histories], seasons, horizon)) if histories else []


def log_pretrained_laws(histories: Sequence[History], horizon: int) -> list[Grid]:
    """The same of logarithms."""
    seasons = [pretrained_season(one) for one in histories]  # the main one is that of the values
    logarithms = [np.log(one.values) for one in histories]
    return [exponential(one) for one in pretrained_quantiles(logarithms, seasons, horizon)] if histories else []


def pretrained_season(history: History) -> int:
    """The season that the pretrained network is told: the main one, or the longest that it can read; 1 without one."""
    shown = [steps for steps in history.seasons if steps <= LONGEST_SEASON]
    season = history.season if history.season in shown else max(shown, default=history.suggested)
    return season if season <= LONGEST_SEASON and LEAST_CYCLES * season <= len(history.values) else 1


def _model(name: str, **settings: Any) -> Any:
    return getattr(import_module("statsforecast.models"), name)(**settings)


def _mstl(history: History) -> Any:
    fit = [steps for steps in history.decomposed if len(history.values) >= 2 * steps]
    return KeptSeasons(fit)


def _ets(history: History) -> Any:
    """Exponential smoothing; of very many series with additive errors and seasons alone, in a third of the time."""
    return _model("AutoETS", season_length=history.season, model="AZA" if history.of_many else "ZZZ")


def _arima(history: History) -> Any:
    orders = {"max_p": 3, "max_q": 3, "max_P": 1, "max_Q": 1}
    return _model("AutoARIMA", season_length=history.season, approximation=True, **orders)


MODELS: dict[str, Callable[[History], Any]] = {
    "AutoETS": _ets,
    "AutoTheta": lambda history: _model("AutoTheta", season_length=history.season),
    "log AutoTheta": lambda history: _model("AutoTheta", season_length=history.season),
    "AutoARIMA": _arima,
    "log AutoARIMA": _arima,
    "MSTL": _mstl,
    "log MSTL": _mstl,
}
"""Models of statsforecast that have intervals of their own, by name."""
LAWS: dict[str, Law] = {
    "seasonal naive": naive_law,
    "Theta": lambda history, horizon: own_theta(history.values, horizon, history.season, GRID),
    "CrostonSBA": demand_law("CrostonSBA"),
    "ADIDA": demand_law("ADIDA"),
    "empirical": empirical_law,
    SEASONAL_COUNTS: seasonal_count_law,
}
"""Laws that are computed anew at each origin."""
NAMES = (*MODELS, *LAWS, PRETRAINED, LOG + PRETRAINED, REGRESSION)
