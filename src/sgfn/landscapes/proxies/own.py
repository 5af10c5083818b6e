"""Proxies of somebody else's: a function `(sequences, scores, seed) -> predict`, where `predict(sequences)` gives
means, or means and standard deviations."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.config.registry import called_as, refuse_uncallable
from sgfn.landscapes.proxies.base import DRAWS, FittedModel, ProxyModel, TrainingSet

Predict = Callable[[list[str]], Any]
Fit = Callable[[list[str], np.ndarray, int], Predict]


class OwnModel(ProxyModel):
    """Answers of a function that was fitted by somebody's code; kept as the rows that it was fitted to."""

    def __init__(self, name: str, fit: Fit, alphabet: str, tokens: Tensor, targets: Tensor, seed: int) -> None:
        self.name, self.alphabet, self.tokens, self.targets, self.seed = name, alphabet, tokens, targets, seed
        with called_as("proxy", name):
            found = fit(spelled(tokens, alphabet), targets.numpy().copy(), seed)
        self.predict = refuse_uncallable("proxy", name, found, "a function that returns a function of sequences")
        generator = torch.Generator().manual_seed(seed)
        self.shifts = torch.randn(DRAWS, 1, generator=generator, dtype=torch.float64)

    def moments(self, tokens: Int[Tensor, "N L"]) -> tuple[Float[Tensor, " N"], Float[Tensor, " N"]]:
        """What the function answers; where it gives no standard deviation, 0 before calibration."""
        with called_as("proxy", self.name):
            answer = self.predict(spelled(tokens.cpu(), self.alphabet))
        mean, sd = answer if isinstance(answer, tuple) else (answer, np.zeros(tokens.shape[0]))
        return self.checked(mean, tokens, "means"), self.checked(sd, tokens, "standard deviations").clamp(min=0)

    def checked(self, values: Any, tokens: Tensor, what: str) -> Float[Tensor, " N"]:
        """Finite numbers, one for each sequence."""
        found = torch.as_tensor(np.asarray(values, dtype=np.float64), device=tokens.device)
        if found.shape != tokens.shape[:1] or not bool(found.isfinite().all()):
            raise ValueError(f"proxy {self.name!r} must give {what}: one finite number for each sequence")
        return found

    def draws(self, tokens: Int[Tensor, "N L"]) -> Float[Tensor, "M N"]:
        """The mean, shifted by the same number of standard deviations everywhere: all that two moments allow."""
        mean, sd = self.moments(tokens)
        return mean + self.shifts.to(mean.device) * sd

    def state(self) -> dict[str, Tensor]:
        """The rows, from which the function is fitted again."""
        return {"tokens": self.tokens, "targets": self.targets, "seed": torch.tensor(self.seed)}

    @classmethod
    def restore(cls, state: Mapping[str, Tensor], alphabet: str) -> "OwnModel":
        """Not possible without the function; see `restore_own`."""
        raise ValueError("a proxy of your own is restored with its function")


def restore_own(name: str, fit: Fit, state: Mapping[str, Tensor], alphabet: str) -> OwnModel:
    """The function fitted once more to the rows that were kept."""
    return OwnModel(name, fit, alphabet, state["tokens"], state["targets"], int(state["seed"]))


def fit_own(name: str, fit: Fit, data: TrainingSet) -> FittedModel:
    """Fit to all rows, and once without each fold."""
    mean, sd = torch.zeros_like(data.targets), torch.zeros_like(data.targets)
    for number in range(data.folds):
        out = data.fold == number
        part = OwnModel(name, fit, data.alphabet, data.tokens[~out], data.targets[~out], data.seed)
        mean[out], sd[out] = part.moments(data.tokens[out])
    model = OwnModel(name, fit, data.alphabet, data.tokens, data.targets, data.seed)
    return FittedModel(model=model, mean=mean, sd=sd)


def spelled(tokens: Int[Tensor, "N L"], alphabet: str) -> list[str]:
    """Letters of token rows; blanks are left out."""
    symbols = [*alphabet, ""]
    return ["".join(symbols[i] for i in row) for row in tokens.tolist()]
