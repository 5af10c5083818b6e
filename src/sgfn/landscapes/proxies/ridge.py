r"""Bayesian ridge regression on letters by position and pairs of letters, with its exact posterior.

$y = \Phi w + \epsilon$, $w \sim N(0, \tau^2)$, $\epsilon_i \sim N(0, \sigma^2 / \omega_i)$. The ratio
$\lambda = \sigma^2/\tau^2$ and the prior variance of pairs relative to single letters have the highest marginal
likelihood on a grid.
Reference: Bishop (2006), Pattern Recognition and Machine Learning, sections 3.3 to 3.5.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.landscapes.proxies.base import DRAWS, FittedModel, ProxyModel, TrainingSet, blocks
from sgfn.landscapes.proxies.letters import composition, one_hot

MOST_FEATURES = 3_000
"""Columns at most: pairs of far positions are left out where there would be more."""
PAIRS = (0.0, 0.1, 0.4, 1.0)
"""Prior variance of all pairs together, relative to all single letters together."""
RIDGES = tuple(10 ** (i / 4) for i in range(-12, 13))


@dataclass(frozen=True, kw_only=True)
class FeatureMap:
    """Columns of a sequence: letters by position, pairs of letters up to `reach` apart, and composition."""

    letters: int
    length: int
    reach: int
    variable: bool
    pairs: float
    """Prior variance of pairs; 0 leaves them out."""

    def __call__(self, tokens: Int[Tensor, "N L"]) -> Float[Tensor, "N P"]:
        """Columns scaled by their prior standard deviation, each group to a mean square of about 1."""
        codes = one_hot(tokens, self.letters + int(self.variable))
        columns = [codes.flatten(1) / math.sqrt(self.length)]
        if self.variable:
            columns.append(4.0 * composition(tokens, self.letters))
        if self.pairs:
            near = [pairs_apart(codes, apart) for apart in range(1, self.reach + 1)]
            count = sum(self.length - apart for apart in range(1, self.reach + 1))
            columns += [part * math.sqrt(self.pairs / max(1, count)) for part in near]
        return torch.cat(columns, 1)


def pairs_apart(codes: Float[Tensor, "N L S"], apart: int) -> Float[Tensor, "N P"]:
    """Products of the codes of all positions that lie so far apart."""
    return (codes[:, :-apart, :, None] * codes[:, apart:, None, :]).flatten(1)


def reach_of(length: int, symbols: int) -> int:
    """The farthest positions whose pairs fit into the columns that are allowed."""
    reach = 0
    while reach + 1 < length and sum(length - k for k in range(1, reach + 2)) * symbols**2 <= MOST_FEATURES:
        reach += 1
    return reach


class Ridge(ProxyModel):
    """Posterior of the weights, in the basis of the features' right singular vectors."""

    def __init__(self, features: FeatureMap, state: Mapping[str, Tensor]) -> None:
        self.features = features
        self.centre, self.basis, self.shrink = state["centre"], state["basis"], state["shrink"]
        self.prior, self.weights, self.offset = state["prior"], state["weights"], state["offset"]

    def _columns(self, tokens: Int[Tensor, "N L"]) -> Float[Tensor, "N P"]:
        return self.features(tokens) - self.centre

    def moments(self, tokens: Int[Tensor, "N L"]) -> tuple[Float[Tensor, " N"], Float[Tensor, " N"]]:
        r"""$\phi\cdot\hat w$, and $\tau^2 (|\phi|^2 - \sum_k (\phi\cdot v_k)^2 s_k^2/(s_k^2+\lambda))$."""
        mean, variance = [], []
        for part in blocks(tokens, self.centre.shape[0]):
            columns = self._columns(part)
            mean.append(columns @ self.weights[0])
            known = ((columns @ self.basis).square() * self.shrink).sum(1)
            variance.append(self.prior * (columns.square().sum(1) - known))
        return self.offset + torch.cat(mean).double(), torch.cat(variance).double().clamp(min=1e-12).sqrt()

    def mean(self, tokens: Int[Tensor, "N L"]) -> Float[Tensor, " N"]:
        """Mean of each row's score."""
        parts = blocks(tokens, self.centre.shape[0])
        return self.offset + torch.cat([self._columns(part) @ self.weights[0] for part in parts]).double()

    def draws(self, tokens: Int[Tensor, "N L"]) -> Float[Tensor, "M N"]:
        """Scores under weights drawn from their posterior."""
        found = [self._columns(part) @ self.weights[1:].T for part in blocks(tokens, self.centre.shape[0])]
        return self.offset + torch.cat(found).double().T

    def state(self) -> dict[str, Tensor]:
        """The posterior and the shape of the features."""
        f = self.features
        shape = torch.tensor([f.letters, f.length, f.reach, int(f.variable)])
        names = ("offset", "centre", "basis", "shrink", "prior", "weights")
        kept = {name: getattr(self, name) for name in names}
        return kept | {"shape": shape, "pairs": torch.tensor(f.pairs, dtype=torch.float64)}

    @classmethod
    def restore(cls, state: Mapping[str, Tensor], alphabet: str) -> "Ridge":
        """The model whose `state` was kept."""
        letters, length, reach, variable = (int(value) for value in state["shape"].tolist())
        named = {"letters": letters, "length": length, "reach": reach, "variable": bool(variable)}
        return cls(FeatureMap(**named, pairs=float(state["pairs"])), state)


