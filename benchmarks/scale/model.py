"""A cost model of jobs on a cluster, fitted to measured rates, and what it predicts for more workers.

With w workers, jobs of t seconds and one driver the rate is

    rate(w, t) = min(w / (t + o), 1 / c)

o: seconds that a worker loses between two jobs (the way to the driver and back), c: seconds that the driver itself
spends on each job, one after the other. Both are fitted; t is known.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from scipy.optimize import least_squares


@dataclass(frozen=True, kw_only=True)
class CostModel:
    """Fitted costs of a job, in seconds."""

    overhead: float
    """What a worker loses between two jobs."""
    driver: float
    """What the driver spends on each job."""

    def rate(self, workers: float, seconds: float) -> float:
        """Jobs per second."""
        return min(workers / (seconds + self.overhead), 1.0 / self.driver)

    def efficiency(self, workers: float, seconds: float) -> float:
        """Rate over that of workers who lose nothing."""
        return self.rate(workers, seconds) * seconds / workers

    def enough(self, seconds: float) -> float:
        """Workers beyond which the driver is the limit."""
        return (seconds + self.overhead) / self.driver

    def to_json(self) -> dict[str, float]:
        """Plain data."""
        return asdict(self)


def fitted(points: Sequence[tuple[float, float, float]]) -> CostModel:
    """The model of least squared error of the logarithm of the rate, from (workers, seconds, rate).

    >>> true = CostModel(overhead=0.002, driver=0.0005)
    >>> points = [(w, t, true.rate(w, t)) for w in (1, 2, 4) for t in (0.0, 0.01, 0.1)]
    >>> found = fitted(points)
    >>> round(found.overhead, 6), round(found.driver, 6)
    (0.002, 0.0005)
    """
    workers, seconds, rates = np.array(points, dtype=np.float64).T

    def errors(logs: np.ndarray) -> np.ndarray:
        overhead, driver = np.exp(logs)
        return np.log(np.minimum(workers / (seconds + overhead), 1.0 / driver)) - np.log(rates)

    starts = [(np.log(first), np.log(second)) for first in (1e-3, 1e-2) for second in (1e-4, 1e-3, 1e-2)]
    best = min(
        (least_squares(errors, start, x_scale=0.1, diff_step=1e-4) for start in starts), key=lambda one: one.cost
    )
    overhead, driver = np.exp(best.x)
    return CostModel(overhead=float(overhead), driver=float(driver))
