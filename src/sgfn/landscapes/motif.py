"""DNA of any fixed length scored by a binding motif's weight matrix, with exact answers where scores are additive."""

import math
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor

from sgfn.config import RewardConfig
from sgfn.config.checks import one_of
from sgfn.landscapes import jaspar
from sgfn.landscapes.base import Landscape
from sgfn.landscapes.tfbind8_tables import ALPHABET
from sgfn.noise import Noise

__all__ = ["ALPHABET", "MODE_SHARE", "SCORES", "Motif", "log_odds"]

SCORES = ("sum", "best")
MODE_SHARE = 0.9
"""A mode lies at least this share of the way from the lowest to the highest score (of one place, for `best`)."""


def log_odds(counts: Float[np.ndarray, "w 4"]) -> Float64[Tensor, "w 4"]:
    r"""Position weight matrix in nats: pseudocount $\sqrt{N}$ in each position, shared by a background of 1/4.

    .. math:: W_{ib} = \log \frac{(n_{ib} + \sqrt{N_i}/4) / (N_i + \sqrt{N_i})}{1/4}, \qquad N_i = \sum_b n_{ib}

    Reference: Wasserman and Sandelin (2004), Applied bioinformatics for the identification of regulatory elements,
    Nature Reviews Genetics 5:276.
    """
    total = counts.sum(-1, keepdims=True)
    share = (counts + np.sqrt(total) / 4) / (total + np.sqrt(total))
    return torch.from_numpy(np.log(4.0 * share.astype(np.float64)))


