"""Transforms of measured scores to what is maximised, and back to the user's units."""

from dataclasses import dataclass
from typing import get_args

import numpy as np
from jaxtyping import Float64

from sgfn.config.checks import one_of
from sgfn.config.tasks import ScoreScale


@dataclass(frozen=True, kw_only=True)
class ScoreTransform:
    """Values to maximise: scores, their logarithms or their ranks from 0 to 1, all negated where less is better."""

    kind: ScoreScale = "none"
    minimise: bool = False
    knots: tuple[float, ...] = ()
    """Measured scores in ascending order, between which ranks are interpolated."""
    low: float = 0.0
    span: float = 1.0
    """What is maximised is (value - low) / span."""

    @classmethod
    def of(cls, scores: Float64[np.ndarray, " N"], kind: ScoreScale, *, minimise: bool) -> "ScoreTransform":
        """The transform for measured scores; refuses logarithms of zero or less."""
        one_of("transform", kind, get_args(ScoreScale))
        if kind == "log" and (scores <= 0).any():
            raise ValueError(f"transform log needs scores above 0, the lowest is {scores.min():g}: use rank or none")
        knots = tuple(np.unique(scores).tolist()) if kind == "rank" else ()
        return cls(kind=kind, minimise=minimise, knots=knots)

    def values(self, scores: Float64[np.ndarray, " N"]) -> Float64[np.ndarray, " N"]:
        """What is maximised.

        >>> ScoreTransform(kind="log", minimise=True).values(np.array([1.0, np.e])).tolist()
        [-0.0, -1.0]
        """
        found = scores
        if self.kind == "log":
            found = np.log(scores)
        elif self.kind == "rank":
            found = np.interp(scores, self.knots, np.linspace(0.0, 1.0, len(self.knots)))
        found = -found if self.minimise else found
        return found if (self.low, self.span) == (0.0, 1.0) else (found - self.low) / self.span

    def scores(self, values: Float64[np.ndarray, " N"]) -> Float64[np.ndarray, " N"]:
        """The user's units again; ranks beyond 0 and 1 become the lowest and the highest measured score."""
        values = values if (self.low, self.span) == (0.0, 1.0) else self.low + self.span * values
        found = -values if self.minimise else values
        if self.kind == "log":
            return np.exp(found)
        return np.interp(found, np.linspace(0.0, 1.0, len(self.knots)), self.knots) if self.kind == "rank" else found

    def value(self, score: float) -> float:
        """What is maximised, of one score; raises where it has no logarithm."""
        if self.kind == "log" and score <= 0:
            raise ValueError(f"{score:g} is no score of a table with transform log: give one above 0")
        return float(self.values(np.array([score]))[0])

    def score(self, value: float) -> float:
        """The score of one value that is maximised."""
        return float(self.scores(np.array([value]))[0])

    def predictions(
        self, mean: Float64[np.ndarray, " N"], sd: Float64[np.ndarray, " N"]
    ) -> tuple[Float64[np.ndarray, " N"], Float64[np.ndarray, " N"]]:
        """Means and standard deviations of what is maximised as those of scores.

        A mean m with standard deviation s becomes g(m) and (g(m + s) - g(m - s)) / 2, g the way back: for logarithms
        the median of the score, not its mean.

        >>> ScoreTransform(minimise=True, low=-4.0, span=3.0).predictions(np.array([1.0]), np.array([0.5]))
        (array([1.]), array([1.5]))
        """
        low, middle, high = (self.scores(mean + k * sd) for k in (-1, 0, 1))
        return middle, np.abs(high - low) / 2

    def value_sd(
        self, scores: Float64[np.ndarray, " N"], sd: Float64[np.ndarray, " N"] | None
    ) -> Float64[np.ndarray, " N"] | None:
        """Standard deviation of values, to first order: that of scores times the slope of the transform."""
        if sd is None or self.kind == "none":
            return sd if sd is None or self.span == 1.0 else sd / self.span
        step = np.maximum(sd, 1e-9 * np.abs(scores).max())
        if self.kind == "log":
            return step / scores / self.span
        return np.abs(self.values(scores + step) - self.values(scores - step)) / 2


def deviation_factor(mean: Float64[np.ndarray, " N"], sd: Float64[np.ndarray, " N"]) -> Float64[np.ndarray, " N"]:
    r"""The factor that one standard deviation s of a logarithm is, $e^s$, of $e^m \sinh s$ as `predictions` tells it.

    >>> [round(float(x), 3) for x in deviation_factor(np.array([2.0]), np.array([2.0 * np.sinh(0.5)]))]  # exp(0.5)
    [1.649]
    """
    return np.exp(np.arcsinh(sd / mean))
