"""A cost model of jobs on a cluster, fitted to measured rates, and what it predicts for more workers.

With w workers, jobs of t seconds and one driver the rate is

    rate(w, t) = min(w / (t + o), 1 / c)

o: seconds that a worker loses between two jobs (the way to the driver and back), c: seconds that the driver itself
spends on each job, one after the other. c is the CPU time of the driver's process, measured; o is fitted.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from scipy.optimize import minimize_scalar


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


def fitted(points: Sequence[tuple[float, float, float]], driver: float) -> CostModel:
    """The model whose overhead has least squared error of log-rates, from (workers, seconds, rate); the driver's known.

    >>> true = CostModel(overhead=0.002, driver=0.0005)
    >>> found = fitted([(w, t, true.rate(w, t)) for w in (1, 2, 4) for t in (0.0, 0.01, 0.1)], 0.0005)
    >>> round(found.overhead, 6)
    0.002
    """
    workers, seconds, rates = np.array(points, dtype=np.float64).T

    def error(log_overhead: float) -> float:
        found = np.minimum(workers / (seconds + np.exp(log_overhead)), 1.0 / driver)
        return float(np.square(np.log(found) - np.log(rates)).sum())

    best = minimize_scalar(error, bounds=(np.log(1e-6), np.log(1e3)), method="bounded", options={"xatol": 1e-9})
    return CostModel(overhead=float(np.exp(best.x)), driver=driver)
