r"""Bins of a scaled value and the density inside them, so that a law over bins is a law over numbers.

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
    """K bins by their K - 1 inner edges, and the mean excess of a value that lies beyond the outer ones.

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
        """Up to `count` bins of equal mass; where values are tied or too close there are fewer."""
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
        """K."""
        return len(self.edges) + 1

    @property
    def centres(self) -> Float64[Tensor, " K"]:
        """The mean of each bin: what a network reads, and what a cost is judged at."""
        inner = (self.edges[1:] + self.edges[:-1]) / 2
        return torch.cat([self.edges[:1] - self.tails[:1], inner, self.edges[-1:] + self.tails[1:]])

    def index(self, values: Float[Tensor, "*batch"]) -> Int[Tensor, "*batch"]:
        """The bin of each value; an edge belongs to the bin above it."""
        return torch.bucketize(values.double(), self.edges.to(values.device), right=True)

    def place(self, index: Int[Tensor, "*batch"], share: Float[Tensor, "*batch"]) -> Float64[Tensor, "*batch"]:
        """The value below which that share of a bin's mass lies: with a uniform share, a draw from the bin."""
        share = share.double().clamp(1e-12, 1 - 1e-12)
        low, high = self._limits(index)
        inside = low + share * (high - low)
        below, above = high + self.tails[0] * share.log(), low - self.tails[1] * torch.log1p(-share)
        return torch.where(index == 0, below, torch.where(index == self.count - 1, above, inside))

    def share(self, values: Float[Tensor, "*batch"]) -> Float64[Tensor, "*batch"]:
        """The share of its own bin's mass that lies below each value: the inverse of `place`."""
        index, values = self.index(values), values.double()
        low, high = self._limits(index)
        inside = (values - low) / (high - low)
        below, above = ((values - high) / self.tails[0]).exp(), -torch.expm1(-(values - low) / self.tails[1])
        return torch.where(index == 0, below, torch.where(index == self.count - 1, above, inside))

    def cdf(self, law: Float[Tensor, "*batch K"], values: Float[Tensor, "*batch"]) -> Float64[Tensor, "*batch"]:
        """P(X <= value) under a law over bins."""
        index, mass = self.index(values)[..., None], law.double()
        before = (mass.cumsum(-1) - mass).gather(-1, index)[..., 0]
        return before + mass.gather(-1, index)[..., 0] * self.share(values)

    def quantile(
        self, law: Float[Tensor, "*batch K"], levels: Float[Tensor, "*levels Q"]
    ) -> Float64[Tensor, "*batch Q"]:
        """The least value whose cdf reaches each level; the same levels for all laws, or each its own."""
        mass = law.double() / law.double().sum(-1, keepdim=True)
        upto = mass.cumsum(-1)
        wanted = levels.double().to(law.device).expand(*law.shape[:-1], levels.shape[-1]).contiguous()
        index = torch.searchsorted(upto, wanted).clamp(max=self.count - 1)
        inside, before = mass.gather(-1, index), (upto - mass).gather(-1, index)
        return self.place(index, (wanted - before) / inside.clamp(min=1e-300))

    def carry(
        self,
        index: Int[Tensor, "*batch N"],
        share: Float[Tensor, "*batch N"],
        source: Float[Tensor, "*batch K"],
        target: Float[Tensor, "*batch K"],
    ) -> Float64[Tensor, "*batch N"]:
        r"""Draws of one law as draws of another, in the same order: $G^{-1}(F(x))$, x by its bin and place in it."""
        mass = source.double() / source.double().sum(-1, keepdim=True)
        level = (mass.cumsum(-1) - mass).gather(-1, index) + mass.gather(-1, index) * share
        return self.quantile(target, level)

    def mean(self, law: Float[Tensor, "*batch K"]) -> Float64[Tensor, "*batch"]:
        """The exact mean: an exponential tail's is its edge and its mean excess."""
        return (law.double() * self.centres).sum(-1)

    def log_density(
        self, log_law: Float[Tensor, "*batch K"], values: Float[Tensor, "*batch"]
    ) -> Float64[Tensor, "*batch"]:
        """log f(value) under a law over bins, given by its logarithms."""
        index = self.index(values)
        low, high = self._limits(index)
        excess = torch.where(index == 0, (high - values) / self.tails[0], (values - low) / self.tails[1])
        tail = torch.where(index == 0, self.tails[0], self.tails[1])
        outer = (index == 0) | (index == self.count - 1)
        return log_law.double().gather(-1, index[..., None])[..., 0] - torch.where(
            outer, excess + tail.log(), (high - low).clamp(min=1e-300).log()
        )

    def blur(self, deviation: Float[Tensor, "*batch"]) -> Float64[Tensor, "*batch K K"]:
        r"""Measurement error as a kernel: $M(k|k') = P(c_{k'} + \sigma\,\varepsilon \in \mathrm{bin}\;k)$, Gaussian."""
        spread = deviation.double().clamp(min=1e-9)[..., None, None]
        below = torch.special.ndtr((self.edges - self.centres[:, None]) / spread)  # K E
        ends = torch.zeros_like(below[..., :1])
        return torch.diff(below, prepend=ends, append=ends + 1.0)

    def to(self, device: torch.device) -> "Bins":
        """The same on another device."""
        return Bins(edges=self.edges.to(device), tails=self.tails.to(device))

    def _limits(self, index: Int[Tensor, "*batch"]) -> tuple[Tensor, Tensor]:
        """Edges on both sides; an outer bin has its only edge twice."""
        last = len(self.edges) - 1
        return self.edges[(index - 1).clamp(min=0)], self.edges[index.clamp(max=last)]


def neighbours(count: int, width: float) -> Float64[Tensor, "K K"]:
    r"""Targets smoothed by a reward for near misses: $S(k|k') \propto \exp(-\tfrac12 ((k-k')/w)^2)$; w = 0 is none."""
    place = torch.arange(count, dtype=torch.float64)
    apart = (place - place[:, None]) / max(width, 1e-9)
    return torch.softmax(-apart.square() / 2, -1)


def _tails(values: Float64[Tensor, " N"], edges: Float64[Tensor, " E"]) -> Float64[Tensor, " 2"]:
    """Mean excess beyond the outer edges; where nothing lies there, as wide as a typical bin."""
    inner = float(edges.diff().mean()) if len(edges) > 1 else max(1e-6 * float(edges[0].abs()), 1e-9)
    found = []
    for excess in (edges[0] - values, values - edges[-1]):
        beyond = excess[excess > 0]
        found.append(float(beyond.mean()) if len(beyond) else inner)
    return torch.tensor(found, dtype=torch.float64, device=values.device)
