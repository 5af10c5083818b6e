"""Base class of landscapes, which give each finished object a score, and the reward made of a score."""

import math
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sgfn.config import RewardConfig
from sgfn.landscapes.transforms import ScoreTransform
from sgfn.noise import Noise


class Landscape(ABC):
    """Scores of finished objects; higher is better.

    Scores are zero or above, unless `log_reward` is overridden to say what a negative score is worth.
    """

    maximum: float
    """The highest score of any object; infinite where it is not known."""
    mode_level: float
    """Lowest score at which an object counts as a mode; infinite where no level is known."""
    on_host: bool = False
    """Whether scoring runs on the CPU, so that a step cannot be captured in a CUDA graph."""
    data_notice: str = ""
    """What whoever trains on it should know beforehand; empty where there is nothing."""
    traceable: bool = False
    """Whether scores are a function of tensors that keeps nothing between calls, so that a GPU may compile it; a class
    says so for itself, not for those made from it."""

    @abstractmethod
    def scores(self, objects: Int[Tensor, "*batch O"]) -> Float[Tensor, "*batch"]:
        """Score of each object."""

    def log_reward(self, objects: Int[Tensor, "*batch O"], config: RewardConfig) -> Float[Tensor, "*batch"]:
        """Log-reward of each object before the exponent beta."""
        return log_reward(self.scores(objects), config)

    # Optional knowledge

    score_transform: ScoreTransform = ScoreTransform()
    """From the user's scores to those of the landscape, where it was made from a table."""

    def told(self, objects: Int[Tensor, "*batch O"], scores: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """Scores of objects in the user's units, given those of the landscape: all that is shown goes through here."""
        return told_scores(self.score_transform, scores)

    def told_of_orders(
        self, objects: Int[Tensor, "*batch O"], scores: Float[Tensor, "*batch"]
    ) -> Float[Tensor, "*batch"]:
        """The same of what was chosen because its scores are high, of which predictions are told with care."""
        return self.told(objects, scores)

    def uncertainty(self, objects: Int[Tensor, "*batch O"]) -> Float[Tensor, "*batch"]:
        """Standard deviation of each score, where scores are predictions; zero where they are known."""
        return torch.zeros(objects.shape[:-1], device=objects.device)

    def facts(self, beta: float, noise: Noise) -> dict[str, Any]:
        """Facts known without enumeration at reward norm 1: `log_z`, `optimum`, expected scores of target and floor."""
        return {}

    def draw_target(
        self, count: int, beta: float, generator: torch.Generator
    ) -> tuple[Int[Tensor, "N O"], Float[Tensor, " N"]] | None:
        """Exact samples of the target with their log-probabilities; None where no exact sampler is known."""
        return None

    def modes_known(self, objects: Int[Tensor, "N O"]) -> tuple[int, int] | None:
        """How many modes of a known set the objects find, and the size of the set; None without such a set."""
        return None

    def offline_objects(self) -> Int[Tensor, "N O"] | None:
        """Objects whose scores were measured beforehand; None where the landscape was not made from any."""
        return None

    def fitted_files(self, folder: Path) -> dict[str, Path]:
        """Write what was fitted to data into files of a folder, by the setting that reads each of them again."""
        return {}

    def measured(self, objects: Int[Tensor, "*batch O"]) -> Bool[Tensor, "*batch"] | None:
        """Which objects were measured; None where scores are not made of measurements."""
        return None

    def attach(self, folder: Path, *, resumed: bool) -> None:
        """Learn in which run folder the landscape is used, for logs and kept scores; most have no use for it."""
        return

    def trouble(self) -> str:
        """What went wrong while scoring and did not stop the run, to be told at its end; empty where nothing did."""
        return ""

    # Scores that are taken later

    @property
    def scores_ahead(self) -> bool:
        """Whether `request` asks others for scores, which arrive while something else is done."""
        return False

    def request(self, objects: Int[Tensor, "N O"]) -> Any:
        """Ask for the scores of objects; the answer is for `taken`, and tells by `ready` whether they have arrived."""
        raise NotImplementedError(f"{type(self).__name__} is asked by `scores` alone")

    def taken(self, request: Any) -> AbstractContextManager[None]:
        """Wait for a request; within this context `scores` has what was asked for."""
        raise NotImplementedError(f"{type(self).__name__} is asked by `scores` alone")

    def live(self) -> dict[str, float]:
        """Figures of this moment for a progress bar: scores per second, and how many are waited for."""
        return {}

    def close(self) -> None:
        """End what the landscape has started; most have nothing."""
        return

    def start_objects(self) -> Int[Tensor, "N O"] | None:
        """Objects that a search may begin with: those measured beforehand, unless the landscape knows others."""
        return self.offline_objects()

    def to(self, device: torch.device) -> None:
        """Move the landscape's tensors to a device."""
        for name, value in vars(self).items():
            if isinstance(value, Tensor):
                setattr(self, name, value.to(device))


def told_scores(transform: ScoreTransform, scores: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    """Scores of a landscape in the user's units; as they are where there is no transform.

    >>> told_scores(ScoreTransform(minimise=True, low=-50.0, span=40.0), torch.tensor([0.0, 1.0])).tolist()
    [50.0, 10.0]
    """
    if transform == ScoreTransform():
        return scores
    return torch.from_numpy(transform.scores(scores.detach().cpu().double().numpy())).to(scores)


def log_reward(scores: Float[Tensor, "*batch"], config: RewardConfig) -> Float[Tensor, "*batch"]:
    r"""Log-reward before the exponent: $\log(\mathrm{clip}(score, min)/norm)$."""
    return scores.clamp(min=config.minimum).log() - math.log(config.norm)


def beta_at(step: Float[Tensor, ""], beta: float, ramp: float) -> Float[Tensor, ""]:
    r"""Reward exponent at a step: $\beta_t = 1 + (\beta-1)(1 - 1/(1+t/k))$, constant when k = 0.

    >>> [round(beta_at(torch.tensor(t), 3.0, 100.0).item(), 3) for t in (0.0, 100.0, 1e9)]
    [1.0, 2.0, 3.0]
    """
    if ramp == 0.0:
        return torch.full_like(step, beta)
    return 1.0 + (beta - 1.0) * (1.0 - 1.0 / (1.0 + step / ramp))
