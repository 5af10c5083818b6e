r"""Effects of covariates known in advance on a series, by regression whose errors follow a level that forgets.

.. math:: y_t = x_t^\top b + w_t^\top c + n_t, \qquad n_t = \ell_{t-1} + e_t, \quad \ell_t = \ell_{t-1} + \alpha e_t

with covariates x, a line and the phases of a season w, and simple exponential smoothing n. The filter that turns n into
e is linear, so that it is laid on y, x and w alike, and for each $\alpha$ the rest is a linear regression: b has a
normal prior with variance $\tau \sigma^2$ (covariates over their standard deviations), c and the first level have a
flat one. $\alpha$, $\tau$, and whether logarithms are taken of y, or of y and of positive covariates, are those of the
largest marginal likelihood; $\tau = 0$ means that covariates explain nothing.

Reference: Harvey (1989), Forecasting, structural time series models and the Kalman filter, section 7.3.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64
from scipy.signal import lfilter
from scipy.special import ndtri

from sgfn.series.quantile_laws import GRID

Values = Float64[np.ndarray, " T"]
Rows = Float64[np.ndarray, "T C"]
Known = Float64[np.ndarray, "M C"]
"""Covariates of the values, and of steps after them."""

RATES = (0.0, 0.05, 0.15, 0.3, 0.5, 0.75, 1.0)
"""Rates at which the level follows; 0 is a constant level."""
SIZES = (0.0, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 1e3)
"""Variances of effects, over that of the errors."""
READ = 600
"""Values, from the end, that are read; at least `CYCLES` seasons."""
CYCLES = 4
LONGEST_SEASON = 60
"""Longest season that has an indicator of each phase."""
SPARE = 6
"""Values that there must be beside three seasons, to have indicators of its phases."""
ROUNDING = 1e-9
MEDIAN, LOWER, UPPER = (int(np.abs(GRID - level).argmin()) for level in (0.5, 0.1, 0.9))
WIDTH = 2 * float(ndtri(0.9))
"""Width of the interval between the last two, in standard deviations of a normal law."""
WIDEST = 2.0
"""Factor by which a law that is narrower than errors were is widened at most."""
LEVELS = 2
"""Different values up to which a covariate is an indicator, of which no logarithm is taken."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Effects:
    """What covariates explain of a history, and of the steps after it."""

    log: bool
    """Whether effects are on the logarithm: factors of the values."""
    before: Values
    """Effect at each of the values that were read, the last ones of the history, on the scale of the effects."""
    ahead: Float64[np.ndarray, " H"]
    """Effect at each step ahead."""
    variance: Float64[np.ndarray, " H"]
    """Variance of the effect at each step ahead, relative to that of the errors of one step."""
    deviation: float
    """Standard deviation of the errors of one step."""
    rate: float
    """Rate at which the level follows."""

    def rest(self, values: Values) -> Values:
        """What effects leave of the values that were read, nan where one is missing."""
        read = values[-len(self.before) :]
        return (np.log(read) if self.log else read) - self.before

    def replaced(self, values: Values, rest: Mapping[int, float]) -> Values:
        """The values that were read, of which some leave what is given by their places."""
        read, places = values.copy(), np.array(list(rest)) + len(values) - len(self.before)
        found = np.array(list(rest.values())) + self.before[list(rest)]
        read[places] = np.exp(found) if self.log else found
        return read

    def added(self, quantiles: Float64[np.ndarray, "H Q"]) -> Float64[np.ndarray, "H Q"]:
        """Quantiles of values, of those of what effects leave: wider by what is not known of the effects.

        The first step is as wide as errors of one step were here, at least: a decomposition takes noise for its season.
        """
        middle = quantiles[:, MEDIAN, None]
        own = np.square((quantiles[:, UPPER] - quantiles[:, LOWER]) / WIDTH)
        narrow = self.deviation**2 / own[0] if own[0] > 0 else 1.0
        factor, more = np.clip(narrow, 1.0, WIDEST**2), self.variance * self.deviation**2
        wider = np.sqrt(factor + np.divide(more, own, out=np.zeros_like(more), where=own > 0))
        found = middle + wider[:, None] * (quantiles - middle) + self.ahead[:, None]
        return np.exp(np.clip(found, -700, 700)) if self.log else found


@dataclass(frozen=True, kw_only=True, eq=False)
class _Fit:
    """Effects of scaled covariates, and how likely they are."""

    likelihood: float
    size: float
    rate: float
    deviation: float
    effects: Float64[np.ndarray, " C"]
    covariance: Float64[np.ndarray, "C C"]
    """Over the variance of the errors."""


def effects_of(values: Values, known: Known, season: int = 1) -> Effects:
    """Effects of covariates in all rows: those of the history, then the steps ahead.

    Missing values are passed over: the level stays, and no effect is learned from them.
    """
    count, seen = len(values), ~np.isnan(values)
    season = season if season <= LONGEST_SEASON and seen.sum() >= 3 * season + SPARE else 1
    start = max(count - max(READ, CYCLES * season), 0)
    values, seen, known = values[start:], seen[start:], known[start:]
    nuisance, found = line_and_season(len(values), season), []
    for log, rows in forms(values, seen, known):
        answer, scaled = (np.log(values) if log else values), scaled_rows(rows, seen)
        fit = best_fit(answer, seen, scaled[: len(values)], nuisance)
        free = int(seen.sum()) - nuisance.shape[1]  # what has a flat prior is in other units, too
        change = free * float(np.nanmean(answer)) if log else 0.0  # of the density of y into that of log y
        found.append((fit.likelihood - change, log, fit, scaled))
    _, log, fit, scaled = max(found, key=lambda one: one[0])
    ahead = scaled[len(values) :]
    return Effects(
        log=log,
        before=scaled[: len(values)] @ fit.effects,
        ahead=ahead @ fit.effects,
        variance=np.einsum("hc,cd,hd->h", ahead, fit.covariance, ahead),
        deviation=fit.deviation,
        rate=fit.rate,
    )