@dataclass(frozen=True, kw_only=True)
class _Decomposition:
    """Weighted, centred features $U s V^T$ and the scores along U."""

    features: FeatureMap
    centre: Tensor
    columns: Tensor
    left: Tensor
    values: Tensor
    along: Tensor
    rest: float
    """Squared length of the scores outside of U."""

    def evidence(self, ridge: float) -> float:
        """Log marginal likelihood at a ridge, with the best prior variance, up to a constant."""
        spread = self.values.square() + ridge
        squares = float((self.along.square() / spread).sum()) + self.rest / ridge
        rows = self.columns.shape[0]
        flat = rows - self.values.shape[0]
        return -0.5 * (rows * math.log(squares / rows) + float(spread.log().sum()) + flat * math.log(ridge))

    def prior(self, ridge: float) -> float:
        """The prior variance of highest likelihood."""
        spread = self.values.square() + ridge
        return (float((self.along.square() / spread).sum()) + self.rest / ridge) / self.columns.shape[0]


def decompose(data: TrainingSet, features: FeatureMap, weight: Tensor) -> _Decomposition:
    """Singular vectors of the features, by the eigenvectors of the smaller Gram matrix."""
    plain = torch.cat([features(part) for part in blocks(data.tokens, MOST_FEATURES)])
    centre = (plain * weight.float()[:, None]).sum(0) / weight.float().sum()
    columns = ((plain - centre) * weight.sqrt()[:, None]).double()
    rows, width = columns.shape
    values, vectors = torch.linalg.eigh(columns @ columns.T if rows <= width else columns.T @ columns)
    kept = values > 1e-8 * values[-1].clamp(min=1e-12)
    values, vectors = values[kept].sqrt(), vectors[:, kept]
    left = vectors if rows <= width else columns @ vectors / values
    targets = data.targets * weight.sqrt()
    along = left.T @ targets
    rest = max(float(targets.square().sum() - along.square().sum()), 1e-9)
    return _Decomposition(
        features=features, centre=centre, columns=columns, left=left, values=values, along=along, rest=rest
    )


def fit(data: TrainingSet) -> FittedModel:
    """Fit by marginal likelihood; predictions out of fold are exact, without refits."""
    letters, length = len(data.alphabet), data.tokens.shape[1]
    symbols = letters + int(data.variable)
    reach = reach_of(length, symbols)
    weight = data.reliability
    offset = (weight * data.targets).sum() / weight.sum()
    data = replace(data, targets=data.targets - offset)
    tried = []
    for pairs in PAIRS if reach else PAIRS[:1]:
        named = {"letters": letters, "length": length, "reach": reach, "variable": data.variable, "pairs": pairs}
        part = decompose(data, FeatureMap(**named), weight)
        tried += [(part.evidence(ridge), part, ridge) for ridge in RIDGES]
    _, best, ridge = max(tried, key=lambda one: one[0])
    mean, sd = out_of_fold(best, ridge, data, weight)
    return FittedModel(model=posterior(best, ridge, data, weight, offset), mean=mean + offset, sd=sd)


def posterior(found: _Decomposition, ridge: float, data: TrainingSet, weight: Tensor, offset: Tensor) -> Ridge:
    """Mean of the weights and draws of them: prior draws, corrected by what was measured (Matheron's rule)."""
    values, prior = found.values, found.prior(ridge)
    right = found.columns.T @ found.left / values  # P r
    gain = values / (values.square() + ridge)
    generator = torch.Generator().manual_seed(data.seed)
    rows, width = found.columns.shape
    start = torch.randn(width, DRAWS, generator=generator, dtype=torch.float64) * math.sqrt(prior)
    noise = torch.randn(rows, DRAWS, generator=generator, dtype=torch.float64) * math.sqrt(prior * ridge)
    missed = (data.targets * weight.sqrt())[:, None] - found.columns @ start - noise
    drawn = start + right @ (gain[:, None] * (found.left.T @ missed))
    mean = right @ (gain * found.along)
    state = {
        "offset": offset,
        "centre": found.centre,
        "basis": right.float(),
        "shrink": (values.square() / (values.square() + ridge)).float(),
        "prior": torch.tensor(prior),
        "weights": torch.cat([mean[:, None], drawn], 1).T.float(),
    }
    return Ridge(found.features, state)


def out_of_fold(found: _Decomposition, ridge: float, data: TrainingSet, weight: Tensor) -> tuple[Tensor, Tensor]:
    r"""Predictions of each fold from the others: $e_f = (I - H_{ff})^{-1} (y - H y)_f$, H the smoother of all rows."""
    shrink = found.values.square() / (found.values.square() + ridge)
    targets = data.targets * weight.sqrt()
    left = targets - found.left @ (shrink * found.along)
    error, variance = torch.zeros_like(targets), torch.zeros_like(targets)
    for number in range(data.folds):
        out = (data.fold == number).nonzero()[:, 0]
        part = found.left[out]
        inverse = torch.linalg.inv(torch.eye(out.shape[0], dtype=torch.float64) - (part * shrink) @ part.T)
        error[out] = inverse @ left[out]
        variance[out] = found.prior(ridge) * ridge * (inverse.diagonal() - 1.0)
    size = weight.sqrt()
    return data.targets - error / size, variance.clamp(min=1e-12).sqrt() / size
