r"""Whether tilted draws collapse onto few paths, and the temperature at which they would not.

With paths x of the forecast p and weights $w = e^{\mathrm{cost}/T}$, the effective share of paths is
$(E_p w)^2 / E_p w^2$, which grows with T: it tells how much of the forecast the tilted law still uses.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int

ENOUGH_SHARE = 0.1
"""Effective share of the forecast's paths that a suggested temperature leaves."""
FEW_SHARE = 0.02
"""Draws collapse where they count as fewer paths than this share of what the forecast's own draws count as."""
FEWEST = 2.0
"""Draws collapse, too, where they count as fewer paths than this."""
BISECTIONS = 60
HOTTEST = 1e6
"""Temperature, in ranges of the cost, at which every path counts the same."""


@dataclass(frozen=True, kw_only=True)
class Diversity:
    """How many different paths, of bins, weighted draws hold."""

    distinct: int
    """Different paths among the draws."""
    top_share: float
    """Share of the weight that lies on one path, at most."""
    entropy: float
    """Entropy of the weights of different paths, in nats."""

    @property
    def effective(self) -> float:
        """Number of equally likely paths that have this entropy."""
        return float(np.exp(self.entropy))


@dataclass(frozen=True, kw_only=True)
class Collapse:
    """Draws of a tilted policy beside the forecast's own."""

    tilted: Diversity
    forecast: Diversity
    suggested: float | None
    """Smallest temperature that leaves a tenth of the forecast's paths; None where the given one does."""

    @property
    def collapsed(self) -> bool:
        """Whether nearly all weight lies on one path, or on few where the forecast has many."""
        return self.tilted.effective < max(FEWEST, FEW_SHARE * self.forecast.effective)

    @property
    def figures(self) -> dict[str, float]:
        """Figures for a table: different paths, entropies in nats, and a temperature where one is suggested."""
        figures = {"distinct": float(self.tilted.distinct), "distinct_forecast": float(self.forecast.distinct)}
        figures |= {"entropy": self.tilted.entropy, "entropy_forecast": self.forecast.entropy}
        figures |= {"top_share": self.tilted.top_share, "collapsed": float(self.collapsed)}
        return figures | ({} if self.suggested is None else {"suggested_temperature": self.suggested})


def check_network(left_out: str) -> None:
    """Raise where the network, whose law is tilted, has learned nothing; the reason is given, or empty."""
    if left_out:
        what = f"scenarios tilt the network's law, and the network is left out ({left_out})"
        raise ValueError(f"{what}: add --laws network (laws='network' in Python)")


def collapse_line(figures: Mapping[str, float]) -> str:
    """What to tell of draws that collapse, from a tilt's figures; empty where they do not."""
    if not figures.get("collapsed"):
        return ""
    own, beside = (np.exp(figures[name]) for name in ("entropy", "entropy_forecast"))
    sizes = f"entropy {figures['entropy']:.2f} beside {figures['entropy_forecast']:.2f} nats"
    many = figures["distinct"]
    count = f"the draws collapse: {many:,.0f} different path{'s count' if many != 1 else ' counts'} as {own:.1f}"
    hotter = figures.get("suggested_temperature")
    fix = f"try --temperature {hotter:.3g}" if hotter else "train longer (--tilt-steps): the temperature is not too low"
    return (
        f"{count}, {figures['top_share']:.0%} is one path (the forecast's own count as {beside:,.1f}; {sizes}); {fix}"
    )


def diversity(paths: Int[np.ndarray, "N H"], weight: Float64[np.ndarray, " N"]) -> Diversity:
    """Different paths among weighted draws, the largest share of one, and the entropy of their shares."""
    different, which = np.unique(paths, axis=0, return_inverse=True)
    share = np.bincount(which.reshape(-1), weights=weight / weight.sum(), minlength=len(different))
    entropy = -float((share * np.log(np.maximum(share, 1e-300))).sum())
    return Diversity(distinct=len(different), top_share=float(share.max()), entropy=max(entropy, 0.0) + 0.0)


def effective_share(cost: Float64[np.ndarray, "J N"], temperature: float) -> float:
    r"""Effective share $(\sum w)^2 / (N \sum w^2)$ of N paths with weights $w = \overline{e^{c/T}}$ over J places.

    >>> effective_share(np.array([[0.0, 0.0, 0.0, 0.0]]), 1.0)
    1.0
    """
    log_weight = cost / temperature
    weight = np.exp(log_weight - log_weight.max()).mean(0)
    return float(weight.sum() ** 2 / (weight**2).sum() / len(weight))


def suggested_temperature(
    cost: Float64[np.ndarray, "J N"], temperature: float, share: float = ENOUGH_SHARE
) -> float | None:
    """Smallest temperature that leaves a share of the paths effective, by bisection; None where the given one does."""
    if effective_share(cost, temperature) >= share:
        return None
    low, high = temperature, max(temperature, HOTTEST * float(np.ptp(cost)))
    if effective_share(cost, high) < share:
        return None
    for _ in range(BISECTIONS):
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if effective_share(cost, middle) >= share else (middle, high)
    return high