class Motif(Landscape):
    r"""Fit of DNA to a weight matrix W of w positions, over all n = L - w + 1 places of one strand; R = exp(score).

    .. math:: s_j(x) = \sum_{i<w} W_{i,x_{j+i}}, \qquad
              \text{sum: } \tfrac1n \sum_{j<n} s_j(x) = \sum_p A_{p,x_p}, \qquad \text{best: } \max_j s_j(x)

    `sum` is divided by the number of places, so that scores are comparable between lengths: nats per place, never above
    `best`, and equal to it when L = w. It is additive, so the target $p^* \propto \exp(\beta \cdot score)$ is a product
    of one law per position, and all methods below are exact at any length.

    >>> Motif.named("Arnt", length=30).maximum < Motif.named("Arnt", length=30, score="best").maximum
    True
    """

    traceable = True

    def __init__(
        self, matrix: Float[Tensor, "w 4"], *, length: int, score: str = "sum", name: str = "the motif"
    ) -> None:
        one_of("score", score, SCORES)
        width = matrix.shape[0]
        if length < width:
            raise ValueError(f"length {length} is too short for {name} of {width} positions: choose {width} or more")
        self.matrix, self.length, self.score, self.name = matrix.double(), length, score, name
        self.places = length - width + 1
        self.weights = position_weights(self.matrix, self.places)  # A of the equation
        rows = self.weights if score == "sum" else self.matrix
        lowest, highest = rows.amin(-1).sum().float(), rows.amax(-1).sum().float()  # rounded as the scores are
        self.minimum, self.maximum = float(lowest), float(highest)
        self.mode_level = float(torch.lerp(lowest, highest, MODE_SHARE))

    @classmethod
    def named(cls, name: str = jaspar.DEFAULT, *, length: int, score: str = "sum") -> "Motif":
        """The motif of a JASPAR factor or matrix id."""
        profile = jaspar.find(name)
        return cls(log_odds(profile.counts), length=length, score=score, name=f"{profile.factor} ({profile.id})")

    def scores(self, objects: Int[Tensor, "*batch O"]) -> Float[Tensor, "*batch"]:
        """Score of each object in nats, the mean over places or the best place; it may be negative."""
        if self.score == "sum":
            return pick(self.weights, objects).sum(-1).float()
        return place_scores(self.matrix, objects).amax(-1).float()

    def log_reward(self, objects: Int[Tensor, "*batch O"], config: RewardConfig) -> Float[Tensor, "*batch"]:
        """The score less log norm: R = exp(score) / norm, so nothing is clipped."""
        return self.scores(objects) - math.log(config.norm)

    # Exact answers for `sum`, with norm 1 (another norm lowers log Z by beta log norm and changes nothing else)

    def facts(self, beta: float, noise: Noise) -> dict[str, Any]:
        """Exact log Z, expected scores and floor of `sum`; nothing for `best`."""
        if self.score != "sum":
            return {}
        facts = {"log_z": self.log_partition(beta), "target_expected_reward": self.expected_score(beta)}
        if noise.draw_rates(1, torch.Generator()) is not None:
            return facts  # through a hidden rate positions depend on each other
        law = self.best_law(beta, noise)
        floor = {"floor_expected_reward": self.mean_under(law), "floor_kl": self.kl_to(law, beta)}
        return facts | floor | {"floor_kind": "forward-KL optimum"}

    def draw_target(
        self, count: int, beta: float, generator: torch.Generator
    ) -> tuple[Int[Tensor, "N O"], Float[Tensor, " N"]] | None:
        """Exact samples of the target of `sum` with log-probabilities; None for `best`."""
        if self.score != "sum":
            return None
        objects = self.exact_sample(count, beta, generator)
        return objects, self.log_prob(objects, beta)

    def log_partition(self, beta: float) -> float:
        r"""Logarithm of the normaliser, $\log Z = \sum_p \log \sum_b \exp(\beta A_{pb})$."""
        return float(self._energies(beta).logsumexp(-1).sum())

    def target_conditional(self, beta: float) -> Float64[Tensor, "L V"]:
        """The target's law at each position, which does not depend on the other positions."""
        return self._energies(beta).softmax(-1)

    def log_prob(self, objects: Int[Tensor, "*batch L"], beta: float) -> Float64[Tensor, "*batch"]:
        r"""Log-probability of each object under the target, $\log p^*(x)$."""
        return pick(self._energies(beta).log_softmax(-1), objects).sum(-1)

    def exact_sample(self, count: int, beta: float, generator: torch.Generator) -> Int[Tensor, "N L"]:
        """Independent draws from the target, on the generator's device."""
        law = self.target_conditional(beta).to(generator.device)
        return torch.multinomial(law, count, replacement=True, generator=generator).T.contiguous()

    def expected_score(self, beta: float) -> float:
        """Mean score under the target."""
        return self.mean_under(self.target_conditional(beta))

    def best_law(self, beta: float, noise: Noise) -> Float64[Tensor, "L V"]:
        """The reachable law at each position that is nearest to the target in forward KL under the noise.

        KL is a sum over nodes of the tree, and all nodes of one depth have the same conditional: one projection serves
        each depth.
        """
        conditional = self.target_conditional(beta)
        position = torch.arange(self.length, device=conditional.device)
        anything = torch.ones_like(conditional, dtype=torch.bool)
        return noise.operator(anything, conditional.dtype, position).project(conditional)[1]

    def floor_kl(self, beta: float, noise: Noise) -> float:
        """KL from the target to the best reachable law: a lower bound for every policy."""
        return self.kl_to(self.best_law(beta, noise), beta)

    def floor_expected_score(self, beta: float, noise: Noise) -> float:
        """Mean score under the best reachable law."""
        return self.mean_under(self.best_law(beta, noise))

    def kl_to(self, law: Float64[Tensor, "L V"], beta: float) -> float:
        r"""KL from the target to a law q of independent positions, $\sum_p \sum_b c_{pb} \log(c_{pb}/q_{pb})$."""
        conditional = self.target_conditional(beta)
        terms = conditional * (conditional.log() - law.log())
        return float(torch.where(conditional > 0, terms, 0.0).sum().clamp(min=0.0))  # never below zero by rounding

    def mean_under(self, law: Float64[Tensor, "L V"]) -> float:
        """Mean score under a law of independent positions."""
        self._require_additive()
        return float((law * self.weights).sum())

    def _energies(self, beta: float) -> Float64[Tensor, "L V"]:
        self._require_additive()
        return beta * self.weights

    def _require_additive(self) -> None:
        if self.score != "sum":
            raise ValueError(f"exact answers need an additive score: choose score 'sum', got {self.score!r}")


def position_weights(matrix: Float64[Tensor, "w V"], places: int) -> Float64[Tensor, "L V"]:
    """Additive weight of each token at each position: the mean over places of the matrix rows that cover it."""
    width = matrix.shape[0]
    weights = matrix.new_zeros(width + places - 1, matrix.shape[1])
    for i in range(width):
        weights[i : i + places] += matrix[i] / places
    return weights


def pick(table: Float64[Tensor, "L V"], objects: Int[Tensor, "*batch L"]) -> Float64[Tensor, "*batch L"]:
    """Entry of each token in the table row of its position."""
    rows = table.expand(*objects.shape, table.shape[-1])
    return rows.gather(-1, objects[..., None])[..., 0]


def place_scores(matrix: Float64[Tensor, "w V"], objects: Int[Tensor, "*batch L"]) -> Float64[Tensor, "*batch n"]:
    """Score of the matrix at each place of each object, summed one matrix row at a time."""
    width = matrix.shape[0]
    places = objects.shape[-1] - width + 1
    total = matrix[0][objects[..., :places]]
    for i in range(1, width):
        total = total + matrix[i][objects[..., i : i + places]]
    return total
