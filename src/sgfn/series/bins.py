r"""Bins of a scaled value with a density inside each, so that probabilities of bins define a law of real numbers.

Inner bins are uniform, the two outer ones exponential: with edges $e_1 < \dots < e_{K-1}$ and tails of mean $m_-, m_+$

.. math:: f(x) = \frac{p_k}{e_{k+1}-e_k}, \qquad f(x) = \frac{p_0}{m_-} e^{(x-e_1)/m_-} \; (x < e_1), \qquad
    f(x) = \frac{p_{K-1}}{m_+} e^{-(x-e_{K-1})/m_+} \; (x \ge e_{K-1})

so that cdf, quantiles, mean and log-density are exact.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor

NARROWEST = 1e-6
"""Least width of an inner bin, as a share of the distance between the outer edges."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Bins:
    """K bins, given by their K - 1 inner edges and by the mean distance of values beyond the outer edges.

    >>> bins = Bins(edges=torch.tensor([0.0, 2.0], dtype=torch.float64), tails=torch.ones(2, dtype=torch.float64))
    >>> law = torch.tensor([0.25, 0.5, 0.25], dtype=torch.float64)
    >>> [abs(round(q, 6)) for q in bins.quantile(law, torch.tensor([0.25, 0.5], dtype=torch.float64)).tolist()]
    [0.0, 1.0]
    """

    edges: Float64[Tensor, " E"]
    tails: Float64[Tensor, " 2"]

    def __post_init__(self) -> None:
        if len(self.edges) < 1 or not bool((self.edges.diff() > 0).all()):
            raise ValueError("bins need one edge or more, in increasing order")
        if not bool((self.tails > 0).all()):
            raise ValueError(f"the tails of bins must have positive means, got {self.tails.tolist()}")

    @staticmethod
    def fit(values: Float[Tensor, " N"], count: int) -> "Bins":
        """At most `count` bins of equal mass; fewer where values are equal or too close to each other."""
        values = values[values.isfinite()].double().sort().values
        if len(values) == 0:
            raise ValueError("bins need at least one finite value")
        levels = torch.arange(1, count, dtype=torch.float64, device=values.device) / count
        edges = values[(levels * (len(values) - 1)).round().long()].unique()
        least = NARROWEST * float(edges[-1] - edges[0])
        edges = edges[torch.cat([edges.diff() > least, edges.new_ones(1, dtype=torch.bool)])]
        return Bins(edges=edges, tails=_tails(values, edges))

    @property
    def count(self) -> int:
        """Number of bins K."""
        return len(self.edges) + 1

    @property
    def centres(self) -> Float64[Tensor, " K"]:
        """Mean of each bin, which stands for the bin where a network reads it or a cost is computed."""
        inner = (self.edges[1:] + self.edges[:-1]) / 2
        return torch.cat([self.edges[:1] - self.tails[:1], inner, self.edges[-1:] + self.tails[1:]])

    def index(self, values: Float[Tensor, "*batch"]) -> Int[Tensor, "*batch"]:
        """Number of the bin that holds each value; an edge belongs to the bin above it."""
        return torch.bucketize(values.double(), self.edges.to(values.device), right=True)

    def place(self, index: Int[Tensor, "*batch"], share: Float[Tensor, "*batch"]) -> Float64[Tensor, "*batch"]:
        """Value in each bin below which a share of the bin's mass lies; a uniform share gives a draw from the bin."""
        share = share.double().clamp(1e-12, 1 - 1e-12)
        low, high = self._limits(index)
        inside = low + share * (high - low)
        below, above = high + self.tails[0] * share.log(), low - self.tails[1] * torch.log1p(-share)
        return torch.where(index == 0, below, torch.where(index == self.count - 1, above, inside))

    def share(self, values: Float[Tensor, "*batch"]) -> Float64[Tensor, "*batch"]:
        """Share of its bin's mass that lies below each value: the inverse of `place`."""
        index, values = self.index(values), values.double()
        low, high = self._limits(index)
        inside = (values - low) / (high - low)
        below, above = ((values - high) / self.tails[0]).exp(), -torch.expm1(-(values - low) / self.tails[1])
        return torch.where(index == 0, below, torch.where(index == self.count - 1, above, inside))

    def cdf(self, law: Float[Tensor, "*batch K"], values: Float[Tensor, "*batch"]) -> Float64[Tensor, "*batch"]:
        """P(X <= value) under each law over bins."""
        index, mass = self.index(values)[..., None], law.double()
        before = (mass.cumsum(-1) - mass).gather(-1, index)[..., 0]
        return before + mass.gather(-1, index)[..., 0] * self.share(values)

    def quantile(
        self, law: Float[Tensor, "*batch K"], levels: Float[Tensor, "*levels Q"]
    ) -> Float64[Tensor, "*batch Q"]:
        """Least value whose cdf reaches each level; levels are the same for all laws, or given for each."""
        mass = law.double() / law.double().sum(-1, keepdim=True)
        upto = mass.cumsum(-1)
        wanted = levels.double().to(law.device).expand(*law.shape[:-1], levels.shape[-1]).contiguous()
        index = torch.searchsorted(upto, wanted).clamp(max=self.count - 1)
        inside, before = mass.gather(-1, index), (upto - mass).gather(-1, index)
        return self.place(index, (wanted - before) / inside.clamp(min=1e-300))

    def transport(
        self,
        index: Int[Tensor, "*batch N"],
        share: Float[Tensor, "*batch N"],
        source: Float[Tensor, "*batch K"],
        target: Float[Tensor, "*batch K"],
    ) -> Float64[Tensor, "*batch N"]:
        r"""Draws of one law mapped to draws of another by their quantiles, $G^{-1}(F(x))$, which keeps their order.

        A draw x is given by its bin and by the share of the bin's mass below it.
        """
        mass = source.double() / source.double().sum(-1, keepdim=True)
        level = (mass.cumsum(-1) - mass).gather(-1, index) + mass.gather(-1, index) * share
        return self.quantile(target, level)

    def mean(self, law: Float[Tensor, "*batch K"]) -> Float64[Tensor, "*batch"]:
        """Exact mean of each law over bins."""
        return (law.double() * self.centres).sum(-1)

    def log_density(
        self, log_law: Float[Tensor, "*batch K"], values: Float[Tensor, "*batch"]
    ) -> Float64[Tensor, "*batch"]:
        """Log-density of each value, from the log-probabilities of the bins."""
        index = self.index(values)
        low, high = self._limits(index)
        excess = torch.where(index == 0, (high - values) / self.tails[0], (values - low) / self.tails[1])
        tail = torch.where(index == 0, self.tails[0], self.tails[1])
        outer = (index == 0) | (index == self.count - 1)
        return log_law.double().gather(-1, index[..., None])[..., 0] - torch.where(
            outer, excess + tail.log(), (high - low).clamp(min=1e-300).log()
        )

    def blur(self, deviation: Float[Tensor, "*batch"]) -> Float64[Tensor, "*batch K K"]:
        r"""Gaussian measurement error as a kernel, $M(k|k') = P(c_{k'} + \sigma\,\varepsilon \in \mathrm{bin}\;k)$."""
        spread = deviation.double().clamp(min=1e-9)[..., None, None]
        below = torch.special.ndtr((self.edges - self.centres[:, None]) / spread)  # K E
        ends = torch.zeros_like(below[..., :1])
        return torch.diff(below, prepend=ends, append=ends + 1.0)

    def measured(
        self, law: Float[Tensor, "*batch H K"], deviation: Float[Tensor, "*batch"]
    ) -> Float[Tensor, "*batch H K"]:
        r"""Law of the measured bins of H steps, $\sum_{k'} c(k')\,M(k|k')$, as `ForecastEnv` draws them."""
        return law @ self.blur(deviation).to(law.dtype)

    def to(self, device: torch.device) -> "Bins":
        """The same bins on another device."""
        return Bins(edges=self.edges.to(device), tails=self.tails.to(device))

    def _limits(self, index: Int[Tensor, "*batch"]) -> tuple[Tensor, Tensor]:
        """Lower and upper edge of each bin; an outer bin has its only edge twice."""
        last = len(self.edges) - 1
        return self.edges[(index - 1).clamp(min=0)], self.edges[index.clamp(max=last)]


def neighbour_kernel(count: int, width: float) -> Float64[Tensor, "K K"]:
    r"""Kernel that smooths targets over nearby bins, $S(k|k') \propto \exp(-\tfrac12 ((k-k')/w)^2)$; w = 0 is none."""
    place = torch.arange(count, dtype=torch.float64)
    apart = (place - place[:, None]) / max(width, 1e-9)
    return torch.softmax(-apart.square() / 2, -1)


def _tails(values: Float64[Tensor, " N"], edges: Float64[Tensor, " E"]) -> Float64[Tensor, " 2"]:
    """Mean distance of values beyond the outer edges; where there are none, the mean width of a bin."""
    inner = float(edges.diff().mean()) if len(edges) > 1 else max(1e-6 * float(edges[0].abs()), 1e-9)
    found = []
    for excess in (edges[0] - values, values - edges[-1]):
        beyond = excess[excess > 0]
        found.append(float(beyond.mean()) if len(beyond) else inner)
    return torch.tensor(found, dtype=torch.float64, device=values.device)
