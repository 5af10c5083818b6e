"""Parts of a proxy: the training set, the model that a kind fits to it, and the report of its cross-validation."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, Float64, Int, Int64
from torch import Tensor

from sgfn.landscapes.transforms import ScoreTransform

DRAWS = 15
"""Functions drawn from the posterior of each model; members of an ensemble."""
TRUST = 0.1
"""Variance, in units of the scores', that every row has beside its measurement noise when rows are weighted."""
BLOCK = 2**20
"""Most numbers of one intermediate array while predicting: it stays in the cache, and memory is bounded."""


@dataclass(frozen=True, kw_only=True)
class TrainingSet:
    """Distinct sequences as token rows, with scores of mean 0 and variance 1."""

    tokens: Int64[Tensor, "N L"]
    """Letters by number, padded with the blank, `len(alphabet)`."""
    targets: Float64[Tensor, " N"]
    noise: Float64[Tensor, " N"]
    """Standard deviation of each target's measurement, 0 where it is not known."""
    weights: Float64[Tensor, " N"]
    """How much each row counts, 1 on average."""
    fold: Int64[Tensor, " N"]
    """Number of the fold in which a row is left out."""
    alphabet: str
    seed: int
    device: str = "cpu"
    """Where models that can are trained; the rows themselves and what is found stay on the host."""

    @property
    def reliability(self) -> Float64[Tensor, " N"]:
        """Weight of each row, less where its measurement is noisy; 1 on average."""
        found = self.weights / (TRUST + self.noise.square())
        return found / found.mean()

    @property
    def folds(self) -> int:
        """How many folds there are."""
        return int(self.fold.max()) + 1

    @property
    def variable(self) -> bool:
        """Whether sequences differ in length."""
        return bool((self.tokens == len(self.alphabet)).any())


class ProxyModel(ABC):
    """A fitted law over functions of a sequence, in standard units of the score."""

    on_host: bool = False
    """Whether it answers on the CPU whatever it is asked on."""

    @abstractmethod
    def moments(self, tokens: Int[Tensor, "N L"]) -> tuple[Float[Tensor, " N"], Float[Tensor, " N"]]:
        """Mean and standard deviation of each row's score, before calibration."""

    @abstractmethod
    def draws(self, tokens: Int[Tensor, "N L"]) -> Float[Tensor, "M N"]:
        """Scores of each row under `DRAWS` functions, the same functions in every call."""

    @abstractmethod
    def state(self) -> dict[str, Tensor]:
        """Named tensors from which `restore` makes the model again."""

    @classmethod
    @abstractmethod
    def restore(cls, state: Mapping[str, Tensor], alphabet: str) -> "ProxyModel":
        """The model whose `state` was kept."""

    def mean(self, tokens: Int[Tensor, "N L"]) -> Float[Tensor, " N"]:
        """Mean of each row's score alone, where that is cheaper."""
        return self.moments(tokens)[0]

    def to(self, device: torch.device | str) -> None:
        """Move the model's tensors to a device."""
        for name, value in vars(self).items():
            if isinstance(value, Tensor):
                setattr(self, name, value.to(device))
            elif isinstance(value, list) and all(isinstance(part, Tensor) for part in value):
                setattr(self, name, [part.to(device) for part in value])


@dataclass(frozen=True, kw_only=True)
class FittedModel:
    """A model and what was predicted of each row by models that had not seen its fold."""

    model: ProxyModel
    mean: Float64[Tensor, " N"]
    sd: Float64[Tensor, " N"]


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """Expected score and its standard deviation, in the user's units."""

    mean: Float64[np.ndarray, " N"]
    sd: Float64[np.ndarray, " N"]


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """Cross-validation of one kind, in the user's units."""

    kind: str
    spearman: float
    """Rank correlation of predictions with measurements."""
    rmse: float
    coverage: float
    """Share of measurements inside their 80 % interval, each calibrated on the other folds."""


@dataclass(frozen=True, kw_only=True)
class ProxyReport:
    """What a proxy was fitted to and how well it predicts what it was not."""

    kind: str
    rows: int
    """Rows that were given, replicates included."""
    sequences: list[str]
    """Distinct sequences."""
    measured: Float64[np.ndarray, " N"]
    predicted: Float64[np.ndarray, " N"]
    """Out of fold."""
    sd: Float64[np.ndarray, " N"]
    """Calibrated standard deviation of each prediction out of fold, measurement noise not included."""
    folds: int
    candidates: list[Candidate]
    """Every kind that was tried, the best first."""

    @property
    def chosen(self) -> Candidate:
        """Figures of the kind that was taken."""
        return next(one for one in self.candidates if one.kind == self.kind)

    def told(self, transform: ScoreTransform) -> "ProxyReport":
        """The same with measured and predicted scores in the user's units, given the transform to what was fitted."""
        measured = transform.scores(self.measured)
        predicted, sd = transform.predictions(self.predicted, self.sd)
        return replace(self, measured=measured, predicted=predicted, sd=sd)

    @property
    def spearman(self) -> float:
        """Rank correlation of the kind that was taken."""
        return self.chosen.spearman

    @property
    def rmse(self) -> float:
        """Root mean squared error of the kind that was taken."""
        return self.chosen.rmse

    @property
    def coverage(self) -> float:
        """Share of measurements inside 80 % intervals, of the kind that was taken."""
        return self.chosen.coverage


def blocks(tokens: Int[Tensor, "N L"], width: int) -> tuple[Int[Tensor, "B L"], ...]:
    """Pieces of rows of which each makes `width` numbers, so that no piece makes more than `BLOCK`."""
    return tokens.split(max(1, BLOCK // max(1, width)))