def forms(values: Values, seen: Bool[np.ndarray, " T"], known: Known) -> list[tuple[bool, Known]]:
    """Scales on which effects may be linear: values, logarithms of positive ones, and these of both."""
    found = [(False, known)]
    if values[seen].min() > 0:
        found.append((True, known))
        sizes = [at for at in range(known.shape[1]) if is_size(known[:, at])]
        if sizes:
            logarithms = known.copy()
            logarithms[:, sizes] = np.log(known[:, sizes])
            found.append((True, logarithms))
    return found


def is_size(column: Float64[np.ndarray, " M"]) -> bool:
    """Whether a covariate is positive throughout, and no indicator.

    >>> is_size(np.array([9.0, 10.0, 8.5])), is_size(np.array([0.0, 1.0, 2.0])), is_size(np.array([1.0, 2.0, 1.0]))
    (True, False, False)
    """
    return bool(column.min() > 0 and len(np.unique(column)) > LEVELS)


def scaled_rows(known: Known, seen: Bool[np.ndarray, " T"]) -> Known:
    """Covariates about their means over their deviations, where values were seen; zero where one never changed."""
    past = known[: len(seen)][seen]
    mean, deviation = past.mean(0), past.std(0)
    changed = deviation > ROUNDING * np.maximum(np.abs(past).max(0), 1e-300)
    return np.where(changed, (known - mean) / np.where(changed, deviation, 1.0), 0.0)


def line_and_season(count: int, season: int) -> Float64[np.ndarray, "T W"]:
    """Columns that no effect should explain: a line, and all but one phase of a season; the level is the filter's."""
    line = np.linspace(-1.0, 1.0, count)[:, None]
    phases = (np.arange(count) % season)[:, None] == np.arange(1, season)
    return np.concatenate([np.ones((count, 1)), line, phases - 1.0 / season], 1)


def innovations(
    rows: Float64[np.ndarray, "T W"], seen: Bool[np.ndarray, " T"], rate: float
) -> Float64[np.ndarray, "N W"]:
    """Errors of simple exponential smoothing of each column from a level of zero; rows that are not seen are left out.

    >>> innovations(np.array([[1.0], [1.0], [3.0]]), np.array([True, True, True]), 1.0)[:, 0].tolist()
    [1.0, 0.0, 2.0]
    """
    return np.asarray(lfilter([1.0, -1.0], [1.0, rate - 1.0], rows[seen], axis=0))


def best_fit(answer: Values, seen: Bool[np.ndarray, " T"], scaled: Rows, nuisance: Float64[np.ndarray, "T W"]) -> _Fit:
    """The fit of the largest marginal likelihood, over the rates of the level and the sizes of effects."""
    together = np.concatenate([answer[:, None], scaled, nuisance], 1)
    fits = [fit for rate in RATES for fit in fits_of(innovations(together, seen, rate), scaled.shape[1], rate)]
    return max(fits, key=lambda fit: fit.likelihood)


def fits_of(rows: Float64[np.ndarray, "N W"], count: int, rate: float) -> Sequence[_Fit]:
    r"""Fits for each size of effects $\tau$, of rows with the answer, so many covariates, and what has a flat prior.

    With Q orthogonal to the last, $Q^\top X = U S V^\top$ and $u = U^\top Q^\top y$, the residual sum of squares is
    $R_\tau = |Q^\top y|^2 - \sum_i u_i^2 \tau s_i^2 / (1 + \tau s_i^2)$, and twice the marginal likelihood
    $-\sum_i \log(1 + \tau s_i^2) - (N - k) \log R_\tau - \log|W^\top W|$.
    """
    flat = rows[:, 1 + count :]
    basis, triangle = np.linalg.qr(flat)
    free = len(rows) - flat.shape[1]
    rest = rows[:, : 1 + count] - basis @ (basis.T @ rows[:, : 1 + count])
    answer, covariates = rest[:, 0], rest[:, 1:]
    lengths, turned = np.linalg.eigh(covariates.T @ covariates)
    lengths = np.maximum(lengths, 0.0)
    beside = turned.T @ (covariates.T @ answer)
    total = float(answer @ answer)
    least = 1e-12 * max(total, 1e-300)
    volume = float(np.log(np.abs(np.diag(triangle)) + 1e-300).sum())
    found = []
    for size in SIZES:
        shrunk = size / (1 + size * lengths)
        left = max(total - float((np.square(beside) * shrunk).sum()), least)
        found.append(
            _Fit(
                likelihood=-0.5 * float(np.log1p(size * lengths).sum() + free * np.log(left / free)) - volume,
                size=size,
                rate=rate,
                deviation=float(np.sqrt(left / free)),
                effects=turned @ (beside * shrunk),
                covariance=(turned * shrunk) @ turned.T,
            )
        )
    return found
