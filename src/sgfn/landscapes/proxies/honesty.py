r"""What is told of predictions that were chosen because they are high: less than predicted, and with more doubt.

Orders are the best of very many by one proxy, so its errors are chosen with its merits, and most where it predicts more
than of any sequence that it was fitted to. A prediction m with calibrated standard deviation s is told as

.. math:: m - \tfrac12 e, \qquad \sqrt{s^2 + (\tfrac32 e)^2 + (g\,(m - \bar y))^2}, \qquad e = \max(0, m - m_{top})

in units of what is maximised: $m_{top}$ is the highest prediction of a measured sequence and $\bar y$ the mean of what
was measured; g has the highest likelihood of errors out of fold, between .3 and .6. Constants and the bounds of g were
chosen on plates from made-up landscapes (`python -m benchmarks.design honest` plays other seeds). Nothing of it enters
the choice of orders.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float64
from torch import Tensor

from sgfn.config.digits import figure
from sgfn.landscapes.proxies.base import ProxyReport
from sgfn.landscapes.proxies.proxy import Proxy
from sgfn.landscapes.transforms import ScoreTransform

KEPT = 0.5
"""Share that is told of what is predicted beyond the highest prediction of a measured sequence."""
BEYOND = 1.5
"""Standard deviation of a unit that is predicted beyond."""
SLOPES = np.linspace(0.3, 0.6, 7)
"""Standard deviations of a unit above the mean of what was measured, of which one is taken."""
TENTH = 10


@dataclass(frozen=True, kw_only=True)
class ToldLaw:
    """The highest prediction of a measured sequence, the mean of what was measured, and the doubt above that mean."""

    top: float
    centre: float
    slope: float

    @classmethod
    def of(cls, proxy: Proxy) -> "ToldLaw":
        """The law of a fitted proxy, by its cross-validation and what it predicts of measured sequences."""
        report = proxy.report
        fitted = proxy.predict(report.sequences).mean
        top = max(float(fitted.max()), float(report.predicted.max()))
        return cls(top=top, centre=float(report.measured.mean()), slope=_slope(report))

    def mean(self, values: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """What is told of predictions or draws of them.

        >>> import torch
        >>> ToldLaw(top=1.0, centre=0.0, slope=0.3).mean(torch.tensor([0.5, 2.0])).tolist()
        [0.5, 1.5]
        """
        return values - (1 - KEPT) * (values - self.top).clamp(min=0)

    def __call__(
        self, mean: Float64[np.ndarray, " N"], sd: Float64[np.ndarray, " N"]
    ) -> tuple[Float64[np.ndarray, " N"], Float64[np.ndarray, " N"]]:
        """Means and standard deviations as they are told; what is certain stays as it is.

        >>> ToldLaw(top=1.0, centre=0.0, slope=0.3)(np.array([2.0, 2.0]), np.array([0.8, 0.0]))
        (array([1.5, 2. ]), array([1.80277564, 0.        ]))
        """
        beyond = np.maximum(mean - self.top, 0.0)
        spread = np.sqrt(sd**2 + (BEYOND * beyond) ** 2 + (self.slope * (mean - self.centre)) ** 2)
        return np.where(sd > 0, mean - (1 - KEPT) * beyond, mean), np.where(sd > 0, spread, 0.0)


def _slope(report: ProxyReport) -> float:
    """The slope under which the errors out of fold are likeliest, as normal laws."""
    away = (report.predicted - report.measured.mean()) ** 2
    variance = np.maximum(report.sd**2 + SLOPES[:, None] ** 2 * away, 1e-300)  # slopes N
    loss = (np.log(variance) + (report.measured - report.predicted) ** 2 / variance).sum(1)
    return float(SLOPES[int(loss.argmin())])


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """What was predicted and measured of the measured sequences that rank best while their fold is left out."""

    count: int
    predicted: float
    measured: float

    @classmethod
    def of(cls, report: ProxyReport, transform: ScoreTransform) -> "HeldOut":
        """The best tenth by predictions out of fold, in the units of the scores."""
        count = max(1, len(report.sequences) // TENTH)
        best = np.argsort(-report.predicted, kind="stable")[:count]
        means = (float(transform.scores(part[best]).mean()) for part in (report.predicted, report.measured))
        return cls(count=count, **dict(zip(("predicted", "measured"), means, strict=True)))

    def __str__(self) -> str:
        figures = f"predicted {figure(self.predicted)} on average and measured {figure(self.measured)}"
        return f"of measured sequences held out, the {self.count} that the proxy ranked best were {figures}"
